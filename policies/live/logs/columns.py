"""Read columns of a user's file as arrays; errors name the file, line, column and value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.logs.times import NUMBER, STAMP_EXPECTED, Times, parse_times

FLAGS = dict.fromkeys(("0", "0.0", "false", "f", "no", "n", "same", "unchanged"), 0.0)
FLAGS |= dict.fromkeys(("1", "1.0", "true", "t", "yes", "y", "new", "changed"), 1.0)
"""Truth values, 1 or 0, of texts in lower case that say whether content has changed."""
REPLACED = "\ufffd"
"""The character that replaces bytes that are not UTF-8."""
ABSENT = ("", "-", "null", "NULL", "None", "nan", "NaN", "N/A", "\\N")
"""Texts that mean a missing value, as databases and data frames write it."""
MOST_NAMED = 12
"""Most columns that a note names."""


class Wanted(NamedTuple):
    """Columns to read, whatever the case of their names, with blanks or hyphens for underscores.

    Attributes:
        word_pattern: pattern of the words of the suite for them.
        required: words that must be there.
        columns: a column's name in the file by word, if it has another name; "" to skip a column.
        aliases: tables from other names, in small letters without underscores, to words. A table
            is used if the file has no column with the word or a name of an earlier table.
        absent: texts that mean a missing value.
        max_bad: largest share of rows that may be left out as unreadable; if it is positive, one
            row may be left out in any case.
        option: option of commands that gives ``columns``, for errors; empty if there is none.
        options: words whose column has an option of its own, of the same name.
    """

    word_pattern: re.Pattern[str]
    required: tuple[str, ...]
    columns: Mapping[str, str] = MappingProxyType({})
    aliases: Sequence[Mapping[str, str]] = ()
    absent: tuple[str, ...] = ("",)
    max_bad: float = 0.0
    option: str = "column"
    options: tuple[str, ...] = ()

    def with_option(self, word: str, name: str) -> Wanted:
        """Also read the column ``name`` for a word, which is an option of commands."""
        if not name or word in self.columns or name in self.columns.values():
            raise ValueError(f"{word} must name a column that is not read yet, got {name!r}")
        pattern = re.compile(f"{self.word_pattern.pattern}|{word}")
        columns, options = {**self.columns, word: name}, (*self.options, word)
        return self._replace(word_pattern=pattern, columns=columns, options=options)

    def word(self, name: str) -> tuple[str, int]:
        """Return the suite's word for a column of a file, or "", and the rank of its aliases.

        The rank is 0 for the word itself, and the number of its table of aliases from 1 on. A
        value in an object, such as ``hash.md5``, has the object's word, at the last rank.
        """
        head, colon, tail = name.strip().partition(":")
        folded = re.sub("[ -]", "_", head.lower()) + colon + tail
        if self.word_pattern.fullmatch(folded):
            return folded, 0
        plain, outer = folded.replace("_", ""), folded.partition(".")[0]
        tables = (*self.aliases, {plain: outer} if self.word_pattern.fullmatch(outer) else {})
        for rank, table in enumerate(tables, 1):
            if plain in table:
                return table[plain], rank
        return "", 0

    def includes(self, name: str) -> bool:
        """Return whether to read a column of the file."""
        return bool(self.word(name)[0]) or name in self.columns.values()

    def way_out(self, word: str, *, needed: bool = False) -> str:
        """Return the end of an error message: which option names another column for a word."""
        if not self.option:
            return ""
        if word in self.options:
            return f"; give --{word} NAME (in Python: {word})"
        none = "" if needed or word in self.required else f", or --{self.option} {word}= for none"
        return f"; give --{self.option} {word}=NAME{none} (in Python: {self.argument})"

    @property
    def argument(self) -> str:
        """Name of the argument of functions that has ``columns``."""
        return f"{self.option.replace('-', '_')}s"

    def names(self, path: Path, present: Iterable[str]) -> dict[str, str]:
        """Return the columns to read, as word of the suite: name in the file.

        Raises:
            ValueError: an unknown word, a column that is not ``present``, or several, or an object.
        """
        present, columns = list(present), self.columns
        ranked: dict[str, dict[int, list[str]]] = {}
        for name in present:
            word, rank = self.word(name)
            if word and word not in columns and name not in columns.values():
                ranked.setdefault(word, {}).setdefault(rank, []).append(name)
        words = {word: names[min(names)] for word, names in ranked.items()}
        words |= {word: [x for x in present if x == name != ""] for word, name in columns.items()}
        for word in (*columns, *self.required):
            if not self.word_pattern.fullmatch(word):
                raise ValueError(
                    f"{self.argument} must have keys {self.word_pattern.pattern}, got {word!r}"
                )
            name = columns.get(word, word)
            if not words.get(word) and (name or word in self.required):
                missing = f"column {name or word!r} ({word}) is missing, got {present}"
                raise ValueError(f"{path}: {missing}{self.way_out(word)}")
        for word, names in words.items():
            nested = "." in "".join(names) and "." not in word and word not in columns
            if len(names) > 1 or nested:
                what = f"column {word!r} may be any of {names}, expected one"
                raise ValueError(f"{path}: {what}{self.way_out(word)}")
        return {word: names[0] for word, names in words.items() if names}


class BadRows:
    """Rows that cannot be read: their number, and what is wrong with the first ones.

    Args:
        share: largest share of all rows; if it is positive, one row may be bad.
    """

    def __init__(self, share: float) -> None:
        self.share, self.count = share, 0
        self._reasons: list[tuple[int, int, str, str]] = []

    def add(self, file: int, number: int, reason: str, way_out: str = "") -> None:
        """Count a bad row, given its file and its number in it; ValueError if no row may be bad."""
        if not self.share:
            raise ValueError(reason + way_out)
        self.count += 1
        self._reasons.append((file, number, reason, way_out))

    def settle(self, rows: int) -> tuple[str, ...]:
        """Return a sentence on the bad rows, if any; ValueError if too many of ``rows`` are bad."""
        if not self.count:
            return ()
        *_, reasons, ways_out = zip(*sorted(self._reasons)[:3], strict=True)
        few = f"{self.count} of {rows} rows cannot be read"
        if self.count > max(1.0, self.share * rows) or self.count == rows:
            raise ValueError(f"{reasons[0]}{ways_out[0]} ({few})")
        return (f"{few} and are left out: {'; '.join(reasons)}",)


class Codes(NamedTuple):
    """A column of texts as codes: each row's index in ``texts``, (n,) int64, -1 for null."""

    number: IntArray
    texts: Any


