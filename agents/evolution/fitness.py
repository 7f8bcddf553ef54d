"""Fitness of candidates: freshness of pages, on the same events for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium
import numpy as np

import policies
from agents.evolution.arguments import EpisodeArguments
from agents.evolution.policy import policy_of
from agents.evolution.stored import StoredIndex
from crawl_envs.types import FloatArray
from crawl_envs.types.worker_processes import pool
from crawl_envs.worlds.rollouts import play_form

Map = Callable[..., Iterable[FloatArray]]
Candidate = StoredIndex | str
"""An index, or the name of an analytic policy."""


def play_all(arguments: EpisodeArguments, candidates: Sequence[Candidate], seed: int) -> FloatArray:
    """Return the freshness of each candidate in the episode of a seed, (n,), in [0, 1]."""
    env = gymnasium.make("CrawlNCIS-v0", **arguments.environment())
    env.reset(seed=seed, options={"instance": arguments.draw(seed)})
    core: Any = env.unwrapped
    fresh = []
    for candidate in candidates:
        policy: Any
        if isinstance(candidate, str):
            policy = policies.make(candidate, env)
        else:
            policy = policy_of(candidate, env)
        form = policy.compile(core.problem, core.num_slots(), core.rng())
        fresh.append(
            play_form(form, core.instance, arguments.horizon, seed, requests=False).freshness
        )
    env.close()
    return np.array(fresh)


def freshness_of(
    arguments: EpisodeArguments,
    candidates: Sequence[Candidate],
    seeds: Sequence[int],
    each: Map = map,
) -> FloatArray:
    """Return the freshness of every candidate in every episode, (episodes, n), in [0, 1].

    ``each`` is :func:`map`, or the map of a pool of processes.
    """
    return np.array(list(each(partial(play_all, arguments, candidates), seeds)))


@contextmanager
def mapping(workers: int) -> Iterator[Map]:
    """Yield the map of worker processes, which end with the block; :func:`map` for one."""
    if workers == 1:
        yield map
        return
    with pool(workers) as processes:
        yield processes.map
