"""Pages made of churn and scroll regions, updated as Poisson processes, and their signals.

Every region has its own random stream, and so has every page for its false signals. Each is drawn
in order of time, so that a longer horizon only adds events. A region of K items starts with K
spells; an update starts a spell and ends the one started K updates before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.state import state_at
from crawl_envs.sim.streams import GOLDEN, Stream, UintArray, mixed, next_uniform, stream_of
from crawl_envs.sim.tape import CODE_STRIDE, SIGNAL, UPDATE, Tape, most_of
from crawl_envs.sim.world import World
from crawl_envs.types import BoolArray, FloatArray, IntArray, Problem, Reveal
from crawl_envs.types.contents import Contents, Regions


class Sources(NamedTuple):
    """The sources of a lane's events: all regions of its pages, then each page's false signals."""

    rate: FloatArray  # draws per unit of time
    recall: FloatArray  # probability that a draw has a signal
    items: IntArray  # number of spells at any time
    size: IntArray  # fragments of a spell, 0 of false signals
    page: IntArray


class Draws(NamedTuple):
    """The events drawn for n sources: updates of regions, and false signals of pages.

    A source has a row for each initial spell, and then one for each draw, in order of time.
    """

    start: IntArray  # first row of each source, (n + 1,)
    source: NDArray[np.int32]  # source of each row
    time: FloatArray  # time of each row, -inf for initial spells
    signalled: BoolArray  # the draws with a signal
    order: NDArray[np.int32]  # rows of all draws in order of time


@inlined(forceinline=True)
def next_gap(stream: Stream, rate: float) -> tuple[float, Stream]:
    """Draw an exponential waiting time at a rate > 0; return it and the stream after the draw."""
    uniform, stream = next_uniform(stream)
    return -math.log(uniform) / rate, stream


@compiled()
def draw_sources(sources: Sources, seeds: UintArray, horizon: float, room: int) -> Draws:
    """Draw the updates and false signals of n sources in (0, horizon], at most ``room`` rows.

    ``seeds``, (n,), start one random stream for each source.
    """
    start, source = np.empty(seeds.size + 1, np.int64), np.empty(room, np.int32)
    times, signalled = np.empty(room), np.empty(room, np.bool_)
    counts, scale, row = np.zeros(room + 2, np.int32), room / horizon, 0
    for number in range(seeds.size):
        rate, recall, start[number] = sources.rate[number], sources.recall[number], row
        for _ in range(sources.items[number]):
            source[row], times[row], signalled[row] = number, -np.inf, False
            row += 1
        if rate == 0.0:
            continue
        time, stream = next_gap(stream_of(seeds[number], np.uint64(0)), rate)
        while time <= horizon:
            uniform, stream = next_uniform(stream)
            source[row], times[row], signalled[row] = number, time, uniform <= recall
            counts[int(time * scale) + 1] += 1
            row += 1
            gap, stream = next_gap(stream, rate)
            time += gap
    start[-1], times = row, times[:row]
    return Draws(start, source[:row], times, signalled[:row], in_order(times, scale, counts))


@inlined()
def in_order(times: FloatArray, scale: float, place: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sort rows by time; rows with infinite times are left out, equal times keep their order.

    Rows are put in buckets of time, ``scale`` per unit, about one in each because times are
    uniform, and then moved to their place by insertion. ``place`` is the number of times in the
    bucket before each bucket; it is changed.
    """
    for bucket in range(1, place.size):
        place[bucket] += place[bucket - 1]
    ordered, rows = np.empty(place[-1]), np.empty(place[-1], np.int32)
    for row in range(times.size):
        if times[row] >= 0.0:
            bucket = int(times[row] * scale)
            ordered[place[bucket]], rows[place[bucket]] = times[row], row
            place[bucket] += 1
    for position in range(1, rows.size):
        time, row = ordered[position], rows[position]
        while position > 0 and ordered[position - 1] > time:
            ordered[position], rows[position] = ordered[position - 1], rows[position - 1]
            position -= 1
        ordered[position], rows[position] = time, row
    return rows


@compiled()
def draw_events(
    table: IntArray, lane: int, sources: Sources, seeds: UintArray, horizon: float, room: int
) -> None:
    """Draw the updates and signals of a lane's episode as its tape, which must have room for all.

    The arguments are as for :func:`draw_sources`.
    """
    state, draws = state_at(table), draw_sources(sources, seeds, horizon, room)
    tape, event = state.tape[lane], 0
    for position in range(draws.order.size):
        row = draws.order[position]
        time, source = draws.time[row], draws.source[row]
        code = sources.page[source] * CODE_STRIDE
        if sources.size[source] > 0:
            tape[event].time, tape[event].code = time, code + UPDATE
            state.detail[lane, event] = sources.size[source]
            state.since[lane, event] = draws.time[row - sources.items[source]]
            event += 1
        if draws.signalled[row]:
            tape[event].time, tape[event].code = time, code + SIGNAL
            event += 1
    record = state.lanes[lane]
    record.recorded, record.length = True, event


