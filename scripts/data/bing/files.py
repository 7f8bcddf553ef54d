"""The five files of the Bing set, plain or gzipped, read by Arrow in blocks of whole lines."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import BoolArray, FloatArray
from scripts.data.progress import Advance

URLS = "url_urlid_hostid"
HOSTS = "host_hostid_isconstrained"
IMPORTANCE = "urlid_imp"
HISTORIES = "urlid_offset_history"
GIVEN_RATES = "urlid_chrate_compl_obs_hist"
ENDINGS = (".txt", ".tsv", "")

BLOCK = 2**25
"""Bytes of text read at a time: the greatest length of a line."""
SHOWN = 60
"""Characters of a bad line shown in errors."""

WHOLE, FLAG = "[0-9]{1,15} *", "[01] *"
NUMBER = r"[0-9]{1,30}(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?"
CRAWL = rf"\[ *{NUMBER} *, *[01] *\]"
CRAWLS = rf"\[ *({CRAWL}( *, *{CRAWL})*)? *\] *"


class Format(NamedTuple):
    """Patterns of the columns of a file, None for text of any kind; and a line in words."""

    patterns: tuple[str | None, ...]
    line: str


FORMATS = {
    URLS: Format((None, WHOLE, WHOLE), "URL, URL_ID and Host_ID, separated by tabs"),
    HOSTS: Format((None, WHOLE, FLAG), "Host_URL, Host_ID and 0 or 1, separated by tabs"),
    IMPORTANCE: Format(
        (WHOLE, WHOLE), "URL_ID and a whole importance score >= 0, separated by a tab"
    ),
    GIVEN_RATES: Format(
        (WHOLE, f"{NUMBER} *"), "URL_ID and a change rate >= 0, separated by a tab"
    ),
    HISTORIES: Format(
        (WHOLE, f"{NUMBER} *", CRAWLS),
        "URL_ID, offset of the first crawl in days and [[days since the crawl before, 0 or 1], "
        "...], separated by tabs, with days > 0 where changed",
    ),
}


def find(folder: Path) -> dict[str, Path]:
    """Return the paths of the five files: NAME, NAME.txt or NAME.tsv, each optionally .gz.

    Raises:
        ValueError: the folder or a file is missing, or a file exists twice.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder, expected the five files of the Bing set")
    paths = {}
    for name in FORMATS:
        tried = [folder / f"{name}{ending}{packed}" for ending in ENDINGS for packed in ("", ".gz")]
        there = [path for path in tried if path.is_file()]
        if not there:
            raise ValueError(f"{folder}: no file {name}.txt or {name}.txt.gz in it")
        if len(there) > 1:
            raise ValueError(f"{folder}: expected one of {there[0].name} and {there[1].name}")
        paths[name] = there[0]
    return paths


class _Stream:
    """An unpacked file that reports its progress and remembers its last byte."""

    closed = False

    def __init__(self, raw: IO[bytes], packed: bool, advance: Advance) -> None:
        self.raw, self.advance, self.at, self.last = raw, advance, 0, b"\n"
        self.text: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw

    def read(self, size: int) -> bytes:
        read = self.text.read(size)
        self.advance(self.raw.tell() - self.at)
        self.at, self.last = self.raw.tell(), read[-1:] or self.last
        return read

    def close(self) -> None:
        self.closed = True


