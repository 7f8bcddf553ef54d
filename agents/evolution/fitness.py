"""Fitness of candidates: freshness of pages, on the same events for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

import gymnasium
import numpy as np

import policies
from agents.evolution.arguments import EpisodeArguments
from agents.evolution.policy import policy_of
from agents.evolution.stored import StoredIndex
from crawl_envs.types import FloatArray
from crawl_envs.types.worker_processes import pool
from crawl_envs.worlds.rollouts import play_form

Arguments = TypeVar("Arguments", bound=EpisodeArguments)
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


class Evaluator(Generic[Arguments]):
    """Plays candidates on the same episodes, in this process or in several.

    Args:
        arguments: of the episodes.
        pool: the workers; None plays in this process.
    """

    def __init__(self, arguments: Arguments, pool: ProcessPoolExecutor | None) -> None:
        self.arguments, self._pool = arguments, pool

    def __call__(self, candidates: Sequence[Candidate], seeds: Sequence[int]) -> FloatArray:
        """Return the freshness of every candidate in every episode, (episodes, n)."""
        play = partial(play_all, self.arguments, candidates)
        return np.array(list((self._pool.map if self._pool else map)(play, seeds)))


@contextmanager
def evaluator(arguments: Arguments, workers: int) -> Iterator[Evaluator[Arguments]]:
    """Yield an evaluator with worker processes, which end with the block; 1 uses none."""
    if workers == 1:
        yield Evaluator(arguments, None)
        return
    with pool(workers) as processes:
        yield Evaluator(arguments, processes)
