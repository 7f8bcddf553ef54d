"""The crawls before an episode that starts with a crawled collection: one round of all pages.

A lane restarts at time 0 with fresh copies, another crawler crawls the round, and the episode
begins with totals of 0, and with a log of the round if it was one slot.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.sim.advance import (
    AT_ONCE,
    DONE,
    UNFINISHED,
    begin_episode,
    crawl_page,
    open_slot,
    play_slot,
)
from crawl_envs.sim.divergence import integrate_divergence
from crawl_envs.sim.rollouts.timed import set_rates
from crawl_envs.sim.state import State, state_at
from crawl_envs.sim.streams import draw_uniform, loaded, store
from crawl_envs.sim.tape import KIND_BITS, draw_code
from crawl_envs.types import FloatArray, IntArray


class Round(NamedTuple):
    """The crawls before an episode.

    Attributes:
        pages: pages of the crawls, (n,).
        times: times of the crawls, (n,).
        ends: ends of the slots; with the last the episode begins.
    """

    pages: IntArray
    times: FloatArray
    ends: FloatArray


_named: Any = types.NamedTuple
ROUND = _named((types.int64[::1], types.float64[::1], types.float64[::1]), Round)
"""Type of a :class:`Round`."""


@compiled()
def draw_crawls(
    table: IntArray, lane: int, rates: FloatArray, until: float
) -> tuple[IntArray, FloatArray]:
    """Draw the pages and times of a lane's crawls at rates, (m,), from now to time ``until``."""
    state = state_at(table)
    record, rng, pages, times = state.lanes[lane], state.rng[lane], [0][:0], [0.0][:0]
    set_rates(state, lane, rates, np.zeros_like(rates))
    while record.crawl_due < until:
        code, stream = draw_code(loaded(rng), state.crawl_alias[lane], 0)
        store(stream, rng)
        pages.append(code >> KIND_BITS)
        times.append(record.crawl_due)
        record.crawl_due -= math.log(draw_uniform(rng)) / record.crawl_rate
    return np.array(pages, np.int64), np.array(times, np.float64)


@compiled()
def start_round(table: IntArray, lane: int, until: float) -> None:
    """Start the round of a restarted lane; its first slot ends at time ``until``."""
    record = state_at(table).lanes[lane]
    record.origin, record.turn = -1.0, 0
    open_slot(record, until)
    record.reshaped = True


@inlined()
def crawl_next(state: State, lane: int, first_round: Round) -> None:
    """Make the next crawl of a round in which every slot has one."""
    record = state.lanes[lane]
    page = first_round.pages[record.turn]
    record.turn += 1
    open_slot(record, first_round.ends[record.turn])
    crawl_page(state, lane, page)


@inlined()
def take_over(state: State, lane: int) -> None:
    """Begin a lane's episode now, and keep the log of the slot that ends."""
    record = state.lanes[lane]
    if state.divergence.shape[1] > 0:
        integrate_divergence(record, record.time)
    crawls, signals = record.slot_crawls, record.logged
    begin_episode(state, lane)
    record.slot_crawls, record.logged = crawls, signals
    record.signals = -signals  # the first slot adds all signals of the log
    record.tokens, record.token_time = record.bucket, record.time


@compiled()
def play_round(table: IntArray, lane: int, first_round: Round, slot: int) -> int:
    """Play a lane's round up to the end of a slot; with the last the episode begins.

    The log must have room for the crawls. Returns DONE, or UNFINISHED as :func:`play_lanes`.
    """
    state, last = state_at(table), slot == first_round.ends.shape[0] - 1
    record, until, times = state.lanes[lane], first_round.ends[slot], first_round.times
    if not record.busy:
        open_slot(record, until)
    remaining, waits = AT_ONCE, True
    while waits:
        waits = record.turn < times.shape[0] and (last or times[record.turn] < until)
        record.target, record.busy = times[record.turn] if waits else until, True
        remaining = play_slot(state, lane, remaining)
        if record.busy:
            return UNFINISHED
        if waits:
            crawl_page(state, lane, first_round.pages[record.turn])
            record.turn += 1
    if last:
        take_over(state, lane)
    return DONE
