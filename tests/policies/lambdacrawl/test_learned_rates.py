"""Change rates learned epoch by epoch, and the crawl rates that follow."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from policies import make, solvers
from policies.base.live import empty_log
from policies.estimators import fit_change_rates, match_moments
from policies.estimators.change_rates import fit_histories
from policies.estimators.moments import match_histories
from policies.lambdacrawl.rate_learner import LearnedRates
from tests.policies.small_world import SmallWorld, play

EVERY = pytest.mark.parametrize(
    "name", ["LambdaLearnAndCrawl", "LambdaLearnAndCrawlApprox", "LambdaLearnAndCrawlBinary"]
)
FORMS = pytest.mark.parametrize("form", ["rates", "page"])


def world_of(seed=0, *, num_pages=30, form="rates", horizon=12.0, share=0.5, **more):
    """A world of mixed observation whose change rates, importance and events a seed draws."""
    rng = np.random.default_rng([seed, 9])
    return SmallWorld(
        2.0 * rng.random(num_pages),
        bandwidth=0.3 * num_pages,
        horizon=horizon,
        seed=seed,
        form=form,
        **{"importance": rng.random(num_pages), "complete": rng.random(num_pages) < share, **more},
    )


def slow_estimate(intervals, smoothing=0.5):
    """Root of eq. 10 with its imaginary intervals, by bisection; intervals as (length, changed)."""
    rows = [*intervals, (smoothing, True), (smoothing, False)]

    def score(rate):
        return sum(
            a * np.exp(-a * rate) / -np.expm1(-a * rate) if changed else -a for a, changed in rows
        )

    return brentq(score, 1e-9, 1e4, xtol=1e-14, rtol=1e-12)


@FORMS
@pytest.mark.parametrize(
    ("name", "solve"),
    [
        ("LambdaLearnAndCrawl", solvers.harmonic),
        ("LambdaLearnAndCrawlApprox", solvers.harmonic_approx),
    ],
)
def test_estimates_and_rates_are_those_of_the_algorithm(name, solve, form):
    world = world_of(form=form)
    policy = make(name, world)
    complete, m = world.problem.complete, world.crawls.size
    crawls, counts = [[] for _ in range(m)], np.zeros(m)
    plans = 0
    while world.time < world.horizon:
        log = world.last_log()
        for page, elapsed, changed in zip(log.page, log.elapsed, log.changed, strict=True):
            if not complete[page]:
                crawls[page].append((float(elapsed), bool(changed)))
        np.add.at(counts, log.signal_page, 1)
        action, _ = policy.predict(world.observation)
        if form == "rates" or world.time >= plans * (1.0 - 1e-9):
            estimate = policy.of_lane().estimate()
            expected = (counts + 0.5) / (world.time + 0.5)
            if any(crawls):
                slow = np.array([slow_estimate(rows) for rows in crawls])
                expected = np.where(complete, expected, slow)
            expected = np.where(complete | any(crawls), expected, 1.0)
            assert estimate == pytest.approx(expected, rel=1e-9)
            right = solve(world.problem.importance, estimate, world.bandwidth, complete=complete)
            assert policy.of_lane().allocation().rates == pytest.approx(right.rates, rel=1e-12)
            assert policy.of_lane().allocation().rates.sum() == pytest.approx(
                world.bandwidth, rel=1e-9
            )
            if form == "rates":
                assert np.array_equal(world.declared, estimate)
                assert action == pytest.approx(
                    np.where(complete, right.probabilities, right.rates), rel=1e-12
                )
            plans += 1
        world.step(action)
    assert plans in (12, 13)  # the last slot may fall on the horizon
    assert sum(map(len, crawls)) > 30


def distances(seed, epochs, num_pages=20):
    """Distance of the rates of the n-th epoch from the optimal ones, relative to the bandwidth."""
    world = world_of(seed, num_pages=num_pages, horizon=max(epochs) + 1.0)
    policy = make("LambdaLearnAndCrawl", world)
    right = solvers.harmonic(
        world.problem.importance,
        world.change_rate,
        world.bandwidth,
        complete=world.problem.complete,
    )
    gaps = []
    for epoch in range(max(epochs) + 1):
        action, _ = policy.predict(world.observation)
        if epoch in epochs:
            gap = np.abs(policy.of_lane().allocation().rates - right.rates).sum()
            gaps.append(gap / world.bandwidth)
        world.step(action)
    return gaps


def test_rates_converge_to_the_optimal_ones():
    """Proposition 8: errors fall like one over the root of the number of epochs."""
    mean = np.mean([distances(seed, (0, 15, 60, 240)) for seed in range(6)], axis=0)
    assert np.all(mean[1:] < 0.7 * mean[:-1])
    assert mean[3] < 0.05
    assert mean[3] / mean[1] == pytest.approx(1.0 / 4.0, rel=0.35)


def test_signals_are_answered_in_their_share():
    world = world_of(1, form="page", share=1.0, horizon=200.0, num_pages=12)
    policy = make("LambdaLearnAndCrawl", world)
    play(world, policy, round(40 * world.bandwidth))
    before, since = world.crawls.copy(), world.time
    play(world, policy)
    signals = [np.sum((own > since) & (own <= world.time)) for own in world.changes]
    expected = policy.of_lane().allocation().probabilities * signals
    assert world.crawls - before == pytest.approx(expected, rel=0.15, abs=6.0)


def test_the_binary_one_keeps_a_floor_and_forgets_signals_where_it_can():
    for floor in (0.0, 0.4, 1.0):
        world = world_of(form="page")
        policy = make("LambdaLearnAndCrawlBinary", world, floor=floor)
        play(world, policy, 40)
        rates = policy.of_lane().allocation().rates
        assert rates.min() >= floor * world.bandwidth / 30 * (1.0 - 1e-9)
        right = solvers.binary_poisson(
            world.problem.importance, policy.of_lane().estimate(), world.bandwidth, floor=floor
        )
        assert rates == pytest.approx(right.rates, rel=1e-12)
        mute = world_of(form="page", complete=False)
        again = make("LambdaLearnAndCrawlBinary", mute, floor=floor)
        play(mute, again, 40)
        assert np.array_equal(again.of_lane().estimate(), policy.of_lane().estimate())


def test_the_binary_one_answers_as_many_signals_as_it_would_crawl():
    world = world_of(horizon=5.0)
    policy = make("LambdaLearnAndCrawlBinary", world)
    actions = play(world, policy)
    complete, plan = world.problem.complete, policy.of_lane().allocation()
    chances = np.minimum(plan.rates / policy.of_lane().estimate(), 1.0)
    assert actions[-1] == pytest.approx(np.where(complete, chances, plan.rates), rel=1e-12)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_window_follows_change_rates_that_step(share):
    errors = {}
    for window in (None, 60.0):
        rng = np.random.default_rng(7)
        changes = [
            np.sort(np.append(rng.uniform(0, 100, rng.poisson(200)), rng.uniform(100, 160, 12)))
            for _ in range(10)
        ]
        given = {"num_pages": 10, "horizon": 160.0, "share": share, "importance": 1.0}
        world = world_of(2, changes=changes, **given)
        policy = make("LambdaLearnAndCrawl", world, window=window)
        play(world, policy)
        errors[window] = np.abs(policy.of_lane().estimate() - 0.2).mean()
    assert errors[60.0] < 0.1
    assert errors[None] > 3.0 * errors[60.0]


def test_bounds_hold_for_pages_that_are_crawled_for_their_changes():
    world = world_of(horizon=20.0)
    policy = make("LambdaLearnAndCrawl", world, bounds=(0.6, 0.9))
    play(world, policy)
    estimate, complete = policy.of_lane().estimate(), world.problem.complete
    assert np.all((estimate >= 0.6) & (estimate <= 0.9) | complete)
    assert estimate[~complete].min() == 0.6
    assert estimate[~complete].max() == 0.9
    assert estimate[complete].max() > 0.9


@EVERY
def test_every_prediction_declares_and_updating_does_not(name):
    world = world_of(5)
    policies = [make(name, world, initial=initial) for initial in (1.0, 3.0)]
    for _ in range(4):
        world.declared = None
        for policy in policies:
            policy.update()
        assert world.declared is None
        for policy in (*policies, *policies):
            action, _ = policy.predict(world.observation)
            assert np.array_equal(world.declared, policy.of_lane().estimate())
        world.step(action)


def test_an_episode_that_is_joined_is_learned_from_the_step_before_on():
    """Signals are counted over the time in which they were observed."""
    for form, step in (("rates", 1.0), ("page", 1.0 / 9.0)):
        world = world_of(5, form=form, share=1.0)
        play(world, make("LambdaLearnAndCrawl", world), round(6.0 / step))
        joined, counts, begin = make("LambdaLearnAndCrawl", world), np.zeros(30), world.time - step
        planned = []
        while world.time < 10.5:
            np.add.at(counts, world.last_log().signal_page, 1)
            action, _ = joined.predict(world.observation)
            epoch = int(world.time * (1.0 + 1e-9))
            if epoch not in planned:
                planned.append(epoch)
                expected = (counts + 0.5) / (world.time - begin + 0.5)
            assert joined.of_lane().estimate() == pytest.approx(expected, rel=1e-12)
            world.step(action)
        assert planned == [6, 7, 8, 9, 10]


def by_likelihood(crawls, start):
    return fit_histories(crawls, 0.5, start=start).change_rate


def by_moments(crawls, start):
    return match_histories(crawls, 0.5).change_rate


def crawl_log(page, elapsed, changed, time, signal_page=(), signal_time=()):
    n = len(page)
    return empty_log()._replace(
        **{"page": np.array(page, np.int64), "time": time, "elapsed": elapsed, "changed": changed},
        signals=np.zeros(n, np.int64),
        signal_page=np.array(signal_page, np.int64),
        signal_time=np.array(signal_time, np.float64),
        signal_source=np.zeros(len(signal_page), np.int64),
    )


def logs(rng, rate, days=20):
    """Yield a log per day, and its end: of crawls at random times, and of every change."""
    last, shown = np.zeros(len(rate)), np.zeros(len(rate))
    for day in range(days):
        page = rng.integers(0, len(rate) - 1, 2 * len(rate))  # the last page is never crawled
        time = np.sort(rng.uniform(day, day + 1, page.size))
        elapsed = np.empty(page.size)
        for k, i in enumerate(page):
            elapsed[k], last[i] = time[k] - last[i], time[k]
        changed = rng.random(page.size) < -np.expm1(-rate[page] * elapsed)
        signal_page = np.repeat(np.arange(len(rate)), rng.poisson(rate))
        shown += np.bincount(signal_page, minlength=len(rate))
        signal_time = rng.uniform(day, day + 1, signal_page.size)
        yield crawl_log(page, elapsed, changed, time, signal_page, signal_time), day + 1.0


@pytest.mark.parametrize("window", [None, 6.5])
@pytest.mark.parametrize(
    ("method", "fit"), [(by_likelihood, fit_change_rates), (by_moments, match_moments)]
)
def test_estimates_are_the_fit_of_what_counts(method, fit, window):
    rng = np.random.default_rng(2)
    complete = np.arange(30) % 3 == 0
    learned = LearnedRates(complete, method, initial=7.0, window=window, smoothing=0.3)
    assert learned.estimate().tolist() == [7.0] * 30
    past = []
    for log, time in logs(rng, rng.gamma(1.0, 1.0, 30)):
        past.append(log)
        learned.add(log, time)
        if time % 3.0 == 0.0:
            learned.estimate()[:] = -1.0  # of a copy
    since, span = (0.0, 20.0) if window is None else (20.0 - window, window)
    page, elapsed, changed, time, signal_page, signal_time = (
        np.concatenate([getattr(log, name) for log in past])
        for name in ("page", "elapsed", "changed", "time", "signal_page", "signal_time")
    )
    estimate = learned.estimate()
    for i in range(30):
        own = (page == i) & (time > since)
        expected = fit(elapsed[own], changed[own], smoothing=0.5).change_rate[0]
        if complete[i]:
            expected = (np.sum((signal_page == i) & (signal_time > since)) + 0.3) / (span + 0.3)
        assert estimate[i] == pytest.approx(expected, rel=1e-11)
    learned.closed = True
    learned.add(crawl_log([1], np.ones(1), np.ones(1, np.bool_), np.full(1, 21.0)), 21.0)
    np.testing.assert_array_equal(learned.estimate(), estimate)


def test_the_window_moves_without_crawls():
    learned = LearnedRates(np.zeros(2, np.bool_), by_likelihood, window=3.0)
    learned.add(crawl_log([0, 0], np.ones(2), np.ones(2, np.bool_), np.array([1.0, 2.0])), 2.0)
    none = crawl_log([], np.zeros(0), np.zeros(0, np.bool_), np.zeros(0))
    first = learned.estimate()[0]
    learned.add(none, 4.0)  # the crawl at 1 is no more
    assert math.log(2.0) / 0.5 < learned.estimate()[0] < first
    learned.add(none, 5.0)
    np.testing.assert_allclose(learned.estimate(), math.log(2.0) / 0.5)


def test_signals_before_learning_began_do_not_count():
    learned = LearnedRates(np.ones(1, np.bool_), by_likelihood, since=2.0)
    none = np.zeros(0)
    learned.add(crawl_log([], none, none, none, [0, 0, 0], [1.5, 2.25, 2.75]), 3.0)
    assert learned.estimate()[0] == pytest.approx((2 + 0.5) / (1.0 + 0.5))
