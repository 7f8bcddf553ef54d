r"""Change rates of pages by maximum likelihood, from the results of their crawls.

A crawl after an interval a finds a change with probability 1 - exp(-a Delta). The likelihood is
largest where

    H(Delta) = sum over changed of f(a Delta) - L Delta = 0,   f(x) = x / (exp(x) - 1),

with L the sum of the unchanged intervals: Delta times eq. 10 of Kolobov et al. (2019). H is convex
and falls, and is nearly straight while intervals are short, so a step to the root of its Taylor
polynomial of fourth order leaves an error of fifth order: two steps suffice for most pages.

Every derivative of the sum is a polynomial in f and x: with x = a Delta and g = f (f + x),

    Delta   (f / Delta)     =   f            Delta^2 (f / Delta)'    =  -g
    Delta^3 (f / Delta)''   =   g (2 f + x)  Delta^4 (f / Delta)'''  =  -g (6 g + x^2)
    Delta^5 (f / Delta)'''' =   g (2 f + x) (12 g + x^2)

so that four derivatives need one exponential, which is inlined: the loop has no branch and can be
vectorised.

The start replaces all changed intervals by their mean A / X. The root is then
ln(1 + A / L) / (A / X), a lower bound since f is convex; the variance of the intervals corrects it
to first order. Where a Taylor step is unreliable, Newton's method runs on ln(sum of f) against
ln Delta, within a bracket of the root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import quantity, real
from policies.estimators.histories import Histories, page_histories

MAX_ITERATIONS = 100
SMALL = 4e-12
"""Size of a Taylor step's last term, relative to Delta, below which the rest is rounding."""

LARGEST = 700.0
"""Exponents are cut here: exp(x) is finite, and f below 1e-300 is negligible."""

FAINT = 1e-290
"""Sums of f below this only show that Delta is too large."""


@dataclass(frozen=True, eq=False)
class RateFit:
    """Estimated change rates of m pages, with standard errors.

    Attributes:
        change_rate: per unit time, (m,); nan where undetermined.
        stderr: from the second derivative of the log-likelihood at the estimate, (m,): imaginary
            intervals count as observations. It is nan on a bound, where the estimate is not
            normal, and without an estimate.
        iterations: evaluations of the score, (m,).
        converged: (m,) bool.
    """

    change_rate: FloatArray
    stderr: FloatArray
    iterations: IntArray
    converged: BoolArray


def fit_change_rates(
    intervals: ArrayLike,
    changed: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    smoothing: float = 0.0,
    low: float = 0.0,
    high: float = math.inf,
) -> RateFit:
    """Estimate the change rate of every page from its crawls at uneven intervals.

    This is the maximum of the likelihood, to a relative error below 1e-12. Without ``smoothing``
    the rate is 0 if no crawl detected a change and inf if all did, both cut to [``low``, ``high``].
    It is nan for a page without crawls. With ``smoothing`` it is positive and finite.

    Args:
        intervals: time between each crawl and the page's crawl before, 0 or in [1e-30, 1e12];
            shape (n,), grouped by page, or (m, k) for k crawls of every page.
        changed: whether the page had changed, bool (or 0 and 1), of the shape of ``intervals``.
        offsets: the crawls of page i are ``offsets[i] .. offsets[i + 1] - 1``; (m + 1,). None for
            (m, k), and for a single page.
        smoothing: length of one changed and one unchanged imaginary interval added to every page
            (Kolobov et al., Algorithm 4: half a day); 0 adds none.
        low: least rate, >= 0.
        high: greatest rate, > ``low``. The public code of Kolobov et al. searches [0.0005, 7]/day.

    Raises:
        ValueError: a number is out of its range, shapes disagree, a page had changed in no
            time, ``offsets`` do not rise from 0 to n, or the bounds are not 0 <= low < high.
    """
    crawls = page_histories(intervals, changed, offsets)
    return fit_histories(crawls, quantity("smoothing", smoothing), *bounds(low, high))


