r"""Least-squares fit of a curve of the generative model to observed divergences.

Olston and Pandey (2008), section 4.2: one churn curve and one scroll curve are fitted, and the
closer one is chosen. Both belong to pages of one changing region and static fragments
(:mod:`policies.values.divergence.one_region`). Churn has K = 1 item, so D = A (1 - exp(-l t)) with
A = 2 s / (1 + s), and scroll the K >= 2 among ``ITEMS`` that fits best.

First, a coarse search over rates for all K, on a grid of factors sqrt 2. Shapes D(l t) / D(inf) are
tabulated over log2(l t / K) with the spacing of the grid, and the best scale follows from two sums.
From the best grid point, the Levenberg-Marquardt method refines share and log rate with the exact
curve; for scroll, also with the next smaller and larger K as long as they are closer.

If all observations are later than the turnover of the page, they do not identify its rate, and a
page that seems to change too fast would never be refreshed again. So the chosen curve is fitted
again with a bound on the rate: at the first observation, at most the share 1 - exp(-2) of the
region may have been replaced, for every K (:func:`equally_saturated`). The bound comes after the
choice, because it would favour wrong K.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray, IntArray
from policies.values.divergence.one_region import (
    divergence_and_slopes,
    region_divergence,
    step_sizes,
)

ITEMS = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40)
"""Candidates for K, the number of items of the region; 1 is churn."""
STARTS = 2
"""Number of exact fits of scroll, from the best K of the coarse search."""
STEPS = 20
"""Maximum number of steps of an exact fit."""
TIE = 1e-12
"""A sum of squares of scroll up to this counts as 0."""
MIN_GAIN, MIN_GAIN_SHARE = 1e-6, 1e-3
"""Scroll is chosen if its sum of squares is smaller by more than both: absolute, and a share."""

GAIN_TOLERANCE, NOTHING = 1e-8, 1e-20
"""An exact fit ends when a step gains less than this share of the sum of squares, or when the sum
is 0 up to rounding."""

SHARES = (0.1, 0.4, 1.0)
LOWEST, HIGHEST, PER_OCTAVE = -9, 4, 2
MIN_UPDATES, MAX_UPDATES = 2.0**-6, 2.0
"""Ends of the grid of rates: l t / K of the last observation at the lower end, and of the first
observation at the upper end, which also bounds the rate of churn."""
TURNED_OVER = 16.0
"""Without a bound, l t / K of the first observation stays below this."""
WIDENED = math.log(2.0**14)
"""Distance of the lower bound of the exact fit below the grid, in log rate."""


class Shapes(NamedTuple):
    """Tables of divergence curves by number of items K, for the coarse search of fits.

    Attributes:
        items: K, (nK,).
        table: D / D(inf) by share, K and log2 l t.
        bounds: bounds on l t of the first observation, (nK,).
    """

    items: IntArray
    table: FloatArray
    bounds: FloatArray


@cache
def shapes() -> Shapes:
    """Return the tables of divergence curves for fits; they are computed once."""
    items = np.array(ITEMS, np.int64)
    levels = 2.0 ** (np.arange(PER_OCTAVE * (HIGHEST - LOWEST) + 1) / PER_OCTAVE + LOWEST)
    table = np.empty((len(SHARES), items.size, levels.size))
    for row, share in enumerate(SHARES):
        for column, count in enumerate(ITEMS):
            ceiling = 2.0 * share / (1.0 + share)
            values = [region_divergence(count, share, level * count) for level in levels]
            table[row, column] = np.array(values) / ceiling
    bounds = np.array([equally_saturated(count) for count in ITEMS])
    return Shapes(items, table, bounds)


def equally_saturated(items: int) -> float:
    """Return the y at which the mean share of K items replaced is 1 - exp(-MAX_UPDATES).

    The share is E[min(N, K)] / K with N ~ Poisson(y). It is also the divergence of a small region
    as a share of its limit. With K = 1, y = MAX_UPDATES.
    """
    from scipy.optimize import brentq  # slow to import, and few policies need them
    from scipy.stats import poisson

    def remaining(y: float) -> float:
        return float(poisson.cdf(items - 1, y) - y / items * poisson.cdf(items - 2, y))

    highest = 2.0 * MAX_UPDATES * items
    return float(brentq(lambda y: remaining(y) - math.exp(-MAX_UPDATES), 0.0, highest, xtol=1e-15))


@inlined()
def fit_observations(
    ages: FloatArray, divergence: FloatArray, shapes: Shapes
) -> tuple[int, float, float, float]:
    """Return K, share, update rate and sum of squares of the curve closest to observations.

    It is churn (K = 1) if churn and scroll are about equally close. Share and rate are 0, as for a
    static page, without divergence or observations.

    Args:
        ages: > 0, finite, (n,).
        divergence: in [0, 1], (n,).
        shapes: :func:`shapes`.
    """
    largest = 0.0
    for k in range(ages.size):
        largest = max(largest, divergence[k])
    if largest == 0.0:
        return 1, 0.0, 0.0, 0.0
    coarse, rates, shares = _search(ages, divergence, largest, shapes)
    churn = _refined(ages, divergence, 1, shares[0], rates[0], TURNED_OVER)
    items, scroll = 1, (0.0, 0.0, np.inf)
    for _ in range(STARTS):
        row = int(1 + np.argmin(coarse[1:]))
        if coarse[row] == np.inf or scroll[2] <= TIE:
            break
        start = shares[row], rates[row], coarse
        best_items, closest = _climbed(ages, divergence, shapes.items, row, start)
        if closest[2] < scroll[2]:
            items, scroll = best_items, closest
    if scroll[2] < min((1.0 - MIN_GAIN_SHARE) * churn[2], churn[2] - MIN_GAIN):
        best = scroll
    else:
        items, best = 1, churn
    bound = shapes.bounds[np.searchsorted(shapes.items, items)]
    if best[1] * ages.min() > bound:
        best = _refined(ages, divergence, items, best[0], best[1], bound)
    return items, best[0], best[1], best[2]


@inlined()
def _climbed(
    ages: FloatArray,
    divergence: FloatArray,
    ladder: IntArray,
    row: int,
    start: tuple[float, float, FloatArray],
) -> tuple[int, tuple[float, float, float]]:
    """Return K and its fit (share, rate, sum of squares) at a local minimum over K.

    Rows of tried K are set to infinity in the last entry of ``start``.
    """
    share, rate, open_rows = start
    items = ladder[row]
    scroll = _refined(ages, divergence, items, share, rate, TURNED_OVER * items)
    open_rows[row] = np.inf
    for side in (-1, 1):
        while 1 <= row + side < ladder.size and scroll[2] > TIE:
            neighbour = ladder[row + side]
            open_rows[row + side] = np.inf
            pace = scroll[1] * neighbour / items
            bound = TURNED_OVER * neighbour
            next_fit = _refined(ages, divergence, neighbour, scroll[0], pace, bound)
            if not next_fit[2] < scroll[2]:
                break
            row, items, scroll = row + side, neighbour, next_fit
    return items, scroll


@compiled()
def _search(
    ages: FloatArray, divergence: FloatArray, largest: float, shapes: Shapes
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return by K the least sum of squares on the grid, and its rate and share, (nK,) each."""
    first, last, energy = np.inf, 0.0, 0.0
    for k in range(ages.size):
        first, last = min(first, ages[k]), max(last, ages[k])
        energy += divergence[k] * divergence[k]
    kind = 0 if largest < 0.35 else (1 if largest < 0.8 else 2)
    foot = MIN_UPDATES / last  # l / K
    rungs = 1 + math.ceil(PER_OCTAVE * math.log2(MAX_UPDATES / first / foot))
    place, part = np.empty(ages.size, np.int64), np.empty(ages.size)
    for k in range(ages.size):
        position = PER_OCTAVE * (math.log2(foot * ages[k]) - LOWEST)
        place[k] = math.floor(position)
        part[k] = position - place[k]
    top = shapes.table.shape[2] - 1
    best = np.full(shapes.items.size, np.inf)
    rates, shares = np.empty(best.size), np.empty(best.size)
    for row in range(best.size):
        shape = shapes.table[kind, row]
        for rung in range(rungs):
            cross = square = 0.0
            for k in range(ages.size):
                entry = place[k] + rung
                if entry < 0:
                    value = shape[0] * 2.0 ** ((entry + part[k]) / PER_OCTAVE)
                elif entry >= top:
                    value = 1.0
                else:
                    value = shape[entry] + part[k] * (shape[entry + 1] - shape[entry])
                cross += value * divergence[k]
                square += value * value
            ceiling = min(cross / square, 1.0)
            residual = energy - ceiling * (2.0 * cross - ceiling * square)
            if residual < best[row]:
                best[row] = residual
                rates[row] = foot * 2.0 ** (rung / PER_OCTAVE) * shapes.items[row]
                shares[row] = ceiling / (2.0 - ceiling)
    return best, rates, shares


