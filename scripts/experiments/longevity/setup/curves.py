"""Curves of staleness over refresh cost, and comparisons at equal cost or equal staleness.

A policy has a point for each of its knobs, on each seed. Its curve is the linear interpolation of
its Pareto front: points that no other of its points beats in both cost and staleness. Curves are
compared seed by seed, on the same pages and events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments.longevity.setup.runs import ID, STRETCHES, metric_of
from scripts.study.rows import gathered

WHOLE = "whole"
"""Both stretches together; they are equally long."""
COSTS = (0.05, 0.1, 0.2, 0.4)
"""Refresh costs at which curves are compared."""
RATIO = "cost ratio"


class Points(NamedTuple):
    """Points of a policy on a seed, by its knobs: cost and staleness, (K,) each."""

    cost: FloatArray
    staleness: FloatArray


Curves = dict[str, dict[str, dict[int, Points]]]
"""By setting, label and seed."""


def points_of(rows: Sequence[Row], stretch: str, measure: str = "staleness") -> Curves:
    """Return the points of all policies in a stretch, or in the WHOLE."""
    stretches = tuple(STRETCHES) if stretch == WHOLE else (stretch,)
    columns = [
        [gathered(rows, metric_of(part, name)) for part in stretches] for name in ("cost", measure)
    ]
    curves: Curves = {}
    for setting, label, seed in columns[0][0]:
        key = setting, label, seed
        cost, stale = (np.mean([part[key] for part in column], axis=0) for column in columns)
        curves.setdefault(setting, {}).setdefault(label, {})[seed] = Points(cost, stale)
    return curves


def frontier(points: Points) -> Points:
    """Return the points that no other beats in both, by rising cost and falling staleness."""
    order = np.lexsort((points.staleness, points.cost))
    cost, stale = points.cost[order], points.staleness[order]
    before = np.minimum.accumulate(np.concatenate(([np.inf], stale[:-1])))
    kept = stale < before
    return Points(cost[kept], stale[kept])


def staleness_at(points: Points, cost: float) -> float:
    """Return the staleness of the curve at a cost; NaN below its least cost.

    The last point stands for all higher costs: its policy would not use a larger budget.
    """
    best = frontier(points)
    return float(np.interp(cost, best.cost, best.staleness, left=np.nan))


def cost_at(points: Points, staleness: float) -> float:
    """Return the least cost at which the curve is no staler; NaN outside its range."""
    best = frontier(points)
    return float(np.interp(-staleness, -best.staleness, best.cost, left=np.nan, right=np.nan))


def at_cost(setting: str, cost: float) -> str:
    """Return the name of the setting in which curves are compared at a cost."""
    return f"{setting}, cost {cost:g}"


def as_stale(setting: str, reference: str, cost: float) -> str:
    """Return the name of the setting that compares costs at a reference's staleness at a cost."""
    return f"{setting}, as stale as {reference} at {cost:g}"


def stalenesses(
    curves: Curves, metric: str = "staleness", costs: Sequence[float] = COSTS
) -> Iterator[Row]:
    """Yield the staleness of every curve at some costs, a setting for each cost."""
    for setting, by_label in curves.items():
        for label, by_seed in by_label.items():
            for seed, points in by_seed.items():
                for cost in costs:
                    value = staleness_at(points, cost)
                    if value == value:
                        yield Row(ID, at_cost(setting, cost), label, seed, metric, value)


def cost_ratios(curves: Curves, reference: str, costs: Sequence[float] = COSTS) -> Iterator[Row]:
    """Yield the cost of every other policy over a reference's, at equal staleness."""
    for setting, by_label in curves.items():
        for seed, base in by_label.get(reference, {}).items():
            for cost in costs:
                stale = staleness_at(base, cost)
                for label, by_seed in by_label.items():
                    if label == reference or seed not in by_seed or stale != stale:
                        continue
                    ratio = cost_at(by_seed[seed], stale) / cost
                    if ratio == ratio:
                        name = as_stale(setting, reference, cost)
                        yield Row(ID, name, label, seed, RATIO, ratio)


def mean_points(by_seed: Mapping[int, Points]) -> tuple[Points, FloatArray]:
    """Return means over seeds by knob, and half-widths of 95% intervals of staleness, (K,)."""
    from crawl_envs.evaluation import mean_and_half_width

    cost = np.mean([points.cost for points in by_seed.values()], axis=0)
    stale = np.array([points.staleness for points in by_seed.values()])
    intervals = np.array([mean_and_half_width(list(column)) for column in stale.T])
    return Points(cost, intervals[:, 0]), np.nan_to_num(intervals[:, 1])
