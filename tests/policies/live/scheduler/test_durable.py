"""Schedulers that outlive their process: the same answers after any crash."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from policies.live.scheduler import CrawlScheduler, DurableScheduler
from policies.live.scheduler.calls import Noted
from policies.live.scheduler.files import (
    MAGIC,
    Record,
    plain,
    read_snapshot,
    records_of,
    write_records,
)

STALE, MISSED, OPEN = 1, 2, 3
HOSTS = [f"host{k}" for k in range(3)]

KNOWN = {"change_rate": 1.0, "recall": 0.3, "false_signal_rate": 0.2, "last_crawl": 0.0}


def begun(folder):
    """Return a scheduler in a folder, with two pages."""
    loop = DurableScheduler(folder, CrawlScheduler("GreedyNCIS", 10.0))
    loop.add(["a", "b"], **KNOWN)
    return loop


def new_scheduler(policy="GreedyNCIS"):
    return CrawlScheduler(policy, bandwidth=20.0, timeout=0.8, audit_share=0.3, seed=4)


def calls(seed, count):
    """Yield calls of a scheduler: name and arguments, the same for a seed."""
    rng, largest, now = np.random.default_rng(seed), 0, 0.0
    yield "limit_hosts", {"gap": 0.05}
    for turn in range(count):
        now += rng.exponential(0.05)
        known = rng.integers(max(largest, 1), size=4)
        if turn % 9 == 0:
            ids = np.arange(largest, largest + 12)
            largest += 12
            host = rng.choice(HOSTS, 12) if rng.random() < 0.7 else None
            rates = {"change_rate": rng.random(12), "recall": 0.5, "false_signal_rate": 0.2}
            copies = np.where(rng.random(12) < 0.5, now - 1.0, np.nan)
            rates["group"] = None if turn % 2 else ["a", "b", "c"] * 4
            yield "add", {"ids": ids, "host": host, "last_crawl": copies - 1.0, **rates}
        elif turn % 23 == 0:
            yield "remove", {"ids": [int(known[0])]}  # refused if it is removed already
        elif turn % 29 == 0:
            yield "move", {"ids": known[:1], "new_ids": [10**6 + turn]}
        elif turn % 31 == 0:
            yield "report", {"ids": known[:1], "times": now, "status": "gone"}
        elif turn % 35 == 0:
            yield "revive", {"ids": known}
        elif turn % 38 == 0:
            yield "reset_clock", {"time": now - 0.2}
        elif turn % 37 == 0:
            yield "hold", {"host": rng.choice(HOSTS), "until": now + 1.0}
        elif turn % 41 == 0:
            yield "source_gap", {"source": 0, "since": now - 0.5}
        elif turn % 43 == 0:
            yield "configure", {"time": now, "bandwidth": 20.0 + turn % 7}
        elif turn % 3 == 0:
            yield "signal", {"ids": known, "times": now}
        elif turn % 5 == 0:
            at = None if turn % 2 else now + 0.3
            yield "report", {"ids": known[:1], "times": now, "status": "failed", "retry_at": at}
        elif turn % 7 == 0:
            yield "next", {"time": now}
        elif turn % 4 == 0:
            changed = rng.random(4) < 0.5 if turn % 8 else None
            yield "report", {"ids": known, "times": now - rng.random(4) / 9.0, "changed": changed}
        else:
            yield "next_batch", {"time": now + 1.0, "count": int(rng.choice([1, 2, 12]))}
            now += 1.0


def answer(scheduler, call, arguments):
    """Return what a call returns, or says."""
    try:
        result = getattr(scheduler, call)(**arguments)
    except ValueError as error:
        return str(error)
    if isinstance(result, Noted):
        return result.ignored, result.unknown.tolist()
    return result.tolist() if isinstance(result, np.ndarray) else result


@pytest.mark.parametrize("policy", ["GreedyNCIS", "LambdaCrawl"])
def test_it_goes_on_after_every_start(tmp_path, policy):
    rng, plain = np.random.default_rng(3), new_scheduler(policy)
    durable = DurableScheduler(tmp_path, new_scheduler(policy))
    for call, arguments in calls(1, 200):
        assert answer(durable, call, arguments) == answer(plain, call, arguments)
        if rng.random() < 0.1:
            durable.save()
        if rng.random() < 0.1:
            durable.close()
            durable = DurableScheduler(tmp_path)
    assert len(durable) == len(plain) > 100
    assert same(state_of(durable.scheduler), state_of(plain))
    assert {*plain.audits.records()["answer"].tolist()} >= {STALE, MISSED, OPEN}
    for group in (None, "b"):
        assert str(durable.freshness(group=group)) == str(plain.freshness(group=group))
    assert len(list(tmp_path.glob("journal-*"))) == len(list(tmp_path.glob("snapshot-*"))) == 1
    durable.close()


PLAY = """
import os, sys
from tests.policies.live.scheduler.test_durable import answer, calls, new_scheduler
from policies.live.scheduler import DurableScheduler
plain = new_scheduler()
for call, arguments in calls(2, 100):
    answer(plain, call, arguments)
