"""Ids (of brands, merchants, ...) as rows of one table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


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
        self._rows = []  # by column and id + 1; ids below 0 and above all known find an end
        for first, ids in zip(self.shared, known, strict=True):
            rows = np.full(int(ids.max(initial=-1)) + 3, first, np.int32)
            rows[ids + 1] = first + 1 + np.arange(len(ids), dtype=np.int32)
            self._rows.append(rows)

    @classmethod
    def learn(cls, ids: NDArray[np.integer], least: int = 1) -> Vocabulary:
        """Return the vocabulary of a table, (n, c), of ids in at least so many of its rows.

        Negative ids, and those beyond int32, count as unknown.
        """
        known = []
        for column in ids.T:
            seen, counts = np.unique(column, return_counts=True)
            kept = (counts >= least) & (seen >= 0) & (seen <= np.iinfo(np.int32).max)
            known.append(seen[kept].astype(np.int32))
        return cls(known)

    def rows(self, ids: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the rows of ids, (n, c) int32; unknown and negative ones get the shared row."""
        rows = np.empty(ids.shape, np.int32)
        for column, table in enumerate(self._rows):
            np.take(table, ids[:, column].astype(np.int64) + 1, mode="clip", out=rows[:, column])
        return rows

    def arrays(self) -> Arrays:
        """Return the known ids, as :meth:`take` reads them."""
        return {f"model_known_{column}": ids for column, ids in enumerate(self.known)}

    @classmethod
    def take(cls, arrays: Arrays, columns: int) -> Vocabulary:
        """Return the vocabulary of a number of columns in a file."""
        return cls([arrays[f"model_known_{column}"] for column in range(columns)])
