"""Columns of a file of one's own, as arrays; an error names file, line, column and value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.instances.logs.times import EXPECTED, NUMBER, Times, parse_times
from crawl_envs.types import BoolArray, FloatArray, IntArray


class Wanted(NamedTuple):
    """Columns to read.

    Attributes:
        known: pattern of the words of the suite for them.
        required: words that must be there.
        columns: names in the file of columns that have other names.
    """

    known: re.Pattern[str]
    required: tuple[str, ...]
    columns: Mapping[str, str] = MappingProxyType({})

    def includes(self, name: str) -> bool:
        """Return whether to read a column of the file."""
        return bool(self.known.fullmatch(name)) or name in self.columns.values()

    def names(self, path: Path, present: Iterable[str]) -> dict[str, str]:
        """Return the columns to read, as word of the suite: name in the file.

        Raises:
            ValueError: an unknown word, or a column that is not ``present``, or more than once.
        """
        present = list(present)
        words = {name: name for name in present if name not in self.columns.values()}
        words = {word: name for word, name in words.items() if self.includes(name)}
        words |= self.columns
        for word in (*self.columns, *self.required):
            name = words.get(word, word)
            if not self.known.fullmatch(word):
                raise ValueError(f"columns must have keys {self.known.pattern}, got {word!r}")
            if name not in present:
                raise ValueError(f"{path}: column {name!r} ({word}) is missing, got {present}")
        for name in words.values():
            if present.count(name) > 1:
                raise ValueError(f"{path}: column {name!r} is there {present.count(name)} times")
        return words


class Codes(NamedTuple):
    """Texts as numbers: ``number`` of each row, (n,) int64, -1 if null, in ``texts``, an array."""

    number: IntArray
    texts: Any


class Columns:
    """Columns of n rows; words are those of the suite, whatever the file calls them.

    Args:
        path: the file.
        table: Arrow table, with the names of the file.
        names: the file's name of each word.
        locate: returns where a row is, such as "line 17".
    """

    def __init__(
        self, path: Path, table: Any, names: Mapping[str, str], locate: Callable[[int], str]
    ) -> None:
        self.path, self.names, self._locate = path, names, locate
        self._columns = {word: table[name].combine_chunks() for word, name in names.items()}
        self.num_rows: int = table.num_rows
        if not self.num_rows:
            raise ValueError(f"{path} is empty, expected at least one row")

    def __contains__(self, word: str) -> bool:
        """Return whether there is a column."""
        return word in self._columns

    def __iter__(self) -> Iterator[str]:
        """Iterate over the words, in the order of the file."""
        return iter(self._columns)

    def check(self, word: str, wrong: BoolArray, expected: str) -> None:
        """Raise ValueError for the first row in the mask ``wrong``, (n,), if there is one."""
        if wrong.any():
            row = int(np.argmax(wrong))
            value = self._columns[word][row].as_py()
            got = "nothing" if value in (None, "") else repr(value)
            raise ValueError(
                f"{self.path}, {self._locate(row)}, column {self.names[word]!r}: got {got}, "
                f"expected {expected}"
            )

    def text(self, word: str) -> Any:
        """Return a column as Arrow strings without blanks at the ends, null where empty."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            texts = pc.utf8_trim_whitespace(self._columns[word].cast(pa.large_string()))
        except pa.ArrowException:
            kind = self._columns[word].type
            raise ValueError(
                f"{self.path}: column {self.names[word]!r} has type {kind}, expected text"
            ) from None
        return pc.if_else(pc.equal(texts, ""), None, texts)

    def codes(self, word: str, *, optional: bool = False) -> Codes:
        """Return texts as numbers, in the order of first mention; nulls only if ``optional``."""
        import pyarrow.compute as pc

        texts = self.text(word).dictionary_encode()
        number = pc.fill_null(texts.indices, -1).to_numpy(zero_copy_only=False)
        self.check(word, (number < 0) & (not optional), "text")
        return Codes(number.astype(np.int64), texts.dictionary)

    def words(self, word: str, *, optional: bool = False) -> NDArray[np.object_]:
        """Return texts as str objects; nulls are refused, or "" if ``optional``."""
        texts = self.text(word)
        self.check(word, texts.is_null().to_numpy(zero_copy_only=False) & (not optional), "text")
        values: NDArray[np.object_] = texts.fill_null("").to_numpy(zero_copy_only=False)
        return values

    def numbers(self, word: str, expected: str = "a number") -> FloatArray:
        """Return numbers, NaN where there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = self.text(word)
        absent = pc.fill_null(pc.is_in(texts, pa.array(["nan", "NaN"], texts.type)), False)
        known = pc.fill_null(pc.match_substring_regex(texts, NUMBER), False)
        wrong = pc.and_not(pc.and_not(pc.is_valid(texts), known), absent)
        self.check(word, wrong.to_numpy(zero_copy_only=False), expected)
        number = pc.if_else(known, texts, None).cast(pa.float64())
        values: FloatArray = np.array(number.to_numpy(zero_copy_only=False))
        return values

    def flags(self, word: str) -> FloatArray:
        """Return truth values as 1 and 0, NaN where there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pc.utf8_lower(self.text(word))
        forms = pa.array(["0", "1", "false", "true", "0.0", "1.0"], texts.type)
        index = pc.index_in(texts, forms).cast(pa.float64())
        values: FloatArray = np.array(index.to_numpy(zero_copy_only=False))
        wrong = np.isnan(values) & texts.is_valid().to_numpy(zero_copy_only=False)
        self.check(word, wrong, "0, 1, true or false")
        return values % 2.0

    def times(self, word: str, dated: bool | None = None, *, optional: bool = False) -> Times:
        """Return times, all with a date or all in days; NaN where there is none if ``optional``.

        ``dated`` tells which, None if the first time does.
        """
        import pyarrow as pa

        column = self._columns[word]
        kind = column.type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if not (pa.types.is_temporal(kind) or numeric):
            column = self.text(word)
        times = parse_times(column)
        known = ~np.isnan(times.value)
        given = column.is_valid().to_numpy(zero_copy_only=False)
        self.check(word, ~known & (given | (not optional)), EXPECTED)
        if dated is None:
            dated = bool(times.dated[np.argmax(known)])
        expected = "a date and time" if dated else "a number of days"
        self.check(word, known & (times.dated != dated), f"{expected}, as other times")
        return times
