r"""Maximum likelihood change rates, page by page.

A crawl after an interval a finds a change with probability 1 - exp(-a Delta). The likelihood is
largest where

    H(Delta) = sum over changed of f(a Delta) + k - (L + r) Delta = 0,   f(x) = x / (exp(x) - 1),

with L the sum of the unchanged intervals: Delta times eq. 10 of Kolobov et al. (2019), and a Gamma
prior of shape k and rate r where there is one. H is convex and falls, and is nearly straight while
intervals are short, so a step to the root of its Taylor polynomial of fourth order (see
:mod:`.score`) leaves an error of fifth order: two steps suffice for most pages.

The start replaces all changed intervals by their mean A / X. The root is then
ln(1 + A / L) / (A / X), a lower bound since f is convex; the variance of the intervals corrects it
to first order. Where a Taylor step is unreliable, Newton's method runs on ln(sum + k) against
ln Delta, within a bracket of the root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from policies.estimators.change_rates.page_histories import (
    Histories,
    bounds,
    imaginary,
    page_histories,
)
from policies.estimators.change_rates.score import score_sums
from policies.estimators.histories import NO_PRIOR, GammaPrior

MAX_ITERATIONS = 100
SMALL = 4e-12
"""Last term of a Taylor step, relative to Delta, below which the remainder is rounding."""

FAINT = 1e-290
"""Sums of f below this only show that Delta is too large."""


@dataclass(frozen=True, eq=False)
class RateFit:
    """Change rates of m pages.

    Attributes:
        change_rate: per unit time, (m,); nan where undetermined.
        stderr: from the second derivative of the log-likelihood at the estimate, (m,): imaginary
            intervals and the prior count as observations. It is nan on a bound, where the estimate
            is not normal, and without an estimate.
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
    prior: GammaPrior | None = None,
    start: ArrayLike | None = None,
) -> RateFit:
    """Fit the change rate of every page to its crawls at uneven intervals.

    Without ``smoothing`` and ``prior`` the rate is 0 if no crawl detected a change and inf if all
    did, both cut to [``low``, ``high``], and nan for a page without crawls. Otherwise it is
    positive and finite. The relative error is below 1e-12.

    Args:
        intervals: time between each crawl and the page's crawl before, 0 or in [1e-100, 1e100], in
            any unit; shape (n,), grouped by page, or (m, k) for k crawls of every page.
        changed: whether the page had changed, bool (or 0 and 1), of the shape of ``intervals``.
        offsets: the crawls of page i are ``offsets[i] .. offsets[i + 1] - 1``; (m + 1,). None for
            (m, k), and for a single page.
        smoothing: length of one changed and one unchanged imaginary interval added to every page
            (Kolobov et al., Algorithm 4: half a day); 0 adds none.
        low: least rate, >= 0.
        high: greatest rate, > ``low``. The public code of Kolobov et al. searches [0.0005, 7]/day.
        prior: Gamma prior; the estimate is then the mode in ln Delta.
        start: first guess of each rate, (m,); entries that are not positive and finite are
            replaced.

    Raises:
        ValueError: a number is out of its range, shapes disagree, a page had changed in no
            time, ``offsets`` do not rise from 0 to n, or the bounds are not 0 <= low < high.
    """
    crawls = page_histories(intervals, changed, offsets)
    return fit_histories(crawls, smoothing=smoothing, low=low, high=high, prior=prior, start=start)


def fit_histories(
    crawls: Histories,
    *,
    smoothing: float = 0.0,
    low: float = 0.0,
    high: float = math.inf,
    prior: GammaPrior | None = None,
    start: ArrayLike | None = None,
) -> RateFit:
    """Fit grouped crawls; all else as in :func:`fit_change_rates`."""
    m = len(crawls.offsets) - 1
    low, high = bounds(low, high)
    smoothing = imaginary(smoothing)
    guess = np.zeros(m) if start is None else np.ascontiguousarray(start, dtype=np.float64)
    if guess.shape != (m,):
        raise ValueError(f"start must have shape ({m},), got {guess.shape}")
    shape, rate = (NO_PRIOR if prior is None else prior).broadcast_to(m, 1)
    return RateFit(*_fit_pages(crawls, smoothing, low, high, shape[:, 0], rate[:, 0], guess))


