"""What the loop of a crawler does to a scheduler: failures, threads, feeds, clocks, restarts."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from itertools import islice

import numpy as np
import pytest

from policies.live.scheduler import CrawlScheduler, DurableScheduler
from policies.ncis.greedy import GreedyNCIS


def sources_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "change_rate": rng.uniform(0.01, 1.0, n),
        "recall": rng.uniform(0.0, 0.45, (2, n)),
        "false_signal_rate": rng.uniform(0.0, 0.5, (2, n)),
    }


def fetches(scheduler, now=0.0, until=math.inf):
    """Yield the time and the page of every fetch, each as soon as it may be made."""
    while now < until:
        page, again = scheduler.next(now)
        if page is None:
            now = again
        else:
            yield now, page


def crawled(scheduler, until):
    """Fetch pages as they come, and return how often each was."""
    got = []
    for now, page in fetches(scheduler, until=until):
        scheduler.report([page], now)
        got.append(int(page))
    return np.bincount(got, minlength=len(scheduler))


# Several sources


@pytest.mark.parametrize(
    "parts", [[(0, 100)], [(0, 90), (90, 100)], [(k, k + 1) for k in range(100)]]
)
def test_pages_of_two_sources_may_be_added_in_parts(parts):
    scheduler, columns = CrawlScheduler("GreedyNCIS", 10.0, num_sources=2), sources_of(100)
    for first, last in parts:
        own = {name: column[..., first:last] for name, column in columns.items()}
        scheduler.add(list(range(first, last)), last_crawl=0.0, **own)
    whole = CrawlScheduler("GreedyNCIS", 10.0, num_sources=2)
    whole.add(list(range(100)), last_crawl=0.0, **columns)
    counts = crawled(scheduler, 100.0)
    assert (counts > 0).sum() == 90
    np.testing.assert_array_equal(counts, crawled(whole, 100.0))


def test_a_page_of_two_sources_may_be_updated():
    scheduler, columns = CrawlScheduler("GreedyNCIS", 10.0, num_sources=2), sources_of(2)
    scheduler.add(["a", "b"], last_crawl=0.0, **columns)
    scheduler.update(["a"], recall=[[0.01], [0.02]])
    columns["recall"][:, 0] = 0.01, 0.02
    other = CrawlScheduler("GreedyNCIS", 10.0, num_sources=2)
    other.add(["a", "b"], last_crawl=0.0, **columns)
    np.testing.assert_allclose(scheduler.pages.lazy.parameters[:2], other.pages.lazy.parameters[:2])
    before = scheduler.pages.columns["recall"].copy()
    with pytest.raises(ValueError, match=r"recall must sum to at most 1 .* got \[0.9, 0.9\]"):
        scheduler.update(["a"], recall=[[0.9], [0.9]])
    np.testing.assert_array_equal(scheduler.pages.columns["recall"], before)


def test_a_source_costs_eight_bytes_of_a_page_more():
    sizes = []
    for sources in (2, 3):
        scheduler = CrawlScheduler("GreedyNCIS", 10.0, num_sources=sources)
        shape = sources, 1000
        scheduler.add(
            np.arange(1000), change_rate=0.3, recall=np.full(shape, 0.2), false_signal_rate=0.1
        )
        sizes.append(scheduler.pages.lazy.parameters.nbytes / scheduler.pages.ids.capacity)
    assert sizes == [1464.0, 1472.0]


def test_tables_of_a_policy_may_grow_wider():
    """Rows of another width, as of a delayed policy of one's own, are padded."""
    scheduler = CrawlScheduler("Greedy", 10.0)
    scheduler.add([0, 1], change_rate=[1.0, 2.0], last_crawl=0.0)
    scheduler.pages.make_room(width=5)
    scheduler.add([2], change_rate=3.0, last_crawl=0.0)
    assert scheduler.pages.lazy.parameters.shape[1] == 5
    assert sorted(scheduler.next_batch(1.0, 3).tolist()) == [0, 1, 2]


# Threads


def test_threads_get_every_page_once():
    scheduler = CrawlScheduler("GreedyNCIS", 1e12, burst=100_000)
    scheduler.add(
        np.arange(3000), last_crawl=0.0, change_rate=0.1, recall=0.8, false_signal_rate=0.1
    )
    got, errors = [], []

    def work():
        for _ in range(1000):
            try:
                page, _ = scheduler.next(1.0)
                scheduler.signal([int(page)], 0.5)
                got.append(int(page))
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(got) == list(range(3000))


