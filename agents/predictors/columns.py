"""Input columns of a model from the features of offers on a day."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types.offer_features import HISTORY_DAYS, HISTORY_FEATURES, OfferFeatures

FloatColumns = NDArray[np.float32]
IdColumns = NDArray[np.int32]

COUNTED = {
    "change_frequency": HISTORY_DAYS,
    "days_since_change": 1,
    **{f"{what}_{days}": days for what in ("clicks", "impressions") for days in (1, 7, 14, 30)},
}
"""Days d of each history feature: its rate per day times d is a count."""


class Columns(NamedTuple):
    """Features of n offers when a day begins.

    Attributes:
        history: log(1 + count) of each history feature, in the order of HISTORY_FEATURES,
            (n, 10) float32; counts are heavy-tailed. (n, 0) where they are left out.
        metadata: ids in the order of METADATA_FEATURES, (n, 7) int32; (n, 0) where left out.
    """

    history: FloatColumns
    metadata: IdColumns

    def __len__(self) -> int:
        """Return the number of rows, n."""
        return len(self.history)

    def of(self, features: str) -> Columns:
        """Return the columns of ``metadata``, ``history`` or ``both``."""
        history, metadata = self
        return Columns(
            history if features != "metadata" else history[:, :0],
            metadata if features != "history" else metadata[:, :0],
        )


Table: TypeAlias = tuple[Columns, NDArray[np.bool_]]
"""Scaled columns of n examples and their labels, (n,) bool."""
Report: TypeAlias = Callable[[float, str], None]
"""Callback for the progress of training: a share in [0, 1], and a short text."""


def columns_of(offers: OfferFeatures, pages: NDArray[np.int64] | None = None) -> Columns:
    """Return the columns of offers when a day begins; of some ``pages``, (n,), or of all."""
    rows = slice(None) if pages is None else pages
    ids = [array[rows] for array in offers.metadata]
    history = np.empty((len(ids[0]), len(HISTORY_FEATURES)), np.float32)
    for column, name in enumerate(HISTORY_FEATURES):
        counts = getattr(offers, name)[rows] * np.float32(COUNTED[name])
        np.log1p(counts, out=history[:, column])
    weekday = np.full(len(history), offers.day_of_week, np.int32)
    return Columns(history, np.column_stack([*ids, weekday]))


class Scaling(NamedTuple):
    """Means and spreads of the history columns of a training table, (10,) float32 each."""

    mean: FloatColumns
    spread: FloatColumns

    @classmethod
    def learn(cls, history: FloatColumns) -> Scaling:
        """Return the scaling of columns to mean 0 and spread 1; constants are only shifted."""
        mean = history.mean(axis=0, dtype=np.float64)
        spread = history.std(axis=0, dtype=np.float64)
        return cls(mean.astype(np.float32), np.where(spread > 1e-6, spread, 1.0).astype(np.float32))

    def __call__(self, history: FloatColumns) -> FloatColumns:
        """Return the scaled columns, (n, 10) float32."""
        scaled: FloatColumns = (history - self.mean) / self.spread
        return scaled
