"""Olston and Pandey, figure 4: lifetimes of fragments in a churn region and a scroll region.

A fragment lives for K updates of its region, so its lifetime has the Erlang distribution
P(lifetime <= t) = 1 - sum_{i < K} (l t)^i exp(-l t) / i!.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.special import gammainc
from scipy.stats import kstest

from crawl_envs.types import FloatArray
from crawl_envs.types.contents import Regions
from crawl_envs.worlds.fragments.regions import RegionPages
from scripts.experiments.longevity.measures import pictures, sites
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import indexed
from scripts.study.specs import spec

TITLE = "Lifetimes in a churn region and in a scroll region"
CHURN, SCROLL = "churn", "scroll, K = 10"
ITEMS: Mapping[str, int] = {CHURN: 1, SCROLL: 10}
RATE = 0.25
SETTING = "rate .25 per day"
METRIC = "mean"
"""Mean lifetime in days."""
DISTANCE = "distance"
"""Largest difference of the simulated and the theoretical distribution (Kolmogorov-Smirnov)."""
SHORT = "within_10_days"
THEORY, SIMULATED = "theory", "simulated"
"""Indexed metrics: share of lifetimes up to each value of GRID."""
GRID = np.arange(0.0, 100.5, 1.0)
PAGES = 20_000
DAYS = 400.0
"""Long enough for a birth and its death on all pages, except one in 10^20."""
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


def theory(items: int, lived: Any) -> Any:
    """Return the probability that a fragment of K ``items`` lives at most so many days."""
    return gammainc(items, RATE * lived)


def first_lifetimes(items: int, num_pages: int, seed: int) -> FloatArray:
    """Simulate many regions; return the lifetime in days of the first fragment born in each."""
    ones = np.ones((num_pages, 1), np.int64)
    regions = Regions(items * ones, ones, np.full((num_pages, 1), RATE))
    instance = RegionPages(np.ones(num_pages), regions, bandwidth=1.0)
    contents = sites.drawn_contents(instance, DAYS, seed)
    born = np.flatnonzero(contents.birth >= 0.0)
    _, first = np.unique(contents.page[born], return_index=True)
    rows = born[first]
    lived: FloatArray = contents.death[rows] - contents.birth[rows]
    return lived


@spec("longevity-region-lifetimes")
def lifetimes(seed: int, *, label: str, num_pages: int) -> dict[str, float]:
    """Simulate a lifetime in each of ``num_pages`` regions; compare them with the theory."""
    items = ITEMS[label]
    lived = first_lifetimes(items, num_pages, seed)
    shares = np.searchsorted(np.sort(lived), GRID, side="right") / lived.size
    return {
        METRIC: float(lived.mean()),
        SHORT: float(np.mean(lived <= 10.0)),
        DISTANCE: float(kstest(lived, partial(theory, items)).statistic),
        **indexed(SIMULATED, shares),
        **indexed(THEORY, theory(items, GRID)),
    }


EXPERIMENT = Experiment(
    name="longevity-fig4",
    title=TITLE,
    claim=(
        "At the same rate of updates, fragments live much longer in a scroll region, where almost "
        "none is short-lived, than in a churn region."
    ),
    metric=METRIC,
    repetitions=20,
    settings=measure_settings(
        {SETTING: {"num_pages": PAGES}},
        {label: partial(lifetimes, label=label) for label in ITEMS},
        quick={"num_pages": 2_000},
    ),
    claims=CLAIMS,
    expected=(
        Range(CHURN, 0.9, 0.93, (SETTING,), "1 - exp(-2.5) = .918", metric=SHORT),
        *(
            Range(label, 0.0, WORST / PAGES**0.5, (SETTING,), "the formulas", metric=DISTANCE)
            for label in ITEMS
        ),
    ),
    pictures={
        "lifetimes": partial(
            pictures.distributions,
            title=TITLE,
            settings={SETTING: f"update rate {RATE:g} per day"},
            labels=tuple(ITEMS),
            curves=(SIMULATED, THEORY),
            grid=GRID,
            unit="lifetime (days)",
        )
    },
)
