"""One compiled call per step: crawl in every lane, play to the next decision, observe.

The entry points take the table of a world's state. They return DONE, UNFINISHED if lanes are still
busy, to be continued by :func:`play_lanes` or :func:`play_lanes_at_rates`, or the number of a lane
with an invalid page in its action, in which case nothing is changed.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.sim.advance import (
    AT_ONCE,
    DONE,
    UNFINISHED,
    advance,
    close_slots,
    crawl,
    open_slot,
    restart,
    weigh_pages,
)
from crawl_envs.sim.clock import slot_time
from crawl_envs.sim.divergence import integrate_divergence
from crawl_envs.sim.rollouts.timed import play_rates, set_rates, start_rates
from crawl_envs.sim.state import state_at
from crawl_envs.spaces.observations import write_observations
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.offer_features import DailyArray

NO_CRAWLS = np.zeros((0, 0), np.int64), np.zeros(0, np.int64)
NO_RATES = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)


@inlined(forceinline=True)
def bad_lane(crawls: IntArray, counts: IntArray, num_pages: int) -> int:
    """Return the first lane with a page outside [0, num_pages) among its crawls; DONE if none."""
    for lane in range(counts.shape[0]):
        for position in range(counts[lane]):
            if not 0 <= crawls[lane, position] < num_pages:
                return lane
    return DONE


@compiled()
def step_lanes(table: IntArray, crawls: IntArray, counts: IntArray) -> int:
    """Crawl the first ``counts[lane]`` pages of ``crawls[lane]``; play to the next decision.

    Idle lanes do not take part. With NO_CRAWLS as arguments no page is crawled.
    """
    state = state_at(table)
    bad = bad_lane(crawls, counts, state.last_crawl.shape[1])
    if bad != DONE:
        return bad
    if counts.shape[0] > 0:
        crawl(state, crawls, counts)
    complete, _ = advance(state, AT_ONCE)
    if not complete:
        return UNFINISHED
    close_slots(state)
    write_observations(state)
    return DONE


def play_lanes(table: IntArray) -> int:
    """Play all busy lanes to their next decision without crawls, and write their observations."""
    return step_lanes(table, *NO_CRAWLS)


@compiled()
def restart_lanes(table: IntArray, lane_mask: BoolArray) -> None:
    """Start an episode at time 0 in the lanes that ``lane_mask``, (N,), selects."""
    state = state_at(table)
    for lane in range(lane_mask.shape[0]):
        if lane_mask[lane]:
            restart(state, lane)
            if state.crawl_alias.shape[1] > 0:
                start_rates(state, lane)


@compiled()
def step_rates(
    table: IntArray, rates: FloatArray, chances: FloatArray, token_rates: FloatArray
) -> int:
    """Crawl at random instants in all lanes that are not idle, and play to the epoch's end.

    ``rates`` and ``chances``, at signals, are (N, m); ``token_rates`` (N,) refill the buckets. With
    NO_RATES as arguments all rates stay as they are.
    """
    state = state_at(table)
    for lane in range(token_rates.shape[0]):
        record = state.lanes[lane]
        if not record.idle:
            record.slot += record.batch
            open_slot(record, slot_time(state.clock[lane], record.lead + record.slot))
            record.token_rate = token_rates[lane]
            set_rates(state, lane, rates[lane], chances[lane])
    complete, remaining = True, AT_ONCE
    for lane in range(state.lanes.shape[0]):
        if state.lanes[lane].busy:
            status, remaining = play_rates(state, lane, remaining)
            complete = complete and status == DONE
    if not complete:
        return UNFINISHED
    close_slots(state)
    write_observations(state)
    return DONE


def play_lanes_at_rates(table: IntArray) -> int:
    """Continue busy lanes with random crawls up to their next decision, as :func:`play_lanes`."""
    return step_rates(table, *NO_RATES)


@inlined()
def weigh_lane(table: IntArray, lane: int, importance: DailyArray) -> None:
    """Set the importance of a lane's pages, (m,), from now on, and sum their weights again."""
    state = state_at(table)
    integrate_divergence(state.lanes[lane], state.lanes[lane].time)
    for number in range(importance.shape[0]):
        state.pages[lane, number].importance = importance[number]
    weigh_pages(state, lane)