@compiled()
def _sums(
    ages: FloatArray, divergence: FloatArray, items: int, share: float, rate: float
) -> tuple[float, float, float, float, float, float]:
    """Return a curve's sum of squares, its gradient and Gauss-Newton matrix, (share, log rate)."""
    total = to_share = to_rate = both = by_share = by_rate = 0.0
    steps, sides = np.empty(items), np.empty(items)
    step_sizes(items, share, steps, sides)
    for k in range(ages.size):
        updates = rate * ages[k]
        value, slope, side = divergence_and_slopes(steps, sides, updates)
        error = divergence[k] - value
        slope *= updates
        total += error * error
        to_share += side * error
        to_rate += slope * error
        by_share += side * side
        by_rate += slope * slope
        both += side * slope
    return total, to_share, to_rate, by_share, by_rate, both


@inlined()
def _refined(
    ages: FloatArray,
    divergence: FloatArray,
    items: int,
    share: float,
    rate: float,
    bound: float,
) -> tuple[float, float, float]:
    """Return share, rate and sum of squares at the minimum next to a start, within bounds.

    At most ``bound`` updates are expected by the age of the first observation.
    """
    low = math.log(MIN_UPDATES * items / ages.max()) - WIDENED
    high = math.log(bound / ages.min())
    log_rate = min(math.log(rate), high)
    damping = 1e-3
    sums = _sums(ages, divergence, items, share, math.exp(log_rate))
    for _ in range(STEPS):
        total, to_share, to_rate, by_share, by_rate, both = sums
        a, b = by_share * (1.0 + damping), by_rate * (1.0 + damping)
        fixed = (share >= 1.0 and to_share > 0.0) or (share <= 0.0 and to_share < 0.0)
        blocked = (log_rate >= high and to_rate > 0.0) or (log_rate <= low and to_rate < 0.0)
        determinant = a * b - both * both
        if fixed or blocked or determinant <= 0.0:
            step_share = 0.0 if fixed or a <= 0.0 else to_share / a
            step_rate = 0.0 if blocked or b <= 0.0 else to_rate / b
        else:
            step_share = (b * to_share - both * to_rate) / determinant
            step_rate = (a * to_rate - both * to_share) / determinant
        step_rate = min(max(step_rate, -1.0), 1.0)
        new_share = min(max(share + step_share, 0.0), 1.0)
        new_log = min(max(log_rate + step_rate, low), high)
        hoped = to_share * (new_share - share) + to_rate * (new_log - log_rate)
        if hoped <= GAIN_TOLERANCE * total:
            break
        trial = _sums(ages, divergence, items, new_share, math.exp(new_log))
        if trial[0] < total:
            gain = total - trial[0]
            share, log_rate, sums = new_share, new_log, trial
            damping = max(0.1 * damping, 1e-12)
            if gain <= GAIN_TOLERANCE * total or trial[0] < NOTHING:
                break
        else:
            damping *= 10.0
            if damping > 1e8:
                break
    return share, math.exp(log_rate), sums[0]
