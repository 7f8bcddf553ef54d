"""Estimated rates of clicks, impressions and price changes of shopping offers."""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple, Protocol

import numpy as np

from crawl_envs.types import FloatArray, Tracker
from crawl_envs.types.arguments import real
from crawl_envs.types.offer_features import HISTORY_DAYS, OfferFeatures


class OfferRates(NamedTuple):
    """Estimated rates of offers: mu, v and Delta of Han et al. 2020, Tables 1 and 2.

    Attributes:
        click: expected clicks per day, or the probability of a click within a day, >= 0, (m,)
            float64. Only ratios between offers matter.
        impression: expected impressions, likewise.
        change: probability that the price changes within a day, in [0, 1], (m,) float64.
    """

    click: FloatArray
    impression: FloatArray
    change: FloatArray


class RateSource(Protocol):
    """A function of a lane's tracker, which policies call once per day of offer features.

    A source with state may have a method ``fresh()`` that returns a copy in its initial state. It
    is called for every episode of every lane.
    """

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates for the tracker's offer features."""


class HistoryRates:
    """Averages of the last 30 days: mu_h, v_h and Delta_h of Han et al. 2020, section 5.2.2.

    The probability of a change within a day is the number of observed price changes per day, at
    most 1. So one or more changes per day become a certain change within a day, and in every step
    if days are divided into steps (:func:`policies.offers.strategies.change_within`).
    """

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates for the day's offer features; ValueError if pages are not offers."""
        features = tracker.offers
        if features is None:
            raise ValueError("tracker.offers must be OfferFeatures for HistoryRates, got None")
        return OfferRates(
            click=features.clicks_30.astype(np.float64),
            impression=features.impressions_30.astype(np.float64),
            change=np.minimum(features.change_frequency.astype(np.float64), 1.0),
        )


class ShrunkClicks:
    """Averages of the last 30 days, with clicks shrunk towards the clicks per impression of all.

    Most offers have no click in a month, but may have one later: a policy with plain averages never
    crawls them, and together they have many clicks. The estimate for an offer with v impressions
    per day and N clicks in 30 days is

        v (N + s) / (30 v + s / q) clicks per day,

    with q the clicks per impression of all offers together: the posterior mean under a gamma prior
    of mean q and shape s of an offer's clicks per impression. Impressions and changes are those of
    :class:`HistoryRates`, and so are clicks if there are no clicks or no impressions at all.

    Args:
        strength: s, in clicks, > 0: the number of clicks at which the record of an offer and the
            prior have equal weight.
    """

    def __init__(self, strength: float = 2.0) -> None:
        self.strength = real("strength", strength, above=0.0)

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates for the day's offer features; ValueError if pages are not offers."""
        rates = HistoryRates()(tracker)
        click, impression, _ = rates
        if not (click.any() and impression.any()):
            return rates
        per_impression = float(click.sum() / impression.sum())
        exposure = HISTORY_DAYS * impression + self.strength / per_impression
        return rates._replace(click=impression * (HISTORY_DAYS * click + self.strength) / exposure)


class RevealedRates:
    """Revealed parameters: importance as both clicks and impressions, and change rates.

    A page with the change rate Delta changes within a unit of time with probability
    ``1 - exp(-Delta)``, as for a Poisson process of changes.
    """

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates of the problem; ValueError if change rates are not revealed."""
        problem = tracker.problem
        if problem.change_rate is None:
            raise ValueError("change_rate must be revealed for RevealedRates: reveal='parameters'")
        importance = problem.importance
        return OfferRates(importance, importance, -np.expm1(-problem.change_rate))


class StaleRates:
    """The rates of an episode's first decision, for all of its days.

    Policies call :meth:`fresh` for every episode of every lane, so that they can share one object.
    """

    def __init__(self, source: RateSource) -> None:
        self.source = rate_source("source", source)
        self._stored: OfferRates | None = None

    def fresh(self) -> StaleRates:
        """Return a copy that has no stored rates yet."""
        return StaleRates(fresh_source(self.source))

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates of the episode's first decision; the first call stores them."""
        if self._stored is None:
            self._stored = rates_of(self.source, tracker)
        return self._stored


def default_source(tracker: Tracker) -> RateSource:
    """Return the source used without an argument: history of offers, or revealed parameters."""
    return RevealedRates() if tracker.offers is None else HistoryRates()


def rate_source(name: str, value: Any) -> RateSource:
    """Return ``value``; ValueError, which names ``name``, if it is not a source of rates."""
    if isinstance(value, type) or not callable(value):
        raise ValueError(
            f"{name} must be a function of a tracker, got {reprlib.repr(value)}; pass an instance, "
            "not a class"
        )
    return value  # type: ignore[no-any-return]


def fresh_source(source: RateSource) -> RateSource:
    """Return the source for a new episode: the result of its method ``fresh``, or itself."""
    method = getattr(source, "fresh", None)
    return source if method is None else rate_source(f"{_label(source)}.fresh()", method())


class LaneRates:
    """Rates of a source for an episode of a lane; the source is called once per day of features."""

    def __init__(self, source: RateSource) -> None:
        self._source = fresh_source(source)
        self._rates: OfferRates | None = None
        self._features: OfferFeatures | None = None

    def read(self, tracker: Tracker) -> OfferRates:
        """Return the rates at a decision; on the same day, it is the same object."""
        if self._rates is None or tracker.offers is not self._features:
            self._rates, self._features = rates_of(self._source, tracker), tracker.offers
        return self._rates


def rates_of(source: RateSource, tracker: Tracker) -> OfferRates:
    """Return the rates of a source as arrays (m,) of floats, without a copy if they are.

    Sources may give single precision: policies plan in double precision, but rewards weighted by
    such clicks are sums in single precision.

    Raises:
        ValueError: the source returns no :class:`OfferRates` of arrays (m,) of numbers in range.
    """
    rates, num_pages = source(tracker), tracker.problem.num_pages
    if not isinstance(rates, OfferRates):
        raise ValueError(
            f"{_label(source)} must return OfferRates(click, impression, change), arrays of shape "
            f"({num_pages},), got {reprlib.repr(rates)}"
        )
    arrays = []
    for field, values in zip(OfferRates._fields, rates, strict=True):
        single = getattr(values, "dtype", None) == np.float32
        try:
            array = values if single else np.asarray(values, np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        highest = 1.0 if field == "change" else np.finfo(np.float64).max
        if array.shape != (num_pages,) or not np.all((array >= 0.0) & (array <= highest)):
            where = "in [0, 1]" if field == "change" else "finite and >= 0"
            raise ValueError(
                f"{field} of {_label(source)} must be {num_pages} numbers {where}, got "
                f"{reprlib.repr(values)}"
            )
        arrays.append(array)
    same = all(array is values for array, values in zip(arrays, rates, strict=True))
    return rates if same else OfferRates(*arrays)


def _label(source: RateSource) -> str:
    """Return the name of a source or of its class, for errors."""
    return str(getattr(source, "__qualname__", type(source).__qualname__))
