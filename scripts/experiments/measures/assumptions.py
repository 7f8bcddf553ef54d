"""Measure how far the simulated days of a recorded site are from the formulas' assumptions.

The formulas assume that each page changes as an independent Poisson process, at the rate fitted to
earlier days, and that signals have a constant precision and recall.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.instances.traces import Trace
from crawl_envs.types import FloatArray, IntArray
from scripts.data.fit_trace import Counts, count_events
from scripts.data.replays import Split
from scripts.study.correlations import correlation

ASSUMED = {
    "rate_ratio": ("changes per day, played over fitted", 1.0, "log"),
    "persistence": ("rank correlation of pages' rates,\nfitted and played", 1.0, "linear"),
    "bulk": ("share of changes made with\nten pages or more", 0.0, "linear"),
    "clumping": ("variance over mean of\nchanges per week", 1.0, "log"),
    "directory_precision": ("precision of directories' signals", 1.0, "linear"),
    "mention_precision": ("precision of mentions", 1.0, "linear"),
    "mention_recall": ("recall of mentions", 1.0, "linear"),
}
"""Title, ideal value and scale of the axis, by assumption."""

BULK = 10
"""Smallest number of pages that change at one moment for these to be changes in bulk."""

BIN = 7.0
"""Days of the bins in which changes are counted."""


def assumptions(trace: Trace, split: Split) -> dict[str, float]:
    """Return measures of the assumptions on a split; NaN where undefined.

    * ``rate_ratio``: changes per page and day in the simulated days, over those in the fitted days;
      1 if rates are constant.
    * ``persistence``: rank correlation of fitted and simulated change rates over pages that exist
      in both; 1 if rates differ between pages and are constant, 0 if they predict nothing.
    * ``bulk``: share of changes at moments in which ten pages or more change; near 0 if pages
      change independently.
    * ``clumping``: variance over mean of a page's changes per week, pooled over pages that exist
      on all simulated days; 1 for Poisson processes, less for regular ones.
    * ``directory_precision``, ``mention_precision``, ``mention_recall``: in the simulated days.
    """
    fitted = count_events(trace, split.fit_start, split.fit_end, "mentions")
    tested = count_events(trace, split.start, split.end, "mentions")
    directory = count_events(trace, split.start, split.end, "directory")
    change = (trace.change_time > split.start) & (trace.change_time <= split.end)
    page, time = trace.change_page[change], trace.change_time[change]
    rates = [
        np.divide(part.changes, part.days, out=np.full(part.days.size, np.nan), where=part.days > 0)
        for part in (fitted, tested)
    ]
    return {
        "rate_ratio": _ratio(tested.changes, tested.days) / _ratio(fitted.changes, fitted.days),
        "persistence": correlation(*rates, ranked=True),
        "bulk": _bulk_share(time),
        "clumping": _clumping(trace, split, page, time),
        "directory_precision": _precision(directory),
        "mention_precision": _precision(tested),
        "mention_recall": _ratio(tested.signalled, tested.changes),
    }


def _ratio(counts: IntArray, denominators: FloatArray | IntArray) -> float:
    total = float(denominators.sum())
    return float(counts.sum()) / total if total > 0.0 else math.nan


def _precision(events: Counts) -> float:
    return _ratio(events.signalled, events.signalled + events.false_signals)


def _bulk_share(time: FloatArray) -> float:
    if time.size == 0:
        return math.nan
    _, moment, pages = np.unique(time, return_inverse=True, return_counts=True)
    return float((pages[moment] >= BULK).mean())


def _clumping(trace: Trace, split: Split, page: IntArray, time: FloatArray) -> float:
    lasting = (trace.created <= split.start) & (trace.deleted >= split.end)
    bins = int((split.end - split.start) / BIN)
    inside = lasting[page] & (time < split.start + bins * BIN)
    counts = np.zeros((trace.num_pages, bins))
    week = ((time[inside] - split.start) / BIN).astype(np.int64)
    np.add.at(counts, (page[inside], np.minimum(week, bins - 1)), 1.0)
    counts = counts[lasting]
    mean = float(counts.mean(axis=1).sum()) if bins > 1 else 0.0
    return float(counts.var(axis=1, ddof=1).sum()) / mean if mean > 0.0 else math.nan
