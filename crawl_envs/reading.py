"""What policies, oracles and tests read of an environment, single or vector: lane by lane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.episodes import Episodes
from crawl_envs.types import CrawlLog, Ledger, Tracker


class LaneReader:
    """The part of an environment that reads its lanes; ``lanes`` is the batch.

    Policies that are bound to an environment use nothing else of it.
    """

    lanes: Episodes
    np_random: np.random.Generator

    @property
    def num_lanes(self) -> int:
        """Number of lanes, N."""
        return self.lanes.num_lanes

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of an observation."""
        return self.lanes.features

    @property
    def action_form(self) -> str:
        """Name of the action form."""
        return self.lanes.form.name

    @property
    def batch(self) -> int:
        """Slots per decision."""
        return self.lanes.form.batch

    @property
    def epoch(self) -> float:
        """Length of an epoch where actions are rates, else NaN."""
        return self.lanes.epoch

    def declare(self, change_rate: ArrayLike, lane: int = 0) -> None:
        """Say what change rates the tracker believes, for the budget of the next step.

        See :meth:`crawl_envs.epochs.EpochLanes.declare`.

        Raises:
            ValueError: actions are no rates, not one finite number >= 0 per page, no such lane.
        """
        self.lanes.declare(change_rate, lane)

    def tracker(self, lane: int = 0) -> Tracker:
        """Return what the tracker of a lane knows now, as fresh arrays."""
        return self.lanes.tracker(lane)

    def last_log(self, lane: int = 0) -> CrawlLog:
        """Return what the last step, or reset, taught the tracker of a lane."""
        return self.lanes.last_log(lane)

    def ledger(self, lane: int = 0) -> Ledger:
        """Return what truly happened in a lane since its episode began."""
        return self.lanes.ledger(lane)

    def coins(self, lane: int = 0) -> np.random.Generator:
        """Return a fresh generator for the random choices of a lane's current episode."""
        return self.lanes.coins(lane)

    def num_slots(self, lane: int = 0) -> int:
        """Return the number of crawls that the budget of a lane's episode allows."""
        return self.lanes.num_slots(lane)

    def get_state(self) -> dict[str, Any]:
        """Return a copy of everything that decides what happens next."""
        return {**self.lanes.get_state(), "np_random": self.np_random.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take on a state that :meth:`get_state` of an equal environment returned.

        To policies it is a new episode: what they remember is of another past, so that those that
        learn start anew.

        Raises:
            ValueError: it is no such state, or of an environment that is not equal; nothing has
                happened then.
        """
        if not isinstance(state, Mapping) or "np_random" not in state:
            raise ValueError(f"state must be of get_state, got {type(state).__name__}")
        state = dict(state)
        self.np_random.bit_generator.state = state.pop("np_random")
        self.lanes.set_state(state)
