"""Scale rewards to a similar size in every environment, for training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from crawl_envs.types import BoolArray


class RewardScale:
    """Running moments of rewards, and of the discounted returns of rewards minus their mean."""

    def __init__(self) -> None:
        self.rewards, self.returns = RunningMeanStd(shape=()), RunningMeanStd(shape=())

    def learn(
        self, rewards: NDArray[Any], sums: NDArray[np.float64], gamma: float
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Learn from the rewards of a step; return them scaled, and the new discounted sums, (N,).

        Args:
            rewards: rewards of all lanes, (N,).
            sums: discounted sums of rewards minus their mean before this step, (N,); 0 at first.
            gamma: discount per step.
        """
        self.rewards.update(rewards)
        sums = gamma * sums + (rewards - self.rewards.mean)
        self.returns.update(sums)
        return self.scaled(rewards), sums

    def scaled(self, rewards: NDArray[Any]) -> NDArray[np.float32]:
        """Return rewards minus their mean, over the deviation of discounted returns."""
        centred = rewards - self.rewards.mean
        return (centred / np.sqrt(self.returns.var + 1e-8)).astype(np.float32)

    def moments(self) -> list[float]:
        """Return mean, variance and count of rewards, then of returns."""
        pair = (self.rewards, self.returns)
        return [float(value) for part in pair for value in (part.mean, part.var, part.count)]

    def restore(self, moments: Sequence[float]) -> None:
        """Set the moments, as :meth:`moments` returns them."""
        for part, first in ((self.rewards, 0), (self.returns, 3)):
            part.mean, part.var = np.array(moments[first]), np.array(moments[first + 1])
            part.count = moments[first + 2]


class ScaledRewards(VecEnvWrapper):
    """Subtract the running mean of rewards, and divide by a running deviation.

    The deviation is that of the discounted returns of centred rewards, so values are of the order
    of one. Subtracting the mean changes no best action, since episodes do not end early; it removes
    a constant that is large relative to the effect of actions. Both are estimated over all lanes
    and steps so far. Infos keep the plain rewards of episodes (VecMonitor inside).

    Attributes:
        scale: the moments so far.
        raw: unscaled rewards of the last step, (N,).

    Args:
        venv: the lanes.
        gamma: discount per step.
    """

    def __init__(self, venv: VecEnv, gamma: float) -> None:
        super().__init__(venv)
        self.gamma, self.scale = gamma, RewardScale()
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
        scaled, self._returns = self.scale.learn(self.raw, self._returns, self.gamma)
        self._returns[dones] = 0.0
        return observations, scaled, dones, infos
