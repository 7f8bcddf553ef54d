"""Read and write tables of pages with estimated or user-supplied rates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import ArrayLike, NDArray

from crawl_envs.system.files import replacing
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import LARGEST, SMALLEST
from policies.live.logs.columns import ABSENT, Columns, Wanted
from policies.live.logs.costs import fill_costs
from policies.live.logs.formats import read_columns
from policies.live.logs.signals import signal_counts
from policies.live.logs.times import MICROSECONDS_PER_DAY
from policies.live.logs.urls import hosts_of


def _numbers(rows: Columns, word: str, low: float, high: float, expected: str) -> FloatArray:
    """Read a column of numbers that must be 0 or lie from ``low`` to ``high``."""
    values = rows.numbers(word)
    rows.check(word, ~((values == 0.0) | ((values >= low) & (values <= high))), expected)
    return values


def _ends(rows: Columns, word: str, low: float = 0.0, inf: bool = False) -> FloatArray:
    """Read a column of numbers >= ``low``, such as ends of intervals, NaN for missing values."""
    values = rows.numbers(word, inf=inf)
    rows.check(word, values < low, f"a number that is at least {low:g}, or nothing")
    return values


def _costs(rows: Columns, word: str) -> FloatArray:
    """Read a column of costs > 0, NaN for missing values; add a note on them and the unit."""
    cost = rows.numbers(word)
    expected = f"a number from {SMALLEST:g} to {LARGEST:g}, or nothing if it is unknown"
    rows.check(word, (cost < SMALLEST) | (cost > LARGEST), expected)
    rows.note("missing costs, taken as the mean of the host", np.isnan(cost))
    mean = "none known" if np.isnan(cost).all() else f"on average {np.nanmean(cost):,.6g}"
    rows.notes.append(f"crawls have costs (column 'cost', {mean}): the bandwidth is cost per day")
    return cost


def _truths(rows: Columns, word: str) -> BoolArray:
    """Read a column of truth values; missing values are bad rows."""
    flags = rows.flags(word)
    rows.check(word, np.isnan(flags), "0, 1, true or false")
    truths: BoolArray = flags == 1.0
    return truths


_quantities = partial(
    _numbers,
    low=SMALLEST,
    high=LARGEST,
    expected=f"0 or a number from {SMALLEST:g} to {LARGEST:g}",
)
_shares = partial(_numbers, low=0.0, high=1.0, expected="a number from 0 to 1")
READERS: dict[str, Callable[[Columns, str], Any]] = {
    "importance": _quantities,
    "cost": _costs,
    "host": partial(Columns.words, optional=True),
    "group": partial(Columns.words, optional=True),
    "change_rate": _quantities,
    "complete": _truths,
    "gone": _truths,
    "evidence": partial(Columns.words, optional=True),
    "change_rate_low": _ends,
    "change_rate_high": _ends,
    "most_interval": partial(_ends, low=SMALLEST, inf=True),
}
"""The functions that read the optional columns of a table, by the name of column and field."""
OF_SIGNALS = ("recall", "false_signal_rate", "precision", "signals")
PAGE_COLUMNS = re.compile(rf"url|last_crawl|{'|'.join(READERS)}|({'|'.join(OF_SIGNALS)})(:.+)?")

FOR_PEOPLE = r"crawls|.*_(own|stderr)(:.*)?"
"""Matches columns that ``scripts.estimate`` writes for people and no code reads."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PageTable:
    """A table of m pages and S sources of signals; fields without data are None.

    Attributes:
        urls: name of each page, all different, (m,) str objects.
        importance: weight >= 0, (m,) float64.
        cost: expected cost of a crawl, > 0, (m,) float64.
        host: name of the host, (m,) str objects; empty if the URL has none.
        group: label of pages that are alike, (m,) str objects; empty for none.
        change_rate: changes per day, 0 or in the supported domain, (m,) float64.
        recall: probability that a change emits a signal of each source, (S, m) float64.
        false_signal_rate: signals per day without a change, of each source, (S, m) float64.
        signals: number of signals of each source after ``last_crawl``, (S, m) int64.
        complete: whether every change is seen, (m,) bool.
        last_crawl: time of the copy, NaN without one, (m,) float64: days since 1970 where
            ``dated``, else as they were given.
        dated: whether ``last_crawl`` is a date and time.
        sources: names of the sources; ("signals",) for the columns without a name.
        gone: whether the page was gone when last fetched, (m,) bool.
        evidence: what ``change_rate`` rests on, in words, (m,) str objects.
        change_rate_low: lower end of an interval of it, >= 0, NaN if unknown, (m,) float64.
        change_rate_high: upper end, inf if unbounded, NaN if unknown, (m,) float64; in files it is
            absent then.
        most_interval: longest days from copy to next fetch, NaN if not set, inf for none, (m,).
        notes: sentences on what was guessed, or not read, in the file.
    """

    urls: NDArray[np.object_]
    importance: FloatArray
    host: NDArray[np.object_]
    cost: FloatArray | None = None
    group: NDArray[np.object_] | None = None
    change_rate: FloatArray | None = None
    recall: FloatArray | None = None
    false_signal_rate: FloatArray | None = None
    signals: IntArray | None = None
    complete: BoolArray | None = None
    last_crawl: FloatArray | None = None
    dated: bool = False
    sources: tuple[str, ...] = ()
    gone: BoolArray | None = None
    evidence: NDArray[np.object_] | None = None
    change_rate_low: FloatArray | None = None
    change_rate_high: FloatArray | None = None
    most_interval: FloatArray | None = None
    notes: tuple[str, ...] = ()

    @property
    def num_pages(self) -> int:
        """Number of pages, m."""
        return int(self.urls.size)


