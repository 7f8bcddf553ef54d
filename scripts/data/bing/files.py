"""The five files of the Bing set, plain or gzipped, read in blocks of whole lines."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

URLS = "url_urlid_hostid"
HOSTS = "host_hostid_isconstrained"
IMPORTANCE = "urlid_imp"
HISTORIES = "urlid_offset_history"
GIVEN_RATES = "urlid_chrate_compl_obs_hist"
NAMES = (URLS, HOSTS, IMPORTANCE, GIVEN_RATES, HISTORIES)
ENDINGS = (".txt", ".tsv", "")

BLOCK = 2**25
"""Bytes of text read at a time; longer lines make longer blocks."""

LONGEST = 2**27
"""Largest length of a line in bytes: a longer one indicates another kind of file."""

SHOWN = 60
"""Characters of a bad line shown in errors."""


class Block(NamedTuple):
    """Whole lines of a file.

    Attributes:
        text: bytes that end with a newline; uint8.
        first_line: number of the first line, from 1.
        end: end position in the (unpacked) file.
    """

    text: NDArray[np.uint8]
    first_line: int
    end: int


def find(folder: Path) -> dict[str, Path]:
    """Return the paths of the five files: NAME, NAME.txt or NAME.tsv, each optionally .gz.

    Raises:
        ValueError: the folder or a file is missing, or a file exists twice.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder, expected the five files of the Bing set")
    paths = {}
    for name in NAMES:
        tried = [folder / f"{name}{ending}{packed}" for ending in ENDINGS for packed in ("", ".gz")]
        there = [path for path in tried if path.is_file()]
        if not there:
            raise ValueError(f"{folder}: no file {name}.txt or {name}.txt.gz in it")
        if len(there) > 1:
            raise ValueError(f"{folder}: expected one of {there[0].name} and {there[1].name}")
        paths[name] = there[0]
    return paths


def complain(path: Path, line: int, text: NDArray[np.uint8], expected: str) -> ValueError:
    """Return the error for a bad line, given the bytes from its start."""
    shown = bytes(text[: SHOWN + 1]).split(b"\n")[0].decode("utf-8", "replace")
    if len(shown) > SHOWN:
        shown = shown[:SHOWN] + "..."
    return ValueError(f"{path}, line {line}: expected {expected}, got {shown!r}")


def blocks(
    path: Path,
    *,
    start: int = 0,
    first_line: int = 1,
    size: int = BLOCK,
    advance: Callable[[int], object] = lambda _: None,
) -> Iterator[Block]:
    """Read a file from the start of a line, in blocks of about ``size`` bytes.

    Args:
        path: path of the file; gzipped if the name ends in ``.gz``.
        start: position in the unpacked file; a gzipped file is unpacked up to there.
        first_line: number of the line at ``start``.
        size: bytes of a block.
        advance: called with the number of bytes of the file on disk read since the last call.

    Raises:
        ValueError: a gzipped file is truncated or invalid, the last line has no newline, or a line
            is longer than LONGEST.
    """
    with path.open("rb") as raw:
        packed = path.suffix == ".gz"
        stream: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw
        line, end, rest, reported = first_line, start, b"", 0
        try:
            stream.seek(start)
            while read := stream.read(size):
                advance(raw.tell() - reported)
                reported = raw.tell()
                whole, newline, tail = read.rpartition(b"\n")
                if not newline:
                    rest += read
                    if len(rest) > LONGEST:
                        start_of_line = np.frombuffer(rest, np.uint8)
                        raise complain(path, line, start_of_line, f"at most {LONGEST} bytes")
                    continue
                text = rest + whole + newline
                end, rest = end + len(text), tail
                yield Block(np.frombuffer(text, np.uint8), line, end)
                line += text.count(b"\n")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{path}, from line {line} on: expected a whole gzip file, but {error}"
            ) from None
        if rest:
            last_line = np.frombuffer(rest, np.uint8)
            raise complain(path, line, last_line, "a newline at the end of a whole file")
