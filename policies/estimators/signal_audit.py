r"""An audit of sources of signals: precision, recall and delay from the results of crawls.

A source (sitemaps, ETags, a feed, pushes) is worth its trust if its signals follow changes, soon.
Crawls tell only whether a page changed since its last crawl. They do not tell whether a signal is
true. A true signal raises the probability of a change in its interval above what the page's other
crawls suggest. The model is that of :mod:`policies.estimators.signal_likelihood` (Busa-Fekete et
al., section 3) with late signals; :mod:`policies.estimators.source_likelihood` has the formulas.
Signals after an interval would tell more about the delay. They are left out, because the time of
the next crawl may depend on the result.

**Every source is audited alone.** Changes that only another source signals are then changes without
a signal. So the estimates hold whether two sources signal the same changes (a feed and a sitemap)
or different ones. They need crawls that are not prompted by signals of *another* source. Signals of
the source itself and earlier results may prompt crawls.

**Precision depends on the page's rate of signals.** A sitemap that dates all pages anew at each
deployment sends as many false signals for quiet pages as for busy ones. With one precision for all
pages, a true precision of .70 was found as .47 then. Signals that reach many pages at one
time are audited apart from the others, since their times may keep step with those of crawls.

**Silences.** Where a source that had signals is silent for longer than chance explains
(:mod:`policies.estimators.source_times`), its recall is that of the rest of the log.

Parameters have normal intervals in arcsin sqrt(1 - precision), arcsin sqrt(1 - recall) and
sqrt(delay). Their variance is the larger of that by second derivatives and that of a bootstrap over
pages: pages get exponential weights (Rubin 1981), and a resample is one step of Newton's method
with weighted sums of pages' slopes (the score bootstrap, Kline and Santos 2012). Intervals are at
least as wide as binomial ones if so many signals had been seen to be true or false: after n
signals, that of a precision of 1 begins at 1 + ln(.025) / n.

Simulated logs, 200 of each kind: shares of intervals that cover the truth, and mean estimates

=======================================  ==========================  ==================
pages, crawls, precision, recall, delay  precision, recall, delay    estimates
=======================================  ==========================  ==================
300, 20, .7, .6, .3 mean intervals       .955, .955, .95             .703, .599, .305
300, 6, .5, .6, 0                        .98, .99, .975              .506, .602, .003
20, 60, .7, .6, .2                       .98, .98, .975              .712, .612, .219
100, 30, .9, .8, .1                      .94, .955, .975             .901, .802, .102
1000, 10, .6, .4, .2                     .95, .93, .955              .601, .397, .204
=======================================  ==========================  ==================

With few pages, or a delay of 0, intervals are too wide. They do not allow for crawls prompted by
another source, for a source that is silent for some pages only, or for delays of another law: with
fixed or uniform ones of a mean of .25 intervals, precision and recall were up to .17 and .2 too
high.

The lower end of the precision of a source of no use is below .05, or the source is "unknown".
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import amounts, check_domain, floats, whole
from policies.estimators.histories import rows_of_pages, truths
from policies.estimators.source_likelihood import (
    DELAY,
    FALSE,
    FLOOR,
    PRIOR,
    SIZE,
    STEP,
    Source,
    climb,
    effective_signals,
)
from policies.estimators.source_times import at_many_pages, silent_days, silent_spans

RESAMPLES, TAIL, QUANTILE = 200, 0.025, 1.96
NO_MAXIMUM = "the maximum of the likelihood was not found"
ROUNDING = 1e-15
"""Relative: start + elapsed need not be exactly the next start."""
TRUSTED, USELESS, WIDEST, SHORT, LONGEST = 0.9, 0.05, 0.5, 0.5, 3.0
"""Limits: of precisions, their range, and delays in mean intervals for a verdict and at all."""


class SignalAudit(NamedTuple):
    """Quality of S sources; nan where a number is not known.

    Attributes:
        precision: share of signals that follow a change, over all pages, (S,).
        precision_interval: of 95%, as the others, (S, 2).
        recall: share of changes that are signalled, (S,).
        recall_interval: (S, 2).
        delay: mean time from a change to its signal, (S,); at most three mean intervals: longer
            ones cannot be told from false signals. nan without times, and for the verdict "ignore".
        delay_interval: (S, 2).
        num_signals: signals in the intervals given, (S,).
        verdict: "trust", "discount", "ignore" or "unknown", (S,); see :func:`audit_signals`.
        converged: whether the maximum of the likelihood was found, or none looked for, (S,) bool.
            Where it was not, all numbers but ``num_signals`` are nan.
        reason: of the verdict, a short sentence, (S,).
        silences: first and last time of each silence of a source, S arrays of shape (k, 2).
        effective_signals: signals of each interval, in the order given, as if none were late or
            lost: its evidence of a change over that of one signal without a delay. Their number
            without delays and silences, and for the verdicts "unknown" and "ignore"; (S, n).
        false_signals: expected number of signals in each interval that reached many pages at
            one time and are false; they are not among the effective signals, (S, n).
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
    reason: tuple[str, ...]
    silences: tuple[FloatArray, ...]
    effective_signals: FloatArray
    false_signals: FloatArray