def bounds(low: float, high: float) -> tuple[float, float]:
    """Return the least and the greatest rate as floats; ValueError unless 0 <= low < high."""
    low = real("low", low, least=0.0)
    return low, math.inf if high == math.inf else real("high", high, above=low)


def fit_histories(
    crawls: Histories,
    smoothing: float = 0.0,
    low: float = 0.0,
    high: float = math.inf,
    start: FloatArray | None = None,
) -> RateFit:
    """Return :func:`fit_change_rates` of checked crawls, with first guesses ``start``, (m,)."""
    guess = np.zeros(len(crawls.begin)) if start is None else start
    return RateFit(*_fit_pages(crawls, smoothing, low, high, guess))


@compiled()
def _fit_pages(
    crawls: Histories, smoothing: float, low: float, high: float, start: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    """Return change rates, standard errors, numbers of evaluations and convergence, (m,) each."""
    m = len(crawls.begin)
    change_rate, stderr = np.empty(m), np.full(m, np.nan)
    iterations, converged = np.zeros(m, np.int64), np.ones(m, np.bool_)
    longest = 0
    for i in range(m):
        longest = max(longest, crawls.end[i] - crawls.begin[i])
    lengths = np.empty(longest + 1)
    for i in range(m):
        count, exposure = gather(
            crawls.intervals, crawls.changed, crawls.begin[i], crawls.end[i], lengths
        )
        if smoothing > 0.0:
            lengths[count] = smoothing
            count, exposure = count + 1, exposure + smoothing
        if count == 0:
            change_rate[i] = low if exposure > 0.0 else np.nan
        elif exposure == 0.0:
            change_rate[i] = high
        else:
            root, information, steps, done = _root(lengths, count, exposure, start[i])
            iterations[i], converged[i] = steps, done
            change_rate[i] = min(max(root, low), high)
            if low < root < high:
                stderr[i] = root / math.sqrt(information)
    return change_rate, stderr, iterations, converged


@inlined(fastmath={"contract", "nsz", "reassoc"})
def gather(
    intervals: FloatArray, changed: BoolArray, begin: int, end: int, lengths: FloatArray
) -> tuple[int, float]:
    """Copy the intervals with a change to ``lengths``; return their number, and the sum of others.

    ``lengths`` has space for all intervals of the page plus one. Two loops have no branches, so
    that the sum is vectorised.
    """
    first, stop = np.uint64(begin), np.uint64(end)  # unsigned indices are never negative
    total = 0.0
    for k in range(first, stop):
        total += intervals[k] * (1.0 - np.float64(changed[k]))
    count = np.uint64(0)
    for k in range(first, stop):
        lengths[count] = intervals[k]
        count += np.uint64(changed[k])
    return int(count), total


@inlined(fastmath={"contract", "nsz", "reassoc"})
def _power_sums(lengths: FloatArray, count: int) -> tuple[float, float]:
    total, squares = 0.0, 0.0
    for j in range(count):
        total += lengths[j]
        squares += lengths[j] * lengths[j]
    return total, squares


@inlined()
def _root(
    lengths: FloatArray, count: int, exposure: float, guess: float
) -> tuple[float, float, int, bool]:
    """Return the rate where H is 0, the information on ln Delta, evaluations and convergence."""
    total, squares = _power_sums(lengths, count)
    below = count / (exposure + 0.5 * total)  # f(x) >= 1 - x / 2
    above = count / exposure  # f(x) <= 1
    rate = guess
    if not below <= guess <= above:
        rate = min(max(_start(count, total, squares, exposure), below), above)
    information = 0.0
    for iteration in range(1, MAX_ITERATIONS + 1):
        f, g, second, third, fourth = score_sums(lengths, count, rate)
        value = f - exposure * rate
        if value > 0.0:
            below = rate
        else:
            above = rate
        slope = f - g - exposure * rate
        bend = (second - 2.0 * g) / (2.0 * slope)
        twist = (3.0 * second - third) / (6.0 * slope)
        curl = (fourth - 4.0 * third) / (24.0 * slope)
        step = -value / slope
        after = step * step * (2.0 * bend * bend - twist) - bend * step
        last = step * step * step * (5.0 * bend * (twist - bend * bend) - curl)
        size = 5.0 * abs(bend) * (abs(twist) + bend * bend) + abs(curl)
        relative = step * (1.0 + after + last)
        if abs(step) < 0.1 and size * step**4 <= SMALL:
            # the information at the end of the step
            information = g + relative * (2.0 * g - second)
            information += relative**2 * (g - 2.0 * second + 0.5 * third)
            information += relative**3 * (third - second - fourth / 6.0)
            return rate * (1.0 + relative), information, iteration, True
        if abs(step) < 0.5 and abs(after) + abs(last) < 0.5:
            trial = rate * (1.0 + relative)
        elif f < FAINT:  # exponents were cut: no usable slope
            trial = 0.0
        else:  # d ln f / d ln Delta = (f - g) / f
            trial = rate * math.exp(math.log(f / (exposure * rate)) * f / g)
        rate = trial if below < trial < above else math.sqrt(below) * math.sqrt(above)
    return rate, information, MAX_ITERATIONS, False


@compiled()
def _start(count: int, total: float, squares: float, exposure: float) -> float:
    """Return a first change rate: exact for equal intervals, then corrected for their variance."""
    odds = total / exposure  # exp(x) - 1
    x = math.log1p(odds)
    spread = max(squares * count / (total * total) - 1.0, 0.0)
    correction = 0.5 * spread * (2.0 * x / odds + x - 2.0) if odds > 0.01 else 0.0
    return x * count / total * (1.0 + correction)


@inlined(fastmath={"contract", "nsz"})
def exp_minus_one(x: float) -> float:
    """Return exp(x) - 1 for 0 <= x <= 700, within 4e-16 of its value."""
    power = np.int32(x * 1.4426950408889634 + 0.5)
    r = x - power * 0.6931471803691238 - power * 1.9082149292705877e-10  # ln 2 in two parts
    tail = 1.0 / 6227020800.0  # 1 / 13!
    tail = tail * r + 1.0 / 479001600.0
    tail = tail * r + 1.0 / 39916800.0
    tail = tail * r + 1.0 / 3628800.0
    tail = tail * r + 1.0 / 362880.0
    tail = tail * r + 1.0 / 40320.0
    tail = tail * r + 1.0 / 5040.0
    tail = tail * r + 1.0 / 720.0
    tail = tail * r + 1.0 / 120.0
    tail = tail * r + 1.0 / 24.0
    tail = tail * r + 1.0 / 6.0
    tail = tail * r + 0.5
    part = tail * r * r + r  # exp(r) - 1
    scale: float = np.int64((np.int64(power) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return scale * part + (scale - 1.0)


@inlined(fastmath={"contract", "nsz", "reassoc"})
def score_sums(
    lengths: FloatArray, count: int, rate: float
) -> tuple[float, float, float, float, float]:
    """Return the sums of f, g, g (2 f + x), g (6 g + x^2) and g (2 f + x) (12 g + x^2).

    Each sum is over intervals, with x = Delta times an interval, f = x / (exp(x) - 1), g = f (f +
    x).

    Args:
        lengths: changed intervals, > 0, (>= count,).
        count: number of intervals used.
        rate: Delta, > 0.
    """
    zeroth = first = second = third = fourth = 0.0
    for j in range(count):
        x = min(lengths[j] * rate, LARGEST)
        f = x / exp_minus_one(x)
        g = f * (f + x)
        bend = g * (2.0 * f + x)
        square = x * x
        zeroth += f
        first += g
        second += bend
        third += g * (6.0 * g + square)
        fourth += bend * (12.0 * g + square)
    return zeroth, first, second, third, fourth
