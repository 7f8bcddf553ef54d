"""Compare curves of staleness over refresh cost, at equal cost or equal staleness.

A policy has a point for each knob and seed. Its curve is the linear interpolation of its Pareto
front: the points that no other point beats in both cost and staleness. Curves are compared by seed,
on the same pages and events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments.longevity.measures.plays import ID, STRETCHES
from scripts.study.rows import gathered

EPISODE = "whole"
"""Name of both stretches together, which are equally long."""
COSTS = (0.05, 0.1, 0.2, 0.4)
"""Refresh costs at which curves are compared."""
RATIO = "cost ratio"


class Points(NamedTuple):
    """Refresh cost and staleness of a policy on a seed, an entry per knob; (K,) each."""

    cost: FloatArray
    staleness: FloatArray


Curves = dict[tuple[str, str, int], Points]
"""By setting, label and seed."""


def points_of(rows: Sequence[Row], stretch: str, measure: str = "staleness") -> Curves:
    """Return cost and staleness by setting, label and seed, in a stretch or all of EPISODE."""
    stretches = tuple(STRETCHES) if stretch == EPISODE else (stretch,)
    columns = [
        [gathered(rows, f"{name}, {part}") for part in stretches] for name in ("cost", measure)
    ]
    return {
        key: Points(*(np.mean([part[key] for part in column], axis=0) for column in columns))
        for key in columns[0][0]
    }


def frontier(points: Points) -> Points:
    """Return the Pareto front of points, by increasing cost and decreasing staleness."""
    order = np.lexsort((points.staleness, points.cost))
    cost, stale = points.cost[order], points.staleness[order]
    before = np.minimum.accumulate(np.concatenate(([np.inf], stale[:-1])))
    optimal = stale < before
    return Points(cost[optimal], stale[optimal])


def staleness_at(points: Points, cost: float) -> float:
    """Return the staleness of a policy's curve at a cost; NaN below the curve's smallest cost.

    The last point counts for all higher costs, since its policy would not use a larger budget.
    """
    best = frontier(points)
    return float(np.interp(cost, best.cost, best.staleness, left=np.nan))


def cost_at(points: Points, staleness: float) -> float:
    """Return the smallest cost at which a curve has a given staleness; NaN outside its range."""
    best = frontier(points)
    return float(np.interp(-staleness, -best.staleness, best.cost, left=np.nan, right=np.nan))


def at_cost(setting: str, cost: float) -> str:
    """Return the name of the setting in which policies are compared at this refresh cost."""
    return f"{setting}, cost {cost:g}"


def at_costs(setting: str, costs: Sequence[float] = COSTS) -> tuple[str, ...]:
    """Return the names of the settings in which policies are compared at these refresh costs."""
    return tuple(at_cost(setting, cost) for cost in costs)


def as_stale(setting: str, reference: str, cost: float) -> str:
    """Return the name of the setting that compares costs at a reference's staleness at a cost."""
    return f"{setting}, as stale as {reference} at {cost:g}"


def without_nan(rows: Iterable[Row]) -> list[Row]:
    """Return the rows whose value is not NaN."""
    return [row for row in rows if row.value == row.value]


def stalenesses(
    curves: Curves, metric: str = "staleness", costs: Sequence[float] = COSTS
) -> list[Row]:
    """Return rows of the staleness of every curve at some costs, in a setting per cost."""
    return without_nan(
        Row(ID, at_cost(setting, cost), label, seed, metric, staleness_at(points, cost))
        for (setting, label, seed), points in curves.items()
        for cost in costs
    )


def cost_ratios(curves: Curves, reference: str, costs: Sequence[float] = COSTS) -> list[Row]:
    """Return rows of each policy's cost over the reference's, at the same staleness."""
    rows = []
    for (setting, label, seed), base in curves.items():
        for cost in costs if label == reference else ():
            name, stale = as_stale(setting, reference, cost), staleness_at(base, cost)
            rows += [
                Row(ID, name, rival, seed, RATIO, cost_at(points, stale) / cost)
                for (there, rival, number), points in curves.items()
                if (there, number) == (setting, seed) and rival != reference
            ]
    return without_nan(rows)


def compared(
    rows: Sequence[Row],
    *,
    stretch: str,
    reference: str = "",
    settings: Sequence[str] = (),
    costs: Sequence[float] = COSTS,
) -> list[Row]:
    """Return rows of staleness at equal cost, and of costs at the staleness of a reference.

    Args:
        rows: rows of sweeps.
        stretch: one of STRETCHES, or EPISODE.
        reference: label of the reference; empty: none.
        settings: settings to compare; empty: all.
        costs: costs at which to compare.
    """
    curves = points_of(rows, stretch)
    selected = {key: points for key, points in curves.items() if not settings or key[0] in settings}
    ratios = cost_ratios(selected, reference, costs) if reference else []
    return [*stalenesses(selected, costs=costs), *ratios]
