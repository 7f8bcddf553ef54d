"""Predicted probabilities as the rates that strategies go by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agents.predictors.predictor import Predictor
from agents.predictors.saving import check_tasks, load
from crawl_envs.types import Tracker
from crawl_envs.types.offer_features import OfferFeatures
from policies.offers.rates import OfferRates


class PredictedRates:
    """Probabilities of a click, an impression and a price change within the day (section 3.3).

    A source of rates for :mod:`policies`: mu, v and Delta of Han et al. 2020 as predicted from the
    book of the day, which all decisions of the day share. Rates are kept by book until a book of
    another day comes, so that lanes on the same day do not drive each other out.

    Args:
        predictors: one of each task, or the folder or name that they are loaded from.

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
        """Return the rates of the day's book.

        Raises:
            ValueError: the pages are no offers.
        """
        book = tracker.offers
        if book is None:
            raise ValueError(
                "tracker.offers must be the book of a day for PredictedRates, got None: the pages "
                "of this environment are no offers"
            )
        if book.day != self._day:
            self._day, self._kept = book.day, {}
        if id(book) not in self._kept:  # the book is held, so that no other gets its id
            self._kept[id(book)] = book, self._rates(book)
        return self._kept[id(book)][1]

    def _rates(self, book: OfferFeatures) -> OfferRates:
        """Return the rates of a book, arrays that nobody can write to."""
        rates = OfferRates(
            click=self.predictors["click"].predict(book),
            impression=self.predictors["impression"].predict(book),
            change=self.predictors["price"].predict(book),
        )
        for array in rates:
            array.setflags(write=False)
        return rates