def read(
    name: str,
    path: Path,
    *,
    start: int = 0,
    block: int = BLOCK,
    advance: Advance = lambda amount: None,
) -> Iterator[tuple[int, list[Any]]]:
    """Yield the number of the first line of each block, and its columns but for texts.

    Args:
        name: name of the file in FORMATS.
        path: path of the file; gzipped if it ends in ``.gz``.
        start: number of lines to skip.
        block: bytes of text read at a time.
        advance: called with the numbers of bytes read from the file on disk.

    Raises:
        ValueError: a malformed line, no newline at the end, or an invalid gzip file.
    """
    form, first_line, last = FORMATS[name], start + 1, ""
    with path.open("rb") as raw:
        stream = _Stream(raw, path.suffix == ".gz", advance)
        try:
            for batch in _batches(path, stream, form, start, block):
                columns = batch.columns
                bad = np.logical_or.reduce(
                    [
                        _differs(column, pattern)
                        for column, pattern in zip(columns, form.patterns, strict=True)
                        if pattern is not None
                    ]
                )
                if bad.any():
                    row = int(np.argmax(bad))
                    raise malformed(path, first_line + row, form.line, _line(columns, row))
                last = _line(columns, -1)
                yield (
                    first_line,
                    [c for c, p in zip(columns, form.patterns, strict=True) if p is not None],
                )
                first_line += batch.num_rows
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{path}, from line {first_line} on: expected a whole gzip file, but {error}"
            ) from None
    if stream.last != b"\n":
        raise malformed(path, first_line - 1, "a newline at the end of a whole file", last)


def malformed(path: Path, line: int, expected: str, got: str) -> ValueError:
    """Return the error for a bad line."""
    got = got[:SHOWN] + "..." if len(got) > SHOWN else got
    return ValueError(f"{path}, line {line}: expected {expected}, got {got!r}")


def _batches(path: Path, stream: _Stream, form: Format, start: int, block: int) -> Iterator[Any]:
    """Yield batches of columns of bytes."""
    import pyarrow as pa
    from pyarrow import csv

    wrong: list[Any] = []

    def keep(row: Any) -> str:
        wrong.append(row)
        return "error"

    names = [str(column) for column in range(len(form.patterns))]
    try:
        yield from csv.open_csv(
            pa.PythonFile(stream, mode="r"),
            csv.ReadOptions(
                use_threads=False,
                block_size=block,
                skip_rows_after_names=start,
                column_names=names,
            ),
            csv.ParseOptions(
                delimiter="\t", quote_char=False, ignore_empty_lines=False, invalid_row_handler=keep
            ),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.binary()), null_values=[]),
        )
    except pa.ArrowInvalid as error:
        if wrong:
            raise malformed(path, wrong[0].number, form.line, wrong[0].text) from None
        if "Empty CSV file" not in str(error):
            raise ValueError(f"{path}: expected lines of at most {block} bytes: {error}") from None


def _differs(column: Any, pattern: str) -> BoolArray:
    """Return which cells do not match a pattern as a whole."""
    from pyarrow import compute

    matches = compute.match_substring_regex(column, f"^({pattern})$")
    return ~matches.to_numpy(zero_copy_only=False)


def _line(columns: list[Any], row: int) -> str:
    return b"\t".join(column[row].as_py() for column in columns).decode("utf-8", "replace")


def numbers(column: Any) -> FloatArray:
    """Return a column of numbers, the nearest float64 of each, (lines,)."""
    from pyarrow import compute

    text = compute.utf8_trim_whitespace(column.cast("string"))
    return text.cast("double").to_numpy(zero_copy_only=False)


def crawls(column: Any) -> tuple[NDArray[Any], FloatArray, NDArray[Any]]:
    """Return the crawls of a column of histories.

    Returns:
        The start of each line's crawls, (lines + 1,); and of all crawls, the days since the crawl
        before and whether the page had changed, 0 or 1.
    """
    from pyarrow import compute

    for sign in b"[] ":
        column = compute.replace_substring(column, bytes([sign]), b"")
    split = compute.split_pattern(column, b",")
    empty = compute.equal(column, b"").to_numpy(zero_copy_only=False)
    counts = np.where(empty, 0, compute.list_value_length(split).to_numpy() // 2)
    flat = compute.list_flatten(split)
    values = numbers(flat.filter(compute.not_equal(flat, b""))).reshape(-1, 2)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return offsets, np.ascontiguousarray(values[:, 0]), values[:, 1].astype(np.uint8)
