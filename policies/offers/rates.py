"""Estimated rates of clicks, impressions and price changes of shopping offers."""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple, Protocol
from weakref import ref

import numpy as np

from crawl_envs.types import FloatArray, Tracker
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.offer_features import HISTORY_DAYS, OfferFeatures


class ShrunkClicks:
    """Averages of the last 30 days, with clicks shrunk towards the clicks per impression of all.

    Most offers have no click in a month, which does not mean that they will have none: a policy
    with plain averages never crawls them, and together they have many clicks. The estimate for an
    offer with v impressions per day and N clicks in 30 days is

        v (N + s) / (30 v + s / q) clicks per day,

    with q the clicks per impression of all offers together: the posterior mean under a gamma prior
    of mean q and shape s of an offer's own clicks per impression. Impressions and changes are those
    of :class:`policies.offers.rates.HistoryRates`.

    Args:
        strength: s, in clicks, > 0: the number of clicks at which an offer's own record and the
            prior have equal weight.

    Raises:
        ValueError: ``strength`` is not > 0.
    """

    def __init__(self, strength: float = 2.0) -> None:
        self.strength = real("strength", strength, above=0.0)
        self._history = HistoryRates()

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates for the day's offer features.

        Raises:
            ValueError: the pages are not offers.
        """
        rates = self._history(tracker)
        return rates._replace(click=shrunk(rates.click, rates.impression, self.strength))


def shrunk(click: FloatArray, impression: FloatArray, strength: float) -> FloatArray:
    """Return the expected clicks per day, (m,); ``click`` if there are no clicks or impressions.

    Args:
        click: mean clicks per day over HISTORY_DAYS days, >= 0, (m,).
        impression: mean impressions per day over HISTORY_DAYS days, >= 0, (m,).
        strength: in clicks, > 0.
    """
    if not (click.any() and impression.any()):
        return click
    per_impression = float(click.sum() / impression.sum())
    seen = HISTORY_DAYS * impression + strength / per_impression
    return np.asarray(impression * (HISTORY_DAYS * click + strength) / seen)


class OfferRates(NamedTuple):
    """Estimated rates of offers: mu, v and Delta of Han et al. 2020, Tables 1 and 2.

    Attributes:
        click: expected clicks per day, or the probability of a click within a day, >= 0, (m,)
            float64. Only ratios between offers matter.
        impression: the same for impressions.
        change: probability that the price changes within a day, in [0, 1], (m,) float64.
    """

    click: FloatArray
    impression: FloatArray
    change: FloatArray


class RateSource(Protocol):
    """A source of rates: a function of a lane's tracker.

    It is called once for each day's offer features. A source with state may have a method
    ``fresh()`` that returns a copy in its initial state, called for every episode of every lane.
    """

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates for the tracker's offer features."""


class HistoryRates:
    """Averages of the last 30 days: mu_h, v_h and Delta_h of Han et al. 2020, section 5.2.2.

    The probability of a change within a day is the number of price changes seen per day, at most 1.
    So one or more changes per day become a certain change within a day, and a certain change in
    every step if days are divided into steps (:func:`policies.offers.lambdacrawl.change_within`).
    """

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates for the day's offer features.

        Raises:
            ValueError: the pages are not offers.
        """
        features = tracker.offers
        if features is None:
            raise ValueError(
                "tracker.offers must be OfferFeatures for HistoryRates, got None: pages of this "
                "environment are not offers"
            )
        return OfferRates(
            click=features.clicks_30.astype(np.float64),
            impression=features.impressions_30.astype(np.float64),
            change=np.minimum(features.change_frequency.astype(np.float64), 1.0),
        )


class RevealedRates:
    """Revealed parameters: importance as both clicks and impressions, and change rates.

    A page with the change rate Delta changes within a unit of time with probability
    ``1 - exp(-Delta)``, as if changes came in a Poisson process.
    """

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the rates of the tracker's problem.

        Raises:
            ValueError: change rates are not revealed.
        """
        problem = tracker.problem
        if problem.change_rate is None:
            raise ValueError(
                "change_rate must be revealed for RevealedRates, got None; make the environment "
                "with reveal='parameters'"
            )
        importance = problem.importance
        return OfferRates(importance, importance, -np.expm1(-problem.change_rate))


class StaleRates:
    """Rates of an earlier day: those of an episode's first day, updated after some days or never.

    It has the state of one lane. Policies call :meth:`fresh` for every episode of every lane, so
    that lanes and policies can share one object. All arms of a bandit use the same days.

    Args:
        source: source of the rates.
        days: whole days, >= 1, between updates of the rates; None for never.

    Raises:
        ValueError: ``source`` is not a source; ``days`` is not a whole number >= 1.
    """

    def __init__(self, source: RateSource, days: int | None = None) -> None:
        self.source = rate_source("source", source)
        self.days = None if days is None else whole("days", days, 1)
        self._kept: OfferRates | None = None
        self._episode = self._day = -1

    def fresh(self) -> StaleRates:
        """Return a copy in its initial state."""
        return StaleRates(fresh_source(self.source), self.days)

    def __call__(self, tracker: Tracker) -> OfferRates:
        """Return the stored rates, updated if due."""
        day = int(tracker.time) if tracker.offers is None else tracker.offers.day
        over = self.days is not None and day - self._day >= self.days
        if self._kept is None or tracker.episode != self._episode or over:
            self._kept = cached_rates(self.source, tracker)
            self._episode, self._day = tracker.episode, day
        return self._kept


