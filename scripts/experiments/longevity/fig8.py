"""Olston and Pandey, figure 8: online policies in the first 30 days, on the high-quality set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.measures import curves, pictures, plays
from scripts.experiments.longevity.measures.curves import COSTS, Curves
from scripts.experiments.longevity.measures.entrants import (
    BOUNDS,
    FITTING,
    FS_D,
    OFFLINE,
    ONLINE,
    OURS,
    UNIFORM,
)
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Trend

TITLE = "Online policies that warm up"

SET = "quality"
ALL = curves.at_costs(SET)
INVESTED = "cost of the warm-up"
"""Cost of the threshold whose steady-state cost is in the setting's name."""
ENTRANTS = {UNIFORM: OFFLINE[UNIFORM], **ONLINE, FS_D: OFFLINE[FS_D]}
SECTION = "section 5.1, figure 8"
MARGIN, COST_MARGIN = 0.01, 0.05
"""Margins of staleness and refresh cost for "about equal"; ours, since the paper has none."""


measurements = partial(plays.sweeps, entrants=ENTRANTS, instance=SET)


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of staleness at equal cost in the warm-up, and of warm-up costs by later cost."""
    warm, steady = (curves.points_of(rows, stretch) for stretch in plays.STRETCHES)
    return [*curves.stalenesses(warm), *invested(warm, steady)]


def invested(warm: Curves, steady: Curves) -> list[Row]:
    """Return rows of the warm-up's costs, for thresholds whose steady-state costs are COSTS.

    Both costs are linear between thresholds; the smallest threshold with a cost counts.
    """
    rows = []
    for (setting, label, seed), points in steady.items():
        later = np.maximum.accumulate(points.cost[::-1])
        before = warm[setting, label, seed].cost[::-1]
        for cost in COSTS:
            value = float(np.interp(cost, later, before, np.nan, np.nan))
            name = curves.at_cost(setting, cost)
            rows.append(Row(plays.ID, name, label, seed, INVESTED, value))
    return curves.without_nan(rows)


drawn = partial(pictures.curves_by_cost, labels=tuple(ENTRANTS), black=(UNIFORM, FS_D))

EXPERIMENT = Experiment(
    name="longevity-fig8",
    title=TITLE,
    claim=(
        "In the first 30 days both online policies explore about equally, and are about as stale "
        "as uniform refreshing at equal cost."
    ),
    metric="staleness",
    references=(UNIFORM,),
    repetitions=10,
    settings=measurements,
    derive=derive,
    claims=(
        Claim(
            "During warm-up the curve-fitting and the bound-based policy perform about the same "
            "amount of exploration, which their refresh cost reflects.",
            SECTION,
            (Trend(FITTING, "about", BOUNDS, ALL[1:], SECTION, COST_MARGIN, INVESTED),),
            "The compared thresholds later lead to equal refresh costs. The learning parameter l "
            "of curve fitting is 30 times the threshold, in the same unit: refresh costs and the "
            "investment in learning are then both proportional to the inverse root of the "
            "threshold. The factor is ours; the paper says that it was tuned so that the two are "
            "proportional.",
        ),
        Claim(
            "For a given cost of exploration the staleness in the warm-up is roughly that of "
            "uniform refreshing.",
            SECTION,
            tuple(Trend(one, "about", UNIFORM, ALL, SECTION, MARGIN) for one in (FITTING, BOUNDS)),
            "Uniform refreshing knows which pages are static; the others learn it.",
        ),
    ),
    expected=(Trend(OURS, "about", UNIFORM, ALL, "ours", MARGIN),),
    pictures={
        "staleness": partial(drawn, stretch=plays.WARM, title=f"{TITLE}: {SET} set, first 30 days")
    },
)