class Part(NamedTuple):
    """Rows of a file: an Arrow table, and the file's name of each word that is read from it.

    ``numbers`` are those of the rows in the file, (n,), which counts lines or rows (``counted``).
    ``notes`` are sentences on the file; its times may be ``stamped``, those of an archive.
    ``present`` are all columns that the file has.
    """

    path: Path
    table: Any
    names: Mapping[str, str]
    counted: str
    numbers: IntArray
    notes: tuple[str, ...] = ()
    stamped: bool = False
    present: tuple[str, ...] = ()


class Columns:
    """Columns of the n rows of some files; words are those of the suite, whatever the files say.

    Attributes:
        path: the first file.
        names: the first file's name for each word.
        present: names of all columns of the first file.
        bad: the rows that cannot be read, including rows that are not among the n.
        good: mask of the n rows that can be read, (n,).
        notes: sentences on what was guessed.
        stamped: whether bare numbers in ``time`` are stamps of an archive.
        wanted: the columns that were to be read.
    """

    def __init__(self, parts: Sequence[Part], wanted: Wanted, bad: BadRows) -> None:
        self.path, self.names, self.present = parts[0].path, parts[0].names, parts[0].present
        of_server = "urlkey" in self.names or self.names.get("url") == "original"
        of_server &= self.names.get("time", "").strip().lower() == "timestamp"
        self.stamped = parts[0].stamped or of_server
        self._parts, self.wanted = parts, wanted
        self._number = np.concatenate([part.numbers for part in parts])
        self._file = np.repeat(np.arange(len(parts)), [part.numbers.size for part in parts])
        table = _joined(parts)
        self._columns = {word: table[word].combine_chunks() for word in table.column_names}
        self.num_rows: int = table.num_rows
        self.bad, self.good = bad, np.ones(self.num_rows, np.bool_)
        self.notes = [note for part in parts for note in part.notes]
        if not self.num_rows:
            bad.settle(bad.count)
            raise ValueError(f"{self.path} is empty, expected at least one row")
        if "url" in self:
            damaged = pc.fill_null(pc.match_substring(self.text("url"), REPLACED), False)
            self.check("url", damaged.to_numpy(zero_copy_only=False), "a URL in UTF-8")

    def __contains__(self, word: str) -> bool:
        """Return whether there is a column."""
        return word in self._columns

    def __iter__(self) -> Iterator[str]:
        """Iterate over the words, in the order of the file."""
        return iter(self._columns)

    def check(self, word: str, wrong: BoolArray, expected: str) -> None:
        """Mark rows in the mask ``wrong``, (n,), as bad, or raise ValueError if none may be."""
        rows = np.flatnonzero(wrong & self.good)
        self.good[rows] = False
        for row in rows[:3].tolist():
            self.bad.add(*self.wrong(word, row, expected), self.wanted.way_out(word))
        self.bad.count += max(rows.size - 3, 0)

    def wrong(self, word: str, row: int, expected: str) -> tuple[int, int, str]:
        """Return a row's file number, its number in the file, and a sentence on its wrong value."""
        value = self._columns[word][row].as_py()
        got = "nothing" if value in (None, "") else repr(value)
        file, number = int(self._file[row]), int(self._number[row])
        part = self._parts[file]
        where = f"{part.path}, {part.counted} {number}, column {part.names[word]!r}"
        return file, number, f"{where}: got {got}, expected {expected}"

    def settle(self) -> None:
        """Add a note on the bad rows; raise ValueError if they are too many."""
        self.notes += self.bad.settle(int(self.good.sum()) + self.bad.count)

    def text(self, word: str) -> Any:
        """Return a column as Arrow strings without blanks at the ends, null for missing values."""
        try:
            texts = pc.utf8_trim_whitespace(self._columns[word].cast(pa.large_string()))
        except pa.ArrowException:
            kind = self._columns[word].type
            what = f"column {self.names[word]!r} has type {kind}, expected text"
            raise ValueError(f"{self.path}: {what}{self.wanted.way_out(word)}") from None
        absent = pa.array(self.wanted.absent, texts.type)
        return pc.if_else(pc.is_in(texts, absent), None, texts)

    def codes(self, word: str, *, optional: bool = False) -> Codes:
        """Return a text column as codes by first mention; nulls are bad unless ``optional``."""
        texts = self.text(word).dictionary_encode()
        number = pc.fill_null(texts.indices, -1).to_numpy(zero_copy_only=False)
        self.check(word, (number < 0) & (not optional), "text")
        return Codes(number.astype(np.int64), texts.dictionary)

    def where(self, word: str, test: Callable[[str], bool]) -> BoolArray:
        """Return a mask of the rows whose text passes a test, (n,); False without the column."""
        if word not in self:
            return np.zeros(self.num_rows, np.bool_)
        number, texts = self.codes(word, optional=True)
        return np.array([*map(test, texts.to_pylist()), False])[number]

    def words(self, word: str, *, optional: bool = False) -> NDArray[np.object_]:
        """Return a text column as str objects; nulls are bad rows, or "" if ``optional``."""
        number, texts = self.codes(word, optional=optional)
        return np.array([*texts.to_pylist(), ""], np.object_)[number]

    def numbers(self, word: str, expected: str = "a number", inf: bool = False) -> FloatArray:
        """Return a column as numbers, NaN for missing values; other texts are bad rows."""
        return self._values(word, partial(_number, inf=inf), expected)

    def flags(self, word: str) -> FloatArray:
        """Return a column of truth values as 1 and 0, NaN for missing values."""
        return self._values(word, lambda text: FLAGS.get(text.lower()), "0, 1, true or false")

    def _values(self, word: str, read: Callable[[str], float | None], expected: str) -> FloatArray:
        """Convert a text column by ``read``, where None marks a bad row; NaN for missing values."""
        number, texts = self.codes(word, optional=True)
        values = [*map(read, texts.to_pylist()), np.nan]
        self.check(word, np.array([value is None for value in values])[number], expected)
        return np.array(values, np.float64)[number]

    def parsed(self, word: str, unit: str | None = None) -> tuple[Times, BoolArray]:
        """Parse a column of times without a check; return them and a mask of given values, (n,)."""
        column = self._columns[word]
        types = pa.types
        read = types.is_timestamp, types.is_date, types.is_integer, types.is_floating
        if not any(is_one(column.type) for is_one in read):
            column = self.text(word)
        return parse_times(column, unit), column.is_valid().to_numpy(zero_copy_only=False)

    def note_others(self, ours: str = "", file: str = "") -> None:
        """Add a note on the first file's unread columns, except names that match ``ours``."""
        unread = (name for name in self.present if name not in self.names.values())
        if names := [name for name in unread if not re.fullmatch(ours, name)]:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            named = ", ".join(map(repr, names[:MOST_NAMED]))
            self.notes.append(f"columns{file} that are not read: {named}{more}")

    def note(self, what: str, where: BoolArray) -> None:
        """Add a note with the number of rows in a mask, if there are any."""
        if where.any():
            self.notes.append(f"{what}: {np.count_nonzero(where)}")

    def guessed(self, word: str, guesses: Iterable[str]) -> None:
        """Add notes with the guesses that were made about a column."""
        self.notes += [f"{self.path}, column {self.names[word]!r}: {x}" for x in guesses]

    def times(
        self,
        word: str,
        dated: bool | None = None,
        *,
        unit: str | None = None,
        optional: bool = False,
    ) -> Times:
        """Return a column of times, either all dates or all days; missing ones are bad or NaN.

        ``dated`` says whether times must be dates, None for the majority's kind. ``unit`` is the
        unit of bare numbers, None to guess it. With ``optional``, missing times are NaN.
        """
        times, present = self.parsed(word, unit)
        readable = ~np.isnan(times.value)
        expected = STAMP_EXPECTED if unit == "stamp" else times.expected
        self.check(word, ~readable & (present | (not optional)), expected)
        if dated is None:
            dated = bool(readable.any() and times.dated[readable].mean() > 0.5)
        self.check(word, readable & (times.dated != dated), expected_kind(dated))
        self.guessed(word, times.guesses)
        return times


