"""Write the learning curve, a CSV file, and show a progress bar during training."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import TaskID
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from agents.progress import COUNT, ProgressBar
from agents.runs import append_row, trim_rows

SHOW_SECONDS = 0.2
"""Minimal time between two updates of the progress bar."""


class CurveRow(NamedTuple):
    """A point of the learning curve.

    ``steps`` are those of all lanes so far. ``mean_reward`` per step is over all lanes and the last
    steps, as many as an episode has, so episode starts have the same weight in all rows; the first
    row comes after a whole episode, or at the end of the run. ``seconds`` is the wall time so far,
    with that of earlier runs.
    """

    steps: int
    mean_reward: float
    seconds: float


def rollout_steps(model: Any) -> int:
    """Return the steps between updates of a model, over all lanes."""
    on_policy = isinstance(model, OnPolicyAlgorithm)
    steps: int = model.n_envs * (model.n_steps if on_policy else model.train_freq.frequency)
    return steps


class CurveCallback(BaseCallback):
    """Append rows to a learning curve while an algorithm learns.

    Args:
        path: the CSV file; rows after the present step are dropped.
        every: steps between rows, >= 1.
        steps: total number of steps, which the progress bar rounds up to rollouts.
        progress: show a progress bar on standard error.
        beside: a text after the mean reward in the progress bar.
    """

    def __init__(
        self, path: Path, every: int, steps: int, *, progress: bool, beside: str = ""
    ) -> None:
        super().__init__()
        self.path, self.every, self.steps = path, every, steps
        self._recent: deque[float] = deque()
        self._shown_at = 0.0
        texts = (f"{COUNT} steps", "reward {task.fields[reward]}", "{task.fields[beside]}")
        self._bar = ProgressBar(*texts[: 3 if beside else 2], visible=progress)
        self._task, self._beside = TaskID(0), beside

    def _on_training_start(self) -> None:
        last = trim_rows(self.path, CurveRow, self.num_timesteps)[-1:]
        self._since = last[0].steps if last else 0
        self._started = time.perf_counter() - (last[0].seconds if last else 0.0)
        slots = self.training_env.env_method("num_slots", indices=0)[0]
        self._recent = deque(maxlen=slots // self.training_env.get_attr("batch", 0)[0])
        self._bar.start()
        self._task = self._bar.add_task(
            "training",
            total=self._end(),
            completed=self.num_timesteps,
            reward="-",
            beside=self._beside,
        )

    def _end(self) -> int:
        """Return the step count at which training ends, rounded up to whole rollouts."""
        rollout, done = rollout_steps(self.model), self.num_timesteps
        return done + -(-(self.steps - done) // rollout) * rollout

    def _on_step(self) -> bool:
        lanes: Any = self.training_env  # ScaledRewards
        self._recent.append(float(lanes.raw.mean()))
        complete = len(self._recent) == self._recent.maxlen
        if complete and self.num_timesteps - self._since >= self.every:
            self._add_row()
        if time.perf_counter() - self._shown_at >= SHOW_SECONDS:
            self._show()
        return True

    def _mean(self) -> float:
        return sum(self._recent) / len(self._recent)

    def _add_row(self) -> None:
        seconds = time.perf_counter() - self._started
        row = CurveRow(self.num_timesteps, round(self._mean(), 6), round(seconds, 3))
        self.logger.record("curve/mean_reward", row.mean_reward)
        self._since = self.num_timesteps
        append_row(self.path, row)

    def _show(self) -> None:
        self._shown_at = time.perf_counter()
        self._bar.update(self._task, completed=self.num_timesteps, reward=f"{self._mean():.4f}")

    def finish(self) -> None:
        """Write the last row, and close the progress bar, also after an interrupt."""
        if self._recent:
            if self.num_timesteps > self._since:
                self._add_row()
            self._show()
        self._bar.stop()
