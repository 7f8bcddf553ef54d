"""Read the signals of a log: counts between two crawls, or a file of signals with times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.logs.columns import Columns, aliases
from policies.live.logs.crawl_log import crawls_before
from policies.live.logs.formats import read_columns
from policies.live.logs.observations import Crawls
from policies.live.logs.urls import Pages
from policies.live.urls import normal_url

EVENT_COLUMNS = re.compile("url|time|source")
EVENT_ALIASES = (
    aliases(
        url="loc link uri address pageurl permalink",
        time="timestamp ts datetime seenat receivedat detectedat",
    ),
    aliases(
        url="page",
        time="date lastmod lastmodified modified modifiedat updated updatedat datemodified "
        "published publishedat pubdate datepublished",
    ),
)
"""Names of sitemaps (sitemaps.org/protocol.html), RSS, Atom (RFC 4287) and schema.org."""
MERGE_OPTIONS = {
    "; one by --merge scheme (in Python: merge_schemes)": (True, False),
    "; one by --merge www (in Python: merge_www)": (False, True),
    "; one by --merge scheme --merge www (in Python: merge_..)": (True, True),
}
SPELLING = re.compile(r"^\w+://(www\.)?|/?(\?.*)?$")
"""Matches the parts in which spellings of a page's URL may differ: scheme, www., and query."""
MOST_SIGNALS = 1e6
"""Largest number of signals between two crawls."""


class Signals(NamedTuple):
    """Signals: each one's page (-1: unknown), time, source, and whether only its day is known.

    The first ``counted`` sources give numbers of signals, the others times. ``duplicates`` and
    ``lost`` count signals that were left out; lost ones have no known time.
    """

    page: IntArray
    time: FloatArray
    source: IntArray
    whole_day: BoolArray
    sources: tuple[str, ...]
    counted: int
    duplicates: int = 0
    lost: int = 0


def signal_counts(rows: Columns) -> tuple[tuple[str, ...], IntArray]:
    """Read the columns with counts of signals; return the S sources and the counts, (S, n)."""
    words = [word for word in rows if word.startswith("signals")]
    expected = f"a whole number from 0 to {MOST_SIGNALS:g}"
    counts = np.zeros((len(words), rows.num_rows), np.int64)
    for count, word in zip(counts, words, strict=True):
        values = np.nan_to_num(rows.numbers(word, expected))
        wrong = (values < 0) | (values > MOST_SIGNALS) | (values % 1 > 0)
        rows.check(word, wrong, expected)
        count[:] = np.where(wrong, 0, values)
    return tuple(word.partition(":")[2] or word for word in words), counts


def spread_signals(sources: tuple[str, ...], counts: IntArray, crawls: Crawls) -> Signals:
    """Spread counted signals, (S, n), evenly over the time since the page's previous crawl."""
    counts = counts[:, crawls.row]
    first = crawls.first()
    lost = int(counts[:, first].sum())
    counts[:, first] = 0
    source, crawl = np.nonzero(counts)
    number = counts[source, crawl]
    source, crawl = np.repeat(source, number), np.repeat(crawl, number)
    rank = np.arange(crawl.size) - np.repeat(np.cumsum(number) - number, number)
    elapsed = np.diff(crawls.time, prepend=crawls.time[0])[crawl]
    time = crawls.time[crawl] - (rank + 0.5) / np.repeat(number, number) * elapsed
    whole_day = np.zeros(time.size, np.bool_)
    return Signals(crawls.page[crawl], time, source, whole_day, sources, len(sources), lost=lost)


