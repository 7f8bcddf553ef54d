"""Fitness of candidates: freshness of pages, on the same events for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

import policies
from agents.evolution.arguments import EvolutionArguments, OutcomeArguments
from agents.evolution.policy import FEATURES, LearnedIndex
from agents.evolution.stored import BELIEF, StoredIndex
from crawl_envs.types import FloatArray
from crawl_envs.types.compiled_policies import CompilablePolicy
from crawl_envs.types.worker_processes import pool
from crawl_envs.worlds.rollouts import play_form

ANALYTIC = ("GreedyNCIS", "GreedyNCISApprox", "GreedyCIS", "GreedyCISPlus", "Greedy", "RoundRobin")
"""Policies that the learned index is compared with."""

Arguments = TypeVar("Arguments", bound=EvolutionArguments | OutcomeArguments)
Candidate = StoredIndex | str
"""An index, or the name of an analytic policy."""


def baselines_of(base: str) -> tuple[str, ...]:
    """Return the analytic policies to compare with, by base; the best is the reference."""
    return (BELIEF,) if base == BELIEF else ANALYTIC


def candidate_policy(candidate: Candidate) -> CompilablePolicy:
    """Return the policy of a candidate, unbound."""
    policy: Any
    if isinstance(candidate, str):
        policy = policies.make(candidate, features=FEATURES)
    else:
        policy = LearnedIndex(features=FEATURES, index=candidate)
    assert isinstance(policy, CompilablePolicy)
    return policy


def play_all(
    arguments: EvolutionArguments | OutcomeArguments, candidates: Sequence[Candidate], seed: int
) -> FloatArray:
    """Return the freshness of each candidate in the episode of a seed, (n,), in [0, 1]."""
    if arguments.base == BELIEF:
        return _play_beliefs(arguments, candidates, seed)
    instance = arguments.draw(seed)
    slots = arguments.slots_of(instance.bandwidth)
    problem, rng = instance.problem(), np.random.default_rng(0)
    forms = (candidate_policy(candidate).compile(problem, slots, rng) for candidate in candidates)
    played = (play_form(form, instance, arguments.horizon, seed, requests=False) for form in forms)
    return np.array([rollout.freshness for rollout in played])


def _play_beliefs(
    arguments: EvolutionArguments | OutcomeArguments, candidates: Sequence[Candidate], seed: int
) -> FloatArray:
    """Return the freshness of candidates bound to an environment, (n,)."""
    import gymnasium

    env = gymnasium.make("CrawlNCIS-v0", **arguments.environment())
    env.reset(seed=seed, options={"instance": arguments.draw(seed)})
    core: Any = env.unwrapped
    fresh = []
    for candidate in candidates:
        policy = belief_policy(candidate, env)
        form = policy.compile(core.problem, core.num_slots(), core.rng())
        fresh.append(
            play_form(form, core.instance, arguments.horizon, seed, requests=False).freshness
        )
    env.close()
    return np.array(fresh)


def belief_policy(candidate: Candidate, env: Any) -> CompilablePolicy:
    """Return the policy of a candidate of base ``BeliefNCIS``, or an analytic one, bound."""
    from agents.evolution.corrected_belief import CorrectedBelief

    if isinstance(candidate, str):
        policy: Any = policies.make(candidate, env)
        assert isinstance(policy, CompilablePolicy)
        return policy
    return CorrectedBelief(env, index=candidate)


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
