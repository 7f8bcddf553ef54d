"""Reports that come twice or too late, which change nothing, and those of newer copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policies.live.scheduler import CrawlScheduler, ShardedScheduler

RATES = {"change_rate": 1.0, "recall": 0.5, "false_signal_rate": 0.2}
STATES = ("new", "ready", "sent", "waiting", "resting", "parked", "gone")


def scheduler_in(state: str, policy: str = "GreedyNCIS", **settings: Any) -> CrawlScheduler:
    """Return a scheduler with page a in a state, after a copy at 1.0, or a failure if it is new.

    It shares a host, which may have one fetch, with the more important page b.
    """
    settings |= {"burst": 1.0, "start": 2.0, "timeout": 50.0, "keep_gone": 99.0}
    scheduler = CrawlScheduler(policy, 10.0, **settings)
    rates = RATES if policy == "GreedyNCIS" else {"change_rate": 1.0}
    copies = [np.nan if state == "new" else 0.0, 0.0]
    scheduler.add(["a", "b"], importance=[1.0, 9.0], host="h", last_crawl=copies, **rates)
    scheduler.limit_hosts(most=1)
    scheduler.report(["a", "b"], 1.0, "interrupted" if state == "new" else "ok", ended=1.1)
    scheduler.signal(["a"], 1.5)
    if state == "sent":
        scheduler.hold("h", 2.0)
        scheduler.update(["b"], least_interval=99.0)
        assert scheduler.next(3.0).id == "a"
    elif state == "waiting":
        scheduler.report(["a"], 3.0, "failed", retry_at=90.0)
    elif state == "resting":
        scheduler.update(["a"], least_interval=30.0)
    elif state == "parked":
        scheduler.report(["b"], 1.2, "interrupted")
        assert scheduler.next_batch(3.0, 2).tolist() == ["b"]
    elif state == "gone":
        scheduler.report(["a"], 3.0, "gone")
    assert scheduler.describe("a")["state"] == {"resting": "waiting"}.get(state, state)
    return scheduler


def contents(scheduler: CrawlScheduler) -> dict[str, Any]:
    """Return all that a scheduler would save."""
    values, arrays = scheduler.state()
    return {**values, **{name: array.tolist() for name, array in arrays.items()}}


OLD: list[dict[str, Any]] = [
    {"status": "ok", "changed": [False]},
    {"status": "failed", "retry_at": 200.0},
    {"status": "interrupted", "ended": 4.0},
    {"status": "gone"},
]
CELLS = [(state, old) for state in STATES for old in (OLD[1:3] if state == "new" else OLD)]
"""A copy of a page without one, or that it is gone, is news at any time."""


@pytest.mark.parametrize(("state", "old"), CELLS)
def test_an_old_report_changes_nothing(state: str, old: dict[str, Any]) -> None:
    for settings in ({"learn": True}, {"policy": "LambdaCrawl"}):
        scheduler = scheduler_in(state, **settings)
        before = contents(scheduler)
        for time in (1.0, 0.4, -3.0):
            assert scheduler.report(["a"], time, **old) == 1
            assert contents(scheduler) == before


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_failure_that_is_reported_twice_is_one(status: str) -> None:
    """Once while the page waits, and once when it is fetched again."""
    scheduler = CrawlScheduler("Greedy", 10.0, burst=1.0, timeout=5.0, retry=2.0)
    scheduler.add(["a", "b"], importance=[9.0, 1.0], change_rate=1.0, host="h", last_crawl=0.0)
    scheduler.limit_hosts(most=1)
    assert scheduler.next(1.0).id == "a"
    assert scheduler.report(["a", "a"], 1.0, status, ended=1.5) == 1
    before = contents(scheduler)
    assert scheduler.report(["a"], 1.0, status, ended=1.5, retry_at=70.0) == 1
    assert contents(scheduler) == before
    assert scheduler.describe("a")["failures"] == (status == "failed")
    assert scheduler.next(4.0).id == "a"
    assert scheduler.report(["a"], 1.0, status, ended=1.5) == 1
    assert scheduler.under_way.tolist() == ["a"]
    assert scheduler.next(4.5).id is None  # the host is busy
    assert scheduler.report(["a"], 4.0, status, ended=4.6) == 0
    assert scheduler.describe("a")["failures"] == 1 + (status == "failed")


def test_a_page_in_the_row_of_a_removed_one_has_no_failures() -> None:
    scheduler = CrawlScheduler("Greedy", 10.0)
    scheduler.add(["a"], change_rate=1.0, last_crawl=0.0)
    scheduler.report(["a"], 0.5, "failed")
    scheduler.remove(["a"])
    scheduler.add(["b"], change_rate=1.0, last_crawl=0.0)
    assert scheduler.report(["b"], 0.4, "failed") == 0


def test_a_failure_of_the_future_does_not_last() -> None:
    scheduler = CrawlScheduler("Greedy", 10.0, burst=1.0, timeout=1.0)
    scheduler.add(["a"], change_rate=1.0, last_crawl=0.0)
    scheduler.report(["a"], 1e18, "failed")
    assert scheduler.next(9.0).id == "a"
    assert scheduler.report(["a"], 9.0, "failed") == 0
    assert scheduler.describe("a")["failures"] == 2


@pytest.mark.parametrize("state", STATES[:-1])
def test_a_newer_copy_ends_fetches_and_waits(state: str) -> None:
    scheduler = scheduler_in(state)
    scheduler.configure(4.0)
    assert scheduler.report(["a"], 3.1) == 0
    found = scheduler.describe("a")
    expected = {"resting": "waiting", "parked": "parked"}.get(state, "ready")
    assert (found["state"], found["copy"], found["failures"]) == (expected, 3.1, 0)
    choices = scheduler.pages.choices
    assert choices.busy[0] == (state == "parked")  # page b is under way
    assert choices.retry_at[0] == -np.inf
    scheduler.report(["b"], 3.2)
    scheduler.update(["b"], least_interval=999.0)
    assert scheduler.next(33.0).id == (None if state == "resting" else "a")
    assert scheduler.next(33.2).id == ("a" if state == "resting" else None)


def test_a_batch_may_have_old_reports_among_new_ones() -> None:
    scheduler = CrawlScheduler("LambdaCrawl", 10.0, burst=1.0)
    scheduler.add(["a", "b"], change_rate=1.0, last_crawl=[0.0, 1.0])
    same = CrawlScheduler.from_state(scheduler.state())
    assert scheduler.report(["a", "z", "b", "a", "a"], [0.3, 1.0, 1.0, 0.3, 0.1]) == 4
    assert same.report(["a"], 0.3) == 0
    assert contents(scheduler) == contents(same)


def test_a_page_stays_in_its_shard_if_gone_is_old() -> None:
    with ShardedScheduler("GreedyNCIS", 10.0, shards=2) as scheduler:
        scheduler.add(["a", "b", "c"], last_crawl=0.0, **RATES)
        assert scheduler.report(["a", "b", "z", "c"], [1.0, 0.0, 1.0, -1.0], "gone") == 3
        assert [page in scheduler for page in "abc"] == [False, True, True]
        assert scheduler.describe("b")["state"] == "ready"
        assert sorted(scheduler.next_batch(1.0, 3)) == ["b", "c"]
