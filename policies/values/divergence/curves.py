"""Divergence of pages from their copies, and the utility of a crawl (section 2.2, appendix A).

=====================  ==========================================================
here                   in Olston and Pandey (2008)
=====================  ==========================================================
``elapsed``            t, time since the last crawl
``divergence``         D*(t), expected divergence at t
``utility``            U(t) = t D*(t) - int_0^t D*(x) dx (eq. 4), divergence x time
``threshold``          T, or T / W_P if pages differ in importance
``period``             tau_P, the time from crawl to crawl
=====================  ==========================================================
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import floats, page_arrays
from policies.values import functions as values
from policies.values import kernels, tables
from policies.values.lambert import NEVER, fast_interval, pieces


class DivergenceCurves(Protocol):
    """The divergence curves of m pages, nondecreasing in time.

    ``elapsed`` is a time since the last crawl in [0, inf], and ``threshold`` a utility in
    [0, inf], for each page, (m,), or one for all; results are float64 of shape (m,). Methods raise
    ValueError if the argument is negative, NaN, or of another shape.
    """

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""

    @property
    def ceiling(self) -> FloatArray:
        """Limit of the utility, U(inf), (m,); inf if it is unbounded."""

    def divergence(self, elapsed: ArrayLike) -> FloatArray:
        """Return the expected divergence D* of pages from their copies, (m,), >= 0."""

    def area(self, elapsed: ArrayLike) -> FloatArray:
        """Return the integral of D* from 0 to ``elapsed``, (m,), >= 0."""

    def utility(self, elapsed: ArrayLike) -> FloatArray:
        """Return the utility U of a crawl at ``elapsed`` (eq. 4), (m,), >= 0 and nondecreasing."""

    def period(self, threshold: ArrayLike) -> FloatArray:
        """Return the least time at which the utility reaches the threshold, (m,), or inf."""


def per_page(name: str, value: ArrayLike, num_pages: int) -> FloatArray:
    """Return ``value`` as a contiguous array (m,) for kernels; ValueError unless in [0, inf]."""
    array = floats(name, value)
    if array.shape not in ((), (num_pages,)):
        raise ValueError(
            f"{name} must be a scalar or have shape ({num_pages},), got shape {array.shape}"
        )
    good = array >= 0.0
    if not good.all():
        raise ValueError(f"{name} must be >= 0, got {array[~good].flat[0]}")
    return np.require(np.broadcast_to(array, (num_pages,)), requirements=["C", "W"])


def area_below(elapsed: FloatArray, divergence: FloatArray, utility: FloatArray) -> FloatArray:
    """Return the integral of D* up to ``elapsed``, t D* - U by eq. 4, (m,); 0 where D* is 0."""
    with np.errstate(invalid="ignore"):
        area = elapsed * divergence - utility
    return np.where(divergence > 0.0, np.maximum(area, 0.0), 0.0)


class HolisticCurves:
    """Holistic staleness of pages that change at Poisson times: D* = 1 - exp(-Delta t).

    A copy is either fresh or stale. U = (1 - (1 + Delta t) exp(-Delta t)) / Delta (appendix A), the
    value of :func:`policies.values.greedy`; its period is a Lambert function.

    Args:
        change_rate: changes per unit time, Delta, >= 0 and finite, (m,); a scalar for one page.

    Raises:
        ValueError: a rate is negative or not finite, or the shape is not (m,).
    """

    def __init__(self, change_rate: ArrayLike) -> None:
        self.change_rate = page_arrays(change_rate=change_rate)[0].copy()
        self.change_rate.setflags(write=False)

    @cached_property
    def ceiling(self) -> FloatArray:
        """Limit of the utility at large elapsed times, (m,)."""
        return self.utility(np.inf)

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return self.change_rate.size

    def divergence(self, elapsed: ArrayLike) -> FloatArray:
        """Return the probability that the page has changed, (m,), in [0, 1]."""
        return self._changed(per_page("elapsed", elapsed, self.num_pages))

    def area(self, elapsed: ArrayLike) -> FloatArray:
        """Return the expected time during which the copy was stale, (m,)."""
        time = per_page("elapsed", elapsed, self.num_pages)
        return area_below(time, self._changed(time), self.utility(time))

    def utility(self, elapsed: ArrayLike) -> FloatArray:
        """Return the utility U of a crawl (eq. 4), (m,), in [0, 1 / Delta]; 0 without changes."""
        time = per_page("elapsed", elapsed, self.num_pages)
        table = tables.greedy_table(1.0, self.change_rate)
        return values.evaluate(kernels.greedy_value, table, (1.0, self.change_rate), time, 0.0)

    def period(self, threshold: ArrayLike) -> FloatArray:
        """Return the least time at which the utility reaches the threshold, (m,), or inf."""
        target = per_page("threshold", threshold, self.num_pages)
        return _waits(target, self.change_rate, self.ceiling, pieces())

    def _changed(self, elapsed: FloatArray) -> FloatArray:
        changes = np.zeros(self.num_pages)
        np.multiply(self.change_rate, elapsed, out=changes, where=self.change_rate > 0.0)
        return -np.expm1(-changes)


@compiled()
def _waits(
    target: FloatArray, change_rate: FloatArray, ceiling: FloatArray, table: FloatArray
) -> FloatArray:
    """Return the time from a crawl until the utility of each page reaches ``target``, (m,)."""
    waits = np.empty(target.size)
    for i in range(target.size):
        root = math.sqrt(2.0) * math.sqrt(target[i]) * math.sqrt(change_rate[i])
        if target[i] == 0.0:
            waits[i] = 0.0
        elif target[i] < ceiling[i] and root < NEVER:
            waits[i] = fast_interval(root, table) / change_rate[i]
        else:
            waits[i] = math.inf
    return waits
