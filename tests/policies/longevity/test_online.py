"""Curve fitting, divergence bounds and Cho and Garcia-Molina's policy, as they crawl."""

from __future__ import annotations

import time

import numpy as np
import pytest

from crawl_envs.types import Problem
from crawl_envs.types.copies import Sketches, sketch_of
from policies import bind, values
from policies.base.live import LivePages, empty_log
from policies.estimators import fit_change_rates, improved_rate
from policies.longevity.bounds import DivergenceBounds
from policies.longevity.cgm import ChoGarciaMolina
from policies.longevity.curve_fitting import CurveFitting
from policies.longevity.offline import UniformRefresh
from policies.values.divergence.one_region import region_period, region_utility
from policies.values.divergence.regions import RegionCurves
from tests.policies.curve_fits import combined, fit_curve
from tests.policies.longevity.fragment_play import crawls, fragments, play

TICK = 0.5
HIDDEN = {"reveal": "importance"}


def up_to_tick(wait):
    return np.ceil(wait / TICK - 1e-6) * TICK


def test_curve_fitting_waits_for_its_period_within_learning_and_risk():
    env = fragments(horizon=90.0, **HIDDEN)
    policy = bind(CurveFitting(threshold=0.3, learning=3.0, risk=55.0), env)
    due, kinds = {}, {"learning": 0, "period": 0, "risk": 0}

    def each(log, tracker):
        for page, elapsed in zip(log.page, log.elapsed, strict=True):
            if page in due:
                bound, which = due[page]
                assert elapsed == pytest.approx(up_to_tick(bound))
                kinds[which] += 1
        state = policy.update()
        for page in log.page:
            ages, divergences = combined(state.profiles, page)
            fit = fit_curve(ages, divergences)
            weight = tracker.problem.importance[page]
            waits = {
                "learning": 3.0 * state.crawls[page],
                "risk": 55.0 * 0.3 / weight,
                "period": region_period(fit.items, fit.share, fit.rate, 0.3 / weight),
            }
            if len(ages) >= 4:
                which = min(waits, key=waits.get)
                due[page] = waits[which], which

    play(env, policy, 0, each)
    assert all(count > 3 for count in kinds.values()), kinds


def test_the_urgency_with_a_budget_is_the_utility_of_the_fitted_curve():
    env = fragments("page", horizon=40.0, **HIDDEN)
    policy = bind(CurveFitting(learning=1e6), env)  # nothing is ever overdue
    play(env, policy)
    state, tracker = policy.of_lane(), env.unwrapped.tracker(0)
    curves, urgency = state.curves, state._urgency(tracker)
    assert urgency.overdue.max() < 1.0
    fitted = np.flatnonzero(curves.fitted)
    assert fitted.size > 5
    for page in fitted:
        ages, divergences = combined(state.profiles, page)
        fit = fit_curve(ages, divergences) if len(ages) >= 4 else None
        curve = (curves.items[page], curves.share[page], curves.rate[page])
        if fit is not None:
            assert curve == fit[:3]
        utility = tracker.problem.importance[page] * region_utility(*curve, tracker.elapsed[page])
        assert urgency.utility[page] == pytest.approx(utility)


def test_with_a_budget_pages_that_have_to_be_learned_come_first():
    env = fragments("page", horizon=10.0, **HIDDEN)
    policy = bind(CurveFitting(learning=0.01), env)
    result = crawls(env, policy)
    assert sorted(page for page, _ in result[:40]) == list(range(40))


@pytest.mark.parametrize("policy", [CurveFitting, ChoGarciaMolina])
def test_both_warm_up_on_the_same_schedule(policy):
    env = fragments(horizon=20.0, **HIDDEN)
    made = bind(policy(threshold=1e-3, learning=2.0, warm_up=15.0, stagger=False), env)
    result = crawls(env, made)
    early = [(page, when) for page, when in result if when <= 15.0]
    expected = [(page, when) for when in (2.0, 6.0, 12.0) for page in range(40)]
    assert early == expected
    assert len(result) > len(early)


def test_a_short_new_profile_does_not_replace_a_long_one():
    env = fragments(horizon=30.0, **HIDDEN)
    policy = bind(CurveFitting(threshold=0.05, histories=1, length=6), env)
    fitted = {}

    def each(log, tracker):
        state = policy.update()
        for page in log.page:
            count = len(combined(state.profiles, page)[0])
            fitted.setdefault(page, []).append((count, int(state.curves.fitted[page])))

    play(env, policy, 0, each)
    long = [pairs for pairs in fitted.values() if len(pairs) > 11]
    assert len(long) > 3
    for pairs in long:
        assert pairs[:11] == [
            *((k, k) for k in range(1, 7)), (0, 6), (1, 6), (2, 6), (3, 6), (4, 4)
        ]  # fmt: skip