def read_page_table(path: str | Path, columns: Mapping[str, str] | None = None) -> PageTable:
    """Read a table of pages, in CSV, JSON lines or Parquet; others are ignored, and noted.

    ``url`` is needed. ``importance`` is 1 where there is no such column, ``host`` that of the
    URL where there is none, or a text such as ``NULL``. A missing ``cost`` is the mean of the host,
    or of all pages. ``recall``, ``false_signal_rate``,
    ``precision`` and ``signals`` are those of a single source, ``recall:NAME`` and so on of
    several. ``precision`` is the share of signals that a change emitted; it is read where there is
    no false signal rate, which is then recall * change_rate * (1 - precision) / precision.
    ``signals`` counts those after ``last_crawl``; an empty value is 0.

    Args:
        path: the file.
        columns: names in the file of columns that have other names; an empty name for a column
            not to read.

    Raises:
        ValueError: a file that is missing, empty or of another format, a missing column, or, with
            its line, a URL that stands there twice, an absent or a bad value.
    """
    option = "" if columns is None else "column"
    rows = read_columns(Path(path), Wanted(PAGE_COLUMNS, ("url",), columns or {}, option=option))
    rows.note_others(FOR_PEOPLE)
    codes = rows.codes("url")
    is_first = np.zeros(rows.num_rows, np.bool_)
    is_first[np.unique(codes.number, return_index=True)[1]] = True
    rows.check("url", ~is_first, "another URL: this one stands above")
    values = {name: read(rows, name) for name, read in READERS.items() if name in rows}
    hosts = hosts_of(codes.texts)
    named = values.get("host", hosts)
    values["host"] = np.where(np.isin(named, ABSENT), hosts, named)
    if "cost" in values:
        values["cost"] = fill_costs(values["cost"], values["host"])
    if "change_rate_low" in rows and "change_rate_high" in rows:
        low, high = values["change_rate_low"], values["change_rate_high"]
        high[np.isnan(high) & ~np.isnan(low)] = np.inf
    copies = rows.times("last_crawl", optional=True) if "last_crawl" in rows else None
    dated = copies is not None and bool(copies.dated.any())
    unit = MICROSECONDS_PER_DAY if dated else 1.0
    defaults = {"importance": np.ones(rows.num_rows)}
    return PageTable(
        urls=rows.words("url"),
        last_crawl=None if copies is None else copies.value / unit,
        dated=dated,
        **_signals(rows, values.get("change_rate")),
        **defaults | values,
        notes=tuple(rows.notes),
    )


