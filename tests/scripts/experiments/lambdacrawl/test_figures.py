"""Computations in the experiments of the LambdaCrawl paper."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from crawl_envs.evaluation import Row
from crawl_envs.instances.urls.lambdacrawl import draw_urls
from crawl_envs.types import Instance
from policies import solvers
from scripts.experiments.lambdacrawl import concave as lambdacrawl_concave
from scripts.experiments.lambdacrawl import fig2 as lambdacrawl_fig2
from scripts.experiments.lambdacrawl import fig3 as lambdacrawl_fig3
from scripts.experiments.lambdacrawl import learners as lambdacrawl_learners
from scripts.experiments.lambdacrawl import props as lambdacrawl_props
from scripts.experiments.lambdacrawl import shift as lambdacrawl_shift
from scripts.experiments.lambdacrawl import spread as lambdacrawl_spread
from scripts.experiments.measures import costs as crawl_costs
from scripts.experiments.measures.costs import BLC_EPS, J_B, J_H, LC
from scripts.study.rows import indexed


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


def test_all_spreads_of_importance_have_the_same_scores() -> None:
    drawn = draw_urls(np.random.default_rng([3, 1]), 500)
    chosen, wide = (lambdacrawl_spread.drawn(3, spread, 500) for spread in (1.5, 2.5))
    for ours, theirs in zip(chosen, drawn, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    assert np.std(np.log(wide.importance)) == pytest.approx(
        np.std(np.log(chosen.importance)) * 2.5 / 1.5
    )


def test_costs_over_a_spread_are_the_formulas() -> None:
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


FOUR_DAYS = {"num_pages": 300, "days": 4}


class TestLearning:
    @pytest.mark.parametrize("label", lambdacrawl_fig3.LEARNERS)
    def test_the_first_policy_follows_a_uniform_guess(self, label: str) -> None:
        result = lambdacrawl_fig3.learned(1, label=label, **FOUR_DAYS)
        kind = "unobserved" if label == lambdacrawl_fig3.BLLC else "mixed"
        pages = crawl_costs.pages_of(crawl_costs.drawn(1, 300, kind))
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

    def test_days_until_a_course_stays_near(self) -> None:
        excess = np.array([0.3, 0.04, 0.06, 0.05, 0.01, 0.0])
        assert lambdacrawl_fig3.days_until(excess, 0.05) == 3.0
        assert lambdacrawl_fig3.days_until(excess, 0.5) == 0.0
        assert lambdacrawl_fig3.days_until(excess, -0.1) == 6.0

    def test_distances_use_true_rates_and_are_large_at_first(self) -> None:
        result = lambdacrawl_fig3.learned(1, label=lambdacrawl_fig3.LLC, **FOUR_DAYS)
        instance = crawl_costs.drawn(1, 300)
        pages = crawl_costs.pages_of(instance)
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

    def test_days_of_learners_that_miss_their_limit_are_lower_bounds(self) -> None:
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


def test_simulated_penalties_are_the_formulas() -> None:
    names = lambdacrawl_concave
    size = {"num_pages": 50, "start": 200.0, "end": 3000.0}
    values = names.measure(0, label=names.LC_OF_C, penalty="square root", **size)
    assert abs(values[names.GAP]) < 0.03
    assert values[names.STARVED] == 0.0


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


def test_regret_with_known_rates_is_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """With known rates and LC's crawls the regret is zero."""
    names = lambdacrawl_learners

    def knowing(env: gymnasium.Env) -> object:
        truth: Instance = env.unwrapped.instance
        policy = names.KNOWN_RATES[names.EVEN]()
        form = policy.compile(truth.problem(), 200, np.random.default_rng(0))
        pages = iter(form.pages)
        return SimpleNamespace(predict=lambda *_, **__: (int(next(pages)), None))

    monkeypatch.setitem(names.LEARNERS, names.ETC, knowing)
    result = names.regrets(0, num_pages=20, horizons=[10.0, 25.0])
    # Up to the end of the last slot at most, which one of both may play and the other not.
    assert abs(result["regret[0]"]) < 0.3
    assert abs(result["regret[1]"]) < 0.3


def test_growth_is_a_slope_of_logarithms() -> None:
    horizons = np.array(lambdacrawl_learners.HORIZONS[:4])
    assert lambdacrawl_learners.growth(3.0 * horizons**0.5) == pytest.approx(0.5)
    assert np.isnan(lambdacrawl_learners.growth(np.array([1.0, -1.0, 2.0, 3.0])))
