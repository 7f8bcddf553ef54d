"""Promises: longest intervals between two fetches of a page, and when pages are due by them.

A page is fetched before its copy is older than its longest interval M. So it must be due earlier,
as other pages may be due at the same time. It is due from age M - (u M + w) on; pages that are due
come before all others, and among them that of the earliest deadline, its copy's time plus M
(Liu and Layland, 1973). The *lead* u M + w is at most M:

* u is the share of the bandwidth that the promises take, sum c / (M R), rounded up;
* w is the time of a fetch of the largest cost, which cannot be interrupted, or of a batch.

Deadlines are met if 2 u M + w <= M for every page. A fetched page is due again after M - (u M + w)
at the earliest, and fetches that began before take at most w of the time u M + w that it has then.
So pages are sporadic tasks of density sum c / (R min(u M, M - (u M + w))) <= 1, all of whose
deadlines are met in this order (Theorem 6.2 of Liu, Real-Time Systems, 2000). They are also met if
all M and c are equal and u <= 1: pages are fetched in turn, and all of them in the time u M. In
between they are met in practice but with no proof. If u > 5/6 no schedule meets them for some M,
as 2, 3 and any other, in units of a fetch; if u <= 5/6 there is one for all (Kawamura, STOC 2024).

Pages fetched in a row would be due in a row again, when no other page is fetched; and finding the
first of many pages with copies of the same age is slow. So M is shortened by a part of its own for
each page, at most a 32nd or what u leaves; u is that of the shortened M.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.types import FloatArray, IntArray

SHARES = 256
"""The share u is rounded up to a multiple of one by this number."""
SHORTENED, GOLDEN = 2.0**-5, 0.6180339887498949
"""Largest part by which an interval is shortened: of page i the fraction of i times GOLDEN."""
ROUNDING = 1e-9
"""How much more than the bandwidth promises may take by rounding, relative to it."""


class Lead(NamedTuple):
    """How long before their deadlines pages are due.

    Attributes:
        share: share of each page's longest interval, in [0, 1].
        wait: further time, >= 0.
        scale: a power of two, at least the longest interval of all pages.
        shortening: largest part by which intervals are shortened.
    """

    share: float
    wait: float
    scale: float
    shortening: float = SHORTENED


def lead_of(bandwidth_used: float, wait: float, longest: float) -> Lead:
    """Return the lead for promises that take a share of the bandwidth, for a longest interval."""
    shortening = min(SHORTENED, max(1.0 - bandwidth_used, 0.0))  # so that u <= 1
    share = min(np.ceil(bandwidth_used / (1.0 - shortening) * SHARES) / SHARES, 1.0)
    return Lead(float(share), wait, float(2.0 ** np.ceil(np.log2(longest))), shortening)


def promise_rows(most_interval: FloatArray, pages: IntArray, lead: Lead) -> FloatArray:
    """Return the rows of a table of promises, (n, 3); see ``crawl_envs.compiled.promises``.

    ``most_interval`` are the longest intervals of some pages, inf without a promise, (n,).
    """
    longest = most_interval * (1.0 - lead.shortening * (pages * GOLDEN % 1.0))
    some = np.isfinite(longest)
    limit = np.where(some, longest, 0.0)
    due = np.where(some, np.maximum(limit - lead.share * limit - lead.wait, 0.0), np.inf)
    slope = np.full(pages.size, 1.0 / lead.scale)
    return np.stack([due, 2.0 - limit / lead.scale, slope], axis=1)


def promise_table(
    name: str, most_interval: FloatArray, cost: FloatArray, bandwidth: float, wait: float
) -> FloatArray:
    """Return the table of promises of all pages, (m, 3), for costs of fetches and a bandwidth > 0.

    ``wait`` is the w above. Raises ValueError, with the argument's ``name``, if no schedule exists.
    """
    needed, shortest = float((cost / most_interval).sum()), float(most_interval.min())
    if needed > bandwidth * (1.0 + ROUNDING) or shortest < wait * (1.0 - ROUNDING):
        raise ValueError(
            f"{name} must be possible to keep, got u = {needed / bandwidth:.4g} of the bandwidth "
            f"{bandwidth:g} and a shortest interval of {shortest:g}: it takes a bandwidth of at "
            f"least {needed:.6g}, and intervals of at least {wait:g} (a fetch or batch). "
            "Promise longer intervals, or fewer pages (inf for none), or raise the bandwidth"
        )
    longest = float(most_interval[np.isfinite(most_interval)].max())
    lead = lead_of(min(needed / bandwidth, 1.0), wait, longest)
    return promise_rows(most_interval, np.arange(most_interval.size), lead)
