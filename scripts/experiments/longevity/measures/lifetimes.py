"""Measure lifetimes of fragments in snapshots, and model them in groups of pages.

Olston and Pandey (2008), section 3.3: pages of a group change equally often and have the same most
common K. The model uses the empirical distribution of K in the group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc

from crawl_envs.types import FloatArray, IntArray
from scripts.experiments.longevity.measures.snapshots import Runs, change_frequency, changed
from scripts.study.rows import indexed

CHURN, SHORT_SCROLL, SCROLL = "K = 1", "K = 2", "K > 2"
GROUPS = (CHURN, SHORT_SCROLL, SCROLL)
FREQUENCY, HALF_WIDTH = 0.25, 0.05
"""Share of snapshots that differ from the one before: centre and half-width of a group."""
MAX_LIFETIME = 28
"""Longest lifetime in snapshots that 30 snapshots can show from birth to death."""
LATE = 15
"""Smallest number of snapshots of a long lifetime, half of the paper's snapshots."""


class Lifetimes(NamedTuple):
    """Lifetimes of fragments, a row for each run between the first and the last snapshot.

    Attributes:
        page: (n,) int64.
        lived: lifetime in snapshots, (n,) int64.
        items: K >= 1, the number of snapshots after its birth up to its death that differ from the
            one before: the updates that it survives (section 3.3), and the one that ends it,
            (n,) int64.
        size: number of fragments, (n,) int64.
    """

    page: IntArray
    lived: IntArray
    items: IntArray
    size: IntArray


def lifetimes(runs: Runs) -> Lifetimes:
    """Return the lifetimes of fragments whose birth and death both lie between snapshots."""
    updates = np.cumsum(changed(runs), axis=1)
    complete = runs.complete
    page, begin, end = runs.page[complete], runs.begin[complete], runs.end[complete]
    items: IntArray = updates[page, end] - updates[page, begin]
    return Lifetimes(page, end - begin, items, runs.size[complete])


def dominant_items(sample: Lifetimes, num_pages: int) -> IntArray:
    """Return the most common K of each page's fragments; the smallest at ties, 0 without any."""
    width = int(sample.items.max(initial=0)) + 1
    place = sample.page * width + sample.items
    count = np.bincount(place, sample.size.astype(np.float64), num_pages * width)
    dominant: IntArray = np.argmax(count.reshape(num_pages, width), axis=1)
    return dominant


def pooled(parts: Sequence[Runs]) -> tuple[Lifetimes, FloatArray, IntArray]:
    """Return lifetimes, change frequencies and most common K of the pages of several records.

    A page that is in several records counts as a separate page in each.
    """
    samples, frequency, dominant, before = [], [], [], 0
    for runs in parts:
        sample = lifetimes(runs)
        frequency.append(change_frequency(runs))
        dominant.append(dominant_items(sample, runs.num_pages))
        samples.append(sample._replace(page=sample.page + before))
        before += runs.num_pages
    columns = (np.concatenate(column) for column in zip(*samples, strict=True))
    return Lifetimes(*columns), np.concatenate(frequency), np.concatenate(dominant)


def modelled(items: IntArray, size: IntArray, lived: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of fragments that live up to each number of snapshots, in two models.

    Page updates are a Poisson process, with one or more between snapshots with probability
    FREQUENCY; fragments live for K updates. The second model has at most one update between
    snapshots, which is what snapshots show.

    Args:
        items: K of each set of fragments, (n,).
        size: number of fragments in each set, (n,).
        lived: lifetimes in snapshots, (L,).

    Returns:
        Both shares, (L,) each: means over fragments of the law of their K.
    """
    from scipy.stats import nbinom

    share = np.bincount(items, size) / size.sum()
    support = np.flatnonzero(share)
    number, rate = support[:, None], -math.log1p(-FREQUENCY)
    laws = gammainc(number, rate * lived), nbinom.cdf(lived - number, number, FREQUENCY)
    model, as_seen = (np.asarray(share[support] @ law, np.float64) for law in laws)
    return model, as_seen


def measured(
    sample: Lifetimes, frequency: FloatArray, dominant: IntArray, group: str
) -> dict[str, float]:
    """Compare the lifetimes of fragments in a group of pages with the model.

    Args:
        sample: lifetimes of fragments of m pages.
        frequency: how often each page changes, (m,).
        dominant: most common K of each page, (m,).
        group: one of GROUPS.

    Returns:
        ``pages`` and ``fragments``, their numbers. If there are fragments, also ``actual`` and
        ``model``, indexed: shares of lifetimes up to 0 .. MAX_LIFETIME snapshots; ``distance``:
        largest difference of both; ``distance_as_seen``: the same with at most one update between
        snapshots; ``late``: actual minus model, averaged over LATE .. MAX_LIFETIME; and
        ``short``: share of fragments of K = 1.
    """
    scroll = np.minimum(dominant, 3) == GROUPS.index(group) + 1
    pages = scroll & (np.abs(frequency - FREQUENCY) <= HALF_WIDTH + 1e-12)
    rows = pages[sample.page]
    size, lived, items = sample.size[rows], sample.lived[rows], sample.items[rows]
    numbers = {"pages": float(pages.sum()), "fragments": float(size.sum())}
    if not size.size:
        return numbers
    grid = np.arange(MAX_LIFETIME + 1.0)
    count = np.bincount(np.minimum(lived, MAX_LIFETIME + 1), size, MAX_LIFETIME + 2)
    actual = np.cumsum(count)[:-1] / size.sum()
    model, as_seen = modelled(items, size, grid)
    return {
        **numbers,
        **indexed("actual", actual),
        **indexed("model", model),
        "distance": float(np.abs(actual - model).max()),
        "distance_as_seen": float(np.abs(actual - as_seen).max()),
        "late": float((actual - model)[LATE:].mean()),
        "short": float(size[items == 1].sum() / size.sum()),
    }
