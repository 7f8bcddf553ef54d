"""The round of crawls before an episode; see :mod:`crawl_envs.sim.rollouts.first_round`."""

from __future__ import annotations

from typing import Any

from crawl_envs.sim.advance import DONE
from crawl_envs.sim.rollouts.first_round import Round, play_round, start_round


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