def with_events(
    signals: Signals,
    path: Path,
    pages: Pages,
    dated: bool,
    unit: str | None,
    log: Columns,
    columns: Mapping[str, str],
) -> Signals:
    """Add the signals of a file of events; bad rows have the same limit as in the log.

    ``columns`` are names in the file of columns that have other names, see :class:`Wanted`.
    """
    wanted = log.wanted._replace(
        word_pattern=EVENT_COLUMNS, columns=columns, aliases=EVENT_ALIASES, option="event-column"
    )
    rows = read_columns(path, wanted)
    url, times = rows.codes("url"), rows.times("time", dated, unit=unit)
    source, names = np.zeros(rows.num_rows, np.int64), ("events",)
    if "source" in rows:
        source, texts = rows.codes("source")
        names = tuple(texts.to_pylist())
    rows.settle()
    if repeated := set(signals.sources) & set(names):
        what = f"source {min(repeated)!r} is also a column of {log.path}"
        raise ValueError(f"{path}: {what}{wanted.way_out('source')}")
    urls = url.texts.to_pylist()
    page_of_url = pages.find(urls)
    rows.notes += _unmatched(path, [urls[k] for k in np.flatnonzero(page_of_url < 0)], pages)
    page = np.append(page_of_url, -1)[url.number]
    keys = np.array([np.where(page < 0, -1 - url.number, page), times.value, source])
    order = np.lexsort(keys)
    order = order[rows.good[order]]
    unique = order[(np.diff(keys[:, order], prepend=np.nan) != 0.0).any(axis=0)]
    rows.note_others(file=f" of {path}")
    log.notes += rows.notes
    return signals._replace(
        page=np.append(signals.page, page[unique]),
        time=np.append(signals.time, times.value[unique]),
        source=np.append(signals.source, source[unique] + len(signals.sources)),
        whole_day=np.append(signals.whole_day, times.whole_day[unique]),
        sources=signals.sources + names,
        duplicates=order.size - unique.size,
    )


def _unmatched(path: Path, urls: list[str], pages: Pages) -> list[str]:
    """Return a note on signals' URLs that are no page, with an example and an option that helps."""
    if not urls:
        return []
    forms = {form: page for form, page in pages.page_of_form.items() if page >= 0}
    alike = {SPELLING.sub("", form.lower()): pages.urls[page] for form, page in forms.items()}
    bare = {url: SPELLING.sub("", normal_url(url).lower()) for url in urls}
    url = next((url for url in urls if bare[url] in alike), urls[0])
    page = alike.get(bare[url], pages.urls[0])
    options = (x for x, y in MERGE_OPTIONS.items() if normal_url(url, *y) == normal_url(page, *y))
    what = f"{len(urls)} URLs of signals are of no page of the log, such as {url!r}"
    return [f"{path}: {what}; a page is {page!r}{next(options, '')}"]


def place(
    page: IntArray,
    day: FloatArray,
    crawl_page: IntArray,
    crawl_time: FloatArray,
    crawl_changed: BoolArray,
) -> FloatArray:
    """Choose a time within the day of each signal of which only the day is known, (k,).

    Crawls of the page split the day into pieces, each in one interval between crawls. If exactly
    one of these intervals ended in a change, the signal is put in the middle of its piece. Else it
    is put in the middle of the longest piece, the first one of several.

    Args:
        page: page of each signal, with at least one crawl, (k,).
        day: start of its day, (k,).
        crawl_page: page of each crawl; crawls are sorted by page and time, (n,).
        crawl_time: its time, (n,).
        crawl_changed: whether it found a change, (n,).
    """
    first = np.searchsorted(crawl_page, page)
    ends = [crawls_before(page, day + x, crawl_page, crawl_time) for x in (0.0, 1.0)]
    before, last = (np.where(crawl < 0, first - 1, crawl) for crawl in ends)
    signal = np.repeat(np.arange(page.size), last - before + 1)
    start = np.cumsum(last - before + 1) - (last - before + 1)
    crawl = before[signal] + np.arange(signal.size) - start[signal]
    # A piece is from a crawl, or the start of the day, to the next crawl or the end of the day.
    pages = np.concatenate([crawl_page, [-1]])
    times = np.concatenate([crawl_time, [0.0]])
    begin = np.where(pages[crawl] == page[signal], times[crawl], -np.inf)
    ended = pages[crawl + 1] == page[signal]
    begin = np.maximum(begin, day[signal])
    end = np.minimum(np.where(ended, times[crawl + 1], np.inf), day[signal] + 1.0)
    changed = ended & np.append(crawl_changed, False)[crawl + 1] & (end > begin)
    alone = np.bincount(signal, changed, page.size)[signal] == 1.0
    best = np.lexsort((-crawl, end - begin + 2.0 * (changed & alone), signal))
    longest = best[np.cumsum(last - before + 1) - 1]
    middle: FloatArray = 0.5 * (begin + end)[longest]
    return middle
