"""A scheduler that learns change rates and signal quality from what fetches find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies.estimators.gamma_beliefs import Beliefs
from policies.live.scheduler import CrawlScheduler, DurableScheduler
from policies.live.scheduler.learning import LEARNED, PageLearner
from policies.values import effective_elapsed, greedy_ncis


class Site:
    """Pages that change and send signals; fetches tell whether they changed."""

    def __init__(self, m: int, seed: int, bandwidth: float, days: float) -> None:
        rng = np.random.default_rng(seed)
        self.bandwidth, self.days, self.m = bandwidth, days, m
        self.change_rate = rng.gamma(1.0, 2.0, m) + 0.01
        self.recall, self.false = rng.uniform(0.2, 0.9, m), rng.uniform(0.0, 0.5, m)
        self.changes = [np.sort(rng.random(rng.poisson(r * days)) * days) for r in self.change_rate]
        signals = []
        for page, changes in enumerate(self.changes):
            heard = changes[rng.random(changes.size) < self.recall[page]]
            false = rng.random(rng.poisson(self.false[page] * days)) * days
            signals += [(float(time), page) for time in np.concatenate([heard, false])]
        self.signals = sorted(signals)
        self.copies, self.steps = np.zeros(m), 0

    def play(self, scheduler: Any, steps: int | None = None) -> tuple[float, list[int]]:
        """Go on with a fetch every 1 / bandwidth, to the end or some steps.

        Return the share of time fresh in the last half, and pages.
        """
        copies, fresh, half = self.copies, 0.0, self.days / 2.0
        pages = []
        for _ in range(steps or int(self.days * self.bandwidth)):
            self.steps += 1
            time = self.steps / self.bandwidth
            while self.signals and self.signals[0][0] <= time:
                moment, page = self.signals.pop(0)
                scheduler.signal([page], moment)
            page = scheduler.next(time).id
            assert page is not None
            changed = self.changed(page, copies[page], time)
            fresh += self.fresh_time(page, copies[page], time, half)
            scheduler.report([page], time, changed=[changed])
            copies[page] = time
            pages.append(int(page))
        fresh += sum(self.fresh_time(k, copies[k], self.days, half) for k in range(self.m))
        return fresh / (self.m * half), pages

    def changed(self, page: int, low: float, high: float) -> bool:
        return bool(np.ptp(np.searchsorted(self.changes[page], [low, high], side="right")))

    def fresh_time(self, page: int, low: float, high: float, start: float) -> float:
        """Return the fresh time from a copy to the next one, after a start."""
        place = np.searchsorted(self.changes[page], low, side="right")
        first = self.changes[page][place] if place < self.changes[page].size else np.inf
        return max(min(first, high) - max(low, start), 0.0)


def scheduler_of(site: Site, *, learn: bool = True, **columns: Any) -> CrawlScheduler:
    scheduler = CrawlScheduler("GreedyNCIS", site.bandwidth, learn=learn)
    scheduler.add(np.arange(site.m), last_crawl=0.0, **columns)
    return scheduler


def truth(site: Site) -> dict[str, Any]:
    return dict(zip(LEARNED, (site.change_rate, site.recall, site.false), strict=True))


@pytest.mark.parametrize("sources", [1, 2])
def test_beliefs_are_those_of_plain_updates(sources: int) -> None:
    rng, learner = np.random.default_rng(0), PageLearner(2.0, 3, sources)
    plain = Beliefs(np.zeros(3, np.int64), sources, 2.0)
    for _ in range(40):
        rows = np.sort(rng.choice(3, 2, replace=False))
        elapsed, signals = rng.random(2) + 0.1, rng.poisson(1.0, (2, sources)).astype(float)
        changed = rng.random(2) < 0.5
        learner.learn(rows, elapsed, signals, changed)
        for k, row in enumerate(rows):
            plain.learn(int(row), elapsed[k], signals[k], bool(changed[k]))
    np.testing.assert_allclose(learner.counts, plain.counts, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(learner.exposures, plain.exposures, rtol=1e-4, atol=1e-5)
    alpha, evidence, rate = np.split(plain.typical(slice(None)).T, [1, 1 + sources])
    columns = learner.columns(np.arange(3))
    true = np.atleast_2d(columns["recall"]) * columns["change_rate"]
    false = np.atleast_2d(columns["false_signal_rate"])
    np.testing.assert_allclose(np.log1p(true / false), evidence, rtol=1e-4)
    np.testing.assert_allclose(true + false, rate, rtol=1e-4)
    np.testing.assert_allclose(columns["change_rate"] - true.sum(axis=0), alpha[0], rtol=1e-4)


def test_shared_distributions_are_those_of_the_pages() -> None:
    """Pages of one rate, seen long: a page without data is estimated as they are."""
    rng, m = np.random.default_rng(1), 400
    learner = PageLearner(1.0, m + 1)
    rows, none = np.arange(m), np.zeros((m, 1))
    for _ in range(60):
        learner.learn(rows, np.ones(m), none, rng.random(m) < -np.expm1(-0.3))
    learner.share(np.arange(m + 1))
    assert learner.columns(np.array([m]))["change_rate"][0] == pytest.approx(0.3, rel=0.1)
    assert learner.fetches.tolist() == [60 * m, 120 * m, 0]


def test_the_largest_value_by_the_learned_columns_is_fetched() -> None:
    site = Site(12, 3, bandwidth=6.0, days=40.0)
    scheduler = scheduler_of(site, importance=np.linspace(0.5, 2.0, 12))
    copies, counted, position = np.zeros(12), np.zeros(12), 0
    for step in range(1, 200):
        time = step / site.bandwidth
        while site.signals[position][0] <= time:
            counted[site.signals[position][1]] += 1.0
            scheduler.signal([site.signals[position][1]], site.signals[position][0])
            position += 1
        known = {name: scheduler.pages.columns[name][:12] for name in ("importance", *LEARNED)}
        signals = {name: known[name] for name in LEARNED}
        ages = effective_elapsed(time - copies, counted, **signals)
        values = greedy_ncis(ages, **known)
        page = int(scheduler.next(time).id)
        assert values[page] >= values.max() * (1.0 - 1e-9), step
        scheduler.report([page], time, changed=[site.changed(page, copies[page], time)])
        copies[page], counted[page] = time, 0.0


def test_learning_is_nearly_as_fresh_as_knowing() -> None:
    shares = {"known": [], "learned": [], "equal": []}  # type: dict[str, list[float]]
    for seed in range(3):
        given: dict[str, Any] = {"learned": {"learn": True}}
        given["known"] = {"learn": False, **truth(Site(60, seed, bandwidth=60.0, days=20.0))}
        given["equal"] = {name: np.mean(column) for name, column in given["known"].items()}
        given["equal"]["learn"] = False
        for name, columns in given.items():
            site = Site(60, seed, bandwidth=60.0, days=20.0)
            shares[name].append(site.play(scheduler_of(site, **columns))[0])
    known, learned, equal = (np.mean(values) for values in shares.values())
    assert known - learned < 0.35 * (known - equal), shares


@pytest.mark.parametrize("speaking", [False, True])
@pytest.mark.parametrize("sources", [2, 3])
def test_silent_sources_starve_no_page(sources: int, speaking: bool) -> None:
    """Pages are added as a crawler finds them, one first; it is no staler than round robin."""
    shares = []
    for policy, learn in (("RoundRobin", False), ("GreedyNCIS", True)):
        site, rest = Site(60, 2, bandwidth=60.0, days=20.0), np.arange(1, 60)
        if not speaking:
            site.signals = []
        scheduler = CrawlScheduler(policy, 60.0, learn=learn, num_sources=sources)
        scheduler.add([0], last_crawl=0.0)
        site.play(scheduler, 1)
        scheduler.add(rest, last_crawl=0.0)
        fresh, pages = site.play(scheduler, 1199)
        shares.append(fresh)
        assert set(pages[-600:]) == set(range(60))
    assert shares[1] > shares[0] + (0.03 if speaking else -0.005), shares


def test_the_prior_has_the_scale_of_all_pages() -> None:
    """A change per mean interval between fetches, whichever page was added first."""
    one, all_at_once = (CrawlScheduler("GreedyNCIS", 10.0, learn=True) for _ in range(2))
    one.add(["a"])
    one.add(["b", "c", "d"])
    all_at_once.add(["a", "b", "c", "d"])
    for scheduler in (one, all_at_once):
        learner = scheduler.pages.learner
        assert learner is not None
        assert learner.first()["change_rate"] > 0.0
        np.testing.assert_allclose(learner.shared[1], [0.4, 1.0, 0.8])


def test_given_columns_are_where_pages_start() -> None:
    site = Site(30, 5, bandwidth=10.0, days=5.0)
    scheduler = scheduler_of(site, **truth(site))
    assert scheduler.pages.learner is not None
    for name, column in scheduler.pages.learner.columns(np.arange(30)).items():
        np.testing.assert_allclose(column, truth(site)[name], rtol=0.02, atol=1e-3)
    scheduler.update([4], change_rate=[7.0])
    after = scheduler.pages.learner.columns(np.array([4]))
    assert after["change_rate"][0] == pytest.approx(7.0, rel=0.02)


@pytest.mark.parametrize(("interval", "changes"), [(0.5, 1), (10.0, 20)])
def test_a_rate_that_is_given_counts_for_a_change_or_those_of_an_interval(
    interval: float, changes: int
) -> None:
    """After 3 days without a change a rate of 2 is E / (E / 2 + 3), with ln E = psi(1 + changes).

    psi(1 + n) is 1 + 1/2 + .. + 1/n minus Euler's constant.
    """
    learner = PageLearner(interval, 1)
    columns = {"change_rate": 2.0, "recall": 0.0, "false_signal_rate": 0.5}
    arrays = {name: np.array([rate]) for name, rate in columns.items()}
    learner.begin(np.zeros(1, int), arrays, LEARNED)
    learner.learn(np.zeros(1, int), np.array([3.0]), np.zeros((1, 1)), np.array([False]))
    expected = np.exp(sum(1.0 / k for k in range(1, changes + 1)) - np.euler_gamma)
    found = learner.columns(np.zeros(1, int))["change_rate"][0]
    assert found == pytest.approx(expected / (expected / 2.0 + 3.0), rel=1e-5)


def test_only_given_columns_count_as_data() -> None:
    """A change rate alone says nothing of the quality of signals, nor that of the change rate."""
    for names, given in ((["change_rate"], [0]), (["recall", "false_signal_rate"], [1, 2, 3, 4])):
        scheduler = CrawlScheduler("GreedyNCIS", 4.0, learn=True, num_sources=2)
        columns = {name: 0.3 if name == "change_rate" else np.full((2, 4), 0.3) for name in names}
        scheduler.add(list("abcd"), **columns)
        assert scheduler.pages.learner is not None
        counts = scheduler.pages.learner.counts[:4]
        assert np.flatnonzero(counts.all(axis=0)).tolist() == given
        assert counts[:, [k for k in range(5) if k not in given]].max() == 0.0


@pytest.mark.parametrize("sources", [1, 2])
def test_pages_far_from_what_is_believed_are_explored(sources: int) -> None:
    """Every page is fetched within 12 mean intervals, one of little importance a bit later.

    The mean interval is 2. Pages 0, 4, .. are believed to change too often to be worth a fetch, and
    pages 1, 5, .. never; pages 2, 6, .. have a tenth of the importance of the others.
    """
    m, kind = 24, np.arange(24) % 4
    scheduler = CrawlScheduler("GreedyNCIS", m / 2.0, learn=True, num_sources=sources)
    importance, rates = (
        np.where(kind == 2, 0.1, 1.0),
        np.select([kind == 0, kind == 1], [1e4, 1e-9], 1.0),
    )
    scheduler.add(np.arange(m), last_crawl=0.0, importance=importance, change_rate=rates)
    copies, widest = np.zeros(m), np.zeros(m)
    for step in range(1, 60 * m):
        time = 2.0 * step / m
        page = int(scheduler.next(time).id)
        scheduler.report([page], time, changed=[kind[page] != 1])
        widest = np.maximum(widest, time - copies)
        copies[page] = time
    bound = 12.0 + np.where(kind == 2, importance.mean() / 0.1, 0.0)
    assert np.all(widest / 2.0 <= bound), widest / 2.0
    assert widest[kind == 0].min() > 2.0 * 8.0  # no sooner than need be


def test_an_old_page_has_the_rate_at_which_a_fetch_is_worth_most() -> None:
    """Whatever the rate of a page, its fetch is worth at most as much."""
    scheduler = CrawlScheduler("GreedyNCIS", 2.0, learn=True)
    scheduler.add(["a", "b"], last_crawl=0.0, change_rate=[0.5, 1e6])  # mean interval 1
    for time in np.arange(1.0, 12.0):
        scheduler.configure(time)
        scheduler.report(["a"], time, changed=[True])
    state, learner = scheduler.describe("b", 11.0), scheduler.pages.learner
    assert learner is not None
    assert [counts.any() for counts in learner.counts[:2]] == [True, False]  # b is unknown again
    for factor in np.geomspace(0.1, 10.0, 21):
        other = greedy_ncis(
            11.0,
            importance=1.0,
            change_rate=state["change_rate"] * factor,
            recall=0.0,
            false_signal_rate=0.0,
        )
        assert other <= state["value"] * (1.0 + 1e-9)
    assert state["value"] == pytest.approx(0.29843 * 11.0, rel=1e-4)


def test_what_is_not_told_is_not_learned() -> None:
    scheduler = CrawlScheduler("GreedyNCIS", 10.0, learn=True)
    scheduler.add(["a", "b", "new"], last_crawl=[0.0, 0.0, np.nan])
    before = {name: column.copy() for name, column in scheduler.pages.columns.items()}
    scheduler.report(["a"], 1.0)
    scheduler.report(["new"], 1.0, changed=[True])  # its first copy
    scheduler.report(["b"], 1.0, "failed", changed=[True])
    for name, column in scheduler.pages.columns.items():
        np.testing.assert_array_equal(column, before[name])
    scheduler.report(["a", "a"], [2.0, 3.0], changed=[True, False])
    assert scheduler.pages.columns["change_rate"][0] > before["change_rate"][0]


def test_a_learning_scheduler_is_restored(tmp_path: Path) -> None:
    site, same = (Site(20, 7, bandwidth=20.0, days=10.0) for _ in range(2))
    _, expected = site.play(scheduler_of(site), steps=150)
    with DurableScheduler(tmp_path, scheduler_of(same)) as first:
        _, pages = same.play(first, steps=80)
    with DurableScheduler(tmp_path) as second:
        second.save()
    with DurableScheduler(tmp_path) as third:
        assert third.scheduler.pages.learner is not None
        assert pages + same.play(third, steps=70)[1] == expected


def test_a_bad_result_is_named_and_changes_nothing() -> None:
    scheduler = CrawlScheduler("GreedyNCIS", 10.0, learn=True)
    scheduler.add(["a"], last_crawl=0.0)
    for changed in ([True, False], [0.5], "yes"):
        with pytest.raises(ValueError, match="changed"):
            scheduler.report(["a"], 1.0, changed=changed)
    assert scheduler.time == 0.0


def test_a_scheduler_of_many_sources_compiles() -> None:
    CrawlScheduler("GreedyNCIS", 10.0, num_sources=12, learn=True).warm()


@pytest.mark.parametrize("ahead", [1e5, 1e3])
def test_intervals_of_a_clock_that_was_ahead_are_forgotten(ahead: float) -> None:
    """Of 20 pages, 10 are fetched a day, and every second fetch finds a change."""
    scheduler, now = CrawlScheduler("GreedyNCIS", 10.0, learn=True, burst=1.0), 0.0
    scheduler.add(np.arange(20), last_crawl=0.0)

    def crawl() -> None:
        nonlocal now
        for k in range(600):
            now += 0.1
            page = scheduler.next(now).id
            if page is not None:
                scheduler.report([page], now, changed=[k % 2 == 0])

    crawl()
    before = {page: scheduler.describe(page)["change_rate"] for page in range(20)}
    pages = scheduler.next_batch(now + ahead, 3).tolist()
    scheduler.report(pages, now + ahead, changed=[False] * len(pages))
    assert all(scheduler.describe(page)["change_rate"] < 0.1 * before[page] for page in pages)
    scheduler.reset_clock(now)
    rates = {page: scheduler.describe(page)["change_rate"] for page in range(20)}
    assert all(0.1 < rates[page] < 2.0 for page in pages)
    others = set(before) - {*pages}
    assert all(rates[page] == before[page] for page in others)
    crawl()
    assert all(0.1 < scheduler.describe(page)["change_rate"] < 2.0 for page in range(20))


def test_a_clock_that_was_ahead_by_little_forgets_nothing() -> None:
    scheduler = CrawlScheduler("GreedyNCIS", 10.0, learn=True)
    scheduler.add(np.arange(20), last_crawl=0.0)
    scheduler.next(5.0)
    scheduler.report(np.arange(20), 5.0, changed=np.arange(20) < 10)
    before = [scheduler.describe(page)["change_rate"] for page in range(20)]
    scheduler.reset_clock(4.0)  # the mean interval is 2 days
    assert [scheduler.describe(page)["change_rate"] for page in range(20)] == before
    scheduler.next(9.0)
    scheduler.reset_clock(3.5)
    assert len({scheduler.describe(page)["change_rate"] for page in range(20)}) == 1


def test_a_clock_turned_back_before_the_first_page_leaves_the_prior():
    back, plain = (CrawlScheduler("GreedyNCIS", 4.0, learn=True, start=s) for s in (5.0, 0.0))
    back.reset_clock(0.0)
    for each in (back, plain, CrawlScheduler.from_state(back.state())):
        each.add(["a", "b"])
        assert each.describe("a")["change_rate"] == plain_rate(2 / 4.0)


def plain_rate(interval):
    """Return the estimate of a page without data, whose prior is of a mean interval."""
    learner = PageLearner(interval, 1)
    return float(learner.first()["change_rate"])
