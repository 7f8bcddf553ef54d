"""Recorded change histories as instances with given events and fitted parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from crawl_envs.instances.laws import Generator
from crawl_envs.instances.traces.fragments import window_contents
from crawl_envs.instances.traces.loading import find, load
from crawl_envs.instances.traces.parameters import Parameters, load_parameters, parameters_path
from crawl_envs.instances.traces.windows import Trace, TraceWindow, check_signals
from crawl_envs.sim.clock import SLACK
from crawl_envs.types import FloatArray, Instance, IntArray
from crawl_envs.types.arguments import file_path, one_of, quantity, real
from crawl_envs.types.contents import Contents
from crawl_envs.worlds.episodes import Start

IMPORTANCES = ("uniform", "zipf")
DAYS_PER_CRAWL = 30.0
"""Default mean days between crawls of a page."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Recorded(Generator):
    """A generator of instances of a window of a trace, with the window's events.

    Attributes:
        tape: the events.
        contents: fragments of the pages, if requested.
        cost: costs of crawls, (m,), instead of random ones; None for those of ``cost_spread``.
        before: days of the tape before an episode, in which all pages are crawled once.
    """

    tape: TraceWindow
    contents: Contents | None = None
    cost: FloatArray | None = None
    before: float = 0.0

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance with the NumPy generator ``rng``."""
        instance = super().__call__(rng)
        return instance if self.cost is None else instance.with_cost(self.cost)

    @property
    def least_cost(self) -> float | None:
        """Least possible cost of a crawl; None without costs."""
        return super().least_cost if self.cost is None else float(self.cost.min())

    @property
    def duration(self) -> float:
        """Length of the episodes in days."""
        return self.tape.duration - self.before


def replay(
    trace: Trace,
    window: TraceWindow,
    fitted: Parameters,
    *,
    bandwidth: float,
    importance: str = "uniform",
    pages: IntArray | slice = slice(None),
    contents: Contents | None = None,
    cost_spread: float = 0.0,
    before: float = 0.0,
) -> Recorded:
    """Return a generator of instances that replay a window of a trace, with fitted parameters.

    The parameters may be fitted to any window.

    Args:
        trace: the record.
        window: the events of the pages.
        fitted: parameters of all pages of the trace.
        bandwidth: crawls per day.
        importance: ``uniform``, or ``zipf``: 1 / rank in an order drawn with the generator, on
            which nothing else depends.
        pages: rows of the pages in the trace, (m,); by default all.
        contents: fragments of the pages.
        cost_spread: of :class:`crawl_envs.instances.laws.Generator`.
        before: days of the window before the episodes.
    """
    values = (fitted.change_rate, fitted.recall, fitted.false_signal_rate)
    parameters = [column[..., pages] for column in values]
    zipf, group = importance == "zipf", trace.directory[pages]
    return Recorded(
        draw=partial(_draw, zipf=zipf, parameters=parameters, group=group),
        num_pages=window.alive.size,
        bandwidth=bandwidth,
        num_sources=window.num_sources,
        cost_spread=cost_spread,
        tape=window,
        contents=contents,
        before=before,
    )


def starts_crawled(start: str, cost_spread: float) -> bool:
    """Return whether a round of crawls comes first; ValueError with costs, or for another word."""
    crawled: bool = one_of("start", start, Start) == "crawled"
    if crawled and cost_spread != 0.0:
        raise ValueError(
            "cost_spread must be 0 with start='crawled' and recorded pages, whose crawls take "
            f"a fixed number of days, got {cost_spread!r}; use start='fresh'"
        )
    return crawled


def days_before(
    record: Trace, pages: IntArray, day: float, bandwidth: float, epoch: float | None
) -> float:
    """Return the least number of days before a day in which all pages can be crawled once.

    The pages are those that exist when the crawls start. The days are a whole number of crawls, or
    of epochs.

    Raises:
        ValueError: the record starts later, or has no page then.
    """
    step = 1.0 / bandwidth if epoch is None else quantity("epoch", epoch, above=0.0)
    days = step * np.arange(min(pages.size / bandwidth, day) / step + 1.0)
    created, deleted = np.sort(record.created[pages]), np.sort(record.deleted[pages])
    born, gone = (np.searchsorted(times, day - days, "right") for times in (created, deleted))
    living = born - gone
    enough = (living > 0) & (living <= days * bandwidth + SLACK) & (days <= day)
    if not enough.any():
        raise ValueError(
            "window must leave the days in which all pages are crawled once before it, with "
            f"start='crawled', got first day {day:g} with {living[0]} pages at "
            f"{bandwidth:g} crawls per day; let it begin later, raise the bandwidth, or use "
            "start='fresh'"
        )
    return float(days[np.argmax(enough)])


def draw_importance(rng: np.random.Generator, num_pages: int, zipf: bool) -> FloatArray:
    """Return 1 / rank of each page in a random order, or 1 without ``zipf``, (m,)."""
    rank = rng.permutation(num_pages) + 1.0 if zipf else np.ones(num_pages)
    return np.asarray(1.0 / rank)


def _draw(
    rng: np.random.Generator,
    num_pages: int,
    zipf: bool,
    parameters: Sequence[FloatArray],
    **more: Any,
) -> Instance:
    """Draw an instance of pages with fitted parameters: only the importance is random."""
    return Instance(draw_importance(rng, num_pages, zipf), *parameters, **more)


def _days(window: Any) -> tuple[float, float]:
    """Return a window's first and last day; raise ValueError if the argument is no such pair."""
    pair = isinstance(window, Sequence | np.ndarray) and not isinstance(window, str)
    if not pair or np.shape(window) != (2,):
        raise ValueError(f"window must be a first and a last day, got {window!r}")
    first, last = (real("window", day) for day in window)
    if first >= last:
        raise ValueError(f"window must be a first and a later last day, got {window!r}")
    return first, last