class _Crawls(NamedTuple):
    """Intervals longer than 0, sorted by page and start."""

    page: IntArray
    start: FloatArray
    elapsed: FloatArray
    changed: BoolArray
    row: IntArray  # of the arguments


class _Audited(NamedTuple):
    """The audit of one source."""

    silences: FloatArray
    effective: FloatArray  # signals of each interval
    false: FloatArray  # signals of each interval
    numbers: FloatArray = np.full((3, 3), math.nan)  # precision, recall, delay, with their ends
    verdict: str = "unknown"
    reason: str = NO_MAXIMUM


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
    seed: int = 0,
) -> SignalAudit:
    """Estimate precision, recall and mean delay of every source, and judge it.

    Verdicts, the first that holds:

    * "unknown": no signals, no change or no unchanged crawl; no maximum of the likelihood was
      found; or the interval of the precision is wider than 1/2.
    * "ignore": the lower end of the precision is below .05. It is 0 where the delay may be three
      mean intervals or more: the results are then about as likely if all signals are false.
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
        seed: of the bootstrap, >= 0.

    Raises:
        ValueError: numbers are not finite or outside the domain, shapes disagree, a page or source
            is out of range, intervals overlap, or a page changed in no time.
    """
    crawls = _checked_intervals(page, start, elapsed, changed)
    num_sources, seed = whole("num_sources", num_sources, 0), whole("seed", seed, 0)
    time = floats("signal_time", signal_time)
    if time.ndim != 1 or not np.isfinite(time).all():
        raise ValueError(f"signal_time must be (k,) finite numbers, got {time}")
    of = _checked_rows("signal_page", signal_page, time.size, math.inf)
    source = _checked_rows("signal_source", signal_source, time.size, num_sources)
    known = truths("timed", np.ones(num_sources, bool) if timed is None else timed, (num_sources,))
    row = _intervals_of(crawls, of, time)
    audited = [
        _audit_source(crawls, row, time, (row >= 0) & (source == s), bool(known[s]), seed)
        for s in range(num_sources)
    ]
    values = np.array([each.numbers for each in audited]).reshape(num_sources, 3, 3)
    effective, false = np.zeros((2, num_sources, np.size(start)))
    for s, each in enumerate(audited):
        effective[s, crawls.row], false[s, crawls.row] = each.effective, each.false
    precision, recall, delay = ((values[:, k, 0], values[:, k, 1:]) for k in range(3))
    return SignalAudit(
        *precision,
        *recall,
        *delay,
        num_signals=np.bincount(source[row >= 0], minlength=num_sources)[:num_sources],
        verdict=tuple(each.verdict for each in audited),
        converged=np.array([each.reason != NO_MAXIMUM for each in audited], bool),
        reason=tuple(each.reason for each in audited),
        silences=tuple(each.silences for each in audited),
        effective_signals=effective,
        false_signals=false,
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
    crawls = _Crawls(of[order], begin[order], length[order], flags[order], order)
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
        raise ValueError(f"{name} must be {size} whole numbers, got {rows.dtype}, {rows.shape}")
    wrong = rows[(rows < 0) | (rows >= below)]
    if wrong.size:
        raise ValueError(f"{name} must be >= 0 and below {below:g}, got {wrong[0]}")
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


def _audit_source(
    crawls: _Crawls, row: IntArray, time: FloatArray, own: BoolArray, timed: bool, seed: int
) -> _Audited:
    """Audit the source whose signals are ``own``."""
    signals = np.flatnonzero(own)
    signals = signals[np.argsort(row[signals], kind="stable")]
    row, time, unit = row[signals], time[signals], crawls.elapsed.mean() if own.any() else 1.0
    counts = np.bincount(row, minlength=crawls.page.size).astype(np.float64)
    false = np.zeros(crawls.page.size)
    result = _Audited(silent_spans(time, *crawls[1:4]), counts, false)
    if row.size == 0:
        return result._replace(reason="no signal lies in the intervals")
    if crawls.changed.all() or not crawls.changed.any():
        return result._replace(reason="there are not both changes and intervals without one")
    at_once, fits, parts = at_many_pages(crawls.page, crawls.page[row], time, unit), [], []
    for part, late in ((~at_once, timed), (at_once, False)):
        if part.any():
            age = np.minimum(time - crawls.start[row], crawls.elapsed[row])[part]
            source = _source(crawls, row[part], age, result.silences, late)
            best = climb(source)
            if best is None:
                return result
            fits.append((source, best[0]))
            parts.append(_intervals(*best, seed))
            if late and parts[-1][2, 2] >= LONGEST:  # signals as late as that are like false ones
                parts[-1][:2, 1] = 0.0
            if not late:
                parts[-1][2] = 0.0
    numbers = _pool(parts, np.array([source.signals.sum() for source, _ in fits]))
    low, high = numbers[0, 1:]
    verdict, reason = _judge(low, high, numbers[2, 2])
    if verdict in ("trust", "discount") and (numbers[2, 0] or len(result.silences) or fits[1:]):
        counts, false = effective_signals(fits)
    numbers[2] *= unit if timed and low >= USELESS else math.nan
    return _Audited(result.silences, counts, false, numbers, verdict, reason)


def _pool(parts: list[FloatArray], number: FloatArray) -> FloatArray:
    """Return the numbers of a source by those of its parts, of so many signals each.

    Recalls add up, precisions are weighted, and errors of parts are independent. The delay is that
    of the first.
    """
    weight = np.stack([number / number.sum(), np.ones(len(parts))], axis=1)
    each = np.array(parts)
    value = (weight * each[:, :2, 0]).sum(axis=0)
    reach = np.sqrt(((weight[:, :, None] * (each[:, :2, 1:] - each[:, :2, :1])) ** 2).sum(axis=0))
    pooled = np.clip(np.stack([value, value - reach[:, 0], value + reach[:, 1]], axis=1), 0.0, 1.0)
    return np.vstack([pooled, each[:1, 2]])


def _judge(low: float, high: float, longest: float) -> tuple[str, str]:
    """Return a verdict and its reason by the ends of the precision and the longest delay."""
    if high - low > WIDEST:
        return "unknown", f"the interval of the precision is wider than {WIDEST:g}"
    if low < USELESS:
        return "ignore", f"the lower end of the precision, {low:.3g}, is below {USELESS:g}"
    if low <= TRUSTED:
        return "discount", f"the lower end of the precision, {low:.3g}, is not above {TRUSTED:g}"
    if longest >= SHORT:
        reason = f"the upper end of the delay, {longest:.3g} mean intervals, is not below {SHORT:g}"
        return "discount", reason
    return "trust", f"the lower end of the precision, {low:.3g}, is above {TRUSTED:g}"


def _source(
    crawls: _Crawls, row: IntArray, age: FloatArray, silences: FloatArray, timed: bool
) -> Source:
    """Return the data of signals in these intervals, sorted, of these ages.

    Rates of signals are posterior means of a Gamma distribution whose variance is that of the
    pages' counts beyond Poisson's.
    """
    _, of, intervals = np.unique(crawls.page, return_inverse=True, return_counts=True)
    own, unit = np.bincount(row, minlength=len(of)), crawls.elapsed.mean()
    elapsed = crawls.elapsed / unit
    silent = silent_days(silences, crawls.start, crawls.start + crawls.elapsed) / unit
    heard = np.maximum(elapsed - silent, 0.0)
    total, time, counts = (np.bincount(of, x).astype(np.float64) for x in (elapsed, heard, own))
    pooled = counts.sum() / time.sum()
    excess = ((counts - pooled * time) ** 2).sum() - counts.sum()
    rate = pooled / max(excess / (time**2).sum(), 1e-6 * pooled**2)
    z = np.log(np.stack([total / intervals, (counts + pooled * rate) / (time + rate)]))
    z -= z.mean(axis=1, keepdims=True)
    return Source(
        offsets=np.append(0, np.cumsum(intervals)),
        elapsed=elapsed,
        silent=silent,
        changed=crawls.changed,
        signal_offsets=np.append(0, np.cumsum(own)),
        age=age / unit,
        timed=timed,
        other_rate=(counts[of] - own + pooled * rate) / (time[of] - heard + rate),
        covariates=np.column_stack([np.ones(len(time)), *z]),
        time=time,
        signals=counts,
    )


def _angles(theta: FloatArray, sums: FloatArray, step: FloatArray) -> FloatArray:
    """Return arcsin sqrt(1 - precision), the same of recall, and sqrt(delay), (B, 3).

    ``sums`` are weighted sums of columns, (B, 24), and ``step`` is the way from theta, (B, 7).
    """
    angle, delay = (theta + step)[:, [FALSE, DELAY]].T
    signals, *parts = np.split(sums[:, SIZE:], [1, 2 + SIZE], axis=1)
    ratios, missed = (
        np.maximum(part[:, 0] + (part[:, 1:] * step).sum(axis=1), 0.0) for part in parts
    )
    false = np.sin(angle) * np.sqrt(ratios)
    true = np.sqrt(np.maximum(signals[:, 0] - false**2, 0.0))
    false = np.arctan2(false, np.copysign(true, np.cos(angle)))
    return np.column_stack([false, np.arctan2(np.sqrt(missed), true), delay])


def _intervals(
    theta: FloatArray, columns: FloatArray, inverse: FloatArray, seed: int
) -> FloatArray:
    """Return precision, recall and delay, each with the ends of its interval, (3, 3)."""
    rng, pages, total = np.random.default_rng(seed), len(columns), columns.sum(axis=0)
    weights = (rng.standard_exponential(pages) for _ in range(RESAMPLES))
    sums = np.stack([total, *(w @ columns / w.mean() for w in weights)])
    steps = (sums[:, :SIZE] - PRIOR * theta) @ inverse
    angles = _angles(theta, sums, steps)
    slopes = _angles(theta, np.tile(total, (SIZE, 1)), steps[0] + STEP) - angles[0]
    slopes = slopes.T / np.diag(STEP)
    curvature = np.maximum(((slopes @ inverse) * slopes).sum(axis=1), 1e-12)
    spread = angles[1:].var(axis=0) * pages / max(pages - len(theta), 1)
    middle = np.where(angles[0] < [FLOOR[FALSE], 0.0, FLOOR[DELAY]], 0.0, angles[0])
    reach = QUANTILE * np.sqrt(np.maximum(curvature, spread))
    shares, (root, farther) = middle[:2], (middle[2], reach[2])
    low, high = np.clip([shares + reach[:2], shares - reach[:2]], 0.0, math.pi / 2.0)
    numbers = np.cos(np.stack([shares, low, high], axis=1)) ** 2
    numbers[:, 1] = np.clip(numbers[:, 0] - np.sin(2.0 * shares) * reach[:2], 0.0, numbers[:, 1])
    seen = 1.0 / (curvature[0] * (4.0 if shares[0] > 0.0 else 2.0))
    for share, number in zip(
        numbers, (seen, total[SIZE] * numbers[0, 0] / numbers[1, 0]), strict=True
    ):
        _widen(share, number)
    delay = np.clip([root**2, root**2 - 2.0 * root * farther, (root + farther) ** 2], 0.0, LONGEST)
    return np.vstack([numbers, delay])


def _widen(share: FloatArray, number: float) -> None:
    """Widen an interval to that of as many binomial observations (Clopper and Pearson 1934).

    If n of N signals are seen to be false, n ln sin^2 x + (N - n) ln cos^2 x has the second
    derivative -4 N at its maximum, and -2 N for n = 0.
    """
    yes, no = number * share[0], number * (1.0 - share[0])
    if yes > 0.0:
        share[1] = min(share[1], 1.0 - betaincinv(no + 1.0, yes, 1.0 - TAIL))
        share[2] = max(share[2], 1.0 - (betaincinv(no, yes + 1.0, TAIL) if no > 0.0 else 0.0))
