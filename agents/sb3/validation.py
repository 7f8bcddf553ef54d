"""Validate during training, on seeds that are not trained on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from stable_baselines3.common.callbacks import BaseCallback

from agents.runs import append_row, trim_rows
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import mean_rewards
from agents.sb3.loading import Agent
from crawl_envs.evaluation import mean_and_half_width

VALIDATION = "validation.csv"
VALIDATION_SEED = 2_000_000
"""First seed of validations, far from the seeds of training and evaluations."""
NUM_VALIDATIONS = 20
"""Approximate number of validations of a run; fewer if it has fewer updates."""


class ValidationRow(NamedTuple):
    """A validation: steps so far, mean reward per step, half-width of its 95% interval."""

    steps: int
    mean_reward: float
    half_width: float


class ValidationCallback(BaseCallback):
    """Evaluate the best actions on held-out seeds: at the start, after updates, and at the end.

    Rows go to a CSV file, and the mean to the logger of Stable-Baselines3, as
    ``validation/mean_reward``.

    Args:
        path: the CSV file; rows after the present step are dropped.
        arguments: arguments of the run.
        episodes: number of seeds.
    """

    def __init__(self, path: Path, arguments: TrainArguments, episodes: int) -> None:
        super().__init__()
        self.path, self.arguments, self.episodes = path, arguments, episodes
        self.every = max(1, arguments.steps // NUM_VALIDATIONS)

    def _on_training_start(self) -> None:
        earlier_rows = trim_rows(self.path, ValidationRow, self.num_timesteps)
        self._next = self.num_timesteps + (self.every if earlier_rows else 0)

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self._next:
            self._validate()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        if self.num_timesteps > self._next - self.every:
            self._validate()

    def _validate(self) -> None:
        rewards = mean_rewards(
            lambda env: Agent(self.model, self.arguments, env),
            self.arguments,
            episodes=self.episodes,
            seed=VALIDATION_SEED,
        )
        mean, half = mean_and_half_width(rewards.tolist())
        row = ValidationRow(self.num_timesteps, round(mean, 6), round(half, 6))
        append_row(self.path, row)
        self.logger.record("validation/mean_reward", mean)
        self._next = self.num_timesteps + self.every
