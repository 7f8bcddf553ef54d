"""Olston and Pandey, appendix B: error of divergence that is interpolated between snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from crawl_envs.types.contents import Contents
from scripts.experiments import figures
from scripts.experiments.figures import Series
from scripts.experiments.longevity.measures import plays
from scripts.experiments.longevity.measures.divergence import interpolated_means
from scripts.experiments.longevity.measures.snapshots import INTERVAL, SNAPSHOTS
from scripts.present import charts
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Range, Trend, trends
from scripts.study.specs import spec

TITLE = "Mean divergence, exact and interpolated between snapshots"
METRIC = "error"
"""Interpolated minus exact mean divergence, over pages and times."""
EXACT, DISTANCE, EAGERNESS = "exact", "distance", "eagerness"
"""The exact mean, the absolute error, and the mean of E over pages that have one."""
EAGER, BEFORE, AFTER, MIDDLE = "eagerness of the page", "snapshot before", "snapshot after", "mean"
LABELS: Mapping[str, float | None] = {EAGER: None, BEFORE: 0.0, AFTER: 1.0, MIDDLE: 0.5}
"""E of all pages; None: E of each page."""
SETS = ("quality", "random")
EVERY = (1, 2, 5, 15)
"""Snapshots from one refresh of a page to the next."""


def name_of(name: str, every: int) -> str:
    """Return the name of the setting of a set that is refreshed every so many snapshots."""
    return f"{name}, refreshed every {every * INTERVAL:g} days"


NAMES = tuple(name_of(name, every) for name in SETS for every in EVERY)
SOURCE = "appendix B"
UPWARDS = "E is measured over two intervals, in which fast content is replaced early"


@lru_cache(maxsize=2)
def refreshed(name: str, num_pages: int, every: int, seed: int) -> tuple[Contents, float, float]:
    """Refresh all pages at each ``every``-th snapshot; return contents, end and mean divergence."""
    days = SNAPSHOTS * INTERVAL
    env: Any = plays.ticking(name, num_pages, tick=INTERVAL, days=days, base_versions=0)
    env.reset(seed=seed)
    number, truncated = 0, False
    while not truncated:
        number += 1  # the first decision is at the second snapshot: the first was at time 0
        refresh = np.full(num_pages, number % every == 0, np.int8)
        _, _, _, truncated, _ = env.step(refresh)
    ledger = env.unwrapped.ledger()
    return env.unwrapped.contents(), float(ledger.time), float(ledger.divergence)


@spec("longevity-interpolated-divergence")
def compared(seed: int, *, label: str, name: str, num_pages: int, every: int) -> dict[str, float]:
    """Return the exact mean divergence, and the error of the one interpolated from snapshots."""
    contents, end, exact = refreshed(name, num_pages, every, seed)
    times = INTERVAL * np.arange(round(end / INTERVAL) + 1.0)
    means, eager = interpolated_means(contents, times, every, LABELS[label])
    error = float(means.mean()) - exact
    return {METRIC: error, DISTANCE: abs(error), EXACT: exact, EAGERNESS: float(np.nanmean(eager))}


EXPERIMENT = Experiment(
    name="longevity-interpolation",
    title=TITLE,
    claim=(
        "Interpolating divergence between snapshots by the page's eagerness has a smaller "
        "error than the divergence of the snapshot before or after, or the mean of both."
    ),
    metric=METRIC,
    repetitions=10,
    settings=measure_settings(
        {
            name_of(name, every): {"name": name, "num_pages": 1_000, "every": every}
            for name in SETS
            for every in EVERY
        },
        {label: partial(compared, label=label) for label in LABELS},
        plays.ID,
        quick={"num_pages": 100},
    ),
    expected=(
        Range(EAGER, 0.0, 0.03, NAMES, UPWARDS),
        *trends((BEFORE, AFTER), "above", EAGER, NAMES, SOURCE, metric=DISTANCE),
        Trend(
            MIDDLE, "above", EAGER, tuple(name_of(name, 1) for name in SETS), SOURCE, 0.0, DISTANCE
        ),
    ),
    pictures={
        "errors": figures.dots(
            [Series(METRIC)],
            charts.Frame(
                TITLE,
                charts.Axis("interpolated minus exact mean divergence (bars: 95% intervals)"),
                upright=[charts.Rule(0.0, "exact", ":")],
            ),
            y="{setting}",
            labels=tuple(LABELS),
        )
    },
)