for folder in sys.stdin:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("killed", flush=True)
        continue
    print(os.getpid(), flush=True)
    durable = DurableScheduler(folder.strip(), new_scheduler())
    for number, (call, arguments) in enumerate(calls(2, 10**6)):
        answer(durable, call, arguments)
        os.write(1, b"%d\\n" % number)  # in one piece, also where Python's output has no buffer
        if number % 50 == 49:
            durable.save()
"""
"""A process with all compiled code at hand; for each folder on its input, a fork of it plays."""


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path):
    rng, pipes = np.random.default_rng(0), {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", PLAY], text=True, **pipes) as parent:
        for run in range(4):
            folder = tmp_path / str(run)
            print(folder, file=parent.stdin, flush=True)
            child = int(parent.stdout.readline())
            lines = [parent.stdout.readline() for _ in range(int(rng.integers(1, 300)))]
            time.sleep(rng.random() / 100.0)
            os.kill(child, signal.SIGKILL)
            lines += iter(parent.stdout.readline, "killed\n")
            assert [int(line) for line in lines] == list(range(len(lines)))
            check_what_is_left(folder, acknowledged=len(lines))


def check_what_is_left(folder, acknowledged):
    """Check that a folder holds all acknowledged calls, and perhaps the one under way."""
    with DurableScheduler(folder) as durable:
        plain, script = new_scheduler(), calls(2, acknowledged + 200)
        for _ in range(acknowledged):
            answer(plain, *next(script))
        before = state_of(plain)
        under_way = next(script)
        answer(plain, *under_way)
        held = state_of(durable.scheduler)
        after = state_of(plain)
        assert same(held, before) or same(held, after)
        if not same(held, after):
            answer(durable, *under_way)
        for call, arguments in script:
            assert answer(durable, call, arguments) == answer(plain, call, arguments)


def state_of(scheduler):
    """Return a copy of the state of a scheduler."""
    values, arrays = scheduler.state()
    values = {name: x for name, x in values.items() if name not in ("time", "clamped")}
    return Record(values, {name: array.copy() for name, array in arrays.items()})


def same(one, other):
    """Return whether two states are equal, but for outdated entries of rings."""
    if one.values != other.values:
        return False
    names = (
        "choices.status",
        "choices.due",
        "search.last_crawl",
        "search.counted",
        "ids.keys",
        "columns.recall",
        "audits.numbers",
        "audits.records",
    )
    return all(np.array_equal(one.arrays[name], other.arrays[name]) for name in names)


@pytest.fixture
def kept(tmp_path):
    """Return a closed folder with a snapshot and a journal of some calls."""
    with DurableScheduler(tmp_path, new_scheduler()) as durable:
        for call, arguments in calls(1, 12):
            answer(durable, call, arguments)
    return tmp_path


def file_of(folder, kind):
    return next(folder.glob(f"{kind}-*"))


def test_a_journal_that_is_cut_off_leads_to_its_whole_records(kept):
    journal = file_of(kept, "journal")
    whole, ends = journal.read_bytes(), [end for _, end in records_of(journal)]
    for size in range(len(MAGIC), len(whole), 17):
        journal.write_bytes(whole[:size])
        with DurableScheduler(kept) as durable:
            assert durable.journal.size == max(
                [end for end in ends if end <= size], default=len(MAGIC)
            )
            assert journal.stat().st_size == durable.journal.size


def test_zeros_that_a_power_cut_leaves_at_the_end_are_no_record(kept):
    journal = file_of(kept, "journal")
    whole = journal.read_bytes()
    for zeros in (5, 16, 4096):
        journal.write_bytes(whole + bytes(zeros))
        with DurableScheduler(kept) as durable:
            assert durable.journal.size == journal.stat().st_size == len(whole)
    journal.write_bytes(whole + bytes(4096) + b"x")
    with pytest.raises(ValueError, match="must not be damaged"):
        DurableScheduler(kept)


def test_a_record_that_a_power_cut_left_half_written_is_none(kept):
    journal = file_of(kept, "journal")
    with DurableScheduler(kept) as durable:
        before = journal.stat().st_size
        durable.update([0], change_rate=1.5)
        durable.signal(np.arange(200), np.full(200, 1000.1))
    whole, written = journal.read_bytes(), -(-before // 512) * 512 + 512
    journal.write_bytes(whole[:written] + bytes(len(whole) - written))
    with DurableScheduler(kept) as durable:
        assert before < durable.journal.size == journal.stat().st_size < written
    journal.write_bytes(whole[:written] + bytes(len(whole) - written - 1) + b"x")
    with pytest.raises(ValueError, match="must not be damaged"):
        DurableScheduler(kept)


def test_a_power_cut_after_a_snapshot_is_survived(kept, monkeypatch):
    """What was not synced is lost: a file has the bytes of its last sync, a new one none."""
    synced, real = {}, os.fsync

    def sync(handle):
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if path.is_file():
            synced[path.name] = path.read_bytes()
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    for cut in ("before the snapshot", "after it"):
        with DurableScheduler(kept) as durable:
            durable.next(1000.0)
            if cut.startswith("before"):
                monkeypatch.setattr(durable, "_write", lambda *_: None)
            durable.save()
            durable.next(1001.0)
            total = durable.total - 1
        for path in kept.glob("journal-*"):
            path.write_bytes(synced.get(path.name, b""))
        with DurableScheduler(kept) as durable:
            assert durable.total == total


@pytest.mark.parametrize("kind", ["snapshot", "journal"])
def test_damaged_files_are_refused(kept, kind):
    path = file_of(kept, kind)
    whole = path.read_bytes()
    rng = np.random.default_rng(4)
    for place in rng.integers(len(whole), size=75):  # of bytes of heads and of payloads
        bit = 1 << int(rng.integers(8))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=f"{path.name} must"):
            DurableScheduler(kept)
    path.write_bytes(b"something else\n" * 9)
    with pytest.raises(ValueError, match="must begin with 'crawl_envs scheduler, format 4'"):
        DurableScheduler(kept)
    path.write_bytes(whole)
    DurableScheduler(kept).close()
    if kind == "snapshot":
        path.write_bytes(whole[:-1])
        with pytest.raises(ValueError, match="must be a whole snapshot, it is cut off"):
            DurableScheduler(kept)


def test_a_full_disk_leaves_what_was_acknowledged(kept, monkeypatch):
    real, journal = os.pwrite, file_of(kept, "journal")

    def full(handle, data, place):
        if len(data) > 5:
            return real(handle, data[:5], place)
        raise OSError(errno.ENOSPC, "No space left on device")

    with DurableScheduler(kept) as durable:
        size, held = journal.stat().st_size, state_of(durable.scheduler)
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match=r"journal-.* could not be written"):
            durable.add([10_000], change_rate=1.0, recall=0.5, false_signal_rate=0.1)
        monkeypatch.undo()
        assert journal.stat().st_size == size
        assert same(state_of(durable.scheduler), held)
        durable.next(1000.0)
    DurableScheduler(kept).close()


def test_a_snapshot_that_failed_is_an_error_once(kept, monkeypatch):
    with DurableScheduler(kept, save_every=3) as durable:
        monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
        failed, before = 0, durable.total
        for turn in range(20):
            try:
                durable.signal([0], 0.1 * turn)
            except OSError:
                failed += 1
        assert 0 < failed < 10
        assert durable.total == before + 20 - failed
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            durable.save()  # the error of the last attempt before there was room again
        durable.save()
        held = state_of(durable.scheduler)
    [snapshot] = kept.glob("snapshot-*")
    assert snapshot.name == f"snapshot-{durable.number:012d}"
    with DurableScheduler(kept) as durable:
        assert same(state_of(durable.scheduler), held)


def test_a_fork_does_not_write_to_the_journal(kept, monkeypatch):
    with DurableScheduler(kept) as durable:
        size = durable.journal.size
        monkeypatch.setattr(os, "getpid", lambda: 1)
        for call in (lambda: durable.next(1000.0), lambda: durable.signal([0], 1.0), durable.save):
            with pytest.raises(ValueError, match="by the process that opened it, not forks"):
                call()
        assert durable.journal.size == size


def test_one_process_at_a_time(kept):
    with DurableScheduler(kept), pytest.raises(ValueError, match="in use by another process"):
        DurableScheduler(kept)
    with pytest.raises(ValueError, match="has a scheduler already"):
        DurableScheduler(kept, new_scheduler())
    with pytest.raises(ValueError, match="has no scheduler yet"):
        DurableScheduler(kept / "other")


@pytest.mark.parametrize(
    "texts", [["a", "", "long one"], ["grün", "日本", "plain", ""], ['"\n', "\\", "\0"]]
)
def test_strings_are_kept_in_utf8(texts, tmp_path):
    write_records(tmp_path / "file", [plain({"texts": texts, "numbers": np.arange(3)})])
    back = read_snapshot(tmp_path / "file").named
    assert back["texts"] == texts
    assert back["numbers"].tolist() == [0, 1, 2]
    size = sum(len(text.encode()) for text in texts)
    assert (tmp_path / "file").stat().st_size < 150 + size + 4 * len(texts)


def test_a_closed_scheduler_writes_nothing(tmp_path):
    """Files that are opened afterwards may have the number of the journal's descriptor."""
    loop = begun(tmp_path / "folder")
    loop.close()
    loop.close()
    others = [(tmp_path / str(k)).open("wb+", buffering=0) for k in range(20)]
    for call in (lambda: loop.next(2.0), loop.save, lambda: loop.report(["a"], 2.0)):
        with pytest.raises(ValueError, match=r"folder must be open, the scheduler of .* is closed"):
            call()
    for file in others:
        with file:
            file.seek(0)
            assert file.read() == b""


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda d: d.report(["a"], None), "times must be given, got None"),
        (lambda d: d.signal(["a"], 1.0, None), "source must be given, got None"),
        (
            lambda d: d.signal(["a"], 1.0, [0, 0]),
            r"source must be a whole .* 1 of them, got array",
        ),
        (lambda d: d.add(["n"], **KNOWN, least_interval=None), "least_interval must be given"),
        (lambda d: d.add(["n"], **KNOWN, host={}), "host must be all strings, or all numbers"),
        (lambda d: d.hold(math.nan, 5.0), "host must be strings or whole numbers, got nan"),
        (lambda d: d.report(["a"], np.ma.masked_array([1.0], [True])), "times must not be masked"),
        (lambda d: d.signal(["a"], 10**400), "times must be finite, got 1000"),
        (lambda d: d.remove(["a"], 5), "too many positional arguments"),
        (lambda d: d.limit_hosts("h", 5.0), "too many positional arguments"),
        (lambda d: d.describe([]), r"page_id must be the id of a page, got \[\]"),
        (lambda d: d.remove([object()]), "ids must be all strings, or all num"),
        (lambda d: d.add(np.array([b"x"]), **KNOWN), "ids must be all strings, or all num.*b'x'"),
        (lambda d: d.add(["n"], **KNOWN, age=1.0), "argument of add 'age' is unknown"),
    ],
)
def test_a_refused_call_changes_nothing_and_the_folder_opens_again(tmp_path, call, error):
    loop = begun(tmp_path)
    before = loop.scheduler.state()
    with pytest.raises((ValueError, TypeError), match=error):
        call(loop)
    after = loop.scheduler.state()
    for name, array in before.arrays.items():
        np.testing.assert_array_equal(array, after.arrays[name])
    assert "n" not in loop
    loop.add(["n"], **KNOWN)
    loop.hold([], 5.0)
    loop.close()
    with DurableScheduler(tmp_path) as again:
        assert "n" in again


@pytest.mark.parametrize("left", [None, 0, 5])
def test_a_journal_that_is_not_there_is_an_error(tmp_path, left):
    loop = begun(tmp_path)
    loop.save()
    loop.report(["a"], 2.0)
    loop.close()
    [journal] = tmp_path.glob("journal-*")
    journal.write_bytes(journal.read_bytes()[:left]) if left is not None else journal.unlink()
    with pytest.raises(ValueError, match="must be there and whole, calls would be lost"):
        DurableScheduler(tmp_path)


def test_what_a_killed_process_left_is_removed(tmp_path):
    begun(tmp_path).close()
    (tmp_path / ".snapshot-000000000001.123.part").write_bytes(b"half")
    DurableScheduler(tmp_path).close()
    assert not list(tmp_path.glob(".*.part"))
