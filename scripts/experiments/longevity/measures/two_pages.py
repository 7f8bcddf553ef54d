"""Draw two pages like A and B of Olston and Pandey (2008, figure 1), and find recorded ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from crawl_envs.types.contents import Contents, Regions
from crawl_envs.worlds.fragments.regions import RegionPages
from scripts.experiments.longevity.measures import sites
from scripts.experiments.longevity.measures.snapshots import (
    INTERVAL,
    change_frequency,
    longevity,
    runs_of,
    snapshot_times,
)
from scripts.study.rows import gathered

PAGE_A, PAGE_B = "page A", "page B"
PAGES = (PAGE_A, PAGE_B)
MODEL = "model"
"""The setting of the drawn pages."""
UPDATES_PER_DAY = 0.5
"""Updates per day of each page, in all its regions."""
SCROLL_ITEMS, SCROLL_SIZE, SCROLL_RATE = 10, 7, 0.22
"""Recipes of page B, with seven fragments each; they stay for ten updates, 45 days on average."""
REGIONS = Regions(
    items=[[1, 1, 1], [1, 1, SCROLL_ITEMS]],
    size=[[20, 140, 0], [80, 10, SCROLL_SIZE]],
    rate=[
        [0.0, UPDATES_PER_DAY, 0.0],
        [0.0, UPDATES_PER_DAY - SCROLL_RATE, SCROLL_RATE],
    ],
)
"""A row per page: a static, a churn and a scroll region; 160 fragments in all."""

RECORDED_DAYS = 200.0
"""Largest number of days of a record, from its end."""


def panel_titles() -> dict[tuple[str, str], str]:
    """Return the titles of the pictures' panels, by setting and page."""
    static, churn = REGIONS.size[:, 0], REGIONS.size[:, 1]
    titles = {
        (MODEL, PAGE_A): f"page A: {static[0]} fragments are static, {churn[0]} in a churn region",
        (MODEL, PAGE_B): f"page B: {static[1]} static, {churn[1]} in a churn region, "
        f"{SCROLL_ITEMS} items of {SCROLL_SIZE}",
    }
    for site in sites.available(shipped=True):
        titles[site, PAGE_A] = f"{site}: a page with short-lived content"
        titles[site, PAGE_B] = f"{site}: a page with long-lived content"
    return titles


def of_first_seed(rows: Sequence[Row], name: str) -> dict[tuple[str, str], FloatArray]:
    """Return the arrays of an indexed metric of seed 0, by setting and page."""
    return {key[:2]: values for key, values in gathered(rows, name).items() if key[2] == 0}


def drawn_pages(seed: int, days: float) -> Contents:
    """Return the contents of the two simulated pages A and B, over ``days`` days or more."""
    return sites.drawn_contents(RegionPages(np.ones(2), REGIONS, bandwidth=1.0), days, seed)


def recorded_pages(site: str) -> tuple[Contents, float]:
    """Return the contents of two pages of a site, one like A and one like B, and their days.

    Among pages that change at least as often as the median changing page, they have the smallest
    and the largest known longevity.

    Raises:
        ValueError: the site is not available, or has fewer than two such pages.
    """
    length = sites.trace_of(site).days
    days = min(length, RECORDED_DAYS)
    contents = sites.lasting(site, (length - days, length))
    runs = runs_of(contents, snapshot_times(int(days / INTERVAL) + 1))
    frequency, lived = change_frequency(runs), longevity(runs)
    middle = np.median(frequency[frequency > 0.0]) if frequency.any() else 0.0
    eligible = np.flatnonzero(~np.isnan(lived) & (frequency >= middle))
    if eligible.size < 2:
        raise ValueError(f"site must have two pages whose fragments come and go, got {site!r}")
    order = eligible[np.argsort(lived[eligible], kind="stable")]
    return sites.of_pages(contents, order[[0, -1]]), days
