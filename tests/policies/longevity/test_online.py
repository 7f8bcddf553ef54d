"""Curve fitting, divergence bounds and Cho and Garcia-Molina's policy, as they crawl."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from crawl_envs.types import Problem, Tracker
from crawl_envs.types.copies import Sketches, sketch_of
from policies import values
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
    policy = CurveFitting(env, threshold=0.3, learning=3.0, risk=55.0)
    due, kinds = {}, {"learning": 0, "period": 0, "risk": 0}

    def each(log, tracker):
        for page, elapsed in zip(log.page, log.elapsed, strict=True):
            if page in due:
                bound, which = due[page]
                assert elapsed == pytest.approx(up_to_tick(bound))
                kinds[which] += 1
        policy.observe(log)
        for page in log.page:
            ages, divergences = combined(policy.profiles, page)
            fit = fit_curve(ages, divergences)
            weight = tracker.problem.importance[page]
            waits = {
                "learning": 3.0 * policy.crawls[page],
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
    policy = CurveFitting(env, learning=1e6)  # nothing is ever overdue
    play(env, policy)
    curves, tracker = policy.curves, env.unwrapped.tracker(0)
    urgency = policy._urgency(tracker)
    assert urgency.overdue.max() < 1.0
    fitted = np.flatnonzero(curves.fitted)
    assert fitted.size > 5
    for page in fitted:
        ages, divergences = combined(policy.profiles, page)
        fit = fit_curve(ages, divergences) if len(ages) >= 4 else None
        curve = (curves.items[page], curves.share[page], curves.rate[page])
        if fit is not None:
            assert curve == fit[:3]
        utility = tracker.problem.importance[page] * region_utility(*curve, tracker.elapsed[page])
        assert urgency.utility[page] == pytest.approx(utility)


def test_with_a_budget_pages_that_have_to_be_learned_come_first():
    env = fragments("page", horizon=10.0, **HIDDEN)
    policy = CurveFitting(env, learning=0.01)
    result = crawls(env, policy)
    assert sorted(page for page, _ in result[:40]) == list(range(40))


@pytest.mark.parametrize("policy", [CurveFitting, ChoGarciaMolina])
def test_both_warm_up_on_the_same_schedule(policy):
    env = fragments(horizon=20.0, **HIDDEN)
    made = policy(env, threshold=1e-3, learning=2.0, warm_up=15.0, stagger=False)
    result = crawls(env, made)
    early = [(page, when) for page, when in result if when <= 15.0]
    expected = [(page, when) for when in (2.0, 6.0, 12.0) for page in range(40)]
    assert early == expected
    assert len(result) > len(early)


def test_a_short_new_profile_does_not_replace_a_long_one():
    env = fragments(horizon=30.0, **HIDDEN)
    policy = CurveFitting(env, threshold=0.05, histories=1, length=6)
    fitted = {}

    def each(log, tracker):
        policy.observe(log)
        for page in log.page:
            kept = policy.profiles
            count = len(combined(kept, page)[0])
            fitted.setdefault(page, []).append((count, int(policy.curves.fitted[page])))

    play(env, policy, 0, each)
    long = [pairs for pairs in fitted.values() if len(pairs) > 11]
    assert len(long) > 3
    for pairs in long:
        assert pairs[:11] == [
            *((k, k) for k in range(1, 7)), (0, 6), (1, 6), (2, 6), (3, 6), (4, 4)
        ]  # fmt: skip


def test_pages_without_divergence_are_left_to_learning():
    env = fragments(horizon=30.0, **HIDDEN)
    policy = CurveFitting(env, threshold=0.3, learning=1.0, stagger=False)
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
    policy = DivergenceBounds(env, threshold=1.5, risk=4.0, stagger=stagger)
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
    policy = DivergenceBounds(env, threshold=0.2, risk=30.0)
    play(env, policy)
    instance = env.unwrapped.instance
    best = RegionCurves(instance.regions).period(0.2 / instance.importance)
    plain = best * instance.importance < 4.0
    assert plain.sum() > 10
    ratio = policy.periods()[plain] / best[plain]
    assert np.all((ratio > 0.25) & (ratio < 4.0))
    assert 0.5 < np.median(ratio) < 2.0
    still = instance.change_rate == 0.0
    assert policy.periods()[still] == pytest.approx(6.0 / instance.importance[still])


def test_the_threshold_of_bounds_follows_the_budget():
    env = fragments("page", m=60, bandwidth=12.0, horizon=150.0, **HIDDEN)
    policy = DivergenceBounds(env)
    play(env, policy)
    demand = (1.0 / policy.periods()).sum()
    assert 0.5 < demand / 12.0 < 2.0


@pytest.mark.parametrize("estimator", ["improved", "mle"])
def test_change_rates_are_those_of_the_changes_seen(estimator):
    env = fragments("page", horizon=30.0, **HIDDEN)
    policy = ChoGarciaMolina(env, warm_up=12.0, estimator=estimator)
    by_page = {page: ([], []) for page in range(40)}

    def each(log, _):
        policy.observe(log)
        for page, elapsed, changed in zip(log.page, log.elapsed, log.changed, strict=True):
            by_page[page][0].append(float(elapsed))
            by_page[page][1].append(bool(changed))

    play(env, policy, 0, each)
    rates = policy.change_rates()
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
    utility = policy._urgency(tracker).utility
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
    fitting = steady(env, CurveFitting(env, threshold=0.25, **warm), range(3), 30.0)
    holistic = steady(env, ChoGarciaMolina(env, threshold=1.7, **warm), range(3), 30.0)
    revealed = fragments(m=200, bandwidth=1.0, horizon=60.0)
    uniform = steady(revealed, UniformRefresh(revealed, interval=9.0), range(3), 30.0)
    assert fitting[0] < holistic[0]
    assert fitting[0] < uniform[0]
    assert fitting[1] < 0.95 * holistic[1]
    assert fitting[1] < 0.98 * uniform[1]


def test_sketches_of_eight_hashes_take_little_room():
    """Section 5.2: 128 bytes per page at most, 8 hashes and 12 observations."""
    env = fragments(horizon=40.0, **HIDDEN)
    policy = CurveFitting(env, threshold=0.1, histories=1, sketch_size=8)
    play(env, policy)
    footprint = policy.footprint()
    assert 32.0 < footprint.counted <= 128.0
    assert footprint.counted < footprint.stored < 512.0
    bounds = DivergenceBounds(env, threshold=0.5, histories=1, sketch_size=8)
    play(env, bounds)
    assert 32.0 < bounds.footprint().counted <= 128.0


class ManyPages:
    """An environment of m pages whose copies do not change, at a decision of its own."""

    num_lanes, batch, features = 1, 1, ("elapsed",)
    rng = num_slots = None

    def __init__(self, m, action_form, importance=1.0):
        self.unwrapped, self.action_form = self, action_form
        self.m, self.now = m, 1.0
        self.problem = Problem(num_pages=m, bandwidth=m / 10, importance=np.full(m, importance))
        rows = [sketch_of([page, page + 1, page + 2]) for page in range(m)]
        self.sketches = Sketches.of_rows(rows)
        self.pages = np.zeros(0, np.int64)

    def first_sketch(self, lane=0):
        return self.sketches

    def tracker(self, lane=0):
        signals, changed = np.zeros(self.m, np.int64), np.full(self.m, -1, np.int8)
        elapsed, alive = np.full(self.m, self.now), np.ones(self.m, bool)
        return Tracker(self.problem, 1, self.now, elapsed, signals, changed, alive, changed)

    def last_log(self, lane=0):
        rows = [self.sketches.row(page) for page in self.pages]
        none = np.zeros(self.pages.size, bool)
        return SimpleNamespace(
            page=self.pages,
            time=np.full(self.pages.size, self.now),
            elapsed=np.full(self.pages.size, self.now),
            changed=none,
            probe=none,
            sketch=Sketches.of_rows(rows),
        )


@pytest.mark.parametrize("policy", [CurveFitting, DivergenceBounds, ChoGarciaMolina])
@pytest.mark.parametrize("form", ["page", "refresh"])
def test_a_decision_over_ten_thousand_pages_is_quick(policy, form):
    core = ManyPages(10_000, form)
    made = policy(core, **({"threshold": 5.0} if form == "refresh" else {}))
    observation = np.zeros((10_000, 1), np.float32)
    made.predict(observation)
    if policy is CurveFitting:
        curves = made.curves
        curves.items[:], curves.share[:], curves.rate[:] = 20, 0.3, 2.0
    laps = []
    for lap in range(12):
        core.now += 0.1
        core.pages = np.arange(5 * lap, 5 * lap + 5)
        start = time.perf_counter()
        made.predict(observation)
        laps.append(time.perf_counter() - start)
    print(policy.__name__, form, f"{1e3 * min(laps):.2f} ms")
    assert min(laps) < 0.02


def chosen(policy, m):
    """Pages of the next decision of a policy."""
    action, _ = policy.predict(np.zeros((m, 1), np.float32))
    return [int(action)] if policy.action_form == "page" else np.flatnonzero(action).tolist()


def test_change_rates_count_by_importance():
    """Of two pages of one history the one of importance 2 is due at half the utility."""
    importance, rate, now = np.array([1.0, 2.0]), 0.7, 3.0
    utility = (1 - (1 + rate * now) * np.exp(-rate * now)) / rate
    due = {0.9: [0, 1], 1.1: [1], 1.9: [1], 2.1: []}
    for part, expected in due.items():
        core = ManyPages(2, "refresh", importance)
        policy = ChoGarciaMolina(core, threshold=part * utility, learning=100.0)
        assert chosen(policy, 2) == []
        policy.crawls[:], policy.rate[:] = 5, rate
        core.now = now
        assert chosen(policy, 2) == expected
    for order in ([1.0, 2.0], [2.0, 1.0]):
        core = ManyPages(2, "page", np.array(order))
        policy = ChoGarciaMolina(core, learning=100.0)
        chosen(policy, 2)
        policy.crawls[:], policy.rate[:] = 5, rate
        core.now = now
        assert chosen(policy, 2) == [int(np.argmax(order))]


def test_change_rates_count_from_the_third_refresh_on():
    core = ManyPages(4, "refresh")
    policy = ChoGarciaMolina(core, threshold=1.0, learning=1.0, stagger=False)
    chosen(policy, 4)
    policy.crawls[:] = [0, 1, 2, 3]  # whose estimates are all 0
    for now, expected in ((1.9, [0]), (2.0, [0, 1]), (9.0, [0, 1])):
        core.now = now
        assert chosen(policy, 4) == expected


def test_profiles_retire_after_so_many_observations():
    for policy, threshold in ((CurveFitting, 0.05), (DivergenceBounds, 0.5)):
        env = fragments(horizon=30.0, **HIDDEN)
        made = policy(env, threshold=threshold, histories=2, length=3)
        filled = []

        def each(log, _, made=made, filled=filled):
            made.observe(log)
            filled.append(made.profiles.kept.filled.copy())

        play(env, made, 0, each)
        assert filled[-1].shape == (40, 2)
        assert np.max(filled) == 3
        before, after = np.array(filled[:-1]), np.array(filled[1:])
        retired = after < before
        assert retired.sum() > 20
        assert np.all(before[retired] == 3)


ONLINE = pytest.mark.parametrize("policy", [CurveFitting, DivergenceBounds, ChoGarciaMolina])


@ONLINE
@pytest.mark.parametrize("m", [40, 7])
def test_first_refreshes_are_spread_evenly_over_the_first_wait(policy, m):
    """Of 8 days, in ticks of half a day; without that all come at its end."""
    given = (
        {"threshold": 8.0} if policy is DivergenceBounds else {"threshold": 1e9, "learning": 8.0}
    )
    for stagger in (True, False):
        core = ManyPages(m, "refresh")
        made = policy(core, stagger=stagger, **given)
        held_since, counts = np.zeros(m), []
        first = np.full(m, -1, np.int8)
        core.tracker = lambda lane=0, held_since=held_since, first=first, core=core: Tracker(
            core.problem, 1, core.now, core.now - held_since, np.zeros(m, np.int64), first,
            np.ones(m, bool), np.zeros(m, np.int8),
        )  # fmt: skip
        for tick in range(1, 17):
            core.now = tick * TICK
            pages = chosen(made, m)
            core.pages = np.array(pages, np.int64)
            held_since[pages], first[pages] = core.now, 0
            counts.append(len(pages))
        assert sum(counts) == m
        if stagger:
            assert max(counts) - min(counts) <= 1
        else:
            assert counts == [0] * 15 + [m]


@ONLINE
@pytest.mark.parametrize("action", ["page", "scores", "refresh"])
def test_only_first_waits_are_cut_short(policy, action):
    """By (k + 1) / m, in all forms."""
    env = fragments(action, m=10, horizon=30.0, **HIDDEN)
    env.reset(seed=0)
    result = []
    for stagger in (True, False):
        made = policy(env, threshold=4.0, stagger=stagger)
        made.predict(env.unwrapped.current_observation())
        tracker = env.unwrapped.tracker(0)
        changed = np.where(np.arange(10) == 3, 0, -1).astype(np.int8)
        elapsed = np.where(np.arange(10) == 5, 0.5, 1.0) * tracker.time  # born later
        tracker = tracker._replace(changed=changed, elapsed=elapsed)
        urgency = made._urgency(tracker)
        result.append(urgency.utility if urgency.overdue is None else urgency.overdue)
    assert np.all(result[1] > 0.0)
    expected = 10 / np.arange(1.0, 11.0)
    expected[[3, 5]] = 1.0
    assert result[0] / result[1] == pytest.approx(expected, rel=1e-12)
