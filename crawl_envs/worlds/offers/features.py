"""The history features of Han et al. 2020, Table 3, from counts per day."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types.offer_features import (
    HISTORY_DAYS,
    NO_CHANGE,
    DailyArray,
    OfferFeatures,
    OfferMetadata,
)

SPANS = (1, 7, 14, 30)


def daily_means(counts: NDArray[Any], day: int, spans: tuple[int, ...]) -> list[DailyArray]:
    """Return the mean counts of the last days before a day, (m,) float32 for each span.

    ``counts`` are (rows, m), with day d in row d % rows.
    """
    total = np.zeros(counts.shape[1], np.int32)
    means = []
    for back in range(1, max(spans) + 1):
        total += counts[(day - back) % counts.shape[0]]
        if back in spans:
            means.append((total / np.float32(back)).astype(np.float32))
    return means


def features_of(
    metadata: OfferMetadata,
    day: int,
    day_of_week: int,
    counts: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    last_change: DailyArray,
) -> OfferFeatures:
    """Return the features of the offers on a day.

    Args:
        metadata: metadata of the offers.
        day: number of the day.
        day_of_week: its weekday, 0 for Monday.
        counts: clicks, impressions and price changes per day, (rows, m) each.
        last_change: time of the latest price change before the day, in days, (m,), -inf for none.
    """
    clicks, views, changes = counts
    since = np.float32(day) - last_change
    since = np.where(since <= HISTORY_DAYS, since, NO_CHANGE).astype(np.float32)
    features = [
        *daily_means(changes, day, (HISTORY_DAYS,)),
        since,
        *daily_means(clicks, day, SPANS),
        *daily_means(views, day, SPANS),
    ]
    for array in features:
        array.setflags(write=False)
    return OfferFeatures(metadata, day, day_of_week, *features)
