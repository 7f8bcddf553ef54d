"""Random updates of churn and scroll regions as Poisson processes, and their signals.

Every region has its own random stream, and so has every page for its false signals. Each is drawn
in order of time, so that a longer horizon only adds events.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.streams import GOLDEN, Stream, UintArray, mixed, next_uniform, stream_of
from crawl_envs.sim.tape import Tape
from crawl_envs.types import FloatArray, Instance, IntArray
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
            Changes and signals, and the contents that result from the changes.
        """


class Updates(NamedTuple):
    """Updates of regions, region by region, in order of time.

    Attributes:
        start: first update of region g of page i at ``start[i * G + g]``, (m G + 1,).
        time: times of the updates, (u,).
        signalled: mask of the updates with a signal, (u,) bool.
    """

    start: IntArray
    time: FloatArray
    signalled: np.ndarray


@compiled(forceinline=True)
def next_gap(stream: Stream, rate: float) -> tuple[float, Stream]:
    """Draw an exponential gap of a rate > 0; return it and the stream after it."""
    uniform, stream = next_uniform(stream)
    return -math.log(uniform) / rate, stream


@compiled()
def count_updates(rate: FloatArray, seeds: UintArray, horizon: float) -> IntArray:
    """Return the start of the updates of each region, and their number, (regions + 1,)."""
    start = np.zeros(rate.size + 1, np.int64)
    for region in range(rate.size):
        count = 0
        if rate[region] > 0.0:
            stream = stream_of(seeds[region], np.uint64(0))
            time, stream = next_gap(stream, rate[region])
            while time <= horizon:
                count += 1
                _, stream = next_uniform(stream)
                gap, stream = next_gap(stream, rate[region])
                time += gap
        start[region + 1] = start[region] + count
    return start


@compiled()
def draw_updates(
    rate: FloatArray, recall: FloatArray, seeds: UintArray, horizon: float
) -> tuple[IntArray, FloatArray, np.ndarray]:
    """Draw the updates of all regions in (0, horizon]; see :class:`Updates`.

    Args:
        rate: updates per unit of time of each region, (regions,).
        recall: probability that an update sends a signal, (regions,).
        seeds: seeds of the streams of the regions, (regions,).
        horizon: end of the episode, > 0.
    """
    start = count_updates(rate, seeds, horizon)
    times = np.empty(start[-1])
    signalled = np.empty(start[-1], np.bool_)
    for region in range(rate.size):
        if start[region] == start[region + 1]:
            continue
        stream = stream_of(seeds[region], np.uint64(0))
        time = 0.0
        for update in range(start[region], start[region + 1]):
            gap, stream = next_gap(stream, rate[region])
            time += gap
            times[update] = time
            uniform, stream = next_uniform(stream)
            signalled[update] = uniform <= recall[region]
    return start, times, signalled


@compiled()
def sort_by_birth(births: FloatArray, deaths: FloatArray, sizes: IntArray, keys: UintArray) -> None:
    """Sort the spells of a page by birth, in place."""
    order = np.argsort(births, kind="mergesort")
    births[:], deaths[:] = births[order], deaths[order]
    sizes[:], keys[:] = sizes[order], keys[order]


@compiled()
def draw_spells(
    items: IntArray,
    size: IntArray,
    rate: FloatArray,
    seeds: UintArray,
    start: IntArray,
    times: FloatArray,
) -> tuple[IntArray, FloatArray, FloatArray, IntArray, UintArray]:
    """Return the spells of items that result from updates, by page, in order of birth.

    A region of K items has K initial spells, which the first K updates end, the oldest first, and
    a spell from each update to the K-th after it.

    Args:
        items: number of items of each region, (m, G).
        size: fragments per item, (m, G).
        rate: updates per unit of time, (m, G).
        seeds: seeds of the keys of fragments of each region, (m, G).
        start: first update of each region; see :class:`Updates`.
        times: times of the updates.

    Returns:
        First spell of each page, (m + 1,), and births, deaths, sizes and keys, (n,).
    """
    num_pages, most = rate.shape
    first = np.zeros(num_pages + 1, np.int64)
    for page in range(num_pages):
        count = 0
        for number in range(most):
            region = page * most + number
            if size[page, number] > 0:
                moving = items[page, number] if rate[page, number] > 0.0 else 1
                count += moving + start[region + 1] - start[region]
        first[page + 1] = first[page] + count
    total = first[-1]
    births, deaths = np.empty(total), np.empty(total)
    sizes, keys = np.empty(total, np.int64), np.empty(total, np.uint64)
    for page in range(num_pages):
        spell = first[page]
        for number in range(most):
            region, fragments = page * most + number, size[page, number]
            if fragments == 0:
                continue
            begin, updates = start[region], start[region + 1] - start[region]
            kept = items[page, number]
            if rate[page, number] == 0.0:
                fragments, kept = fragments * kept, 1
            for item in range(kept + updates):
                births[spell] = times[begin + item - kept] if item >= kept else -np.inf
                deaths[spell] = times[begin + item] if item < updates else np.inf
                sizes[spell] = fragments
                keys[spell] = mixed(seeds[page, number] + GOLDEN * np.uint64(item + 1))
                spell += 1
        own = slice(first[page], first[page + 1])
        sort_by_birth(births[own], deaths[own], sizes[own], keys[own])
    return first, births, deaths, sizes, keys


def draw_contents(regions: Regions, seeds: UintArray, updates: Updates) -> Contents:
    """Return the contents that result from updates of regions; seeds of regions, (m, G)."""
    start, births, deaths, sizes, keys = draw_spells(
        regions.items, regions.size, regions.rate, seeds, updates.start, updates.time
    )
    earlier = np.full(births.size, -1, np.int64)
    return Contents(start, births, deaths, sizes, keys, earlier)


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
    shape = regions.rate.shape
    seeds: UintArray = rng.integers(0, 2**64, size=shape, dtype=np.uint64)
    false_seeds: UintArray = rng.integers(0, 2**64, size=shape[:1], dtype=np.uint64)
    recall = np.repeat(instance.recall, shape[1])
    updates = Updates(*draw_updates(regions.rate.ravel(), recall, np.ravel(seeds), horizon))
    page = np.repeat(np.arange(shape[0]), np.diff(updates.start[:: shape[1]]))
    nowhere = np.zeros(shape[0])
    false_start, false_time, _ = draw_updates(
        instance.false_signal_rate, nowhere, false_seeds, horizon
    )
    false_page = np.repeat(np.arange(shape[0]), np.diff(false_start))
    signalled = updates.signalled
    tape = Tape.of_events(
        shape[0],
        changes=(updates.time, page),
        signals=(
            np.concatenate((updates.time[signalled], false_time)),
            np.concatenate((page[signalled], false_page)),
        ),
    )
    return tape, draw_contents(regions, seeds, updates)