class RegionPages(CustomEvents):
    """Pages of regions, each updated by an independent Poisson process.

    The change rate of a page is the total update rate of its regions. An update is signalled with
    the page's recall, for any region; false signals are Poisson.

    Args:
        importance: weight of each page, >= 0, (m,) or a scalar (W of eq. 1).
        regions: regions of the m pages.
        recall: probability in [0, 1] that an update emits a signal, (m,) or a scalar.
        false_signal_rate: rate of signals without an update, >= 0, (m,) or a scalar.
        bandwidth: crawls per day, > 0; decisions per day with the action form ``refresh``.
        bandwidth_steps: later changes of the bandwidth, as (time, bandwidth) pairs.

    Raises:
        ValueError: as for :class:`crawl_envs.types.Instance`; several sources of signals.
    """

    regions: Regions

    def __init__(
        self,
        importance: ArrayLike,
        regions: Regions,
        recall: ArrayLike = 0.0,
        false_signal_rate: ArrayLike = 0.0,
        *,
        bandwidth: float,
        bandwidth_steps: Sequence[Sequence[float]] = (),
    ) -> None:
        if not isinstance(regions, Regions):
            raise ValueError(f"regions must be Regions, got {type(regions).__name__}")
        super().__init__(
            importance,
            regions.change_rate,
            recall,
            false_signal_rate,
            bandwidth=bandwidth,
            bandwidth_steps=bandwidth_steps,
        )
        if self.num_sources != 1:
            raise ValueError(f"recall must be of 1 source of signals, got {self.num_sources}")
        object.__setattr__(self, "regions", regions)

    def _public(self, reveal: Reveal) -> Problem:
        regions = self.regions if reveal == "parameters" else None
        return replace(super()._public(reveal), regions=regions)

    @cached_property
    def sources(self) -> Sources:
        """The sources of updates and false signals; a static region has one spell, if any."""
        items, size, rate = self.regions.items, self.regions.size, self.regions.rate
        pages, none = np.arange(self.num_pages), np.zeros(self.num_pages, np.int64)
        spells = np.where(rate > 0.0, items, size > 0)
        sizes = np.where(rate > 0.0, size, items * size)
        per_page = rate.shape[1]
        return Sources(
            np.concatenate((rate.ravel(), self.false_signal_rate)),
            np.concatenate((np.repeat(self.recall, per_page), np.ones(self.num_pages))),
            np.concatenate((spells.ravel(), none)),
            np.concatenate((sizes.ravel(), none)),
            np.concatenate((np.repeat(pages, per_page), pages)),
        )

    def expected_events(self, horizon: float, requests: bool = True) -> float:
        """Return the approximate number of spells, changes, signals and requests of an episode."""
        rates = self.change_rate.sum() + self.false_signal_rate.sum()
        requested = requests * self.importance.sum()
        return float(self.sources.items.sum() + (2.0 * rates + requested) * horizon)

    def draw_lane(self, world: World, lane: int, rng: np.random.Generator, horizon: float) -> None:
        """Draw the events of an episode of a lane; arguments as of :meth:`draw_contents`."""
        room, signals = self._room(horizon)
        world.lengthen(**dict.fromkeys(("events", "details", "updates"), room + signals))
        draw_events(world.table, lane, self.sources, self._seeds(rng), horizon, room)

    def draw_contents(self, rng: np.random.Generator, horizon: float) -> Contents:
        """Draw the contents of an episode, a pure function of the arguments and the instance.

        Args:
            rng: generator of the lane, independent of actions.
            horizon: the episode covers (0, horizon], > 0; a longer horizon only adds events.
        """
        sources, seeds = self.sources, self._seeds(rng)
        draws = draw_sources(sources, seeds, horizon, self._room(horizon)[0])
        rows = np.flatnonzero(sources.size[draws.source] > 0)
        page = sources.page[draws.source[rows]]
        rows = rows[np.lexsort((draws.time[rows], page))]
        source, end = draws.source[rows], rows + sources.items[draws.source[rows]]
        ends = end < draws.start[source + 1]
        death = np.where(ends, draws.time[np.where(ends, end, 0)], np.inf)
        words: Any = seeds[source] + GOLDEN * (rows - draws.start[source] + 1).astype(np.uint64)
        key: Any = mixed(words)
        start = np.searchsorted(page, np.arange(self.num_pages + 1))
        none = np.full(rows.size, -1)
        return Contents(start, draws.time[rows], death, sources.size[source], key, none)

    def draw_tape(self, rng: np.random.Generator, horizon: float) -> Tape:
        """Draw the changes, signals and Poisson requests of an episode."""
        sources = self.sources
        draws = draw_sources(sources, self._seeds(rng), horizon, self._room(horizon)[0])
        updates = np.isfinite(draws.time) & (sources.size[draws.source] > 0)
        changes, signals = (
            (draws.time[rows], sources.page[draws.source[rows]])
            for rows in (updates, draws.signalled)
        )
        count = rng.poisson(self.importance * horizon)
        times = horizon * (1.0 - rng.random(count.sum()))
        requests = times, np.repeat(np.arange(count.size), count)
        return Tape.of_events(self.num_pages, changes=changes, signals=signals, requests=requests)

    def _seeds(self, rng: np.random.Generator) -> UintArray:
        """Draw a 64-bit seed for the random stream of each source of events, (n,)."""
        return rng.integers(0, 2**64, size=self.sources.rate.size, dtype=np.uint64)

    def _room(self, horizon: float) -> tuple[int, int]:
        """Return the number of rows to allocate for draws, and for the signals of updates.

        The true numbers are Poisson, and exceed the results with a probability below 1e-30.
        """
        rate, recall, items, _, _ = self.sources
        draws, signals = float(rate.sum()) * horizon, float(rate @ recall) * horizon
        return most_of(draws) + int(items.sum()), most_of(signals)
