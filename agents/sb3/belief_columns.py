"""Add columns of a belief about the staleness of pages to observations, for networks.

Observations cover the time since a page's last crawl. The belief of :class:`policies.BeliefNCIS`
also learns from earlier crawls and signals, and from other pages. With its columns, a network
without memory can act where rates are unknown or drift.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnvWrapper

from agents.sb3.bridge import CrawlVecEnv
from agents.sb3.lanes import cycle_of
from crawl_envs.types import BoolArray
from policies import BeliefNCIS, Bound, bind

COLUMNS = ("belief_evidence", "belief_expected_changes", "belief_change_rate")
"""Columns of a page's evidence, expected changes, and change rate times T = m / R; no units."""
MAX_COLUMN = 1e3
"""Upper bound of the columns."""


def with_belief(rows: NDArray[np.float32], belief: Bound, core: Any) -> NDArray[np.float32]:
    """Return observations with COLUMNS appended, (N, m, F) to (N, m, F + 3).

    Args:
        rows: the current observations of all lanes.
        belief: BeliefNCIS bound to the same environment.
        core: the environment: vector, bridge, or single with one lane.
    """
    more = np.empty((*rows.shape[:-1], len(COLUMNS)), np.float32)
    for lane in range(len(rows)):
        beliefs = belief.update(lane).beliefs(core.tracker(lane))
        cycle = cycle_of(core.lanes.problem(lane))
        rates = cycle * beliefs["change_rate"]
        columns = beliefs["evidence"], beliefs["expected_changes"], rates
        more[lane] = np.minimum(np.stack(columns, axis=-1), MAX_COLUMN)
    return np.concatenate([rows, more], axis=-1)


class BeliefColumns(VecEnvWrapper):
    """Append COLUMNS to the observations of a bridge, (N, m, F) to (N, m, F + 3).

    The ``terminal_observation`` of a lane has the belief of the decision before, since the lane has
    already started its next episode. A step takes some 30 us more per lane.

    Args:
        venv: a bridge of this suite, wrapped or not.
        **belief: arguments of :class:`policies.BeliefNCIS`.

    Raises:
        ValueError: ``venv`` is not a bridge of this suite, or an argument of the belief is bad.
    """

    def __init__(self, venv: Any, **belief: Any) -> None:
        core = getattr(venv, "unwrapped", venv)
        if not isinstance(core, CrawlVecEnv):
            raise ValueError(f"venv must be a CrawlVecEnv, wrapped or not, got {venv!r}")
        box = venv.observation_space
        more = (*box.shape[:-1], len(COLUMNS))
        low = np.concatenate([box.low, np.zeros(more, np.float32)], axis=-1)
        high = np.concatenate([box.high, np.full(more, MAX_COLUMN, np.float32)], axis=-1)
        super().__init__(venv, observation_space=Box(low, high, dtype=np.float32))
        self.belief = bind(BeliefNCIS(**belief), core)
        self.features = (*core.features, *COLUMNS)
        self._core = core
        self._rows = np.zeros((venv.num_envs, *low.shape), np.float32)

    def reset(self) -> NDArray[np.float32]:
        """Begin an episode in all lanes."""
        self._rows = with_belief(np.asarray(self.venv.reset()), self.belief, self._core)
        return self._rows

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], BoolArray, list[dict[str, Any]]]:
        """Step all lanes, and learn from their crawls and signals."""
        observations, rewards, dones, infos = self.venv.step_wait()
        for lane in np.flatnonzero(dones):
            last = infos[lane]["terminal_observation"]
            wide = np.concatenate([last, self._rows[lane, :, -len(COLUMNS) :]], axis=-1)
            infos[lane] = {**infos[lane], "terminal_observation": wide}
        self._rows = with_belief(np.asarray(observations), self.belief, self._core)
        return self._rows, rewards, dones, infos
