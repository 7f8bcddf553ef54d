"""LambdaCrawl in discrete time, for offers with daily predictions of clicks and changes."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import within_domain
from policies import solvers
from policies.base.registry import registered
from policies.offers.rates import OfferRates, RateSource
from policies.offers.weighted import SourcedPolicy

Weight: TypeAlias = Literal["click", "impression"]
Granularity: TypeAlias = Literal["step", "day"]


@registered(paper="Offers", family="offers")
class DiscreteLambdaCrawl(SourcedPolicy):
    """LambdaCrawl of Han et al. 2020, Table 2: maximises freshness under constant rates.

    A price that changes within a day with probability Delta is assumed to change in a step of h
    days with probability ``1 - (1 - Delta)^h``. The crawl probabilities per step maximise
    importance-weighted freshness at the ends of steps (:func:`policies.solvers.binary_discrete`).
    ``granularity="day"`` follows the paper: the problem is solved for steps of a day, with at most
    one crawl of an offer per day, and the result is scaled to the rate of a step.

    Offers with no changes or no weight have rate 0, even if bandwidth is left over; if all offers
    are such, all rates are equal.

    Args:
        env, rates: as for :class:`policies.offers.weighted.SourcedPolicy`; so are the errors.
        weight: the importance of freshness, ``click`` or ``impression``.
        granularity: ``step`` for the environment's steps, or ``day`` for units of time.
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
        for name, value, allowed in (
            ("weight", weight, get_args(Weight)),
            ("granularity", granularity, get_args(Granularity)),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {value!r}")
        self.weight, self.granularity = weight, granularity

    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Return the optimal crawl rates, (m,)."""
        importance: FloatArray = getattr(rates, self.weight)
        step = self._epoch if self.granularity == "step" else 1.0
        return discrete_rates(importance, rates.change, bandwidth, highest, step)


def discrete_rates(
    importance: FloatArray, change: FloatArray, bandwidth: float, highest: float, step: float
) -> FloatArray:
    """Return the crawl rates that maximise freshness at the ends of steps.

    They are in [0, highest], (m,), and equal if no page with importance changes.

    Args:
        importance: of the pages, >= 0, (m,).
        change: probability of a change within a unit of time, in [0, 1], (m,).
        bandwidth: crawls per unit of time, > 0.
        highest: largest rate of a page, > 0.
        step: length of a step, > 0; a page is crawled at most once per step.
    """
    importance = within_domain(np.asarray(importance, np.float64))
    chance = change_within(np.asarray(change, np.float64), step)
    if not np.any((importance > 0.0) & (chance > 0.0)):
        return np.full(len(importance), min(bandwidth / len(importance), highest))
    ceiling = min(highest * step, 1.0)
    allocation = solvers.binary_discrete(importance, chance, bandwidth * step, ceiling=ceiling)
    return np.asarray(allocation.rates / step)


def change_within(chance: FloatArray, span: float) -> FloatArray:
    """Return the probability of a change within a span, ``1 - (1 - chance)^span``, (m,).

    ``chance`` is that within a unit of time, in [0, 1].
    """
    if span == 1.0:
        return chance
    with np.errstate(divide="ignore"):  # the logarithm of 0
        return np.asarray(-np.expm1(span * np.log1p(-chance)))
