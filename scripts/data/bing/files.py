"""Read the five files of the Bing set, plain or gzipped, in blocks of lines."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from agents.progress import ProgressBar
from crawl_envs.types import FloatArray, IntArray

URLS = "url_urlid_hostid"
HOSTS = "host_hostid_isconstrained"
IMPORTANCE = "urlid_imp"
HISTORIES = "urlid_offset_history"
GIVEN_RATES = "urlid_chrate_compl_obs_hist"
ENDINGS = (".txt", ".txt.gz")

BLOCK = 2**25
"""Bytes of text that are read at a time; the last line is read to its end."""

TEXT, INTEGER, FLAG = r"[^\t]*", "[0-9]{1,15} *", "[01] *"
NUMBER = r"[0-9]{1,30}(\.[0-9]+)?([eE][-+]?[0-9]{1,2})? *"
CRAWL = rf"\[ *{NUMBER}, *[01] *\]"
CRAWLS = rf"\[ *({CRAWL}( *, *{CRAWL})*)? *\] *"

FORMATS: Mapping[str, tuple[tuple[str, ...], str]] = {
    URLS: ((TEXT, INTEGER, INTEGER), "URL, URL_ID and Host_ID, separated by tabs"),
    HOSTS: ((TEXT, INTEGER, FLAG), "Host_URL, Host_ID and 0 or 1, separated by tabs"),
    IMPORTANCE: ((INTEGER, INTEGER), "URL_ID, a tab and a whole importance score >= 0"),
    GIVEN_RATES: ((INTEGER, NUMBER), "URL_ID, a tab and a change rate >= 0"),
    HISTORIES: (
        (INTEGER, NUMBER, CRAWLS),
        "URL_ID, offset of the first crawl in days and [[days since the crawl before, 0 or 1], "
        "...], separated by tabs",
    ),
}
"""For each file, the patterns of its columns (TEXT is not read) and a description of a line."""


def find(folder: Path) -> dict[str, Path]:
    """Return the paths of the five files, NAME.txt or NAME.txt.gz.

    Raises:
        ValueError: the folder or a file is missing, or a file exists twice.
    """
    if not folder.is_dir():
        raise ValueError(f"folder must have the five files of the Bing set, got {folder}")
    paths = {}
    for name in FORMATS:
        present = [path for end in ENDINGS if (path := folder / f"{name}{end}").is_file()]
        if len(present) != 1:
            count = "both" if present else "none"
            raise ValueError(f"{folder}: expected {name}.txt or {name}.txt.gz, got {count}")
        [paths[name]] = present
    return paths


def read(name: str, path: Path) -> Iterator[tuple[int, list[Any]]]:
    """Yield for each block of lines the number of its first line, and its columns except texts.

    A progress bar shows the share of the file that is read.

    Args:
        name: name of the file in FORMATS.
        path: path of the file; gzipped if it ends in ``.gz``.

    Raises:
        ValueError: a malformed line, no newline at the end, or an invalid gzip file.
    """
    number = 1
    try:
        with path.open("rb") as raw, ProgressBar("{task.percentage:.0f}%") as bar:
            task = bar.add_task(path.name, total=path.stat().st_size)
            packed = path.suffix == ".gz"
            text = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if packed else raw
            while lines := text.readlines(BLOCK):
                bar.update(task, completed=raw.tell())
                yield number, _columns(name, path, number, lines)
                number += len(lines)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{path}, from line {number} on: expected a complete gzip file, but {error}"
        ) from None


def _columns(name: str, path: Path, number: int, lines: list[bytes]) -> list[Any]:
    """Return the columns of lines except texts; the first line has the number ``number``."""
    patterns, expected = FORMATS[name]
    rows = pa.array(lines, pa.binary())
    valid = compute.match_substring_regex(rows, "^" + r"\t".join(patterns) + r"\r?\n$")
    if not compute.all(valid).as_py():
        row = compute.index(valid, False).as_py()
        if not lines[row].endswith(b"\n"):
            expected = "a newline at the end of a complete file"
        text = lines[row].rstrip(b"\r\n").decode("utf-8", "replace")
        text = text[:60] + "..." if len(text) > 60 else text
        raise ValueError(f"{path}, line {number + row}: expected {expected}, got {text!r}")
    split = compute.split_pattern(rows, b"\t")
    columns = [column for column, pattern in enumerate(patterns) if pattern != TEXT]
    return [compute.list_element(split, column) for column in columns]


def numbers(column: Any) -> FloatArray:
    """Convert a column of decimal texts to the nearest float64 numbers, (lines,)."""
    text = compute.utf8_trim_whitespace(column.cast("string"))
    values: FloatArray = text.cast("double").to_numpy(zero_copy_only=False)
    return values


def crawls(column: Any) -> tuple[IntArray, FloatArray, NDArray[np.uint8]]:
    """Parse a column of crawl histories.

    Returns:
        Three arrays: the index of each line's first crawl, (lines + 1,); and for each crawl, the
        days since the previous crawl and whether the page had changed, 0 or 1.
    """
    for sign in b"[] \r\n":
        column = compute.replace_substring(column, bytes([sign]), b"")
    split = compute.split_pattern(column, b",")
    empty = compute.equal(column, b"").to_numpy(zero_copy_only=False)
    counts = np.where(empty, 0, compute.list_value_length(split).to_numpy() // 2)
    flat = compute.list_flatten(split)
    values = numbers(flat.filter(compute.not_equal(flat, b""))).reshape(-1, 2)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    return offsets, np.ascontiguousarray(values[:, 0]), values[:, 1].astype(np.uint8)
