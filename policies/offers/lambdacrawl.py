"""LambdaCrawl in discrete time, for offers whose clicks and changes are predicted day by day."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import page_arrays, quantity, real
from policies import solvers
from policies.offers.rates import OfferRates, RateSource
from policies.offers.weighted import SourcedPolicy

Weight: TypeAlias = Literal["click", "impression"]
Granularity: TypeAlias = Literal["step", "day"]


class DiscreteLambdaCrawl(SourcedPolicy):
    """LambdaCrawl of Han et al. 2020, Table 2: the most freshness if rates stay as they are.

    A price that changes within a day with probability Delta is taken to change in a step of h days
    with probability ``1 - (1 - Delta)^h``. The crawl probabilities per step maximise
    importance-weighted freshness at the ends of steps (:func:`policies.solvers.binary.in_steps`).
    With ``granularity="day"`` it does as the paper says: the problem is solved for steps of a day,
    each offer being crawled once a day at most, and the result scaled to the rate of a step.

    Offers that never change or never matter get nothing, even if bandwidth is left over; if none is
    left, all rates are equal.

    Args:
        env: as for :class:`policies.offers.weighted.SourcedPolicy`.
        rates: likewise.
        weight: what makes freshness matter, ``click`` or ``impression``.
        granularity: ``step`` for the environment's steps, or ``day`` for units of time.

    Raises:
        ValueError: as for :class:`policies.offers.weighted.SourcedPolicy`; unknown weight or granularity.
    """

    def __init__(
        self,
        env: Any,
        *,
        rates: RateSource | None = None,
        weight: Weight = "click",
        granularity: Granularity = "step",
    ) -> None:
        super().__init__(env, rates=rates)
        if weight not in get_args(Weight):
            raise ValueError(f"weight must be one of {get_args(Weight)}, got {weight!r}")
        if granularity not in get_args(Granularity):
            raise ValueError(
                f"granularity must be one of {get_args(Granularity)}, got {granularity!r}"
            )
        self.weight, self.granularity = weight, granularity

    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Crawl rates of the most freshness, (m,); equal ones if nothing that matters changes."""
        importance: FloatArray = getattr(rates, self.weight)
        step = self._epoch if self.granularity == "step" else 1.0
        return discrete_rates(importance, rates.change, bandwidth, highest, step)


def discrete_rates(
    importance: FloatArray, change: FloatArray, bandwidth: float, highest: float, step: float
) -> FloatArray:
    """Crawl rates of the most freshness at the ends of steps: what the policy does, once.

    Args:
        importance: of the pages, >= 0, (m,).
        change: probability of a change within a unit of time, in [0, 1], (m,).
        bandwidth: crawls per unit of time, > 0.
        highest: largest rate of a page, > 0.
        step: length of a step, > 0; a page is crawled once in it at most.

    Returns:
        Rates in [0, highest], (m,); equal ones if nothing that matters changes.

    Raises:
        ValueError: an argument is negative or not finite, or one that must be > 0 is 0; a
            probability above 1; shapes disagree.
    """
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    highest, step = real("highest", highest, above=0.0), real("step", step, above=0.0)
    importance, change = page_arrays(importance=importance, change=change)
    if change.max() > 1.0:
        raise ValueError(f"change must lie in [0, 1], got {change.max()}")
    if not np.any((importance > 0.0) & (change > 0.0)):
        return np.full(len(importance), min(bandwidth / len(importance), highest))
    chance = change_within(change, step)
    ceiling = min(highest * step, 1.0)
    found = solvers.binary_discrete(importance, chance, bandwidth * step, ceiling=ceiling)
    found.rates[:] /= step
    return found.rates


def change_within(chance: FloatArray, span: float) -> FloatArray:
    """Probability of a change within a span, given that within a unit of time, (m,).

    As if each part of the unit had the same probability of no change: ``1 - (1 - chance)^span``.

    Args:
        chance: in [0, 1], (m,).
        span: units of time, > 0.
    """
    if span == 1.0:
        return chance
    with np.errstate(divide="ignore"):  # the logarithm of 0
        return np.asarray(-np.expm1(span * np.log1p(-chance)))
