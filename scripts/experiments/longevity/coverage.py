"""Section 4.4: a threshold divides crawls between refreshes and new pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import crawl_envs  # noqa: F401  # registers the environments
from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments.longevity.setup.curves import Points, mean_points
from scripts.experiments.longevity.setup.policies import (
    BOUNDS,
    FITTING,
    FS_D,
    FS_S,
    NAIVE_STATIC,
    OFFLINE,
    ONLINE,
    UNIFORM,
    Candidate,
    make_policy,
)
from scripts.experiments.longevity.setup.runs import ID, ledgers
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import gathered, indexed
from scripts.study.settings import Measurement

TITLE = "Freshness and coverage"
CLAIM = (
    "Where a new page is worth as much as a refresh of utility v, the threshold T = v divides the "
    "crawls best between refreshes and new pages."
)
METRIC = "loss"
REFERENCE = FS_S
REPETITIONS, QUICK_REPETITIONS = 3, 2

PAGES, QUICK_PAGES = 300, 60
TICK, DAYS, WARM = 0.5, 240.0, 80.0
"""Days between decisions, of an episode, and of its start, which is not counted: periods of large
thresholds take weeks."""
KNOBS = tuple(0.02 * 2.0**step for step in range(9))
"""Thresholds in days."""
WORTHS = (0.08, 0.32, 1.28)
"""Worth of a new page in divergence times days, v: thresholds among KNOBS."""
AT = tuple(f"a new page is worth {worth:g} days" for worth in WORTHS)
BUDGET = 0.5
"""Crawls per known page and day, for the picture: those that are no refreshes fetch new pages."""
KNOB, COST, STALENESS = "knob", "refreshes", "staleness"
BEST, RATIO, RATE = "loss of the best knob", "best threshold over worth", "exchange rate over worth"

HINDSIGHT: dict[str, Candidate] = {
    UNIFORM: OFFLINE[UNIFORM]._replace(
        knobs=(1.0, 2.0, 3.0, 4.5, 7.0, 10.0, 15.0, 22.0, 33.0, 50.0, 75.0, 110.0)
    ),
    NAIVE_STATIC: OFFLINE[NAIVE_STATIC],
}
"""Policies whose knob is not in divergence times days: the best in hindsight counts."""
THRESHOLDED: dict[str, Candidate] = {
    label: candidate._replace(knobs=KNOBS)
    for label, candidate in (*OFFLINE.items(), *ONLINE.items())
    if label in (FS_S, FS_D, FITTING, BOUNDS)
}
CANDIDATES = HINDSIGHT | THRESHOLDED
SECTION = "section 4.4"

CLAIMS = (
    Claim(
        "To base refreshes on a fixed threshold of utility is optimal in freshness per unit cost.",
        SECTION,
        tuple(Trend(label, "above", FS_S, AT, SECTION) for label in HINDSIGHT),
        "The loss of FS-S is that of T = v. The others have their best interval or threshold of "
        "all, chosen in hindsight.",
    ),
    Claim(
        "T is set properly if and only if a boost of freshness of T is preferable to a new page, "
        "and a new page to a smaller boost.",
        SECTION,
        (
            Range(FS_S, 0.5, 2.0, AT, SECTION, RATE),
            Range(FS_S, 0.5, 2.0, AT, SECTION, RATIO),
        ),
        "The exchange rate is staleness over refreshes, of T = 2 v less that of T = v / 2: what "
        "one refresh less costs. This judges FS-S, which knows the curves; of FS-D and of policies "
        "that learn see below. By section 2.2 it lies between the two thresholds. Thresholds "
        "are a factor of 2 apart.",
    ),
)
EXPECTED = tuple(
    Range(label, 0.5, 2.0, AT, "the same of other policies", metric)
    for metric in (RATE, RATIO)
    for label in (FS_D, FITTING, BOUNDS)
)


def played(
    seed: int,
    *,
    num_pages: int,
    days: float,
    kind: str,
    given: Mapping[str, Any],
    knobs: Sequence[float],
    **arguments: Any,
) -> Mapping[str, float]:
    """Return refreshes per page and day, and staleness, from day WARM on, for each knob."""
    env = gymnasium.make(
        ID,
        num_pages=num_pages,
        bandwidth=1.0 / TICK,
        horizon=days,
        action="refresh",
        **arguments,
    )
    costs, stalenesses = [], []
    for knob in knobs:
        make = partial(make_policy, knob=knob, kind=kind, given=given)
        records, _ = ledgers(env, make, seed)
        start, end = records[round(days * WARM / DAYS / TICK)], records[-1]
        costs.append((end.crawls - start.crawls) / num_pages / (end.time - start.time))
        alive = end.alive_time - start.alive_time
        stalenesses.append((end.divergence_time - start.divergence_time) / alive)
    return {
        **indexed(KNOB, knobs),
        **indexed(COST, costs),
        **indexed(STALENESS, stalenesses),
    }


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return all knobs of all policies on the high-quality set."""
    measures = {
        label: partial(
            played,
            kind=candidate.kind,
            given=dict(candidate.given),
            knobs=candidate.knobs,
            reveal=candidate.reveal,
            base_versions=0,
        )
        for label, candidate in CANDIDATES.items()
    }
    size = {"num_pages": QUICK_PAGES if quick else PAGES, "days": DAYS / 4.0 if quick else DAYS}
    return [Measurement("quality", measures, {"instance": "quality", **size}, ID)]


