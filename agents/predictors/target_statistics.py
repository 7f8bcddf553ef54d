"""Ids as numbers: the shares of positives among other examples of the same id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.predictors.columns import FloatColumns, IdColumns
from agents.predictors.vocabulary import Vocabulary

FloatArray = NDArray[np.float64]


class TargetStatistics:
    """Shares of positives by id, learned from a training table alone.

    An id with k positives in n examples becomes (k + s·q) / (n + s), with q the overall share of
    positives and s the strength; an unknown id becomes q.

    Attributes:
        vocabulary: the known ids.
        shares: by row of the vocabulary, (rows,) float64.
    """

    def __init__(self, vocabulary: Vocabulary, shares: FloatArray) -> None:
        self.vocabulary, self.shares = vocabulary, shares

    @classmethod
    def learn(cls, ids: IdColumns, labels: NDArray[np.bool_], strength: float) -> TargetStatistics:
        """Return the statistics of a table, (n, c) ids and (n,) labels."""
        vocabulary = Vocabulary.learn(ids)
        rows = vocabulary.rows(ids)
        return cls(vocabulary, _shares(rows, labels, vocabulary.size, strength))

    def of_training(
        self, ids: IdColumns, labels: NDArray[np.bool_], strength: float, folds: int, seed: int
    ) -> FloatColumns:
        """Return the statistics of the training table itself, (n, c) float32.

        The statistics of a fold come from the other folds. Otherwise a rare id would leak its
        label.
        """
        rows = self.vocabulary.rows(ids)
        fold = np.random.default_rng(seed).integers(0, folds, len(ids))
        table = np.empty(ids.shape, np.float32)
        for number in range(folds):
            inside = fold == number
            others = rows[~inside], labels[~inside]
            table[inside] = _shares(*others, self.vocabulary.size, strength)[rows[inside]]
        return table

    def __call__(self, ids: IdColumns) -> FloatColumns:
        """Return the statistics of new examples, (n, c) float32."""
        table: FloatColumns = self.shares[self.vocabulary.rows(ids)].astype(np.float32)
        return table

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the argument of :meth:`from_arrays`."""
        return {**self.vocabulary.arrays(), "shares": self.shares}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> TargetStatistics:
        """Return the statistics of :meth:`arrays`."""
        return cls(Vocabulary.from_arrays(arrays), arrays["shares"])


def _shares(
    rows: NDArray[np.int32], labels: NDArray[np.bool_], size: int, strength: float
) -> FloatArray:
    """Return the smoothed share of positives of each of ``size`` rows."""
    overall = float(labels.mean())
    counts = np.bincount(rows.ravel(), minlength=size)
    positives = np.bincount(rows[labels].ravel(), minlength=size)
    shares: FloatArray = (positives + strength * overall) / (counts + strength)
    return shares
