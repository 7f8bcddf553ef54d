"""Input columns of a model from the features of offers on a day."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types.offer_features import (
    HISTORY_DAYS,
    HISTORY_FEATURES,
    METADATA_FEATURES,
    OfferFeatures,
)

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
        """Return the columns of ``metadata``, ``history`` or ``both``.

        Raises:
            ValueError: the table was made without them.
        """
        kept = keep(self, features)
        for name, array in zip(("history", "metadata"), kept, strict=True):
            if features in (name, "both") and array.shape[1] == 0:
                raise ValueError(f"columns must hold the {name} features, got none of them")
        return kept


def keep(columns: Columns, features: str) -> Columns:
    """Return the columns, without those that ``features`` does not name."""
    history, metadata = columns
    return Columns(
        history if features != "metadata" else history[:, :0],
        metadata if features != "history" else metadata[:, :0],
    )


def columns_of(
    offers: OfferFeatures, features: str = "both", pages: NDArray[np.int64] | None = None
) -> Columns:
    """Return the columns of offers.

    Args:
        offers: features when a day begins.
        features: ``metadata``, ``history`` or ``both``.
        pages: rows to take, (n,); all if None.
    """
    rows = slice(None) if pages is None else pages
    count = len(offers.change_frequency[rows])
    history = np.empty((count, len(HISTORY_FEATURES) * (features != "metadata")), np.float32)
    metadata = np.empty((count, len(METADATA_FEATURES) * (features != "history")), np.int32)
    if features != "metadata":
        for column, name in enumerate(HISTORY_FEATURES):
            counts = getattr(offers, name)[rows] * np.float32(COUNTED[name])
            np.log1p(counts, out=history[:, column])
    if features != "history":
        for column, name in enumerate(METADATA_FEATURES[:-1]):
            metadata[:, column] = getattr(offers.metadata, name)[rows]
        metadata[:, -1] = offers.day_of_week
    return Columns(history, metadata)


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
