"""Map ids (of brands, merchants, ...) to the rows of one table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


class Vocabulary:
    """A table that gives the known ids of each column a row of a model's table.

    The rows of all columns are in one table, column after column. Unknown ids (unseen or rare)
    share the first row of their column.

    Attributes:
        ids: by column, the known ids in rising order, >= 0.
        shared: number of each column's shared row, (c,) int32.
        size: rows of the table.
    """

    def __init__(self, ids: list[NDArray[np.int32]]) -> None:
        self.ids = ids
        ends = np.cumsum([0] + [1 + len(column) for column in ids], dtype=np.int32)
        self.shared, self.size = ends[:-1], int(ends[-1])
        self._rows = []  # by column and id + 1; ids below 0 and above the largest get an end
        for first, column in zip(self.shared, ids, strict=True):
            rows = np.full(int(column.max(initial=-1)) + 3, first, np.int32)
            rows[column + 1] = first + 1 + np.arange(len(column), dtype=np.int32)
            self._rows.append(rows)

    @classmethod
    def learn(cls, ids: NDArray[np.integer], min_rows: int = 1) -> Vocabulary:
        """Return the vocabulary of a table, (n, c), of ids in ``min_rows`` rows or more.

        Negative ids, and those beyond int32, count as unknown.
        """
        columns = []
        for column in ids.T:
            values, counts = np.unique(column, return_counts=True)
            frequent = (counts >= min_rows) & (values >= 0) & (values <= np.iinfo(np.int32).max)
            columns.append(values[frequent].astype(np.int32))
        return cls(columns)

    def rows(self, ids: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the rows of ids, (n, c) int32; unknown and negative ones get the shared row."""
        rows = np.empty(ids.shape, np.int32)
        for column, table in enumerate(self._rows):
            np.take(table, ids[:, column].astype(np.int64) + 1, mode="clip", out=rows[:, column])
        return rows

    def arrays(self) -> Arrays:
        """Return the known ids as arrays by name, to be stored in a file."""
        return {f"model_known_{column}": ids for column, ids in enumerate(self.ids)}

    @classmethod
    def take(cls, arrays: Arrays, columns: int) -> Vocabulary:
        """Build the vocabulary of a number of columns from the arrays of a file."""
        return cls([arrays[f"model_known_{column}"] for column in range(columns)])
