"""Ids of pages against a dictionary."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.live.scheduler import CrawlScheduler, DurableScheduler, ShardedScheduler
from policies.live.scheduler import ids as module
from policies.live.scheduler.ids import PageIds

IDS = st.one_of(st.integers(-3, 60), st.sampled_from([-(2**63), 2**63 - 1, 2**40]))
URLS = st.one_of(
    st.text(min_size=1, max_size=3).filter(lambda t: "\x00" not in t), st.just("x" * 70)
)


@settings(deadline=None)
@given(data=st.data(), of=st.sampled_from([IDS, URLS]))
def test_rows_are_those_of_a_dictionary(data, of):
    table, rows_of = PageIds(), {}
    for _ in range(12):
        batch = data.draw(st.lists(of, max_size=30, unique=True))
        new = [each for each in batch if each not in rows_of]
        if batch and data.draw(st.booleans()):
            known = [each for each in batch if each in rows_of]
            for each, row in zip(known, table.remove(known), strict=True):
                assert rows_of.pop(each) == row
        elif new:
            rows = table.add(new).tolist()
            assert not set(rows) & set(rows_of.values())
            assert len(set(rows)) == len(rows)
            assert max(rows) < table.capacity
            rows_of |= dict(zip(new, rows, strict=True))
        if batch and len(table):
            found = table.rows(batch, missing="skip").tolist()
            assert found == [rows_of.get(each, -1) for each in batch]
        if data.draw(st.booleans()):
            table = PageIds.from_arrays({k: v.copy() for k, v in table.arrays().items()})
        assert len(table) == len(rows_of)
        rows = np.array(list(rows_of.values()), np.int64)
        assert table.ids(rows).tolist() == list(rows_of)


def test_strings_of_the_same_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(module, "hashes_of", lambda text, ends: np.zeros(ends.size - 1, np.int64))
    table = PageIds()
    assert table.add(["a", "b", "ab"]).tolist() == [0, 1, 2]
    assert table.rows(["ab", "c", "b"], missing="skip").tolist() == [2, -1, 1]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 2, 1], "ids must differ, got 1 twice"),
        ([7, 8], "ids must be new, got 7 again"),
        (["a"], "ids must be an array of integers, got 'a'"),
        ([1.5], "ids must be an array of integers, got 1.5"),
        ([True], "ids must be an array of integers, got True"),
        ([2**63], "ids must be below 2"),
        ([[1, 2]], "ids must be an array of integers"),
        ([{}], "ids must be all strings, or all numbers"),
    ],
)
def test_ids_that_are_refused(ids, said):
    table = PageIds()
    table.add([7])
    with pytest.raises(ValueError, match=said.replace("*", r"\*")):
        table.add(np.array(ids, np.uint64) if ids == [2**63] else ids)
    assert len(table) == 1


def test_unknown_and_empty_ids_are_refused():
    table = PageIds()
    table.add(["https://a.example/"])
    for call in (table.rows, table.remove):
        with pytest.raises(ValueError, match=r"ids must be known, got .*b.*and 1 others"):
            call(["b", "c"])
    with pytest.raises(ValueError, match="must not be empty"):
        table.add([""])
    with pytest.raises(ValueError, match="one of them twice"):
        table.remove(["https://a.example/"] * 2)
    assert table.rows(["https://a.example/", "b"], missing="skip").tolist() == [0, -1]


def test_removed_letters_are_left_out():
    table = PageIds()
    for turn in range(60):
        table.add([f"https://example.org/{turn}/{k}" for k in range(50)])
        table.remove([f"https://example.org/{turn}/{k}" for k in range(50)])
    assert table.capacity == 64
    assert table.arrays()["text"].size < 5_000


def peak_of(call):
    """Return the largest number of bytes that a call holds at a time, over those before."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LONG = "https://a.example/" + "x" * 60_000
