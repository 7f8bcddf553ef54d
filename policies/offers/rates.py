"""How often shopping offers are believed to be clicked, to be shown, and to change their price."""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple, Protocol
from weakref import ref

import numpy as np

from crawl_envs.types import FloatArray, Tracker
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.offer_features import HISTORY_DAYS, OfferFeatures


class ShrunkClicks:
    """Averages of the last 30 days, with clicks drawn towards what impressions lead to expect.

    Most offers have no click in a month, which does not mean that they will have none: a policy
    that goes by plain averages never crawls them, and together they have many. Here an offer with
    v impressions per day and N clicks in 30 days is expected to have

        v (N + s) / (30 v + s / q) clicks per day,

    with q the clicks per impression of all offers together: the posterior mean where an offer's own
    clicks per impression have a gamma law of mean q and shape s before any are seen. Impressions
    and changes are those of :class:`policies.offers.rates.HistoryRates`.

    Args:
        strength: s, in clicks, > 0: how many clicks it takes for an offer's own record to count as
            much as that of all.

    Raises:
        ValueError: ``strength`` is not > 0.
    """

    def __init__(self, strength: float = 2.0) -> None:
        self.strength = real("strength", strength, above=0.0)
        self._history = HistoryRates()

    def __call__(self, tracker: Tracker) -> OfferRates:
        """The rates of the day's book.

        Raises:
            ValueError: the pages are no offers.
        """
        rates = self._history(tracker)
        return rates._replace(click=shrunk(rates.click, rates.impression, self.strength))


def shrunk(click: FloatArray, impression: FloatArray, strength: float) -> FloatArray:
    """Clicks per day that are expected, (m,); the plain averages where there are none to go by.

    Args:
        click: clicks per day in HISTORY_DAYS days, >= 0, (m,).
        impression: impressions per day, likewise.
        strength: in clicks, > 0.
    """
    if not (click.any() and impression.any()):
        return click
    per_impression = float(click.sum() / impression.sum())
    seen = HISTORY_DAYS * impression + strength / per_impression
    return np.asarray(impression * (HISTORY_DAYS * click + strength) / seen)


class OfferRates(NamedTuple):
    """What strategies go by: mu, v and Delta of Han et al. 2020, Tables 1 and 2.

    Attributes:
        click: clicks per day that are expected, or the probability of a click within a day, >= 0,
            (m,) float64. Only ratios between offers matter.
        impression: the same of impressions.
        change: probability that the price changes within a day, in [0, 1], (m,) float64.
    """

    click: FloatArray
    impression: FloatArray
    change: FloatArray


class RateSource(Protocol):
    """Where the rates come from: a function of what is known in a lane.

    It is asked once per book. One that remembers what it said may have a method ``anew()``, which
    returns the same source with nothing remembered: it is called for every episode of every lane.
    """

    def __call__(self, tracker: Tracker) -> OfferRates:
        """The rates as they are believed with the tracker's book."""


class HistoryRates:
    """Averages of the last 30 days: mu_h, v_h and Delta_h of Han et al. 2020, section 5.2.2.

    The price changes per day that were seen are taken for the probability of a change within a
    day, and for 1 where they are more. So one change per day or more becomes a change that is sure
    within a day, and where days are cut into steps
    (:func:`policies.offers.lambdacrawl.change_within`) one that is sure in every step.
    """

    def __call__(self, tracker: Tracker) -> OfferRates:
        """The rates of the day's book.

        Raises:
            ValueError: the pages are no offers.
        """
        book = tracker.offers
        if book is None:
            raise ValueError(
                "tracker.offers must be the book of a day for HistoryRates, got None: the pages of "
                "this environment are no offers"
            )
        return OfferRates(
            click=book.clicks_30.astype(np.float64),
            impression=book.impressions_30.astype(np.float64),
            change=np.minimum(book.change_frequency.astype(np.float64), 1.0),
        )


