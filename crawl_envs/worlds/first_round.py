"""The round of crawls before an episode; see :mod:`crawl_envs.sim.rollouts.first_round`."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.sim.advance import DONE
from crawl_envs.sim.clock import clock_rows, slot_times
from crawl_envs.sim.rollouts.first_round import Round, draw_crawls, play_round, start_round


def round_of(lanes: Any, lane: int) -> Round:
    """Return the round before the episode of a lane that has restarted.

    At rates, the pages of time 0 are crawled at random instants, at equal rates that spend the
    bandwidth. Otherwise each is crawled in order, when it is paid.
    """
    world, instance = lanes.world, lanes.instance(lane)
    state, epochs = world.state, np.arange(lanes.lead_of(instance) + 1.0)
    alive = lanes.alive_at_start(instance)
    pages = np.flatnonzero(alive)
    spend = np.cumsum(np.ones(pages.size) if instance.cost is None else instance.cost[pages])
    ends = slot_times(state.clock[lane], epochs)
    if lanes.crawls_at_random and lanes.budget is not None and pages.size > 0:
        rates = alive * (instance.bandwidth / spend[-1])
        return Round(*draw_crawls(world.table, lane, rates, ends[-1]), ends)
    times = slot_times(clock_rows(instance.bandwidth), spend)
    return Round(pages, times, ends if lanes.epoch else np.append(times, lanes.origin_of(instance)))


class FirstRound:
    """Plays the round before the episode of a lane that has restarted, slot by slot.

    A policy learns from the slots what one knows that has been there from time 0.

    Args:
        lanes: the batch, of :class:`crawl_envs.worlds.lanes.Lanes`.
        lane: the lane.
    """

    def __init__(self, lanes: Any, lane: int = 0) -> None:
        self.lanes, self.lane, self._slot = lanes, lane, 0
        self.round: Round = lanes.first_round(lane)
        lanes.world.lengthen(crawled=self.round.pages.size)
        start_round(lanes.world.table, lane, self.round.ends[0])

    def play(self, slot: int) -> None:
        """Play up to the end of a slot; with the last the episode begins."""
        while play_round(self.lanes.world.table, self.lane, self.round, slot) != DONE:
            self.lanes.supply()

    def play_at_once(self) -> None:
        """Play the whole round as one slot."""
        self.play(self.round.ends.size - 1)

    def next(self) -> bool:
        """Play to the next decision; return False after the first one of the episode."""
        if self._slot == self.round.ends.size:
            return False
        self.play(self._slot)
        self._slot += 1
        if self._slot == self.round.ends.size:
            self.lanes.finish()
        self.lanes.note_crawls()
        return True
