"""A small market whose law is written down here: a log of the shape that predictors learn from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crawl_envs.types.offer_features import HISTORY_DAYS, NO_CHANGE, OfferFeatures, OfferMetadata

MERCHANTS = 12


class MadeLabels(NamedTuple):
    price_changed: np.ndarray
    clicked: np.ndarray
    impressed: np.ndarray


@dataclass(frozen=True)
class MadeLog:
    """Counts per day, (D, m): features use the rows before their day, labels the row itself."""

    metadata: OfferMetadata
    changes: np.ndarray
    clicks: np.ndarray
    impressions: np.ndarray

    @property
    def num_days(self) -> int:
        return len(self.changes)

    @property
    def num_pages(self) -> int:
        return self.changes.shape[1]

    def features(self, day: int) -> OfferFeatures:
        def mean(counts: np.ndarray, days: int) -> np.ndarray:
            return (counts[max(0, day - days) : day].sum(axis=0) / days).astype(np.float32)

        since = np.full(self.num_pages, NO_CHANGE, np.float32)
        for back in range(min(day, HISTORY_DAYS), 0, -1):
            since[self.changes[day - back] > 0] = back
        return OfferFeatures(
            self.metadata,
            day,
            day % 7,
            mean(self.changes, HISTORY_DAYS),
            since,
            *(mean(self.clicks, days) for days in (1, 7, 14, 30)),
            *(mean(self.impressions, days) for days in (1, 7, 14, 30)),
        )

    def labels(self, day: int) -> MadeLabels:
        return MadeLabels(*(c[day] > 0 for c in (self.changes, self.clicks, self.impressions)))

    def with_future_shuffled(self, day: int, seed: int) -> MadeLog:
        """Return the log with all events from a day on shuffled among offers and days."""
        rng = np.random.default_rng(seed)

        def shuffled(counts: np.ndarray) -> np.ndarray:
            later = rng.permutation(counts[day:].ravel()).reshape(counts[day:].shape)
            return np.concatenate([counts[:day], later])

        return dataclasses.replace(
            self,
            changes=shuffled(self.changes),
            clicks=shuffled(self.clicks),
            impressions=shuffled(self.impressions),
        )


def made_market(num_pages: int = 400, num_days: int = 60, seed: int = 0) -> MadeLog:
    """Prices change by merchant and weekday; clicks and impressions by a hidden rate per offer."""
    rng = np.random.default_rng(seed)
    merchant = rng.integers(MERCHANTS, size=num_pages)
    change = np.where(merchant < 3, 0.5, 0.02)[None, :] * np.ones((num_days, 1))
    change[np.arange(num_days) % 7 >= 5] *= 0.2
    views = np.exp(1.5 * rng.standard_normal(num_pages)) * 0.3
    impressions = rng.poisson(views, (num_days, num_pages))
    zeros = np.zeros(num_pages, np.int32)
    metadata = OfferMetadata(
        brand=rng.integers(40, size=num_pages).astype(np.int32),
        category=rng.integers(10, size=num_pages).astype(np.int32),
        condition=zeros,
        country=zeros,
        language=zeros,
        merchant=merchant.astype(np.int32),
    )
    changes = rng.random((num_days, num_pages)) < change
    return MadeLog(metadata, changes.astype(int), rng.binomial(impressions, 0.2), impressions)
