"""Optimal random crawling for any concave penalty of missed changes.

Changes and crawls are Poisson, or crawls follow a random share of the signals. The number of missed
changes is then geometric: ``P(N >= n) = q^n`` with ``q = x/(1 + x)`` and ``x = E[N]`` (Kolobov et
al. 2019, propositions 1 and 4). With a penalty C(n) of increments ``c_n``, the mean penalty is the
series ``G(q) = sum c_n q^n``. Its coefficients are >= 0, so that G and its slope
``G' = sum n c_n q^(n - 1)`` rise with q: this is all that one multiplier for all pages needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import floats, page_arrays, quantity
from policies.solvers.allocation import Allocation
from policies.solvers.crawl_cost import in_crawls
from policies.solvers.page_totals import page_mask, page_totals, spend

Penalty: TypeAlias = ArrayLike | Callable[[FloatArray], ArrayLike]

PER_UNIT = 64
"""Points of a curve per unit of ln x; its splines are exact to about 1e-10."""
MIN_LOG = -24.0
"""Least ln x of a curve; below it the logarithm of the curve is linear to 1e-10."""
TABLE_END, FUNCTION_END = 35.0, 15.0
"""Largest ln x of curves; rounding in the sums of a function grows with x."""
EXACT, NODES, PANELS = 64, 16, 22
"""A function is summed over each n up to EXACT, then by NODES points in each of PANELS octaves."""
STEPS = 3
"""Steps of Newton's method within a piece of a spline, which is nearly straight."""
MAX_MISSED = 1e18
"""Missed changes of a page that is never crawled."""
ROUNDING = 1e-12
"""Relative rounding of C: its increments may rise, or fall below 0, by as much."""


class Curve(NamedTuple):
    """A quantity that rises with x, kept as a spline of its logarithms, (k,), over ln x, (k,)."""

    logs: FloatArray
    values: FloatArray
    spline: Any

    def evaluate(self, changes: FloatArray) -> FloatArray:
        """Return the quantity at x, 0 < x < inf; its logarithm is linear beyond the ends."""
        log = np.log(changes)
        near = np.clip(log, self.logs[0], self.logs[-1])
        result: FloatArray = np.exp(self.spline(near) + self.spline(near, 1) * (log - near))
        return result

    def inverse(self, quantity: FloatArray) -> FloatArray:
        """Return the x at which the quantity reaches given values > 0; inf where it does not."""
        value = np.log(quantity)
        cell = np.clip(np.searchsorted(self.values, value) - 1, 0, len(self.logs) - 2)
        low, high = self.logs[cell], self.logs[cell + 1]
        log = np.interp(value, self.values, self.logs)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for _ in range(STEPS):
                steep = self.spline(log, 1)
                step = np.where(steep > 0.0, (value - self.spline(log)) / steep, 0.0)
                log = np.clip(log + step, low, high)
            past = value - np.clip(value, self.values[0], self.values[-1])
            steep = np.maximum(self.spline(log, 1), 0.0)
            result: FloatArray = np.exp(log + np.where(past == 0.0, 0.0, past / steep))
        return result


class PenaltyCurves(NamedTuple):
    """Mean penalty G and its slopes as functions of x, the expected number of missed changes.

    Attributes:
        cost: G, which is the harmonic or binary cost of a page over its importance.
        saving: ``q^2 G'``: the saving of one more crawl per change, with crawls at random times.
        slope: ``G'``: the saving of one more crawl per change, with crawls on signals.
        first: C(1), the least slope.
        limit: the limit of saving and slope for a table; inf for a function.
        never: the penalty of a page that is never crawled.
    """

    cost: Curve
    saving: Curve
    slope: Curve
    first: float
    limit: float
    never: float

    def at_random(self, needed: FloatArray) -> FloatArray:
        """Return Delta/rho at which one more crawl at random times saves ``needed``, (k,)."""
        return np.where(needed < self.limit, self.saving.inverse(needed), math.inf)

    def on_signals(self, needed: FloatArray) -> FloatArray:
        """Return Delta/rho >= 1 at which one more crawl on signals saves ``needed``, (k,)."""
        more = np.where(needed < self.limit, self.slope.inverse(needed), math.inf)
        return np.where(needed <= self.first, 1.0, 1.0 + more)

    def costs(self, missed: FloatArray) -> FloatArray:
        """Return the mean penalty of pages, given their expected missed changes x >= 0."""
        some = np.clip(missed, 1e-100, MAX_MISSED)
        near = np.where(missed > 0.0, self.cost.evaluate(some), 0.0)
        return np.where(missed < math.inf, near, self.never)


