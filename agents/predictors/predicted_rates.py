"""Use predicted probabilities as the rates of policies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agents.predictors import load
from agents.predictors.predictor import Predictor
from crawl_envs.types import Tracker
from crawl_envs.types.offer_features import OfferFeatures
from policies.offers.rates import OfferRates


class PredictedRates:
    """Predict the rates of clicks, impressions and price changes within a day.

    A source of rates for :mod:`policies`: mu, v and Delta of Han et al. 2020, section 3.3, from the
    features of offers at the start of the day. Rates are cached by feature table until the next
    day, so lanes on the same day share the cache.

    Args:
        predictors: one for each task, or their folder or name.

    Raises:
        ValueError: a task is missing, or there is no such folder or name.
    """

    def __init__(self, predictors: Mapping[str, Predictor] | str | Path) -> None:
        self.predictors = load(predictors)
        self._day: int | None = None
        self._cache: dict[int, tuple[OfferFeatures, OfferRates]] = {}

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates of the day, read-only arrays.

        Raises:
            ValueError: the pages are not offers.
        """
        offers = tracker.offers
        if offers is None:
            raise ValueError("tracker.offers must be the features of a day, got None")
        if offers.day != self._day:
            self._day, self._cache = offers.day, {}
        if id(offers) not in self._cache:  # the cache holds the table, so its id stays unique
            tasks = {"click": "click", "impression": "impression", "change": "price"}
            rates = {name: self.predictors[task].predict(offers) for name, task in tasks.items()}
            for array in rates.values():
                array.setflags(write=False)
            self._cache[id(offers)] = offers, OfferRates(**rates)
        return self._cache[id(offers)][1]
