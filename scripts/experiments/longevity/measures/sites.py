"""Draw sets of pages, and read recorded pages with fragments.

A trace may have fragments only of pages that changed often enough, and only those whose hash is a
multiple of its ``fragment_modulus``; divergences of short pages are then coarse. Policies run on
the second half of a record; parameters are fitted to the first.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from crawl_envs import instances
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.families.longevity import FragmentAccess
from crawl_envs.instances import traces
from crawl_envs.instances.traces import Trace
from crawl_envs.instances.traces.fragments import window_contents
from crawl_envs.instances.traces.instance import replay
from crawl_envs.instances.traces.windows import Signals
from crawl_envs.sim.streams import generator, roots
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import IntArray, Reveal
from crawl_envs.types.arguments import one_of
from crawl_envs.types.contents import Contents
from crawl_envs.worlds.fragments.lanes import FragmentLanes
from crawl_envs.worlds.fragments.regions import RegionPages
from policies.values.divergence.tabulated import TabulatedCurves
from scripts.data.fit_trace import fit
from scripts.data.replays import Split
from scripts.experiments.measures import recorded as histories

MAX_PAGES = 200
"""Largest number of simulated pages of a site; larger sites are sampled at random."""
SNAPSHOTS = 2.0
"""Days between the versions that divergence curves are measured on."""

Window = tuple[float, float]


def drawn_set(name: str, num_pages: int, days: float, seed: int) -> tuple[RegionPages, Contents]:
    """Return the simulated pages of a named set, and their contents up to a day or later.

    They equal those of an environment after a reset with that seed.

    Args:
        name: ``quality`` or ``random``.
        num_pages: m.
        days: > 0.
        seed: >= 0.
    """
    instance: Any = instances.make(name, num_pages=num_pages, seed=seed)
    return instance, drawn_contents(instance, days, seed)


def drawn_contents(pages: RegionPages, days: float, seed: int) -> Contents:
    """Return the contents of simulated pages with a seed, up to day ``days`` or later."""
    return pages.draw_contents(generator(roots(seed).tape, 0), days)


def available(shipped: bool = False) -> tuple[str, ...]:
    """Return the names of the available sites with recorded fragments, or of shipped ones only."""
    folders = histories.sites()
    names = traces.shipped() if shipped else folders
    return tuple(site for site in names if (folders[site] / "fragments.parquet").exists())


@cache
def trace_of(site: str) -> Trace:
    """Read an available site, with all its pages.

    Raises:
        ValueError: the site is not available, or has no fragments.
    """
    one_of("site", site, available())
    return traces.load(histories.sites()[site])


def windows(site: str, days: float) -> tuple[Window, ...]:
    """Return the consecutive windows of ``days`` days of a site's record; drop a shorter rest.

    Raises:
        ValueError: the record is shorter.
    """
    length = trace_of(site).days
    count = int(length / days)
    if count < 1:
        raise ValueError(f"days must be at most {length:g}, the record of {site!r}, got {days!r}")
    return tuple((days * number, days * (number + 1)) for number in range(count))


def lasting(site: str, window: Window) -> Contents:
    """Return the contents of the pages with recorded fragments that exist all through a window.

    Times count from the window's start. Fragments present at the start have a birth before it.

    Raises:
        ValueError: the window is not in the record, or there is no such page.
    """
    record = trace_of(site)
    start, end = window
    contents, pages = window_contents(record, start, end)
    throughout = (record.created[pages] <= start) & (record.deleted[pages] > end)
    if not throughout.any():
        raise ValueError(f"no page of {site!r} exists in all of ({start:g}, {end:g}]")
    return of_pages(contents, np.flatnonzero(throughout))


def of_pages(contents: Contents, pages: IntArray) -> Contents:
    """Return the contents of some pages, renumbered in the order of ``pages``; -1 is empty."""
    number = np.full(contents.num_pages, -1, np.int64)
    there = np.flatnonzero(pages >= 0)
    number[pages[there]] = there
    page = number[contents.page]
    selected = page >= 0
    columns = (contents.birth, contents.death, contents.size, contents.key)
    return Contents.of_spells(pages.size, page[selected], *(column[selected] for column in columns))


class SecondHalf(NamedTuple):
    """The second half of a site's record: its days, its pages with fragments, and their contents.

    ``pages`` are rows of the trace, (k,); ``alive`` is the mean number of those that exist.
    """

    trace: Trace
    split: Split
    pages: IntArray
    contents: Contents
    alive: float


@cache
def second_half(site: str) -> SecondHalf:
    """Read the second half of a site's record, with a random MAX_PAGES of its pages if it has more.

    Raises:
        ValueError: it is not available, or has no fragments.
    """
    trace = trace_of(site)
    split = histories.halves(trace.days)
    contents, pages = window_contents(trace, split.start, split.end)
    if pages.size > MAX_PAGES:
        sample = np.sort(np.random.default_rng(0).choice(pages.size, MAX_PAGES, replace=False))
        contents, pages = of_pages(contents, sample), pages[sample]
    days = trace.alive_days(split.start, split.end)[pages]
    return SecondHalf(trace, split, pages, contents, float(days.sum()) / (split.end - split.start))


class RecordedPages(FragmentAccess, CrawlEnv):
    """An environment of recorded pages of a ``site``, as ``CrawlLongevity-v0`` on a trace."""

    site = ""


def replayed(
    site: str,
    *,
    form: str,
    bandwidth: float,
    batch: int = 1,
    signals: Signals = "none",
    reveal: Reveal = "importance",
    base_versions: int = 0,
) -> RecordedPages:
    """Return an environment of the second half of a site's record.

    Parameters are fitted to the first half.

    Args:
        site: name of the site.
        form: ``scores`` or ``refresh``.
        bandwidth: crawls per day, or ticks per day of ``refresh``.
        batch: crawls per decision of ``scores``.
        signals: directory, mentions, both or none.
        reveal: whether parameters are revealed.
        base_versions: number of base versions that copies are compared with.
    """
    trace, split, pages, contents, _ = second_half(site)
    window = trace.window(split.start, split.end, signals).of_pages(pages)
    fitted = fit(trace, split.fit_start, split.fit_end, signals, newborn_prior=False)
    source = replay(trace, window, fitted, bandwidth=bandwidth, pages=pages, contents=contents)
    lanes = partial(
        FragmentLanes,
        generator=source,
        form=action_form(form, source.num_pages, batch),
        horizon=source.duration,
        base_versions=base_versions,
        reveal=reveal,
        tape=source.tape,
        contents=contents,
    )
    env = RecordedPages(lanes, Objective("fragments"))
    env.site = site
    return env


@cache
def curves(site: str, *, of_played: bool = False) -> TabulatedCurves:
    """Return the average divergence curve of each page of a site, from its record's first half.

    The first and the last content of a page are extended to times when it did not exist. A page
    that never existed has the mean curve of the others.

    Args:
        site: name of the site.
        of_played: measure the second half, which is unknown to trackers.
    """
    trace, split, pages, *_ = second_half(site)
    start, end = (split.start, split.end) if of_played else (split.fit_start, split.fit_end)
    contents, rows = window_contents(trace, start, end)
    place = np.searchsorted(rows, pages)
    existing = rows[np.minimum(place, rows.size - 1)] == pages
    contents = of_pages(contents, np.where(existing, place, -1))
    page = contents.page
    created, deleted = trace.created[pages][page] - start, trace.deleted[pages][page] - start
    stretched = Contents.of_spells(
        contents.num_pages,
        page,
        np.where(contents.birth <= created, -np.inf, contents.birth),
        np.where(contents.death >= deleted, np.inf, contents.death),
        contents.size,
        contents.key,
    )
    measured = TabulatedCurves.of_contents(stretched, SNAPSHOTS, end - start)
    if existing.all() or not existing.any():
        return measured
    table = measured.table[:, 1:].copy()
    table[~existing] = table[existing].mean(axis=0)
    return TabulatedCurves(measured.ages[1:], table)
