"""Tasks of environments to time: steps, rollouts, and steps through Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import gymnasium
import numpy as np

import policies
from crawl_envs import instances
from crawl_envs.evaluation import simulate
from crawl_envs.instances.longevity import CRAWLS_PER_PAGE, PAGE_LAWS, draw_regions
from crawl_envs.types import Instance
from crawl_envs.worlds.fragments.regions import RegionPages
from scripts.timing.cases import Tasks, Value
from scripts.timing.stepped import (
    CASES,
    LANES,
    PAGES_DRAWN,
    Case,
    make_env,
    ncis,
    step_task,
    stepping,
)
from scripts.timing.turns import Task

CARTPOLE = "CartPole"
HORIZON, DAYS = 10.0, 60.0
"""Length of a rollout in units of time, and of an episode with fragments in days."""


def step_tasks(cases: Mapping[str, Case]) -> Tasks:
    """Return a task per case that steps its environment; a repetition is ``case.steps`` steps."""

    def executing(case: Case) -> Task:
        task = stepping(case)
        return lambda times: task(times * case.steps)

    return {name: (executing(case), case.steps * (case.lanes or 1)) for name, case in cases.items()}


def beside_cartpole(names: tuple[str, ...], pages: int) -> Tasks:
    """Return tasks that step CartPole and named ``CASES``; all cases must have ``pages`` pages."""
    cases = {name: CASES[name] for name in names}
    for name, case in cases.items():
        if case.pages != pages:
            raise ValueError(f"pages must be those of {name}, {case.pages}, got {pages}")
    return step_tasks({**cases, CARTPOLE: Case("CartPole", lanes=cases[names[0]].lanes)})


def rollout_tasks(pages: int) -> Tasks:
    """Return a task that simulates compiled GREEDY, with ``HORIZON`` crawls per page."""
    instance = instances.make("noisy", num_pages=pages, bandwidth=float(pages), seed=0)
    greedy: Any = policies.make("Greedy")

    def simulating(times: int) -> None:
        for seed in range(times):
            simulate(instance, greedy, HORIZON, seed)

    return {"simulate": (simulating, round(pages * HORIZON))}


def bridge_tasks(pages: int) -> Tasks:
    """Return two tasks that step lanes as a VecEnv of Stable-Baselines3.

    One uses our bridge, the second the DummyVecEnv of ``make_vec_env``; both record episodes.
    """
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecMonitor

    from agents.sb3.bridge import CrawlVecEnv

    name, arguments = "CrawlNCIS-v0", ncis(pages)
    lanes = gymnasium.make_vec(name, num_envs=LANES, autoreset_mode="SameStep", **arguments)
    actions = np.random.default_rng(0).integers(pages, size=(PAGES_DRAWN, LANES))
    envs: dict[str, Any] = {
        "CrawlVecEnv": VecMonitor(CrawlVecEnv(lanes)),
        "make_vec_env": make_vec_env(name, n_envs=LANES, env_kwargs=arguments),
    }
    for env in envs.values():
        env.seed(0)
        env.reset()
    return {name: (step_task(env, actions), LANES) for name, env in envs.items()}


def fragment_case(family: str, pages: int) -> Case:
    """Return a case with one environment; ``family`` decides whether its pages have fragments.

    Both families have the same change rates (law ``quality``) and crawls.
    """
    law = replace(PAGE_LAWS["quality"], median_size=50.0)
    regions = draw_regions(law, pages, np.random.default_rng(0))
    drawn: Any = RegionPages(np.ones(pages), regions, bandwidth=CRAWLS_PER_PAGE * pages)
    arguments = {"num_pages": pages, "bandwidth": drawn.bandwidth, "horizon": DAYS}
    if family == "CrawlNCIS":
        drawn = Instance(drawn.importance, drawn.change_rate, bandwidth=drawn.bandwidth)
    return Case(family, arguments, lanes=None, wrapped=False, options={"instance": drawn})


def fragment_tasks(pages: int) -> Tasks:
    """Return two tasks: stepping pages with fragments, and stepping pages without fragments."""
    return step_tasks(
        {family: fragment_case(family, pages) for family in ("CrawlLongevity", "CrawlNCIS")}
    )


def fragment_bytes(pages: int) -> Iterator[Value]:
    """Yield an environment's bytes per page before and after its fragments are read."""
    env = make_env(fragment_case("CrawlLongevity", pages))
    yield "state", "bytes per page", sum(array_sizes(env.get_state())) / pages
    env.step(0)
    env.last_log(0)
    yield "state, fragments read", "bytes per page", sum(array_sizes(env.get_state())) / pages


def array_sizes(state: Any) -> Iterator[int]:
    """Yield the bytes of each array in nested mappings, sequences and dataclasses."""
    if isinstance(state, np.ndarray):
        yield state.nbytes
    elif is_dataclass(state) and not isinstance(state, type):
        state = {field.name: getattr(state, field.name) for field in fields(state)}
    parts = state.values() if isinstance(state, Mapping) else state
    for part in parts if isinstance(state, list | tuple | Mapping) else ():
        yield from array_sizes(part)
