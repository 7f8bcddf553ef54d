"""Shards of a scheduler: the same answers wherever they run, and nearly those of one scheduler."""

from __future__ import annotations

import importlib
import shutil
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policies
from policies.live.scheduler import CrawlScheduler, DurableScheduler, ShardedScheduler
from policies.live.scheduler.balance import Balance
from policies.live.scheduler.ids import shards_of
from policies.live.scheduler.workers import BACKENDS, Shard
from tests.policies.live.scheduler.test_durable import answer, calls

RATES = {"change_rate": 1.0, "recall": 0.5, "false_signal_rate": 0.2}


@pytest.fixture(scope="module")
def cluster():
    """Run Ray with two processors, for all tests of this module."""
    ray = importlib.import_module("ray")  # takes a second
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    for attempt in range(3):
        try:
            ray.init(num_cpus=2, **quiet)
            break
        except Exception:  # a busy machine does not start it within Ray's 30 seconds
            ray.shutdown()
            if attempt == 2:
                raise
    yield
    ray.shutdown()


def new(policy="GreedyNCIS", **more):
    return ShardedScheduler(policy, 20.0, timeout=0.8, **more)


def filled(scheduler, count=60):
    """Add pages with copies of time 0, and return the scheduler."""
    rng = np.random.default_rng(2)
    rates = {"importance": rng.random(count), "change_rate": rng.random(count)}
    scheduler.add(np.arange(count), last_crawl=0.0, recall=0.5, false_signal_rate=0.2, **rates)
    return scheduler


def batches(scheduler, first, last, count=10):
    """Return the batches of some turns, after signals; all pages are reported."""
    chosen = []
    for turn in range(first, last):
        now = 0.5 * turn
        rng = np.random.default_rng(turn)
        scheduler.signal(rng.integers(60, size=5), now - 0.25 * rng.random(5))
        batch = scheduler.next_batch(now, count)
        scheduler.report(batch, now)
        chosen.append(batch.tolist())
    return chosen


@pytest.mark.parametrize("policy", ["GreedyNCIS", "LambdaCrawl"])
def test_one_shard_answers_as_one_scheduler(policy):
    whole, shard = CrawlScheduler(policy, 20.0, timeout=0.8), new(policy, shards=1)
    for call, arguments in calls(1, 300):
        assert answer(shard, call, arguments) == answer(whole, call, arguments)
    for turn in range(1, 60):
        now = whole.time + 0.01 * turn
        assert shard.next(now) == whole.next(now)
    assert len(shard) == len(whole)


@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_answers_of_one_process(cluster):
    with new(shards=2) as local, new(shards=2, backend="ray") as other:
        for call, arguments in calls(4, 120):
            assert answer(other, call, arguments) == answer(local, call, arguments)
        assert np.array_equal(other.shares, local.shares)
        assert other.next(local.time + 9.0) == local.next(local.time + 9.0)
        kill(other._workers.workers[1])
        with pytest.raises(RuntimeError, match=r"shard 1 has died, .* its pages are lost"):
            other.next_batch(local.time + 10.0, 10)


def accuracy(scheduler, hosts, importance, change_rate, horizon=120.0, batch=20):
    """Return the expected freshness of the second half, of pages without signals."""
    pages = importance.size
    scheduler.add(
        np.arange(pages),
        host=hosts,
        importance=importance,
        change_rate=change_rate,
        last_crawl=0.0,
    )
    last, fresh = np.zeros(pages), 0.0
    for turn in range(1, int(horizon * scheduler.bandwidth / batch) + 1):
        now = turn * batch / scheduler.bandwidth
        chosen = scheduler.next_batch(now, batch)
        scheduler.report(chosen, now)
        rate = change_rate[chosen]
        if now > 0.5 * horizon:
            fresh -= (importance[chosen] * np.expm1(-rate * (now - last[chosen])) / rate).sum()
        last[chosen] = now
    return fresh / (0.5 * horizon * importance.sum())


