"""Rewards of similar size in every environment, for training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from crawl_envs.types import BoolArray


class ScaledRewards(VecEnvWrapper):
    """Subtracts the running mean of rewards, and divides by a running deviation.

    The deviation is that of the discounted returns of what is left, so that values are of the
    order of one. Subtracting the mean changes no best action, since episodes do not end early; it
    spares the critic a constant that is large beside what actions change. Both are estimated over
    all lanes and steps so far. Infos keep the plain rewards of episodes (VecMonitor inside).

    Attributes:
        raw: rewards of the last step as the environment gave them, (N,).

    Args:
        venv: the lanes.
        gamma: discount per step.
    """

    def __init__(self, venv: VecEnv, gamma: float) -> None:
        super().__init__(venv)
        self.gamma = gamma
        self.rewards, self.returns = RunningMeanStd(shape=()), RunningMeanStd(shape=())
        self.raw = np.zeros(self.num_envs, np.float32)
        self._returns = np.zeros(self.num_envs)

    def reset(self) -> Any:
        """Begin an episode in all lanes."""
        self._returns[:] = 0.0
        return self.venv.reset()

    def step_wait(
        self,
    ) -> tuple[Any, NDArray[np.float32], BoolArray, list[dict[str, Any]]]:
        """Step all lanes, and scale their rewards."""
        observations, self.raw, dones, infos = self.venv.step_wait()
        self.rewards.update(self.raw)
        left = self.raw - self.rewards.mean
        self._returns = self.gamma * self._returns + left
        self.returns.update(self._returns)
        self._returns[dones] = 0.0
        scaled = left / np.sqrt(self.returns.var + 1e-8)
        return observations, scaled.astype(np.float32), dones, infos
