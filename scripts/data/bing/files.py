"""The five files of the Bing set, plain or gzipped, read in blocks of whole lines."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray
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

TEXT, WHOLE, FLAG = r"[^\t]*", "[0-9]{1,15} *", "[01] *"
NUMBER = r"[0-9]{1,30}(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?"
CRAWL = rf"\[ *{NUMBER} *, *[01] *\]"
CRAWLS = rf"\[ *({CRAWL}( *, *{CRAWL})*)? *\] *"


class Format(NamedTuple):
    """Patterns of the columns of a file, of which TEXT is not read; and a line in words."""

    patterns: tuple[str, ...]
    line: str


FORMATS = {
    URLS: Format((TEXT, WHOLE, WHOLE), "URL, URL_ID and Host_ID, separated by tabs"),
    HOSTS: Format((TEXT, WHOLE, FLAG), "Host_URL, Host_ID and 0 or 1, separated by tabs"),
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
    number, rest = 1, b""
    try:
        for text in _blocks(path, block, advance):
            whole, newline, rest = (rest + text).rpartition(b"\n")
            if not newline and len(rest) >= block:
                raise ValueError(f"{path}: expected lines of at most {block} bytes, from {number}")
            lines = whole.split(b"\n") if newline else []
            skipped = min(max(start + 1 - number, 0), len(lines))
            if skipped < len(lines):
                yield number + skipped, _columns(name, path, number + skipped, lines[skipped:])
            number += len(lines)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{path}, from line {number} on: expected a whole gzip file, but {error}"
        ) from None
    if rest:
        raise malformed(path, number, "a newline at the end of a whole file", rest)


def _blocks(path: Path, block: int, advance: Advance) -> Iterator[bytes]:
    """Yield the unpacked text of a file."""
    with path.open("rb") as raw:
        unpacked: IO[bytes] = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        at = 0
        while text := unpacked.read(block):
            advance(raw.tell() - at)
            at = raw.tell()
            yield text


def _columns(name: str, path: Path, number: int, lines: list[bytes]) -> list[Any]:
    """Return the columns but for texts of lines, the first of which has a number in the file."""
    import pyarrow as pa
    from pyarrow import compute

    patterns, said = FORMATS[name]
    rows = pa.array(lines, pa.binary())
    right = compute.match_substring_regex(rows, "^" + r"\t".join(patterns) + r"\r?$")
    if not compute.all(right).as_py():
        row = compute.index(right, False).as_py()
        raise malformed(path, number + row, said, lines[row])
    split = compute.split_pattern(rows, b"\t")
    read = [column for column, pattern in enumerate(patterns) if pattern != TEXT]
    return [compute.list_element(split, column) for column in read]


def malformed(path: Path, line: int, expected: str, got: bytes) -> ValueError:
    """Return the error for a bad line."""
    text = got.rstrip(b"\r").decode("utf-8", "replace")
    text = text[:SHOWN] + "..." if len(text) > SHOWN else text
    return ValueError(f"{path}, line {line}: expected {expected}, got {text!r}")


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

    for sign in b"[] \r":
        column = compute.replace_substring(column, bytes([sign]), b"")
    split = compute.split_pattern(column, b",")
    empty = compute.equal(column, b"").to_numpy(zero_copy_only=False)
    counts = np.where(empty, 0, compute.list_value_length(split).to_numpy() // 2)
    flat = compute.list_flatten(split)
    values = numbers(flat.filter(compute.not_equal(flat, b""))).reshape(-1, 2)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return offsets, np.ascontiguousarray(values[:, 0]), values[:, 1].astype(np.uint8)
