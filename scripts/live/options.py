"""Define the options of commands that read a crawl log, and read the files that they name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from typer import Argument, Option

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import one_of
from policies.live.logs import (
    TIME_UNITS,
    CrawlLog,
    hosts_of,
    normal_url,
    read_crawl_log,
    read_page_table,
)
from scripts.cli.options import named_values
from scripts.present.tables import console, counted

Column = Annotated[
    list[str] | None,
    Option(
        help="Name of a column in the file, such as url=page or hash=hash.md5 (nested JSON); "
        "status= if the file has none; can be repeated."
    ),
]

Cost = Annotated[
    str | None,
    Option(
        help="Column with the cost of each crawl, such as its bytes; results are in its unit.",
        show_default="none: crawls of equal cost",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Options of the commands that read a crawl log."""

    log: Annotated[
        list[Path],
        Argument(
            help="Crawl log in one or several files: CSV, JSON lines, Parquet, Heritrix's "
            "crawl.log, CDX or CDXJ, also gzipped."
        ),
    ]
    column: Column = None
    format: Annotated[
        str | None, Option(help="Format.", show_default="by the first line of the file")
    ] = None
    events: Annotated[
        Path | None, Option(help="File of signals: url, time and optionally source.")
    ] = None
    event_column: Annotated[
        list[str] | None, Option(help="Name of a column of --events, as --column; can be repeated.")
    ] = None
    pages: Annotated[
        Path | None, Option(help="Table of url, importance, host or group; others: importance 0.")
    ] = None
    time_unit: Annotated[
        str | None,
        Option(
            help=f"Unit of times that are numbers: {', '.join(TIME_UNITS)}.",
            show_default="by the format, or the size of the numbers",
        ),
    ] = None
    clock_tolerance: Annotated[
        float, Option(min=0.0, help="Allowed seconds between Last-Modified and times of the log.")
    ] = 60.0
    max_bad: Annotated[
        float, Option(min=0.0, max=1.0, help="Allowed share of unreadable rows; one always is.")
    ] = 0.01
    merge: Annotated[
        list[str] | None, Option(help="scheme or www: URLs that differ only in it are one page.")
    ] = None

    @property
    def title(self) -> str:
        """Name of the first file of the log."""
        return self.log[0].name


def read_log(options: ReadingOptions, cost: str | None = None) -> CrawlLog:
    """Read the crawl log from the files and settings in the options, with a column of costs."""
    merged = options.merge or ()
    for name in merged:
        one_of("merge", name, ("scheme", "www"))
    return read_crawl_log(
        options.log,
        columns=named_values(options.column or [], "column", str),
        cost=cost,
        format=options.format,
        events=options.events,
        event_columns=named_values(options.event_column or [], "event-column", str),
        time_unit=options.time_unit,
        clock_tolerance=options.clock_tolerance,
        max_bad=options.max_bad,
        merge_schemes="scheme" in merged,
        merge_www="www" in merged,
    )


def weights_and_groups(log: CrawlLog, options: ReadingOptions) -> tuple[FloatArray, IntArray]:
    """Return the importance and the group number of each page of the log, (m,) each.

    A page table gives both; pages that it lacks get importance 0, and their number is printed.
    Without a table, all pages have importance 1. The default group is the host.

    Raises:
        ValueError: the page table is incomplete, or has none of the log's pages.
    """
    pages = options.pages
    if pages is None:
        return np.ones(log.num_pages), _numbers(hosts_of(log.urls))
    table = read_page_table(pages)
    for note in table.notes:
        console().print(f"{pages}: {note}", soft_wrap=True)
    merged = tuple(name in (options.merge or ()) for name in ("scheme", "www"))
    row = {normal_url(url, *merged): number for number, url in enumerate(table.urls)}
    place = np.array([row.get(normal_url(url, *merged), -1) for url in log.urls])
    if (place < 0).all():
        raise ValueError(f"{pages} must have pages of the log, such as {log.urls[0]!r}, got none")
    labels = table.host if table.group is None else table.group
    listed = place >= 0
    unused = table.num_pages - np.unique(place[listed]).size
    if unused or not listed.all():
        console().print(
            f"{counted(int((~listed).sum()), 'page')} of the log not in {pages}: importance 0, "
            f"never fetched; {counted(unused, 'row')} of it not in the log",
            soft_wrap=True,
        )
    importance = np.where(listed, table.importance[place], 0.0)
    if not importance.any():
        raise ValueError(f"{pages} must have importance > 0 for a page of the log, got none")
    group = np.where(listed, labels[place], hosts_of(log.urls))
    return importance, _numbers(group)


def _numbers(labels: NDArray[np.object_]) -> IntArray:
    """Return a number from 0 for each label; equal labels get equal numbers."""
    return np.unique(labels.astype(str), return_inverse=True)[1].astype(np.int64)