def test_unequal_shards_reach_what_one_scheduler_does():
    rng, names = np.random.default_rng(0), np.array([f"host{k}" for k in range(50)])
    hosts = np.array([names[shards_of(names, 4) == k][0] for k in range(4)])[np.arange(400) % 4]
    importance = rng.random(400) * np.where(np.arange(400) % 4 == 1, 10.0, 1.0)
    pages = hosts, importance, rng.uniform(0.05, 1.0, 400)
    whole = accuracy(CrawlScheduler("Greedy", 40.0, burst=20), *pages)
    settings = {"shards": 4, "burst": 20}
    equal = accuracy(ShardedScheduler("Greedy", 40.0, balance=np.inf, **settings), *pages)
    scheduler = ShardedScheduler("Greedy", 40.0, **settings)
    balanced = accuracy(scheduler, *pages)
    assert equal < 0.8 * whole
    assert balanced == pytest.approx(whole, rel=5e-3)
    assert scheduler.shares.sum() == pytest.approx(1.0)
    assert scheduler.shares.argmax() == 1


def test_exchanges_end_where_values_are_equal():
    scale, power = np.array([1.0, 8.0, 0.3, 2.0]), np.array([0.5, 1.0, 2.0, 1.5])
    balance = Balance(np.ones(4))
    for _ in range(40):
        for shard, value in enumerate(scale * balance.shares**-power):
            balance.note(shard, value, 3)
        balance.exchange(np.zeros(0, np.int64))
    values = scale * balance.shares**-power
    assert balance.shares.sum() == pytest.approx(1.0)
    assert values == pytest.approx(values.mean(), rel=1e-2)


def test_shards_without_pages_leave_their_share_to_others():
    balance = Balance(np.ones(4))
    for _ in range(30):
        for shard in (0, 1):
            balance.note(shard, 1.0, 1)
        balance.exchange(np.array([2, 3]))
    assert balance.shares[:2] == pytest.approx(0.5, abs=1e-3)
    assert 0.0 < balance.shares[2:].max() < 1e-3


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_batches_are_split_by_shares(seed):
    rng = np.random.default_rng(seed)
    balance, totals, total = Balance(rng.random(5) + 1e-3), np.zeros(5), 0
    for _ in range(50):
        count = int(rng.integers(1, 12))
        counts = balance.split(count, np.arange(5))
        assert counts.sum() == count
        assert counts.min() >= 0
        totals, total = totals + counts, total + count
    assert np.abs(totals - total * balance.shares).max() < 3.0


def test_the_total_stays_within_the_bandwidth():
    scheduler, fetched = filled(new(shards=3)), 0
    for turn in range(1, 200):
        now = turn * 0.037
        chosen = scheduler.next_batch(now, 7)
        scheduler.report(chosen, now)
        fetched += chosen.size
        assert fetched <= 20.0 * now + 1e-6
    assert fetched >= 20.0 * now - 1.0


def test_hosts_are_in_one_shard_and_their_limits_hold():
    hosts = np.array([f"host{k % 5}" for k in range(50)])
    with ShardedScheduler("RoundRobin", 100.0, shards=3, burst=100, timeout=99.0) as scheduler:
        scheduler.limit_hosts(most=2)
        scheduler.limit_hosts(["host1"], most=1)
        scheduler.add(np.arange(50), host=hosts, last_crawl=0.0)
        chosen = scheduler.next_batch(1.0, 50)
        assert sorted(hosts[chosen]) == sorted(2 * [f"host{k}" for k in (0, 2, 3, 4)] + ["host1"])


def test_the_shard_of_a_label_never_changes():
    labels = np.array(["a", "b.example", "c.example", "\u00e9"])
    assert shards_of(labels, 1000).tolist() == SHARDS_OF_TEXTS
    assert shards_of(np.array([0, 1, 2, -5]), 1000).tolist() == SHARDS_OF_NUMBERS
    counts = np.bincount(shards_of(np.arange(10_000), 7))
    assert counts.min() > 1200