def weighed(
    knobs: FloatArray, cost: FloatArray, stale: FloatArray, worth: float, thresholds: bool
) -> dict[str, float]:
    """Return the losses per page and day where a new page is worth v, by metric.

    The loss is staleness plus v times refreshes, each of which takes the place of a new page.

    Args:
        knobs: (K,), rising.
        cost: refreshes per page and day, (K,).
        stale: staleness, (K,).
        worth: v; v / 2, v and 2 v are among the knobs if these are thresholds.
        thresholds: whether knobs are thresholds: METRIC is then the loss of T = v, and the loss of
            the best knob otherwise.
    """
    loss = stale + worth * cost
    best = float(loss.min())
    if not thresholds:
        return {METRIC: best, BEST: best}
    below, own, above = (int(np.argmin(np.abs(knobs - part * worth))) for part in (0.5, 1.0, 2.0))
    rate = (stale[above] - stale[below]) / (cost[below] - cost[above])
    return {
        METRIC: float(loss[own]),
        BEST: best,
        RATIO: float(knobs[loss.argmin()]) / worth,
        RATE: float(rate) / worth,
    }


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return losses for each worth of a new page."""
    return list(_weighed(rows))


def _weighed(rows: Sequence[Row]) -> Iterator[Row]:
    costs, stalenesses = gathered(rows, COST), gathered(rows, STALENESS)
    for key, knobs in gathered(rows, KNOB).items():
        for name, worth in zip(AT, WORTHS, strict=True):
            points = knobs, costs[key], stalenesses[key]
            for metric, value in weighed(*points, worth, key[1] in THRESHOLDED).items():
                yield Row(ID, name, key[1], key[2], metric, value)


def _by_seed(rows: Sequence[Row], label: str) -> tuple[FloatArray, dict[int, Points]]:
    """Return the knobs of a label, and its points by seed."""
    costs, stalenesses = gathered(rows, COST), gathered(rows, STALENESS)
    points = {key[2]: Points(costs[key], stalenesses[key]) for key in costs if key[1] == label}
    knobs = next(knobs for key, knobs in gathered(rows, KNOB).items() if key[1] == label)
    return knobs, points


def _frontiers(rows: Sequence[Row], path: Path) -> None:
    """Draw staleness against the crawls that are left for new pages."""
    import pandas as pd

    from scripts.present import charts

    parts = []
    for label in CANDIDATES:
        points, half = mean_points(_by_seed(rows, label)[1])
        each = {"x": BUDGET - points.cost, "y": points.staleness, "half": half, "label": label}
        parts.append(pd.DataFrame(each))
    data = pd.concat(parts)
    charts.lines(
        data[data.x >= 0.0],
        path,
        charts.Frame(
            f"{TITLE}: quality set, {BUDGET:g} crawls per known page and day\n"
            "a point per threshold, means over seeds; bars: 95% intervals",
            charts.Axis("new pages fetched, per known page and day"),
            charts.Axis("staleness of known pages"),
        ),
        labels=tuple(CANDIDATES),
        black=(UNIFORM,),
    )


def _losses(rows: Sequence[Row], path: Path) -> None:
    """Draw the loss over the least one of FS-S against the threshold, a panel per worth."""
    import pandas as pd

    from scripts.present import charts

    parts, base = [], _by_seed(rows, FS_S)[1]
    for name, worth in zip(AT, WORTHS, strict=True):
        for label in (FS_S, FITTING, BOUNDS, FS_D):
            knobs, by_seed = _by_seed(rows, label)
            relative = {
                seed: Points(
                    knobs / worth,
                    (points.staleness + worth * points.cost)
                    / (base[seed].staleness + worth * base[seed].cost).min(),
                )
                for seed, points in by_seed.items()
            }
            points, half = mean_points(relative)
            each = {"x": points.cost, "y": points.staleness, "half": half}
            parts.append(pd.DataFrame(each).assign(label=label, panel=name))
    charts.lines(
        pd.concat(parts),
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


PICTURES = {"coverage": _frontiers, "losses": _losses}
