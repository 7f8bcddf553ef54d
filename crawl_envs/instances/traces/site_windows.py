"""Instances that replay random windows and directories of recorded sites."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crawl_envs.instances.laws import Generator
from crawl_envs.instances.traces.collection import SPLITS, sites
from crawl_envs.instances.traces.instance import (
    IMPORTANCES,
    days_before,
    draw_importance,
    starts_crawled,
)
from crawl_envs.instances.traces.loading import find, load
from crawl_envs.instances.traces.parameters import Parameters, load_parameters, parameters_path
from crawl_envs.instances.traces.windows import Signals, Trace, TraceWindow, check_signals
from crawl_envs.sim.law import CustomEvents
from crawl_envs.types import BoolArray, Instance, IntArray
from crawl_envs.types.arguments import one_of, quantity, whole
from crawl_envs.worlds.episodes import Start

DAYS_PER_CRAWL = 10.0
"""Default mean days between crawls of a page."""
TIME_TOLERANCE = 1e-9
"""Days by which the length of a window may differ from the difference of its ends."""
MAX_DRAWS = 100
"""Largest number of windows that are drawn in search of one with crawls and a change."""


@dataclass(frozen=True, eq=False, init=False)
class SitePages(CustomEvents):
    """Pages of a recorded site in a window, with their recorded events.

    Attributes:
        site: name of the site.
        day: day of the record at which an episode begins.
        before: days of the events before it, in which all pages are crawled once.
        pages: rows of the first k pages in the site's trace, ascending, (k,) int64; further pages
            never exist.
        tape: the events after day - before.
    """

    mortal: ClassVar[bool] = True
    site: str
    day: float
    before: float
    pages: IntArray
    tape: TraceWindow

    def __init__(
        self, site: str, day: float, before: float, pages: IntArray, tape: TraceWindow, **more: Any
    ) -> None:
        super().__init__(**more)
        vars(self).update(site=site, day=day, before=before, pages=pages, tape=tape)

    @property
    def alive_at_start(self) -> BoolArray:
        """Mask of the pages that exist at time 0, (m,) bool."""
        return self.tape.alive

    def draw_tape(self, rng: np.random.Generator, horizon: float) -> TraceWindow:
        """Return the events of the window; ValueError if ``horizon`` is beyond its end."""
        if horizon > self.tape.duration + TIME_TOLERANCE:
            days = f"{self.tape.duration:g}, the days of the window of site {self.site!r}"
            raise ValueError(f"horizon must be at most {days}, got {horizon:g}")
        return self.tape

    def expected_events(self, horizon: float, requests: bool = True) -> float:
        """Return the number of events up to ``horizon``."""
        return float(np.searchsorted(self.tape.time, horizon, side="right"))


@dataclass(frozen=True, eq=False, kw_only=True)
class SiteGenerator(Generator):
    """A generator of windows of recorded sites.

    Attributes:
        duration: length of the episodes in days.
        before: largest number of days before an episode; 0 for fresh starts.
    """

    mortal: ClassVar[bool] = True
    duration: float
    before: float = 0.0


def _read_site(folder: Path, signals: Signals) -> tuple[Trace, Parameters]:
    """Return the trace in a folder and its fitted parameters, read again if a file has changed."""
    files = sorted((file.name, file.stat().st_mtime_ns) for file in folder.iterdir())
    return _read_files(folder, signals, tuple(files))


@cache
def _read_files(folder: Path, signals: Signals, files: Any) -> tuple[Trace, Parameters]:
    trace = load(folder)
    return trace, load_parameters(parameters_path(folder, signals), trace)


def _folders_of(split: str | Sequence[str]) -> list[Path]:
    """Return the folders of the sites of a split, or of a site, or of several sites."""
    names: Any = sites(split) if isinstance(split, str) and split in SPLITS else split
    names = (names,) if isinstance(names, str | Path) else names
    expected = (
        "split must be train, dev or test with sites, or a site or a list of sites by the folder "
        "of a record or by name, as crawl_envs.instances.traces.sites(split) lists"
    )
    if not isinstance(names, Sequence) or len(names) == 0:
        raise ValueError(f"{expected}, got {split!r}")
    folders = []
    for name in names:
        with suppress(ValueError):
            if (folder := find(name)).joinpath("meta.json").is_file():
                folders.append(folder)
                continue
        where = "" if name == split else f" in {split!r}"
        raise ValueError(f"{expected}, got {name!r}{where}")
    return folders


def _range_of(days_per_crawl: float | Sequence[float]) -> tuple[float, float]:
    """Return the least and the largest number of days per crawl."""
    pair: Any = days_per_crawl if np.ndim(days_per_crawl) == 1 else (days_per_crawl,) * 2
    ends = [quantity("days_per_crawl", days, above=0.0) for days in pair]
    if len(ends) != 2 or ends[0] > ends[1]:
        expected = "days_per_crawl must be a number or a pair (low, high)"
        raise ValueError(f"{expected}, got {days_per_crawl!r}")
    return ends[0], ends[1]


class _Windows(NamedTuple):
    """The windows of recorded sites; ``least_share`` is the least share of the bandwidth."""

    records: Sequence[tuple[Trace, Parameters]]
    days: float
    least_share: float
    signals: Signals
    zipf: bool
    crawled: bool
    epoch: float | None

    def draw(
        self, rng: np.random.Generator, num_pages: int, *, bandwidth: float, **steps: Any
    ) -> Instance:
        """Draw a site, a window, directories and a share of ``bandwidth``.

        ``bandwidth`` is that of ``num_pages`` existing pages at the least number of days per crawl.
        """
        trace, fitted = self.records[int(rng.integers(len(self.records)))]
        share = float(self.least_share ** rng.random()) / num_pages
        for _ in range(MAX_DRAWS):
            day = trace.days / 2.0 + float(rng.random()) * (trace.days / 2.0 - self.days)
            end = day + self.days
            pages = _draw_pages(rng, trace, day, end, num_pages)
            alive = float(trace.alive_days(day, end)[pages].sum()) / self.days
            rate, before = bandwidth * share * alive, 0.0
            if alive < 1.0 or not trace.has_changes(pages, day, end):
                continue
            with suppress(ValueError):  # too few days before the window
                if self.crawled:
                    before = days_before(trace, pages, day, rate, self.epoch)
                break
        else:
            raise ValueError(
                f"site {trace.name!r} must have a window of {self.days:g} days in its second half "
                f"with a page all the time and a change, got none in {MAX_DRAWS} draws"
            )
        missing, names = num_pages - pages.size, ("change_rate", "recall", "false_signal_rate")
        rows, exists = np.pad(pages, (0, missing)), np.arange(num_pages) < pages.size
        directory = np.where(exists, trace.directory[rows], trace.directory.max() + 1)
        window = trace.of_pages(pages).window(day - before, end, self.signals)
        return SitePages(
            trace.name,
            day,
            before,
            pages,
            window.with_missing(missing),
            importance=draw_importance(rng, num_pages, self.zipf),
            bandwidth=rate,
            group=np.unique(directory, return_inverse=True)[1],
            **{name: getattr(fitted, name)[..., rows] * exists for name in names},
            **steps,
        )


def _draw_pages(
    rng: np.random.Generator, trace: Trace, start: float, end: float, num_pages: int
) -> IntArray:
    """Return rows of at most ``num_pages`` pages that exist in a window, ascending.

    Directories are drawn in random order; the last one is cut.
    """
    exists = np.flatnonzero((trace.created <= end) & (trace.deleted > start))
    place = rng.permutation(int(trace.directory.max()) + 1)[trace.directory[exists]]
    return np.sort(exists[np.argsort(place, kind="stable")][:num_pages])


def site_generator(
    split: str | Sequence[str] = "train",
    *,
    num_pages: int = 100,
    days: float | None = None,
    days_per_crawl: float | Sequence[float] = DAYS_PER_CRAWL,
    signals: str = "both",
    importance: str = "uniform",
    cost_spread: float = 0.0,
    start: Start = "fresh",
    epoch: float | None = None,
) -> SiteGenerator:
    """Return a generator of windows of recorded sites.

    Args:
        split: train, dev or test; or a name or folder of a site, or several.
        num_pages: number of pages, m: whole directories in random order, the last one cut. If a
            site has fewer, the others never exist.
        days: length of the windows, which lie in the second halves of the records and have a
            change; None for the shortest second half.
        days_per_crawl: mean days between crawls of a page under uniform crawls; a pair (low, high)
            for a log-uniform number per instance.
        signals: kind of recorded signals: directory, mentions, both or none.
        importance: ``uniform`` or ``zipf``.
        cost_spread: of :class:`crawl_envs.instances.laws.Generator`.
        start: of :func:`crawl_envs.instances.traces.instance.recorded`.
        epoch: of :func:`crawl_envs.instances.traces.instance.recorded`.

    Raises:
        ValueError: an argument is outside its range, ``crawled`` with costs, or a site or its
            parameters do not exist. Draws raise it if a site has no window.
    """
    kind, pages = check_signals(signals), whole("num_pages", num_pages, 1)
    zipf = one_of("importance", importance, IMPORTANCES) == "zipf"
    low, high = _range_of(days_per_crawl)
    records = [_read_site(folder, kind) for folder in _folders_of(split)]
    shortest = min((trace for trace, _ in records), key=lambda trace: trace.days)
    length = quantity("days", shortest.days / 2.0 if days is None else days, above=0.0)
    if length > shortest.days / 2.0:
        half = f"{shortest.days / 2.0:g}, the second half of site {shortest.name!r}"
        raise ValueError(f"days must be at most {half}, got {days!r}")
    if length < high:
        raise ValueError(f"days must be at least {high:g}, the days per crawl, got {length!r}")
    crawled = starts_crawled(start, cost_spread)
    return SiteGenerator(
        draw=_Windows(records, length, low / high, kind, zipf, crawled, epoch).draw,
        num_pages=pages,
        bandwidth=pages / low,
        num_sources=records[0][1].num_sources,
        cost_spread=cost_spread,
        duration=length,
        before=max(trace.days for trace, _ in records) * crawled,
    )
