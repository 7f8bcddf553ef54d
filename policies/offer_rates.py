"""How often shopping offers are believed to be clicked, to be shown, and to change their price."""

from __future__ import annotations

from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from crawl_envs.arguments import whole
from crawl_envs.offer_book import OfferBook
from crawl_envs.types import FloatArray, Tracker


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
    """Where the rates come from: a function of what is known in a lane."""

    def __call__(self, tracker: Tracker) -> OfferRates:
        """The rates as they are believed now."""


class HistoryRates:
    """Averages of the last 30 days: mu_h, v_h and Delta_h of Han et al. 2020, section 5.2.2.

    The price changes per day that were seen are taken for the probability of a change within a
    day, and for 1 where they are more. So one change per day or more becomes a change that is sure
    within a day, and where days are cut into steps
    (:func:`policies.discrete_lambdacrawl.change_within`) one that is sure in every step.
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
        ValueError: ``days`` is no whole number >= 1.
    """

    def __init__(self, source: RateSource, days: int | None = None) -> None:
        self.source = source
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


def begun(source: RateSource) -> RateSource:
    """The source for an episode that begins: itself, unless it remembers what it said."""
    return source.anew() if isinstance(source, StaleRates) else source


class _Day(NamedTuple):
    """What a source said on one day of an episode: by ``id`` of the book, the book and the rates.

    The books are held so that no other gets the ``id`` of one of them.
    """

    stamp: tuple[int, int]
    said: dict[int, tuple[OfferBook, OfferRates]]


_DAYS: WeakKeyDictionary[RateSource, _Day] = WeakKeyDictionary()


def answer(source: RateSource, tracker: Tracker) -> OfferRates:
    """What a source says, asked once per book however many policies share the source.

    Answers are remembered for the day and the number of the episode of which it was asked last;
    lanes that are elsewhere are served all the same, but make it compute more often. A source that
    remembers by itself, that cannot be referred to weakly, or is asked where there is no book is
    asked each time.

    Args:
        source: is believed to depend on the book alone.
        tracker: what is known in a lane.

    Raises:
        ValueError: an array of the answer has not the shape (m,), or a number out of its range;
            what the source itself objects to.
    """
    book = tracker.offers
    if book is None or isinstance(source, StaleRates):
        return checked(source(tracker), tracker.problem.num_pages)
    stamp = (tracker.episode, book.day)
    try:
        day = _DAYS.get(source)
        if day is None or day.stamp != stamp:
            day = _DAYS[source] = _Day(stamp, {})
    except TypeError:
        day = _Day(stamp, {})
    if id(book) not in day.said:
        day.said[id(book)] = book, checked(source(tracker), tracker.problem.num_pages)
    return day.said[id(book)][1]


def checked(rates: OfferRates, num_pages: int) -> OfferRates:
    """The rates; ValueError unless (m,), finite and >= 0, and changes at most 1."""
    for name, array in zip(OfferRates._fields, rates, strict=True):
        if np.shape(array) != (num_pages,):
            raise ValueError(
                f"rates must give {name} of shape ({num_pages},), got {np.shape(array)}"
            )
        most = 1.0 if name == "change" else np.finfo(np.float64).max
        sound = (array >= 0.0) & (array <= most)
        if not sound.all():
            where = "in [0, 1]" if name == "change" else "finite and >= 0"
            raise ValueError(f"rates must give {name} {where}, got {array[~sound][0]}")
    return rates
