r"""An audit of sources of signals: precision, recall and delay from the results of crawls.

A source (sitemaps, ETags, a feed, pushes) can be trusted if its signals follow changes soon. Crawls
do not show whether a signal is true. A true signal raises the probability of a change before it
above what the page's other crawls suggest (:mod:`policies.estimators.source_intervals`).

Every source is audited alone: a change that only another source signals counts as one without a
signal. Earlier results and signals of the source may prompt crawls; signals of other sources may
not. Batches have a separate precision, and silences do not count
(:mod:`policies.estimators.source_times`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import floats, whole
from policies.estimators.histories import truths
from policies.estimators.signal_quality import crawls_of_pages
from policies.estimators.source_intervals import effective_signals, intervals
from policies.estimators.source_likelihood import ROUNDING, Crawls, last_intervals, source_of
from policies.estimators.source_times import at_many_pages, silent_days, silent_spans

TRUSTED, USELESS, WIDEST, SHORT = 0.9, 0.05, 0.5, 0.5
"""Limits for verdicts: of precisions, of their range, and of delays in mean intervals."""


class SignalAudit(NamedTuple):
    """Quality of S sources, with 95% intervals, (S, 2); nan where a number is unknown.

    Attributes:
        precision: share of signals that follow a change, over all pages, (S,).
        recall: share of changes that are signalled, (S,).
        delay: mean time from a change to its signal, (S,), at most three mean intervals: later
            signals look like false ones. nan without times, and for the verdict "ignore".
        num_signals: signals in the intervals between crawls, (S,).
        verdict: "trust", "discount", "ignore" or "unknown", (S,); ``reason`` says why.
        silences: first and last times of the silences of a source, S arrays of shape (k, 2).
        effective_signals: signals of each interval, in the order of the arguments, as if none were
            late or lost: evidence of a change over that of one signal without a delay, (S, n). The
            number of signals without delays and silences, or if "unknown" or "ignore".
        false_signals: expected number of false signals of batches in each interval, which effective
            signals leave out, (S, n).
    """

    precision: FloatArray
    precision_interval: FloatArray
    recall: FloatArray
    recall_interval: FloatArray
    delay: FloatArray
    delay_interval: FloatArray
    num_signals: IntArray
    verdict: tuple[str, ...]
    reason: tuple[str, ...]
    silences: tuple[FloatArray, ...]
    effective_signals: FloatArray
    false_signals: FloatArray


def audit_signals(
    page: ArrayLike,
    start: ArrayLike,
    elapsed: ArrayLike,
    changed: ArrayLike,
    signal_page: ArrayLike,
    signal_time: ArrayLike,
    signal_source: ArrayLike,
    num_sources: int,
    timed: ArrayLike | None = None,
) -> SignalAudit:
    """Estimate precision, recall and mean delay of every source, and return a verdict.

    The verdict is the first that applies:

    * "unknown": no signals, no change or no unchanged crawl; or the interval of the precision is
      wider than 1/2.
    * "ignore": the lower end of the precision is below .05. It is 0 where the delay may be three
      mean intervals or more: the results are then about as likely if all signals are false.
    * "trust": the lower end is above .9, and the upper end of the delay is below half the mean
      interval between crawls. Without times only the precision counts.
    * "discount": otherwise. The source helps if its precision is taken into account.

    Args:
        page: page of each interval between two successive crawls, (n,) int.
        start: time of the earlier crawl, (n,).
        elapsed: time until the later crawl, 0 or in [1e-12, 1e12], (n,). Intervals of a page must
            not overlap.
        changed: whether the later crawl found a change, (n,) bool.
        signal_page: pages of signals, (k,) int; in any order. Signals before the first and after
            the last crawl of a page are left out.
        signal_time: times of signals, (k,).
        signal_source: sources of signals, 0 .. S - 1, (k,) int.
        num_sources: S.
        timed: whether the times of a source are known, (S,) bool; None for all. Otherwise only
            the number in each interval matters, and signals count as immediate.

    Raises:
        ValueError: bad numbers, shapes, pages or sources, or intervals that overlap.
    """
    crawls, order = _sorted_crawls(page, start, elapsed, changed)
    num_sources, time = whole("num_sources", num_sources, 0), floats("signal_time", signal_time)
    if time.ndim != 1 or not np.isfinite(time).all():
        raise ValueError(f"signal_time must be (k,) finite numbers, got {time}")
    pages = _checked_rows("signal_page", signal_page, time.size, math.inf)
    source = _checked_rows("signal_source", signal_source, time.size, num_sources)
    flags = truths("timed", np.ones(num_sources, bool) if timed is None else timed, (num_sources,))
    last, inside = last_intervals(crawls, pages, time)
    signals, audits = np.zeros((2, num_sources, np.size(start))), []
    for s in range(num_sources):
        rows = (last >= 0) & (source == s)
        audits.append(_audit(crawls, (time[rows], last[rows], inside[rows]), bool(flags[s])))
        signals[:, s, order] = audits[-1][1]
    values = np.reshape([x[0] for x in audits], (num_sources, 3, 3)).swapaxes(0, 1)
    precision, recall, delay = ((x[:, 0], x[:, 1:]) for x in values)
    return SignalAudit(
        *(*precision, *recall, *delay),
        np.bincount(source[inside], minlength=num_sources)[:num_sources],
        verdict=tuple(x[2] for x in audits),
        reason=tuple(x[3] for x in audits),
        silences=tuple(x[4] for x in audits),
        effective_signals=signals[0],
        false_signals=signals[1],
    )


def _sorted_crawls(
    page: ArrayLike, start: ArrayLike, elapsed: ArrayLike, changed: ArrayLike
) -> tuple[Crawls, IntArray]:
    """Return intervals between crawls, checked and sorted by page and start, and their rows.

    Intervals of length 0 are left out.
    """
    begin = floats("start", start)
    if begin.ndim != 1 or not np.isfinite(begin).all():
        raise ValueError(f"start must be (n,) finite numbers, got {begin}")
    if np.shape(elapsed) != begin.shape:
        raise ValueError(f"elapsed must have shape {begin.shape}, got {np.shape(elapsed)}")
    crawls_of_pages(elapsed, None, changed, page, None)  # raises
    pages, length = np.asarray(page, np.int64), floats("elapsed", elapsed)
    order = np.lexsort((begin, pages))
    order = order[length[order] > 0.0]
    flags = truths("changed", changed, begin.shape)
    crawls = Crawls(pages[order], begin[order], length[order], flags[order])
    gap = crawls.start[1:] - crawls.start[:-1] - crawls.elapsed[:-1]
    overlap = (np.diff(crawls.page) == 0) & (gap < -ROUNDING * np.abs(crawls.start[1:]))
    for row in 1 + np.flatnonzero(overlap):
        got = f"{crawls.start[row]} of page {crawls.page[row]}"
        raise ValueError(f"start must not lie in another interval of the page, got {got}")
    return crawls, order


def _checked_rows(name: str, values: ArrayLike, size: int, below: float) -> IntArray:
    rows = np.asarray(values)
    if rows.shape != (size,) or (rows.dtype.kind not in "iu" and size):
        raise ValueError(f"{name} must be {size} whole numbers, got {rows.dtype}, {rows.shape}")
    for row in rows[(rows < 0) | (rows >= below)]:
        raise ValueError(f"{name} must be >= 0 and below {below:g}, got {row}")
    return rows.astype(np.int64)


def _audit(
    crawls: Crawls, signals: tuple[FloatArray, IntArray, BoolArray], timed: bool
) -> tuple[FloatArray, FloatArray, str, str, FloatArray]:
    """Audit one source; ``signals`` are times, last intervals before, and whether inside these.

    Returns precision, recall and delay with their intervals, (3, 3); effective and false signals by
    interval, (2, n); verdict; reason; and silences.
    """
    (page, start, elapsed, changed), (time, last, inside) = crawls, signals
    silences, counts = silent_spans(time[inside], start, elapsed, changed), np.zeros((2, page.size))
    counts[0] = np.bincount(last[inside], minlength=page.size)
    nothing = np.full((3, 3), math.nan), counts, "unknown"
    if not inside.any():
        return *nothing, "no signal lies in the intervals", silences
    if changed.all() or not changed.any():
        return *nothing, "there are not both changes and intervals without one", silences
    batch = at_many_pages(page, page[last], time, elapsed.mean())
    late = timed and not batch[inside].all()
    silent = silent_days(silences, start, start + elapsed)
    source = source_of(crawls, silent, signals, batch & late, batch | (not late))
    numbers, theta = intervals(source, late)
    verdict, reason = _judge(numbers[0, 1], numbers[0, 2], numbers[2, 2])
    if verdict in ("trust", "discount") and (numbers[2, 0] or silences.size or source.batch.any()):
        counts = np.array(effective_signals(source, theta))
    numbers[2] *= elapsed.mean() if timed and numbers[0, 1] >= USELESS else math.nan
    return numbers, counts, verdict, reason, silences


def _judge(low: float, high: float, longest: float) -> tuple[str, str]:
    """Return verdict and reason, from the ends of the precision and the longest possible delay."""
    if high - low > WIDEST:
        return "unknown", f"the interval of the precision is wider than {WIDEST:g}"
    if low < USELESS:
        return "ignore", f"the lower end of the precision, {low:.3g}, is below {USELESS:g}"
    if low <= TRUSTED:
        return "discount", f"the lower end of the precision, {low:.3g}, is not above {TRUSTED:g}"
    if longest >= SHORT:
        return "discount", f"the delay may be {longest:.3g} mean intervals, not below {SHORT:g}"
    return "trust", f"the lower end of the precision, {low:.3g}, is above {TRUSTED:g}"
