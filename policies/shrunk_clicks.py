"""Clicks that are expected of offers, most of which were not clicked for a month."""

from __future__ import annotations

import numpy as np

from crawl_envs.arguments import real
from crawl_envs.offer_book import HISTORY_DAYS
from crawl_envs.types import FloatArray, Tracker
from policies.offer_rates import HistoryRates, OfferRates


class ShrunkClicks:
    """Averages of the last 30 days, with clicks drawn towards what impressions lead to expect.

    Most offers have no click in a month, which does not mean that they will have none: a policy
    that goes by plain averages never crawls them, and together they have many. Here an offer with
    v impressions per day and N clicks in 30 days is expected to have

        v (N + s) / (30 v + s / q) clicks per day,

    with q the clicks per impression of all offers together: the posterior mean where an offer's own
    clicks per impression have a gamma law of mean q and shape s before any are seen. Impressions
    and changes are those of :class:`policies.offer_rates.HistoryRates`.

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
