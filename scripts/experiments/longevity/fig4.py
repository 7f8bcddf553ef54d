"""Figure 4: lifetimes of fragments in a churn region and in a scroll region.

A fragment lives for K updates of its region, so its lifetime has the Erlang distribution
P(lifetime <= t) = 1 - sum_{i < K} (l t)^i exp(-l t) / i!.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import gammainc

from crawl_envs.evaluation import Row
from crawl_envs.instances.longevity import RegionPages
from crawl_envs.sim.streams import generator, roots
from crawl_envs.types import FloatArray
from crawl_envs.types.contents import Regions
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import indexed
from scripts.study.settings import Measurement

TITLE = "Lifetimes in a churn region and in a scroll region"
CLAIM = (
    "At the same rate of updates, fragments live much longer in a scroll region, where almost none "
    "is short-lived, than in a churn region."
)
CHURN, SCROLL = "churn", "scroll, K = 10"
ITEMS: Mapping[str, int] = {CHURN: 1, SCROLL: 10}
RATE = 0.25
SETTING = "rate .25 per day"
METRIC = "mean"
"""Days."""
DISTANCE = "distance"
"""Largest difference of the simulated and the theoretical distribution (Kolmogorov-Smirnov)."""
SHORT = "within_10_days"
THEORY, SIMULATED = "theory", "simulated"
"""Indexed metrics: share of lifetimes up to each of GRID; simulated ones for every seed."""
GRID = np.arange(0.0, 100.5, 1.0)
REPETITIONS, QUICK_REPETITIONS = 20, 3
PAGES, QUICK_PAGES = 20_000, 2_000
DAYS = 400.0
"""Long enough for a birth and its death on all pages but one in 10^20."""
WORST = 1.95
"""A distance exceeds WORST over the root of the sample size with probability 0.001."""

SECTION = "section 3.3, Figure 4"
CLAIMS = (
    Claim(
        "The two distributions are quite different: fragments live much longer in the scroll case.",
        SECTION,
        (Trend(SCROLL, "above", CHURN, (SETTING,), SECTION),),
        note="40 days on average against 4.",
    ),
    Claim(
        "In the scroll case it is unlikely for a fragment to have a short lifetime.",
        SECTION,
        (Range(SCROLL, 0.0, 0.01, (SETTING,), SECTION, metric=SHORT),),
        note="Ten updates within ten days, of which 2.5 are expected. Margin ours.",
    ),
)
EXPECTED = (
    Range(CHURN, 0.9, 0.93, (SETTING,), "1 - exp(-2.5) = .918", metric=SHORT),
    *(
        Range(label, 0.0, WORST / PAGES**0.5, (SETTING,), "the formulas", metric=DISTANCE)
        for label in ITEMS
    ),
)


def first_lifetimes(items: int, num_pages: int, seed: int) -> FloatArray:
    """Return the lifetime in days of the first fragment born in each of many regions."""
    ones = np.ones((num_pages, 1), np.int64)
    regions = Regions(items * ones, ones, np.full((num_pages, 1), RATE))
    instance = RegionPages(np.ones(num_pages), regions, bandwidth=1.0)
    contents = instance.draw_contents(generator(roots(seed).tape, 0), DAYS)
    born = np.flatnonzero(contents.birth >= 0.0)
    _, first = np.unique(contents.page[born], return_index=True)
    rows = born[first]
    lived: FloatArray = contents.death[rows] - contents.birth[rows]
    return lived


def distance(lived: FloatArray, items: int) -> float:
    """Return the Kolmogorov-Smirnov distance of lifetimes to their theoretical distribution."""
    sample = np.sort(lived)
    theory = gammainc(items, RATE * sample)
    steps = np.arange(sample.size + 1) / sample.size
    return float(max((steps[1:] - theory).max(), (theory - steps[:-1]).max()))


def lifetimes(seed: int, *, label: str, num_pages: int) -> Mapping[str, float]:
    """Simulate one lifetime in each of many regions of a kind."""
    items = ITEMS[label]
    lived = first_lifetimes(items, num_pages, seed)
    shares = np.searchsorted(np.sort(lived), GRID, side="right") / lived.size
    return {
        METRIC: float(lived.mean()),
        SHORT: float(np.mean(lived <= 10.0)),
        DISTANCE: distance(lived, items),
        **indexed(SIMULATED, shares),
        **indexed(THEORY, gammainc(items, RATE * GRID)),
    }


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return both kinds of regions."""
    return [
        Measurement(
            SETTING,
            {label: partial(lifetimes, label=label) for label in ITEMS},
            {"num_pages": QUICK_PAGES if quick else PAGES},
        )
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw both distributions, theoretical and simulated."""
    from scripts.experiments.longevity.setup.fragment_charts import distributions

    distributions(
        rows,
        path,
        title=TITLE,
        settings={SETTING: f"update rate {RATE:g} per day"},
        labels=tuple(ITEMS),
        curves=(SIMULATED, THEORY),
        grid=GRID,
        unit="lifetime (days)",
    )


PICTURES = {"lifetimes": draw}
