"""How far a page comes from a copy of it: the curve that occurred, and what it is worth."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.worlds.fragments.contents import Contents


def versions(contents: Contents, page: int, times: FloatArray) -> tuple[BoolArray, IntArray]:
    """Return which fragments the versions of a page at some times have.

    Args:
        contents: what pages say.
        page: which page.
        times: in any order, (T,).

    Returns:
        Presence, a row per set of fragments that have one key, (k, T) bool; and how many fragments
        each set has, (k,).
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
    """Return the Jaccard distances of all pairs of versions, (T, T); 0 of two empty ones."""
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
        contents: what pages say.
        page: which page.
        end: > 0.

    Returns:
        When it changes, rising, the first 0 and the last ``end``, (k + 1,); and the divergence
        between them, (k,).
    """
    own = slice(contents.start[page], contents.start[page + 1])
    moments = np.concatenate((contents.birth[own], contents.death[own]))
    within = np.unique(moments[(moments >= 0.0) & (moments < end)])
    times = np.unique(np.concatenate(([0.0], within, [end])))
    # The version at a time is that just before it, so each step is seen at its end.
    present, size = versions(contents, page, np.concatenate(([0.0], times[1:])))
    held = present[:, :1]
    common = size @ (present & held)
    union = size @ (present | held)
    apart = np.divide(union - common, union, out=np.zeros(union.size), where=union > 0)
    return times, apart[1:]


def utility(times: FloatArray, divergence: FloatArray) -> float:
    """Utility t D(t) - int_0^t D of a refresh at the end of steps (eq. 4), in days.

    Args:
        times: when divergence changes, and the end, rising from 0, (k + 1,).
        divergence: between them, (k,).
    """
    return float(times[-1] * divergence[-1] - np.diff(times) @ divergence)


def at(times: FloatArray, steps: FloatArray, moments: FloatArray) -> FloatArray:
    """Return the height of steps at some moments, that before where there is a step."""
    place = np.searchsorted(times, moments, side="left") - 1
    return steps[np.clip(place, 0, steps.size - 1)]
