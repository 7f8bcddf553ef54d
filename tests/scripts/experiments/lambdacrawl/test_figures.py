"""Computations in the experiments of the LambdaCrawl paper."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import exp1

import policies as crawl_policies
from crawl_envs import instances
from crawl_envs.evaluation import Row
from crawl_envs.instances.urls.lambdacrawl import draw_urls
from crawl_envs.types import Instance, Ledger
from policies import solvers
from scripts import experiments
from scripts.experiments.lambdacrawl import (
    budget as lambdacrawl_budget,
)
from scripts.experiments.lambdacrawl import (
    concave as lambdacrawl_concave,
)
from scripts.experiments.lambdacrawl import (
    deterministic as lambdacrawl_deterministic,
)
from scripts.experiments.lambdacrawl import (
    fig1 as lambdacrawl_fig1,
)
from scripts.experiments.lambdacrawl import (
    fig2 as lambdacrawl_fig2,
)
from scripts.experiments.lambdacrawl import (
    fig3 as lambdacrawl_fig3,
)
from scripts.experiments.lambdacrawl import (
    learners as lambdacrawl_learners,
)
from scripts.experiments.lambdacrawl import (
    props as lambdacrawl_props,
)
from scripts.experiments.lambdacrawl import (
    shift as lambdacrawl_shift,
)
from scripts.experiments.lambdacrawl import (
    spread as lambdacrawl_spread,
)
from scripts.experiments.lambdacrawl.setup import costs as crawl_costs
from scripts.experiments.lambdacrawl.setup import long_run
from scripts.experiments.lambdacrawl.setup.costs import (
    BINARY_BOUND,
    BINARY_OPT,
    BLC,
    BLC_EPS,
    BOUND,
    CC,
    INFINITE,
    J_B,
    J_H,
    LC,
    LCA,
    STARVED,
    UC,
    Pages,
)
from scripts.study.rows import indexed

REFERENCE = Path(__file__).resolve().parents[4].parent / "shared" / "reference" / "lambdacrawl.json"
NAMES = {LC: "LC_mixed", LCA: "LCA_mixed", BLC: "BLC", BLC_EPS: "BLC_eps0.4", CC: "CC", UC: "UC"}
COLUMNS = ("elapsed", "signals", "importance", "change_rate", "complete")


def pages_of(seed: int, num_pages: int = 12) -> Pages:
    rng = np.random.default_rng(seed)
    complete = rng.random(num_pages) < 0.4
    complete[:2] = [True, False]
    return Pages(rng.uniform(0.2, 3.0, num_pages), rng.uniform(0.1, 4.0, num_pages), complete)


@pytest.mark.parametrize("label", NAMES)
def test_costs_are_those_of_independent_code(label: str) -> None:
    if not REFERENCE.exists():
        pytest.skip(f"{REFERENCE.name} is not there")
    for case in json.loads(REFERENCE.read_text()):
        pages = Pages(
            *(np.array(case[name], float) for name in ("mu", "Delta")),
            np.array(case["complete"], bool),
        )
        result = crawl_costs.formula_costs(label, pages, case["R"])
        expected = case["policies"][NAMES[label]]
        assert result[J_B] == pytest.approx(expected["bin"], rel=1e-8)
        if expected["harm"] == "inf":
            assert (result[INFINITE], result[STARVED] > 0.0) == (1.0, True)
            assert np.isnan(result[J_H])
        else:
            assert result[J_H] == pytest.approx(expected["harm"], rel=1e-8)
            assert (result[INFINITE], result[STARVED]) == (0.0, 0.0)


def test_pages_with_complete_observation_alone_are_those_of_independent_code() -> None:
    if not REFERENCE.exists():
        pytest.skip(f"{REFERENCE.name} is not there")
    for case in json.loads(REFERENCE.read_text()):
        kept = np.array(case["complete"], bool)
        pages = Pages(np.array(case["mu"])[kept], np.array(case["Delta"])[kept], kept[kept])
        expected = case["policies"]["LC_CO_half"]
        result = crawl_costs.formula_costs(LC, pages, expected["R"])
        assert result[J_H] == pytest.approx(expected["harm"], rel=1e-8)
        assert result[J_B] == pytest.approx(expected["bin"], rel=1e-8)


def test_costs_of_given_rates_are_the_formulas() -> None:
    pages = Pages(np.array([2.0, 3.0]), np.array([0.5, 4.0]), np.array([False, True]))
    rates, chances = np.array([0.25, 1.0]), np.array([0.0, 0.25])
    result = crawl_costs.poisson_costs(pages, rates, chances)
    assert result[J_H] == pytest.approx(2.0 * np.log(3.0) + 3.0 * np.log(4.0))
    assert result[J_B] == pytest.approx(2.0 * 0.5 / 0.75 + 3.0 * 0.75)
    unheard = crawl_costs.poisson_costs(pages, rates, None)
    assert unheard[J_H] == pytest.approx(2.0 * np.log(3.0) + 3.0 * np.log(5.0))
    assert unheard[J_B] == pytest.approx(2.0 * 0.5 / 0.75 + 3.0 * 4.0 / 5.0)


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(ValueError, match=r"label must be one of .*, got 'LCX'"):
        crawl_costs.allocated("LCX", pages_of(0), 1.0)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_binary_optimum_meets_its_dual(seed: int, share: float) -> None:
    """No plan is cheaper than the dual at any multiplier, so that equality proves both."""
    pages = pages_of(seed)
    complete = np.random.default_rng(seed).random(12) < share
    pages = pages._replace(complete=complete)
    importance, change_rate, _ = pages
    bandwidth = 0.15 * float(change_rate.sum())

    def dual(log_multiplier: float) -> float:
        price = np.exp(log_multiplier)
        slow = np.maximum(np.sqrt(importance * change_rate / price) - change_rate, 0.0)
        alone = importance * change_rate / (slow + change_rate) + price * slow
        answered = np.minimum(importance, price * change_rate)
        return float(np.where(complete, answered, alone).sum() - price * bandwidth)

    result = crawl_costs.allocated(BINARY_OPT, pages, bandwidth)
    assert result.rates.sum() == pytest.approx(bandwidth, rel=1e-12)
    assert result.rates.min() >= 0.0
    assert np.all(result.rates[complete] <= change_rate[complete] * (1.0 + 1e-12))
    cost = crawl_costs.formula_costs(BINARY_OPT, pages, bandwidth)[J_B]
    best = minimize_scalar(lambda x: -dual(x), bounds=(-12.0, 6.0), options={"xatol": 1e-11})
    assert cost == pytest.approx(-best.fun, rel=1e-9)
    assert dual(np.log(result.multiplier)) == pytest.approx(cost, rel=1e-9)
    assert (1.0 - result.objective) * importance.sum() == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_costs_of_the_bound_are_integrals_over_a_cycle(seed: int) -> None:
    pages = pages_of(seed)
    bandwidth = 0.4 * pages.importance.size
    result = crawl_costs.formula_costs(BOUND, pages, bandwidth)
    plan = solvers.harmonic_periodic(*pages[:2], bandwidth, complete=pages.complete)
    harmonic = binary = 0.0
    for mu, delta, complete, rate in zip(*pages, plan.rates, strict=True):
        if complete:  # n signals per crawl, or a mixture of n and n + 1 of them
            n = int(np.floor(delta / rate + 1e-9))
            share = delta / rate - n  # of cycles with n + 1
            waits = [1.0 / delta] * n + [share / delta]  # mean time with 0, 1, .. changes
            times = [0.0, *np.cumsum(1.0 / np.arange(1, n + 1))]
            harmonic += mu * rate * float(np.dot(waits, times[: len(waits)]))
            binary += mu * rate * sum(waits[1:])
        else:
            end = 1.0 / rate
            ein = quad(lambda t, d=delta: np.euler_gamma + np.log(d * t) + exp1(d * t), 0.0, end)
            stale = quad(lambda t, d=delta: 1.0 - np.exp(-d * t), 0.0, end)
            harmonic += mu * rate * ein[0]
            binary += mu * rate * stale[0]
    assert result[J_H] == pytest.approx(harmonic, rel=1e-7)
    assert result[J_B] == pytest.approx(binary, rel=1e-7)


def test_what_is_saved_is_a_share_of_the_other_cost_on_the_same_seed() -> None:
    rows = [
        Row("", "s", label, seed, metric, value)
        for seed, factor in ((0, 1.0), (1, 10.0))
        for label, metric, value in (
            ("A", J_H, 3.0 * factor),
            ("B", J_H, 4.0 * factor),
            ("B", J_B, 5.0),
            ("B", STARVED, 1.0),
        )
    ]
    result = list(crawl_costs.saved(rows, "A"))
    assert [row[2:5] for row in result] == [("B", 0, "J_h_saved"), ("B", 1, "J_h_saved")]
    assert [row.value for row in result] == pytest.approx([0.25, 0.25])


def test_costs_between_two_moments_are_integrals_over_their_distance() -> None:
    early = Ledger(10.0, 30.0, 50.0, 0, 0, 4, 0, 0, 0, 0, 25.0)
    late = Ledger(14.0, 38.0, 70.0, 0, 0, 24, 0, 0, 0, 0, 37.0)
    result = long_run.between(early, late, 5)
    assert result == {J_H: 3.0, J_B: 3.0, long_run.CRAWL_RATE: 1.0}
    with pytest.raises(ValueError, match="must count penalties"):
        long_run.between(early, Ledger(1.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0), 5)


def test_steps_and_compiled_code_cost_the_same() -> None:
    instance = instances.make("mixed", num_pages=8, bandwidth=4.0, seed=3)
    env = gymnasium.make(
        "CrawlHarmonic-v0", num_pages=8, bandwidth=4.0, horizon=41.0, action="page"
    )
    env.reset(seed=5, options={"instance": instance})
    greedy = crawl_policies.GreedyHarmonic(features=COLUMNS)
    played = long_run.compiled_course(instance, greedy, 5, [10.0, 25.0, 40.0])
    ends = np.array([10.25, 25.25, 40.25])  # of the last slots that begin within these times
    stepped = long_run.stepped_costs(env, crawl_policies.GreedyHarmonic(env), 5, ends)
    assert len(stepped) == 2
    for now, then in zip(stepped, played[1:], strict=True):
        assert now == pytest.approx(then, rel=1e-9)
    assert played[2] == long_run.compiled_costs(instance, greedy, 5, 25.0, 40.0)
    total = long_run.compiled_course(instance, greedy, 5, [40.0])[0]
    parts = np.array([[cost[J_H], cost[J_B]] for cost in played])
    np.testing.assert_allclose(
        np.average(parts, axis=0, weights=[10.25, 15.0, 15.0]), [total[J_H], total[J_B]]
    )


def test_costs_begin_with_the_first_decision_at_or_after_a_moment() -> None:
    env = gymnasium.make(
        "CrawlHarmonic-v0", num_pages=3, bandwidth=2.0, horizon=20.0, action="page"
    )
    env.reset(seed=0)
    core = env.unwrapped
    policy = crawl_policies.RoundRobin(env)
    result = long_run.stepped_costs(env, policy, 0, np.array([3.2, 9.0]))
    observation, _ = env.reset(seed=0, options={"instance": core.instance})
    ledgers = [core.ledger()]
    while len(ledgers) < 25:
        observation, *_ = env.step(policy.predict(observation)[0])
        ledgers.append(core.ledger())
    assert [ledgers[6].time, ledgers[17].time] == [3.5, 9.0]
    assert result == [long_run.between(ledgers[6], ledgers[17], 3)]


def test_crawls_are_counted_from_a_time_on() -> None:
    for form, bandwidth in (("page", 2.0), ("refresh", 1.0)):
        env = gymnasium.make(
            "CrawlHarmonic-v0", num_pages=3, bandwidth=bandwidth, horizon=20.0, action=form
        )
        env.reset(seed=0)
        played = crawl_policies.RoundRobin(env)
        counted = long_run.Counted(env, played, 4.0)
        [result] = long_run.stepped_costs(env, counted, 0, np.array([4.0, 10.0]))
        assert counted.counts.sum() == 6.0 * bandwidth
        assert counted.counts.sum() / 6.0 / 3.0 == pytest.approx(result[long_run.CRAWL_RATE])


def test_proportionality_is_a_slope_of_logarithms() -> None:
    rates = np.array([0.1, 0.5, 2.0])
    assert long_run.proportionality(7.0 * rates, rates) == pytest.approx(1.0)
    assert long_run.proportionality(np.full(3, 4.0), rates) == pytest.approx(0.0, abs=1e-12)
    assert long_run.proportionality(np.array([0.0, 2.5, 10.0]), rates) == pytest.approx(1.0)


def test_gaps_in_the_binary_cost_are_of_lc_without_signals_over_others() -> None:
    values = {lambdacrawl_fig2.IO: 4.0, BLC: 3.0, BLC_EPS: 5.0, lambdacrawl_fig2.CO: 2.0}
    rows = [Row("", "s", label, 0, J_B, value) for label, value in values.items()]
    result = {row[2:5:2]: row.value for row in lambdacrawl_fig2.derive(rows)}
    assert result[BLC, lambdacrawl_fig2.BINARY_GAP] == pytest.approx(1.0 / 3.0)
    assert result[BLC_EPS, lambdacrawl_fig2.BINARY_GAP] == pytest.approx(-0.2)
    assert result[BLC_EPS, "J_b_saved"] == pytest.approx(0.6)


def test_figure_2_has_the_pages_with_complete_observation_only() -> None:
    pages = lambdacrawl_fig2.drawn(0, 5000)
    assert pages.complete.all()
    assert 120 < pages.importance.size < 280  # 4%
    ours, others = (
        lambdacrawl_fig2.measure(0, label=label, num_pages=5000)
        for label in (lambdacrawl_fig2.CO, lambdacrawl_fig2.IO)
    )
    assert ours[J_H] < 0.6 * others[J_H]
    expected = solvers.harmonic(*pages[:2], 0.2 * pages.importance.size).objective
    assert others[J_H] == pytest.approx(expected)


def test_how_far_costs_are_over_lambdacrawls() -> None:
    rows = [Row("", "s", label, 0, J_H, value) for label, value in ((LC, 4.0), (BLC_EPS, 5.0))]
    result = {row.metric: row.value for row in lambdacrawl_fig1.derive(rows)}
    assert result["J_h_saved"] == pytest.approx(0.2)
    assert result[lambdacrawl_fig1.OVER_LC] == pytest.approx(0.25)


def test_how_far_binary_costs_are_over_the_least_of_their_class() -> None:
    rows = [Row("", "s", label, 0, J_B, value) for label, value in ((LC, 5.0), (BINARY_OPT, 4.0))]
    result = {row[2:5:2]: row.value for row in lambdacrawl_fig1.derive(rows)}
    assert result[LC, lambdacrawl_fig1.OVER_BEST] == pytest.approx(0.25)


def test_other_spreads_of_importance_are_of_the_same_scores() -> None:
    drawn = draw_urls(np.random.default_rng([3, 1]), 500)
    chosen, wide = (lambdacrawl_spread.drawn(3, spread, 500) for spread in (1.5, 2.5))
    for ours, theirs in zip(chosen, drawn, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    assert np.std(np.log(wide.importance)) == pytest.approx(
        np.std(np.log(chosen.importance)) * 2.5 / 1.5
    )


def test_costs_over_a_spread_are_the_formulas_and_over_those_of_lc() -> None:
    names = lambdacrawl_spread
    size = {"spread": 1.0, "num_pages": 300}
    pages = names.drawn(1, **size)
    labels = (LC, BLC_EPS, names.LLC_START)
    costs = {label: names.measure(1, label=label, **size) for label in labels}
    assert costs[BLC_EPS][J_B] == crawl_costs.formula_costs(BLC_EPS, pages, 60.0)[J_B]
    plan = solvers.harmonic(pages.importance, np.ones(300), 60.0, complete=pages.complete)
    signals = {"probabilities": plan.probabilities, "complete": pages.complete}
    expected = solvers.harmonic_cost(*pages[:2], plan.rates, **signals)
    assert costs[names.LLC_START][J_H] == pytest.approx(expected)
    rows = [
        Row("", "s", label, 1, metric, value)
        for label, result in costs.items()
        for metric, value in result.items()
    ]
    over = {row[2:5:2]: row.value for row in names.derive(rows)}
    assert (LC, "J_h_over_LC") not in over
    assert over[names.LLC_START, "J_h_over_LC"] == pytest.approx(expected / costs[LC][J_H] - 1.0)
    assert over[BLC_EPS, "J_b_over_LC"] == pytest.approx(costs[BLC_EPS][J_B] / costs[LC][J_B] - 1)


FOUR_DAYS = {"num_pages": 300, "days": 4}


class TestLearning:
    @pytest.mark.parametrize("label", lambdacrawl_fig3.LEARNERS)
    def test_the_first_policy_is_that_of_a_uniform_guess(self, label: str) -> None:
        result = lambdacrawl_fig3.learned(1, label=label, **FOUR_DAYS)
        instance = lambdacrawl_fig3.drawn(1, label, 300)
        pages = Pages(instance.importance, instance.change_rate, instance.complete)
        guessed = pages._replace(change_rate=np.ones(300))
        plan = crawl_costs.allocated(lambdacrawl_fig3.LIMIT[label], guessed, 60.0)
        chances = None if label == lambdacrawl_fig3.BLLC else plan.probabilities
        costs = crawl_costs.poisson_costs(pages, plan.rates, chances)
        assert result["J_h[0]"] == pytest.approx(costs[J_H], rel=1e-6)
        assert result["J_b[0]"] == pytest.approx(costs[J_B], rel=1e-6)
        assert "J_h[4]" in result
        assert "J_h[5]" not in result

    def test_more_crawls_are_observed_but_not_spent(self) -> None:
        more, plain = (
            lambdacrawl_fig3.learned(1, label=label, **FOUR_DAYS)
            for label in (lambdacrawl_fig3.MORE, lambdacrawl_fig3.LLC)
        )
        assert more["crawl_rate"] / plain["crawl_rate"] == pytest.approx(2.6, rel=0.15)
        assert more["limit"] == plain["limit"]
        assert more["J_h[0]"] == pytest.approx(plain["J_h[0]"])

    def test_blc_uses_no_signals(self) -> None:
        assert not lambdacrawl_fig3.drawn(0, lambdacrawl_fig3.BLLC, 300).complete.any()
        assert lambdacrawl_fig3.drawn(0, lambdacrawl_fig3.LLC, 300).complete.any()

    def test_days_until_a_course_stays_near(self) -> None:
        excess = np.array([0.3, 0.04, 0.06, 0.05, 0.01, 0.0])
        assert lambdacrawl_fig3.days_until(excess, 0.05) == 3.0
        assert lambdacrawl_fig3.days_until(excess, 0.5) == 0.0
        assert lambdacrawl_fig3.days_until(excess, -0.1) == 6.0

    def test_rates_are_far_from_the_limits_at_first_and_are_true_ones(self) -> None:
        result = lambdacrawl_fig3.learned(1, label=lambdacrawl_fig3.LLC, **FOUR_DAYS)
        instance = lambdacrawl_fig3.drawn(1, lambdacrawl_fig3.LLC, 300)
        pages = Pages(instance.importance, instance.change_rate, instance.complete)
        rates, chances = [], []
        for believed in (np.ones(300), instance.change_rate):
            plan = crawl_costs.allocated(LC, pages._replace(change_rate=believed), 60.0)
            rates.append(plan.rates)
            chances.append(plan.probabilities)
        complete = pages.complete
        gaps = np.abs(rates[0] - rates[1])[~complete].sum()
        gaps += (np.abs(chances[0] - chances[1]) * pages.change_rate)[complete].sum()
        assert result["rates_distance[0]"] == pytest.approx(gaps / 60.0, rel=1e-6)
        assert result["rates_distance[4]"] < result["rates_distance[0]"]

    def test_days_of_learners_that_miss_their_limit_are_bounds(self) -> None:
        near, far = [1.5, 1.0, 1.0], [1.5, 1.04, 1.03]
        courses = {("LLC", 0): near, ("LLC", 1): near, ("BLLC-eps", 0): near, ("BLLC-eps", 1): far}
        rows = [
            Row("", "s", label, seed, metric, value)
            for (label, seed), course in courses.items()
            for metric, value in {**indexed(J_H, course), "limit": 1.0}.items()
        ]
        result = {row[2:5]: row.value for row in lambdacrawl_fig3._settling(rows)}
        assert result["LLC", 0, "days_to_2%"] == 1.0
        assert ("BLLC-eps", 0, "days_to_2%") not in result
        assert result["BLLC-eps", 0, "days_to_2%_at_least"] == 1.0
        assert result["BLLC-eps", 1, "days_to_2%_at_least"] == 3.0
        never, later = "never_within_2%", "later_to_2%_than_LLC"
        assert [result["BLLC-eps", seed, never] for seed in (0, 1)] == [0.0, 1.0]
        assert [result["BLLC-eps", seed, later] for seed in (0, 1)] == [0.0, 1.0]
        assert result["BLLC-eps", 1, "days_to_5%"] == 1.0

    @pytest.mark.parametrize(("late", "falls"), [(0.1, 1.0), (0.5, 0.0)])
    def test_distances_fall_from_each_day_to_the_next(self, late: float, falls: float) -> None:
        course = np.full(241, 0.3)
        course[[0, 240]] = 0.6, late
        rows = [Row("", "s", "LLC", 0, *item) for item in indexed("rates_distance", course).items()]
        result = {row.metric: row.value for row in lambdacrawl_fig3._falling(rows)}
        assert result["rates_distance_falls"] == falls
        assert result["rates_distance_day_21"] == 0.3
        assert result["rates_distance_day_240"] == late

    @pytest.mark.parametrize(("second", "above"), [(2.1, 1.0), (1.9, 0.0)])
    def test_above_on_all_days(self, second: float, above: float) -> None:
        courses = {"LLC": [3.0, 2.0, 1.0], "LLCA": [3.1, second, 1.5]}
        rows = [
            Row("", "s", label, 0, metric, value)
            for label, course in courses.items()
            for metric, value in {
                **indexed(J_H, course),
                **indexed(J_B, course),
                "limit": 1.0,
                "limit_b": 1.0,
            }.items()
        ]
        result = {row[2:5:2]: row.value for row in lambdacrawl_fig3.derive(rows)}
        assert result["LLCA", "above_LLC_on_all_days"] == above
        assert ("LLC", "above_LLC_on_all_days") not in result

    def test_what_is_derived_of_a_course(self) -> None:
        course = [2.0, 1.5, 1.04, 1.01]
        values = {
            **indexed(J_H, course),
            **indexed(J_B, [3.0, 2.0, 1.5, 1.1]),
            "limit": 1.0,
            "limit_b": 1.0,
        }
        rows = [Row("", "s", "LLC", 0, metric, value) for metric, value in values.items()]
        result = {row.metric: row.value for row in lambdacrawl_fig3.derive(rows)}
        assert result == pytest.approx(
            {
                "day_0": 2.0,
                "day_1": 1.5,
                "day_7": 1.01,
                "final": 1.01,
                "excess": 0.01,
                "excess_b": 0.1,
                "days_to_5%": 2.0,
                "days_to_2%": 3.0,
                "never_within_5%": 0.0,
                "never_within_2%": 0.0,
            }
        )


def test_longest_intervals_are_those_of_a_slow_count() -> None:
    rng = np.random.default_rng(0)
    pages, times = rng.integers(0, 5, 40), np.sort(rng.uniform(0.0, 10.0, 40))
    slow = 0.0
    for page in range(6):  # the sixth is never crawled
        moments = [0.0, *times[pages == page], 10.0]
        slow = max(slow, *(b - a for a, b in pairwise(moments)))
    assert lambdacrawl_props.longest(pages, times, 6, 10.0) == pytest.approx(slow) == 10.0
    without = lambdacrawl_props.longest(pages, times, 5, 10.0)
    assert without < 10.0


def test_gaps_are_in_standard_errors() -> None:
    values = [0.01, 0.03, 0.02, 0.04]
    rows = [Row("", "s", LC, seed, "J_h_gap", value) for seed, value in enumerate(values)]
    [result] = lambdacrawl_props.derive(rows)
    assert result.metric == "J_h_errors"
    assert result.value == pytest.approx(0.025 / (np.std(values, ddof=1) / 2.0))


def test_simulated_penalties_are_the_formulas_and_set_beside_the_least() -> None:
    names = lambdacrawl_concave
    size = {"num_pages": 50, "start": 200.0, "end": 3000.0}
    values = names.measure(0, label=names.OWN, penalty="square root", **size)
    assert abs(values[names.GAP]) < 0.03
    assert values[names.STARVED] == 0.0
    costs = {names.OWN: 4.0, LC: 5.0}
    rows = [Row("", "s", label, 0, names.METRIC, cost) for label, cost in costs.items()]
    gaps = [0.01, 0.03, 0.02, 0.04]
    rows += [Row("", "s", LC, seed, names.GAP, gap) for seed, gap in enumerate(gaps)]
    derived = {(row.policy, row.metric): row.value for row in names.derive(rows)}
    assert derived == {
        (LC, names.SCORE): pytest.approx(0.025 / (np.std(gaps, ddof=1) / 2.0)),
        (LC, names.ABOVE): pytest.approx(0.25),
    }


def test_pages_exchange_their_change_rates_at_half_time() -> None:
    instance = lambdacrawl_shift.shifted(3, 40)
    events = instance.law(np.random.default_rng(0), 20_000.0)
    counts = [
        np.bincount(events.page[(events.time > 1e4) == late], minlength=40) for late in (0, 1)
    ]
    first = instance.change_rate
    np.testing.assert_allclose(counts[0] / 1e4, first, atol=5.0 * np.sqrt(first.max() / 1e4))
    np.testing.assert_allclose(np.sort(counts[1] / 1e4), np.sort(first), atol=0.06)
    assert np.abs(counts[1] / 1e4 - first).max() > 0.3
    assert not instance.complete.any()


def test_costs_are_set_beside_those_of_their_own_poisson_policy() -> None:
    names = lambdacrawl_deterministic
    values = {
        (names.FORMULA, J_H): 8.0,
        (names.GREEDY_H, J_H): 6.0,
        (names.BOUND, J_H): 5.0,
        (names.BLC_FORMULA, J_B): 4.0,
        (names.GREEDY_B, J_B): 3.0,
        (names.FORMULA, J_B): 5.0,
    }
    rows = [Row("", "s", label, 0, metric, value) for (label, metric), value in values.items()]
    result = {row[2:5:2]: row.value for row in names.derive(rows)}
    assert result[names.GREEDY_H, "J_h_below"] == pytest.approx(0.25)
    assert result[names.GREEDY_B, "J_b_below"] == pytest.approx(0.25)
    assert result[names.GREEDY_H, "J_h_over_bound"] == pytest.approx(0.2)


def test_the_binary_bound_of_pages_without_signals_is_the_one_with_them_where_none_come() -> None:
    size = {"num_pages": 40, "start": 0.0, "end": 1.0}
    bound = lambdacrawl_deterministic.BINARY_BOUND
    result = lambdacrawl_deterministic.by_formula(0, label=bound, kind="unobserved", **size)
    instance = lambdacrawl_deterministic.drawn(0, "unobserved", 40)
    stale = 1.0 - solvers.ncis(instance).objective
    assert result[J_B] == pytest.approx(stale * instance.importance.sum(), rel=1e-6)


def test_the_window_of_a_budget_holds_enough_crawls_and_days() -> None:
    for budget in lambdacrawl_budget.BUDGETS:
        window = lambdacrawl_budget.window(budget, quick=False)
        assert window["start"] * budget >= 30.0 - 1e-9
        assert (window["end"] - window["start"]) * budget >= 40.0 - 1e-9
        assert window["start"] >= 100.0


def test_regret_of_knowing_all_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """With known rates and LC's crawls the regret is zero."""
    names = lambdacrawl_learners

    def knowing(env: gymnasium.Env) -> object:
        truth: Instance = env.unwrapped.instance
        policy = names.KNOWN_RATES[names.EVEN]()
        form = policy.compile(truth.problem(), 200, np.random.default_rng(0))
        pages = iter(form.pages)
        return SimpleNamespace(predict=lambda observation: (int(next(pages)), None))

    monkeypatch.setitem(names.LEARNERS, names.ETC, knowing)
    result = names.regrets(0, num_pages=20, horizons=[10.0, 25.0])
    # Up to the end of the last slot at most, which one of both may play and the other not.
    assert abs(result["regret[0]"]) < 0.3
    assert abs(result["regret[1]"]) < 0.3


