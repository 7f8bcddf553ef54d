"""Pages that are asked for by those who hold copies, and the price that keeps the bandwidth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies import solvers
from policies.scheduler import CrawlScheduler, DurableScheduler, ShardedScheduler

PAGES, BANDWIDTH, END = 60, 20.0, 40.0


def pages_of(seed=0):
    rng = np.random.default_rng(seed)
    importance = rng.uniform(0.1, 1.0, PAGES)
    return importance / importance.sum(), rng.uniform(0.02, 2.0, PAGES)


def polled(scheduler, polls, seed=1):
    """Ask for pages at random times; return freshness by the rates, and the times of grants."""
    importance, change_rate = pages_of()
    scheduler.add(np.arange(PAGES), importance=importance, change_rate=change_rate, last_crawl=0.0)
    rng, copy, time = np.random.default_rng(seed), np.zeros(PAGES), 0.0
    fresh, granted = np.zeros(PAGES), []
    while True:
        time += rng.exponential(1.0 / (polls * PAGES))
        if time >= END:
            break
        page = int(rng.integers(PAGES))
        fetch = scheduler.ask(time, page)
        if fetch.id is None:
            assert fetch.ask_again > time
            continue
        granted.append(time)
        scheduler.report([page], time)
        fresh[page] += -np.expm1(-change_rate[page] * (time - copy[page])) / change_rate[page]
        copy[page] = time
    fresh += -np.expm1(-change_rate * (END - copy)) / change_rate
    return float(importance @ fresh) / END, np.array(granted)


@pytest.mark.parametrize("polls", [3.0, 30.0])
def test_the_bandwidth_goes_to_the_pages_of_the_largest_values(polls):
    """First come, first served has .28 where the optimum of free times has .39."""
    freshness, granted = polled(CrawlScheduler("Greedy", BANDWIDTH, burst=1.0), polls)
    best = solvers.binary_periodic(*pages_of(), BANDWIDTH).objective
    assert granted.size == pytest.approx(BANDWIDTH * END, rel=0.04)
    assert freshness > 0.94 * best
    count = np.arange(1, granted.size + 1)
    assert (count <= 1.0 + BANDWIDTH * (granted + 1.0) + 1e-6).all(), "never more than was saved"


def test_a_page_is_granted_when_it_may_be_fetched():
    scheduler = CrawlScheduler("Greedy", 10.0, burst=1.0, timeout=0.5)
    scheduler.add(["new", "old"], change_rate=1.0, last_crawl=[math.nan, 0.0], host="h")
    scheduler.limit_hosts(gap=0.1)
    assert scheduler.ask(1.0, "new") == ("new", 1.0)
    assert scheduler.describe("new")["state"] == "sent"
    again = scheduler.ask(1.05, "old")
    assert again.id is None
    assert again.ask_again > 1.05
    scheduler.report(["new"], 1.05)
    assert scheduler.ask(1.1, "old").ask_again == pytest.approx(1.15)
    assert scheduler.ask(1.2, "old").id == "old"
    scheduler.report(["old"], 1.2, "failed")
    assert scheduler.ask(1.3, "old").ask_again == pytest.approx(1.7)
    with pytest.raises(ValueError, match="known"):
        scheduler.ask(1.4, "another")
    scheduler.report(["old"], 1.5, "gone")
    with pytest.raises(ValueError, match="old"):
        scheduler.ask(1.6, "old")


def test_used_up_bandwidth_grants_nothing():
    scheduler = CrawlScheduler("Greedy", 1.0)
    scheduler.add(["a", "b"], change_rate=1.0)
    assert scheduler.ask(1.0, "a").id == "a"
    assert scheduler.ask(1.5, "b") == (None, pytest.approx(2.0))
    assert scheduler.ask(2.0, "b").id == "b"


def test_a_restart_goes_on(tmp_path):
    whole = CrawlScheduler("Greedy", BANDWIDTH, burst=1.0)
    with DurableScheduler(tmp_path, CrawlScheduler("Greedy", BANDWIDTH, burst=1.0)) as durable:
        expected = polled(whole, 3.0)
        got = polled(durable, 3.0)
        np.testing.assert_array_equal(got[1], expected[1])
    with DurableScheduler(tmp_path) as again:
        for page in range(PAGES):
            assert again.ask(END, page) == whole.ask(END, page)
        state = again.scheduler.state()
    copy = CrawlScheduler.from_state(state)
    assert copy.priced == whole.priced == END


def test_shards_say_that_they_have_no_price():
    with (
        ShardedScheduler("Greedy", 1.0) as shards,
        pytest.raises(ValueError, match="one scheduler"),
    ):
        shards.ask(0.0, "a")
