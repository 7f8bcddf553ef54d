"""Random updates of churn and scroll regions as Poisson processes, and their signals.

Every region has its own random stream, and so has every page for its false signals. Each is drawn
in order of time, so that a longer horizon only adds events. A region of K items starts with K
spells; an update appends a spell and ends the one appended K updates before.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.streams import GOLDEN, Stream, UintArray, mixed, next_uniform, stream_of
from crawl_envs.sim.tape import CODE_STRIDE, SIGNAL, UPDATE, Tape
from crawl_envs.types import BoolArray, FloatArray, Instance, IntArray
from crawl_envs.types.compiling import compiled
from crawl_envs.types.contents import Contents
from crawl_envs.types.regions import Regions


class FragmentLaw(CustomEvents):
    """An instance whose pages have fragments."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, horizon: float) -> tuple[Tape, Contents]:
        """Draw an episode, a pure function of the arguments and the instance.

        Args:
            rng: generator of the lane, independent of actions.
            horizon: the episode covers (0, horizon], > 0; a longer horizon only adds events.

        Returns:
            Ends and starts of spells, changes and signals, in this order at equal times, and the
            contents with these spells.
        """


class Draws(NamedTuple):
    """Random draws of n sources: updates of all regions, and then false signals of all pages.

    Attributes:
        start: first row of each source, (n + 1,). A source has a row for each initial spell, and
            then one for each draw, in order of time.
        source: source of each row, undefined for initial spells.
        time: time of each row, undefined for initial spells.
        signalled: mask of the draws with a signal.
        after: linked lists of the draws of all sources in B buckets of time, each in order of time:
            the first row of each bucket, and then the next row after each row; -1 for none.
    """

    start: IntArray
    source: NDArray[np.int32]
    time: FloatArray
    signalled: BoolArray
    after: NDArray[np.int32]


@compiled(forceinline=True)
def next_gap(stream: Stream, rate: float) -> tuple[float, Stream]:
    """Draw an exponential gap of a rate > 0; return it and the stream after it."""
    uniform, stream = next_uniform(stream)
    return -math.log(uniform) / rate, stream


@compiled()
def draw_sources(
    rate: FloatArray, recall: FloatArray, initial: IntArray, seeds: UintArray, horizon: float
) -> Draws:
    """Draw the updates and false signals of all sources in (0, horizon].

    Each is inserted in the list of its bucket when it is drawn: times are uniform, so that a bucket
    has one draw on average. The number of draws is Poisson; the probability that there is no room
    for them is below 1e-30.

    Args:
        rate: draws per unit of time of each source, (n,).
        recall: probability that a draw has a signal, (n,).
        initial: number of initial spells of each source, (n,).
        seeds: seeds of the streams, (n,).
        horizon: end of the episode, > 0.
    """
    mean = rate.sum() * horizon
    room = initial.sum() + int(mean + 12.0 * math.sqrt(mean)) + 64
    start, source = np.empty(rate.size + 1, np.int64), np.empty(room, np.int32)
    times, signalled = np.empty(room), np.zeros(room, np.bool_)
    buckets = int(mean) + 2
    scale = (buckets - 1) / horizon
    after = np.full(buckets + room, -1, np.int32)
    row = 0
    for own in range(rate.size):
        start[own] = row
        row += initial[own]
        if rate[own] == 0.0:
            continue
        time, stream = next_gap(stream_of(seeds[own], np.uint64(0)), rate[own])
        while time <= horizon:
            uniform, stream = next_uniform(stream)
            source[row], times[row], signalled[row] = own, time, uniform <= recall[own]
            place = int(time * scale)
            while after[place] >= 0 and times[after[place]] <= time:
                place = buckets + after[place]
            after[buckets + row], after[place] = after[place], row
            row += 1
            gap, stream = next_gap(stream, rate[own])
            time += gap
    start[-1] = row
    return Draws(start, source, times, signalled, after)


class Spells(NamedTuple):
    """Spells of all pages; see :class:`crawl_envs.types.contents.Contents`."""

    birth: FloatArray
    death: FloatArray
    size: IntArray
    key: UintArray


@compiled(forceinline=True)
def start_spell(spells: Spells, spell: int, time: float, size: int, key: np.uint64) -> None:
    """Fill the row of a spell that starts at a time and has no end yet."""
    spells.birth[spell], spells.death[spell] = time, np.inf
    spells.size[spell], spells.key[spell] = size, mixed(key)


