"""Builders for tests of the simulator: instances, fixed generators, environments of a tape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from crawl_envs import Instance
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.envs.vector import CrawlVectorEnv
from crawl_envs.sim.tape import CODE_STRIDE, Tape
from crawl_envs.spaces.actions import CrawlRates, action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.worlds.lanes import Lanes

GRAIN = 1024.0


def rounded(instance: Instance) -> Instance:
    """Return the instance with parameters rounded to 10 bits, so that sums of rates are exact."""
    names = ("importance", "change_rate", "recall", "false_signal_rate")
    return Instance(
        *(np.round(getattr(instance, name) * GRAIN) / GRAIN for name in names),
        bandwidth=instance.bandwidth,
        bandwidth_steps=instance.bandwidth_steps,
        delay=instance.delay,
        cost=None if instance.cost is None else np.ceil(instance.cost * GRAIN) / GRAIN,
    )


def unrequested(instance: Instance) -> Instance:
    """Return the instance without requests."""
    return Instance(
        np.zeros(instance.num_pages),
        instance.change_rate,
        instance.recall,
        instance.false_signal_rate,
        bandwidth=instance.bandwidth,
        delay=instance.delay,
    )


def random_events(
    rng: np.random.Generator,
    num_pages: int,
    num_sources: int = 1,
    *,
    end: float = 8.0,
    **counts: int,
) -> dict[str, Any]:
    """Draw lists of (times, pages), by name, many of them at one time or at that of a crawl."""
    lists: dict[str, Any] = {
        name: (rng.integers(1, int(8 * end), count) / 8.0, rng.integers(num_pages, size=count))
        for name, count in counts.items()
    }
    if num_sources > 1:
        lists["signals"] = (*lists["signals"], rng.integers(num_sources, size=counts["signals"]))
    return lists


def events_of(tape: Tape) -> list[tuple[float, int, int]]:
    """Return the events of a tape as (time, page, kind)."""
    pages, kinds = np.divmod(tape.code, CODE_STRIDE)
    return list(zip(tape.time.tolist(), pages.tolist(), kinds.tolist(), strict=True))


def stepped(env: Any, policy: Any, **reset: Any) -> list[int]:
    """Return the pages that a loop of steps crawls in an episode."""
    observation, _ = env.reset(**reset)
    pages, over = [], False
    while not over:
        action, _ = policy.predict(observation)
        pages.append(int(action))
        observation, _, _, over, _ = env.step(action)
    return pages


@dataclass
class Always:
    """A generator that always draws the same instance."""

    instance: Instance

    @property
    def num_pages(self) -> int:
        return self.instance.num_pages

    @property
    def num_sources(self) -> int:
        return self.instance.num_sources

    @property
    def least_cost(self) -> float | None:
        return None if self.instance.cost is None else float(self.instance.cost.min())

    def __call__(self, rng: np.random.Generator) -> Instance:
        return self.instance


def lanes_of(
    instance: Instance,
    num_lanes: int = 1,
    *,
    action: str = "page",
    batch: int = 1,
    horizon: float = 5.0,
    tape: Tape | None = None,
    **more: Any,
) -> Lanes:
    form = action_form(action, instance.num_pages, batch, instance.cost is not None)
    return Lanes(num_lanes, Always(instance), form, horizon=horizon, tape=tape, **more)


def single_of(instance: Instance, *, reward: str = "freshness", **more: Any) -> CrawlEnv:
    return CrawlEnv(partial(lanes_of, instance, **more), Objective(reward))


def vector_of(
    instance: Instance,
    num_lanes: int,
    *,
    autoreset_mode: str = "Disabled",
    copy: bool = True,
    **more: Any,
) -> CrawlVectorEnv:
    lanes = lanes_of(instance, num_lanes, **more)
    return CrawlVectorEnv(lanes, Objective(), autoreset_mode=autoreset_mode, copy=copy)


def epochs_of(
    instance: Instance,
    num_lanes: int = 1,
    *,
    horizon: float = 5.0,
    highest: float = 64.0,
    overspend: str = "error",
    **more: Any,
) -> Lanes:
    form = CrawlRates(instance.num_pages, highest)
    return Lanes(
        num_lanes,
        Always(instance),
        form,
        horizon=horizon,
        overspend=overspend,
        **{"epoch": 1.0, **more},
    )


def rated_of(instance: Instance, *, reward: str = "freshness", **more: Any) -> CrawlEnv:
    return CrawlEnv(partial(epochs_of, instance, **more), Objective(reward))


def rated_vector_of(
    instance: Instance,
    num_lanes: int,
    *,
    reward: str = "freshness",
    autoreset_mode: str = "Disabled",
    **more: Any,
) -> CrawlVectorEnv:
    lanes = epochs_of(instance, num_lanes, **more)
    return CrawlVectorEnv(lanes, Objective(reward), autoreset_mode=autoreset_mode)
