"""Signals of a log: counted between two crawls, or with times in a file of their own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.instances.logs.columns import Columns, Wanted
from crawl_envs.instances.logs.formats import read_columns
from crawl_envs.instances.logs.observations import Crawls
from crawl_envs.types import FloatArray, IntArray

EVENT_COLUMNS = re.compile("url|time|source")
MOST_SIGNALS = 1e6
"""Largest number of signals between two crawls."""


class Signals(NamedTuple):
    """Signals of some sources: page, -1 if unknown, time, and source.

    ``duplicates`` were left out, and ``lost`` ones, whose time is unknown.
    """

    page: IntArray
    time: FloatArray
    source: IntArray
    sources: tuple[str, ...]
    duplicates: int = 0
    lost: int = 0

    @classmethod
    def none(cls) -> Signals:
        """Return no signals."""
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), ())


def spread_signals(rows: Columns, crawls: Crawls) -> Signals:
    """Return signals of columns of counts, spread evenly since the page's crawl before."""
    words = [word for word in rows if word.startswith("signals")]
    expected = f"a whole number from 0 to {MOST_SIGNALS:g}"
    counts = np.zeros((len(words), crawls.page.size), np.int64)
    for count, word in zip(counts, words, strict=True):
        given = np.nan_to_num(rows.numbers(word, expected))
        rows.check(word, (given < 0) | (given > MOST_SIGNALS) | (given % 1 > 0), expected)
        count[:] = given[crawls.row]
    first = crawls.first()
    lost = int(counts[:, first].sum())
    counts[:, first] = 0
    source, crawl = np.nonzero(counts)
    number = counts[source, crawl]
    source, crawl = np.repeat(source, number), np.repeat(crawl, number)
    rank = np.arange(crawl.size) - np.repeat(np.cumsum(number) - number, number)
    elapsed = np.diff(crawls.time, prepend=crawls.time[0])[crawl]
    time = crawls.time[crawl] - (rank + 0.5) / np.repeat(number, number) * elapsed
    names = tuple(word.partition(":")[2] or word for word in words)
    return Signals(crawls.page[crawl], time, source, names, lost=lost)


def timed_signals(path: Path, urls: Any, dated: bool) -> Signals:
    """Read a file of signals of the pages in the Arrow array ``urls``."""
    import pyarrow.compute as pc

    rows = read_columns(path, Wanted(EVENT_COLUMNS, ("url", "time")))
    url, time = rows.codes("url"), rows.times("time", dated).value
    known = pc.fill_null(pc.index_in(url.texts, urls), -1).to_numpy(zero_copy_only=False)
    page = known.astype(np.int64)[url.number]
    source, names = np.zeros(page.size, np.int64), ("events",)
    if "source" in rows:
        source, texts = rows.codes("source")
        names = tuple(texts.to_pylist())
    keys = np.array([url.number, time, source])
    order = np.lexsort(keys)
    kept = order[(np.diff(keys[:, order], prepend=np.nan) != 0.0).any(axis=0)]
    return Signals(page[kept], time[kept], source[kept], names, page.size - kept.size)
