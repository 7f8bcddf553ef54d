"""Training samples for predictors, and the AUCs of the paper (Han et al. 2020, section 4.1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.instances.market import market
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.offer_features import OfferFeatures
from crawl_envs.worlds.offers.log import MarketLog, record

FIRST_DAY = 212
"""Day of the year of the first training day: August 1, as in the paper."""
PAPER_DAYS = (153, 9, 91)
"""Days of training, validation and test: from 2018-08-01, from 2019-01-01, and from 2019-01-10 to
2019-04-10."""
TABLE_4: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "price": {"metadata": (0.860, 0.008), "history": (0.833, 0.011), "both": (0.882, 0.007)},
    "click": {"metadata": (0.796, 0.021), "history": (0.948, 0.006), "both": (0.949, 0.006)},
    "impression": {"metadata": (0.736, 0.008), "history": (0.896, 0.003), "both": (0.895, 0.003)},
}
"""The paper's testing AUCs by task and features, with standard deviations over 20 subsets."""


def logged(seed: int, num_offers: int, num_days: int, **arguments: Any) -> MarketLog:
    """Simulate a market from FIRST_DAY on and return its log; its law gets ``arguments``."""
    drawn = market(num_offers, seed=seed, first_day=FIRST_DAY, **arguments)
    return record(drawn, num_days, seed)


class Split(NamedTuple):
    """Days of training, validation and test, in this order in time."""

    train: range
    validation: range
    test: range


def split_days(num_days: int) -> Split:
    """Split days into training, validation and test days, 153 : 9 : 91 as in the paper.

    Args:
        num_days: days of the log.

    Raises:
        ValueError: fewer than 3 days.
    """
    unit = whole("num_days", num_days, 3) / sum(PAPER_DAYS)
    test = num_days - max(1, round(PAPER_DAYS[2] * unit))
    validation = test - max(1, round(PAPER_DAYS[1] * unit))
    return Split(range(validation), range(validation, test), range(test, num_days))


@dataclass(frozen=True)
class UniformSample:
    """A uniform sample of each day's offers.

    Attributes:
        per_day: offers per day, >= 1; a day with fewer offers is taken whole.
    """

    per_day: int

    def __post_init__(self) -> None:
        whole("per_day", self.per_day, 1)

    def __call__(self, offers: OfferFeatures, rng: np.random.Generator) -> IntArray:
        """Draw the sample of a day, and return the numbers of its offers, sorted."""
        count = len(offers.change_frequency)
        return np.sort(rng.choice(count, min(self.per_day, count), replace=False))


@dataclass(frozen=True)
class ClickWeightedSample:
    """The union of two samples of each day's offers: uniform, and weighted by past clicks.

    Weights are the clicks of the 30 days before. Only the uniform part includes offers without
    clicks. Probabilities depend on the past only, so that the sample keeps the share of positives
    among offers with equal history.

    Attributes:
        per_day: offers per day before repeats are dropped, >= 1.
        share: share of offers drawn by clicks, in [0, 1].
    """

    per_day: int
    share: float = 0.5

    def __post_init__(self) -> None:
        whole("per_day", self.per_day, 1)
        if real("share", self.share, least=0.0) > 1.0:
            raise ValueError(f"share must lie in [0, 1], got {self.share!r}")

    def __call__(self, offers: OfferFeatures, rng: np.random.Generator) -> IntArray:
        """Draw both samples of a day, and return the numbers of their offers, sorted."""
        by_clicks = round(self.per_day * self.share)
        pages = weighted_draw(offers.clicks_30.astype(np.float64), by_clicks, rng)
        if by_clicks < self.per_day:
            pages = np.union1d(pages, UniformSample(self.per_day - by_clicks)(offers, rng))
        return np.sort(pages)


def weighted_draw(weights: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Draw pages without replacement; each draw is proportional to the remaining weights.

    Uses exponential keys (Efraimidis and Spirakis 2006, Weighted random sampling with a reservoir).

    Args:
        weights: (m,), >= 0; a page of weight 0 is never drawn.
        count: number of pages to draw, >= 0; fewer if fewer have a weight > 0.
        rng: the random numbers.

    Returns:
        The drawn pages, sorted by their keys.
    """
    able = np.flatnonzero(weights > 0.0)
    keys = rng.standard_exponential(len(able)) / weights[able]
    return able[np.argsort(keys)[:count]]
