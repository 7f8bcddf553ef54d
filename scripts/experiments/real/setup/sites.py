"""Recorded histories: available sites, splits into days to fit and to play, environments.

Parameters are fitted to the days before those that are played, or, on request, to the days that
are played. Every play starts with a fresh copy of every page, as environments do.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crawl_envs.envs.single import CrawlEnv
from crawl_envs.instances import traces
from crawl_envs.instances.traces import Signals, Trace
from crawl_envs.instances.traces.instance import replay
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import FloatArray, Reveal
from crawl_envs.types.arguments import one_of
from crawl_envs.worlds.lanes import Lanes
from scripts.data.fit_trace import fit

FOLDER_VARIABLE = "CRAWL_TRACES"
"""Environment variable: a folder of further traces, one folder each."""

MOST_PAGES = 1500
"""Larger sites are thinned to whole directories with about this many pages in all."""

SITES = (
    "garden-handbook",
    "browser-compat",
    "eol-release-data",
    "nyc-covid",
    "programming-books",
    "python-peps",
    "rust-blog",
    "scoop-main",
    "tldr-pages",
)
"""Sites of the committed rows; the first is shipped, others come from public repositories."""

QUARTERS = 4


class Split(NamedTuple):
    """Days that parameters are fitted to, and days that are played."""

    fit_start: float
    fit_end: float
    start: float
    end: float


def sites() -> dict[str, Path]:
    """Return the folders of all available traces, by name: shipped ones, and those of a folder.

    Raises:
        ValueError: the environment variable names no folder.
    """
    folders = {name: traces.find(name) for name in traces.shipped()}
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        if not Path(folder).is_dir():
            raise ValueError(f"{FOLDER_VARIABLE} must name a folder of traces, got {folder!r}")
        folders |= {
            path.parent.name: path.parent for path in sorted(Path(folder).glob("*/meta.json"))
        }
    return folders


def halves(days: float) -> Split:
    """Return the first half of a record to fit to, and the second to play."""
    return Split(0.0, days / 2.0, days / 2.0, days)


def quarter(days: float, number: int) -> Split:
    """Return a quarter of the second half to play, 0 to 3, and all days before it to fit to."""
    length = days / 2.0 / QUARTERS
    start = days / 2.0 + number * length
    return Split(0.0, start, start, min(start + length, days))


@cache
def record(site: str) -> Trace:
    """Read the trace of an available site, thinned if it is large.

    Raises:
        ValueError: the site is not available.
    """
    folders = sites()
    one_of("site", site, folders)
    return thinned(traces.load(folders[site]), MOST_PAGES)


def thinned(trace: Trace, most: int) -> Trace:
    """Keep whole directories, drawn at random, until they have ``most`` pages.

    A directory of more than half as many pages is kept only if it comes first.
    """
    if trace.num_pages <= most:
        return trace
    size = np.bincount(trace.directory)
    order = np.random.default_rng(0).permutation(size.size)
    kept_directories = np.zeros(size.size, np.bool_)
    total = 0
    for directory in order:
        if total and total + size[directory] > most:
            continue
        kept_directories[directory] = True
        total += size[directory]
        if total >= most:
            break
    kept = kept_directories[trace.directory]
    number = np.cumsum(kept) - 1
    changes, mentions = kept[trace.change_page], kept[trace.mention_page]
    signals = kept_directories[trace.signal_directory]
    return dataclasses.replace(
        trace,
        created=trace.created[kept],
        deleted=trace.deleted[kept],
        directory=trace.directory[kept],
        change_page=number[trace.change_page[changes]],
        change_time=trace.change_time[changes],
        signal_directory=trace.signal_directory[signals],
        signal_time=trace.signal_time[signals],
        mention_page=number[trace.mention_page[mentions]],
        mention_time=trace.mention_time[mentions],
        fragments=None if trace.fragments is None else trace.fragments.of_pages(kept),
    )


def replayed(
    trace: Trace,
    split: Split,
    *,
    signals: Signals,
    days_per_crawl: float,
    importance: str,
    fit_to_played: bool = False,
    known: Mapping[str, FloatArray] | None = None,
    reveal: Reveal = "parameters",
) -> CrawlEnv:
    """Return an environment that plays a split of a trace.

    Args:
        trace: the record.
        split: the days.
        signals: which signals are sent: directory, mentions, both or none.
        days_per_crawl: days between crawls of a page under an even share of the budget, > 0.
        importance: uniform or zipf.
        fit_to_played: fit the parameters to the days that are played, as in hindsight.
        known: parameters of the pages to reveal instead of those that are fitted.
        reveal: whether parameters are revealed.
    """
    days = (split.start, split.end) if fit_to_played else (split.fit_start, split.fit_end)
    window = trace.window(split.start, split.end, signals)
    alive = float(trace.alive_days(split.start, split.end).sum()) / window.duration
    fitted = dataclasses.replace(fit(trace, *days, signals), **(known or {}))
    generator = replay(
        trace, window, fitted, bandwidth=alive / days_per_crawl, importance=importance
    )
    form = action_form("page", generator.num_pages, 1)
    given = {"horizon": generator.duration, "reveal": reveal, "tape": generator.tape}
    return CrawlEnv(partial(Lanes, generator=generator, form=form, **given), Objective())
