"""Plays of policies on pages of fragments, and curves of their costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from crawl_envs.evaluation import Row
from crawl_envs.types.ledgers import FragmentLedger
from policies import bind
from policies.longevity.offline import UniformRefresh
from policies.values.divergence.regions import RegionCurves
from scripts.experiments.longevity import beyond, fig8, fig9, fig11
from scripts.experiments.longevity.measures import curves, pictures, sites
from scripts.experiments.longevity.measures.curves import Points, cost_at, frontier, staleness_at
from scripts.experiments.longevity.measures.entrants import (
    CGM,
    FITTING,
    FS_S,
    INTERVAL,
    OFFLINE,
    UNIFORM,
)
from scripts.experiments.longevity.measures.plays import (
    PARAMETERS,
    STEADY,
    STRETCHES,
    TICKS,
    WARM,
    Entrant,
    of_budget,
    swept,
    ticking,
)
from scripts.study.rows import indexed

NUM_PAGES, SEED = 30, 5


def rows_of(label: str, points: Sequence[tuple[float, float]], seed: int = 0) -> list[Row]:
    """Rows of (cost, staleness) points, the same in both stretches."""
    cost, stale = zip(*points, strict=True)
    return [
        Row("", "set", label, seed, name, value)
        for stretch in STRETCHES
        for measure, column in (("cost", cost), ("staleness", stale), ("holistic", stale))
        for name, value in indexed(f"{measure}, {stretch}", column).items()
    ]


# Plays


def test_a_sweep_agrees_with_single_steps() -> None:
    interval = 3.0
    entrant = replace(OFFLINE[UNIFORM], knobs=(interval,))
    result = swept(SEED, entrant=entrant, instance="quality", num_pages=NUM_PAGES)
    env = ticking("quality", NUM_PAGES, **PARAMETERS)
    observation, _ = env.reset(seed=SEED)
    policy = bind(UniformRefresh(interval=interval), env)
    crawls, divergence, holistic = [], [], []
    over = False
    while not over:
        action, _ = policy.predict(observation)
        observation, _, _, over, info = env.step(action)
        crawls.append(int(action.sum()))
        divergence.append(info["divergence"])
        holistic.append(1.0 - info["holistic_freshness"])
    assert len(crawls) == TICKS
    for stretch, (first, last) in STRETCHES.items():
        expected = {
            "cost": np.mean(crawls[first:last]) / NUM_PAGES,
            "staleness": np.mean(divergence[first:last]),
            "holistic": np.mean(holistic[first:last]),
        }
        for measure, value in expected.items():
            name = f"{measure}, {stretch}[0]"
            assert result[name] == pytest.approx(float(value), rel=1e-9), name
    assert sum(crawls) > 0


def test_the_policy_with_all_refreshes_spends_one() -> None:
    entrant = Entrant("UniformRefresh", (2.0, 4.0), {"stagger": False}, INTERVAL)
    result = swept(SEED, entrant=entrant, instance="quality", num_pages=NUM_PAGES)
    assert result[f"cost, {WARM}[0]"] == 1.0
    assert result[f"cost, {STEADY}[0]"] == 1.0
    assert result[f"cost, {STEADY}[1]"] == pytest.approx(0.5, abs=0.04)


def test_budgets_are_spent_and_signals_ignored_by_policies_that_have_none() -> None:
    given = {"instance": "quality", "num_pages": NUM_PAGES, "budget": 0.2, "decisions": 1.0}
    result, noisy = (
        beyond.measure(SEED, entrant=beyond.KNOWING[FS_S], signals=signals, days=20.0, **given)
        for signals in ("none", "noisy")
    )
    assert result["crawls"] == pytest.approx(0.2, rel=0.1)
    assert 0.0 < result["staleness"] < result["holistic"] < 1.0
    assert result == noisy


def test_the_second_half_has_its_events_only() -> None:
    counted = {"requests": 0, "hits": 0, "wasted": 0, "changes": 0, "changes_found": 0}
    result = [
        FragmentLedger(
            time=time,
            fresh_time=0.75 * 8.0 * time,
            alive_time=8.0 * time,
            crawls=int(4 * time),
            signals=0,
            divergence_time=divergence,
            **counted,
        )
        for time, divergence in ((2.0, 1.0), (4.0, 3.0), (6.0, 4.0), (10.0, 8.0))
    ]
    assert of_budget(result, 8.0) == pytest.approx(
        {"staleness": 0.1, "second half": 4.0 / 32.0, "holistic": 0.25, "crawls": 0.5}
    )


# Curves


def test_a_frontier_has_the_points_that_none_beats() -> None:
    rng = np.random.default_rng(1)
    points = Points(rng.integers(1, 20, 40) / 20.0, rng.integers(1, 20, 40) / 20.0)
    kept = set()
    for i in range(40):
        beaten = any(
            points.cost[j] <= points.cost[i]
            and points.staleness[j] <= points.staleness[i]
            and (points.cost[j], points.staleness[j]) != (points.cost[i], points.staleness[i])
            for j in range(40)
        )
        if not beaten:
            kept.add((points.cost[i], points.staleness[i]))
    result = frontier(points)
    assert set(zip(result.cost, result.staleness, strict=True)) == kept
    assert np.all(np.diff(result.cost) > 0.0)
    assert np.all(np.diff(result.staleness) < 0.0)


def test_curves_are_straight_between_points() -> None:
    points = Points(np.array([0.4, 0.1, 0.2, 0.15]), np.array([0.03, 0.09, 0.05, 0.2]))
    assert staleness_at(points, 0.15) == pytest.approx(0.07)
    assert staleness_at(points, 0.3) == pytest.approx(0.04)
    assert staleness_at(points, 0.9) == pytest.approx(0.03)
    assert np.isnan(staleness_at(points, 0.05))
    assert cost_at(points, 0.07) == pytest.approx(0.15)
    assert cost_at(points, 0.04) == pytest.approx(0.3)
    assert np.isnan(cost_at(points, 0.02))
    assert np.isnan(cost_at(points, 0.1))
    for cost in (0.12, 0.2, 0.37):
        assert cost_at(points, staleness_at(points, cost)) == pytest.approx(cost)


def test_comparisons_are_paired_by_seed() -> None:
    rows = []
    for seed, shift in enumerate((0.0, 0.01)):
        rows += rows_of("CGM", [(0.0, 0.1 + shift), (0.4, 0.06 + shift)], seed)
        rows += rows_of("ours", [(0.0, 0.1 + shift), (0.2, 0.06 + shift)], seed)
    compared = curves.compared(rows, stretch=curves.EPISODE, reference="CGM")
    ratios = {row.setting: row.value for row in compared if row.metric == curves.RATIO}
    assert list(ratios.values()) == pytest.approx([0.5] * 4)
    stale = [row for row in compared if (row.policy, row.metric) == ("ours", "staleness")]
    assert [row.value for row in stale[:4]] == pytest.approx([0.09, 0.08, 0.06, 0.06])
    points = curves.points_of(rows, curves.EPISODE)
    names = {"ours": FITTING, "CGM": CGM}
    named = {(fig11.SET, names[label], seed): of for (_, label, seed), of in points.items()}
    assert [row.value for row in fig11.growth(named)] == pytest.approx([0.02 - 0.005] * 2)


def test_both_stretches_together_are_their_mean() -> None:
    rows = rows_of("a", [(0.2, 0.04)])
    warm = f"cost, {WARM}[0]"
    rows = [row._replace(value=0.4) if row.metric == warm else row for row in rows]
    points = curves.points_of(rows, curves.EPISODE)["set", "a", 0]
    assert points.cost == pytest.approx([0.3])


def test_investment_is_of_the_smallest_threshold_with_the_cost() -> None:
    warm = {("quality", "a", 0): Points(np.array([0.9, 0.5, 0.3, 0.1]), np.zeros(4))}
    steady = {("quality", "a", 0): Points(np.array([0.45, 0.3, 0.1, 0.05]), np.zeros(4))}
    result = {row.setting: row.value for row in fig8.invested(warm, steady)}
    assert result == pytest.approx(
        {
            "quality, cost 0.05": 0.1,
            "quality, cost 0.1": 0.3,
            "quality, cost 0.2": 0.4,
            "quality, cost 0.4": 0.5 + 0.4 * 2.0 / 3.0,
        }
    )


def test_a_picture_of_ratios_notes_missing_seeds(tmp_path: Path, drawn: list[Figure]) -> None:
    cells = [("at 0.1", label, seed) for label in ("ours", "CGM") for seed in range(3)]
    cells += [("at 0.4", "ours", 1), *(("at 0.4", "CGM", seed) for seed in range(3))]
    rows = [Row("", *cell, curves.RATIO, 0.5 + 0.1 * cell[2]) for cell in cells]
    given = {"title": "Ratios", "labels": ("ours", "CGM")}
    pictures.ratios(rows, tmp_path / "ratios.png", **given)
    [axes] = drawn[0].axes
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["at 0.1", "at 0.4\nours: 1 of 3 seeds"]
    assert "over 3 seeds" in drawn[0].get_suptitle()


def test_visits_are_of_frequent_pages_at_equal_cost() -> None:
    """Of 30 pages by 14 thresholds; then between two points, and not beyond them."""
    size = {"instance": "quality", "num_pages": NUM_PAGES}
    found = fig11.visited(SEED, label=CGM, **size)
    assert found[f"{fig11.SPENT}[0]"] > found[f"{fig11.SPENT}[13]"]
    assert all(0.0 <= value <= 1.0 for value in found.values())
    points = indexed(fig11.SPENT, [0.3, 0.1]) | indexed(fig11.VISITS, [0.9, 0.5])
    rows = [Row("", "quality, page by page", CGM, 0, *item) for item in points.items()]
    at = {row.setting: row.value for row in fig11.visits(rows)}
    assert at == {
        "quality, cost 0.1": pytest.approx(0.5),
        "quality, cost 0.2": pytest.approx(0.7),
    }


def test_twice_the_best_period_is_a_doubling_away(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, _ = sites.drawn_set("quality", 200, 1.0, SEED)
    best = RegionCurves(instance.regions).period(np.full(200, fig9.THRESHOLD))
    played = ticking("quality", 200)
    played.reset(seed=SEED)
    monkeypatch.setattr(fig9.plays, "ticking", lambda *_, **__: played)
    policy = SimpleNamespace(periods=lambda: 2.0 * best)
    monkeypatch.setattr(fig9.plays, "ledgers", lambda *_: ([], policy))
    found = fig9.distance(SEED, days=30.0, instance="quality", num_pages=200)
    assert found == {fig9.DISTANCE: pytest.approx(1.0)}