class RevealedRates:
    """What the environment reveals: importance for clicks and impressions alike, and change rates.

    A page with the change rate Delta changes within a unit of time with probability
    ``1 - exp(-Delta)``, as if changes came in a Poisson process.
    """

    def __call__(self, tracker: Tracker) -> OfferRates:
        """The rates of the tracker's problem.

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
    """Rates of an earlier day: those of an episode's first book, for ever or for some days.

    It remembers one lane. Policies ask :meth:`anew` for one of its own for every episode of every
    lane, so that one object serves them all. The arms of a bandit remember the same days, whenever
    they are drawn.

    Args:
        source: where the rates come from.
        days: whole days, >= 1, after which they are asked for again; None for never.

    Raises:
        ValueError: ``source`` is no source; ``days`` is no whole number >= 1.
    """

    def __init__(self, source: RateSource, days: int | None = None) -> None:
        self.source = rate_source("source", source)
        self.days = None if days is None else whole("days", days, 1)
        self._kept: OfferRates | None = None
        self._episode = self._day = -1

    def anew(self) -> StaleRates:
        """The same with nothing remembered."""
        return StaleRates(begun(self.source), self.days)

    def __call__(self, tracker: Tracker) -> OfferRates:
        """The rates that are remembered, or are due to be asked for."""
        day = int(tracker.time) if tracker.offers is None else tracker.offers.day
        over = self.days is not None and day - self._day >= self.days
        if self._kept is None or tracker.episode != self._episode or over:
            self._kept = answer(self.source, tracker)
            self._episode, self._day = tracker.episode, day
        return self._kept


_HISTORY, _REVEALED = HistoryRates(), RevealedRates()


def usual_source(tracker: Tracker) -> RateSource:
    """Where rates come from unless something else is said: the history of offers, or what is told.

    It is the same object every time.
    """
    return _REVEALED if tracker.offers is None else _HISTORY


def rate_source(name: str, value: Any) -> RateSource:
    """The argument of that name, which must be a source of rates.

    Raises:
        ValueError: it cannot be called, or is a class where an instance is wanted.
    """
    if isinstance(value, type):
        raise ValueError(
            f"{name} must be a function of a tracker, got the class {value.__name__}: give an "
            f"instance, as {value.__name__}(...) makes it"
        )
    if not callable(value):
        raise ValueError(f"{name} must be a function of a tracker, got {reprlib.repr(value)}")
    return value  # type: ignore[no-any-return]


def begun(source: RateSource) -> RateSource:
    """The source for an episode that begins: itself, or what its ``anew()`` returns if it has one.

    Raises:
        ValueError: ``anew()`` returns no source.
    """
    anew = getattr(source, "anew", None)
    return source if anew is None else rate_source(f"{_label(source)}.anew()", anew())


class _Said(NamedTuple):
    """What a source said on one day of an episode: by ``id`` of the book, the book and the rates.

    The books are held so that no other gets the ``id`` of one of them.
    """

    source: ref[RateSource]
    stamp: tuple[int, int]
    by_book: dict[int, tuple[OfferFeatures, OfferRates]]


_SAID: dict[int, _Said] = {}
"""By ``id`` of the source, until it is let go: two that are equal may yet say different things."""


def answer(source: RateSource, tracker: Tracker) -> OfferRates:
    """What a source says, asked once per book however many policies share the source.

    Answers are remembered for the day and the number of the episode of which it was asked last;
    lanes that are elsewhere are served all the same, but make it compute more often. A source that
    cannot be referred to weakly, or is asked where there is no book, is asked each time.

    Args:
        source: is believed to depend on the book alone.
        tracker: what is known in a lane.

    Returns:
        Arrays (m,) float64, the source's own where they are that already.

    Raises:
        ValueError: the answer is no :class:`OfferRates`, or an array of it is not of numbers, has
            not the shape (m,), or holds a number out of its range; what the source itself objects
            to.
    """
    book, num_pages = tracker.offers, tracker.problem.num_pages
    if book is None:
        return _fit(source(tracker), source, num_pages)
    said = _said_on((tracker.episode, book.day), source)
    if id(book) not in said:
        said[id(book)] = book, _fit(source(tracker), source, num_pages)
    return said[id(book)][1]


def _said_on(
    stamp: tuple[int, int], source: RateSource
) -> dict[int, tuple[OfferFeatures, OfferRates]]:
    """What the source said on a day of an episode, to be added to; other days are forgotten."""
    key, forget = id(source), _SAID.pop
    if key not in _SAID or _SAID[key].stamp != stamp:
        try:
            held = ref(source, lambda _: forget(key, None))
        except TypeError:
            return {}
        _SAID[key] = _Said(held, stamp, {})
    return _SAID[key].by_book


def _fit(said: Any, source: RateSource, num_pages: int) -> OfferRates:
    """What a source said, as arrays (m,) float64; ValueError unless it is fit to go by."""
    if not isinstance(said, OfferRates):
        raise ValueError(
            f"{_label(source)} must return OfferRates(click, impression, change), arrays of shape "
            f"({num_pages},), got {_shown(said)}"
        )
    arrays = [
        _column(f"{name} of {_label(source)}", values, num_pages, name == "change")
        for name, values in zip(OfferRates._fields, said, strict=True)
    ]
    same = all(array is values for array, values in zip(arrays, said, strict=True))
    return said if same else OfferRates(*arrays)


def _column(name: str, values: Any, num_pages: int, chance: bool) -> FloatArray:
    """The values as an array (m,) float64; ValueError unless finite, >= 0, and chances <= 1."""
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
    """What errors call a source: its own name, or that of its class."""
    return str(getattr(source, "__qualname__", type(source).__qualname__))


def _shown(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"{type(value).__name__} {reprlib.repr(value)}" if value is not None else "None"
