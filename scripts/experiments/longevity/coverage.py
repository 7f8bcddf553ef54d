"""Olston and Pandey, section 4.4: a threshold divides crawls between refreshes and new pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments.longevity.measures import pictures, plays
from scripts.experiments.longevity.measures.curves import Curves, Points
from scripts.experiments.longevity.measures.entrants import (
    BOUNDS,
    FITTING,
    FS_D,
    FS_S,
    NAIVE_STATIC,
    OFFLINE,
    ONLINE,
    UNIFORM,
)
from scripts.present import charts
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import gathered, indexed
from scripts.study.specs import spec

TITLE = "Freshness and coverage"
METRIC = "loss"

TICK, DAYS, WARM = 0.5, 240.0, 80.0
"""Days between decisions, of an episode, and of its start. The start is not counted, since refresh
periods of large thresholds take weeks."""
KNOBS = tuple(0.02 * 2.0**step for step in range(9))
"""Thresholds in days."""
WORTHS = (0.08, 0.32, 1.28)
"""Values v of a new page, in divergence times days, which are among KNOBS."""
NAMES = tuple(f"a new page is worth {page_value:g} days" for page_value in WORTHS)
BUDGET = 0.5
"""Crawls per known page and day in the picture; those that do not refresh fetch new pages."""
KNOB, COST, STALENESS = "knob", "refreshes", "staleness"
BEST, RATIO, RATE = "loss of the best knob", "best threshold over worth", "exchange rate over worth"

HINDSIGHT = {
    UNIFORM: replace(
        OFFLINE[UNIFORM], knobs=(1.0, 2.0, 3.0, 4.5, 7.0, 10.0, 15.0, 22.0, 33.0, 50.0, 75.0, 110.0)
    ),
    NAIVE_STATIC: OFFLINE[NAIVE_STATIC],
}
"""Policies whose knob is not in divergence times days; the best knob in hindsight counts."""
THRESHOLDED = {
    label: replace((OFFLINE | ONLINE)[label], knobs=KNOBS)
    for label in (FS_S, FS_D, FITTING, BOUNDS)
}
ENTRANTS = HINDSIGHT | THRESHOLDED
SECTION = "section 4.4"

CLAIMS = (
    Claim(
        "To base refreshes on a fixed threshold of utility is optimal in freshness per unit cost.",
        SECTION,
        tuple(Trend(label, "above", FS_S, NAMES, SECTION) for label in HINDSIGHT),
        "The loss of FS-S is that of T = v. The others have their best interval or threshold of "
        "all, chosen in hindsight.",
    ),
    Claim(
        "T is set properly if and only if a boost of freshness of T is preferable to a new page, "
        "and a new page to a smaller boost.",
        SECTION,
        (Range(FS_S, 0.5, 2.0, NAMES, SECTION, RATE), Range(FS_S, 0.5, 2.0, NAMES, SECTION, RATIO)),
        "The exchange rate is staleness over refreshes, of T = 2 v less that of T = v / 2: what "
        "one refresh less costs. This judges FS-S, which knows the curves; of FS-D and of policies "
        "that learn see below. By section 2.2 it lies between the two thresholds. Thresholds "
        "are a factor of 2 apart.",
    ),
)


@spec("longevity-coverage-sweep")
def simulated(
    seed: int, *, entrant: plays.Entrant, instance: str, num_pages: int, days: float
) -> dict[str, float]:
    """Return a policy's refreshes per page and day, and its staleness, from day WARM, by knob."""
    env = plays.ticking(instance, num_pages, tick=TICK, days=days, **entrant.shown)

    def measure(records: plays.Ledgers) -> dict[str, float]:
        start, end = records[round(days * WARM / DAYS / TICK)], records[-1]
        late, alive = end.time - start.time, end.alive_time - start.alive_time
        return {
            COST: (end.crawls - start.crawls) / num_pages / late,
            STALENESS: (end.divergence_time - start.divergence_time) / alive,
        }

    return plays.sweep(env, entrant, seed, measure) | indexed(KNOB, entrant.knobs)