# Failures


def test_waits_double_and_end_with_a_copy():
    scheduler = CrawlScheduler("Greedy", 1e3, timeout=0.1, retry=1.0, most_retry=5.0)
    scheduler.add(["dead"], change_rate=1.0, last_crawl=0.0)
    tries = []
    for now, page in islice(fetches(scheduler, 10.0), 6):
        tries.append(now)
        scheduler.report([page], now, "failed")
    np.testing.assert_allclose(np.diff(tries), [1.0, 2.0, 4.0, 5.0, 5.0])
    assert scheduler.describe("dead")["failures"] == 6
    assert "after 6 failures" in scheduler.describe("dead")["why"]
    scheduler.report(["dead"], now)
    assert scheduler.describe("dead")["failures"] == 0
    scheduler.report(["dead"], now + 0.5, "failed", retry_at=now + 50.0)
    assert scheduler.next(now + 1.0).ask_again == now + 50.0


def test_lost_fetches_and_failures_double_one_wait():
    """Waits after failed, lost, failed are 2, 4, 8; a lost fetch that fails late is one failure."""
    for outcomes, waits in (("flf", [2.0, 4.0, 8.0]), ("lff", [0.0, 2.0, 4.0])):
        scheduler = CrawlScheduler("Greedy", 1e6, timeout=10.0, retry=2.0, burst=0.0)
        scheduler.add(["a"], change_rate=1.0, last_crawl=0.0)
        now, found = 1.0, []
        assert scheduler.next(now).id == "a"
        for outcome in outcomes:
            end = now + (10.0 if outcome == "l" else 0.5)
            if outcome == "f":
                scheduler.report(["a"], end, "failed")
            now = end
            while scheduler.next(now).id is None:
                now = scheduler.next(now).ask_again
            found.append(now - end)
        np.testing.assert_allclose(found, waits, atol=1e-9)
    scheduler = CrawlScheduler("Greedy", 1e6, timeout=10.0, retry=2.0)
    scheduler.add(["a"], change_rate=1.0, last_crawl=0.0, host="h")
    assert scheduler.next(1.0).id == "a"
    scheduler.hold("h", 12.0)
    assert scheduler.next(11.2).id is None  # the fetch is lost, and its host is held
    scheduler.report(["a"], 11.5, "failed")
    assert scheduler.describe("a")["failures"] == 1
    assert scheduler.describe("a")["due"] == pytest.approx(13.5)


def test_the_first_interrupted_fetch_is_no_failure_but_keeps_gap_and_budget():
    """A page that kills its crawler each time waits longer and longer."""
    scheduler = CrawlScheduler("Greedy", 10.0, timeout=10.0, retry=2.0, burst=0.0)
    scheduler.add(["a"], change_rate=1.0, last_crawl=0.0, host="h")
    scheduler.limit_hosts(gap=0.5)
    assert scheduler.next(1.0).id == "a"
    scheduler.report(["a"], 1.0, "interrupted", ended=1.1)
    assert scheduler.describe("a")["failures"] == 0
    assert scheduler.next(1.05) == (None, pytest.approx(1.1))  # the budget
    assert scheduler.next(1.2) == (None, pytest.approx(1.6))  # the gap
    assert scheduler.next(2.0).id == "a"
    scheduler.report(["a"], 2.0, "interrupted")
    assert scheduler.describe("a")["failures"] == 1
    assert scheduler.next(3.0).ask_again == 4.0
    assert scheduler.next(4.0).id == "a"
    scheduler.report(["a"], 4.0, "interrupted", retry_at=20.0)
    assert scheduler.describe("a")["failures"] == 2
    assert scheduler.next(5.0).ask_again == 20.0


def test_a_wait_that_has_passed_is_over_in_words_too():
    scheduler = new_page()
    scheduler.add(
        ["b"],
        change_rate=1.0,
        recall=0.5,
        false_signal_rate=0.1,
        least_interval=1.0,
        last_crawl=0.0,
    )
    assert scheduler.next(0.5).id == "a"
    assert "waits until 1" in scheduler.describe("b")["why"]
    scheduler.configure(2.0)
    assert scheduler.why().startswith("there is a page to fetch; pages: 2 ready")
    assert scheduler.describe("b")["why"] == "it is due when its value is the largest"
    assert scheduler.next(2.0).id == "b"