def write_page_table(
    path: str | Path, table: PageTable, others: Mapping[str, ArrayLike] | None = None
) -> None:
    """Write a table of pages atomically, in Parquet or CSV by the extension of ``path``.

    Args:
        path: the file.
        table: the pages.
        others: further columns, (m,) each, such as standard errors.

    Raises:
        ValueError: another extension.
        OSError: the file cannot be written.
    """
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"path must end in .csv or .parquet, got {str(path)!r}")
    columns: dict[str, Any] = {"url": table.urls}
    columns |= {name: getattr(table, name) for name in READERS}
    for name in ("change_rate_low", "change_rate_high", "most_interval"):
        if (ends := columns[name]) is not None:
            absent = np.isnan(ends) if name == "most_interval" else ~np.isfinite(ends)
            columns[name] = pa.array(ends, mask=absent)
    for name in ("recall", "false_signal_rate", "signals"):
        values = getattr(table, name)
        if values is not None:
            columns |= {f"{name}:{s}": row for s, row in zip(table.sources, values, strict=True)}
    if table.last_crawl is not None:
        columns["last_crawl"] = _dates(table.last_crawl) if table.dated else table.last_crawl
    columns = {name: values for name, values in columns.items() if values is not None}
    columns |= {name: np.asarray(values) for name, values in (others or {}).items()}
    write = pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table
    with replacing(path) as unfinished:
        write(pa.table(columns), str(unfinished))


def _dates(days: FloatArray) -> Any:
    """Return days since 1970 as Arrow timestamps, null where NaN."""
    microseconds = np.rint(np.nan_to_num(days) * MICROSECONDS_PER_DAY).astype(np.int64)
    return pa.array(microseconds, pa.timestamp("us", "UTC"), mask=np.isnan(days))


def _signals(rows: Columns, change_rate: FloatArray | None) -> dict[str, Any]:
    """Read the names of sources, recalls, false signal rates and counts, as fields of a table."""
    words = [word for word in rows if word.partition(":")[0] in OF_SIGNALS]
    endings = list(dict.fromkeys("".join(word.partition(":")[1:]) for word in words))
    columns: dict[str, list[Any]] = {"recall": [], "false_signal_rate": [], "signals": []}
    recall, false, _ = columns.values()
    counts = dict(zip(*signal_counts(rows), strict=True))
    for ending in endings:
        if (word := f"recall{ending}") in rows:
            recall.append(_shares(rows, word))
            expected = "recall of all sources that sums to at most 1"
            rows.check(word, np.sum(recall, axis=0) > 1.0 + 1e-12, expected)
        if (word := f"false_signal_rate{ending}") in rows:
            false.append(_quantities(rows, word))
        elif f"precision{ending}" in rows:
            false.append(_false_rates(rows, ending, change_rate))
        if f"signals{ending}" in rows:
            columns["signals"].append(counts[ending[1:] or "signals"])
    for name, of_sources in columns.items():
        if len(of_sources) not in (0, len(endings)):
            lacking = next(e for e in endings if f"{name}{e}" not in rows)
            raise ValueError(
                f"{rows.path}: column {name + lacking!r} is missing, other sources have one"
            )
    fields = {name: np.array(values) if values else None for name, values in columns.items()}
    return {"sources": tuple(ending[1:] or "signals" for ending in endings), **fields}


def _false_rates(rows: Columns, ending: str, change_rate: FloatArray | None) -> FloatArray:
    """Return false signal rates: recall * change_rate * (1 - precision) / precision."""
    word, recall_word = f"precision{ending}", f"recall{ending}"
    if change_rate is None or recall_word not in rows:
        raise ValueError(
            f"{rows.path}: column {word!r} needs the columns 'change_rate' and {recall_word!r}, or "
            f"'false_signal_rate{ending}' in its place"
        )
    precision, recall = _shares(rows, word), _shares(rows, recall_word)
    silent = recall * change_rate == 0.0
    rows.check(word, (precision == 0.0) & ~silent, "a number above 0, as changes emit signals")
    odds = (1.0 - precision) / np.where(silent, 1.0, precision)
    rates: FloatArray = np.where(silent, 0.0, recall * change_rate * odds)
    return rates
