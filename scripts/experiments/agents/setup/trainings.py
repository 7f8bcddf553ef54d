"""Train algorithms of Stable-Baselines3 on tasks of the suite, and evaluate them like formulas.

A repetition has a seed of training, and seeds of evaluation that all labels share. Rewards are per
step: freshness, 1 minus divergence, or minus the penalty.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import agents
import policies
from agents.runs import read_rows
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import mean_rewards
from agents.sb3.lanes import recommended
from agents.sb3.loading import MODEL, load
from agents.sb3.training import train
from agents.sb3.validation import VALIDATION, VALIDATION_SEED, ValidationRow
from crawl_envs.types import FloatArray, Policy
from scripts.study.rows import indexed
from scripts.study.specs import spec
from scripts.suite.bounds import bound_reward
from scripts.suite.entrants import setting_of
from scripts.suite.suites import SUITES
from scripts.suite.tasks import FIRST_DAY, Task
from scripts.training.requests import SEED_STEP

RUNS = Path("runs") / "rl"
"""Folder of the trainings; rows may go elsewhere."""
FIRST_SEED = 5_000_000
"""First seed of evaluations: repetition i has EPISODES seeds from ``FIRST_SEED + i EPISODES``."""
EPISODES, VALIDATED = 16, 8
"""Number of episodes of an evaluation, and of a validation during training."""
TASKS: Mapping[str, Task] = {task.name: task for task in SUITES["crawl-v1"]}
Builder = Callable[[Any], Policy]


def environment(task: Task, algorithm: str = "") -> dict[str, Any]:
    """Return the arguments of a task's environment, with the action form an algorithm needs."""
    if algorithm == "sac" and task.arguments.get("action", "page") == "page":
        return {**task.arguments, "action": "scores", "batch": 1}
    return dict(task.arguments)


def _to_learn(task: Task, env_args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the training environment; a recorded site has its first days."""
    recorded = setting_of(task, {}).windows
    return {**env_args, "window": [0.0, FIRST_DAY]} if recorded else dict(env_args)


@spec("training-task-training")
def trained(
    seed: int, *, task: str, algorithm: str, steps: int, belief: bool, curve: bool
) -> dict[str, float]:
    """Train with the recommended arguments; return rewards, seconds and the learning curve.

    With ``belief``, observations have columns of a belief. ``reward`` is the reward of the best
    actions, ``drawn`` that of drawn actions. ``seconds`` are processor time of the training with
    its validations. With ``curve`` there are ``steps[k]`` and ``validated[k]``, the reward on
    held-out seeds after these steps. A recorded site is learned from its first days, and evaluated
    on later days.
    """
    it = TASKS[task]
    env_args = environment(it, algorithm)
    options = {"steps": steps, "seed": SEED_STEP * seed, "belief": belief}
    arguments = recommended(algorithm, it.id, env_args=_to_learn(it, env_args), **options)
    out = RUNS / task / f"{algorithm}-{steps}{'-belief' if belief else ''}" / f"seed-{seed}"
    shutil.rmtree(out, ignore_errors=True)
    started = time.process_time()
    train(arguments, out, validation=VALIDATED if curve else 0, progress=False)
    seconds = time.process_time() - started
    values = {"seconds": seconds}
    for metric, best in (("reward", True), ("drawn", False)):
        values[metric] = _mean(lambda env: load(out / MODEL, env), it, env_args, seed, best)
    if curve:
        rows = read_rows(out / VALIDATION, ValidationRow)
        values |= indexed("steps", [row.steps for row in rows])
        values |= indexed("validated", [row.mean_reward for row in rows])
    return values


@spec("training-task-rewards")
def task_rewards(seed: int, *, task: str, policy: str) -> dict[str, float]:
    """Return an agent's rewards on a task: ``reward``, and ``validated`` on held-out seeds."""
    it = TASKS[task]
    build = partial(agents.load if policy in agents.names() else policies.make, policy)
    values = {"reward": _mean(build, it, environment(it), seed)}
    held_out = TrainArguments(env_id=it.id, env_args=_to_learn(it, it.arguments))
    validated = mean_rewards(build, held_out, episodes=VALIDATED, seed=VALIDATION_SEED)
    return values | {"validated": float(validated.mean())}


@spec("training-task-bound")
def bound(seed: int, *, task: str) -> dict[str, float]:
    """Return the mean reward of a task's upper bound on the episodes of a repetition."""
    it = TASKS[task]
    setting = replace(setting_of(it, {}), first_seed=FIRST_SEED + seed * EPISODES)
    places = range(len(setting.windows) or EPISODES)
    return {"reward": float(np.mean([bound_reward(it, setting, place) for place in places]))}


def _mean(
    build: Builder, task: Task, env_args: Mapping[str, Any], seed: int, deterministic: bool = True
) -> float:
    """Return an agent's mean reward on a repetition's episodes, or on a recorded site's windows."""
    windows = setting_of(task, {}).windows
    places = [{"window": list(window)} for window in windows] or [{}]
    parts: list[FloatArray] = [
        mean_rewards(
            build,
            TrainArguments(env_id=task.id, env_args={**env_args, **place}),
            episodes=1 if windows else EPISODES,
            seed=FIRST_SEED + seed * EPISODES + number,
            deterministic=deterministic,
        )
        for number, place in enumerate(places)
    ]
    return float(np.concatenate(parts).mean())
