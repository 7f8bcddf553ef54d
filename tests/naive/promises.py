"""The page that is due by a promise, by sorting deadlines: the text of policies/values/promises."""

from __future__ import annotations

import math
from collections.abc import Sequence

GOLDEN = 0.6180339887498949


def due_pages(
    intervals: Sequence[float],
    costs: Sequence[float],
    bandwidth: float,
    wait: float,
    ages: Sequence[float],
) -> list[int]:
    """Return the pages that are due, in order: by deadlines, or above a share of 1/2 by age / M.

    Arguments are per page: longest intervals, what fetches cost of the bandwidth, ages of copies.
    """
    used = sum(cost / interval for cost, interval in zip(costs, intervals, strict=True)) / bandwidth
    part = min(1.0 / 32.0, math.floor((1.0 - used) * 256.0) / 256.0)
    share = math.ceil(used / (1.0 - part) * 256.0) / 256.0
    due = []
    for page, (interval, age) in enumerate(zip(intervals, ages, strict=True)):
        if interval == math.inf:
            continue
        longest = interval * (1.0 - part * math.fmod(page * GOLDEN, 1.0))
        if age >= max(longest - share * longest - wait, 0.0):
            due.append((-age / longest if share > 0.5 else longest - age, page))
    return [page for _, page in sorted(due)]
