"""Read what each crawl of a log cost, and average costs by page."""

from __future__ import annotations

import re
import shlex
from typing import Any

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import LARGEST, SMALLEST
from policies.live.logs.columns import Columns, aliases
from policies.live.logs.crawl_log import CrawlLog
from policies.live.logs.urls import hosts_of

UNITS = aliases(
    bytes="bytes size length sizebytes contentlength contentsize bodybytes bodylength bodysize "
    "bodybytessent bytessent bytesreceived downloadsize responsebytes responselength responsesize "
    "transferredbytes totaltransferredbytes",
    seconds="seconds downloadlatency",
    **{"": "cost price credits tokens duration elapsed latency loadingtime loadtime responsetime "},
)
"""Units of columns that may be costs, by name in small letters and digits; "" for its name."""
SMALLEST_SHARE = 1e-3
"""Least mean cost of a page, as a share of that of all crawls."""
LAST_CRAWLS = 8
"""Number of a page's last crawls whose mean is its expected cost."""
PREFIXES = ("", "k", "M", "G", "T", "P")


def unit_of(name: str) -> str | None:
    """Return the unit of a column of costs; None if the name is not one of ``UNITS``."""
    unit = UNITS.get(re.sub("[^a-z0-9]", "", name.rpartition(".")[2].lower()))
    return name if unit == "" else unit


def with_unit(value: float, unit: str) -> str:
    """Return an amount >= 0 as text: ``1.23 GB`` for bytes, else such as ``1,234 tokens``."""
    if unit != "bytes":
        digits = f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"
        return f"{digits} {unit}".rstrip()
    power = sum(value >= 999.5 * 1e3**k for k in range(len(PREFIXES) - 1))
    digits = f"{value / 1e3**power:#.3g}".rstrip(".") if power else f"{value:.0f}"
    return f"{digits} {PREFIXES[power]}B"


def read_costs(rows: Columns) -> FloatArray:
    """Return the cost of each row, NaN where it is unknown; negative costs are bad rows."""
    expected = f"0 or a number from {SMALLEST:g} to {LARGEST:g}, or nothing if it is unknown"
    cost = rows.numbers("cost", expected)
    rows.check("cost", (cost != 0.0) & ((cost < SMALLEST) | (cost > LARGEST)), expected)
    return cost


def note_costs(rows: Columns, cost: FloatArray) -> str:
    """Add a note on the costs of a log's fetches, (h,), and return their unit.

    Raises:
        ValueError: no cost is above 0.
    """
    name = rows.names["cost"]
    unit = unit_of(name) or name
    missing, zero = (int(np.count_nonzero(x)) for x in (np.isnan(cost), cost == 0.0))
    if missing + zero == cost.size:
        got = f"got {missing} missing and {zero} of 0"
        raise ValueError(f"{rows.path}: column {name!r} (cost) needs values above 0, {got}")
    note = f"costs are those of column {name!r}, in {unit}"
    note += f"; missing, taken as the mean of the page: {missing}" * bool(missing)
    note += f"; 0, part of the mean of the page: {zero}" * bool(zero)
    note += f", which is at least {SMALLEST_SHARE:g} of the mean of all" * bool(zero)
    rows.notes.append(note)
    return unit


def note_candidates(rows: Columns) -> None:
    """Add a note on columns that may be costs, where none is read as such."""
    if names := [name for name in rows.present if unit_of(name)]:
        what = f"may be costs; --cost {shlex.quote(names[0])} answers in {unit_of(names[0])}"
        rows.notes.append(f"{', '.join(map(repr, names))} {what}")


def page_means(log: CrawlLog, crawls: IntArray, last: int = LAST_CRAWLS) -> FloatArray:
    """Return the mean cost of the ``last`` ones of each page's ``crawls``, (m,).

    Costs that are unknown, and those of gone pages, do not count; a mean is NaN without any. It is
    at least SMALLEST_SHARE of the log's mean cost.
    """
    assert log.cost is not None
    crawls = crawls[~np.isnan(log.cost[crawls]) & ~log.gone[crawls]]
    crawls = crawls[np.lexsort((log.time[crawls], log.page[crawls]))]
    page = log.page[crawls]
    ends = np.cumsum(np.bincount(page, minlength=log.num_pages))
    recent = np.arange(page.size) >= ends[page] - last
    count = np.bincount(page[recent], minlength=log.num_pages)
    total = np.bincount(page[recent], log.cost[crawls][recent], log.num_pages)
    means: FloatArray = np.divide(total, count, out=np.full(count.size, np.nan), where=count > 0)
    return np.maximum(means, SMALLEST_SHARE * np.nanmean(log.cost))


def fill_costs(cost: FloatArray, host: Any) -> FloatArray:
    """Return costs of pages, (m,): the mean of the page's ``host`` for NaN, of all, or 1."""
    has_cost: BoolArray = ~np.isnan(cost)
    number = np.unique(np.asarray(host).astype(str), return_inverse=True)[1]
    count, total = np.bincount(number, has_cost), np.bincount(number, np.where(has_cost, cost, 0.0))
    mean = cost[has_cost].mean() if has_cost.any() else 1.0
    of_host = np.divide(total, count, out=np.full(count.size, mean), where=count > 0.0)
    return np.where(has_cost, cost, of_host[number])


def expected_costs(log: CrawlLog, until: float = np.inf) -> FloatArray:
    """Return the cost that the crawls of a log until a day let expect of each page, (m,).

    It is the mean of the page's last crawls, else of its host, else of all. Of a page that is
    crawled only later it is the cost of its first crawl.
    """
    first = np.zeros(log.time.size, np.bool_)
    first[np.unique(log.page, return_index=True)[1]] = True
    return fill_costs(
        page_means(log, np.flatnonzero((log.time <= until) | first)), hosts_of(log.urls)
    )
