"""Recorded fragments to measure: sites that have any, and windows of their contents."""

from __future__ import annotations

from functools import cache

import numpy as np

from crawl_envs.instances import traces
from crawl_envs.instances.traces import Trace
from crawl_envs.instances.traces.fragments import window_contents
from crawl_envs.types import IntArray
from crawl_envs.types.arguments import one_of
from crawl_envs.types.contents import Contents
from scripts.experiments.measures import recorded as histories

Window = tuple[float, float]


def sites(shipped: bool = False) -> tuple[str, ...]:
    """Return the names of available sites with recorded fragments; ``shipped``: only those."""
    folders = histories.sites()
    names = traces.shipped() if shipped else folders
    return tuple(site for site in names if (folders[site] / "fragments.parquet").exists())


@cache
def fragment_record(site: str) -> Trace:
    """Read an available site, with all its pages.

    Raises:
        ValueError: it is not available, or has no fragments.
    """
    one_of("site", site, sites())
    return traces.load(histories.sites()[site])


def windows(site: str, days: float) -> tuple[Window, ...]:
    """Return the consecutive windows of so many days of a record; a shorter rest is dropped.

    Raises:
        ValueError: the record is shorter.
    """
    length = fragment_record(site).days
    count = int(length / days)
    if count < 1:
        raise ValueError(f"days must be at most {length:g}, the record of {site!r}, got {days!r}")
    return tuple((days * number, days * (number + 1)) for number in range(count))


def lasting(site: str, window: Window) -> Contents:
    """Return the contents of pages with recorded fragments that exist throughout a window.

    Times are since its start. Fragments present at the start have a birth before it.

    Raises:
        ValueError: the window does not lie in the record, or there is no such page.
    """
    record = fragment_record(site)
    start, end = window
    contents, pages = window_contents(record, start, end)
    throughout = (record.created[pages] <= start) & (record.deleted[pages] > end)
    if not throughout.any():
        raise ValueError(f"no page of {site!r} exists in all of ({start:g}, {end:g}]")
    return of_pages(contents, np.flatnonzero(throughout))


def of_pages(contents: Contents, pages: IntArray) -> Contents:
    """Return the contents of some pages, renumbered in the order given; a row of -1 is empty.

    Raises:
        ValueError: a page does not exist.
    """
    if pages.size and pages.max() >= contents.num_pages:
        raise ValueError(f"pages must be rows below {contents.num_pages}, got {pages}")
    number = np.full(contents.num_pages, -1, np.int64)
    there = np.flatnonzero(pages >= 0)
    number[pages[there]] = there
    page = number[contents.page]
    kept = page >= 0
    columns = (contents.birth, contents.death, contents.size, contents.key)
    return Contents.of_spells(pages.size, page[kept], *(column[kept] for column in columns))
