"""Play the round of crawls before the episode of a lane; see :mod:`crawl_envs.sim.first_round`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawl_envs.sim.advance import DONE
from crawl_envs.sim.clock import clock_rows, slot_times
from crawl_envs.sim.first_round import (
    Round,
    play_round,
    play_round_at_rates,
    start_round,
    step_round,
)
from crawl_envs.worlds.step import play_lanes, play_lanes_at_rates

if TYPE_CHECKING:
    from crawl_envs.worlds.lanes import Lanes


def ordered_round(lanes: Lanes, lane: int) -> Round:
    """Return the round that crawls the pages of time 0 in order, each when it is paid."""
    instance = lanes.instance(lane)
    pages = np.flatnonzero(lanes.alive_at_start(instance))
    spend = np.cumsum(np.ones(pages.size) if instance.cost is None else instance.cost[pages])
    times = slot_times(clock_rows(instance.bandwidth), spend)
    return Round(pages, np.append(times, lanes.origin_of(instance)), np.zeros(0))


def random_round(lanes: Lanes, lane: int) -> Round:
    """Return the round that crawls the pages of time 0 at equal rates, which spend the budget."""
    state, instance = lanes.world.state, lanes.instance(lane)
    alive = lanes.alive_at_start(instance).astype(np.float64)
    spend = alive.sum() if instance.cost is None else alive @ instance.cost
    ends = slot_times(state.clock[lane], np.arange(1.0, lanes.lead_of(instance) + 1.0))
    rates = alive * (instance.bandwidth / spend) if ends.size else alive
    return Round(np.zeros(0, np.int64), ends, rates)


def play_first_round(lanes: Lanes, lane: int) -> None:
    """Play the round of a lane that has restarted, as one slot; its episode then begins."""
    first_round, world = lanes.first_round(lane), lanes.world
    if first_round.times.size == 0:
        return
    at_rates = first_round.rates.size > 0
    world.lengthen(crawled=first_round.pages.size)
    world.state.lanes[lane]["token_rate"] = lanes.instance(lane).bandwidth
    start_round(world.table, lane, first_round.times[-1 if at_rates else 0])
    play = play_round_at_rates if at_rates else play_round
    while play(world.table, lane, first_round) != DONE:
        lanes.supply()


def start_learning(lanes: Lanes) -> None:
    """Start the round of the only lane, which has restarted, for a learner that plays it."""
    first_round = lanes.first_round(0)
    if first_round.times.size > 0:
        start_round(lanes.world.table, 0, first_round.times[0])


class Replay:
    """Repeats the round of crawls before a lane's episode, a decision at a time, up to the first.

    It is what a policy sees that has been there from time 0.

    Args:
        copy: another batch of one such lane, which plays the round.
        lanes: the batch.
        lane: the lane, which has an episode.

    Attributes:
        lanes: the batch of one lane at the present decision.
    """

    def __init__(self, copy: Lanes, lanes: Lanes, lane: int) -> None:
        self.lanes = copy
        copy.begin_as(lanes, lane)
        self._round = copy.first_round(0)
        self._at_rates = self._round.rates.size > 0
        copy.world.lengthen(crawled=self._round.pages.size)
        copy.world.state.lanes[0]["token_rate"] = copy.instance(0).bandwidth
        start_round(copy.world.table, 0, 0.0 if self._at_rates else self._round.times[0])
        self._play()

    def _play(self) -> None:
        """Play to the next decision, and write what its crawls show."""
        player = play_lanes_at_rates if self._at_rates else play_lanes
        self.lanes.finish(player)
        self.lanes.note_crawls()

    def next(self) -> bool:
        """Crawl, and play to the next decision; return False at the first one of the episode."""
        world = self.lanes.world
        if world.state.lanes[0]["origin"] >= 0.0:
            return False
        step_round(world.table, 0, self._round)
        last = world.state.lanes[0]["turn"] == self._round.pages.size
        if self._at_rates or last:
            play = play_round_at_rates if self._at_rates else play_round
            while play(world.table, 0, self._round) != DONE:
                self.lanes.supply()
        if self._at_rates and world.state.lanes[0]["origin"] < 0.0:
            self.lanes.note_crawls()
        else:
            self._play()
        return True
