"""Olston and Pandey, figure 9: online policies in the last 15 of 30 ticks, high-quality set."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from policies.values.divergence.regions import RegionCurves
from scripts.experiments.longevity import fig8
from scripts.experiments.longevity.measures import curves, plays
from scripts.experiments.longevity.measures.entrants import (
    BOUNDS,
    FITTING,
    FS_D,
    ONLINE,
    OURS,
    RISK,
    UNIFORM,
    UNIFORM_ALL,
)
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Range, Trend, trends
from scripts.study.settings import Measurement, spec

TITLE = "Online policies that have warmed up"

ALL = fig8.ALL

SECTION = "section 5.1, figure 9"
THRESHOLD = 2.0
"""Threshold in days of the refresh periods that should converge."""
PERIODS, DISTANCE = f"{fig8.SET}, periods", "distance of periods from the optimum, in doublings"
EARLY, LATE = f"{BOUNDS}, 30 days", f"{BOUNDS}, 240 days"

FROM = ALL[1:]
"""Without the lowest cost: there, all first waits of our policy end with the warm-up."""
EXPECTED = (
    *(Trend(label, "above", OURS, FROM, "ours") for label in (FITTING, BOUNDS, UNIFORM)),
    *trends(
        UNIFORM_ALL, "above", (FITTING, BOUNDS, OURS), FROM, "it does not know static pages either"
    ),
)


@spec("longevity-period-distance")
def distance(seed: int, *, days: float, instance: str, num_pages: int) -> dict[str, float]:
    """Return the mean distance of periods, in doublings, from optima that ticks and risk permit."""
    entrant = ONLINE[BOUNDS]
    env: Any = plays.ticking(instance, num_pages, days=days, **entrant.shown)
    _, policy = plays.ledgers(env, partial(entrant.make, knob=THRESHOLD), seed)
    best = RegionCurves(env.unwrapped.instance.regions).period(np.full(num_pages, THRESHOLD))
    within = (best > 2.0 * plays.TICK) & (best < RISK * THRESHOLD)
    return {DISTANCE: float(np.abs(np.log2(policy.periods()[within] / best[within])).mean())}


def measurements(quick: bool) -> list[Measurement]:
    """Return the measurements of all policies by threshold, and of periods of divergence bounds."""
    [full] = fig8.measurements(quick)
    measures = {EARLY: partial(distance, days=30.0), LATE: partial(distance, days=240.0)}
    return [full, Measurement(PERIODS, measures, full.arguments, plays.ID)]


EXPERIMENT = Experiment(
    name="longevity-fig9",
    title=TITLE,
    claim=(
        "In the last 30 days both online policies leave copies less stale than uniform refreshing "
        "at equal cost, curve fitting slightly less than the bound-based policy."
    ),
    metric="staleness",
    references=(UNIFORM, FITTING),
    repetitions=10,
    settings=measurements,
    derive=partial(curves.compared, stretch=plays.STEADY, reference=UNIFORM),
    claims=(
        Claim(
            "In steady state both online policies perform significantly better than uniform "
            "refreshing.",
            SECTION,
            tuple(Trend(UNIFORM, "above", label, ALL, SECTION) for label in (FITTING, BOUNDS)),
            "Uniform refreshing knows which pages are static and spends nothing on them. Online "
            "policies keep checking static pages: curve fitting by its learning bound, the "
            "bound-based policy every 10 thresholds by its risk bound, which takes more than two "
            "fifths of its refreshes (seed 0, thresholds of 1, 2 and 4 days). The further label is "
            "uniform refreshing of all pages, which knows as little as they do.",
        ),
        Claim(
            "Curve fitting is slightly ahead of the bound-based policy.",
            SECTION,
            (Trend(BOUNDS, "above", FITTING, ALL, SECTION),),
            "The test is for any lead, however slight.",
        ),
        Claim(
            "An online policy cannot approach the performance of the offline policy FS-D.",
            SECTION,
            tuple(Trend(label, "above", FS_D, ALL, SECTION) for label in (FITTING, BOUNDS)),
        ),
        Claim(
            "Periods of the bound-based policy converge if the behaviour of pages is stationary.",
            "section 4.3",
            (
                Trend(EARLY, "above", LATE, (PERIODS,), "nearer", metric=DISTANCE),
                Range(LATE, 0.0, 1.0, (PERIODS,), "a factor of two: ours", DISTANCE),
            ),
            "Of optima between two ticks and the risk bound. Nearer by little: the mean distance "
            "is 0.64 after 30 days and 0.62 after 240, as periods go on being doubled and halved.",
        ),
    ),
    expected=EXPECTED,
    pictures={
        "staleness": partial(
            fig8.drawn, stretch=plays.STEADY, title=f"{TITLE}: {fig8.SET} set, days 32 to 62"
        )
    },
)