_HISTORY, _REVEALED = HistoryRates(), RevealedRates()


def default_source(tracker: Tracker) -> RateSource:
    """Return the default source: the history of offers, or revealed parameters.

    It is the same object every time.
    """
    return _REVEALED if tracker.offers is None else _HISTORY


def rate_source(name: str, value: Any) -> RateSource:
    """Return the argument of that name, which must be a source of rates.

    Raises:
        ValueError: it is not callable, or is a class instead of an instance.
    """
    if isinstance(value, type):
        raise ValueError(
            f"{name} must be a function of a tracker, got the class {value.__name__}: give an "
            f"instance, as {value.__name__}(...) makes it"
        )
    if not callable(value):
        raise ValueError(f"{name} must be a function of a tracker, got {reprlib.repr(value)}")
    return value  # type: ignore[no-any-return]


def fresh_source(source: RateSource) -> RateSource:
    """Return the source for a new episode: the result of its ``fresh()`` if it has one, or itself.

    Raises:
        ValueError: ``fresh()`` does not return a source.
    """
    method = getattr(source, "fresh", None)
    return source if method is None else rate_source(f"{_label(source)}.fresh()", method())


class _CachedRates(NamedTuple):
    """A source's rates on one day of an episode: by ``id`` of the features, features and rates.

    The features are referenced so that no other object gets their ``id``.
    """

    source: ref[RateSource]
    stamp: tuple[int, int]
    by_features: dict[int, tuple[OfferFeatures, OfferRates]]


_CACHE: dict[int, _CachedRates] = {}
"""By ``id`` of the source, while it is alive; equal sources may return different rates."""


def cached_rates(source: RateSource, tracker: Tracker) -> OfferRates:
    """Return the rates of a source, called once per offer features, also if policies share it.

    Rates are cached for the day and episode number of the last call; calls from lanes at other days
    replace them. A source without weak references, or a call without offer features, is not cached.

    Args:
        source: assumed to depend on the offer features alone.
        tracker: tracker of a lane.

    Returns:
        Arrays (m,) float64, the source's own if they are so already.

    Raises:
        ValueError: the result is not an :class:`OfferRates`, or an array in it is not numeric, has
            another shape than (m,), or a number out of its range; or raised by the source.
    """
    features, num_pages = tracker.offers, tracker.problem.num_pages
    if features is None:
        return _checked(source(tracker), source, num_pages)
    cache = _cache_of_day((tracker.episode, features.day), source)
    if id(features) not in cache:
        cache[id(features)] = features, _checked(source(tracker), source, num_pages)
    return cache[id(features)][1]


def _cache_of_day(
    stamp: tuple[int, int], source: RateSource
) -> dict[int, tuple[OfferFeatures, OfferRates]]:
    """Return the source's cache of a day of an episode; other days are discarded."""
    key, forget = id(source), _CACHE.pop
    if key not in _CACHE or _CACHE[key].stamp != stamp:
        try:
            held = ref(source, lambda _: forget(key, None))
        except TypeError:
            return {}
        _CACHE[key] = _CachedRates(held, stamp, {})
    return _CACHE[key].by_features


def _checked(rates: Any, source: RateSource, num_pages: int) -> OfferRates:
    """Return a source's rates as arrays (m,) float64; raise ValueError unless they are valid."""
    if not isinstance(rates, OfferRates):
        raise ValueError(
            f"{_label(source)} must return OfferRates(click, impression, change), arrays of shape "
            f"({num_pages},), got {_shown(rates)}"
        )
    arrays = [
        _column(f"{name} of {_label(source)}", values, num_pages, name == "change")
        for name, values in zip(OfferRates._fields, rates, strict=True)
    ]
    same = all(array is values for array, values in zip(arrays, rates, strict=True))
    return rates if same else OfferRates(*arrays)


def _column(name: str, values: Any, num_pages: int, chance: bool) -> FloatArray:
    """Return an array (m,) float64; raise ValueError unless finite, >= 0, and chances <= 1."""
    try:
        given = np.asarray(values)
    except ValueError:  # rows of different lengths
        given = np.asarray(None)
    if given.dtype.kind not in "iuf" or given.shape != (num_pages,):
        raise ValueError(f"{name} must be numbers of shape ({num_pages},), got {_shown(values)}")
    array = np.asarray(given, np.float64)
    sound = (array >= 0.0) & (array <= (1.0 if chance else np.finfo(np.float64).max))
    if not sound.all():
        where = "in [0, 1]" if chance else "finite and >= 0"
        raise ValueError(f"{name} must be {where}, got {array[~sound][0]}")
    return array


def _label(source: RateSource) -> str:
    """Return the name of a source in errors: its own, or that of its class."""
    return str(getattr(source, "__qualname__", type(source).__qualname__))


def _shown(value: Any) -> str:
    """Return a short description of a value."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{type(value).__name__} {reprlib.repr(value)}" if value is not None else "None"
