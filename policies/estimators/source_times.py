"""Silences of a source of signals, and batches: signals that reach many pages at one time.

A silence is a gap in the signals that chance hardly explains. If n signals come at uniform times in
T days, all spacings are below L with probability at least 1 - (n + 1) (1 - L / T)^n. Each day has
as its weight the number of pages between two crawls. Signals of a batch are not independent. So
with spacings g, n is at most 2 T^2 / sum g^2. This has the mean n for a Poisson process, and is
twice the number of batches if these come evenly: a weekly sitemap that misses a week is not silent.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray

MAX_SILENCES, MIN_ALIVE, MIN_INTERVALS, MAX_CHANCE = 3, 0.05, 3.0, 1e-3
"""Limits: number of silences; share of the log outside of them; length of a silence in median
intervals between crawls; and probability of a gap as long."""
MIN_SHARE, MIN_PAGES, MIN_RATIO, WINDOW = 0.3, 8, 3.0, 0.1
"""Least share and number of pages with a signal at one time, and least ratio to the mean number of
such pages; width of one time in mean intervals."""
MIN_CHANGES = 5.0
"""Least expected number of changes for a gap to count as quiet, if less than half were observed."""


def silent_spans(
    time: FloatArray, start: FloatArray, elapsed: FloatArray, changed: BoolArray
) -> FloatArray:
    """Return the first and the last day of each silence of a source, by time, (k, 2).

    A gap is no silence if crawls found few changes in it.

    Args:
        time: times of the source's signals, in any order.
        start: starts of the intervals between crawls of a page, (n,).
        elapsed: time until the later crawl, > 0, (n,).
        changed: whether the later crawl found a change, (n,) bool.
    """
    if start.size == 0:
        return np.empty((0, 2))
    ends = np.concatenate([start, start + elapsed])
    order = np.argsort(ends, kind="stable")
    pages = np.cumsum(np.repeat([1, -1], start.size)[order])
    day = ends[order]
    clock = np.append(0.0, np.cumsum(pages[:-1] * np.diff(day)))
    inside = np.sort(time[(time > day[0]) & (time < day[-1])])
    points = np.concatenate([day[:1], inside, day[-1:]])
    gap = np.diff(np.interp(points, day, clock))
    by_length = np.argsort(-gap, kind="stable")
    for number in range(min(MAX_SILENCES, inside.size), 0, -1):
        longest, shorter = by_length[:number], gap[by_length[number:]]
        spans = np.stack([points[longest], points[longest + 1]], axis=1)
        rest, length = shorter.sum(), gap[longest[-1]]
        count = min(inside.size, 2.0 * rest**2 / max((shorter**2).sum(), 1e-300))
        chance = (count + 1.0) * (rest / max(rest + length, 1e-300)) ** count
        alive, min_length = rest >= MIN_ALIVE * clock[-1], MIN_INTERVALS * np.median(elapsed)
        if alive and np.diff(spans).min() >= min_length and chance < MAX_CHANCE:
            spans = spans[np.argsort(spans[:, 0])]
            return spans[[not _is_quiet(span, start, elapsed, changed) for span in spans]]
    return np.empty((0, 2))


def silent_days(spans: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    """Return how much time of each interval between crawls lies in the silences ``spans``, (n,)."""
    days = np.zeros(start.size)
    for low, high in spans:
        days += np.maximum(np.minimum(end, high) - np.maximum(start, low), 0.0)
    return days


def at_many_pages(pages: IntArray, page: IntArray, time: FloatArray, interval: float) -> BoolArray:
    """Return which signals come when many pages get a signal at about the same time, (k,).

    Args:
        pages: all pages; repetitions do not count.
        page: pages of signals, (k,).
        time: times of signals, (k,).
        interval: mean interval between crawls.
    """
    fewest, result = max(MIN_PAGES, MIN_SHARE * np.unique(pages).size), np.zeros(page.size, bool)
    for shift in (0.0, 0.5):  # a time may lie at the edge of a window
        window = np.floor(time / (WINDOW * interval) + shift).astype(np.int64)
        first = np.unique(np.stack([window, page]), axis=1)[0]
        windows, number = np.unique(first, return_counts=True)
        typical = first.size / (np.ptp(window) + 1)
        result |= np.isin(window, windows[number >= max(fewest, MIN_RATIO * typical)])
    return result


def _is_quiet(span: FloatArray, start: FloatArray, elapsed: FloatArray, changed: BoolArray) -> bool:
    """Return whether crawls within ``span`` found less than half of the changes to expect there."""
    inside = (start >= span[0]) & (start + elapsed <= span[1])
    expected = inside.sum() * changed[~inside].mean() if not inside.all() else 0.0
    return bool(expected >= MIN_CHANGES and changed[inside].sum() < 0.5 * expected)
