"""Stand-in for trained predictors in tests: the history of an offer, shrunk towards a guess."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.types import FloatArray, Tracker
from policies.offers.rates import OfferRates
from scripts.experiments.measures import offer_strategies as strategies

GUESSED_DAYS = 5.0
"""Weight of the guess, in days of history."""


def smoothed(tracker: Tracker) -> OfferRates:
    """Return the chance of a day with a click, an impression, or a change of price."""
    offer_features = tracker.offers
    assert offer_features is not None

    def chance(per_day: np.ndarray, guess: float) -> FloatArray:
        mean = (30.0 * per_day.astype(np.float64) + GUESSED_DAYS * guess) / (30.0 + GUESSED_DAYS)
        return 1.0 - np.exp(-mean)

    return OfferRates(
        chance(offer_features.clicks_30, 0.01),
        chance(offer_features.impressions_30, 0.1),
        chance(offer_features.change_frequency, 0.05),
    )


def forget() -> None:
    """Drop what is kept of runs."""
    for kept in ("_rates_by_day", "reference"):
        getattr(strategies, kept).cache_clear()


def predict_by_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take these for the predicted rates of all runs; what was kept of runs is dropped."""
    forget()
    monkeypatch.setattr(strategies, "predictors", lambda: smoothed)
