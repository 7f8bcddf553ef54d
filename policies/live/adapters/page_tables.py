"""Start a scheduler with the pages of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs.types import FloatArray, IntArray
from policies.live.adapters.fetches import host_of
from policies.live.adapters.messages import SECONDS_PER_DAY, Scheduler
from policies.live.logs import PageTable, hosts_of, read_page_table

SECOND = 1.0 / SECONDS_PER_DAY


def read_pages(path: str | Path, spelled: Callable[[str], str]) -> PageTable:
    """Read a table of pages; ``spelled`` returns the crawler's spelling of a URL.

    Raises:
        ValueError: the file cannot be read, has a page twice, or copies without dates.
    """
    table = read_page_table(path)
    if not newest_copy(table)[1]:
        raise ValueError(
            f"{path}: last_crawl must be dates, as times of a crawler are, got numbers"
        )
    urls = [spelled(url) for url in table.urls]
    [(url, rows)] = Counter(urls).most_common(1)
    if rows > 1:
        raise ValueError(f"{path}: a page must stand there once, got {url} in {rows} rows")
    hosts, notes = np.array([host_of(url) for url in urls], np.object_), list(table.notes)
    if (table.host != hosts_of(table.urls)).any():
        notes += ["column host not used: a page's host is that of its URL"]
    return replace(table, urls=np.array(urls, np.object_), host=hosts, notes=tuple(notes))


def living(table: PageTable) -> IntArray:
    """Return the rows of a table whose pages are not gone, in order."""
    return np.arange(table.num_pages) if table.gone is None else np.flatnonzero(~table.gone)


def living_copies(table: PageTable) -> IntArray:
    """Return the rows of a table whose pages are not gone and have a copy, in order."""
    rows = living(table)
    return rows[~np.isnan(copies_of(table)[rows])]


def newest_copy(table: PageTable) -> tuple[float, bool]:
    """Return the time of a table's newest copy, -inf without one, and whether times are dates."""
    newest = float(np.fmax.reduce(copies_of(table), initial=-np.inf))
    return newest, table.dated or newest == -np.inf


def columns_of(table: PageTable, rows: IntArray) -> dict[str, Any]:
    """Return the columns for a scheduler's ``add`` from some rows of a table, by name."""
    columns: dict[str, Any] = {"importance": table.importance, "host": table.host}
    if table.change_rate is not None:
        columns["change_rate"] = table.change_rate
    for name in ("recall", "false_signal_rate"):
        values = getattr(table, name)
        if values is None and table.change_rate is not None:
            values = np.zeros((max(len(table.sources), 1), table.num_pages))
        if values is not None:
            columns[name] = values[0] if len(values) == 1 else values
    for name in ("complete", "cost", "group", "most_interval"):
        if getattr(table, name) is not None:
            columns[name] = getattr(table, name)
    return {name: values[..., rows] for name, values in columns.items()}


def copies_of(table: PageTable) -> FloatArray:
    """Return the time of the copy of each page in days, NaN without one, (m,)."""
    if table.last_crawl is None:
        return np.full(table.num_pages, np.nan)
    return table.last_crawl


def add_pages(
    scheduler: Scheduler,
    table: PageTable,
    rows: IntArray,
    time: float,
    ids: Any = None,
    **more: Any,
) -> None:
    """Add the pages in some rows of a table to a scheduler, and report those that are gone.

    ``ids`` replace all URLs of the table, (m,), and ``more`` are further arguments of ``add``.
    """
    labels, columns = (table.urls if ids is None else ids)[rows], columns_of(table, rows)
    unknown = table.recall is None and table.false_signal_rate is None
    if unknown and (scheduler.learns or "recall" not in scheduler.pages.values.needs):
        columns = {k: x for k, x in columns.items() if k not in ("recall", "false_signal_rate")}
    gone = np.zeros(rows.size, np.bool_) if table.gone is None else table.gone[rows]
    copies = np.where(gone, np.nan, copies_of(table)[rows])  # none is later than that
    scheduler.add(labels, last_crawl=copies, **columns, **more)
    scheduler.report(labels[gone], time, "gone")


def report_signals(scheduler: Scheduler, table: PageTable, ids: Any, start: float) -> None:
    """Report the signals counted in a table to a scheduler, less those that it has already.

    As their times are not known, they are spread evenly from the copy to ``start``.
    """
    rows = living_copies(table)
    if table.signals is None or rows.size == 0:
        return
    copies, ids = copies_of(table)[rows], ids[rows]
    days = np.maximum(start - copies, SECOND)
    reported = scheduler.pages.signal_counts(scheduler.pages.rows(ids)).T
    number = np.minimum(table.signals[:, rows], 256) - reported  # a page keeps so many
    for turn in range(int(number.max())):
        source, page = np.nonzero(number > turn)
        time = copies[page] + days[page] * (turn + 0.5) / number[source, page]
        scheduler.signal(ids[page], time, source)