@compiled()
def initial_spells(
    draws: Draws, first: IntArray, initial: IntArray, size: IntArray, seeds: UintArray
) -> tuple[Spells, IntArray, NDArray[np.int32]]:
    """Start the initial spells of all pages.

    Args:
        draws: draws of all sources.
        first: first spell of each page, (m + 1,).
        initial: number of initial spells of each source, (n,).
        size: fragments in a spell of each region, (m G,).
        seeds: seeds of the keys of fragments, (n,).

    Returns:
        All spells, the next spell of each page, and the spell of each row of draws.
    """
    count = first[-1]
    spells = Spells(
        np.empty(count), np.empty(count), np.empty(count, np.int64), np.empty(count, np.uint64)
    )
    following, spell_of = first[:-1].copy(), np.empty(count, np.int32)
    for region in range(size.size):
        page = region * following.size // size.size
        for item in range(initial[region]):
            key = seeds[region] + GOLDEN * np.uint64(item + 1)
            start_spell(spells, following[page], -np.inf, size[region], key)
            spell_of[draws.start[region] + item] = following[page]
            following[page] += 1
    return spells, following, spell_of


class Events(NamedTuple):
    """Columns of a tape; see :class:`crawl_envs.sim.tape.Tape`."""

    time: FloatArray
    code: IntArray
    detail: NDArray[np.int32]


@compiled(forceinline=True)
def put(events: Events, row: int, time: float, code: int, detail: int) -> int:
    """Fill a row of events and return the next row."""
    events.time[row], events.code[row], events.detail[row] = time, code, detail
    return row + 1


@compiled()
def events_of(
    draws: Draws, initial: IntArray, size: IntArray, seeds: UintArray
) -> tuple[Events, IntArray, Spells]:
    """Return the events of draws in order of time, and their spells in order of page and birth.

    An update of a region ends a spell, starts another one, and changes the page.

    Args:
        draws: draws of all sources.
        initial: number of initial spells of each source, (n,).
        size: fragments in a spell of each region, (m G,).
        seeds: seeds of the keys of fragments, (n,).

    Returns:
        Events, first spell of each page, (m + 1,), and spells.
    """
    regions = size.size
    per_page = regions // (initial.size - regions)
    first = draws.start[: regions + 1 : per_page].copy()
    spells, following, spell_of = initial_spells(draws, first, initial, size, seeds)
    count = (first[-1] - initial.sum()) + draws.signalled.sum()
    events = Events(np.empty(count), np.empty(count, np.int64), np.empty(count, np.int32))
    event, buckets = 0, draws.after.size - draws.time.size
    for bucket in range(buckets):
        row = draws.after[bucket]
        while row >= 0:
            time, source = draws.time[row], draws.source[row]
            page = source // per_page if source < regions else source - regions
            code = page * CODE_STRIDE
            if source < regions:
                spell, ended = following[page], spell_of[row - initial[source]]
                following[page] += 1
                spell_of[row], spells.death[ended] = spell, time
                key = seeds[source] + GOLDEN * np.uint64(row - draws.start[source] + 1)
                start_spell(spells, spell, time, size[source], key)
                event = put(events, event, time, code + UPDATE, ended)
            if draws.signalled[row]:
                event = put(events, event, time, code + SIGNAL, -1)
            row = draws.after[buckets + row]
    return events, first, spells


@compiled()
def draw_columns(
    items: IntArray,
    size: IntArray,
    rate: FloatArray,
    recall: FloatArray,
    false_signal_rate: FloatArray,
    seeds: UintArray,
    horizon: float,
) -> tuple[Events, IntArray, Spells]:
    """Draw the columns of a tape and of contents.

    Args:
        items: items of each region, (m, G).
        size: fragments per item, (m, G).
        rate: updates per unit of time, (m, G).
        recall: probability that an update has a signal, (m,).
        false_signal_rate: false signals per unit of time, (m,).
        seeds: seeds of the regions, and then of the pages, (m G + m,).
        horizon: end of the episode, > 0.

    Returns:
        As :func:`events_of`.
    """
    moving = rate > 0.0
    initial = np.where(moving, items, np.minimum(size, 1)).ravel()
    initial = np.concatenate((initial, np.zeros(recall.size, np.int64)))
    rates = np.concatenate((rate.ravel(), false_signal_rate))
    recalls = np.concatenate((np.repeat(recall, rate.shape[1]), np.ones(recall.size)))
    draws = draw_sources(rates, recalls, initial, seeds, horizon)
    return events_of(draws, initial, np.where(moving, size, items * size).ravel(), seeds)


def draw(
    instance: Instance, regions: Regions, rng: np.random.Generator, horizon: float
) -> tuple[Tape, Contents]:
    """Draw an episode of pages with regions: its events and contents.

    Args:
        instance: the instance, of one source; its recall is the probability that an update is
            signalled, its false signals are Poisson.
        regions: regions of its pages.
        rng: generator of the seeds of all streams.
        horizon: end of the episode, > 0; a longer horizon only adds events.
    """
    seeds = rng.integers(0, 2**64, size=regions.rate.size + regions.num_pages, dtype=np.uint64)
    events, first, spells = draw_columns(
        regions.items,
        regions.size,
        regions.rate,
        instance.recall,
        instance.false_signal_rate,
        seeds,
        horizon,
    )
    alive = np.ones(regions.num_pages, np.bool_)
    tape = Tape.trusted(events.time, events.code, alive, detail=events.detail)
    return tape, Contents(first, *spells, np.full(spells.birth.size, -1, np.int64))