def test_the_longest_timeout_has_a_longest_wait():
    scheduler = CrawlScheduler("Greedy", 1e-3, timeout=1e9)
    assert scheduler.pages.choices.lines["most_retry"][0] == 1e12


def test_a_page_that_is_gone_keeps_what_was_learned_for_a_while():
    scheduler = CrawlScheduler("GreedyNCIS", 10.0, learn=True, keep_gone=5.0)
    scheduler.add(["a", "b"], last_crawl=0.0)
    scheduler.report(["a", "b"], 1.0, changed=[True, False])
    learned = float(scheduler.pages.columns["change_rate"][0])
    scheduler.report(["a"], 2.0, "gone")
    assert "a" not in scheduler
    assert len(scheduler) == 1
    assert scheduler.signal(["a"], 2.5).ignored == 1
    assert scheduler.report(["a"], 2.5) == 1
    assert scheduler.add(["a", "c", "c"], known="skip") == 1
    assert scheduler.describe("a")["state"] == "gone"
    with pytest.raises(ValueError, match="ids must be known, 'a' is gone"):
        scheduler.update(["a"], importance=2.0)
    assert scheduler.add(["a"]) == 1
    assert scheduler.describe("a")["change_rate"] == pytest.approx(learned, rel=1e-6)
    scheduler.report(["a"], 3.0, "gone")
    scheduler.next(9.0)
    with pytest.raises(ValueError, match="ids must be known, got 'a'"):
        scheduler.describe("a")


def test_a_page_that_is_gone_comes_back_and_a_failed_one_waits_no_more():
    scheduler = CrawlScheduler("GreedyNCIS", 10.0, learn=True, keep_gone=90.0, retry=2.0)
    scheduler.add(["a", "b"], last_crawl=0.0)
    scheduler.report(["a"], 1.0, changed=[True])
    learned = scheduler.describe("a")["change_rate"]
    for turn in (1, 2):  # it waits longer each time
        scheduler.next(10.0 * turn)
        assert scheduler.report(["a"], 10.0 * turn, "gone") == 0
        assert scheduler.revive(["a", "c"], wait=True) == 1
        assert scheduler.pages.choices.due[0] == 10.0 * turn + 2.0**turn
    assert scheduler.describe("a")["change_rate"] == pytest.approx(learned)
    scheduler.report(["b"], 20.0, "failed", retry_at=80.0)
    assert scheduler.next(21.0).id is None
    assert scheduler.revive(["a", "b"]) == 0
    assert sorted([scheduler.next(21.0).id, scheduler.next(21.2).id]) == ["a", "b"]
    assert scheduler.describe("b")["failures"] == 0
    for page in "ab":
        scheduler.report([page], 22.0, "gone")
    assert scheduler.next(200.0).ask_again == math.inf  # the last one is forgotten


def test_a_clock_that_was_ahead_is_taken_back():
    scheduler = CrawlScheduler("Greedy", 10.0, timeout=1.0, retry=2.0, keep_gone=5.0, burst=0.5)
    pages = ["ready", "sent", "failed", "gone", "late"]
    rates = {"change_rate": 1.0, "importance": [1.0, 9.0, 1.0, 1.0, 1.0], "last_crawl": 0.0}
    scheduler.add(pages, host="h", least_interval=1.0, **rates)
    scheduler.limit_hosts(gap=0.25)
    assert scheduler.next(1000.0).id == "sent"
    scheduler.report(["failed"], 1000.5, "failed")
    scheduler.report(["gone"], 1000.5, "gone")
    scheduler.signal(["late"], 1000.0)
    scheduler.next(1000.5)
    saved = scheduler.allowance
    with pytest.raises(ValueError, match=r"before the clock, 1000\.5, got 2000"):
        scheduler.reset_clock(2000.0)
    scheduler.reset_clock(10.5)
    assert (scheduler.time, scheduler.allowance) == (10.5, pytest.approx(saved))
    rows = scheduler.pages.ids.rows(np.array(pages[1:4]))
    assert scheduler.pages.choices.due[rows].tolist() == [11.0, 12.5, 15.0]
    assert scheduler.opens("h") == 10.75
    assert max(scheduler.describe(page)["copy"] for page in pages) <= 10.5
    assert scheduler.describe("gone")["state"] == "gone"
    chosen = []
    for now, page in islice(fetches(scheduler, 10.5), 8):
        chosen.append(page)
        assert scheduler.report([page], now) == 0
    assert {"ready", "sent", "failed", "late"} <= set(chosen)
    assert now < 14.0
    scheduler.next(1e12)
    scheduler.reset_clock(20.0)
    assert next(fetches(scheduler, 20.0))[0] < 22.0
    scheduler.next(25.1)
    with pytest.raises(ValueError, match="ids must be known, got 'gone'"):
        scheduler.describe("gone")


