"""Promises: longest intervals between two fetches of a page, and when pages are due by them.

A page is fetched before its copy is older than its longest interval M. So it must be due earlier,
as other pages may be due at the same time. It is due from age M - (u M + w) on; pages that are due
come before all others, and among them that of the earliest deadline, its copy's time plus M
(Liu and Layland, 1973). The *lead* u M + w is such that all deadlines are met:

* u is the share of the bandwidth that the promises take, sum c / (M R), rounded up;
* w is the time of a fetch of the largest cost, which cannot be interrupted, and of the others of a
  batch.

Each page asks for at most c per M - (u M + w) and has the time u M for it. Deadlines are met if the
sum of c / (R min(u M, M - (u M + w))) is at most 1 (the density of Liu, Real-Time Systems, 2000,
section 6.3): so it is with u <= 1/2, up to w. Pages of equal M and c are then fetched in turn, for
which u <= 1 is enough. Between these, deadlines are met in practice but with no proof; above a
density of 5/6 no schedule meets them all for some M (Kawamura, 2024).

Pages whose copies are equally old would be due at once, and finding the first of many such ties is
slow. So each page's M is shortened by its own small part, at most a thousandth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.types import FloatArray, IntArray

SHARES = 256
"""The share u is rounded up to a multiple of one by this number."""
SHORTENED, GOLDEN = 2.0**-10, 0.6180339887498949
"""Largest part by which an interval is shortened: of page i the fraction of i times GOLDEN."""


class Lead(NamedTuple):
    """How long before their deadlines pages are due.

    Attributes:
        share: share of each page's longest interval, in [0, 1].
        wait: further time, >= 0.
        scale: a power of two, at least the longest interval of all pages.
    """

    share: float
    wait: float
    scale: float


def lead_of(bandwidth_used: float, wait: float, longest: float) -> Lead:
    """Return the lead for promises that take a share of the bandwidth, for a longest interval."""
    share = min(np.ceil(bandwidth_used * SHARES) / SHARES, 1.0)
    return Lead(float(share), wait, float(2.0 ** np.ceil(np.log2(longest))))


def shortened(most_interval: FloatArray, pages: IntArray) -> FloatArray:
    """Return the longest intervals of pages, shortened by their own small parts, (n,)."""
    return most_interval * (1.0 - SHORTENED * (pages * GOLDEN % 1.0))


def promise_rows(most_interval: FloatArray, pages: IntArray, lead: Lead) -> FloatArray:
    """Return the rows of a table of promises, (n, 3); see ``crawl_envs.compiled.promises``.

    ``most_interval`` are the longest intervals of some pages, inf without a promise, (n,).
    """
    longest = shortened(most_interval, pages)
    some = np.isfinite(longest)
    limit = np.where(some, longest, 0.0)
    due = np.where(some, np.maximum(limit - lead.share * limit - lead.wait, 0.0), np.inf)
    slope = np.full(pages.size, 1.0 / lead.scale)
    return np.stack([due, 2.0 - limit / lead.scale, slope], axis=1)
