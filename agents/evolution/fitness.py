"""How fresh candidates keep pages, on events that all of them meet alike."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import policies
from agents.evolution.arguments import EvolutionArguments
from agents.evolution.policy import FEATURES, LearnedIndex
from agents.evolution.stored import BELIEF, StoredIndex
from crawl_envs.sim.rollouts.play import Episode, play_form
from crawl_envs.types import FloatArray
from crawl_envs.types.compiled_policies import CompilablePolicy

ANALYTIC = ("GreedyNCIS", "GreedyNCISApprox", "GreedyCIS", "GreedyCISPlus", "Greedy", "RoundRobin")
"""Policies that the learned index is set beside."""

Candidate = StoredIndex | str
"""An index, or the name of an analytic policy."""


def rivals_of(base: str) -> tuple[str, ...]:
    """The analytic policies that an index with a base is set beside; the best is its reference."""
    return (BELIEF,) if base == BELIEF else ANALYTIC


def candidate_policy(candidate: Candidate) -> CompilablePolicy:
    """The policy of a candidate, unbound."""
    policy: Any
    if isinstance(candidate, str):
        policy = policies.make(candidate, features=FEATURES)
    else:
        policy = LearnedIndex(features=FEATURES, index=candidate)
    assert isinstance(policy, CompilablePolicy)
    return policy


def play_all(
    arguments: EvolutionArguments, candidates: Sequence[Candidate], seed: int
) -> FloatArray:
    """The freshness of each candidate in the episode of a seed, (n,), in [0, 1]."""
    if arguments.base == BELIEF:
        return _play_believers(arguments, candidates, seed)
    instance = arguments.draw(seed)
    slots = arguments.slots_of(instance.bandwidth)
    episode = Episode(instance, arguments.horizon, seed, requests=False)
    problem, rng = instance.problem(), np.random.default_rng(0)
    fresh = [
        play_form(
            episode, candidate_policy(candidate).compile(problem, slots, rng), slots
        ).freshness
        for candidate in candidates
    ]
    return np.array(fresh)


def _play_believers(
    arguments: EvolutionArguments, candidates: Sequence[Candidate], seed: int
) -> FloatArray:
    """The freshness of candidates that act in an environment, and are told what it reveals."""
    import gymnasium

    env = gymnasium.make("CrawlNCIS-v0", **arguments.environment())
    env.reset(seed=seed, options={"instance": arguments.draw(seed)})
    core: Any = env.unwrapped
    episode = Episode(core.instance, arguments.horizon, seed, requests=False)
    fresh = []
    for candidate in candidates:
        policy = believer(candidate, env)
        form = policy.compile(core.problem, core.num_slots(), core.rng())
        fresh.append(play_form(episode, form, core.num_slots()).freshness)
    env.close()
    return np.array(fresh)


def believer(candidate: Candidate, env: Any) -> CompilablePolicy:
    """The policy of a candidate of base ``BeliefNCIS``, or an analytic one, in an environment."""
    from agents.evolution.belief.policy import CorrectedBelief

    if isinstance(candidate, str):
        policy: Any = policies.make(candidate, env)
        assert isinstance(policy, CompilablePolicy)
        return policy
    return CorrectedBelief(env, index=candidate)


class Contest:
    """Plays candidates against each other, in this process or in several.

    Args:
        arguments: which episodes.
        pool: the workers; None plays here.
    """

    def __init__(self, arguments: EvolutionArguments, pool: ProcessPoolExecutor | None) -> None:
        self.arguments, self._pool = arguments, pool

    def __call__(self, candidates: Sequence[Candidate], seeds: Sequence[int]) -> FloatArray:
        """The freshness of every candidate in every episode, (episodes, n)."""
        play = partial(play_all, self.arguments, candidates)
        return np.array(list((self._pool.map if self._pool else map)(play, seeds)))


@contextmanager
def contest(arguments: EvolutionArguments, workers: int) -> Iterator[Contest]:
    """A contest with so many processes, which end with the block; 1 is this one alone."""
    if workers == 1:
        yield Contest(arguments, None)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)
    try:
        yield Contest(arguments, pool)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Make this worker end when its parent is gone, even if killed, and not by an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = multiprocessing.parent_process()

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
