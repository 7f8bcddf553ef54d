"""Signals of which only the day is known: where in this day they are taken to be."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.logs.crawl_log import crawls_before


def place(
    page: IntArray,
    day: FloatArray,
    crawl_page: IntArray,
    crawl_time: FloatArray,
    crawl_changed: BoolArray,
) -> FloatArray:
    """Return a time in the day of each signal, (k,).

    Crawls of the page split the day into pieces, each in one interval between crawls. If exactly
    one of these intervals ended in a change, the signal is in the middle of its piece, else in the
    middle of the longest piece, the first of these.

    Args:
        page: page of each signal, with at least one crawl, (k,).
        day: start of its day, (k,).
        crawl_page: page of each crawl; crawls are sorted by page and time, (n,).
        crawl_time: its time, (n,).
        crawl_changed: whether it found a change, (n,).
    """
    first = np.searchsorted(crawl_page, page)
    ends = [crawls_before(page, day + x, crawl_page, crawl_time) for x in (0.0, 1.0)]
    before, last = (np.where(crawl < 0, first - 1, crawl) for crawl in ends)
    signal = np.repeat(np.arange(page.size), last - before + 1)
    start = np.cumsum(last - before + 1) - (last - before + 1)
    crawl = before[signal] + np.arange(signal.size) - start[signal]
    # A piece is from a crawl, or the start of the day, to the next crawl or the end of the day.
    pages = np.concatenate([crawl_page, [-1]])
    times = np.concatenate([crawl_time, [0.0]])
    begin = np.where(pages[crawl] == page[signal], times[crawl], -np.inf)
    ended = pages[crawl + 1] == page[signal]
    begin = np.maximum(begin, day[signal])
    end = np.minimum(np.where(ended, times[crawl + 1], np.inf), day[signal] + 1.0)
    changed = ended & np.append(crawl_changed, False)[crawl + 1] & (end > begin)
    alone = np.bincount(signal, changed, page.size)[signal] == 1.0
    best = np.lexsort((-crawl, end - begin + 2.0 * (changed & alone), signal))
    chosen = best[np.cumsum(last - before + 1) - 1]
    middle: FloatArray = 0.5 * (begin + end)[chosen]
    return middle
