"""Changes of the pages of a record, and how long copies of a page are fresh."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crawl_envs.instances.traces import Trace
from crawl_envs.types import FloatArray


def changes_by_page(trace: Trace) -> list[FloatArray]:
    """Return the times of the changes of each page, in order."""
    order = np.argsort(trace.change_page, kind="stable")
    ends = np.searchsorted(trace.change_page[order], np.arange(1, trace.num_pages))
    return np.split(trace.change_time[order], ends)


def fresh_days(copies: Sequence[float], changes: FloatArray, begin: float, end: float) -> float:
    """Return how much of the days from ``begin`` to ``end`` the newest copy of a page is fresh.

    A copy is fresh until the first change after it, or the next copy.

    Args:
        copies: times of the copies, in order.
        changes: times of the changes of the page, in order.
        begin: the first day.
        end: the last one.
    """
    taken = np.array(copies)
    stale = np.append(changes, math.inf)[np.searchsorted(changes, taken, side="right")]
    stops = np.minimum(np.minimum(np.append(taken[1:], math.inf), stale), end)
    return float(np.maximum(stops - np.maximum(taken, begin), 0.0).sum())
