"""Predicted probabilities as the rates of strategies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agents.predictors import check_tasks, load
from agents.predictors.predictor import Predictor
from crawl_envs.types import Tracker
from crawl_envs.types.offer_features import OfferFeatures
from policies.offers.rates import OfferRates


class PredictedRates:
    """Probabilities of a click, an impression and a price change within the day (section 3.3).

    A source of rates for :mod:`policies`: mu, v and Delta of Han et al. 2020, predicted from the
    features of offers when the day begins. Rates are cached by feature table until one of another
    day comes, so that several lanes on the same day share the cache.

    Args:
        predictors: one of each task, or their folder or name.

    Raises:
        ValueError: a task is missing, or there is no such folder or name.
    """

    def __init__(self, predictors: Mapping[str, Predictor] | str | Path) -> None:
        if isinstance(predictors, str | Path):
            predictors = load(predictors)
        check_tasks(predictors)
        self.predictors = dict(predictors)
        self._day: int | None = None
        self._kept: dict[int, tuple[OfferFeatures, OfferRates]] = {}

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates of the day.

        Raises:
            ValueError: the pages are not offers.
        """
        offers = tracker.offers
        if offers is None:
            raise ValueError(
                "tracker.offers must be the features of a day for PredictedRates, got None: the "
                "pages of this environment are not offers"
            )
        if offers.day != self._day:
            self._day, self._kept = offers.day, {}
        if id(offers) not in self._kept:  # keep the table, so that no other gets its id
            self._kept[id(offers)] = offers, self._rates(offers)
        return self._kept[id(offers)][1]

    def _rates(self, offers: OfferFeatures) -> OfferRates:
        """Return the rates of offers, read-only arrays."""
        rates = OfferRates(
            click=self.predictors["click"].predict(offers),
            impression=self.predictors["impression"].predict(offers),
            change=self.predictors["price"].predict(offers),
        )
        for array in rates:
            array.setflags(write=False)
        return rates
