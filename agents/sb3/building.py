"""Build models from the arguments of a run and the traits of its environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Space
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from agents.sb3 import hyperparameters
from agents.sb3.algorithms import (
    OFF_POLICY,
    algorithm_class,
    check_action,
    network_arguments,
    parameters_of,
    rules_of,
)
from agents.sb3.arguments import TrainArguments, step_size
from agents.sb3.scaled_rewards import RewardScale
from crawl_envs.spaces.actions import (
    ACTION_FORMS,
    SLOT_FORMS,
    BandwidthShares,
    CrawlRates,
    action_form,
)
from crawl_envs.types.arguments import one_of, real, whole

MAX_NUMBERS = 2**26
"""Maximal number of values in an observation of a model."""


@dataclass(frozen=True, kw_only=True)
class ModelTraits:
    """The traits of an environment that a model depends on; all are JSON values.

    Raises:
        ValueError: a value of another type or outside its range.
    """

    features: tuple[str, ...]
    """Names of the observation's columns, F of them."""
    num_pages: int
    """Number of pages m, >= 1; m · F is at most MAX_NUMBERS."""
    action_form: str
    """One of ACTION_FORMS."""
    cycle: float
    """Time to crawl every page once, m / R, > 0."""
    batch: int = 1
    """Pages per action of the form ``scores``, in [1, m]."""
    highest: float = 1.0
    """Maximal rate of the form ``rates``, >= 1."""

    def __post_init__(self) -> None:
        names = self.features
        valid = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        if not valid or not names:
            raise ValueError(f"features must be one or more names of columns, got {names!r:.80}")
        object.__setattr__(self, "features", tuple(names))
        whole("num_pages", self.num_pages, 1, MAX_NUMBERS // len(names))
        one_of("action_form", self.action_form, ACTION_FORMS)
        real("cycle", self.cycle, above=0.0)
        real("highest", self.highest, least=1.0)
        self.action_space()

    @classmethod
    def read(cls, env: Any, cycle: float) -> ModelTraits:
        """Return the traits of an environment, single, vector or bridge, with a ``cycle``.

        Raises:
            ValueError: it is no crawling environment, or its observations are not tables.
        """
        core = getattr(env, "unwrapped", env)
        if not hasattr(core, "features"):
            raise ValueError(f"env must be a crawling environment, got {env!r}")
        space = getattr(core, "single_observation_space", core.observation_space)
        acts = getattr(core, "single_action_space", core.action_space)
        if len(space.shape or ()) != 2:
            raise ValueError(f"env must have observation 'table' for an agent, got {space}")
        form = core.action_form
        return cls(
            features=core.features,
            num_pages=space.shape[0],
            action_form=form,
            cycle=float(cycle),
            batch=core.batch if form == "scores" else 1,
            highest=float(acts.high.max()) if form == "rates" else 1.0,
        )

    def observation_space(self) -> Box:
        """Return the space of observations, (m, F) float32, without bounds."""
        return Box(-np.inf, np.inf, (self.num_pages, len(self.features)), np.float32)

    def action_space(self) -> Space[Any]:
        """Return the space of actions."""
        if self.action_form in SLOT_FORMS:
            return action_form(self.action_form, self.num_pages, self.batch).space()
        if self.action_form == "shares":
            return BandwidthShares(self.num_pages).space()
        return CrawlRates(self.num_pages, self.highest).space()


REPLAY_BYTES = 256 * 2**20
"""Maximal memory of a replay buffer, in bytes."""


def schedule_arguments(arguments: TrainArguments, observation_bytes: int) -> dict[str, Any]:
    """Return the arguments of an algorithm's class for rollouts, batches and updates.

    They are those of :mod:`agents.sb3.hyperparameters`, adapted to the size of the run: a rollout
    has as many minibatches as the recommended one, and no more steps than the run. Arguments that a
    user's class does not take are omitted.
    """
    names = parameters_of(algorithm_class(arguments.algorithm))
    settings = _schedule(arguments, observation_bytes)
    return {name: value for name, value in settings.items() if name in names}


def _schedule(arguments: TrainArguments, observation_bytes: int) -> dict[str, Any]:
    """Return the arguments of :func:`schedule_arguments`, also those that a class may lack."""
    base = rules_of(arguments.algorithm)
    recommended = hyperparameters.defaults(base)
    settings = hyperparameters.model_arguments(base)
    lanes, steps = arguments.lanes, arguments.steps
    if base in OFF_POLICY:
        size = min(steps, settings["buffer_size"], REPLAY_BYTES // (2 * observation_bytes))
        settings["buffer_size"] = max(size, lanes)
        settings["learning_starts"] = min(settings["learning_starts"], steps // 10)
        updates = settings["gradient_steps"]
        settings["gradient_steps"] = min(max(lanes * updates // recommended["lanes"], 1), updates)
        if "target_update_interval" in settings:
            settings["target_update_interval"] = max(settings["target_update_interval"], 10 * lanes)
        return settings
    length = max(min(arguments.rollout, steps // lanes), 2)
    settings["n_steps"] = min(length, recommended["rollout"]) if base == "a2c" else length
    if "batch_size" in settings:
        size = length * lanes
        minibatches = round(recommended["lanes"] * recommended["rollout"] / settings["batch_size"])
        settings["batch_size"] = size // minibatches if size % minibatches == 0 else size
    return settings


def build_model(
    arguments: TrainArguments, traits: ModelTraits, env: VecEnv | None = None
) -> BaseAlgorithm:
    """Build an untrained model.

    Its attribute ``crawl_traits`` has the traits, and ``reward_scale`` the scale of its rewards,
    from ``env`` if it has one.

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
        **schedule_arguments(arguments, 4 * traits.num_pages * len(traits.features)),
        "learning_rate": step_size(arguments.learning_rate)[0],
        "gamma": arguments.gamma,
        **arguments.model_args,
    }
    kind: Any = algorithm_class(arguments.algorithm)
    model: Any = kind(
        env=env, seed=arguments.seed, device="cpu", _init_setup_model=env is not None, **kwargs
    )
    if env is None:  # set what Stable-Baselines3 reads from an environment
        model.observation_space = traits.observation_space()
        model.action_space = traits.action_space()
        model.n_envs = arguments.lanes
        if getattr(model, "target_entropy", None) == "auto":
            model.target_entropy = -float(traits.num_pages)
        model._setup_model()
    model.crawl_traits = traits
    model.reward_scale = getattr(env, "scale", None) or RewardScale()
    built: BaseAlgorithm = model
    return built