def test_a_page_that_is_moved_may_have_another_host():
    scheduler = CrawlScheduler("Greedy", 1e3, burst=1.0)
    scheduler.add(["a", "b"], change_rate=1.0, last_crawl=0.0, host=["h", "h"])
    scheduler.hold("h", 50.0)
    scheduler.move(["a"], ["c"], "other")
    assert scheduler.next_batch(1.0, 2).tolist() == ["c"]
    for page in "bc":  # parked, and handed out
        with pytest.raises(ValueError, match="host must be left out for pages that are handed out"):
            scheduler.move([page], ["d"], "third")


def test_new_pages_get_their_share_of_a_host_with_a_gap():
    scheduler = CrawlScheduler("Greedy", 1e3, burst=0.0)
    scheduler.limit_hosts(gap=1.0)
    scheduler.add([0, 1], host="a", change_rate=1.0, last_crawl=0.0)
    scheduler.add(np.arange(10, 20), host="a", change_rate=1.0)
    chosen = []
    for now, page in islice(fetches(scheduler, 1.0), 20):
        chosen.append(int(page))
        scheduler.report([page], now)
    assert sum(page >= 10 for page in chosen) >= 10


# Signals and clocks


def new_page(**more):
    scheduler = CrawlScheduler("GreedyNCIS", 10.0, **more)
    scheduler.add(["a"], change_rate=0.1, recall=0.5, false_signal_rate=0.1, last_crawl=0.0)
    return scheduler


def signals(scheduler):
    return float(scheduler.pages.lazy.pages["counted"][0])


def test_a_signal_counts_once_however_often_it_is_told():
    scheduler = new_page()
    for _ in range(5):
        scheduler.signal(["a", "a", "a"], [1.0, 2.0, 1.0])
    assert signals(scheduler) == 2.0
    scheduler.report(["a"], 1.5)
    assert signals(scheduler) == 1.0
    assert scheduler.signal(["a", "a"], [1.0, 2.0]).ignored == 2


def test_at_the_time_of_a_copy_the_order_of_the_calls_decides():
    scheduler = new_page()
    scheduler.signal(["a"], 3.0)
    scheduler.report(["a"], 3.0)
    assert signals(scheduler) == 0.0
    assert scheduler.signal(["a"], 3.0).ignored == 1  # it is known
    other = new_page()
    other.report(["a"], 3.0)
    other.signal(["a"], 3.0)
    assert signals(other) == 1.0


def test_a_date_counts_for_the_rest_of_its_day():
    """A source of whole days, at half past six in the evening, after a copy of noon."""
    scheduler = new_page(resolution=1.0)
    scheduler.next(10.5)
    scheduler.report(["a"], 10.5)
    assert scheduler.next(10.77).id is not None
    assert scheduler.signal(["a"], 10.0).ignored == 0
    assert signals(scheduler) == 1.0
    scheduler.report(["a"], 10.8)
    assert signals(scheduler) == scheduler.describe("a")["signals"] == 0
    assert scheduler.signal(["a"], 10.0).ignored == 1  # told again after the new copy
    assert new_page().signal(["a"], -0.5).ignored == 1
    assert new_page(skew=0.6).signal(["a"], -0.5).ignored == 0


def test_a_time_of_the_future_does_not_last():
    scheduler = new_page()
    scheduler.add(["b"], change_rate=0.2, recall=0.5, false_signal_rate=0.1, last_crawl=0.0)
    scheduler.report(["a"], 1e18)
    scheduler.signal(["b"], 1e17)
    assert scheduler.next(1.0).id == "b"
    scheduler.report(["b"], 1.0)
    assert scheduler.ahead == 2
    assert scheduler.describe("a")["copy"] == 1.0
    assert scheduler.signal(["b"], 1e17).ignored == 1
    assert signals(scheduler) == 0.0
    assert sorted([scheduler.next(20.0).id, scheduler.next(20.1).id]) == ["a", "b"]
    scheduler.report(["a"], 1e18, "failed")
    assert scheduler.describe("a")["due"] < 50.0


