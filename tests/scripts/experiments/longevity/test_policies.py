"""Experiments on policies for pages of fragments: plays, curves, and what is derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from crawl_envs.instances import traces
from crawl_envs.instances.traces.fragments import window_contents
from crawl_envs.types.contents import Contents
from crawl_envs.types.ledgers import FragmentLedger
from policies.longevity.offline import FragmentStatic, UniformRefresh
from scripts.experiments.longevity import (
    beyond as longevity_beyond,
)
from scripts.experiments.longevity import (
    fig6 as longevity_fig6,
)
from scripts.experiments.longevity import (
    fig8 as longevity_fig8,
)
from scripts.experiments.longevity import (
    fig9 as longevity_fig9,
)
from scripts.experiments.longevity import (
    fig10 as longevity_fig10,
)
from scripts.experiments.longevity import (
    fig11 as longevity_fig11,
)
from scripts.experiments.longevity import (
    fig12 as longevity_fig12,
)
from scripts.experiments.longevity import (
    real as longevity_real,
)
from scripts.experiments.longevity import (
    table52 as longevity_table52,
)
from scripts.experiments.longevity.setup import (
    curves as longevity_curves,
)
from scripts.experiments.longevity.setup import fragment_records
from scripts.experiments.longevity.setup import (
    policies as longevity_policies,
)
from scripts.experiments.longevity.setup import (
    sites as longevity_sites,
)
from scripts.experiments.longevity.setup.curves import Points, cost_at, frontier, staleness_at
from scripts.experiments.longevity.setup.runs import (
    STEADY,
    STRETCHES,
    TICKS,
    WARM,
    budgeted,
    ledgers,
    metric_of,
    of_budget,
    swept,
    ticking,
)
from scripts.present.verdicts import Level, Trend, judge
from scripts.study.rows import indexed

EXPERIMENTS = (
    longevity_fig6,
    longevity_fig8,
    longevity_fig9,
    longevity_fig10,
    longevity_fig11,
    longevity_fig12,
    longevity_table52,
    longevity_beyond,
    longevity_real,
)
NUM_PAGES, SEED = 30, 5


def rows_of(label: str, points: Sequence[tuple[float, float]], seed: int = 0) -> list[Row]:
    """Rows of (cost, staleness) points, the same in both stretches."""
    cost, stale = zip(*points, strict=True)
    return [
        Row("", "set", label, seed, name, value)
        for stretch in STRETCHES
        for measure, column in (("cost", cost), ("staleness", stale), ("holistic", stale))
        for name, value in indexed(metric_of(stretch, measure), column).items()
    ]


# Plays


def test_a_sweep_is_what_single_steps_say() -> None:
    interval = 3.0
    result = swept(
        SEED,
        instance="quality",
        num_pages=NUM_PAGES,
        make=longevity_policies.uniform,
        knobs=(interval,),
        reveal="parameters",
    )
    env = ticking("quality", NUM_PAGES, reveal="parameters")
    observation, _ = env.reset(seed=SEED)
    policy = UniformRefresh(env, interval=interval)
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
            name = f"{metric_of(stretch, measure)}[0]"
            assert result[name] == pytest.approx(float(value), rel=1e-9), name
    assert sum(crawls) > 0


def test_stretches_cover_all_ticks_once() -> None:
    covered = [tick for first, last in STRETCHES.values() for tick in range(first, last)]
    assert covered == list(range(TICKS))


def test_the_policy_with_all_refreshes_spends_one() -> None:
    result = swept(
        SEED,
        instance="quality",
        num_pages=NUM_PAGES,
        make=lambda env, knob: UniformRefresh(env, interval=knob, stagger=False),
        knobs=(2.0, 4.0),
        reveal="importance",
    )
    assert result[f"{metric_of(WARM, 'cost')}[0]"] == 1.0
    assert result[f"{metric_of(STEADY, 'cost')}[0]"] == 1.0
    assert result[f"{metric_of(STEADY, 'cost')}[1]"] == pytest.approx(0.5, abs=0.04)


def test_budgets_are_spent_and_both_halves_counted() -> None:
    budget, days = 0.2, 20.0
    played = partial(
        budgeted,
        SEED,
        instance="quality",
        signals="none",
        num_pages=NUM_PAGES,
        budget=budget,
        make=FragmentStatic,
        decisions=1.0,
        reveal="parameters",
    )
    result = played(days=days)
    assert result["crawls"] == pytest.approx(budget, rel=0.1)
    assert 0.0 < result["staleness"] < result["holistic"] < 1.0


def test_the_second_half_is_what_came_after_it_began() -> None:
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


def test_signals_do_not_affect_policies_that_ignore_them() -> None:
    expected = [
        budgeted(
            SEED,
            instance="quality",
            signals=signals,
            num_pages=NUM_PAGES,
            budget=0.2,
            make=FragmentStatic,
            decisions=1.0,
            days=20.0,
            reveal="parameters",
        )
        for signals in ("none", "noisy")
    ]
    assert expected[0] == expected[1]


# Curves


def test_a_frontier_is_what_no_other_point_beats() -> None:
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


def test_ratios_leads_and_stalenesses_are_paired_by_seed() -> None:
    rows = []
    for seed, shift in enumerate((0.0, 0.01)):
        rows += rows_of("CGM", [(0.0, 0.1 + shift), (0.4, 0.06 + shift)], seed)
        rows += rows_of("ours", [(0.0, 0.1 + shift), (0.2, 0.06 + shift)], seed)
    curves = longevity_curves.points_of(rows, longevity_curves.WHOLE)
    ratios = {row.setting: row for row in longevity_curves.cost_ratios(curves, "CGM")}
    assert len(ratios) == 4
    for row in ratios.values():
        assert row.value == pytest.approx(0.5)
    named = {longevity_fig11.SET: {longevity_fig11.FITTING: curves["set"]["ours"]}}
    named[longevity_fig11.SET][longevity_fig11.CGM] = curves["set"]["CGM"]
    grown = list(longevity_fig11.growth(named))
    assert [row.value for row in grown] == pytest.approx([0.02 - 0.005] * 2)
    stale = [row for row in longevity_curves.stalenesses(curves) if row.policy == "ours"]
    assert [row.value for row in stale[:4]] == pytest.approx([0.09, 0.08, 0.06, 0.06])


def test_both_stretches_together_are_their_mean() -> None:
    rows = rows_of("a", [(0.2, 0.04)])
    warm = metric_of(WARM, "cost")
    rows = [row._replace(value=0.4) if row.metric == f"{warm}[0]" else row for row in rows]
    points = longevity_curves.points_of(rows, longevity_curves.WHOLE)["set"]["a"][0]
    assert points.cost == pytest.approx([0.3])


def test_what_is_invested_is_read_off_the_smallest_threshold_that_does() -> None:
    warm = {"quality": {"a": {0: Points(np.array([0.9, 0.5, 0.3, 0.1]), np.zeros(4))}}}
    steady = {"quality": {"a": {0: Points(np.array([0.45, 0.3, 0.1, 0.05]), np.zeros(4))}}}
    result = {row.setting: row.value for row in longevity_fig8.invested(warm, steady)}
    assert result == pytest.approx(
        {
            "quality, cost 0.05": 0.1,
            "quality, cost 0.1": 0.3,
            "quality, cost 0.2": 0.4,
            "quality, cost 0.4": 0.5 + 0.4 * 2.0 / 3.0,
        }
    )


# Contents


def fragments_at(contents: Contents, page: int, time: float) -> dict[int, int]:
    """Keys and sizes of the fragments of a page at a time, one spell after the other."""
    result = {}
    for row in range(contents.start[page], contents.start[page + 1]):
        if contents.birth[row] < time <= contents.death[row]:
            result[int(contents.key[row])] = int(contents.size[row])
    return result


def test_changed_snapshots_are_those_with_other_fragments() -> None:
    env = ticking("quality", NUM_PAGES)
    env.reset(seed=SEED)
    contents = env.unwrapped.contents()  # type: ignore[attr-defined]  # of fragments
    times = np.arange(2.0, 61.0, 2.0, dtype=np.float64)
    result = longevity_policies.changed_snapshots(contents, times)
    for page in range(NUM_PAGES):
        versions = [fragments_at(contents, page, time) for time in times]
        expected = [float(before != after) for before, after in pairwise(versions)]
        assert result[page].tolist() == expected
    assert 0.0 < result.mean() < 1.0


def test_some_pages_say_what_they_said() -> None:
    trace = traces.load(traces.find("garden-handbook"))
    contents, _ = window_contents(trace, 100.0, 200.0)
    chosen = np.array([7, -1, 2])
    result = fragment_records.of_pages(contents, chosen)
    assert result.num_pages == 3
    for time in (0.5, 40.0, 99.0):
        for place, page in enumerate(chosen):
            expected = fragments_at(contents, page, time) if page >= 0 else {}
            assert fragments_at(result, place, time) == expected
    assert fragments_at(result, 0, 40.0)


def test_curves_of_a_site_are_mean_distances_of_its_versions() -> None:
    played = longevity_sites.record("garden-handbook")
    curves = longevity_sites.curves("garden-handbook")
    trace, split = played.trace, played.split
    contents, rows = window_contents(trace, split.fit_start, split.fit_end)
    lasting = np.flatnonzero(
        (trace.created[played.pages] <= 0.0) & np.isin(played.pages, rows)
        & (trace.deleted[played.pages] > split.fit_end)
    )  # fmt: skip
    times = np.arange(2.0, split.fit_end + 1e-9, 2.0)
    for page in lasting[:3]:
        row = int(np.searchsorted(rows, played.pages[page]))
        versions = [set(fragments_at(contents, row, time)) for time in times]
        means = []
        for gap in range(1, len(times)):
            pairs = zip(versions[:-gap], versions[gap:], strict=True)
            means.append(
                np.mean([1.0 - len(a & b) / len(a | b) if a | b else 0.0 for a, b in pairs])
            )
        assert curves.table[page, 1:] == pytest.approx(np.maximum.accumulate(means), abs=1e-12)
    absent = ~np.isin(played.pages, rows)
    if absent.any():
        expected = np.maximum.accumulate(curves.table[~absent].mean(axis=0))
        assert curves.table[absent][0] == pytest.approx(expected)


def test_a_site_is_played_from_its_middle_with_the_budget_given() -> None:
    played = longevity_sites.record("garden-handbook")
    alive = longevity_sites.alive_pages(played)
    env = longevity_sites.replayed(
        "garden-handbook", signals="none", form="scores", bandwidth=alive / 10.0, batch=2
    )
    result, _ = ledgers(env, UniformRefresh, 0)
    length = played.split.end - played.split.start
    assert result[-1].crawls == pytest.approx(length * alive / 10.0, rel=0.02)
    assert result[-1].alive_time / result[-1].time == pytest.approx(alive, rel=0.02)
    assert result[-1].wasted == 0


def test_an_unknown_site_is_said() -> None:
    with pytest.raises(ValueError, match="site must be one of garden-handbook"):
        longevity_sites.record("nowhere")


# Experiments


@pytest.fixture(scope="module")
def played_rows() -> dict[str, list[Row]]:
    """One seed of each experiment, as quick as can be."""
    result = {}
    for experiment in EXPERIMENTS:
        rows = []
        for setting in experiment.measurements(True):
            for label in setting.labels:
                rows += setting.play(label, 0)
        result[experiment.__name__] = rows
    return result


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.__name__.split("_")[-1])
def test_experiments_give_what_they_expect(
    experiment: ModuleType, played_rows: dict[str, list[Row]], tmp_path: Path
) -> None:
    rows = played_rows[experiment.__name__]
    derive = getattr(experiment, "derive", None)
    rows = [*rows, *(derive(rows) if derive is not None else ())]
    there = {(row.policy, row.metric) for row in rows}
    expected = [
        *(test for claim in experiment.CLAIMS for test in claim.tests),
        *experiment.EXPECTED,
    ]
    assert expected
    for test in expected:
        metric = test.metric or experiment.METRIC
        labels = (test.first, test.second) if isinstance(test, Trend) else (test.policy,)
        for label in labels:
            assert (label, metric) in there, test
        assert not isinstance(test, Level)
    assert judge(rows, experiment.METRIC, expected)
    for name, draw in experiment.PICTURES.items():
        draw(rows, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_labels_of_both_forms_are_known() -> None:
    for result in (*longevity_policies.OFFLINE.values(), *longevity_policies.ONLINE.values()):
        assert all(first < second for first, second in pairwise(result.knobs))
        assert result.reveal in ("parameters", "importance")
    leanest = longevity_policies.MEMORIES["m=8, h=1"]
    assert leanest == longevity_policies.Memory(8, 1)