def weighed(
    knobs: FloatArray, cost: FloatArray, stale: FloatArray, page_value: float, thresholds: bool
) -> dict[str, float]:
    """Return the losses per page and day if a new page has value v, by metric.

    The loss is staleness plus v times refreshes, since each refresh replaces a new page.

    Args:
        knobs: (K,), increasing.
        cost: refreshes per page and day, (K,).
        stale: staleness, (K,).
        page_value: v; v / 2, v and 2 v are among the knobs if these are thresholds.
        thresholds: whether knobs are thresholds. METRIC is then the loss of T = v, else the loss
            of the best knob.
    """
    loss = stale + page_value * cost
    best = float(loss.min())
    if not thresholds:
        return {METRIC: best, BEST: best}
    targets = (part * page_value for part in (0.5, 1.0, 2.0))
    below, equal, above = (int(np.argmin(np.abs(knobs - target))) for target in targets)
    rate = (stale[above] - stale[below]) / (cost[below] - cost[above])
    return {
        METRIC: float(loss[equal]),
        BEST: best,
        RATIO: float(knobs[loss.argmin()]) / page_value,
        RATE: float(rate) / page_value,
    }


def swept(rows: Sequence[Row]) -> dict[tuple[str, str, int], tuple[FloatArray, Points]]:
    """Return the knobs and the points of cost and staleness, by setting, label and seed."""
    knobs, costs, stale = (gathered(rows, name) for name in (KNOB, COST, STALENESS))
    return {key: (knobs[key], Points(costs[key], stale[key])) for key in knobs}


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of the loss of each policy, for each value of a new page."""
    return [
        Row(plays.ID, name, label, seed, metric, value)
        for (_, label, seed), (knobs, points) in swept(rows).items()
        for name, page_value in zip(NAMES, WORTHS, strict=True)
        for metric, value in weighed(knobs, *points, page_value, label in THRESHOLDED).items()
    ]


def _frontiers(rows: Sequence[Row], path: Path) -> None:
    """Draw the staleness of known pages against the crawls that remain for new pages."""
    every = {("", *key[1:]): points for key, (_, points) in swept(rows).items()}
    data = pictures.mean_curves(every)
    charts.lines(
        data.assign(x=BUDGET - data.x)[data.x <= BUDGET],
        path,
        charts.Frame(
            f"{TITLE}: quality set, {BUDGET:g} crawls per known page and day\n"
            "a point per threshold, means over seeds; bars: 95% intervals",
            charts.Axis("new pages fetched, per known page and day"),
            charts.Axis("staleness of known pages"),
        ),
        labels=tuple(ENTRANTS),
        black=(UNIFORM,),
    )


def _losses(rows: Sequence[Row], path: Path) -> None:
    """Draw each policy's loss over the smallest loss of FS-S, a panel per value of a new page."""
    simulated = swept(rows)
    relative: Curves = {}
    for name, page_value in zip(NAMES, WORTHS, strict=True):
        for (setting, label, seed), (knobs, points) in simulated.items():
            best = simulated[setting, FS_S, seed][1]
            loss = points.staleness + page_value * points.cost
            loss /= (best.staleness + page_value * best.cost).min()
            relative[name, label, seed] = Points(knobs / page_value, loss)
    charts.lines(
        pictures.mean_curves(relative),
        path,
        charts.Frame(
            f"{TITLE}: staleness plus worth times refreshes, over the least of FS-S\n"
            "means over seeds; bars: 95% intervals; dashed: T is the worth of a new page",
            charts.Axis("threshold over the worth of a new page", "log"),
            charts.Axis(
                "relative loss", "log", (0.8, 40.0), (1, 2, 5, 10, 20), ["1", "2", "5", "10", "20"]
            ),
            columns=3,
            size=(3.6, 3.6),
            upright=[charts.Rule(1.0)],
        ),
        labels=(FS_S, FITTING, BOUNDS, FS_D),
        black=(FS_D,),
    )


EXPERIMENT = Experiment(
    name="longevity-coverage",
    title=TITLE,
    claim=(
        "If a new page has the value of a refresh of utility v, the threshold T = v is the best "
        "division of crawls between refreshes and new pages."
    ),
    metric=METRIC,
    references=(FS_S,),
    repetitions=3,
    settings=measure_settings(
        {"quality": {"instance": "quality", "num_pages": 300, "days": DAYS}},
        {label: partial(simulated, entrant=entrant) for label, entrant in ENTRANTS.items()},
        plays.ID,
        quick={"num_pages": 60, "days": DAYS / 4.0},
    ),
    derive=derive,
    claims=CLAIMS,
    expected=tuple(
        Range(label, 0.5, 2.0, NAMES, "the same of other policies", metric)
        for metric in (RATE, RATIO)
        for label in (FS_D, FITTING, BOUNDS)
    ),
    pictures={"coverage": _frontiers, "losses": _losses},
)
