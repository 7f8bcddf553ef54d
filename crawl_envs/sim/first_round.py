"""The crawls before an episode that starts with a crawled collection: one round of all pages.

The lane restarts at time 0 with fresh copies, a former crawler crawls the round, and the episode
begins with totals of 0. The whole round can be one slot, whose log the first decision then has, or
a slot per crawl.
"""

from __future__ import annotations

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
from crawl_envs.sim.rollouts.timed import play_rates, set_rates
from crawl_envs.sim.state import State, state_at
from crawl_envs.types import FloatArray, IntArray


class Round(NamedTuple):
    """The crawls before an episode: of pages in order, or at random instants.

    Attributes:
        pages: pages in order of their crawls, (n,); (0,) if they are at random instants.
        times: times of these crawls, or ends of epochs, and the time at which the episode begins.
        rates: crawl rates, (m,); (0,) if pages are in order.
    """

    pages: IntArray
    times: FloatArray
    rates: FloatArray


NO_ROUND = Round(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
_named: Any = types.NamedTuple
ROUND = _named((types.int64[::1], types.float64[::1], types.float64[::1]), Round)
"""Type of a :class:`Round`."""


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


@inlined()
def crawl_next(state: State, lane: int, first_round: Round) -> None:
    """Crawl the next pages of a round, those of one time; after the last, begin the episode."""
    record, pages, times = state.lanes[lane], first_round.pages, first_round.times
    if record.turn == pages.shape[0]:
        take_over(state, lane)
        return
    now = times[record.turn]
    while record.turn < pages.shape[0] and times[record.turn] == now:
        crawl_page(state, lane, pages[record.turn])
        record.turn += 1
    record.target, record.busy = times[record.turn], True


@compiled()
def start_round(table: IntArray, lane: int, until: float) -> None:
    """Start the round of a restarted lane; its first slot ends at time ``until``."""
    record = state_at(table).lanes[lane]
    record.origin, record.turn = -1.0, 0
    open_slot(record, until)
    record.reshaped = True


@compiled()
def step_round(table: IntArray, lane: int, first_round: Round) -> None:
    """Open a slot with the next crawls of a round, or up to the end of the next epoch."""
    state = state_at(table)
    record = state.lanes[lane]
    open_slot(record, first_round.times[record.turn])
    if first_round.rates.shape[0] > 0:
        record.turn += 1
    else:
        crawl_next(state, lane, first_round)


@compiled()
def play_round(table: IntArray, lane: int, first_round: Round) -> int:
    """Play a round up to the beginning of the episode, in the lane's slot.

    The log must have room for its crawls. Returns DONE, or UNFINISHED as :func:`play_lanes`.
    """
    state = state_at(table)
    record, remaining = state.lanes[lane], AT_ONCE
    while record.origin < 0.0:
        remaining = play_slot(state, lane, remaining)
        if record.busy:
            return UNFINISHED
        crawl_next(state, lane, first_round)
    return DONE


@compiled()
def play_round_at_rates(table: IntArray, lane: int, first_round: Round) -> int:
    """Play the lane's slot at the rates of a round; with its last epoch the episode begins.

    Returns DONE, or UNFINISHED as :func:`play_lanes`.
    """
    state = state_at(table)
    rates = first_round.rates
    set_rates(state, lane, rates, np.zeros_like(rates))
    status, _ = play_rates(state, lane, AT_ONCE)
    if status != DONE:
        return UNFINISHED
    if state.lanes[lane].time >= first_round.times[-1]:
        take_over(state, lane)
    return DONE
