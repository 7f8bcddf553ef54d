"""The agent in an environment: a corrected belief, or a formula, by what is asked and revealed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import policies
from agents.generalist import kernels
from agents.generalist.history import with_history
from agents.generalist.stored import StoredGeneralist
from crawl_envs.types import Problem
from crawl_envs.types.compiled_policies import CompiledLearner
from policies.base.policy import RATE_FORMS
from policies.base.registry import TAGS
from policies.ncis.belief import BeliefNCIS

LEAST = 0.02
"""Where one page is crawled per decision, pages below this share of the largest believed value are
not corrected."""


class LearnedBelief(BeliefNCIS):
    """BELIEF-NCIS, with its staleness and its crawl value corrected by two networks.

    The networks (:mod:`agents.generalist.networks`) are the same for all pages, of any number, and
    for all laws of changes and signals. Where one page is crawled per decision, only those of at
    least LEAST times the largest believed value are corrected. A unit of time counts as a day for
    the inputs of hours.

    Args:
        stored: the networks.
        **belief: as for :class:`policies.ncis.belief.BeliefNCIS`.
    """

    def __init__(self, *, stored: StoredGeneralist, **belief: Any) -> None:
        super().__init__(**belief)
        self.stored = stored

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledLearner:
        """Return the learner at the start of an episode; ``slots`` and ``rng`` are not used.

        Raises:
            ValueError: the history is of other pages or sources.
        """
        weights, hidden = self.stored.weights, self.stored.hidden
        least = LEAST if self.form.num_chosen == 1 else 0.0
        belief = self.first_memory(problem)
        memory = with_history(belief, problem, weights, hidden=hidden, least=least)
        functions = kernels.on_birth_or_death, kernels.learn, kernels.on_signal, kernels.score
        return CompiledLearner(*functions, memory)


def formula_of(env: Any) -> str | None:
    """Return the name of the policy that the agent is in an environment; None for its own belief.

    It follows from the reward, the form of action and the columns of the observation. Where pages
    are born and die, on recorded traces, the correction loses, and the belief stays as it is.
    """
    core: Any = getattr(env, "unwrapped", env)
    reward = getattr(getattr(core, "objective", None), "reward", "freshness")
    columns = getattr(core, "features", ())
    known = "change_rate" in columns
    form = getattr(core, "action_form", "page")
    if reward == "fragments":
        name = "FragmentStatic" if known else "LearningLongevity"
        if form not in TAGS[name].acts or (form == "refresh" and not known):
            raise ValueError(
                f"action_form must be one in which {name} acts, as which the generalist plays "
                f"fragments, got {form!r}"
            )
        return name
    if form in RATE_FORMS:
        if "clicks_1" in columns:
            return "DiscreteLambdaCrawl"
        name = "LambdaCrawl" if known else "LambdaLearnAndCrawl"
        return name if reward == "penalty" else BINARY[name]
    if reward == "penalty":
        name = "GreedyHarmonic" if known else "LambdaLearnAndCrawl"
        return name if form in TAGS[name].acts else None
    return BELIEF if "alive" in columns else None


BELIEF = "BeliefNCIS"
BINARY = {"LambdaCrawl": "BinaryLambdaCrawl", "LambdaLearnAndCrawl": "LambdaLearnAndCrawlBinary"}
"""Policies of rates where a page is fresh or stale, by those where missed changes count."""


def load_generalist(folder: str | Path, env: Any = None) -> Any:
    """Return the generalist in a folder.

    Args:
        folder: the output folder of :func:`agents.generalist.training.train`.
        env: the environment to bind it to; None for the corrected belief itself, a policy.

    Raises:
        ValueError: there is no such agent, its file is damaged, or it cannot act in ``env``.
    """
    belief = LearnedBelief(stored=StoredGeneralist.read(folder))
    if env is None:
        return belief
    name = formula_of(env)
    return policies.bind(belief, env) if name is None else policies.make(name, env)