def test_pages_without_divergence_are_left_to_learning():
    env = fragments(horizon=30.0, **HIDDEN)
    policy = bind(CurveFitting(threshold=0.3, learning=1.0, stagger=False), env)
    waits = []
    static = []

    def each(log, _):
        for page, elapsed in zip(log.page, log.elapsed, strict=True):
            if page in static:
                waits.append(float(elapsed))

    env.reset(seed=0)
    static.extend(np.flatnonzero(env.unwrapped.instance.change_rate == 0.0).tolist())
    play(env, policy, 0, each)
    assert len(static) > 5
    assert sorted(set(waits)) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("stagger", [False, True])
def test_bounds_start_from_the_threshold_and_keep_to_the_risk(stagger):
    env = fragments(horizon=60.0, **HIDDEN)
    policy = bind(DivergenceBounds(threshold=1.5, risk=4.0, stagger=stagger), env)
    first, longest = {}, 0.0

    def each(log, tracker):
        nonlocal longest
        weight = tracker.problem.importance[log.page]
        for page, elapsed in zip(log.page, log.elapsed, strict=True):
            first.setdefault(page, float(elapsed))
        if log.page.size:
            longest = max(longest, float((log.elapsed * weight).max()))

    play(env, policy, 0, each)
    importance = env.unwrapped.instance.importance
    for page, wait in first.items():
        turn = (page + 1) / 40 if stagger else 1.0
        assert wait == pytest.approx(up_to_tick(turn * 1.5 / importance[page]))
    assert 5.0 < longest <= 6.0 + TICK * importance.max()


def test_bounds_settle_near_the_best_period_of_a_page():
    """The period ends up within a factor of 4 of the optimum, where that is within the risk."""
    env = fragments(m=150, bandwidth=8.0, horizon=120.0, **HIDDEN)
    policy = bind(DivergenceBounds(threshold=0.2, risk=30.0), env)
    play(env, policy)
    instance = env.unwrapped.instance
    best = RegionCurves(instance.regions).period(0.2 / instance.importance)
    plain = best * instance.importance < 4.0
    assert plain.sum() > 10
    periods = policy.of_lane().periods()
    ratio = periods[plain] / best[plain]
    assert np.all((ratio > 0.25) & (ratio < 4.0))
    assert 0.5 < np.median(ratio) < 2.0
    still = instance.change_rate == 0.0
    assert periods[still] == pytest.approx(6.0 / instance.importance[still])


def test_the_threshold_of_bounds_follows_the_budget():
    env = fragments("page", m=60, bandwidth=12.0, horizon=150.0, **HIDDEN)
    policy = bind(DivergenceBounds(), env)
    play(env, policy)
    demand = (1.0 / policy.of_lane().periods()).sum()
    assert 0.5 < demand / 12.0 < 2.0


@pytest.mark.parametrize("estimator", ["improved", "mle"])
def test_change_rates_are_those_of_the_changes_seen(estimator):
    env = fragments("page", horizon=30.0, **HIDDEN)
    policy = bind(ChoGarciaMolina(warm_up=12.0, estimator=estimator), env)
    by_page = {page: ([], []) for page in range(40)}

    def each(log, _):
        policy.update()
        for page, elapsed, changed in zip(log.page, log.elapsed, log.changed, strict=True):
            by_page[page][0].append(float(elapsed))
            by_page[page][1].append(bool(changed))

    play(env, policy, 0, each)
    state = policy.update()
    rates = state.change_rates()
    several = [page for page, (waits, _) in by_page.items() if len(waits) > 2]
    assert len(several) > 10
    assert np.unique(rates[several]).size > 5
    for page in several:
        waits, changed = by_page[page]
        if estimator == "improved":
            expected = improved_rate(sum(changed), len(changed), sum(waits))
        else:
            expected = fit_change_rates(waits, changed, smoothing=0.0).change_rate[0]
        assert rates[page] == pytest.approx(min(float(expected), 1e12), rel=1e-9)
    tracker = env.unwrapped.tracker(0)
    utility = state._urgency(tracker).utility
    weights = tracker.problem.importance
    greedy = values.greedy(tracker.elapsed, importance=weights, change_rate=rates)
    assert utility == pytest.approx(greedy, rel=1e-9)


def steady(env, policy, seeds, start):
    """Refresh cost and divergence after ``start``, averaged over seeds."""
    result = []
    for seed in seeds:
        before = []

        def each(_, tracker, before=before):
            if not before and tracker.time >= start:
                before.append(env.unwrapped.ledger(0))

        after = play(env, policy, seed, each)
        spent = after.crawls - before[0].crawls
        amount = after.alive_time - before[0].alive_time
        result.append((spent, after.divergence_time - before[0].divergence_time, amount))
    spent, diverged, amount = np.sum(result, axis=0)
    return spent / amount, diverged / amount