def aliases(**words: str) -> dict[str, str]:
    """Return a dict from each alias to its word; the aliases of a word are separated by blanks."""
    return {name: word for word, names in words.items() for name in names.split()}


def _number(text: str, inf: bool = False) -> float | None:
    """Convert a text to a number; None if it is no number, or not finite without ``inf``."""
    words = ("nan", "NaN", "inf", "Infinity") if inf else ("nan", "NaN")
    return float(text) if text in words or re.fullmatch(NUMBER, text, re.A) else None


def with_one_status(part: Part, wanted: Wanted) -> Part:
    """Keep one status column: ``status_code``, or ``status`` if only that has numbers."""

    def has_numbers(name: str) -> bool:
        texts = pc.unique(part.table[name].cast(pa.large_string())).to_pylist()
        return 2 * sum(_number(text or "") is not None for text in texts) > len(texts)

    names = dict(part.names)
    code, status = names.pop("status_code", ""), names.get("status", "")
    if code and "status" not in wanted.columns:
        text_only = bool(status) and has_numbers(status) and not has_numbers(code)
        names["status"] = status if text_only else code
    return part._replace(names=names)


def _joined(parts: Sequence[Part]) -> Any:
    """Join the tables of all files, with words as column names; ValueError if types differ."""
    tables = [x.table.select([*x.names.values()]).rename_columns([*x.names]) for x in parts]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise ValueError(
            f"{parts[0].path}: expected columns of the same types in all files, but {error}"
        ) from None


def expected_kind(dated: bool) -> str:
    """Return the words of an error on a time that is not of the same kind as other times."""
    return f"a {'date and time' if dated else 'number of days'}, as other times"