def test_a_clock_that_goes_back_is_counted():
    scheduler = new_page()
    assert scheduler.next(5.0).id == "a"
    assert scheduler.next(4.0).id is None
    assert scheduler.time == 5.0
    assert scheduler.clamped == 1


def test_lost_entries_of_a_feed_count_as_changes_it_would_have_told():
    scheduler = new_page()
    scheduler.next(8.0)
    scheduler.source_gap(0, 3.0)
    nats = 0.05 * 8.0 + 0.05 * 5.0  # alpha times the age, and missed changes
    assert scheduler.describe("a")["stale"] == pytest.approx(-math.expm1(-nats))
    scheduler.report(["a"], 7.0)
    nats = 0.05 * 1.0 + 0.05 * 1.0
    assert scheduler.describe("a")["stale"] == pytest.approx(-math.expm1(-nats))


class Renamed(GreedyNCIS):
    """The same values under another name."""


@pytest.mark.parametrize("policy", ["GreedyNCIS", "GreedyNCISApprox", "GreedyCIS", Renamed])
def test_the_probability_of_staleness_is_that_of_the_rates_for_any_policy(policy):
    scheduler = CrawlScheduler(policy, 1.0, num_sources=2, start=1.0)
    known = {"recall": [[0.4], [0.05]], "false_signal_rate": [[0.01], [1.0]]}
    scheduler.add([1], change_rate=0.5, last_crawl=0.0, **known)
    for source, nats in ((1, math.log(1.025)), (0, math.log(21.0))):
        before = scheduler.describe(1)["stale"]
        scheduler.signal([1], 0.5, source)
        stale = scheduler.describe(1)["stale"]
        assert math.log((1.0 - before) / (1.0 - stale)) == pytest.approx(nats)
    assert before == pytest.approx(-math.expm1(-0.5 * 0.55 - math.log(1.025)))


def test_a_bad_source_does_not_spoil_a_good_one():
    """Learned from nothing: with both, pages are nearly as fresh as with the good one."""
    fresh = {}
    for sources in (1, 2):
        rng, m, days = np.random.default_rng(5), 60, 40.0
        rate = rng.gamma(1.0, 1.0, m) + 0.05
        changes = [np.sort(rng.random(rng.poisson(r * days)) * days) for r in rate]
        told = [
            (t, page, 0)
            for page in range(m)
            for t in changes[page][rng.random(changes[page].size) < 0.8]
        ]
        bad = [(t, int(rng.integers(m)), 1) for t in rng.random(int(3.0 * m * days)) * days]
        told = sorted(told + bad * (sources - 1))
        scheduler = CrawlScheduler("GreedyNCIS", 30.0, learn=True, num_sources=sources)
        scheduler.add(np.arange(m), last_crawl=0.0)
        copies, stale, place = np.zeros(m), 0, 0
        for step in range(1, int(30.0 * days)):
            now = step / 30.0
            while place < len(told) and told[place][0] <= now:
                scheduler.signal([told[place][1]], told[place][0], told[place][2])
                place += 1
            page = int(scheduler.next(now).id)
            first, last = np.searchsorted(changes[page], [copies[page], now], side="right")
            scheduler.report([page], now, changed=[last > first])
            copies[page] = now
            if now > 10.0:
                stale += sum(
                    np.ptp(np.searchsorted(changes[k], [copies[k], now])) > 0
                    for k in range(0, m, 6)
                )
        fresh[sources] = stale
    assert fresh[2] < 1.15 * fresh[1]


# The loop


@pytest.mark.parametrize("burst", [0.0, 0.05])
def test_late_timers_use_the_bandwidth_that_is_saved(burst):
    scheduler, rng = CrawlScheduler("RoundRobin", 100.0, burst=burst), np.random.default_rng(0)
    scheduler.add(np.arange(500), last_crawl=0.0)
    now, fetches = 0.0, 0
    while now < 20.0:
        page, again = scheduler.next(now)
        if page is None:
            now = again + rng.uniform(0.004, 0.012)
        else:
            scheduler.report([page], now)
            fetches += 1
    assert (fetches / (100.0 * now) >= 0.97) == (burst > 0.0)


