"""Promises: longest intervals between two fetches of a page, and when pages are due by them.

A page is fetched before its copy is older than its longest interval M. So it must be due earlier,
as other pages may be due at the same time: from age M - (u M + w) on. Pages that are due come
before all others. In the *lead* u M + w, at most M, u is the share of the bandwidth that promises
take, sum c / (M R), rounded up, and w the time of a batch, or of the costliest fetch. Up to u = 1/2
the page of the earliest deadline, its copy's time plus M, is first (Liu and Layland, 1973). Above,
that of the largest age / M, as deadlines starve long intervals. No page is late if 2 u M + w <= M
for all, or if all M and c are equal, u <= 1 and pages are fetched singly; docs/promises.md says
why, and how late pages were measured to be where u > 1/2.

Each M is shortened by a part of its own, at most a 32nd or what u leaves (in steps), and u is that
of the shortened M. Else pages fetched in a row would be due in a row again, when no other page is
fetched, and finding the first of many pages with copies of the same age would be slow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.types import FloatArray, IntArray

SHARES = 256
"""The share u is rounded up to a multiple of one by this number."""
SHORTENED, GOLDEN = 2.0**-5, 0.6180339887498949
"""Largest part by which an interval is shortened: of page i the fraction of i times GOLDEN."""


class Lead(NamedTuple):
    """How long before their deadlines pages are due."""

    share: float  # of each page's longest interval, in [0, 1]; above 1 if u is
    wait: float  # further time, >= 0
    scale: float  # a power of two, at least the longest interval of all pages
    shortening: float = SHORTENED  # largest part by which intervals are shortened


def lead_of(bandwidth_used: float, wait: float, longest: float) -> Lead:
    """Return the lead for promises that take a share of the bandwidth, for a longest interval."""
    shortening = min(SHORTENED, np.floor(max(1.0 - bandwidth_used, 0.0) * SHARES) / SHARES)
    share = min(np.ceil(bandwidth_used / (1.0 - shortening) * SHARES), SHARES + 1.0) / SHARES
    return Lead(float(share), wait, float(2.0 ** np.ceil(np.log2(longest))), shortening)


def promise_rows(most_interval: FloatArray, pages: IntArray, lead: Lead) -> FloatArray:
    """Return the rows of a table of promises, (n, 3); see ``crawl_envs.compiled.promises``.

    ``most_interval`` are the longest intervals of some pages, inf without a promise, (n,).
    """
    longest = most_interval * (1.0 - lead.shortening * (pages * GOLDEN % 1.0))
    limit = np.where(np.isfinite(longest), longest, 0.0)
    due = np.maximum(limit - lead.share * limit - lead.wait, 0.0)
    due[np.isinf(longest)] = np.inf
    if lead.share > 0.5:
        return np.stack([due, np.ones_like(due), 1.0 / longest], axis=1)
    return np.stack([due, 2.0 - limit / lead.scale, np.full_like(due, 1.0 / lead.scale)], axis=1)


def promise_table(
    name: str, most_interval: FloatArray, cost: FloatArray, bandwidth: float, wait: float
) -> FloatArray:
    """Return the table of promises of all pages, (m, 3), for costs of fetches and the w above.

    Raises ValueError, with the argument's ``name``, if no schedule keeps them.
    """
    needed, shortest = float((cost / most_interval).sum()), float(most_interval.min())
    if not (needed <= bandwidth * (1.0 + 1e-9) and shortest >= wait * (1.0 - 1e-9)):  # or NaN
        raise ValueError(
            f"{name} must be possible to keep, got u = {needed / bandwidth:.4g} of the bandwidth "
            f"{bandwidth:g} and a shortest interval of {shortest:g}. It takes a bandwidth of at "
            f"least {needed:.6g}, and intervals of at least {wait:g} (a fetch or batch): promise "
            "longer intervals, or fewer pages (inf for none), or raise the bandwidth"
        )
    longest = float(most_interval[np.isfinite(most_interval)].max(initial=1.0))
    lead = lead_of(min(needed / bandwidth, 1.0), wait, longest)
    return promise_rows(most_interval, np.arange(most_interval.size), lead)
