"""Lifetimes in groups of pages that scroll alike, and what the generative model says of them.

Olston and Pandey (2008), section 3.3: of pages that change equally often, a group has those whose
most common K is the same; the model is instantiated by the distribution of K that is found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.estimators.divergence.lifetimes import scroll_lifetime
from scripts.experiments.longevity.setup.fragment_snapshots import (
    Lifetimes,
    Runs,
    change_frequency,
    dominant_items,
    lifetimes,
)

CHURN, SHORT_SCROLL, SCROLL = "K = 1", "K = 2", "K > 2"
GROUPS = (CHURN, SHORT_SCROLL, SCROLL)
FREQUENCY, HALF_WIDTH = 0.25, 0.05
"""Share of snapshots that differ from the one before: in the middle of a group, and around it."""
MOST_LIVED = 28
"""Snapshots up to which lifetimes are told: in 30 none longer is known from birth to death."""
LATE = 15
"""Snapshots from which on lifetimes are long: half of the paper's."""


def group_of(dominant: IntArray) -> IntArray:
    """Return the place in GROUPS of each page by its most common K, -1 where K is 0, not known."""
    return np.minimum(dominant, 3) - 1


def modelled(items: IntArray, size: IntArray, lived: FloatArray) -> FloatArray:
    """Return the share of lifetimes up to some number of snapshots in the model.

    Page updates are a Poisson process, of which a snapshot sees one or more with the chance
    FREQUENCY; the fragments of K live for K updates.

    Args:
        items: K of each set of fragments, (n,).
        size: fragments in it, (n,).
        lived: snapshots, (L,).
    """
    share = np.bincount(items, size) / size.sum()
    rate = -math.log1p(-FREQUENCY)
    found = np.flatnonzero(share)
    return np.asarray(share[found] @ scroll_lifetime(lived, found[:, None], rate))


def _seen(items: IntArray, size: IntArray, lived: FloatArray) -> FloatArray:
    """As :func:`modelled`, with one update or none from one snapshot to the next."""
    from scipy.stats import nbinom

    share = np.bincount(items, size) / size.sum()
    found = np.flatnonzero(share)
    return np.asarray(share[found] @ nbinom.cdf(lived - found[:, None], found[:, None], FREQUENCY))


def measured(
    found: Lifetimes, frequency: FloatArray, dominant: IntArray, group: str
) -> Mapping[str, FloatArray | float]:
    """Measure a group of pages.

    Args:
        found: lifetimes of fragments of m pages.
        frequency: how often each page changes, (m,).
        dominant: most common K of each page, (m,).
        group: one of GROUPS.

    Returns:
        ``pages`` and ``fragments``, their numbers; where there are any fragments also ``actual``
        and ``model``, shares of lifetimes up to 0 .. MOST_LIVED snapshots, (MOST_LIVED + 1,);
        ``distance``, the largest difference of both; ``distance_as_seen``, that of what is actual
        and of a model in which an update is all that a snapshot can see; ``late``, actual minus
        model, averaged over LATE .. MOST_LIVED; and ``short``, the share of fragments of K = 1.
    """
    kept = (np.abs(frequency - FREQUENCY) <= HALF_WIDTH + 1e-12) & (
        group_of(dominant) == GROUPS.index(group)
    )
    rows: BoolArray = kept[found.page]
    size, lived, items = found.size[rows], found.lived[rows], found.items[rows]
    told: dict[str, FloatArray | float] = {
        "pages": float(kept.sum()),
        "fragments": float(size.sum()),
    }
    if not size.size:
        return told
    grid = np.arange(MOST_LIVED + 1.0)
    count = np.bincount(np.minimum(lived, MOST_LIVED + 1), size, MOST_LIVED + 2)
    actual = np.cumsum(count)[:-1] / size.sum()
    model = modelled(items, size, grid)
    return told | {
        "actual": actual,
        "model": model,
        "distance": float(np.abs(actual - model).max()),
        "distance_as_seen": float(np.abs(actual - _seen(items, size, grid)).max()),
        "late": float((actual - model)[LATE:].mean()),
        "short": float(size[items == 1].sum() / size.sum()),
    }


def pooled(parts: list[Runs]) -> tuple[Lifetimes, FloatArray, IntArray]:
    """Return lifetimes, change frequencies and most common K of the pages of several records.

    A page is another one in each of them.
    """
    found, frequency, dominant, before = [], [], [], 0
    for runs in parts:
        own = lifetimes(runs)
        frequency.append(change_frequency(runs))
        dominant.append(dominant_items(own, runs.num_pages))
        found.append(own._replace(page=own.page + before))
        before += runs.num_pages
    columns = (np.concatenate(column) for column in zip(*found, strict=True))
    return Lifetimes(*columns), np.concatenate(frequency), np.concatenate(dominant)
