r"""The likelihood of the crawls of pages with the signals of one source.

An interval from s to e between two crawls of page i, with signals at times t_j, has

    P(no change) = exp(-alpha (e - s) - p_i g_i H) prod_j (1 - p_i F_j),
    F_j = exp(-(t_j - e)+ / d) - exp(-(t_j - s) / d),   H = d exp(-w / d) (1 - exp(-(e - s) / d)).

p_i is the precision, g_i the rate of signals, d the mean of exponential delays. F_j is the
probability that the change of a true signal lies in the interval. Signals count up to a time w
after e, or to the page's last crawl. H stands for later ones, and grows by the length of a silence.
The odds of a false signal are proportional to g_i to the power -c, because false signals may come
at the same rate on all pages. Signals of a batch have one precision and no delay.

The rate of changes without a signal is alpha = exp(z . k), where z is 1 and the logs of the page's
mean interval, of g_i, and of the rate of changes without a signal in the page's other intervals.
Rates of pages are means of Gamma distributions (:mod:`policies.estimators.count_priors`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.estimators.count_priors import fit_rate_prior

FALSE, BATCH, DELAY, MEAN, SLOPE = 0, 1, 2, slice(3, 7), 7
"""Positions of the parameters theta: ln(1 - p), ln(1 - p) of batches, ln d, k and c."""
SHORTEST, LONGEST, CERTAIN = 9e-4, 3.0, 1e6
"""Range of delays in mean intervals; signals count for LONGEST after an interval. The change of a
signal without a delay counts as CERTAIN mean intervals ago."""
ROUNDING = 1e-15
"""Relative difference allowed between start + elapsed and the next start."""


class Crawls(NamedTuple):
    """Intervals between successive crawls, longer than 0, sorted by page and start, (n,) each."""

    page: IntArray
    start: FloatArray
    elapsed: FloatArray
    changed: BoolArray


class Source(NamedTuple):
    """Intervals between crawls of m pages, and the signals of a source; unit: the mean interval."""

    page: IntArray  # of intervals, (n,)
    elapsed: FloatArray  # (n,)
    silent: FloatArray  # time in intervals in which the source was silent, (n,)
    changed: BoolArray  # (n,)
    window: FloatArray  # time after each interval in which its signals count, (n,)
    row: IntArray  # interval of each pair of an interval and a signal, (k,)
    since: FloatArray  # times from the start and the end of the interval to the signal, (2, k)
    batch: BoolArray  # whether the signal is one of a batch, (k,)
    signals: FloatArray  # numbers by page outside of batches, and in batches, (2, m)
    rate: FloatArray  # signals by page outside of batches, per unit of time, (m,)
    covariates: FloatArray  # z, (n, 4)


class Value(NamedTuple):
    """The log-likelihood of a source's parameters, its derivatives, and expected numbers."""

    pages: FloatArray  # log-likelihood by page, (m,)
    slope: FloatArray  # derivatives of their sum, (8,)
    true: FloatArray  # expected number of true signals by page, (m,)
    missed: FloatArray  # estimated number of changes without a signal, outside of silences, (m,)
    evidence: FloatArray  # -ln P(no change) - alpha (e - s) by interval, (n,)


def last_intervals(crawls: Crawls, page: IntArray, time: FloatArray) -> tuple[IntArray, BoolArray]:
    """Return the last interval of its page that starts before each signal; and whether it is in it.

    The interval is -1 where there is none. A signal at the time of a crawl belongs before it.
    """
    pages, times = np.concatenate([page, crawls.page]), np.concatenate([time, crawls.start])
    starts = np.arange(pages.size) >= page.size
    order = np.lexsort((starts, times, pages))  # a signal at a crawl belongs before it
    before = np.empty(pages.size, np.int64)
    before[order] = np.cumsum(starts[order]) - 1
    of_page, start, elapsed = (np.append(x, -1)[before[: page.size]] for x in crawls[:3])
    inside = time - start <= elapsed + ROUNDING * np.abs(time)
    return np.where(of_page == page, before[: page.size], -1), inside & (of_page == page)