def splitmix(word):
    """Return the hash of a 64-bit word, in whole numbers of Python."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def of_text(text):
    """Return the hash of a text, in whole numbers of Python."""
    word = 0xCBF29CE484222325
    for letter in text.encode():
        word = (word ^ letter) * 0x100000001B3 % 2**64
    return splitmix(splitmix(word))


SHARDS_OF_TEXTS = [of_text(text) % 1000 for text in ("a", "b.example", "c.example", "\u00e9")]
SHARDS_OF_NUMBERS = [splitmix(number % 2**64) % 1000 for number in (0, 1, 2, -5)]


def kill(worker):
    """End a worker at once, and wait until it has ended."""
    if isinstance(worker, Mortal):
        worker.kill()
        return
    ray = importlib.import_module("ray")
    ray.kill(worker.actor)
    while True:
        try:
            ray.get(worker.actor.close.remote())
        except worker.died:
            return
        time.sleep(0.01)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("backend", "killed"), [("mortal", (3, 8)), ("ray", (3,))])
def test_a_killed_shard_and_a_folder_go_on(tmp_path, monkeypatch, request, backend, killed):
    if backend == "ray":
        request.getfixturevalue("cluster")
    monkeypatch.setitem(BACKENDS, "mortal", Mortal)
    plain = filled(new(shards=2, balance=np.inf))
    for first in (1, 9):
        with new(shards=2, backend=backend, folder=tmp_path, balance=np.inf) as kept:
            if first == 1:
                filled(kept)
            assert len(kept) == 60
            assert kept.bandwidth == pytest.approx(20.0)
            with pytest.raises(ValueError, match="columns must be importance"):
                kept.add([99], change_rate=1.0, recall=0.5, false_signal_rate=0.1, complete=1.0)
            for turn in range(first, first + 8):
                if turn in killed:
                    kill(kept._workers.workers[turn % 2])
                assert batches(kept, turn, turn + 1) == batches(plain, turn, turn + 1)
            with pytest.raises(ValueError, match="in use by another process"):
                new(folder=tmp_path)


class Died(Exception):
    """A worker has died."""


class Mortal(Shard):
    """A shard in this process that dies as an actor does; its folder is then free."""

    died, dead = Died, False

    def kill(self):
        self.dead = True
        self.close()

    def begin(self, call, arguments):
        """Make a call if this worker lives; return its answer."""
        return self.die if self.dead else super().begin(call, arguments)

    def die(self):
        raise Died


def test_a_call_whose_answer_was_lost_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setitem(BACKENDS, "mortal", Mortal)
    plain, lost = filled(new(shards=2)), ("signal", "next_batch", "report", "remove")
    with new(shards=2, backend="mortal", folder=tmp_path) as kept:
        filled(kept)
        for turn, call in enumerate(lost):
            first, now = 8 * turn + 1, 4.0 * turn + 2.0
            assert batches(kept, first, first + 3) == batches(plain, first, first + 3)
            refused = [answer(each, "limit_hosts", {"gap": -1.0}) for each in (kept, plain)]
            assert refused == ["gap must be finite and >= 0, got -1.0"] * 2
            worker = kept._workers.workers[0]
            lose_the_answer(worker)
            arguments = {
                "signal": {"ids": np.arange(60), "times": now},
                "next_batch": {"time": now, "count": 10},
                "report": {"ids": np.arange(60), "times": now},
                "remove": {"ids": np.arange(20)},
            }[call]
            assert answer(kept, call, arguments) == answer(plain, call, arguments)
            assert kept._workers.workers[0] is not worker
            assert answer(kept, call, arguments) == answer(plain, call, arguments)
            known = np.arange(20 if call == "remove" else 0, 60)
            kept.report(known, now + 0.5)
            plain.report(known, now + 0.5)
            assert batches(kept, first + 5, first + 8) == batches(plain, first + 5, first + 8)


def lose_the_answer(worker):
    """Let a worker make the next call and die, and die again before it can make it once more."""
    begin = worker.begin

    def lose(call, arguments):
        begin(call, arguments)()
        kill(worker)
        return begin(call, arguments)

    worker.begin = lose


def of_two_sources(cls=ShardedScheduler, **more):
    """Return a scheduler of 60 pages in three shards, or in none, with two sources."""
    more |= {"shards": 3} if cls is ShardedScheduler else {}
    scheduler = cls("GreedyNCIS", 20.0, num_sources=2, **more)
    scheduler.add(np.arange(60), **RATES | {"recall": np.full((2, 60), 0.3)}, last_crawl=0.0)
    return scheduler


def recalls(count):
    """Return recalls of two sources, whose sum is too large for the last page, (2, n)."""
    return np.array([[0.5] * count, [0.4] * (count - 1) + [0.6]])


def test_recalls_are_checked_before_a_shard_changes():
    scheduler = of_two_sources()
    with pytest.raises(ValueError, match=r"recall must sum to at most 1 over sources, got \["):
        scheduler.update(np.arange(60), recall=recalls(60))
    with pytest.raises(ValueError, match=r"recall must sum to at most 1 over sources, got \["):
        scheduler.add(np.arange(60, 70), **RATES | {"recall": recalls(10)})
    assert len(scheduler) == 60
    assert all(scheduler.describe(page)["recall"] == [0.3, 0.3] for page in range(60))
    scheduler.update(np.arange(59), recall=recalls(60)[:, :59])
    assert scheduler.describe(58)["recall"] == [0.5, 0.4]


def test_pages_that_a_shard_refuses_are_in_none(monkeypatch):
    scheduler, (whole, other) = new(shards=2), (CrawlScheduler.add, shards_of(np.arange(9), 2))

    def refuse(self, ids, **columns):
        if 0 in ids:
            raise ValueError("refused")
        return whole(self, ids, **columns)

    assert set(other) == {0, 1}
    monkeypatch.setattr(CrawlScheduler, "add", refuse)
    with pytest.raises(ValueError, match="refused"):
        scheduler.add(np.arange(9), last_crawl=0.0, **RATES)
    assert len(scheduler) == 0
    assert scheduler.add(np.arange(1, 9), last_crawl=0.0, **RATES) == 8


def test_pages_are_described_as_by_one_scheduler():
    whole, scheduler = of_two_sources(CrawlScheduler), of_two_sources()
    for page in range(60):
        assert scheduler.describe(page) == whole.describe(page)
    for each in (whole, scheduler):
        each.signal([1, 1, 2], 50.0, [0, 1, 1])
        each.report([3, 4], 50.0)
        each.next_batch(1.0, 20)
    assert scheduler.ahead == whole.ahead > 2
    with pytest.raises(ValueError, match="page_id must be the id of a page"):
        scheduler.describe([0, 1])


@pytest.mark.parametrize(
    ("call", "arguments", "accepted"),
    [
        ("report", {"ids": [99], "times": 8.0}, True),
        ("report", {"ids": [99], "times": 8.0, "status": "okay"}, False),
        ("report", {"ids": [99], "times": 8.0, "changed": [3]}, False),
        ("report", {"ids": [1, 99], "times": 8.0, "changed": [True]}, False),
        ("report", {"ids": [99], "times": 8.0, "found": 1}, False),
        ("report", {"ids": [], "times": 8.0, "status": "okay"}, False),
        ("report", {"ids": ["zz"], "times": 8.0}, False),
        ("signal", {"ids": [99], "times": 8.0, "source": 2}, False),
        ("signal", {"ids": [99, 98], "times": 8.0}, True),
        ("update", {"ids": [], "importance": 1.0}, True),
        ("update", {"ids": [], "complete": 1.0}, False),
        ("update", {"ids": [], "found": 1.0}, False),
        ("remove", {"ids": []}, True),
        ("move", {"ids": [], "new_ids": []}, True),
        ("hold", {"host": [], "until": np.nan}, False),
        ("hold", {"host": [], "until": 3.0}, True),
        ("limit_hosts", {"hosts": [], "most": 2}, True),
        ("limit_hosts", {"hosts": [], "gap": -1.0}, False),
        ("configure", {"time": 7.0, "timeout": None}, True),
    ],
)
def test_calls_of_no_known_page_are_checked_as_by_one_scheduler(call, arguments, accepted):
    outcomes = []
    for each in (of_two_sources(CrawlScheduler), of_two_sources()):
        try:
            outcomes.append((answer(each, call, arguments), len(each), each.time))
        except TypeError as error:
            said = str(error).partition("got an ")[2]  # without the name of the method
            outcomes.append((said, len(each), each.time))
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0][0], str) == (not accepted)


def test_a_refused_setting_leaves_the_clock():
    scheduler = filled(new(shards=2))
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        scheduler.configure(7.0, bandwidth=50.0, foo=1)
    assert (scheduler.time, scheduler.bandwidth) == (0.0, 20.0)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("next", {"time": 1.0}),
        ("next_batch", {"time": 1.0, "count": 3}),
        ("configure", {"time": 1.0}),
        ("report", {"ids": [1], "times": 1.0}),
        ("add", {"ids": [70], **RATES}),
        ("remove", {"ids": [1]}),
        ("hold", {"host": "a", "until": 3.0}),
        ("describe", {"page_id": 1}),
    ],
)
def test_calls_of_a_closed_scheduler_are_refused(call, arguments):
    scheduler = filled(new(shards=2))
    scheduler.close()
    scheduler.close()
    with pytest.raises(ValueError, match="the scheduler is closed"):
        getattr(scheduler, call)(**arguments)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"shards": 3}, "shards must be 2 as in .*, got 3"),
        ({"policy": "Greedy"}, "policy must be GreedyNCIS as in .*, got Greedy"),
        ({"num_sources": 3}, "num_sources must be 1 as in .*, got 3"),
        ({"new_share": 0.9}, "new_share must be 0.5 as in .*, got 0.9"),
        ({"skew": 0.5}, "skew must be 0.0 as in .*, got 0.5"),
        ({"resolution": 0.5}, r"resolution must be \[0.0\] as in .*, got \[0.5\]"),
    ],
)
def test_a_folder_of_other_settings_is_refused(tmp_path, other, said):
    with new(folder=tmp_path) as kept:
        filled(kept)
    with pytest.raises(ValueError, match=said):
        new(folder=tmp_path, **other)
    with new(policies.GreedyNCIS, folder=tmp_path) as kept:
        assert len(kept) == 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"2\n", "it is of another version"),
        (b"{}", "it is of another version"),
        (b"", "it cannot be read"),
        (b"\xff{", "it cannot be read"),
    ],
)
def test_a_folder_whose_settings_are_not_known_is_refused(tmp_path, text, said):
    (tmp_path / "shards").write_bytes(text)
    with pytest.raises(ValueError, match=said):
        new(folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


@pytest.mark.parametrize("name", ["shard-000", "shard-001", "shards"])
@pytest.mark.parametrize("emptied", [False, True])
def test_a_folder_without_one_of_its_parts_is_refused(tmp_path, name, emptied):
    with new(shards=2, folder=tmp_path) as kept:
        filled(kept)
    lost = tmp_path / name
    shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    if emptied and name != "shards":
        lost.mkdir()
    with pytest.raises(ValueError, match=f"{name} must .* restore it from a backup, or begin"):
        new(shards=2, folder=tmp_path)


def test_a_folder_of_shards_that_never_began_is_used(tmp_path):
    new(shards=2, folder=tmp_path).close()
    for part in tmp_path.glob("shard-*"):
        shutil.rmtree(part)
        part.mkdir()
    with new(shards=2, folder=tmp_path) as kept:
        assert len(filled(kept)) == 60
    shutil.rmtree(tmp_path / "shard-000")
    shutil.rmtree(tmp_path / "shard-001")
    with pytest.raises(ValueError, match="shard-000 must hold a shard, its pages are missing"):
        new(shards=2, folder=tmp_path)


def test_folders_of_shards_and_of_one_scheduler_are_told_apart(tmp_path):
    one, several = tmp_path / "one", tmp_path / "several"
    DurableScheduler(one, CrawlScheduler("GreedyNCIS", 20.0)).close()
    new(shards=2, folder=several).close()
    with pytest.raises(ValueError, match=f"{one} is of a DurableScheduler: open it with that"):
        new(shards=2, folder=one)
    for scheduler in (None, CrawlScheduler("GreedyNCIS", 20.0)):
        with pytest.raises(ValueError, match=f"{several} is of a ShardedScheduler: open it with"):
            DurableScheduler(several, scheduler)
