"""The four small files of the Bing set, joined by URL id in memory.

The result takes 33 bytes per URL, 0.6 GB for the 18.5 million of the set; reading takes up to 60
bytes per URL and a few times a block. Lines may be in any order: ids are sorted and looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from scripts.data.bing.files import BLOCK, GIVEN_RATES, HOSTS, IMPORTANCE, URLS, blocks
from scripts.data.bing.parsing import NUMBER, TEXT, WHOLE, parse_rows

COLUMNS = {
    URLS: ((TEXT, WHOLE, WHOLE), "URL, URL_ID and Host_ID, separated by tabs"),
    HOSTS: ((TEXT, WHOLE, WHOLE), "Host_URL, Host_ID and 0 or 1, separated by tabs"),
    IMPORTANCE: ((WHOLE, WHOLE), "URL_ID and a whole importance score >= 0, separated by a tab"),
    GIVEN_RATES: ((WHOLE, NUMBER), "URL_ID and a change rate >= 0, separated by a tab"),
}

Advance = Callable[[str, int], object]
"""Called with the name of a file and the number of further bytes read."""


class UrlTable(NamedTuple):
    """The data of the small files for m URLs, in order of their ids.

    Attributes:
        url_id: ascending, (m,) int64.
        importance: (m,).
        host_id: (m,) int64.
        constrained: whether the host limits how fast it is crawled, (m,) bool.
        given_rate: change rate per day of URLs with complete observation, NaN for others, (m,).
    """

    url_id: IntArray
    importance: FloatArray
    host_id: IntArray
    constrained: BoolArray
    given_rate: FloatArray


class Rows(NamedTuple):
    """A block of a small file: number of its first line, and values (lines, columns)."""

    first_line: int
    values: FloatArray

    def whole(self, column: int) -> IntArray:
        """Return a column of integers, (lines,) int64."""
        return self.values[:, column].astype(np.int64)


def read_urls(
    files: Mapping[str, Path], advance: Advance = lambda *_: None, size: int = BLOCK
) -> UrlTable:
    """Read the four small files.

    Args:
        files: path of each file by its name.
        advance: called with the progress of reading.
        size: bytes of a block.

    Raises:
        ValueError: a malformed line, a duplicate id, an id that the file it refers to does not
            have, or a URL without importance or host.
    """

    def rows(name: str) -> Iterator[Rows]:
        kinds, expected = COLUMNS[name]
        path = files[name]
        for block in blocks(path, size=size, advance=lambda count: advance(name, count)):
            yield Rows(block.first_line, parse_rows(path, block, kinds, expected))

    url_id, importance = _importance(files[IMPORTANCE], rows(IMPORTANCE))
    host_id, constrained = _hosts(files[HOSTS], rows(HOSTS))
    host_of = np.zeros(url_id.size, np.int64)
    bound = np.zeros(url_id.size, np.bool_)
    taken = np.zeros(url_id.size, np.bool_)
    for part in rows(URLS):
        place = places(files[URLS], part.first_line, part.whole(1), url_id, files[IMPORTANCE])
        claim(files[URLS], part.first_line, part.whole(1), place, taken)
        host = places(files[URLS], part.first_line, part.whole(2), host_id, files[HOSTS])
        host_of[place], bound[place] = host_id[host], constrained[host]
    if not taken.all():
        lost = url_id[~taken]
        raise ValueError(
            f"{files[URLS]}: expected every URL id of {files[IMPORTANCE].name}, but {lost.size} "
            f"are missing, the first of them {lost[0]}"
        )
    given = np.full(url_id.size, np.nan)
    for part in rows(GIVEN_RATES):
        path, ids = files[GIVEN_RATES], part.whole(0)
        place = places(path, part.first_line, ids, url_id, files[IMPORTANCE])
        claim(path, part.first_line, ids, place, ~np.isnan(given))
        given[place] = part.values[:, 1]
    return UrlTable(url_id, importance, host_of, bound, given)


def places(path: Path, first_line: int, ids: IntArray, known: IntArray, owner: Path) -> IntArray:
    """Return the index of each id in the ascending ``known`` ids; (lines,) int64.

    Raises:
        ValueError: an unknown id; the error names the file ``owner`` that should have it.
    """
    place = np.searchsorted(known, ids).clip(max=known.size - 1)
    strange = known[place] != ids
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"{path}, line {first_line + row}: expected an id of {owner.name}, got {ids[row]}"
        )
    return place


def claim(path: Path, first_line: int, ids: IntArray, place: IntArray, taken: BoolArray) -> None:
    """Mark places as taken; ValueError if one is taken already, or is repeated."""
    again = taken[place]
    if not again.any():
        again[:] = True
        again[np.unique(place, return_index=True)[1]] = False
    if again.any():
        row = int(np.argmax(again))
        raise _twice(path, first_line + row, ids[row])
    taken[place] = True


def _twice(path: Path, line: int, number: int) -> ValueError:
    return ValueError(f"{path}, line {line}: expected every id once, but {number} comes again")


def _importance(path: Path, rows: Iterator[Rows]) -> tuple[IntArray, FloatArray]:
    """Return the ascending ids and their importance."""
    parts = [(part.whole(0), part.values[:, 1].copy()) for part in rows]
    if not parts:
        raise ValueError(f"{path}: expected at least one line, got an empty file")
    return _by_id(path, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _hosts(path: Path, rows: Iterator[Rows]) -> tuple[IntArray, BoolArray]:
    """Return the ascending host ids and whether each host is constrained."""
    ids, bound = [], []
    for part in rows:
        wrong = part.values[:, 2] > 1.0
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"{path}, line {part.first_line + row}: expected 0 or 1 for whether the host is "
                f"constrained, got {part.whole(2)[row]}"
            )
        ids.append(part.whole(1))
        bound.append(part.values[:, 2] == 1.0)
    if not ids:
        raise ValueError(f"{path}: expected at least one line, got an empty file")
    return _by_id(path, np.concatenate(ids), np.concatenate(bound))


def _by_id(path: Path, ids: IntArray, values: np.ndarray) -> tuple[IntArray, np.ndarray]:
    """Sort by id; ValueError for a duplicate id."""
    if np.all(ids[1:] > ids[:-1]):
        return ids, values
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    again = np.flatnonzero(ids[1:] == ids[:-1])
    if again.size:
        row = int(order[again + 1].min())
        raise _twice(path, row + 1, int(ids[again[np.argmin(order[again + 1])]]))
    return ids, values[order]
