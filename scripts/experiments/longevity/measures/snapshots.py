"""Measure change frequency and longevity from snapshots of pages, as Olston and Pandey (2008).

A snapshot has the version of every page at its time. Fragments that appear and disappear between
two snapshots are missed; lifetimes that include the first or last snapshot are censored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.contents import Contents

SNAPSHOTS, INTERVAL = 30, 2.0
"""Number of snapshots, and days between them, as in the paper (section 3.1)."""


class Runs(NamedTuple):
    """Runs: the contiguous snapshots that contain the same set of fragments; a row per run.

    Attributes:
        num_pages: m.
        snapshots: number of snapshots, S.
        page: (n,) int64.
        begin: first snapshot of the run, (n,) int64.
        end: the snapshot after its last, (n,) int64.
        size: number of fragments, (n,) int64.
        whole: whether they are in neither the first nor the last snapshot, (n,) bool.
    """

    num_pages: int
    snapshots: int
    page: IntArray
    begin: IntArray
    end: IntArray
    size: IntArray
    complete: BoolArray


def snapshot_times(snapshots: int = SNAPSHOTS) -> FloatArray:
    """Return the times of so many evenly spaced snapshots in days, (S,); the first is 0."""
    return INTERVAL * np.arange(float(snapshots))


def substitutes(missing: BoolArray) -> IntArray:
    """Return, for each snapshot of each page, the number of the last one not missing, (m, S).

    Missing snapshots have the content of the previous one (section 3.1). The first snapshot exists,
    also if ``missing``, (m, S), is True.
    """
    numbers = np.arange(missing.shape[1])
    return np.maximum.accumulate(np.where(missing, 0, numbers), axis=1).astype(np.int64)


def runs_of(contents: Contents, times: FloatArray, standing: IntArray | None = None) -> Runs:
    """Return the runs of contiguous snapshots that contain the fragments of each page.

    A fragment that disappears and reappears between two snapshots counts as present throughout.

    Args:
        contents: contents of m pages.
        times: times of the snapshots, increasing, (S,).
        standing: number of the snapshot that provides the content of each snapshot
            (:func:`substitutes`), (m, S); None: no snapshot is missing.

    Raises:
        ValueError: there are fewer than two times, or they do not increase.
    """
    if times.ndim != 1 or times.size < 2 or not np.all(np.diff(times) > 0.0):
        raise ValueError(f"times must be two or more increasing numbers, got {times}")
    begin = np.searchsorted(times, contents.birth, side="right")
    end = np.searchsorted(times, contents.death, side="right")
    page = contents.page
    if standing is not None:  # the first snapshots with content of that time, or of a later one
        wanted = np.arange(times.size + 1)
        first_with = (standing[:, :, None] < wanted).sum(axis=1)
        begin, end = first_with[page, begin], first_with[page, end]
    order = np.lexsort((begin, contents.key, page))
    order = order[begin[order] < end[order]]
    page, key, begin, end = page[order], contents.key[order], begin[order], end[order]
    same = np.zeros(page.size, np.bool_)
    same[1:] = (page[1:] == page[:-1]) & (key[1:] == key[:-1])
    joined = same.copy()
    joined[1:] &= begin[1:] == end[:-1]
    first = np.flatnonzero(~joined)
    last = np.append(first[1:], page.size)[: first.size] - 1
    fragment = np.cumsum(~same) - 1
    outside = np.zeros(int(fragment[-1]) + 1 if page.size else 0, np.bool_)
    outside[fragment[(begin == 0) | (end == times.size)]] = True
    return Runs(
        contents.num_pages,
        times.size,
        page[first],
        begin[first],
        end[last],
        contents.size[order][first],
        ~outside[fragment[first]],
    )


def changed(runs: Runs) -> BoolArray:
    """Return whether a page's snapshot differs from the one before, (m, S); the first is False."""
    differs = np.zeros((runs.num_pages, runs.snapshots + 1), np.bool_)
    differs[runs.page, runs.begin] = True
    differs[runs.page, runs.end] = True
    differs[:, 0] = False
    return differs[:, :-1]


def change_frequency(runs: Runs) -> FloatArray:
    """Return the share of each page's snapshots that differ from the one before (3.2), (m,)."""
    frequency: FloatArray = changed(runs)[:, 1:].mean(axis=1)
    return frequency


def longevity(runs: Runs) -> FloatArray:
    """Return the mean number of contiguous snapshots that contain a page's fragment (3.2), (m,).

    Fragments in the first or the last snapshot are excluded; NaN if no fragments remain.
    """
    page, size = runs.page[runs.complete], runs.size[runs.complete].astype(np.float64)
    lived = size * (runs.end - runs.begin)[runs.complete]
    total = np.bincount(page, lived, runs.num_pages)
    count = np.bincount(page, size, runs.num_pages)
    mean = np.full(runs.num_pages, np.nan)
    np.divide(total, count, out=mean, where=count > 0.0)
    return mean
