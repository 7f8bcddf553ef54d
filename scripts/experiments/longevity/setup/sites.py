"""Recorded pages with fragments: environments on them, and parameters fitted to earlier days.

Only pages with recorded fragments are used. A trace may keep fragments only of pages that changed
often enough, and only those whose hash is a multiple of its ``fragment_modulus``: divergences of
short pages are then coarse.
"""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from crawl_envs.envs.single import CrawlEnv
from crawl_envs.families.longevity import FragmentAccess
from crawl_envs.instances.traces.fragments import window_contents
from crawl_envs.instances.traces.instance import replay
from crawl_envs.instances.traces.windows import Signals, Trace
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import IntArray, Reveal
from crawl_envs.types.contents import Contents
from crawl_envs.worlds.fragments.lanes import FragmentLanes
from policies.values.divergence.tabulated import TabulatedCurves
from scripts.data.fit_trace import fit
from scripts.experiments.longevity.setup.fragment_records import fragment_record, of_pages
from scripts.experiments.measures.recorded import Split, halves

MOST_PAGES = 200
"""Largest number of pages of a site; larger sites are sampled at random."""
SNAPSHOTS = 2.0
"""Days between the versions that divergence curves are measured on."""


class RecordedPages(FragmentAccess, CrawlEnv):
    """An environment of recorded pages, as ``CrawlLongevity-v0`` on a trace."""


class Played(NamedTuple):
    """The second half of a record: its days, its pages with fragments, and their contents.

    ``pages`` are rows of the trace, (k,).
    """

    trace: Trace
    split: Split
    pages: IntArray
    contents: Contents


@cache
def record(site: str) -> Played:
    """Read the second half of a site's record, of at most MOST_PAGES pages.

    Raises:
        ValueError: it is not available, or has no fragments.
    """
    trace = fragment_record(site)
    split = halves(trace.days)
    contents, pages = window_contents(trace, split.start, split.end)
    if pages.size > MOST_PAGES:
        kept = np.sort(np.random.default_rng(0).choice(pages.size, MOST_PAGES, replace=False))
        contents, pages = of_pages(contents, kept), pages[kept]
    return Played(trace, split, pages, contents)


def alive_pages(played: Played) -> float:
    """Return the mean number of pages that exist."""
    split = played.split
    days = played.trace.alive_days(split.start, split.end)[played.pages]
    return float(days.sum()) / (split.end - split.start)


def replayed(
    site: str,
    *,
    signals: Signals,
    form: str,
    bandwidth: float,
    batch: int = 1,
    reveal: Reveal = "importance",
    base_versions: int = 0,
) -> RecordedPages:
    """Return an environment that plays the second half of a site's record.

    Parameters are fitted to the first half.

    Args:
        site: its name.
        signals: directory, mentions, both or none.
        form: ``scores`` or ``refresh``.
        bandwidth: crawls per day, or ticks per day of ``refresh``.
        batch: crawls per decision of ``scores``.
        reveal: whether parameters are revealed.
        base_versions: number of base versions that copies are compared with.
    """
    trace, split, pages, contents = record(site)
    window = trace.window(split.start, split.end, signals).of_pages(pages)
    fitted = fit(trace, split.fit_start, split.fit_end, signals)
    generator = replay(trace, window, fitted, bandwidth=bandwidth, pages=pages, contents=contents)
    lanes = partial(
        FragmentLanes,
        generator=generator,
        form=action_form(form, generator.num_pages, batch),
        horizon=generator.duration,
        base_versions=base_versions,
        reveal=reveal,
        tape=generator.tape,
        contents=contents,
    )
    return RecordedPages(lanes, Objective("fragments"))


@cache
def curves(site: str, *, of_played: bool = False) -> TabulatedCurves:
    """Return average divergence curves of a site's pages, measured in the first half of its record.

    The first and the last content of a page are extended to times when it did not exist. A page
    that did not exist at all has the mean curve of the others.

    Args:
        site: its name.
        of_played: measure them in the second half, which no tracker can know.
    """
    played = record(site)
    trace, split = played.trace, played.split
    start, end = (split.start, split.end) if of_played else (split.fit_start, split.fit_end)
    contents, rows = window_contents(trace, start, end)
    place = np.searchsorted(rows, played.pages)
    known = rows[np.minimum(place, rows.size - 1)] == played.pages
    contents = of_pages(contents, np.where(known, place, -1))
    created = trace.created[played.pages] - start
    deleted = trace.deleted[played.pages] - start
    page = contents.page
    stretched = Contents.of_spells(
        contents.num_pages,
        page,
        np.where(contents.birth <= created[page], -np.inf, contents.birth),
        np.where(contents.death >= deleted[page], np.inf, contents.death),
        contents.size,
        contents.key,
    )
    measured = TabulatedCurves.of_contents(stretched, SNAPSHOTS, end - start)
    if known.all() or not known.any():
        return measured
    table = measured.table[:, 1:].copy()
    table[~known] = table[known].mean(axis=0)
    return TabulatedCurves(measured.ages[1:], table)
