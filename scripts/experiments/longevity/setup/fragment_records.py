"""Recorded fragments to measure: which sites have any, and stretches of what they said."""

from __future__ import annotations

from functools import cache

import numpy as np

from crawl_envs.instances import traces
from crawl_envs.instances.traces import Trace
from crawl_envs.instances.traces.fragments import window_contents
from crawl_envs.types import IntArray
from crawl_envs.worlds.fragments.contents import Contents
from scripts.experiments.real.setup import sites as histories

Window = tuple[float, float]


def sites(shipped: bool = False) -> tuple[str, ...]:
    """Names of the sites at hand with recorded fragments; ``shipped``: only of these."""
    found = traces.shipped() if shipped else tuple(histories.sites())
    return tuple(site for site in found if _has_fragments(site))


def _has_fragments(site: str) -> bool:
    return (histories.sites()[site] / "fragments.parquet").exists()


@cache
def fragment_record(site: str) -> Trace:
    """Read a site that is at hand, with all its pages.

    Raises:
        ValueError: it is not at hand, or has no fragments.
    """
    found = sites()
    if site not in found:
        raise ValueError(f"site must be one of {', '.join(found)}, got {site!r}")
    return traces.load(histories.sites()[site])


def windows(site: str, days: float) -> tuple[Window, ...]:
    """Return the stretches of so many days that a record is cut into; a rest at its end is left.

    Raises:
        ValueError: the record is shorter.
    """
    length = fragment_record(site).days
    count = int(length / days)
    if count < 1:
        raise ValueError(f"days must be at most {length:g}, the record of {site!r}, got {days!r}")
    return tuple((days * number, days * (number + 1)) for number in range(count))


def lasting(site: str, window: Window) -> Contents:
    """Return what those pages say that exist in all of a window and have recorded fragments.

    Times are since its start. What is there at the start is told from what was born just then by
    a birth before it.

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
    """Return what some pages say, numbered anew in the order given.

    Raises:
        ValueError: a page does not exist.
    """
    if pages.size and (pages.min() < 0 or pages.max() >= contents.num_pages):
        raise ValueError(f"pages must be rows below {contents.num_pages}, got {pages}")
    number = np.full(contents.num_pages, -1, np.int64)
    number[pages] = np.arange(pages.size)
    page = number[contents.page]
    kept = page >= 0
    return Contents.of_spells(
        pages.size,
        page[kept],
        contents.birth[kept],
        contents.death[kept],
        contents.size[kept],
        contents.key[kept],
    )
