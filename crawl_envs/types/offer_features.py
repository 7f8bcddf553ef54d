"""What a tracker of shopping offers knows beside its crawls, day by day."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IdArray = NDArray[np.int32]
DailyArray = NDArray[np.float32]

HISTORY_DAYS = 30
"""Days of history that a book looks back on."""

NO_CHANGE = 31.0
"""Days since the last price change where none was seen in all the history."""


class OfferMetadata(NamedTuple):
    """What is written on an offer: numbers of brands, merchants and so on, (m,) int32 each.

    ``condition`` is 0 for new, 1 for used, 2 for refurbished; the others are numbers from 0 on that
    mean nothing but themselves.
    """

    brand: IdArray
    category: IdArray
    condition: IdArray
    country: IdArray
    language: IdArray
    merchant: IdArray


class OfferFeatures(NamedTuple):
    """The features of Han et al. 2020, Table 3, as they stand when a day begins.

    Arrays are (m,) float32 and read-only; all of a day's decisions see the same book, the same
    object. Clicks and impressions are counts per day, averaged over the days that the name ends in.

    Attributes:
        metadata: what is written on the offers.
        day: number of the day that begins, 0 for the first of an episode.
        day_of_week: of that day, 0 for Monday.
        change_frequency: price changes per day that were seen in the last 30 days.
        days_since_change: days since the last of them, > 0; NO_CHANGE where there was none.
        clicks_1, clicks_7, clicks_14, clicks_30: clicks per day.
        impressions_1, impressions_7, impressions_14, impressions_30: impressions per day.
    """

    metadata: OfferMetadata
    day: int
    day_of_week: int
    change_frequency: DailyArray
    days_since_change: DailyArray
    clicks_1: DailyArray
    clicks_7: DailyArray
    clicks_14: DailyArray
    clicks_30: DailyArray
    impressions_1: DailyArray
    impressions_7: DailyArray
    impressions_14: DailyArray
    impressions_30: DailyArray


HISTORY_FEATURES: tuple[str, ...] = OfferFeatures._fields[3:]
"""The names of the history features of a book."""
METADATA_FEATURES: tuple[str, ...] = (*OfferMetadata._fields, "day_of_week")
"""The names of the metadata features: those of offers, and the day of the week, of the book."""