def test_pages_may_be_moved_added_again_and_limited():
    scheduler = CrawlScheduler("Greedy", 1e3)
    assert (
        scheduler.add(["a", "b"], change_rate=[1.0, 2.0], last_crawl=0.0, least_interval=3.0) == 2
    )
    assert scheduler.add(["b", "c"], known="skip", change_rate=[9.0, 1.0]) == 1
    assert scheduler.describe("b")["change_rate"] == 2.0
    assert "c" in scheduler
    assert scheduler.next(1.0).id == "c"
    assert scheduler.next(1.0) == (None, 2.0)  # the fetch may be lost
    scheduler.report(["c"], 1.0, "gone")
    assert scheduler.next(1.5) == (None, 3.0)
    assert "2 waiting" in scheduler.why()
    scheduler.move(["b"], ["moved"])
    assert "b" not in scheduler
    assert sorted([scheduler.next(3.0).id, scheduler.next(3.0).id]) == ["a", "moved"]
    scheduler.report(["a"], 3.0, "interrupted")
    scheduler.update(["a"], least_interval=5.0)
    assert scheduler.next(3.5).id is None
    assert scheduler.describe("a")["due"] == 5.0


def test_a_page_is_described():
    scheduler = new_page()
    assert list(scheduler.under_way) == []
    scheduler.next(2.0)
    assert list(scheduler.under_way) == ["a"]
    scheduler.signal(["a"], 1.0)
    scheduler.report(["a"], 0.5, "failed", retry_at=4.0)
    assert list(scheduler.under_way) == []
    told = scheduler.describe("a")
    nats = 0.05 * 2.0 + math.log(0.15 / 0.1)
    assert told["stale"] == pytest.approx(-math.expm1(-nats))
    assert (told["copy"], told["signals"], told["state"]) == (0.0, 1, "waiting")
    assert told["due"] == 4.0
    assert told["change_rate"] == 0.1


def test_what_may_never_be_fetched_is_never_due():
    scheduler = CrawlScheduler("Greedy", 10.0, keep_gone=9.0)
    weights, rates = [9.0, 1.0, 1.0], {"change_rate": 1.0, "last_crawl": 0.0}
    scheduler.add(["a", "b", "c"], importance=weights, host="h", **rates)
    assert scheduler.next(1.0).id == "a"  # its value is more than the others can have
    scheduler.report(["b"], 1.0, "gone")
    scheduler.hold("h", math.inf)
    assert [scheduler.describe(page)["due"] for page in "bc"] == [math.inf, math.inf]


@pytest.mark.parametrize(("retry_at", "due"), [(1.2, 2.5), (2.5, 2.5), (4.0, 4.0)])
def test_a_server_may_ask_for_a_longer_wait_and_for_no_shorter_one(retry_at, due):
    scheduler = CrawlScheduler("Greedy", 10.0, retry=1.5)
    scheduler.add(["a"], change_rate=0.1, last_crawl=0.0)
    assert scheduler.next(1.0)[0] == "a"
    scheduler.report(["a"], 1.0, "failed", retry_at=retry_at)
    assert scheduler.describe("a")["due"] == due


def test_a_due_time_is_when_the_page_is_fetched():
    rng = np.random.default_rng(3)
    scheduler = CrawlScheduler("Greedy", 10.0, burst=0.0)
    scheduler.add(np.arange(40), change_rate=rng.random(40), last_crawl=0.0)
    assert crawled(scheduler, 40.0).sum() >= 399
    due, now = {k: scheduler.describe(k)["due"] for k in range(40)}, scheduler.time
    late, seen = [], set()
    for turn in range(1, 200):
        page = int(scheduler.next(now + turn / 10.0).id)
        if page not in seen:
            late.append(now + turn / 10.0 - due[page])
        seen.add(page)
        scheduler.report([page], now + turn / 10.0)
    assert np.median(np.abs(late)) < 0.6


def test_ids_that_numpy_would_merge_are_refused_or_kept():
    for ids in ([1, "1"], [1.5, "a"], ["a", None]):
        with pytest.raises(ValueError, match="ids must be all strings, or all numbers"):
            CrawlScheduler("Greedy", 1.0).add(ids, change_rate=1.0)
    for ids in (["a", "a\0"], np.array(["a", "a\0"], dtype=object)):
        assert CrawlScheduler("Greedy", 1.0).add(ids, change_rate=1.0) == 2


