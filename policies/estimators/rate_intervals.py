r"""95% confidence intervals of the change rates of pages, from the likelihood of their crawls.

With tau the time between two crawls, a crawl finds a change with probability 1 - exp(-Delta tau).
The log-likelihood is

    l(Delta) = sum over changed of ln(1 - exp(-Delta tau)) - Delta L,

with L the sum of the unchanged intervals. It is concave. Where only some crawls found a change, the
interval is that of the likelihood ratio, l(Delta) >= max l - 1.92 (Wilks), of nominal coverage:
with ten equal intervals .89 to 1. If all crawls found a change, the likelihood has no maximum; if
none did, it is largest at 0. Then only one end is known: the rate at which such a history has
probability .05.

The times of crawls may depend on earlier results (coverage .95 to .96 where intervals halve after a
change and else grow by half), but not on signals: these come soon after a change, and rates are
then too high. Simulated at rate 1, with 10 to 50 crawls, each after a unit or at a signal (recall
.5, .3 false ones per unit), coverage is .93 to .94 where signals prompt crawls in a quarter of the
intervals, .92 in half, .89 to .85 in all; with recall .8 and 2 units .71 to .42.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from policies.estimators.change_rates import fit_change_rates
from policies.estimators.histories import page_histories

ONE_SIDED = math.log(0.05)
TWO_SIDED = -1.920729410347062
"""Minus half of the .95 quantile of chi-squared with one degree of freedom."""
BRACKET, HALVINGS = 4.0, 40
"""Factor of a bracket around each end, and halvings of its logarithm, to a factor of 1 + 2e-12."""


def change_rate_intervals(
    intervals: ArrayLike, changed: ArrayLike, offsets: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the low and the high end of the 95% interval of every page's change rate, (m,) each.

    The low end is 0 for a page that never changed, and the high end inf for one that always did. A
    page without intervals has both. Where signals prompt crawls, coverage is lower, down to 42%.

    Args:
        intervals: time between each crawl and the page's crawl before, grouped by page, (n,).
        changed: whether the page had changed, (n,) bool.
        offsets: the crawls of page i are ``offsets[i] .. offsets[i + 1] - 1``; (m + 1,).

    Raises:
        ValueError: as :func:`fit_change_rates`.
    """
    crawls = page_histories(intervals, changed, offsets)
    m, mask = crawls.begin.size, crawls.changed
    page = np.repeat(np.arange(m), crawls.end - crawls.begin)
    hits, hit_page = crawls.intervals[mask], page[mask]
    number = np.bincount(hit_page, minlength=m)
    exposure = np.bincount(page, crawls.intervals * ~mask, m).astype(np.float64)

    def likelihood(rate: FloatArray) -> FloatArray:
        logs = np.log(-np.expm1(-rate[hit_page] * hits))
        return np.bincount(hit_page, logs, m).astype(np.float64) - rate * exposure

    some, mixed = number > 0, (number > 0) & (exposure > 0.0)
    best = fit_change_rates(intervals, changed, offsets).change_rate
    # Without an unchanged crawl: a rate at which all changes have at least probability .05.
    shortest = np.full(m, np.inf)
    np.minimum.at(shortest, hit_page, hits)
    enough = -np.log1p(-np.exp(ONE_SIDED / np.maximum(number, 1))) / shortest
    inside = np.where(mixed, best, np.where(some, enough, 1.0))
    level = np.where(mixed, likelihood(inside) + TWO_SIDED, ONE_SIDED)
    low, high = np.zeros(m), np.full(m, np.inf)
    low[some] = _end(likelihood, inside, level, some, 1.0 / BRACKET)[some]
    high[mixed] = _end(likelihood, inside, level, mixed, BRACKET)[mixed]
    silent = ~some & (exposure > 0.0)
    high[silent] = -ONE_SIDED / exposure[silent]
    return low, high


def _end(
    likelihood: Callable[[FloatArray], FloatArray],
    inside: FloatArray,
    level: FloatArray,
    pages: BoolArray,
    factor: float,
) -> FloatArray:
    """Return the rate beyond ``inside`` at which the likelihood falls below ``level``, (m,).

    Only ``pages`` are searched: from ``inside`` in steps of ``factor``, and then by halving.
    """
    inner, outer = inside.copy(), inside * factor
    while (short := pages & (likelihood(outer) >= level)).any():
        inner[short], outer[short] = outer[short], outer[short] * factor
    for _ in range(HALVINGS):
        middle = np.sqrt(inner * outer)
        above = likelihood(middle) >= level
        inner, outer = np.where(above, middle, inner), np.where(above, outer, middle)
    return inner
