"""Divergence of a page from a copy: the realised curve, and the utility of a refresh."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.contents import Contents


def versions(contents: Contents, page: int, times: FloatArray) -> tuple[BoolArray, IntArray]:
    """Return the fragments of the versions of a page at some times.

    Args:
        contents: of the pages.
        page: row of the page.
        times: in any order, (T,).

    Returns:
        Presence, a row per set of fragments with one key, (k, T) bool; and the number of fragments
        of each set, (k,).
    """
    own = slice(contents.start[page], contents.start[page + 1])
    keys, number = np.unique(contents.key[own], return_inverse=True)
    there = (contents.birth[own, None] < times) & (times <= contents.death[own, None])
    present = np.zeros((keys.size, times.size), np.bool_)
    np.logical_or.at(present, number, there)
    size = np.zeros(keys.size, np.int64)
    size[number] = contents.size[own]
    return present, size


def distances(present: BoolArray, size: IntArray) -> FloatArray:
    """Return the Jaccard distances of all pairs of versions, (T, T); 0 for two empty ones."""
    weighed = present * size[:, None].astype(np.float64)
    common = weighed.T @ present
    own = np.diag(common)
    union: FloatArray = own[:, None] + own - common
    apart: FloatArray = np.divide(
        union - common, union, out=np.zeros_like(union), where=union > 0.0
    )
    return apart


def occurred(contents: Contents, page: int, end: float) -> tuple[FloatArray, FloatArray]:
    """Return the divergence of a page from the copy made at time 0, as steps.

    Args:
        contents: of the pages.
        page: row of the page.
        end: > 0.

    Returns:
        Times of its changes, rising from 0 to ``end``, (k + 1,); and the divergence between them,
        (k,).
    """
    own = slice(contents.start[page], contents.start[page + 1])
    moments = np.concatenate((contents.birth[own], contents.death[own]))
    within = np.unique(moments[(moments >= 0.0) & (moments < end)])
    times = np.unique(np.concatenate(([0.0], within, [end])))
    # The version at a time is that just before it, so each step is read at its end.
    present, size = versions(contents, page, np.concatenate(([0.0], times[1:])))
    held = present[:, :1]
    common = size @ (present & held)
    union = size @ (present | held)
    apart = np.divide(union - common, union, out=np.zeros(union.size), where=union > 0)
    return times, apart[1:]


def utility(times: FloatArray, divergence: FloatArray) -> float:
    """Return the utility t D(t) - int_0^t D of a refresh at the end (eq. 4), in days.

    Args:
        times: of changes of divergence, and the end, rising from 0, (k + 1,).
        divergence: between them, (k,).
    """
    return float(times[-1] * divergence[-1] - np.diff(times) @ divergence)


def at(times: FloatArray, steps: FloatArray, moments: FloatArray) -> FloatArray:
    """Return the value of a step function at some moments, the left limit at steps."""
    place = np.searchsorted(times, moments, side="left") - 1
    return steps[np.clip(place, 0, steps.size - 1)]