WARM = """
import gc, sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from policies.live.scheduler import CrawlScheduler

def compiled():
    return {x.__name__: len(x.signatures) for x in gc.get_objects() if isinstance(x, Dispatcher)}

sources, learn = int(sys.argv[1]), bool(int(sys.argv[2]))
loop = CrawlScheduler("GreedyNCIS", 1e4, num_sources=sources, learn=learn, burst=1.0, keep_gone=9.0)
loop.warm()
assert len(loop) == loop.time == loop.allowance == 0
before = compiled()
rates = {} if learn else {"change_rate": 0.1, "recall": 0.2, "false_signal_rate": 0.1}
pages = [f"page{k}" for k in range(100)]
loop.add(pages, host="a", last_crawl=0.0, **rates)
loop.limit_hosts(most=50)
loop.signal(pages[:2], 0.5)
for turn in range(1, 4):
    loop.report([loop.next(turn).id], turn, changed=[True])
    batch = loop.next_batch(turn + 0.5, 10)
    loop.report(batch[:5], turn + 0.5, changed=[False] * 5)
    loop.report(batch[5:7], turn + 0.5, "failed")
    loop.report(batch[7:], turn + 0.5, "gone")
loop.ask(5.0, pages[50])
loop.revive(batch)
loop.move(pages[60:61], ["new"])
loop.update(["new"], importance=2.0)
loop.remove(["new"])
loop.source_gap(0, 4.0)
loop.hold("a", 6.0)
loop.describe(pages[0]), loop.why(), loop.overview()
loop.configure(5.5, timeout=3.0)
loop.reset_clock(5.2)
after = compiled()
print([name for name in after if after[name] != before.get(name)])
"""


@pytest.mark.parametrize(("sources", "learn"), [(1, 0), (2, 1)])
def test_warm_compiles_all_that_calls_need(sources, learn):
    command = [sys.executable, "-c", WARM, str(sources), str(learn)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


# Restarts


def test_answers_of_none_are_not_written(tmp_path):
    with DurableScheduler(tmp_path, new_page()) as durable:
        assert durable.next(1.0).id == "a"
        for turn in range(50):
            assert durable.next(1.0 + turn * 1e-4).id is None
        written, calls = durable.journal.size, durable.calls
        for turn in range(100):
            assert durable.next(1.5 + turn * 1e-4).id is None
        assert durable.calls <= calls + 1
        assert durable.journal.size <= written + 200
        assert durable.describe("a")["state"] == "sent"
        assert "a" in durable
        assert len(durable) == 1
    with DurableScheduler(tmp_path) as again:
        assert again.next(2.1).id == "a"


def test_calls_after_an_unwritten_answer_have_its_time(tmp_path):
    with DurableScheduler(tmp_path, new_page(resolution=1.0)) as durable:
        durable.next(10.0)
        durable.report(["a"], 10.04)
        assert durable.next(10.05).id is None
        durable.signal(["a"], 10.0)
        expected = durable.scheduler.state().arrays["choices.event_latest"][0]
        assert expected == 10.05
    with DurableScheduler(tmp_path) as again:
        assert again.scheduler.state().arrays["choices.event_latest"][0] == expected


def test_it_saves_by_itself(tmp_path):
    assert not DurableScheduler.holds(tmp_path)
    with DurableScheduler(tmp_path, new_page(), save_every=10) as durable:
        for turn in range(105):
            durable.signal(["a"], 0.01 * turn)
            assert durable.calls <= 10
    assert DurableScheduler.holds(tmp_path)
    names = sorted(path.name for path in tmp_path.glob("snapshot-*"))
    assert names == ["snapshot-000000000010"]
    with DurableScheduler(tmp_path) as again:
        assert again.calls == 5
        assert signals(again) == 105.0


def test_a_journal_before_the_last_must_be_whole(tmp_path):
    with DurableScheduler(tmp_path, new_page()) as durable:
        durable.signal(["a"], 1.0)
        snapshot = next(tmp_path.glob("snapshot-*"))
        kept, journal = snapshot.read_bytes(), next(tmp_path.glob("journal-*"))
        first = journal.read_bytes()
        durable.save()
        durable.signal(["a"], 2.0)
    next(tmp_path.glob("snapshot-*")).unlink()  # as if the process had died while it was written
    snapshot.write_bytes(kept)
    journal.write_bytes(first)
    with DurableScheduler(tmp_path) as again:
        assert signals(again) == 2.0
    journal.write_bytes(first[:-1])
    with pytest.raises(ValueError, match="must be whole, it is cut off"):
        DurableScheduler(tmp_path)
