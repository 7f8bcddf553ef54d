"""Daily features of shopping offers, known in addition to crawl results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IdArray = NDArray[np.int32]
DailyArray = NDArray[np.float32]

HISTORY_DAYS = 30
"""Length of the history of features, in days."""

NO_CHANGE = 31.0
"""Value of ``days_since_change`` without a price change in the history."""


class OfferMetadata(NamedTuple):
    """Metadata of offers: numbers of brands, merchants and so on, (m,) int32 each.

    ``condition`` is 0 for new, 1 for used, 2 for refurbished; the others are arbitrary numbers
    from 0.
    """

    brand: IdArray
    category: IdArray
    condition: IdArray
    country: IdArray
    language: IdArray
    merchant: IdArray


class OfferFeatures(NamedTuple):
    """The features of all offers at the start of a day (Han et al. 2020, Table 3).

    Arrays are (m,) float32 and read-only; all decisions of a day share one object. Clicks and
    impressions are counts per day, averaged over the number of days in the name.

    Attributes:
        metadata: metadata of the offers.
        day: number of the day, 0 for the first of an episode.
        day_of_week: 0 for Monday.
        change_frequency: observed price changes per day in the last 30 days.
        days_since_change: days since the last observed change, > 0; NO_CHANGE if none.
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
"""Names of the history features."""
METADATA_FEATURES: tuple[str, ...] = (*OfferMetadata._fields, "day_of_week")
"""Names of the metadata features: the metadata of offers, and the day of the week."""