def source_of(
    crawls: Crawls,
    silent: FloatArray,
    signals: tuple[FloatArray, IntArray, BoolArray],
    batch: BoolArray,
    prompt: BoolArray,
) -> Source:
    """Pair the signals of a source with all intervals in which their changes may lie.

    Args:
        crawls: the intervals.
        silent: time in intervals in which the source was silent, (n,).
        signals: times, the last intervals of their pages that start before, and whether signals
            lie in these.
        batch: whether signals belong to a batch.
        prompt: whether signals have no delay.
    """
    (page, start, elapsed, changed), (time, last, inside) = crawls, signals
    unit, end, row, signal = elapsed.mean(), start + elapsed, last, np.arange(time.size)
    window = np.minimum(end[np.searchsorted(page, page, side="right") - 1] - end, LONGEST * unit)
    pairs = []
    while signal.size:
        pairs.append((row, signal))
        row = row - 1
        near = (row >= 0) & (page[row] == page[last[signal]]) & ~prompt[signal]
        near &= time[signal] - end[row] <= LONGEST * unit
        row, signal = row[near], signal[near]
    row, signal = np.concatenate(pairs, axis=1)
    since = np.maximum(time[signal] - np.stack([start[row], end[row]]), 0.0)
    since[1, inside[signal] & (row == last[signal])] = 0.0
    since[0, prompt[signal]] = CERTAIN * unit
    valid = (since[1] <= window[row]) & (inside | ~prompt)[signal]
    page, intervals = np.unique(page, return_inverse=True, return_counts=True)[1:]
    exposure, days = (np.bincount(page, x) / unit for x in (elapsed - silent, elapsed))
    kinds = (page[last[inside & kind]] for kind in (~batch, batch))
    number = np.array([np.bincount(x, minlength=days.size) for x in kinds], np.float64)
    rate = fit_rate_prior(number[0], exposure).estimate(number[0], exposure)
    quiet = np.bincount(last[inside], minlength=page.size) == 0
    per_row = np.stack([quiet & changed, quiet * elapsed / unit])
    count, quiet_days = np.array([np.bincount(page, x) for x in per_row])
    other_rate = fit_rate_prior(count, quiet_days + 1e-9).estimate(
        count[page] - per_row[0], quiet_days[page] - per_row[1]
    )
    z = np.log([(days / intervals)[page], rate[page], other_rate])
    return Source(
        *(page, elapsed / unit, silent / unit, changed, window / unit),
        *(row[valid], since[:, valid] / unit, batch[signal][valid], number, rate),
        np.column_stack([np.ones(page.size), *(z - z.mean(axis=1, keepdims=True))]),
    )


def false_shares(source: Source, theta: FloatArray) -> FloatArray:
    """Return shares of false signals of pages, and their derivatives by FALSE and SLOPE, (3, m)."""
    share, z = math.exp(theta[FALSE]), np.log(source.rate / np.exp(np.log(source.rate).mean()))
    odds = np.exp(np.clip(theta[SLOPE] * z, -50.0, 50.0))
    ratio = share / (share + (1.0 - share) * odds)
    slope = odds * ratio**2 / share
    return np.stack([ratio, slope, (share - 1.0) * z * slope])


def evaluate(source: Source, theta: FloatArray) -> Value:
    """Return the log-likelihood of the parameters ``theta``, with derivatives, by page."""
    page, row, delay, batch = (
        source.page,
        source.row,
        math.exp(theta[DELAY]),
        math.exp(theta[BATCH]),
    )
    false, *by_theta = false_shares(source, theta)
    share = np.where(source.batch, batch, false[page[row]])
    older, newer = source.since / delay
    late, soon = np.exp([-older, -newer])
    inside = soon - late
    fresh = np.maximum(1.0 - inside + share * inside, 1e-300)
    near, far = np.stack([source.window, source.window + source.elapsed]) / delay
    open_, shut = np.exp([-near, -far])
    hidden = source.rate[page] * (delay * (open_ - shut) + source.silent)
    true = (1.0 - false)[page]
    unsignalled = np.exp(np.minimum(source.covariates @ theta[MEAN], 20.0)) * source.elapsed
    evidence = true * hidden - np.bincount(row, np.log(fresh), len(page))
    total = np.maximum(unsignalled + evidence, 1e-300)
    chance = -np.expm1(-total)

    by_total = np.where(source.changed, 1.0 / chance - 1.0, -1.0)
    by_pair, pages = by_total[row] / fresh, len(false)
    by_share = np.bincount(page, by_total * hidden, pages)
    by_share += np.bincount(page[row], by_pair * inside * ~source.batch, pages)
    grown = delay * (open_ - shut + near * open_ - far * shut)
    slope = np.empty(len(theta))
    slope[[FALSE, SLOPE]] = -np.array(by_theta) @ by_share
    slope[BATCH] = -batch * (by_pair * inside)[source.batch].sum()
    slope[DELAY] = by_total @ (true * source.rate[page] * grown)
    slope[DELAY] += by_pair @ ((1.0 - share) * (newer * soon - older * late))
    slope[MEAN] = (by_total * unsignalled) @ source.covariates
    exposed = source.changed * np.maximum(1.0 - source.silent / source.elapsed, 0.0)
    by_row = np.where(source.changed, np.log(chance), -total), exposed * unsignalled / chance
    likelihood, missed = (np.bincount(page, x, pages).astype(np.float64) for x in by_row)
    number = (1.0 - false) * source.signals[0] + (1.0 - batch) * source.signals[1]
    return Value(likelihood, slope, number, missed, evidence)
