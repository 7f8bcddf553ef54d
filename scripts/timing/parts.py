"""The parts of a step: differences between increasingly large parts of it."""

from __future__ import annotations

from typing import Any

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import IntArray
from crawl_envs.worlds.step import step_lanes
from scripts.timing.comparisons import Comparison
from scripts.timing.stepped import LANES, Case, make_env, random_actions, step_task
from scripts.timing.turns import Task

ENDLESS = {"instance": "noisy", "horizon": 1e6}
"""A horizon that no run reaches, to exclude ends of episodes from the parts."""


@compiled()
def nothing(table: IntArray, crawls: IntArray, counts: IntArray) -> int:
    """Return 0: a compiled call with the arguments of ``step_lanes``."""
    return 0


def kernel_tasks(env: Any, actions: IntArray) -> dict[str, Task]:
    """Return increasing parts of a step of an unwrapped environment below it."""
    lanes, planned = env.lanes, len(actions)
    count = lanes.num_lanes
    actions = actions.reshape(planned, count)
    _, counts = lanes.form.decode(actions[0], count)

    def calling(kernel: Any) -> Task:
        def task(times: int) -> None:
            table = lanes.world.table
            for step in range(times):
                kernel(table, actions[step % planned, :, None], counts)

        return task

    def playing(times: int) -> None:
        for step in range(times):
            lanes.play(lanes.form.decode(actions[step % planned], count))

    def looping(times: int) -> None:
        for step in range(times):
            actions[step % planned, :, None]

    return {
        "loop": looping,
        "call": calling(nothing),
        "kernel": calling(step_lanes),
        "play": playing,
    }


def vector_tasks() -> dict[str, Task]:
    """Return increasing parts of a step of the vector environment."""
    copying = make_env(Case("CrawlNCIS", ENDLESS))
    env = make_env(Case("CrawlNCIS", {**ENDLESS, "copy": False}))
    actions = random_actions(env.action_space)
    steps = {"step": step_task(env, actions), "step and copy": step_task(copying, actions)}
    return kernel_tasks(env, actions) | steps


def single_tasks() -> dict[str, Task]:
    """Return increasing parts of a step of the single environment."""
    env = make_env(Case("CrawlNCIS", ENDLESS, lanes=None))
    inner, actions = env.unwrapped, random_actions(env.action_space)
    steps = {"step": step_task(inner, actions), "wrapped": step_task(env, actions)}
    return kernel_tasks(inner, actions) | steps


_INNER = (
    ("compiled call", "loop", "call"),
    ("kernel: crawls, events, observation", "call", "kernel"),
    ("decoding of actions, outcomes", "kernel", "play"),
)
PARTS = (
    Comparison(
        f"a step of {LANES} lanes",
        vector_tasks,
        differences=(
            *_INNER,
            ("rewards, infos, ends", "play", "step"),
            ("copy of the observations", "step", "step and copy"),
        ),
    ),
    Comparison(
        "a step of the single environment",
        single_tasks,
        differences=(
            *_INNER,
            ("reward, info, end, copy", "play", "step"),
            ("wrappers of make", "step", "wrapped"),
        ),
    ),
)
