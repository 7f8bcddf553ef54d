r"""An audit of sources of signals: precision, recall and delay from the results of crawls.

A source (sitemaps, ETags, a feed, pushes) is worth its trust if its signals follow changes, soon.
Crawls tell only whether a page changed since its last crawl, so that a signal is never seen to be
true or false. In the model of :mod:`policies.estimators.audit_likelihood` (Busa-Fekete et al.,
section 3, with exponential delays) it raises the probability of a change in its interval from what
the page's other crawls suggest. That probability is exact given the source's signals in the
interval, if signals were sent before the log began as they are later. Signals that arrive after the
interval would tell more about the delay. They are left out, because the time of the next crawl may
depend on the result. Intervals of a page count as independent given its rates: with a delay they
are not quite, which affects errors (taken from the scores of whole pages) more than estimates.

**Every source is audited alone.** Changes that only another source signals are then among those
without a signal, whose rate is the page's own. So the estimates hold whether two sources signal the
same changes (a feed and a sitemap) or different ones; a joint model must assume the latter. What
they need is that crawls are not prompted by signals of *another* source: those of the source itself
and results of earlier crawls may decide when to crawl.

The rate of changes without a signal is integrated out. Profiling it, page by page, estimated a
precision of .5 as .47 with four crawls a page, and no recall: rates of pages that changed at every
crawl are infinite. One distribution of all pages gave .54, and a recall of .69 instead of .6,
because pages with more changes have more signals. So its mean depends on signals and crawls: .51
and .61.

Simulated logs, of 200 each and a recall of .6: shares of intervals that cover the truth

=======================================  =========  ======  =====
pages, crawls each, precision, delay     precision  recall  delay
=======================================  =========  ======  =====
300, 20, .7, .3 mean intervals           .955       .945    .95
300, 6, .5, 0                            .98        .985    1
20, 60, .7, .2                           .96        .965    .95
=======================================  =========  ======  =====

What the intervals do not include, so that they are too narrow where pages are many:

* Few crawls of a page, with a delay: rates of signals are then not known well. With 10 crawls and a
  delay of .3 mean intervals, precision is 2% and recall 6% too low; with 100, 1% at most.
* No false signals and a short delay: with .02 mean intervals and a recall of .8, intervals of
  recall and delay cover the truth in 8 of 10 logs only. Estimates are .79 and .018.
* Precisions that differ between pages: false signals at the same rate on all pages, with changes at
  very different ones, gave .54 instead of .70. Audit groups of similar pages then.
* Crawls prompted by another source: .73 instead of .70 where its signals, half of the changes, each
  prompted a crawl.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import amounts, check_domain, floats, whole
from policies.estimators.audit_fit import FEWEST_PAGES, HIGH, LOW, Maximum, maximise
from policies.estimators.audit_likelihood import Source, U, W
from policies.estimators.histories import rows_of_pages, truths

QUANTILE = 1.96
"""Of the normal distribution, for intervals of 95%."""
INFORMATIVE = 3.0
"""Gain of the log-likelihood over signals without changes (95% of chi-squared with 2 degrees of
freedom, precision and delay, halved) from which a precision differs from 0."""
ROUNDING = 1e-15
"""Relative: start + elapsed need not be exactly the next start."""
MANY = 200_000
"""Intervals and signals from which the ascent begins with a tenth of the pages."""
TRUSTED = 0.9
USELESS = 0.05
WIDEST = 0.5
SHORT = 0.5
"""Limits of the verdicts: precisions, their range, and the delay in mean intervals."""


class SignalAudit(NamedTuple):
    """Quality of S sources; nan where a number is not known.

    Attributes:
        precision: share of signals that follow a change, over all pages, (S,).
        precision_interval: of 95%, (S, 2); its lower end is 0 if the results are as likely without
            any true signal.
        recall: share of changes that are signalled, (S,).
        recall_interval: of 95%, (S, 2).
        delay: mean time from a change to its signal, (S,); at most three mean intervals: longer
            delays cannot be told from false signals. nan without times, or if the precision may
            be 0.
        delay_interval: of 95%, (S, 2).
        num_signals: signals in the intervals given, (S,).
        verdict: "trust", "discount", "ignore" or "unknown", as :func:`audit_signals` explains; S
            of them.
        converged: whether the maximum of the likelihood was found, (S,) bool.
    """

    precision: FloatArray
    precision_interval: FloatArray
    recall: FloatArray
    recall_interval: FloatArray
    delay: FloatArray
    delay_interval: FloatArray
    num_signals: IntArray
    verdict: tuple[str, ...]
    converged: BoolArray


class _Quality(NamedTuple):
    """Quality of a source: estimates with both ends of their intervals, (3,) each."""

    precision: FloatArray
    recall: FloatArray
    delay: FloatArray
    verdict: str
    converged: bool


class _Crawls(NamedTuple):
    """Intervals longer than 0, sorted by page and start."""

    page: IntArray
    start: FloatArray
    elapsed: FloatArray
    changed: BoolArray


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
    """Estimate precision, recall and mean delay of every source, and judge it.

    Verdicts, the first that holds:

    * "unknown": no signals, no change or no unchanged crawl; or the interval of the precision is
      wider than 1/2.
    * "ignore": the lower end of the precision is below .05. At 0, the results are as likely if
      changes come at the rates of pages, whatever the source says.
    * "trust": the lower end is above .9, and the upper end of the delay is below half the mean
      interval between crawls. Without times the precision decides alone.
    * "discount": otherwise. The source helps if its precision is taken into account.

    Args:
        page: page of each interval between two successive crawls, (n,) int.
        start: time of the earlier crawl, (n,).
        elapsed: time until the later crawl, 0 or in [1e-12, 1e12], (n,). Intervals of a page must
            not overlap.
        changed: whether the later crawl found a change, (n,) bool.
        signal_page: page of each signal, (k,) int; in any order. Signals outside of all intervals
            (start, start + elapsed] are left out.
        signal_time: its time, (k,).
        signal_source: its source, 0 .. S - 1, (k,) int.
        num_sources: S.
        timed: whether the times of a source are known, (S,) bool; None for all. Otherwise only
            the number in each interval matters, and signals are taken to be immediate.

    Raises:
        ValueError: numbers are not finite or outside the domain, shapes disagree, a page or source
            is out of range, intervals overlap, or a page changed in no time.
    """
    crawls = _checked_intervals(page, start, elapsed, changed)
    num_sources = whole("num_sources", num_sources, 0)
    time = floats("signal_time", signal_time)
    if time.ndim != 1 or not np.isfinite(time).all():
        raise ValueError(f"signal_time must be (k,) finite numbers, got {time}")
    of = _checked_rows("signal_page", signal_page, time.size, math.inf)
    source = _checked_rows("signal_source", signal_source, time.size, num_sources)
    known = truths("timed", np.ones(num_sources, bool) if timed is None else timed, (num_sources,))
    row = _intervals_of(crawls, of, time)
    audits, number = [], np.zeros(num_sources, np.int64)
    for s in range(num_sources):
        mine = np.flatnonzero((row >= 0) & (source == s))
        mine = mine[np.argsort(row[mine], kind="stable")]
        at, number[s] = row[mine], mine.size
        age = np.minimum(time[mine] - crawls.start[at], crawls.elapsed[at])
        audits.append(_audit_source(crawls, at, age, bool(known[s])))
    precision, recall, delay = (
        np.array([audit[j] for audit in audits]).reshape(num_sources, 3) for j in range(3)
    )
    return SignalAudit(
        precision=precision[:, 0],
        precision_interval=precision[:, 1:],
        recall=recall[:, 0],
        recall_interval=recall[:, 1:],
        delay=delay[:, 0],
        delay_interval=delay[:, 1:],
        num_signals=number,
        verdict=tuple(audit.verdict for audit in audits),
        converged=np.array([audit.converged for audit in audits], bool),
    )


def _checked_intervals(
    page: ArrayLike, start: ArrayLike, elapsed: ArrayLike, changed: ArrayLike
) -> _Crawls:
    """Check intervals and sort them by page and start; pages are numbered anew."""
    begin, length = floats("start", start), amounts("elapsed", elapsed)
    if begin.ndim != 1 or not np.isfinite(begin).all():
        raise ValueError(f"start must be (n,) finite numbers, got {begin}")
    if length.shape != begin.shape:
        raise ValueError(f"elapsed must have shape {begin.shape}, got {length.shape}")
    check_domain("elapsed", length)
    flags = truths("changed", changed, begin.shape)
    if np.any(flags & (length == 0.0)):
        raise ValueError("changed must be False where elapsed is 0, got True")
    of, _ = rows_of_pages(page, None, begin.size)
    order = np.lexsort((begin, of))
    order = order[length[order] > 0.0]
    crawls = _Crawls(of[order], begin[order], length[order], flags[order])
    gap = crawls.start[1:] - crawls.start[:-1] - crawls.elapsed[:-1]
    rounding = ROUNDING * np.abs(crawls.start[1:])
    overlap = (crawls.page[1:] == crawls.page[:-1]) & (gap < -rounding)
    if overlap.any():
        raise ValueError(
            "start must not lie in another interval of the page, got "
            f"{crawls.start[1:][overlap][0]} of page {crawls.page[1:][overlap][0]}"
        )
    return crawls


def _checked_rows(name: str, values: ArrayLike, size: int, below: float) -> IntArray:
    rows = np.asarray(values)
    if rows.shape != (size,) or (rows.dtype.kind not in "iu" and size):
        raise ValueError(
            f"{name} must be {size} whole numbers, got dtype {rows.dtype}, shape {rows.shape}"
        )
    wrong = (rows < 0) | (rows >= below)
    if wrong.any():
        raise ValueError(f"{name} must be >= 0 and below {below:g}, got {rows[wrong][0]}")
    return rows.astype(np.int64)


def _intervals_of(crawls: _Crawls, page: IntArray, time: FloatArray) -> IntArray:
    """Return the interval (start, start + elapsed] of each signal, or -1."""
    pages = np.concatenate([page, crawls.page])
    times = np.concatenate([time, crawls.start])
    starts = np.arange(pages.size) >= page.size
    order = np.lexsort((starts, times, pages))  # a signal at a crawl belongs before it
    before = np.empty(pages.size, np.int64)
    before[order] = np.cumsum(starts[order]) - 1
    row = before[: page.size]
    if crawls.page.size == 0:
        return row
    age = time - crawls.start[row]
    within = age <= crawls.elapsed[row] + ROUNDING * np.abs(time)
    own = (row >= 0) & (crawls.page[row] == page) & within
    return np.where(own, row, -1)


def _audit_source(crawls: _Crawls, row: IntArray, age: FloatArray, timed: bool) -> _Quality:
    """Audit a source with signals in these intervals, sorted, at these ages."""
    unknown = np.full(3, math.nan)
    if row.size == 0 or crawls.changed.all() or not crawls.changed.any():
        return _Quality(unknown, unknown, unknown, "unknown", True)
    source, counts = _source(crawls, row, age, timed)
    start = None
    if row.size + crawls.page.size > MANY:  # climb with a tenth of the pages first
        chosen = crawls.page % 10 == 0
        position, own = np.cumsum(chosen) - 1, chosen[row]
        part = _Crawls(*(column[chosen] for column in crawls))
        if own.any() and part.changed.any() and not part.changed.all():
            start = maximise(_source(part, position[row[own]], age[own], timed)[0]).theta
    best = maximise(source, start)
    precision, recall = 1.0 - _ends(best, U)[[0, 2, 1]] ** 2, _recall(best, counts)
    delay = source.unit * np.expm1(_ends(best, W))
    if best.gain_by_delay < QUANTILE**2 / 2.0:
        delay[1] = 0.0
    if best.gain_by_precision < INFORMATIVE:
        precision[1] = recall[1] = 0.0
    if not timed or precision[1] == 0.0:
        delay = unknown
    verdict = _verdict(precision, delay, source.unit)
    return _Quality(precision, recall, delay, verdict, best.converged)


def _source(
    crawls: _Crawls, row: IntArray, age: FloatArray, timed: bool
) -> tuple[Source, FloatArray]:
    """Return the data of a source, and its number of signals per page.

    Rates of signals are shrunk towards their mean: posterior means of a Gamma distribution whose
    variance is that of the counts beyond Poisson's.
    """
    _, of = np.unique(crawls.page, return_inverse=True)
    intervals = np.bincount(of)
    time = np.bincount(of, crawls.elapsed).astype(np.float64)
    counts = np.bincount(of[row], minlength=len(time)).astype(np.float64)
    pooled = counts.sum() / time.sum()
    excess = ((counts - pooled * time) ** 2).sum() - counts.sum()
    variance = max(excess / (time**2).sum(), 1e-6 * pooled**2)
    rate = (counts + pooled**2 / variance) / (time + pooled / variance)
    z = np.log(np.stack([time / intervals, rate]))
    z -= z.mean(axis=1, keepdims=True)
    source = Source(
        offsets=np.append(0, np.cumsum(intervals)),
        elapsed=crawls.elapsed,
        changed=crawls.changed,
        signal_offsets=np.searchsorted(row, np.arange(crawls.page.size + 1)),
        age=age,
        signal_rate=rate,
        covariates=np.column_stack([np.ones(len(time)), *z]),
        time=time,
        unit=float(crawls.elapsed.mean()),
        timed=timed,
    )
    return source, counts


def _ends(best: Maximum, j: int) -> FloatArray:
    """Return a parameter with its interval: where its parabola is within 1.96^2 / 2 of the top.

    On a bound the parabola has a slope. The lower bounds stand for 0.
    """
    variance = best.variance[j]
    slope = 0.0 if LOW[j] < best.theta[j] < HIGH[j] else best.gradient[j]
    reach = math.sqrt(variance * (variance * slope**2 + QUANTILE**2))
    middle = best.theta[j] + variance * slope
    ends: FloatArray = np.array([best.theta[j], middle - reach, middle + reach])
    return np.where(ends <= LOW[j], 0.0, np.minimum(ends, HIGH[j]))


def _recall(best: Maximum, counts: FloatArray) -> FloatArray:
    """Return true signals over changes, with its interval, by the delta method.

    Changes without a signal are the posterior means of the pages' rates, times their time.
    """
    true = (1.0 - best.theta[U] ** 2) * counts
    changes = true.sum() + best.unsignalled.sum()
    recall = true.sum() / changes
    slope = -recall * best.by_unsignalled
    slope[U] -= (1.0 - recall) * 2.0 * best.theta[U] * counts.sum()
    share = (1.0 - recall) * true - recall * best.unsignalled
    if len(counts) >= FEWEST_PAGES:
        variance = ((share + best.evaluation.scores @ best.inverse @ slope) ** 2).sum()
    else:
        variance = slope @ best.inverse @ slope + (share**2).sum()
    u = math.sqrt(1.0 - recall)  # as for the precision
    reach = QUANTILE * math.sqrt(variance) / changes / (2.0 * max(u, 1e-9))
    ends: FloatArray = 1.0 - np.clip([u, u + reach, u - reach], 0.0, 1.0) ** 2
    return ends


def _verdict(precision: FloatArray, delay: FloatArray, unit: float) -> str:
    """Return the verdict; rules in :func:`audit_signals`."""
    _, low, high = precision
    if high - low > WIDEST:
        return "unknown"
    if low < USELESS:
        return "ignore"
    return "trust" if low > TRUSTED and not delay[2] >= SHORT * unit else "discount"
