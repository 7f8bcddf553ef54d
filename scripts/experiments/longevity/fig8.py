"""Figure 8: online policies in the first 30 days, on the high-quality set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.setup.curves import COSTS, Curves, points_of, stalenesses
from scripts.experiments.longevity.setup.policies import (
    BOUNDS,
    FITTING,
    FS_D,
    OFFLINE,
    ONLINE,
    OURS,
    UNIFORM,
    settings_at,
    sweeps,
    within,
)
from scripts.experiments.longevity.setup.runs import ID, STEADY, WARM
from scripts.present.verdicts import Claim
from scripts.study.settings import Measurement

TITLE = "Online policies that warm up"
CLAIM = (
    "In the first 30 days both online policies explore about equally, and are about as stale as "
    "uniform refreshing at equal cost."
)
METRIC = "staleness"
REFERENCE = UNIFORM
REPETITIONS, QUICK_REPETITIONS = 10, 2

SET = "quality"
AT = settings_at(SET)
INVESTED = "cost of the warm-up"
"""Of the threshold that has the cost in the setting's name later, in the steady state."""
CANDIDATES = {
    UNIFORM: OFFLINE[UNIFORM],
    **ONLINE,
    FS_D: OFFLINE[FS_D],
}
SECTION = "section 5.1, figure 8"
MARGIN, COST_MARGIN = 0.01, 0.05
"""Margins of staleness and refresh cost for "about equal"; the paper gives none."""

CLAIMS = (
    Claim(
        "During warm-up the curve-fitting and the bound-based policy perform about the same amount "
        "of exploration, which their refresh cost reflects.",
        SECTION,
        within(FITTING, BOUNDS, AT[1:], SECTION, COST_MARGIN, INVESTED),
        "The compared thresholds later lead to equal refresh costs. The learning parameter l "
        "of curve fitting is 30 times the threshold, in the same unit: refresh costs and the "
        "investment in learning are then both proportional to the inverse root of the threshold. "
        "The factor is ours; the paper says that it was tuned so that the two are proportional.",
    ),
    Claim(
        "For a given cost of exploration the staleness in the warm-up is roughly that of uniform "
        "refreshing.",
        SECTION,
        (
            *within(FITTING, UNIFORM, AT, SECTION, MARGIN),
            *within(BOUNDS, UNIFORM, AT, SECTION, MARGIN),
        ),
        "Uniform refreshing knows which pages are static; the others learn it.",
    ),
)
EXPECTED = within(OURS, UNIFORM, AT, "ours", MARGIN)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return all thresholds of all policies."""
    return [sweeps(CANDIDATES, SET, quick)]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return stalenesses at equal cost, and costs of the warm-up for equal costs later."""
    warm, steady = points_of(rows, WARM), points_of(rows, STEADY)
    return [*stalenesses(warm), *invested(warm, steady)]


def invested(warm: Curves, steady: Curves) -> Iterator[Row]:
    """Yield the cost of the warm-up of thresholds that lead to COSTS in the steady state.

    Both costs are linear between thresholds; the smallest threshold that leads to a cost counts.
    """
    for setting, by_label in steady.items():
        for label, by_seed in by_label.items():
            for seed, points in by_seed.items():
                later = np.maximum.accumulate(points.cost[::-1])
                before = warm[setting][label][seed].cost[::-1]
                for cost, name in zip(COSTS, settings_at(setting), strict=True):
                    if later[0] <= cost <= later[-1]:
                        value = float(np.interp(cost, later, before))
                        yield Row(ID, name, label, seed, INVESTED, value)


def _picture(rows: Sequence[Row], path: Path) -> None:
    """Draw the figure."""
    from scripts.experiments.longevity.setup.charts import curves_by_cost

    curves_by_cost(
        points_of(rows, WARM),
        path,
        title=f"{TITLE}: {SET} set, first 30 days",
        labels=tuple(CANDIDATES),
        black=(UNIFORM, FS_D),
    )


PICTURES = {"staleness": _picture}
