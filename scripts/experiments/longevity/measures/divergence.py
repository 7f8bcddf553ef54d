"""Compute the divergence of a page from its copy, exactly or interpolated between snapshots.

Interpolation is by eagerness, as in Olston and Pandey's appendix B.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.contents import Contents, KeyArray


def spells(contents: Contents, page: int) -> tuple[FloatArray, FloatArray, IntArray, KeyArray]:
    """Return birth, death, size and key of a page's sets of fragments, (n,) each."""
    rows = slice(contents.start[page], contents.start[page + 1])
    return contents.birth[rows], contents.death[rows], contents.size[rows], contents.key[rows]


def versions(contents: Contents, page: int, times: FloatArray) -> tuple[BoolArray, IntArray]:
    """Return which fragments a page has at some times.

    Args:
        contents: contents of the pages.
        page: row of the page.
        times: times in any order, (T,).

    Returns:
        Presence, (k, T) bool, with a row per set of fragments of the same key; and the number of
        fragments of each set, (k,).
    """
    birth, death, sizes, key = spells(contents, page)
    keys, number = np.unique(key, return_inverse=True)
    there = (birth[:, None] < times) & (times <= death[:, None])
    present = np.zeros((keys.size, times.size), np.bool_)
    np.logical_or.at(present, number, there)
    size = np.zeros(keys.size, np.int64)
    size[number] = sizes
    return present, size


def distances(present: BoolArray, size: IntArray) -> FloatArray:
    """Return the Jaccard distances of all pairs of versions, (T, T); 0 if both are empty."""
    weighed = present * size[:, None].astype(np.float64)
    common = weighed.T @ present
    totals = np.diag(common)
    union: FloatArray = totals[:, None] + totals - common
    distance: FloatArray = np.divide(
        union - common, union, out=np.zeros_like(union), where=union > 0.0
    )
    return distance


def occurred(contents: Contents, page: int, end: float) -> tuple[FloatArray, FloatArray]:
    """Return the divergence of a page from its copy of time 0, as a step function.

    Args:
        contents: contents of the pages.
        page: row of the page.
        end: end of the function, > 0.

    Returns:
        Times of its changes, increasing from 0 to ``end``, (k + 1,); and the divergence between
        them, (k,).
    """
    moments = np.concatenate(spells(contents, page)[:2])
    within = np.unique(moments[(moments >= 0.0) & (moments < end)])
    times = np.unique(np.concatenate(([0.0], within, [end])))
    # A version at a time is the one just before it, so each step is read at its end.
    distance = distances(*versions(contents, page, np.concatenate(([0.0], times[1:]))))
    return times, distance[0, 1:]


def utility(times: FloatArray, divergence: FloatArray) -> float:
    """Return the utility t D(t) - int_0^t D of a refresh at the end (eq. 4), in days.

    Args:
        times: times of changes of divergence, and the end, increasing from 0, (k + 1,).
        divergence: divergence between them, (k,).
    """
    return float(times[-1] * divergence[-1] - np.diff(times) @ divergence)


def step_values(times: FloatArray, steps: FloatArray, moments: FloatArray) -> FloatArray:
    """Return the values of a step function at ``moments``; at a step, the value before it."""
    place = np.searchsorted(times, moments, side="left") - 1
    return steps[np.clip(place, 0, steps.size - 1)]


def eagerness_of(distance: FloatArray) -> float:
    """Return a page's eagerness E, the mean of D(t0, t1) / D(t0, t2) over snapshots, in [0, 1].

    t0, t1, t2 are consecutive snapshots and D is divergence; those with D(t0, t2) = 0 are left out.
    The quotient is clipped at 1, which it exceeds if fragments reappear. Steady growth has E = 1/2;
    content that is replaced between any two snapshots has E = 1.

    Args:
        distance: Jaccard distances of all pairs of a page's snapshots, (S, S).

    Returns:
        E, NaN if nothing differs.
    """
    near, far = np.diag(distance, 1)[:-1], np.diag(distance, 2)
    differs = far > 0.0
    if not differs.any():
        return float("nan")
    return float(np.minimum(near[differs] / far[differs], 1.0).mean())


def interpolated(distance: FloatArray, every: int, eagerness: float) -> float:
    """Return the mean divergence of a page that is refreshed at every ``every``-th snapshot.

    Between snapshots x and x + 1 the divergence is (1 - E) D_x + E D_{x+1}, where D_x is that of
    snapshot x to the current copy (appendix B).

    Args:
        distance: Jaccard distances of all pairs of a page's snapshots, (S, S).
        every: snapshots between refreshes, >= 1; the first snapshot is a refresh.
        eagerness: E, in [0, 1].
    """
    number = np.arange(len(distance) - 1)
    refresh = number // every * every
    early, late = distance[refresh, number], distance[refresh, number + 1]
    return float(((1.0 - eagerness) * early + eagerness * late).mean())


def interpolated_means(
    contents: Contents, times: FloatArray, every: int, eagerness: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the mean divergence of each page by interpolation, and the eagerness of each page.

    A page whose eagerness is undefined gets the mean of the other pages, or 1/2 if all lack it.

    Args:
        contents: contents of m pages.
        times: times of the snapshots, evenly spaced, (S,), S >= 3.
        every: snapshots between refreshes.
        eagerness: E of all pages; None: E of each page.

    Returns:
        Mean divergence from the first snapshot to the last, and E of each page, NaN if it has none;
        (m,) each.
    """
    by_page = [distances(*versions(contents, page, times)) for page in range(contents.num_pages)]
    measured = np.array([eagerness_of(page) for page in by_page])
    finite = measured[~np.isnan(measured)]
    used = np.where(np.isnan(measured), finite.mean() if finite.size else 0.5, measured)
    if eagerness is not None:
        used = np.full(used.size, eagerness)
    pairs = zip(by_page, used, strict=True)
    return np.array([interpolated(page, every, eager) for page, eager in pairs]), measured