def test_learners_are_compared_in_a_window_that_all_play() -> None:
    names = lambdacrawl_learners
    short = np.arange(20.0, 9.0, -1.0)[: names.COMMON + 1]
    courses = {names.EVEN: short, names.LLC: 1.5 * short, names.MIRROR: [*(3.0 * short), 12.0, 8.0]}
    rows = [
        Row("", "unobserved", label, 0, metric, value)
        for label, course in courses.items()
        for metric, value in indexed(J_B, course).items()
    ]
    rows.append(Row("", "unobserved", BINARY_BOUND, 0, "J_b_limit", 5.0))
    result = {row[2:5:2]: row.value for row in names.derive(rows)}
    assert short[names.COMMON] == 11.0
    assert result[names.MIRROR, "last_J_b"] == 33.0
    assert result[names.MIRROR, "J_b_above"] == pytest.approx(2.0)
    assert result[names.LLC, "J_b_above"] == pytest.approx(0.5)
    assert result[names.MIRROR, "J_b_over_bound"] == pytest.approx(33.0 / 5.0 - 1.0)
    assert result[names.MIRROR, "J_b_over_bound_at_end"] == pytest.approx(8.0 / 5.0 - 1.0)
    assert names.TIMES[names.COMMON : names.COMMON + 2] == (2000.0, 5000.0)
    assert names.EARLY_TIMES[-1] == 5000.0