def test_curve_fitting_beats_uniform_and_holistic_learning():
    """Figures 9 and 11: less divergence than either at no more refreshes, after the warm-up."""
    env = fragments(m=200, bandwidth=1.0, horizon=60.0, **HIDDEN)
    warm = {"learning": 1.5, "warm_up": 30.0}
    fitting = steady(env, bind(CurveFitting(threshold=0.25, **warm), env), range(3), 30.0)
    holistic = steady(env, bind(ChoGarciaMolina(threshold=1.7, **warm), env), range(3), 30.0)
    revealed = fragments(m=200, bandwidth=1.0, horizon=60.0)
    uniform = steady(revealed, bind(UniformRefresh(interval=9.0), revealed), range(3), 30.0)
    assert fitting[0] < holistic[0]
    assert fitting[0] < uniform[0]
    assert fitting[1] < 0.95 * holistic[1]
    assert fitting[1] < 0.98 * uniform[1]


def test_sketches_of_eight_hashes_take_little_room():
    """Section 5.2: 128 bytes per page at most, 8 hashes and 12 observations."""
    env = fragments(horizon=40.0, **HIDDEN)
    policy = bind(CurveFitting(threshold=0.1, histories=1, sketch_size=8), env)
    play(env, policy)
    footprint = policy.of_lane().footprint()
    assert 32.0 < footprint.counted <= 128.0
    assert footprint.counted < footprint.stored < 512.0
    bounds = bind(DivergenceBounds(threshold=0.5, histories=1, sketch_size=8), env)
    play(env, bounds)
    assert 32.0 < bounds.of_lane().footprint().counted <= 128.0


def many_pages(m):
    """Return pages whose copies do not change."""
    rows = [sketch_of([page, page + 1, page + 2]) for page in range(m)]
    problem = Problem(num_pages=m, bandwidth=m / 10, importance=np.ones(m))
    return LivePages(problem, sketches=Sketches.of_rows(rows))


@pytest.mark.parametrize("policy", [CurveFitting, DivergenceBounds, ChoGarciaMolina])
@pytest.mark.parametrize("form", ["page", "refresh"])
def test_a_decision_over_ten_thousand_pages_is_quick(policy, form):
    pages = many_pages(10_000)
    made = policy(**({"threshold": 5.0} if form == "refresh" else {})).in_form(form)
    made.start(pages)
    made.choose(pages.tracker())
    if policy is CurveFitting:
        curves = made.curves
        curves.items[:], curves.share[:], curves.rate[:] = 20, 0.3, 2.0
    laps = []
    for lap in range(12):
        few, now = np.arange(5 * lap, 5 * lap + 5), 1.0 + 0.1 * lap
        log = empty_log()._replace(
            page=few,
            **dict.fromkeys(("time", "elapsed"), np.full(5, now)),
            changed=np.zeros(5, bool),
            signals=np.zeros(5, np.int64),
            sketch=Sketches.of_rows([pages.sketches.row(page) for page in few]),
        )
        pages.advance(log, now)
        tracker = pages.tracker()
        start = time.perf_counter()
        made.update(log, tracker)
        made.choose(tracker)
        laps.append(time.perf_counter() - start)
    print(policy.__name__, form, f"{1e3 * min(laps):.2f} ms")
    assert min(laps) < 0.02


def test_change_rates_count_from_the_third_refresh_on():
    pages = many_pages(4)
    policy = ChoGarciaMolina(threshold=1.0, learning=1.0, stagger=False).in_form("refresh")
    policy.start(pages)
    policy.choose(pages.tracker())
    policy.crawls[:] = [0, 1, 2, 3]  # whose estimates are all 0
    for now, expected in ((1.9, [0]), (2.0, [0, 1]), (9.0, [0, 1])):
        pages.advance(empty_log(), now)
        assert policy.choose(pages.tracker()).tolist() == expected


ONLINE = pytest.mark.parametrize("policy", [CurveFitting, DivergenceBounds, ChoGarciaMolina])


@ONLINE
@pytest.mark.parametrize("action", ["page", "scores", "refresh"])
def test_only_first_waits_are_cut_short(policy, action):
    """By (k + 1) / m, in all forms."""
    env = fragments(action, m=10, horizon=30.0, **HIDDEN)
    env.reset(seed=0)
    result = []
    for stagger in (True, False):
        made = bind(policy(threshold=4.0, stagger=stagger), env)
        made.predict(env.unwrapped.current_observation())
        tracker = env.unwrapped.tracker(0)
        changed = np.where(np.arange(10) == 3, 0, -1).astype(np.int8)
        elapsed = np.where(np.arange(10) == 5, 0.5, 1.0) * tracker.time  # born later
        tracker = tracker._replace(changed=changed, elapsed=elapsed)
        urgency = made.of_lane()._urgency(tracker)
        result.append(urgency.utility if urgency.overdue is None else urgency.overdue)
    assert np.all(result[1] > 0.0)
    expected = 10 / np.arange(1.0, 11.0)
    expected[[3, 5]] = 1.0
    assert result[0] / result[1] == pytest.approx(expected, rel=1e-12)
