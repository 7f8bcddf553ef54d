"""The history features of Han et al. 2020, Table 3, from counts per day."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types.offer_features import (
    HISTORY_DAYS,
    HISTORY_FEATURES,
    NO_CHANGE,
    DailyArray,
    OfferFeatures,
    OfferMetadata,
)

SPANS = (1, 7, 14, 30)
LONG_SPANS = SPANS[1:]
CLICK_SUMS, VIEW_SUMS, CHANGE_SUM, NUM_SUMS = 0, 3, 6, 7
"""Rows of sums of counts over LONG_SPANS: of clicks, of impressions; over HISTORY_DAYS: of price
changes; the number of rows."""


@inlined()
def write_row(counts: NDArray[Any], span: int, row: DailyArray) -> None:
    """Write ``counts``, (m,), sums over ``span`` days and below 2**24, into ``row`` as means."""
    days = np.float32(span)
    for offer in range(row.size):
        row[offer] = np.float32(counts[offer]) / days


@compiled()
def write_changes(
    day: int, changes: NDArray[np.int32], last_change: DailyArray, columns: DailyArray
) -> None:
    """Write the two features of price changes of a day into the first two rows of ``columns``."""
    write_row(changes, HISTORY_DAYS, columns[0])
    for offer in range(last_change.size):
        since = np.float32(day) - last_change[offer]
        columns[1, offer] = since if since <= HISTORY_DAYS else NO_CHANGE


@compiled()
def write_features(
    day: int,
    clicks: NDArray[Any],
    views: NDArray[Any],
    sums: NDArray[np.int32],
    last_change: DailyArray,
    columns: DailyArray,
) -> None:
    """Write the history features of a day into ``columns``, (11, m), ordered as HISTORY_FEATURES.

    Args:
        day: number of the day.
        clicks: clicks per day, (rows, m), with day d in row d % rows.
        views: impressions per day, (rows, m), with day d in row d % rows.
        sums: sums of the counts of the last days before the day, (NUM_SUMS, m).
        last_change: latest price change before the day, in days, (m,), -inf for none.
        columns: the array that gets the features.
    """
    write_changes(day, sums[CHANGE_SUM], last_change, columns)
    for first, row, counts in ((2, CLICK_SUMS, clicks), (6, VIEW_SUMS, views)):
        write_row(counts[(day - 1) % counts.shape[0]], 1, columns[first])
        for place in range(len(LONG_SPANS)):
            write_row(sums[row + place], LONG_SPANS[place], columns[first + 1 + place])


@inlined()
def add_day(
    counts: NDArray[Any], day: int, spans: tuple[int, ...], sums: NDArray[np.int32]
) -> None:
    """Update sums of daily counts over the days before ``day`` to the sums before the next day.

    ``spans`` are the numbers of days in a sum. ``counts`` are (rows, m), with day d in row d %
    rows; there are more rows than days in a sum.
    """
    rows = counts.shape[0]
    added = counts[day % rows]
    for place in range(len(spans)):
        outgoing, total = counts[(day - spans[place]) % rows], sums[place]
        for offer in range(added.size):
            total[offer] += np.int32(added[offer]) - np.int32(outgoing[offer])


def sums_of(counts: NDArray[Any], day: int, spans: tuple[int, ...]) -> NDArray[np.int32]:
    """Return sums of daily counts over the last days before ``day``, by span, (len(spans), m).

    ``counts`` are (rows, m), with day d in row d % rows.
    """
    total, sums = np.zeros(counts.shape[1], np.int32), []
    for back in range(1, max(spans) + 1):
        total += counts[(day - back) % counts.shape[0]]
        if back in spans:
            sums.append(total.copy())
    return np.array(sums)


def features_of(
    metadata: OfferMetadata,
    day: int,
    day_of_week: int,
    counts: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    last_change: DailyArray,
) -> OfferFeatures:
    """Return the features of all offers at the start of a day, computed from daily counts.

    Args:
        metadata: metadata of the offers.
        day: number of the day.
        day_of_week: weekday of the day, 0 for Monday.
        counts: clicks, impressions and price changes per day, (rows, m) each.
        last_change: time of the latest price change before the day, in days, (m,), -inf for none.
    """
    clicks, views, changes = counts
    spans = ((clicks, LONG_SPANS), (views, LONG_SPANS), (changes, (HISTORY_DAYS,)))
    sums = np.concatenate([sums_of(rows, day, lengths) for rows, lengths in spans])
    columns = np.empty((len(HISTORY_FEATURES), last_change.size), np.float32)
    write_features(day, clicks, views, sums, last_change, columns)
    columns.setflags(write=False)
    return OfferFeatures(metadata, day, day_of_week, *columns)
