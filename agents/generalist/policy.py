"""The generalist: a belief that networks correct, or another policy where one is better."""

from __future__ import annotations

from collections.abc import Mapping
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
from policies.ncis.belief import BeliefNCIS, History

MIN_SHARE = 0.02
"""With one crawl per decision, pages below this share of the largest value are not corrected."""


class LearnedBelief(BeliefNCIS):
    """BELIEF-NCIS whose staleness and crawl value two networks, ``stored``, correct.

    The networks (:mod:`agents.generalist.networks`) are the same for any number of pages and for
    all laws of changes and signals. For the inputs of hours, a unit of time is a day.
    """

    def __init__(self, *, stored: StoredGeneralist, **belief: Any) -> None:
        super().__init__(**belief)
        self.stored = stored

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledLearner:
        """Return the learner at the start of an episode; ``slots`` and ``rng`` are not used.

        Raises:
            ValueError: the history has other pages or sources.
        """
        weights, hidden = self.stored.weights, self.stored.hidden
        form = self.form
        several = form.action == "scores" and (form.batch > 1 or problem.cost is not None)
        cutoff = 0.0 if several else MIN_SHARE
        promises = self.promises(problem)
        belief, problem = self.first_memory(problem), problem.per_cost()
        memory = with_history(belief, problem, weights, hidden=hidden, cutoff=cutoff)
        functions = kernels.on_birth_or_death, kernels.learn, kernels.on_signal, kernels.score
        return CompiledLearner(*functions, memory, promises)


def formula_of(env: Any) -> str | None:
    """Return the name of the policy with which a generalist acts; None for the corrected belief.

    The choice depends on the environment's reward, form of action and columns. Where pages are
    born and die, the uncorrected belief acts, as the correction scores lower on recorded traces.
    """
    core: Any = getattr(env, "unwrapped", env)
    reward = getattr(getattr(core, "objective", None), "reward", "freshness")
    columns = getattr(core, "features", ())
    rates_revealed = "change_rate" in columns
    form = getattr(core, "action_form", "page")
    if reward == "fragments":
        name = "FragmentStatic" if rates_revealed else "LearningLongevity"
        if form not in TAGS[name].acts or (form == "refresh" and not rates_revealed):
            raise ValueError(
                f"action_form must be one of {name}, which acts on fragments for the generalist, "
                f"got {form!r}"
            )
        return name
    if form in RATE_FORMS:
        if "clicks_1" in columns:
            return "DiscreteLambdaCrawl"
        name = "LambdaCrawl" if rates_revealed else "LambdaLearnAndCrawl"
        return name if reward == "penalty" else BINARY[name]
    if reward == "penalty":
        name = "GreedyHarmonic" if rates_revealed else "LambdaLearnAndCrawl"
        return name if form in TAGS[name].acts else None
    return BELIEF if "alive" in columns else None


BELIEF = "BeliefNCIS"
BINARY = {"LambdaCrawl": "BinaryLambdaCrawl", "LambdaLearnAndCrawl": "LambdaLearnAndCrawlBinary"}
"""Policies for rewards of freshness, by the matching policies for penalties of missed changes."""


def check_learned(env: Any, training: Mapping[str, Any]) -> None:
    """Raise ValueError if a training, by its arguments, had no worlds like ``env``.

    It had laws or recorded sites, with rewards of freshness and a page per crawl.
    """
    core: Any = getattr(env, "unwrapped", env)
    reward = getattr(getattr(core, "objective", None), "reward", "freshness")
    columns, form = getattr(core, "features", ()), getattr(core, "action_form", "page")
    if reward != "freshness" or "clicks_1" in columns or form in RATE_FORMS:
        raise ValueError(
            "env must have rewards of freshness, no clicks, and actions that are pages or scores, "
            f"as in the training, got reward {reward!r} and action {form!r}"
        )
    world = "sites" if "alive" in columns else "instance"
    if not training[world]:
        pages = "recorded pages" if world == "sites" else "pages of a law"
        raise ValueError(f"env must be like those of the training, which had no {pages}")


def load_generalist(folder: str | Path, env: Any = None, history: History | None = None) -> Any:
    """Return the generalist in a folder, bound to ``env``; without ``env`` the corrected belief.

    ``history`` has earlier events of the same pages, for the belief. Raises ValueError if the file
    is missing or damaged, or the agent cannot act in ``env``.
    """
    stored = StoredGeneralist.read(folder)
    belief = LearnedBelief(stored=stored, history=history)
    if env is None:
        return belief
    if not stored.made.get("formulas", True):
        check_learned(env, stored.made)
        return policies.bind(belief, env)
    name = formula_of(env)
    return policies.bind(belief, env) if name is None else policies.make(name, env)
