"""Pages made of static, churn and scroll regions, as in Olston and Pandey (2008).

Their two sets of 10,000 URLs are not public. The constants here reproduce the published statistics
of the sets; the others are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from crawl_envs.instances.laws import Law
from crawl_envs.instances.synthetic import FALSE_SIGNAL_RANGE, RECALL_BETA
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import one_of
from crawl_envs.types.contents import Regions
from crawl_envs.worlds.fragments.regions import RegionPages

CRAWLS_PER_PAGE = 0.1
"""Default crawls per day and page, the middle of the paper's range."""

PageSignals: TypeAlias = Literal["none", "partial", "noisy"]


@dataclass(frozen=True)
class PageLaw:
    """Distribution of the pages of a set; lengths are in fragments, times in days.

    Attributes:
        dynamic: share of pages with non-static fragments.
        median_size: median number of fragments of a page; sizes are log-normal.
        share: Beta parameters of the non-static share of the fragments of a dynamic page.
        scrolls: probability that a dynamic page has a scroll region.
        churns: probability that a page with a scroll region also has a churn region; their split
            is uniform in [0, 1]. Pages without a scroll region have a churn region.
        fast: share of churn regions that change faster than crawls, with log-normal rates.
        fast_rate: median updates per day of fast churn regions.
        slow_rate: median updates per day of other churn regions.
        scroll_rate: median updates per day of scroll regions.
        spread: standard deviations of the logarithms of size and of the three rates.
        mean_items: mean number of items of a scroll region, 2 plus a geometric number.
    """

    dynamic: float
    median_size: float
    share: tuple[float, float]
    scrolls: float
    churns: float
    fast: float
    fast_rate: float
    slow_rate: float
    scroll_rate: float
    spread: tuple[float, float, float, float]
    mean_items: float


QUALITY = PageLaw(
    dynamic=0.5,
    median_size=200.0,
    share=(0.35, 1.4),
    scrolls=0.49,
    churns=0.65,
    fast=0.45,
    fast_rate=3.0,
    slow_rate=0.05,
    scroll_rate=0.2,
    spread=(0.7, 0.6, 1.5, 1.2),
    mean_items=4.0,
)
PAGE_LAWS = {
    "quality": QUALITY,
    "random": replace(QUALITY, dynamic=0.7, share=(0.6, 0.9), scrolls=0.5, churns=0.6, fast=0.55),
}
FALSE_SIGNAL_SCALE = 0.25
"""Factor on U(0.1, 0.6) of false-signal rates per day: the typical rate of scroll regions."""
MAX_ITEMS = 50
SIZES = (20, 2000)
"""Least and largest number of fragments of a page."""
MAX_RATE = 12.0
"""Largest update rate of a region, one per two hours."""


def _rates(
    rng: np.random.Generator, median: FloatArray | float, spread: FloatArray | float, count: int
) -> FloatArray:
    """Draw log-normal rates of updates, cut off at MAX_RATE."""
    drawn: FloatArray = median * np.exp(spread * rng.standard_normal(count))
    return np.minimum(drawn, MAX_RATE)


def draw_regions(law: PageLaw, num_pages: int, rng: np.random.Generator) -> Regions:
    """Draw the three regions of each page: a static, a churn and a scroll region."""
    size_spread, fast_spread, slow_spread, scroll_spread = law.spread
    dynamic = rng.random(num_pages) < law.dynamic
    total = law.median_size * np.exp(size_spread * rng.standard_normal(num_pages))
    total = np.clip(np.rint(total), *SIZES).astype(np.int64)
    share = rng.beta(*law.share, num_pages)
    moving = np.maximum(np.rint(share * total), 1.0) * dynamic
    has_scroll = rng.random(num_pages) < law.scrolls
    has_churn = ~has_scroll | (rng.random(num_pages) < law.churns)
    part = np.where(has_scroll, np.where(has_churn, rng.random(num_pages), 1.0), 0.0)
    items = 2 + rng.geometric(1.0 / (law.mean_items - 1.0), num_pages) - 1
    items = np.minimum(items, MAX_ITEMS)
    scrolling = part * moving
    items = np.maximum(np.minimum(items, scrolling.astype(np.int64)), 1)
    item_size = np.rint(scrolling / items).astype(np.int64)
    churning = np.maximum(np.rint(moving).astype(np.int64) - items * item_size, 0)
    static = np.maximum(total - churning - items * item_size, 0)
    fast = rng.random(num_pages) < law.fast
    churn_rate = _rates(
        rng,
        np.where(fast, law.fast_rate, law.slow_rate),
        np.where(fast, fast_spread, slow_spread),
        num_pages,
    )
    scroll_rate = _rates(rng, law.scroll_rate, scroll_spread, num_pages)
    ones = np.ones(num_pages, np.int64)
    return Regions(
        np.stack((ones, ones, items), axis=1),
        np.stack((static, churning, item_size), axis=1),
        np.stack((np.zeros(num_pages), churn_rate, scroll_rate), axis=1),
    )


def draw_pages(
    law: PageLaw,
    rng: np.random.Generator,
    num_pages: int,
    *,
    signals: PageSignals = "none",
    **more: Any,
) -> RegionPages:
    """Draw an instance of uniform importance; its pages are the same for all ``signals``.

    Args:
        law: the distribution of the pages.
        rng: random generator.
        num_pages: number of pages, m.
        signals: ``none``, ``partial`` (recall from Beta(1/4, 1/4)) or ``noisy`` (also false signals
            at rates from FALSE_SIGNAL_SCALE times U(0.1, 0.6) per day), as in Busa-Fekete et al.
            (2025).
        **more: bandwidth and bandwidth_steps, as of :class:`RegionPages`.
    """
    regions = draw_regions(law, num_pages, rng)
    recall, false_rate = np.zeros(num_pages), np.zeros(num_pages)
    if signals != "none":
        recall = rng.beta(*RECALL_BETA, num_pages)
    if signals == "noisy":
        false_rate = FALSE_SIGNAL_SCALE * rng.uniform(*FALSE_SIGNAL_RANGE, num_pages)
    return RegionPages(np.ones(num_pages), regions, recall, false_rate, **more)


def _signals(value: Any, bandwidth: float) -> str:
    """Return the kind of signals ``value``; raise ValueError if it is unknown."""
    one_of("signals", value, PageSignals)
    return str(value)


LAWS = {
    name: Law(
        partial(draw_pages, law),
        f"The {name} set of Olston and Pandey (2008).",
        bandwidth=CRAWLS_PER_PAGE,
        per_page=True,
        arguments={"signals": _signals},
    )
    for name, law in PAGE_LAWS.items()
}
"""The laws ``quality`` and ``random`` of pages with fragments, by name."""
