"""Costs of a live scheduler's fetches: the pace, what is learned of them, and the cap."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict

import gymnasium as gym
import numpy as np
import pytest

import policies
from policies.live.scheduler import CrawlScheduler, DurableScheduler, ShardedScheduler

COLUMNS = ("importance", "change_rate", "recall", "false_signal_rate")
CAP = {"cap": 10.0, "cap_period": 1.0, "max_cost": 3.0}


def filled(policy="Greedy", bandwidth=10.0, pages=20, cost=None, **settings):
    """Return a scheduler of pages with copies of time 0."""
    scheduler = CrawlScheduler(policy, bandwidth, **settings)
    rng = np.random.default_rng(1)
    columns = {"importance": rng.random(pages), "change_rate": rng.random(pages)}
    scheduler.add(np.arange(pages), last_crawl=0.0, cost=cost, **columns)
    return scheduler


def fetch_times(scheduler, end, time=0.0):
    """Fetch until a time, asking when the scheduler says; return the times and the ids."""
    times, ids = [], []
    while time < end:
        page, again = scheduler.next(time)
        if page is None:
            time = again
        else:
            times.append(time)
            ids.append(page)
            scheduler.report([page], time)
    return times, ids


# The pace


@pytest.mark.parametrize("law", ["noisy", "sources"])
def test_pages_and_times_are_those_of_an_environment_with_costs(law):
    kwargs = {"num_pages": 30, "horizon": 6.0, "instance": law, "cost_spread": 1.0}
    env = gym.make("crawl_envs:CrawlNCIS-v0", **kwargs)
    observation, _ = env.reset(seed=3)
    core, player = env.unwrapped, policies.make("GreedyNCIS", env)
    problem = core.tracker().problem
    columns = {name: getattr(problem, name) for name in COLUMNS}
    settings = {"num_sources": problem.num_sources, "burst": 0.0}
    scheduler = CrawlScheduler("GreedyNCIS", problem.bandwidth, **settings)
    scheduler.add(np.arange(30), last_crawl=0.0, cost=problem.cost, **columns)
    ended, again, slots = False, 1.0 / problem.bandwidth, 0
    while not ended:
        log, time = core.last_log(), core.tracker().time
        assert again == pytest.approx(time, rel=1e-9)
        scheduler.signal(log.signal_page, log.signal_time, log.signal_source)
        page, _ = scheduler.next(time)
        assert page == player.predict(observation)[0]
        scheduler.report([page], time)
        too_early, again = scheduler.next(time)
        assert too_early is None
        observation, _, terminated, truncated, _ = env.step(page)
        ended, slots = terminated or truncated, slots + 1
    assert slots > 100
    assert scheduler.pace.spending.spend == pytest.approx(core.ledger().spend)


@pytest.mark.parametrize("learn", [False, True])
def test_costs_of_1_change_no_answer(learn):
    def answers(cost):
        scheduler = filled("Greedy", 8.0, cost=cost, learn=learn)
        rng, found, time = np.random.default_rng(4), [], 0.0
        for _ in range(150):
            time += rng.exponential(0.2)
            fetch, batch = scheduler.next(time), scheduler.next_batch(time + 0.1, 6)
            found += [fetch, batch.tolist(), scheduler.allowance]
            ids = [*batch, *([] if fetch.id is None else [fetch.id])]
            changed = rng.random(len(ids)) < 0.5
            scheduler.report(ids, time + 0.1, changed=changed, cost=cost)
        return found

    assert answers(None) == answers(1.0)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e5])
def test_costs_may_be_in_any_unit(unit):
    cost = unit * np.random.default_rng(0).uniform(0.5, 1.5, 20)
    times, ids = fetch_times(filled(bandwidth=10.0 * unit, cost=cost), 30.0)
    assert times[0] <= 0.15
    spend = cost[np.array(ids)].cumsum()
    assert spend[-1] == pytest.approx(300.0 * unit, rel=0.01)
    # the next fetch is its cost / bandwidth after each
    assert np.diff(times)[50:] == pytest.approx(
        cost[np.array(ids)][50:-1] / (10.0 * unit), abs=1e-2
    )
    late = filled(bandwidth=10.0 * unit, cost=unit, burst=0.0)
    fetched = [len(late.next_batch(time, 5)) for time in (100.0, 100.1, 200.0, 200.1)]
    assert fetched == [5, 1, 5, 1]
    assert [late.next(time).id is None for time in (300.0, 300.05)] == [False, True]


def test_the_cost_of_a_report_replaces_that_expected():
    scheduler = filled(cost=2.0)
    first, _ = scheduler.next(0.1)
    assert scheduler.next(0.1) == (None, pytest.approx(0.3))
    scheduler.report([first], 0.1, "failed", cost=7.0)
    assert scheduler.next(0.1) == (None, pytest.approx(0.8))
    scheduler.report([first], 0.1, "failed", cost=7.0)  # twice, which is ignored
    assert scheduler.next(0.1).ask_again == pytest.approx(0.8)
    assert scheduler.overview()["spend"] == 7.0
    unknown = filled()  # the first cost of all is that of a fetch under way
    page, _ = unknown.next(0.1)
    unknown.report([page], 0.1, cost=5.0)
    assert unknown.next(0.1).ask_again == pytest.approx(0.6)


def test_a_batch_ends_with_the_first_page_that_the_bandwidth_does_not_pay():
    scheduler = CrawlScheduler("RoundRobin", 10.0, burst=1.0)
    scheduler.add([1, 2, 3, 4], last_crawl=[0.0, 0.1, 0.2, 0.3], cost=[4.0, 1.0, 9.0, 1.0])
    assert scheduler.next_batch(1.0, 4).tolist() == [1, 2, 3]  # spends 5, then 14 of 10
    assert scheduler.next(1.0).ask_again == pytest.approx(1.5)


# What is expected


def cost_of(scheduler, page):
    return scheduler.describe(page)["cost"]


def test_a_page_costs_the_mean_of_its_reports_or_of_its_host_or_of_all():
    scheduler = CrawlScheduler("Greedy", 100.0, burst=1.0)
    scheduler.add([*"abcde"], host=[*"xxyyz"], change_rate=1.0, last_crawl=0.0)
    assert "cost" not in scheduler.describe("a")
    scheduler.update(["a"], cost=4.0)
    scheduler.update(["c"], cost=[10.0])
    expected = {"a": 4.0, "b": 4.0, "d": 10.0, "e": 7.0}
    assert {page: cost_of(scheduler, page) for page in expected} == expected
    for k, cost in enumerate([7.0, 1.0, math.nan]):
        scheduler.report(["a"], 0.1 * k + 0.1, cost=cost)
    assert cost_of(scheduler, "a") == 4.0  # of 4, 7, 1
    assert cost_of(scheduler, "b") == 4.0
    scheduler.report(["b"], 0.5, cost=8.0)
    assert cost_of(scheduler, "b") == 8.0
    for k in range(60):
        scheduler.report(["a"], 1.0 + k, cost=20.0)
    assert cost_of(scheduler, "a") == pytest.approx(20.0 - 16.0 * (7 / 8) ** 55 * 3 / 8, rel=1e-9)


def test_a_gone_page_that_comes_back_has_its_cost_and_a_new_one_in_its_row_has_not():
    scheduler = CrawlScheduler("Greedy", 100.0, keep_gone=9.0)
    scheduler.add(["a", "b"], change_rate=1.0, last_crawl=0.0, cost=[3.0, 5.0])
    scheduler.report(["a"], 1.0, "gone", cost=3.0)
    scheduler.add(["a"], change_rate=1.0)
    assert cost_of(scheduler, "a") == 3.0
    scheduler.remove(["b"])
    scheduler.add(["c"], change_rate=1.0)
    assert cost_of(scheduler, "c") == pytest.approx(11.0 / 3.0)


def test_a_cost_that_falls_makes_a_page_the_best():
    scheduler = CrawlScheduler("Greedy", 1000.0, burst=9.0)
    scheduler.add([0, 1], change_rate=1.0, last_crawl=0.0, cost=[1.0, 100.0])
    assert scheduler.next(1.0).id == 0
    scheduler.report([1], 1.0, cost=[0.01])
    scheduler.update([1], cost=0.01)
    scheduler.report([0], 1.0)
    assert scheduler.next(2.0).id == 1


def test_rates_are_allocated_by_costs():
    scheduler = CrawlScheduler("ChangeRateCrawl", 30.0)
    rng = np.random.default_rng(0)
    change_rate, cost = rng.uniform(0.5, 1.5, 10), rng.uniform(0.2, 4.0, 10)
    scheduler.add(np.arange(10), last_crawl=0.0, change_rate=change_rate, cost=1.0)
    fetches, time = np.zeros(10), 0.0
    while time < 200.0:
        page, again = scheduler.next(time)
        if page is None:
            time = again
            continue
        scheduler.report([page], time, cost=cost[page])
        fetches[page] += time > 20.0
    rates = 30.0 * change_rate / (cost @ change_rate)
    assert fetches / 180.0 == pytest.approx(rates, rel=0.03)
    same = CrawlScheduler.from_state(scheduler.state())
    assert fetch_times(same, 210.0, 200.0) == fetch_times(scheduler, 210.0, 200.0)


def test_a_restored_scheduler_of_rates_goes_on_as_before():
    scheduler, rng = filled("ChangeRateCrawl", 30.0, cost=1.0), np.random.default_rng(0)
    for time in np.arange(1.0, 8.0, 0.2):
        pages = scheduler.next_batch(time, 1)
        scheduler.report(pages, time, cost=rng.uniform(0.2, 9.0, pages.size))
    same = CrawlScheduler.from_state(scheduler.state())
    assert fetch_times(same, 20.0, 8.0) == fetch_times(scheduler, 20.0, 8.0)


def test_pages_are_asked_for_by_their_value_per_unit_of_cost():
    scheduler = CrawlScheduler("Greedy", 2e5, burst=2.0)
    cost = np.where(np.arange(40) % 2, 2e4, 1e3)
    scheduler.add(np.arange(40), last_crawl=0.0, change_rate=1.0, cost=cost)
    rng, granted, time = np.random.default_rng(0), [], 0.0
    while time < 20.0:
        time += rng.exponential(0.004)
        page = int(rng.integers(40))
        if scheduler.ask(time, page).id is not None:
            granted.append(page)
            scheduler.report([page], time)
    assert cost[granted].sum() == pytest.approx(2e5 * 20.0, rel=0.1)
    expensive = np.mean(np.array(granted) % 2)
    assert expensive < 0.2  # it is a half if values ignore costs


# The cap


def test_each_fetch_reserves_the_largest_cost_until_its_report():
    scheduler = filled(bandwidth=1000.0, cost=1.0, **CAP)
    one, two, three = scheduler.next_batch(0.3, 20)
    assert scheduler.next(0.3) == (None, 1.0)
    assert scheduler.why().startswith("the cap is used up until 1;")
    scheduler.report([one], 0.3, cost=1.0)
    assert scheduler.overview()["cap_left"] == 3.0
    assert scheduler.next(0.4).id is not None
    scheduler.report([two], 0.3)  # its cost is not known: it keeps its reserve
    assert scheduler.next(0.5) == (None, 1.0)
    scheduler.report([three], 0.5, "failed", cost=3.5)
    found = scheduler.overview()
    assert (found["overcharged"], found["period_spend"]) == (1, 10.5)
    assert scheduler.next(0.6) == (None, 1.0)
    scheduler.configure(0.7, cap=14.0)
    assert scheduler.next(0.7).id is not None
    assert scheduler.next(0.7) == (None, 1.0)
    assert len(scheduler.next_batch(1.0, 20)) == 4
    assert scheduler.reset_clock(0.9) is None  # what was spent then is not known any more
    assert scheduler.next(0.95) == (None, 1.0)
    assert len(scheduler.next_batch(1.0, 20)) == 4


@pytest.mark.parametrize("late_first", [True, False])
def test_a_late_report_of_a_lost_fetch_leaves_the_reserve_of_the_next_one(late_first):
    scheduler = CrawlScheduler("Greedy", 1000.0, timeout=0.5, **CAP)
    scheduler.add(["a"], change_rate=1.0, last_crawl=0.0)
    assert scheduler.next(0.3).id == "a"  # it is lost at 0.8
    assert scheduler.next(1.2).id == "a"
    reports = [(0.3, 1.5, 3.0), (1.2, 2.0, 2.0)]  # time, cost, and what is then reserved
    reserved = []
    for time, cost, _ in reports if late_first else reports[::-1]:
        for _ in range(2):  # a report that comes twice counts once
            scheduler.report(["a"], time, cost=cost)
        reserved.append(scheduler.overview(1.3)["period_spend"])
    assert reserved == ([3.0, 2.0] if late_first else [2.0, 2.0])
    assert scheduler.overview()["spend"] == 3.5


def test_reports_of_two_lost_fetches_count_both():
    scheduler = CrawlScheduler("Greedy", 1000.0, timeout=0.5, retry=0.5, **CAP)
    scheduler.add(["a"], change_rate=1.0, last_crawl=0.0, cost=2.5)
    for time in (0.1, 1.1, 3.1):
        assert scheduler.next(time).id == "a"
    assert scheduler.overview()["spend"] == 7.5
    spends = []
    for time, cost in [(1.1, 0.5), (3.1, 1.0), (0.1, 2.0)]:
        scheduler.report(["a"], time, cost=cost)
        spends.append(scheduler.overview()["spend"])
    assert spends == [5.5, 4.0, 3.5]
    assert cost_of(scheduler, "a") == 1.5  # the mean of 2.5, 0.5, 1, 2


def test_pages_that_change_while_they_are_fetched_keep_their_reserve():
    scheduler = CrawlScheduler("Greedy", 1000.0, **{**CAP, "cap": 20.0})
    scheduler.add([*"abc"], change_rate=1.0, last_crawl=0.0, cost=1.0)
    assert len(scheduler.next_batch(0.1, 3)) == 3
    scheduler.remove(["a"])
    scheduler.move(["b"], ["z"])
    scheduler.update(["c"], cost=2.0)
    scheduler.update([], cost=[])
    assert scheduler.report(["a", "b"], 0.1, cost=3.0) == 2
    reserved = lambda: scheduler.overview()["period_spend"]  # noqa: E731
    assert reserved() == 9.0
    scheduler.report([*"zc"], 0.1, cost=[0.5, 1.0])
    assert (reserved(), scheduler.overview()["spend"]) == (4.5, 2.5)
    scheduler.next_batch(0.15, 9)
    scheduler.add(["a"], change_rate=1.0, last_crawl=0.0, cost=1.0)
    assert scheduler.next(0.2).id == "a"
    before = reserved()
    scheduler.report(["a"], 0.1, cost=0.5)  # of the page before
    assert reserved() == before
    scheduler.report(["a"], 0.2, cost=0.5)
    assert reserved() == before - 2.5


def test_pages_that_are_asked_for_keep_to_the_cap():
    scheduler = CrawlScheduler("Greedy", 1000.0, burst=1.0, timeout=0.5, **CAP)
    scheduler.add([*"abcde"], change_rate=1.0, cost=1.0)
    granted = [page for page in "abcde" if scheduler.ask(0.4, page).id]
    assert granted == [*"abc"]
    scheduler.report(granted[:1], 0.4, cost=1.0)
    assert scheduler.ask(0.5, "e").id == "e"
    assert scheduler.ask(0.6, "d") == (None, 1.0)
    scheduler.configure(0.7, cap=5.0)  # less than is spent
    assert scheduler.ask(0.8, "d") == (None, 1.0)
    assert scheduler.ask(1.2, "b").id == "b"  # its fetch before was lost
    scheduler.report(["b"], 0.4, cost=0.5)
    assert scheduler.ask(1.2, "c") == (None, 2.0)
    scheduler.report(["b"], 1.2, cost=0.5)
    assert scheduler.ask(1.2, "c").id == "c"


def test_a_report_whose_time_was_rounded_is_that_of_the_fetch():
    scheduler = filled(bandwidth=1000.0, cost=1.0, **CAP)
    page, _ = scheduler.next(0.3004)
    scheduler.report([page], 0.3, cost=1.0)
    assert scheduler.overview()["period_spend"] == 1.0


def capped(scheduler, fetches, seed=0):
    """Fetch with losses, late reports and random costs; return the spend of each period."""
    rng, time, handed_out = np.random.default_rng(seed), 0.0, 0
    spend, reports = defaultdict(float), []
    while handed_out < fetches:
        time += rng.exponential(0.02)
        due = []
        while reports and reports[0][0] <= time:
            due.append(heapq.heappop(reports))
        kinds = rng.choice(3, len(due), p=[0.8, 0.1, 0.1])
        for kind, status in enumerate(("ok", "failed", "interrupted")):
            if which := [due[k] for k in np.flatnonzero(kinds == kind)]:
                at, pages, sent, cost = map(list, zip(*which, strict=True))
                cost = np.where(rng.random(len(which)) < 0.05, math.nan, cost)
                scheduler.report(pages, sent, status, ended=at, cost=cost)
        count = int(rng.integers(1, 60))
        pages = scheduler.next_batch(time, count)
        costs = CAP["max_cost"] * rng.beta(2.0, 1.0, pages.size)
        costs[rng.random(pages.size) < 0.3] = CAP["max_cost"]
        spend[time // CAP["cap_period"]] += float(costs.sum())
        handed_out += pages.size
        for page, cost in zip(pages.tolist(), costs.tolist(), strict=True):
            if rng.random() < 0.95:
                delay = rng.exponential(rng.choice([0.02, 0.4, 2.0], p=[0.9, 0.08, 0.02]))
                heapq.heappush(reports, (time + delay, page, time, cost))
    return np.array(list(spend.values()))


def largest_spend(scheduler, fetches):
    """Return the largest and the mean spend of a period, both over the cap."""
    scheduler.add(np.arange(500), change_rate=1.0, last_crawl=0.0)
    spend = capped(scheduler, fetches)
    cap = scheduler.pace.spending.cap
    return spend.max() / cap, spend[:-1].mean() / cap


@pytest.mark.parametrize("kind", [CrawlScheduler, ShardedScheduler])
def test_the_cap_is_never_exceeded(kind):
    scheduler = kind("Greedy", 1e4, timeout=0.5, burst=1.0, **{**CAP, "cap": 200.0})
    largest, mean = largest_spend(scheduler, 3000)
    assert largest <= 1.0
    assert mean > 0.8  # the rest is reserved for fetches that are lost or late


@pytest.mark.parametrize("period", [0.1, 0.2, 0.3, 1.0 / 3.0, 0.7])
def test_a_period_starts_when_next_says(period):
    scheduler = filled(bandwidth=1e9, **{**CAP, "cap": 3.0, "cap_period": period})
    time = 0.0
    for _ in range(200):
        time += 1e-6
        page, _ = scheduler.next(time)
        assert page is not None
        scheduler.report([page], time)
        before, (page, again) = time, scheduler.next(time)
        assert page is None
        assert again // period == before // period + 1.0
        time = again


def test_spend_and_cap_survive_a_restart(tmp_path):
    kept = filled(bandwidth=1000.0, cost=1.0, **CAP)
    with DurableScheduler(tmp_path, filled(bandwidth=1000.0, cost=1.0, **CAP)) as durable:
        for scheduler in (kept, durable):
            ids = scheduler.next_batch(0.3, 20)
            scheduler.report(ids[:2], 0.3, cost=[1.0, 2.5])
            scheduler.configure(0.4, cap=11.0)
        durable.journal.sync()
    for _ in range(2):  # by the journal, then by a snapshot
        with DurableScheduler(tmp_path) as durable:
            assert durable.overview() == kept.overview()
            assert durable.next(0.5) == kept.next(0.5)
            assert durable.next(0.5) == kept.next(0.5) == (None, 1.0)
            assert durable.describe(0) == kept.describe(0)
            durable.save()


def test_shards_keep_one_bandwidth_and_one_cap(tmp_path):
    def opened():
        return ShardedScheduler("Greedy", 5.0, shards=3, burst=0.0, folder=tmp_path, **CAP)

    with opened() as shards:
        shards.add(np.arange(30), change_rate=1.0, last_crawl=0.0)
        page, _ = shards.next(0.2)
        shards.report([page], 0.2, cost=2.0)
        assert shards.next(0.2) == (None, pytest.approx(0.6))
        assert shards.next(0.6).id is not None
        shards.configure(0.6, bandwidth=1e6)
        assert shards.overview()["0"]["cap_left"] == 5.0
        assert len(shards.next_batch(0.7, 9)) == 1
        assert shards.next(0.7) == (None, 1.0)
        assert shards.why() == "the cap is used up until 1"
    with opened() as shards:
        assert shards.next(0.8) == (None, 1.0)
        assert len(shards.next_batch(1.0, 9)) == 3
    with pytest.raises(ValueError, match=r"max_cost must be 3.0 as in"):
        ShardedScheduler("Greedy", 5.0, shards=3, folder=tmp_path, **{**CAP, "max_cost": 2.0})


# Bad input


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: CrawlScheduler("Greedy", 1.0, cap=5.0), "cap_period and max_cost must be given"),
        (lambda: CrawlScheduler("Greedy", 1.0, max_cost=5.0), "cap and cap_period must be given"),
        (lambda: filled(**{**CAP, "cap": 2.0}), "cap must be at least max_cost, 3, got 2"),
        (lambda: filled(**{**CAP, "max_cost": 0.0}), "max_cost must be"),
        (lambda: filled().configure(1.0, cap=5.0), "cap must be left out, got 5.0"),
        (lambda: filled(**CAP).configure(1.0, cap=1.0), "cap must be at least max_cost"),
        (lambda: filled(cost=0.0), "cost must be > 0, or NaN where it is not known, got 0.0"),
        (lambda: filled(cost=math.inf), "cost must be a finite number"),
        (lambda: filled(cost=[1.0, 2.0]), "cost must be a finite number or 20 of them"),
        (lambda: filled().report([1], 1.0, cost=-2.0), "cost must be > 0"),
        (lambda: filled().update([1], cost=-2.0), "cost must be > 0"),
    ],
)
def test_bad_costs_and_caps_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
