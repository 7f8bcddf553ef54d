"""Speed comparisons with other implementations, and the parts of a step.

A comparison is a set of tasks with the same amount of work that are timed in turns. By default,
lanes use ``noisy`` instances with one crawl per page and unit time, of random pages, in episodes of
1000 steps with autoreset.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import crawl_envs  # noqa: F401
import policies
from crawl_envs import instances
from crawl_envs.compiled.compiling import compiled
from crawl_envs.evaluation import simulate
from crawl_envs.types import IntArray
from crawl_envs.worlds.lanes import Lanes
from crawl_envs.worlds.step import step_lanes
from policies import solvers
from scripts.timing import stepped
from scripts.timing.training_tasks import FRAMES, MANY_LANES, bridge_tasks, ppo_tasks
from scripts.timing.turns import Task, repeated

LANES, PAGES = stepped.LANES, stepped.PAGES
INSTANCE = "noisy"
ROLLOUT_PAGES, ROLLOUT_HORIZON = 1000, 10.0
SOLVED_PAGES = 100_000
PPO_PAGES, PPO_TURNS = (20, 100), 15
FAMILY_TURNS = 15
ROLLOUT_CRAWLS = round(ROLLOUT_PAGES * ROLLOUT_HORIZON)
COLD_START_LIMIT = 1.0
"""Seconds."""
PLANNED = 1024

COLD_START = (
    "import crawl_envs, gymnasium; env = gymnasium.make('CrawlNCIS-v0', instance='noisy'); "
    "env.reset(seed=0); env.step(0)"
)


def random_pages(num_actions: int, *shape: int) -> IntArray:
    """Return actions drawn in advance, and then reused, (PLANNED, *shape)."""
    return np.random.default_rng(0).integers(num_actions, size=(PLANNED, *shape))


def stepping(env: Any, num_actions: int, lanes: int = LANES) -> Task:
    """Return the task of stepping a vector environment with random actions."""
    env.reset(seed=0)
    return stepped.step_task(env, random_pages(num_actions, lanes))


def crawling(
    lanes: int = LANES, pages: int = PAGES, *, copy: bool = True, instance: str = INSTANCE
) -> Any:
    """Return the timed vector environment, with one crawl per page and unit time."""
    return gymnasium.make_vec(
        "CrawlNCIS-v0",
        num_envs=lanes,
        num_pages=pages,
        bandwidth=float(pages),
        instance=instance,
        copy=copy,
    )


def cartpole() -> Task:
    """Return the task of stepping the vector environment of CartPole."""
    env = gymnasium.make_vec("CartPole-v1", num_envs=LANES, vectorization_mode="vector_entry_point")
    return stepping(env, 2)


def vector_tasks() -> dict[str, Task]:
    """Return 64 lanes of 100 pages, and the vector environment of CartPole."""
    return {
        "crawl, copied": stepping(crawling(), PAGES),
        "crawl, not copied": stepping(crawling(copy=False), PAGES),
        "crawl of uniform, copied": stepping(crawling(instance="uniform"), PAGES),
        "crawl of uniform, not copied": stepping(crawling(copy=False, instance="uniform"), PAGES),
        "cartpole": cartpole(),
    }


def family_tasks(*names: str) -> dict[str, Task]:
    """Return cases of the same numbers of steps per execution, and CartPole."""
    cases = [stepped.CASES[name] for name in names]
    tasks = {name: stepped.stepping(case) for name, case in zip(names, cases, strict=True)}
    steps = cases[0].steps

    def executing(task: Task) -> Task:
        return lambda times: task(times * steps)

    return {name: executing(task) for name, task in {**tasks, "cartpole": cartpole()}.items()}


def single_tasks() -> dict[str, Task]:
    """Return the single environments, wrapped by ``gymnasium.make``, with resets."""

    def playing(env: Any, num_actions: int) -> Task:
        # Each task needs its own environment: wrappers share the state of what they wrap.
        env.reset(seed=0)
        return stepped.step_task(env, random_pages(num_actions), resets=True)

    crawl, other = (gymnasium.make("CrawlNCIS-v0", instance=INSTANCE) for _ in range(2))
    return {
        "crawl": playing(crawl, PAGES),
        "crawl, unwrapped": playing(other.unwrapped, PAGES),
        "cartpole": playing(gymnasium.make("CartPole-v1"), 2),
    }


def rollout_tasks() -> dict[str, Task]:
    """Return rollouts of GREEDY with 10,000 crawls each."""
    instance = instances.make(
        INSTANCE, num_pages=ROLLOUT_PAGES, bandwidth=float(ROLLOUT_PAGES), seed=0
    )
    greedy: Any = policies.make("Greedy", features=("elapsed", "importance", "change_rate"))

    def simulating(times: int) -> None:
        for seed in range(times):
            simulate(instance, greedy, ROLLOUT_HORIZON, seed)

    return {"simulate": simulating}


def solver_tasks() -> dict[str, Task]:
    """Return solvers of the two continuous problems, with signals and without."""
    pages = instances.make(INSTANCE, num_pages=SOLVED_PAGES, bandwidth=SOLVED_PAGES / 10.0)
    given = pages.importance, pages.change_rate, pages.bandwidth
    return {
        "ncis, Theorem 1": repeated(solvers.ncis, pages),
        "binary_periodic, eq. 5": repeated(solvers.binary_periodic, *given),
    }


@compiled()
def nothing(table: IntArray, crawls: IntArray, counts: IntArray) -> int:
    """Return 0: a compiled call with the arguments of ``step_lanes``."""
    return 0


def kernel_tasks(lanes: Lanes) -> dict[str, Task]:
    """Return increasing parts of a step below the environment; the lanes must have been reset."""
    count = lanes.num_lanes
    actions = random_pages(PAGES, count)
    _, counts = lanes.form.decode(actions[0], count)

    def calling(kernel: Any) -> Task:
        def task(times: int) -> None:
            table = lanes.world.table
            for step in range(times):
                kernel(table, actions[step % PLANNED, :, None], counts)

        return task

    def playing(times: int) -> None:
        for step in range(times):
            lanes.play(lanes.form.decode(actions[step % PLANNED], count))

    def looping(times: int) -> None:
        for step in range(times):
            actions[step % PLANNED, :, None]

    return {
        "loop": looping,
        "call": calling(nothing),
        "kernel": calling(step_lanes),
        "play": playing,
    }


ENDLESS = {"instance": INSTANCE, "horizon": 1e6}
"""A horizon that no run reaches, to exclude ends of episodes from the parts."""


def vector_part_tasks() -> dict[str, Task]:
    """Return increasing parts of a step of the vector environment."""
    env: Any = gymnasium.make_vec("CrawlNCIS-v0", num_envs=LANES, copy=False, **ENDLESS)
    copying = gymnasium.make_vec("CrawlNCIS-v0", num_envs=LANES, **ENDLESS)
    step, copied = stepping(env, PAGES), stepping(copying, PAGES)
    return {**kernel_tasks(env.lanes), "step": step, "step and copy": copied}


def single_part_tasks() -> dict[str, Task]:
    """Return increasing parts of a step of the single environment."""
    env: Any = gymnasium.make("CrawlNCIS-v0", **ENDLESS)
    env.reset(seed=0)
    step, wrapped = (stepped.step_task(one, random_pages(PAGES)) for one in (env.unwrapped, env))
    return {**kernel_tasks(env.unwrapped.lanes), "step": step, "wrapped": wrapped}


class Parts(NamedTuple):
    """The parts of a step: for each, its name and the two tasks whose difference it is."""

    name: str
    tasks: Callable[[], dict[str, Task]]
    differences: tuple[tuple[str, str, str], ...]


_INNER = (
    ("compiled call", "loop", "call"),
    ("kernel: crawls, events, observation", "call", "kernel"),
    ("decoding of actions, outcomes", "kernel", "play"),
)
PARTS = (
    Parts(
        f"a step of {LANES} lanes",
        vector_part_tasks,
        (
            *_INNER,
            ("rewards, infos, ends", "play", "step"),
            ("copy of the observations", "step", "step and copy"),
        ),
    ),
    Parts(
        "a step of the single environment",
        single_part_tasks,
        (
            *_INNER,
            ("reward, info, end, copy", "play", "step"),
            ("wrappers of make", "step", "wrapped"),
        ),
    ),
)


def cold_start() -> tuple[float, float]:
    """Return wall and processor time of a process that imports, makes, resets and steps."""
    start, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-c", COLD_START], check=True)
    after = os.times()
    busy = sum(after[2:4]) - sum(before[2:4])
    return time.perf_counter() - start, busy


class Ratio(NamedTuple):
    """A task, its baseline, and the ratio of speeds that it should reach, if any."""

    task: str
    baseline: str
    floor: float | None = None


class Comparison(NamedTuple):
    """Tasks timed in turns; one execution of a task does ``amount`` units of work.

    ``most_turns`` limits the number of turns of long tasks.
    """

    name: str
    tasks: Callable[[], dict[str, Task]]
    amount: int
    unit: str
    ratios: tuple[Ratio, ...]
    most_turns: int | None = None


def family_comparison(title: str, *names: str) -> Comparison:
    """Return the comparison of cases of the same numbers of steps with CartPole."""
    return Comparison(
        f"{LANES} lanes of {title}",
        functools.partial(family_tasks, *names),
        LANES * stepped.CASES[names[0]].steps,
        "env-steps",
        tuple(Ratio(name, "cartpole") for name in names),
        most_turns=FAMILY_TURNS,
    )


def _ppo(pages: int) -> Comparison:
    many, theirs = f"PPO, CrawlVecEnv of {MANY_LANES} lanes", "PPO, make_vec_env"
    return Comparison(
        f"PPO, {LANES} lanes of {pages} pages",
        functools.partial(ppo_tasks, LANES, pages, INSTANCE),
        FRAMES,
        "env-steps",
        (
            Ratio("PPO, CrawlVecEnv", theirs, 2.0),
            Ratio(many, theirs),
            Ratio(many, f"{theirs} of {MANY_LANES}"),
        ),
        PPO_TURNS,
    )


COMPARISONS = (
    Comparison(
        f"{LANES} lanes of {PAGES} pages",
        vector_tasks,
        LANES,
        "env-steps",
        tuple(
            Ratio(f"{name}, {kept}", "cartpole", floor)
            for name in ("crawl", "crawl of uniform")
            for kept, floor in (("copied", 3.0), ("not copied", 5.0))
        ),
    ),
    family_comparison("other families", "harmonic, pages", "harmonic, rates", "trace"),
    family_comparison(f"{PAGES} pages with fragments, with resets", "longevity"),
    family_comparison(
        "1,000 offers, weeks with resets, and a year",
        *("offers", "offers, not copied", "offers, a year"),
    ),
    Comparison(
        f"single, {PAGES} pages", single_tasks, 1, "env-steps", (Ratio("crawl", "cartpole", 2.0),)
    ),
    Comparison(f"GREEDY over {ROLLOUT_PAGES} pages", rollout_tasks, ROLLOUT_CRAWLS, "crawls", ()),
    Comparison(
        f"Stable-Baselines3, {LANES} lanes of {PAGES} pages",
        functools.partial(bridge_tasks, LANES, PAGES, INSTANCE),
        LANES,
        "env-steps",
        (Ratio("CrawlVecEnv", "make_vec_env", 20.0),),
    ),
    *map(_ppo, PPO_PAGES),
    Comparison(
        f"optimum over {SOLVED_PAGES:,} pages, 10 per crawl and unit of time",
        solver_tasks,
        SOLVED_PAGES,
        "pages",
        (),
    ),
)