def test_costs_of_a_learner_over_lc_with_known_rates_are_of_one_window() -> None:
    """The costs of LC, even, differ between windows: the first, all fresh, is not the measure."""
    names = lambdacrawl_learners
    courses = {names.EVEN: [1.0, 2.0, 4.0], names.LLC: [3.0, 5.0, 6.0]}
    rows = [
        Row("", "mixed", label, 0, metric, value)
        for label, course in courses.items()
        for metric, value in indexed(J_H, course).items()
    ]
    result = {row[2:5:2]: row.value for row in names.derive(rows)}
    assert result[names.LLC, "J_h_above"] == pytest.approx(0.5)


def test_growth_is_a_slope_of_logarithms_and_its_pseudo_values_the_jackknifes() -> None:
    horizons = np.array(lambdacrawl_learners.HORIZONS[:4])
    assert lambdacrawl_learners.growth(3.0 * horizons**0.5) == pytest.approx(0.5)
    assert np.isnan(lambdacrawl_learners.growth(np.array([1.0, -1.0, 2.0, 3.0])))
    rng = np.random.default_rng(0)
    values = horizons**0.5 * rng.uniform(0.5, 1.5, (3, 4))
    rows = [
        Row("", "regret", "ETC", seed, metric, value)
        for seed, course in enumerate(values)
        for metric, value in indexed("regret", course).items()
    ]
    result = [row.value for row in lambdacrawl_learners.derive(rows) if row.metric == "slope"]
    whole = lambdacrawl_learners.growth(values.mean(axis=0))
    for seed, pseudo in enumerate(result):
        rest = values[[k for k in range(3) if k != seed]].mean(axis=0)
        assert pseudo == pytest.approx(3.0 * whole - 2.0 * lambdacrawl_learners.growth(rest))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in experiments.names()
        if name.startswith(("lambdacrawl_fig", "lambdacrawl_spread"))
    ],
)
def test_pictures_are_drawn_of_quick_rows(name: str, tmp_path: Path) -> None:
    experiment = experiments.find(name)
    rows = [
        row
        for setting in experiment.measurements(True)
        for label in setting.labels
        for seed in (0, 1)
        for row in setting.play(label, seed)
    ]
    rows += experiment.derive(rows)
    pictures = getattr(experiment, "PICTURES", {J_H: getattr(experiment, "plot", None)})
    for title, draw in pictures.items():
        draw(rows, tmp_path / f"{title}.png")
        assert (tmp_path / f"{title}.png").stat().st_size > 10_000


def test_a_number_that_papers_share_asks_for_the_paper() -> None:
    assert experiments.find("lambdacrawl_fig3") is lambdacrawl_fig3
    assert experiments.find("lambdacrawl_fig1") is lambdacrawl_fig1
    with pytest.raises(ValueError, match="'fig3' is in several papers: name lambdacrawl_fig3 or"):
        experiments.find("fig3")