@compiled()
def _fit_pages(
    crawls: Histories,
    smoothing: float,
    low: float,
    high: float,
    shape: FloatArray,
    rate: FloatArray,
    start: FloatArray,
) -> tuple[FloatArray, FloatArray, IntArray, BoolArray]:
    """Return rates, standard errors, evaluations and convergence of every page."""
    m = len(shape)
    change_rate, stderr = np.empty(m), np.full(m, np.nan)
    iterations, converged = np.zeros(m, np.int64), np.ones(m, np.bool_)
    longest = 0
    for i in range(m):
        longest = max(longest, crawls.offsets[i + 1] - crawls.offsets[i])
    lengths = np.empty(longest + 1)
    for i in range(m):
        count, exposure = gather(
            crawls.intervals, crawls.changed, crawls.offsets[i], crawls.offsets[i + 1], lengths
        )
        if smoothing > 0.0:
            lengths[count] = smoothing
            count, exposure = count + 1, exposure + smoothing
        exposure += rate[i]
        if count == 0 and shape[i] == 0.0:
            change_rate[i] = low if exposure > 0.0 else np.nan
        elif exposure == 0.0:
            change_rate[i] = high
        else:
            root, information, steps, done = _root(lengths, count, exposure, shape[i], start[i])
            iterations[i], converged[i] = steps, done
            change_rate[i] = min(max(root, low), high)
            if low < root < high:
                stderr[i] = root / math.sqrt(information)
    return change_rate, stderr, iterations, converged


@compiled(fastmath={"contract", "nsz", "reassoc"})
def gather(
    intervals: FloatArray, changed: BoolArray, begin: int, end: int, lengths: FloatArray
) -> tuple[int, float]:
    """Copy the changed intervals to ``lengths``; return their number and the sum of the others.

    ``lengths`` has space for all of them plus one. Two loops without branches, so that the sum is
    vectorised.
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


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _power_sums(lengths: FloatArray, count: int) -> tuple[float, float]:
    total, squares = 0.0, 0.0
    for j in range(count):
        total += lengths[j]
        squares += lengths[j] * lengths[j]
    return total, squares


@compiled()
def _root(
    lengths: FloatArray, count: int, exposure: float, shape: float, guess: float
) -> tuple[float, float, int, bool]:
    """Return the root of H, the information on ln Delta, evaluations, and convergence."""
    total, squares = _power_sums(lengths, count)
    below = (count + shape) / (exposure + 0.5 * total)  # f(x) >= 1 - x / 2
    above = (count + shape) / exposure  # f(x) <= 1
    rate = guess
    if not below <= guess <= above:
        rate = _start(count, total, squares, exposure) if shape == 0.0 else below
        rate = min(max(rate, below), above)
    information = 0.0
    for iteration in range(1, MAX_ITERATIONS + 1):
        f, g, second, third, fourth = score_sums(lengths, count, rate)
        value = f + shape - exposure * rate
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
            information = g + shape + relative * (2.0 * g - second)
            information += relative**2 * (g - 2.0 * second + 0.5 * third)
            information += relative**3 * (third - second - fourth / 6.0)
            return rate * (1.0 + relative), information, iteration, True
        if abs(step) < 0.5 and abs(after) + abs(last) < 0.5:
            trial = rate * (1.0 + relative)
        elif f + shape < FAINT:  # exponents were cut: no usable slope
            trial = 0.0
        else:  # d ln(f + k) / d ln Delta = (f - g) / (f + k)
            trial = rate * math.exp(
                math.log((f + shape) / (exposure * rate)) / (1.0 - (f - g) / (f + shape))
            )
        rate = trial if below < trial < above else math.sqrt(below) * math.sqrt(above)
    return rate, information, MAX_ITERATIONS, False


@compiled()
def _start(count: int, total: float, squares: float, exposure: float) -> float:
    """Return the root for equal intervals, corrected for their variance."""
    odds = total / exposure  # exp(x) - 1
    x = math.log1p(odds)
    spread = max(squares * count / (total * total) - 1.0, 0.0)
    correction = 0.5 * spread * (2.0 * x / odds + x - 2.0) if odds > 0.01 else 0.0
    return x * count / total * (1.0 + correction)
