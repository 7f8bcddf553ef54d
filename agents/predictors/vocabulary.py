"""Ids (of brands, merchants, ...) as rows of one table, with shared rows for unknown ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agents.predictors.columns import IdColumns
from agents.predictors.stored import Stored

RowColumns = NDArray[np.int32]


class Vocabulary:
    """The known ids of a model, by column.

    The rows of all columns are in one table, column after column. The first row of a column is
    shared by all unknown ids: never seen, or too rarely.

    Attributes:
        known: by column, the known ids in rising order, >= 0.
        shared: number of each column's shared row, (c,) int32.
        size: rows of the table.
    """

    def __init__(self, known: list[NDArray[np.int32]]) -> None:
        self.known = known
        ends = np.cumsum([0] + [1 + len(ids) for ids in known], dtype=np.int32)
        self.shared, self.size = ends[:-1], int(ends[-1])
        self._rows = []
        for first, ids in zip(self.shared, known, strict=True):
            rows = np.full(int(ids.max(initial=-1)) + 2, first, np.int32)
            rows[ids] = first + 1 + np.arange(len(ids), dtype=np.int32)
            self._rows.append(rows)

    @classmethod
    def learn(cls, ids: IdColumns, least: int = 1) -> Vocabulary:
        """Return the vocabulary of a table.

        Args:
            ids: (n, c); negative ids count as unknown.
            least: minimal number of rows with a known id, >= 1.
        """
        known = []
        for column in ids.T:
            seen, counts = np.unique(column, return_counts=True)
            known.append(seen[(counts >= least) & (seen >= 0)].astype(np.int32))
        return cls(known)

    def rows(self, ids: IdColumns) -> RowColumns:
        """Return the rows of ids, (n, c) int32; unknown and negative ones get the shared row."""
        rows = np.empty(ids.shape, np.int32)
        for column, table in enumerate(self._rows):
            last = len(table) - 1
            own = ids[:, column]
            np.take(table, np.where((own < 0) | (own > last), last, own), out=rows[:, column])
        return rows

    def arrays(self) -> dict[str, NDArray[np.int32]]:
        """Return the known ids, as :meth:`take` reads them."""
        return {f"model_known_{column}": ids for column, ids in enumerate(self.known)}

    @classmethod
    def take(cls, stored: Stored, columns: int) -> Vocabulary:
        """Return the vocabulary in a file; ValueError if it is damaged."""
        known = [stored.take(f"model_known_{column}", np.int32, None) for column in range(columns)]
        for column, ids in enumerate(known):
            if ids.min(initial=0) < 0 or (np.diff(ids) <= 0).any():
                raise ValueError(f"model_known_{column} must rise from 0 or more")
        return cls(known)
