"""Loading of trained agents.

``model.zip`` (:mod:`agents.sb3.model_file`), ``scorer.npz`` (:mod:`agents.networks.page_scorer`)
and ``index.json`` (:mod:`agents.index.stored`) have plain values and arrays. Nothing is
unpickled, so loading an agent of unknown origin runs no code of its author.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm

from agents.catalog import AGENT_FILES
from agents.networks.extraction import extract_scorer, page_network
from agents.networks.page_scorer import ScoringAgent, check_columns, cycle_of
from agents.networks.scaled_columns import check_cycle
from agents.sb3.arguments import TrainArguments
from agents.sb3.building import ModelTraits
from agents.sb3.model_file import load_model
from crawl_envs.types import BoolArray

MODEL = AGENT_FILES[0]


class Agent:
    """A trained agent: a policy like those of :mod:`policies`, for unscaled observations.

    With the network ``pages`` it acts on any number of pages. If m or the time T = m / R differs
    from the training, it needs ``env`` or ``cycle``, and acts by the network alone
    (:class:`agents.networks.page_scorer.ScoringAgent`).

    Attributes:
        name: the algorithm's name.
        arguments: the arguments of its training run.
        model: Stable-Baselines3's model.
        features: names of the observation's columns.

    Args:
        model: Stable-Baselines3's model.
        arguments: the arguments of its run.
        features: names of the observation's columns.
        env: the environment to act in, single, vector or bridge.
        cycle: the time T of the environment, without ``env``.

    Raises:
        ValueError: both ``env`` and ``cycle``; an ``env`` that does not fit; a ``cycle`` that is
            not positive, or for a network other than ``pages``.
    """

    def __init__(
        self,
        model: BaseAlgorithm,
        arguments: TrainArguments,
        features: tuple[str, ...],
        env: Any = None,
        *,
        cycle: float | None = None,
    ) -> None:
        self.name, self.model, self.arguments = arguments.algorithm, model, arguments
        self.features = features
        self._masked = arguments.algorithm == "maskableppo"
        self._remembers = arguments.algorithm == "recurrentppo"
        self._any_size = arguments.network == "pages" and not self._remembers
        self._alive = features.index("alive") if "alive" in features else None
        self._env = env
        self._cycle = None if cycle is None else check_cycle(cycle)
        self._scoring: ScoringAgent | None = None
        if env is not None and cycle is not None:
            raise ValueError(f"cycle must be None where env is given, got {cycle!r}")
        if cycle is not None and not self._any_size:
            raise ValueError(f"cycle must be None but for the network 'pages', got {cycle!r}")
        if env is not None:
            self.check_fits(env)

    def _is_own_cycle(self) -> bool:
        """Return whether the time T is that of the training; True before a first reset."""
        if self._cycle is None and self._env is None:
            return True
        trained = page_network(self.model)[0].scaling.cycle
        if self._env is None:
            return self._cycle == trained
        core = getattr(self._env, "unwrapped", self._env)
        try:
            return all(cycle_of(core, lane) == trained for lane in range(core.num_lanes))
        except ResetNeeded:
            return True

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Return the action for an observation, and the next ``state`` of recurrentppo.

        Args:
            observation: (m, F) of one lane, or (N, m, F) of N, in the environment's own units.
            state: the state of recurrentppo, None at first; others pass it through.
            episode_start: mask of lanes at the start of an episode, (N,) bool, for recurrentppo.
            deterministic: return the best action; otherwise it is sampled (dqn: epsilon-greedy).

        Raises:
            ValueError: an observation of another shape; one of another number of pages without
                ``env`` and ``cycle``.
        """
        rows = np.asarray(observation)
        if self._any_size and not self._as_trained(rows):
            action, _ = self.scoring().predict(rows, deterministic=deterministic)
            return action, state
        extra: dict[str, Any] = {"deterministic": deterministic}
        if self._masked:
            extra["action_masks"] = self._masks(rows)
        if self._remembers:
            extra |= {"state": state, "episode_start": episode_start}
        action, renewed = self.model.predict(rows, **extra)
        action = np.asarray(action, self.model.action_space.dtype)
        return action, renewed if self._remembers else state

    def _as_trained(self, rows: NDArray[Any]) -> bool:
        """Return whether to pass an observation to the model, which also reports wrong shapes."""
        shape = self.model.observation_space.shape
        assert shape is not None
        if rows.ndim not in (2, 3) or rows.shape[-1] != shape[1]:
            return True
        return rows.shape[-2] == shape[0] and self._is_own_cycle()

    def scoring(self) -> ScoringAgent:
        """Return the same agent for any number of pages, without torch; ``save`` writes it.

        Raises:
            ValueError: the network is not ``pages``, or is recurrent.
        """
        if self._scoring is None:
            scorer = extract_scorer(self.model, self.name, self.features)
            seed = self.arguments.seed
            self._scoring = ScoringAgent(scorer, self._env, cycle=self._cycle, seed=seed)
        return self._scoring

    def _masks(self, observation: Any) -> BoolArray | None:
        """Return the mask of existing pages, the column ``alive``; None if all exist."""
        if self._alive is None:
            return None
        alive: BoolArray = np.asarray(observation)[..., self._alive] > 0.5
        return alive

    def check_fits(self, env: Any) -> None:
        """Raise ValueError unless the agent can act in ``env``, of any number of lanes."""
        core = getattr(env, "unwrapped", env)
        seen = getattr(core, "single_observation_space", core.observation_space)
        acts = getattr(core, "single_action_space", core.action_space)
        own = self.model.observation_space
        if seen.shape == own.shape and tuple(core.features) == self.features:
            form = _traits(self.model).action_form
            if acts != self.model.action_space or core.action_form != form:
                raise ValueError(
                    f"the agent was trained on actions {form!r} {self.model.action_space}, "
                    f"got {core.action_form!r} {acts}"
                )
            return
        if self._any_size:
            form = extract_scorer(self.model, self.name, self.features).traits.action_form
            check_columns(env, self.features, form)
            return
        raise ValueError(
            f"the agent was trained on {own.shape} observations of {', '.join(self.features)}, "
            f"got {seen.shape} of {', '.join(core.features)}; with network 'pages', without "
            "memory, it could act on other numbers of pages"
        )