def recorded(
    trace: str,
    *,
    signals: str = "directory",
    window: Sequence[float] | None = None,
    bandwidth: float | None = None,
    days_per_crawl: float | None = None,
    importance: str = "uniform",
    parameters: str | None = None,
    fragments: bool = False,
    cost_spread: float = 0.0,
    start: Start = "fresh",
    epoch: float | None = None,
) -> Recorded:
    """Read a trace and its fitted parameters; return a generator that replays a window of it.

    Args:
        trace: name of a shipped trace, or path of a folder.
        signals: kind of recorded signals: directory, mentions, both or none.
        window: first and last day, within the trace; None is the second half.
        bandwidth: crawls per day; None is the mean number of pages alive in the window divided by
            ``days_per_crawl``.
        days_per_crawl: mean days between crawls of a page under uniform crawls, > 0; None is 30.
        importance: ``uniform`` or ``zipf``.
        parameters: file of fitted parameters; None is the default file in the folder of the trace.
        fragments: whether to keep only pages with recorded fragments, and return their contents.
        cost_spread: of :class:`crawl_envs.instances.laws.Generator`.
        start: ``fresh``, or ``crawled``: all pages are crawled once in the days before the window.
        epoch: length of an epoch, of which these days are a multiple; None for crawls in slots.

    Raises:
        ValueError: an argument is outside its range, ``bandwidth`` and ``days_per_crawl`` are both
            given, ``crawled`` with costs or without enough days before the window, or a file is
            missing or invalid.
    """
    days = None if window is None else _days(window)
    kind = check_signals(signals)
    one_of("importance", importance, IMPORTANCES)
    if bandwidth is not None and days_per_crawl is not None:
        raise ValueError(f"days_per_crawl must not be given with bandwidth, got {days_per_crawl!r}")
    between = DAYS_PER_CRAWL if days_per_crawl is None else days_per_crawl
    quantity("days_per_crawl", between, above=0.0)
    folder = find(trace)
    record = load(folder)
    first, last = days or (record.days / 2.0, record.days)
    contents, pages = (
        window_contents(record, first, last) if fragments else (None, np.arange(record.num_pages))
    )
    if bandwidth is None:
        bandwidth = float(record.alive_days(first, last)[pages].sum()) / (last - first) / between
    before = 0.0
    if starts_crawled(start, cost_spread):
        rate = quantity("bandwidth", bandwidth, above=0.0)
        before = days_before(record, pages, first, rate, epoch)
        if contents is not None:
            contents, _ = window_contents(record, first, last, before)
    events = record.window(first - before, last, kind).of_pages(pages)
    default_path = parameters_path(folder, kind)
    path = default_path if parameters is None else file_path("parameters", parameters)
    fitted = load_parameters(path, record)
    if fitted.num_sources != events.num_sources:
        raise ValueError(
            f"parameters must be fitted to {events.num_sources} sources for signals={kind!r}, "
            f"got those of {fitted.signals!r}: {path}"
        )
    more: dict[str, Any] = {"importance": importance, "pages": pages, "contents": contents}
    more["before"] = before
    return replay(record, events, fitted, bandwidth=bandwidth, cost_spread=cost_spread, **more)
