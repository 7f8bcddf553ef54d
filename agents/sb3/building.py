"""Models built from the arguments of a run and the traits of its environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from agents.sb3.algorithms import (
    algorithm_class,
    check_action,
    network_arguments,
    schedule_arguments,
)
from agents.sb3.arguments import TrainArguments, step_size
from crawl_envs.spaces.actions import (
    ACTION_FORMS,
    BandwidthShares,
    CrawlRates,
    PageChoice,
    RefreshSet,
    TopScores,
)
from crawl_envs.types.arguments import flag, one_of, real, whole

MOST_NUMBERS = 2**26
"""Most numbers in an observation of a model."""


@dataclass(frozen=True, kw_only=True)
class ModelTraits:
    """The traits of an environment that a model depends on; all are JSON values.

    Raises:
        ValueError: a value of another type or outside its range.
    """

    features: tuple[str, ...]
    """Names of the observation's columns, F of them."""
    num_pages: int
    """Number of pages m, >= 1; m · F is at most MOST_NUMBERS."""
    action_form: str
    """One of ACTION_FORMS."""
    cycle: float
    """Time to crawl every page once, m / R, > 0."""
    batch: int = 1
    """Pages per action of the form ``scores``, in [1, m]."""
    probing: bool = False
    """Whether an action of the form ``page`` may be a probe."""
    highest: float = 1.0
    """Highest rate of the form ``rates``, >= 1."""

    def __post_init__(self) -> None:
        names = self.features
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"features must be names of columns, got {names!r:.80}")
        if not names:
            raise ValueError("features must name at least one column, got none")
        object.__setattr__(self, "features", tuple(names))
        whole("num_pages", self.num_pages, 1, MOST_NUMBERS // len(names))
        one_of("action_form", self.action_form, ACTION_FORMS)
        real("cycle", self.cycle, above=0.0)
        whole("batch", self.batch, 1, self.num_pages)
        flag("probing", self.probing)
        real("highest", self.highest, least=1.0)

    @classmethod
    def of(cls, env: Any, cycle: float) -> ModelTraits:
        """Return the traits of a bridge, with the given ``cycle``."""
        num_pages, acts = env.observation_space.shape[0], env.action_space
        form = env.action_form
        return cls(
            features=env.features,
            num_pages=num_pages,
            action_form=form,
            cycle=float(cycle),
            batch=env.batch if form == "scores" else 1,
            probing=form == "page" and int(acts.n) > num_pages,
            highest=float(acts.high.max()) if form == "rates" else 1.0,
        )

    def observation_space(self) -> Box:
        """Return the space of observations, (m, F) float32, without bounds."""
        return Box(-np.inf, np.inf, (self.num_pages, len(self.features)), np.float32)

    def action_space(self) -> Box | Discrete | MultiBinary:
        """Return the space of actions."""
        if self.action_form == "page":
            return PageChoice(self.num_pages, self.probing).space()
        if self.action_form == "scores":
            return TopScores(self.num_pages, self.batch).space()
        if self.action_form == "refresh":
            return RefreshSet(self.num_pages).space()
        if self.action_form == "shares":
            return BandwidthShares(self.num_pages).space()
        return CrawlRates(self.num_pages, self.highest).space()


def build_model(
    arguments: TrainArguments, traits: ModelTraits, env: VecEnv | None = None
) -> BaseAlgorithm:
    """Build an untrained model, with the traits as its attribute ``crawl_traits``.

    Args:
        arguments: arguments of the run; ``start`` is not used.
        traits: traits of the environment.
        env: the training environment, or None for a model that only acts.

    Raises:
        ValueError: an algorithm that does not support the action form.
    """
    check_action(arguments.algorithm, traits.action_form)
    kwargs: dict[str, Any] = {
        **network_arguments(
            arguments.algorithm,
            arguments.network,
            traits.features,
            traits.cycle,
            arguments.width,
            traits.batch if traits.action_form == "scores" else None,
        ),
        **schedule_arguments(
            arguments.algorithm,
            arguments.env_id,
            lanes=arguments.lanes,
            steps=arguments.steps,
            rollout=arguments.rollout,
            observation_bytes=4 * traits.num_pages * len(traits.features),
        ),
        "learning_rate": step_size(arguments.learning_rate)[0],
        "gamma": arguments.gamma,
        **arguments.model_args,
    }
    kind: Any = algorithm_class(arguments.algorithm)
    model: Any = kind(
        env=env, seed=arguments.seed, device="cpu", _init_setup_model=env is not None, **kwargs
    )
    if env is None:  # the rest of what Stable-Baselines3 takes from an environment
        model.observation_space = traits.observation_space()
        model.action_space = traits.action_space()
        model.n_envs = arguments.lanes
        if getattr(model, "target_entropy", None) == "auto":
            model.target_entropy = -float(traits.num_pages)
        model._setup_model()
    model.crawl_traits = traits
    built: BaseAlgorithm = model
    return built