URLS_WITH_LONG = [f"https://a.example/{k}" for k in range(800)] + [LONG]
KINDS = ["one", "durable", "shards"]


def scheduler_of(kind, folder):
    if kind == "shards":
        return ShardedScheduler("Greedy", 1e6, shards=2, burst=1.0, folder=folder)
    one = CrawlScheduler("Greedy", 1e6, burst=1.0)
    return one if kind == "one" else DurableScheduler(folder, one)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_id_costs_its_own_length(kind, tmp_path):
    """With the length of the longest for each, 800 ids would cost 190 MB."""
    scheduler, urls = scheduler_of(kind, tmp_path), URLS_WITH_LONG
    hosts = [f"h{k % 9}" for k in range(800)] + ["h" * 60_000]
    scheduler.add(["first"], change_rate=1.0, host="h", last_crawl=0.0)
    calls = {
        "add": lambda: scheduler.add(urls, change_rate=1.0, host=hosts, last_crawl=0.0),
        "skip": lambda: scheduler.add(urls, change_rate=1.0, known="skip"),
        "update": lambda: scheduler.update(urls, change_rate=2.0),
        "signal": lambda: scheduler.signal([*urls, LONG + "y"], 0.5),
        "next_batch": lambda: scheduler.next_batch(1.0, 802),
        "report": lambda: scheduler.report([*urls, LONG + "y"], 1.0),
        "limit": lambda: scheduler.limit_hosts(hosts, gap=0.0, most=9),
        "move": lambda: scheduler.move(urls, [url + "z" for url in urls]),
    }
    for name, call in calls.items():
        assert peak_of(call) < 8e6, name
    assert len(scheduler) == 802
    if kind == "durable":
        assert scheduler.journal.size < 1.5e6
        scheduler.close()
        assert peak_of(DurableScheduler(tmp_path).close) < 8e6
    elif kind == "shards":
        scheduler.close()
        ShardedScheduler("Greedy", 1e6, shards=2, folder=tmp_path).close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["x" * 2**16, "\u00e9" * 2**15])
def test_ids_and_hosts_beyond_the_limit_are_refused(kind, text, tmp_path):
    scheduler = scheduler_of(kind, tmp_path)
    scheduler.add(["a", text], change_rate=1.0, host=[text, "h"], last_crawl=0.0)
    assert len(scheduler) == 2
    for name, call in {
        "ids": lambda ids: scheduler.add(ids, change_rate=1.0),
        "host": lambda ids: scheduler.add(["b", "c"], change_rate=1.0, host=ids),
    }.items():
        said = f"{name} must have at most 65536 bytes each, got 65537 at position 1: '{text[:30]}"
        with pytest.raises(ValueError, match=said):
            call(["z", text + "y"])
    for call in (
        lambda url: scheduler.report([url], 1.0),
        lambda url: scheduler.signal([url], 1.0),
        lambda url: scheduler.remove(url),
        lambda url: scheduler.describe(url),
        lambda url: scheduler.move(["a"], [url]),
        lambda url: scheduler.hold(url, 2.0),
        lambda url: scheduler.limit_hosts([url], gap=1.0),
    ):
        with pytest.raises(ValueError, match="at most 65536 bytes each, got 65537 at position 0"):
            call(text + "y")
    assert len(scheduler) == 2


@pytest.mark.parametrize("ids", [["a\0", "b\n"], ["\0"], ['"', "\\"], ["\u65e5", "\U0001f600"]])
def test_ids_of_any_characters_come_back(ids, tmp_path):
    with DurableScheduler(tmp_path, CrawlScheduler("Greedy", 1e3, burst=1.0)) as durable:
        durable.add(ids, change_rate=1.0)
    with DurableScheduler(tmp_path) as durable:
        assert sorted(durable.next_batch(1.0, 9)) == sorted(ids)
        durable.save()
    with DurableScheduler(tmp_path) as durable:
        assert sorted(durable.under_way) == sorted(ids)
