"""Pages that are asked for by those who hold copies, and the price that keeps the bandwidth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies import solvers
from policies.live.scheduler import CrawlScheduler, DurableScheduler, Fetch, ShardedScheduler

PAGES, BANDWIDTH, END = 60, 20.0, 40.0


def pages_of(seed=0):
    rng = np.random.default_rng(seed)
    importance = rng.uniform(0.1, 1.0, PAGES)
    return importance / importance.sum(), rng.uniform(0.02, 2.0, PAGES)


def polled(scheduler, polls, seed=1, start=0.0):
    """Ask for pages at random times; return freshness by the rates, and the times of grants."""
    importance, change_rate = pages_of()
    names = [f"{start:g}: {page}" for page in range(PAGES)]
    columns = {"importance": importance, "change_rate": change_rate}
    scheduler.add(names, last_crawl=start, **columns)
    rng, copy, time = np.random.default_rng(seed), np.full(PAGES, start), start
    fresh, granted = np.zeros(PAGES), []
    while True:
        time += rng.exponential(1.0 / (polls * PAGES))
        if time >= start + END:
            break
        page = int(rng.integers(PAGES))
        fetch = scheduler.ask(time, names[page])
        if fetch.id is None:
            assert fetch.ask_again > time
            continue
        granted.append(time)
        scheduler.report([names[page]], time)
        fresh[page] += -np.expm1(-change_rate[page] * (time - copy[page])) / change_rate[page]
        copy[page] = time
    fresh += -np.expm1(-change_rate * (start + END - copy)) / change_rate
    return float(importance @ fresh) / END, np.array(granted)


@pytest.fixture(scope="module")
def played():
    """A scheduler that was asked for pages, the freshness and the times of grants."""
    scheduler = CrawlScheduler("Greedy", BANDWIDTH, burst=1.0)
    return scheduler, *polled(scheduler, 3.0)


@pytest.mark.parametrize("polls", [3.0, 6.0])
def test_the_bandwidth_goes_to_the_pages_of_the_largest_values(polls, played):
    _, freshness, granted = played
    if polls != 3.0:
        freshness, granted = polled(CrawlScheduler("Greedy", BANDWIDTH, burst=1.0), polls)
    best = solvers.binary_periodic(*pages_of(), BANDWIDTH).objective
    assert granted.size == pytest.approx(BANDWIDTH * END, rel=0.04)
    assert freshness > 0.96 * best
    count = np.arange(1, granted.size + 1)
    assert (count <= 1.0 + BANDWIDTH * (granted + 1.0) + 1e-6).all(), "never more than was saved"


class FirstComeFirstServed:
    """Grants whoever comes while bandwidth is left, with as much saved as in a scheduler."""

    def __init__(self):
        self.saved, self.time = 1.0 + BANDWIDTH, 0.0

    def add(self, names, **columns):
        pass

    def report(self, names, time):
        pass

    def ask(self, time, name):
        grown = self.saved + BANDWIDTH * (time - self.time)
        self.saved, self.time = min(grown, 1.0 + BANDWIDTH), time
        if self.saved < 1.0:
            return Fetch(None, time + 1.0)
        self.saved -= 1.0
        return Fetch(name, time)


def test_what_the_choice_of_pages_gains(played):
    """The numbers in docs/crawlers.md: means of five draws of the times, rounded."""
    best = solvers.binary_periodic(*pages_of(), BANDWIDTH).objective
    chosen, first = [played[1]], [polled(FirstComeFirstServed(), 3.0)[0]]
    for seed in range(2, 6):
        chosen.append(polled(CrawlScheduler("Greedy", BANDWIDTH, burst=1.0), 3.0, seed)[0])
        first.append(polled(FirstComeFirstServed(), 3.0, seed)[0])
    lost = [1.0 - np.mean(fresh) / best for fresh in (chosen, first)]
    assert [round(100.0 * share) for share in lost] == [2, 26]


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
    scheduler = CrawlScheduler("Greedy", 1.0, burst=1.0)
    scheduler.add(["a", "b"], change_rate=1.0)
    assert scheduler.ask(1.0, "a").id == "a"
    assert scheduler.ask(1.5, "b") == (None, pytest.approx(2.0))
    assert scheduler.ask(2.0, "b").id == "b"


def test_too_little_that_may_be_saved_is_refused():
    scheduler = CrawlScheduler("Greedy", 4.0, burst=0.2)
    scheduler.add(["a"], change_rate=1.0)
    with pytest.raises(ValueError, match=r"burst must be at least 0.25"):
        scheduler.ask(1.0, "a")


def test_a_policy_that_allocates_rates_grants_what_is_due_within_the_bandwidth():
    scheduler = CrawlScheduler("LambdaCrawl", 10.0)
    scheduler.add(np.arange(100), change_rate=1.0, last_crawl=0.0)
    granted = [page for page in range(100) if scheduler.ask(50.0, page).id is not None]
    assert granted == [0]


def test_new_pages_take_their_share_and_do_not_drive_the_price_away(played):
    scheduler = CrawlScheduler.from_state(played[0].state())
    scheduler.add([f"new {k}" for k in range(2000)], change_rate=1.0)
    rng, time, taken = np.random.default_rng(2), END, {"new": 0, "old": 0}
    fresh, step = (f"new {k}" for k in range(2000)), 1.0 / 400.0
    page = next(fresh)
    while time < END + 20.0:
        time += step
        if scheduler.ask(time, page).id is not None:
            taken["new"] += 1
            scheduler.report([page], time)
            page = next(fresh)
        old = f"0: {rng.integers(PAGES)}"
        if scheduler.ask(time, old).id is not None:
            taken["old"] += 1
            scheduler.report([old], time)
    assert taken["new"] + taken["old"] == pytest.approx(20.0 * BANDWIDTH, rel=0.06)
    assert taken["new"] == pytest.approx(taken["old"], rel=0.1)


@pytest.mark.parametrize("how", ["closed hosts", "no bandwidth", "a long silence"])
def test_the_price_comes_back(how, played):
    scheduler = CrawlScheduler.from_state(played[0].state())
    if how == "closed hosts":
        scheduler.add(["h"], host="h", change_rate=1.0, last_crawl=0.0)
        scheduler.hold("h", END + 60.0)
        for time in np.linspace(END, END + 60.0, 500, endpoint=False):
            assert scheduler.ask(time, "h").id is None
    elif how == "no bandwidth":
        scheduler.configure(END, bandwidth=1e-3, burst=1e3)
        for time in np.linspace(END, END + 60.0, 500):
            scheduler.ask(time, "0: 0")
        scheduler.configure(END + 60.0, bandwidth=BANDWIDTH, burst=1.0)
    freshness, granted = polled(scheduler, 3.0, start=END + 60.0)
    best = solvers.binary_periodic(*pages_of(), BANDWIDTH).objective
    assert freshness > 0.9 * best
    assert granted.size == pytest.approx(BANDWIDTH * END, rel=0.04)


def test_a_first_value_next_to_nothing_does_little_harm():
    scheduler = CrawlScheduler("Greedy", BANDWIDTH, burst=1.0)
    scheduler.add(["first", "useless"], change_rate=1.0, importance=[1.0, 0.0], last_crawl=0.0)
    assert scheduler.ask(1.0, "useless").id is None
    scheduler.report(["first"], 1.0)
    scheduler.ask(1.0 + 1e-9, "first")
    freshness, _ = polled(scheduler, 3.0, start=1.0)
    assert freshness > 0.88 * solvers.binary_periodic(*pages_of(), BANDWIDTH).objective


def test_who_asks_when_told_is_granted():
    scheduler = CrawlScheduler("Greedy", 10.0, start=-1.0, burst=1.0, timeout=5.0)
    scheduler.add(["hot", "cold"], importance=[1.0, 0.01], change_rate=1.0, last_crawl=-20.0)
    scheduler.add(["a", "b"], change_rate=1.0, last_crawl=-20.0, host="h")
    scheduler.limit_hosts(gap=0.1)
    assert scheduler.ask(0.5, "hot").id == "hot"
    again = scheduler.ask(0.6, "cold")
    if again.id is None:
        assert scheduler.ask(again.ask_again, "cold").id == "cold"
    assert scheduler.ask(2.0, "a").id == "a"
    busy = scheduler.ask(2.5, "b")
    assert busy.ask_again >= 5.5, "the first fetch is lost then"


def test_a_restart_goes_on(tmp_path, played):
    whole = CrawlScheduler.from_state(played[0].state())
    with DurableScheduler(tmp_path, CrawlScheduler("Greedy", BANDWIDTH, burst=1.0)) as durable:
        np.testing.assert_array_equal(polled(durable, 3.0)[1], played[2])
    with DurableScheduler(tmp_path) as again:
        for page in range(PAGES):
            assert again.ask(END, f"0: {page}") == whole.ask(END, f"0: {page}")
        state = again.scheduler.state()
    copy = CrawlScheduler.from_state(state)
    assert copy.price.state() == whole.price.state()
    assert copy.price.credit == played[0].price.credit == 1.0


def test_shards_say_that_they_have_no_price():
    with (
        ShardedScheduler("Greedy", 1.0) as shards,
        pytest.raises(ValueError, match="one scheduler"),
    ):
        shards.ask(0.0, "a")