def start_file(folder: str | Path) -> Path:
    """Return the file of the initial model of a run in a folder.

    Raises:
        ValueError: there is none.
    """
    path = Path(folder) / MODEL
    if not path.is_file():
        raise ValueError(
            f"start must be a folder with {MODEL}, as a training run or a clone writes it, "
            f"got {str(folder)!r}"
        )
    return path


def start_from(model: BaseAlgorithm, folder: str | Path) -> None:
    """Copy the weights of a trained model to a new one.

    Both must have the same network and columns. The algorithm may differ, among those with an actor
    and a critic. With the network ``pages`` the number of pages may differ; the time T = m / R is
    not among the weights, and is kept. The optimiser is reset.

    Args:
        model: the new model, of :func:`agents.sb3.building.build_model`.
        folder: folder of the trained model.

    Raises:
        ValueError: there is no such model, or its weights do not fit.
    """
    path = start_file(folder)
    other, _ = load_model(path)
    mine, theirs = _traits(model).features, _traits(other).features
    if mine != theirs:
        raise ValueError(
            f"start must be an agent that sees {', '.join(mine)}, {path} sees {', '.join(theirs)}"
        )
    try:
        model.policy.load_state_dict(other.policy.state_dict())
    except RuntimeError:
        raise ValueError(
            f"start must be an agent with the network of the new one, {path} has another"
        ) from None


def load(file: Path, env: Any = None, *, cycle: float | None = None) -> Agent:
    """Return the agent of a file ``model.zip``; see :func:`agents.load`."""
    model, arguments = load_model(file)
    return Agent(model, arguments, _traits(model).features, env, cycle=cycle)


def _traits(model: Any) -> ModelTraits:
    """Return the traits of the environment that a model was built for."""
    traits: ModelTraits = model.crawl_traits
    return traits