def concave_penalty(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    penalty: Penalty,
    complete: ArrayLike | None = None,
    cost: ArrayLike | None = None,
) -> Allocation:
    r"""Return crawl rates and probabilities that minimise a concave penalty of missed changes.

    Minimises J of eq. 1 of Kolobov et al. 2019 over their class of policies (crawls at random
    times, and on a random share of the signals of pages with complete observation), for the
    penalties that their section 3 allows. With the mean penalty ``G(q)`` and ``q = x/(1 + x)`` as
    above, all pages share one multiplier lambda:

    - incomplete observation: ``rho = Delta/x`` with ``q^2 G'(q) = c lambda Delta/mu``,
    - complete observation: ``p = 1/(1 + x)`` with ``G'(q) = c lambda Delta/mu``; p = 1 where the
      slope ``G'(0) = C(1)`` is above ``c lambda Delta/mu``.

    Both left sides rise with x. The same splines invert them for all pages; rates are exact to
    about 1e-9. For ``C(n) = H(n)`` this is :func:`policies.solvers.harmonic`, for
    ``C(n) = 1`` from n = 1 on :func:`policies.solvers.binary_poisson`, which are faster.

    If ``sum n c_n`` of the increments is finite, as for every table, pages with
    ``c lambda Delta/mu`` above it are never crawled. With a function, rates of pages that miss more
    than 3 million changes per crawl are extrapolated.

    Args:
        importance: weights >= 0 of the pages, shape (m,), not all zero; or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        bandwidth: cost of all crawls per unit time, > 0.
        penalty: a table C(0), C(1), ..., C(K) of at least two numbers, after which it stays at
            C(K); or a smooth function of arrays of real numbers n >= 0, such as ``np.log1p``. It
            rises from 0 to C(1) and is concave.
        complete: which pages have complete observation, (m,) bool, or a scalar; None for no page.
        cost: c, the cost of a crawl of each page, also of one on a signal, > 0, shape (m,), or a
            scalar; None for 1.

    Returns:
        As :func:`policies.solvers.harmonic`; the objective is J, a sum over pages.

    Raises:
        ValueError: an argument is negative or not finite, a cost is 0, all importance is zero,
            ``penalty`` is no such table or function, ``complete`` is not boolean, shapes disagree.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    pages = page_totals(importance, change_rate, complete, cost)
    curves = penalty_curves(penalty)

    def crawls(
        weight: FloatArray, change: FloatArray, mask: BoolArray, price: float, out: FloatArray
    ) -> tuple[float, float]:
        rates = _rates(curves, weight, change, mask, price)
        if out.size > 0:
            out[:] = rates
        return float(rates.sum()), math.nan

    rates = np.empty(len(pages.importance))
    multiplier, iterations, converged = spend(pages, bandwidth, crawls, rates)
    weight, change, mask = pages[:3]
    answered = np.divide(rates, change, out=np.zeros(len(rates)), where=mask & (rates > 0.0))
    solution = Allocation(
        rates=rates,
        probabilities=None if complete is None else answered,
        multiplier=multiplier,
        objective=_cost(curves, weight, change, rates, mask),
        iterations=iterations,
        converged=converged,
    )
    return in_crawls(solution, pages.cost)


def concave_penalty_cost(
    importance: ArrayLike,
    change_rate: ArrayLike,
    rates: ArrayLike,
    penalty: Penalty,
    complete: ArrayLike | None = None,
) -> float:
    """Return J of eq. 1 of Kolobov et al., a sum over pages, for a concave penalty.

    Args:
        importance: weights >= 0 of the pages, shape (m,), or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        rates: crawls per unit time, >= 0, shape (m,), or a scalar; with complete observation, on
            the share rates/change_rate, at most 1, of the signals.
        penalty: as for :func:`concave_penalty`.
        complete: which pages have complete observation, (m,) bool; None for no page.

    Returns:
        The cost, >= 0. The penalty of a page that is never crawled is the last of a table, or that
        of 10^18 changes.

    Raises:
        ValueError: as for :func:`concave_penalty`.
    """
    weight, change, crawls = page_arrays(
        importance=importance, change_rate=change_rate, rates=rates
    )
    mask = page_mask(complete, len(weight))
    return _cost(penalty_curves(penalty), weight, change, crawls, mask)


def _rates(
    curves: PenaltyCurves,
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    price: float,
) -> FloatArray:
    """Return the optimal crawl rates of pages at the multiplier lambda = 1 / ``price``, (m,)."""
    rates = np.zeros(len(importance))
    changing = (importance > 0.0) & (change_rate > 0.0)
    kinds = (changing & ~complete, curves.at_random), (changing & complete, curves.on_signals)
    for pages, changes_per_crawl in kinds:
        needed = change_rate[pages] / (price * importance[pages])
        rates[pages] = change_rate[pages] / changes_per_crawl(needed)
    return rates


def _cost(
    curves: PenaltyCurves,
    importance: FloatArray,
    change_rate: FloatArray,
    rates: FloatArray,
    complete: BoolArray,
) -> float:
    """Return J, the mean penalty by importance, at crawl rates; without changes it is 0."""
    changing = change_rate > 0.0
    with np.errstate(divide="ignore"):
        missed = change_rate[changing] / rates[changing] - complete[changing]
    return float(importance[changing] @ curves.costs(missed))


def penalty_curves(penalty: Penalty) -> PenaltyCurves:
    """Return the mean penalty and its slopes, as curves, for a table or function C(n).

    Args:
        penalty: a table C(0), C(1), ..., C(K) of at least two numbers, after which it stays at
            C(K); or a smooth function of arrays of real numbers n >= 0. It rises from 0 to C(1)
            and is concave.

    Raises:
        ValueError: not such a table or function.
    """
    from scipy.interpolate import CubicSpline

    end = FUNCTION_END if callable(penalty) else TABLE_END
    logs = np.linspace(MIN_LOG, end, round((end - MIN_LOG) * PER_UNIT) + 1)
    if callable(penalty):
        number, weight = _nodes()
        ends = np.concatenate([[0.0], number, [MAX_MISSED]])
        values = _checked(ends, floats("penalty", penalty(ends)))
        limit = math.inf
        sums = [_function_sums(number, weight * values[1:-1], log) for log in logs]
    else:
        table = floats("penalty", penalty)
        values = _checked(np.arange(float(table.size)), table)
        number, increments = np.arange(1.0, len(values)), np.diff(values)
        limit = float(number @ increments)
        sums = [_table_sums(number, increments, log) for log in logs]
    cost, slope = np.maximum.accumulate(np.log(np.array(sums)), axis=0).T
    saving = np.maximum.accumulate(slope - 2.0 * np.log1p(np.exp(-logs)))
    curves = [Curve(logs, one, CubicSpline(logs, one)) for one in (cost, saving, slope)]
    first, never = float(values[1]), float(values[-1])
    return PenaltyCurves(curves[0], curves[1], curves[2], first, limit, never)


def _checked(number: FloatArray, values: FloatArray) -> FloatArray:
    """Return ``values`` of C at numbers 0, 1, ...; ValueError unless C rises and is concave."""
    if values.shape != number.shape or values.size < 2 or not np.isfinite(values).all():
        raise ValueError(
            "penalty must be a table of at least two finite numbers, or a function that returns "
            f"one for each number, got {values!r}"
        )
    steps = np.diff(values) / np.diff(number)
    rounding = ROUNDING * (steps[0] + values[1:] / np.diff(number))
    if values[0] != 0.0 or steps[0] <= 0.0:
        raise ValueError(f"penalty must rise from C(0) = 0, got {values!r}")
    if np.any(steps < -rounding) or np.any(np.diff(steps) > rounding[1:]):
        raise ValueError(f"penalty must be concave and not fall, got {values!r}")
    return values


def _nodes() -> tuple[FloatArray, FloatArray]:
    """Return numbers and weights for sums of smooth functions over all integers n >= 1.

    Gauss quadrature for sums over the a integers of a panel (a, 2a], by the recurrence of Gram's
    polynomials (DLMF 18.22, Hahn polynomials with alpha = beta = 0).
    """
    from scipy.linalg import eigh_tridiagonal

    order = np.arange(1.0, NODES)
    numbers, weights = [np.arange(1.0, EXACT + 1.0)], [np.ones(EXACT)]
    for panel in range(PANELS):
        count = EXACT * 2.0**panel
        off_diagonal = 0.5 * order * np.sqrt((count**2 - order**2) / (4.0 * order**2 - 1.0))
        places, vectors = eigh_tridiagonal(np.zeros(NODES), off_diagonal)
        numbers.append(1.5 * count + 0.5 + places)
        weights.append(count * vectors[0] ** 2)
    return np.concatenate(numbers), np.concatenate(weights)


def _table_sums(number: FloatArray, increments: FloatArray, log: float) -> tuple[float, float]:
    """Return the mean penalty G and its slope G' at ln x = ``log``, for a table's increments."""
    power = np.exp((number - 1.0) * -np.log1p(math.exp(-log))) * increments
    return float(power.sum() / (1.0 + math.exp(-log))), float(number @ power)


def _function_sums(number: FloatArray, values: FloatArray, log: float) -> tuple[float, float]:
    """Return the mean penalty G and its slope G' at ln x = ``log``, for a function's values.

    They are summed by parts, because increments of large n cancel: ``G = (1 - q) sum C(n) q^n``,
    with the derivative ``sum C(n) q^(n - 1) (n (1 - q) - q)``.
    """
    q, rest = 1.0 / (1.0 + math.exp(-log)), 1.0 / (1.0 + math.exp(log))
    power = np.exp((number - 1.0) * -np.log1p(math.exp(-log))) * values
    return float(rest * q * power.sum()), float(power @ (number * rest - q))
