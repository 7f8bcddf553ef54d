"""Costs of crawl rates: harmonic and binary staleness of pages crawled at random times.

A page without complete observation is crawled at the times of a Poisson process; a page with
complete observation, at each of its signals with a probability p (Kolobov et al. 2019, eq. 3 and
6). With mu the importance, Delta the change rate and rho the crawl rate, the cost of a page is:

====================  =========================  =====================
observation           harmonic                   binary
====================  =========================  =====================
incomplete            -mu ln(rho/(rho + Delta))  mu Delta/(rho + Delta)
complete              -mu ln p                   mu (1 - p)
====================  =========================  =====================
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import page_arrays
from policies.solvers.page_totals import page_mask

BLOCK = 2**15
"""Pages whose logarithms are computed at a time, few enough for them to stay in the cache."""


def harmonic_cost(
    importance: ArrayLike,
    change_rate: ArrayLike,
    rates: ArrayLike,
    probabilities: ArrayLike | None = None,
    complete: ArrayLike | None = None,
) -> float:
    """Return J of Kolobov et al., eq. 4 and 8: weighted harmonic staleness, summed over pages.

    J is the mean over time of ``sum mu H(n)``, with n the changes of a page since its last crawl.
    The published code divides J by the number of pages.

    Args:
        importance: weights >= 0 of the pages, shape (m,), or a scalar.
        change_rate: changes per unit time, >= 0, shape (m,), or a scalar.
        rates: crawls per unit time, >= 0, shape (m,), or a scalar.
        probabilities: of a crawl on a signal, in [0, 1], shape (m,): used instead of the rates for
            pages with complete observation. None: rates over change rates, at most 1.
        complete: which pages have complete observation, (m,) bool; None for no page.

    Returns:
        The cost, >= 0; inf where a page that changes and is of importance is never crawled.

    Raises:
        ValueError: an argument is negative or not finite, a probability exceeds 1, shapes disagree.
    """
    return _cost("harmonic", importance, change_rate, rates, probabilities, complete)


def binary_cost(
    importance: ArrayLike,
    change_rate: ArrayLike,
    rates: ArrayLike,
    probabilities: ArrayLike | None = None,
    complete: ArrayLike | None = None,
) -> float:
    """Return the importance-weighted share of time in which pages are stale, summed over pages.

    Kolobov et al., eq. 12 and 13 (supplement). :func:`harmonic_cost` documents arguments, units and
    errors. The cost is in [0, sum mu]. A page without crawls is always stale, unless it never
    changes.
    """
    return _cost("binary", importance, change_rate, rates, probabilities, complete)


def _cost(
    penalty: Literal["harmonic", "binary"],
    importance: ArrayLike,
    change_rate: ArrayLike,
    rates: ArrayLike,
    probabilities: ArrayLike | None,
    complete: ArrayLike | None,
) -> float:
    weight, change, crawls, chance = page_arrays(
        importance=importance,
        change_rate=change_rate,
        rates=rates,
        probabilities=0.0 if probabilities is None else probabilities,
    )
    mask = page_mask(complete, len(weight))
    if probabilities is not None and mask.any():
        if chance.max() > 1.0:
            raise ValueError(f"probabilities must lie in [0, 1], got {chance.max()}")
        crawls = np.where(mask, chance * change, crawls)
    if penalty == "harmonic":
        return harmonic_sum(weight, change, crawls, mask)
    return _binary_sum(weight, change, crawls, mask)


def harmonic_sum(
    importance: FloatArray, change_rate: FloatArray, rates: FloatArray, complete: BoolArray
) -> float:
    """Return J, as :func:`harmonic_cost` does, for checked and contiguous arrays of shape (m,)."""
    logarithms = np.empty(min(BLOCK, len(importance)))
    total = 0.0
    for begin in range(0, len(importance), BLOCK):
        part = slice(begin, begin + BLOCK)
        weight = importance[part]
        ratio = logarithms[: len(weight)]
        _ratios(weight, change_rate[part], rates[part], complete[part], ratio)
        total += float(np.einsum("i,i", weight, np.log1p(ratio, out=ratio)))
    return total


@compiled(fastmath={"nsz"})
def _ratios(
    importance: FloatArray,
    change_rate: FloatArray,
    rates: FloatArray,
    complete: BoolArray,
    ratio: FloatArray,
) -> None:
    """Fill in r for a cost of mu ln(1 + r): Delta/rho, less 1 with complete observation, r >= 0."""
    for i in range(ratio.size):
        change = change_rate[i] if importance[i] > 0.0 else 0.0
        times = change / rates[i] if change > 0.0 else 0.0
        less = times - 1.0 if times > 1.0 else 0.0
        ratio[i] = less if complete[i] else times


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _binary_sum(
    importance: FloatArray, change_rate: FloatArray, rates: FloatArray, complete: BoolArray
) -> float:
    total = 0.0
    for i in range(importance.size):
        times = rates[i] / change_rate[i]
        missed = 1.0 - times if times < 1.0 else 0.0
        stale = missed if complete[i] else 1.0 / (1.0 + times)
        total += importance[i] * stale if change_rate[i] > 0.0 else 0.0
    return total
