"""Trained agents, as they are saved and loaded.

``model.zip`` is Stable-Baselines3's file with one more member, the arguments of the run, by which
it is recognised. Loading it unpickles Python objects, as Stable-Baselines3 does: load only files
whose origin you trust.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm

from agents import SHIPPED, names
from agents.algorithms import algorithm_class
from agents.arguments import TrainArguments
from crawl_envs.types import BoolArray

MODEL = "model.zip"
ARGUMENTS_MEMBER = "crawl_envs_agent.json"


class Agent:
    """A trained agent: a policy like those of :mod:`policies`, for observations as they come.

    Attributes:
        name: the algorithm's name.
        arguments: the arguments of the run that trained it.
        model: Stable-Baselines3's model.
    """

    def __init__(self, model: BaseAlgorithm, arguments: TrainArguments, features: tuple[str, ...]):
        self.name, self.model, self.arguments = arguments.algorithm, model, arguments
        self.features = features
        self._masked = arguments.algorithm == "maskableppo"
        self._alive = features.index("alive") if "alive" in features else None

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Return the action for an observation, and ``state`` unchanged.

        Args:
            observation: (m, F) of one lane, or (N, m, F) of N, in the environment's own units.
            state: passed through.
            episode_start: not used.
            deterministic: take the best action; otherwise one is drawn (dqn: now and then).

        Raises:
            ValueError: an observation of another shape.
        """
        extra: dict[str, Any] = {"deterministic": deterministic}
        if self._masked:
            extra["action_masks"] = self._masks(observation)
        action, _ = self.model.predict(np.asarray(observation), **extra)
        return np.asarray(action, self.model.action_space.dtype), state

    def _masks(self, observation: Any) -> BoolArray | None:
        """Return which pages exist, by the column ``alive``; None where all do."""
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
        if seen.shape != own.shape or tuple(core.features) != self.features:
            raise ValueError(
                f"the agent was trained on {own.shape} observations of {', '.join(self.features)}, "
                f"got {seen.shape} of {', '.join(core.features)}"
            )
        if acts != self.model.action_space:
            raise ValueError(
                f"the agent was trained on actions {self.model.action_space}, got {acts}"
            )


def save_model(model: BaseAlgorithm, arguments: TrainArguments, path: Path) -> None:
    """Replace a model file at once.

    Raises:
        OSError: it cannot be written.
    """
    partial = path.with_name(f".{path.stem}.partial.zip")
    model.save(partial)
    with zipfile.ZipFile(partial, "a") as archive:
        archive.writestr(ARGUMENTS_MEMBER, arguments.to_json())
    os.replace(partial, path)


def read_arguments(path: Path) -> TrainArguments:
    """Return the arguments in a model file, after checking that the file is whole.

    Raises:
        ValueError: there is no such file, or it is damaged or foreign.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if ARGUMENTS_MEMBER not in archive.namelist():
                raise ValueError(f"{path} is not an agent of this suite")
            damaged = archive.testzip()
            if damaged is not None:
                raise ValueError(f"{path} is damaged in {damaged}")
            text = archive.read(ARGUMENTS_MEMBER).decode()
    except FileNotFoundError:
        raise ValueError(f"there is no agent at {path}") from None
    except (zipfile.BadZipFile, OSError) as error:
        raise ValueError(f"{path} is not an agent of this suite: {error}") from None
    return TrainArguments.from_json(text)


def load_model(path: Path, env: Any = None) -> tuple[BaseAlgorithm, TrainArguments]:
    """Return a saved model, to go on training in ``env`` if given, and the arguments of its run.

    Raises:
        ValueError: there is no such file, it is damaged or foreign, or does not fit ``env``.
    """
    arguments = read_arguments(path)
    kind = algorithm_class(arguments.algorithm)
    try:
        return kind.load(path, env=env, device="cpu"), arguments
    except Exception as error:  # unpickling a foreign file can raise anything
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path} cannot be loaded: {first}") from None


def load(folder_or_name: str | Path, env: Any = None) -> Agent:
    """Return a trained agent.

    Args:
        folder_or_name: the output folder of a training run, or one of :func:`agents.names`.
        env: if given, checked to be one that the agent can act in: single, vector or bridge.

    Raises:
        ValueError: there is no such agent, its file is damaged or foreign, or it does not fit
            ``env``.
    """
    name = str(folder_or_name)
    folder = SHIPPED / name if name in names() else Path(folder_or_name)
    if not (folder / MODEL).exists():
        known = f"the names {', '.join(names())}" if names() else "there are no shipped names yet"
        raise ValueError(f"there is no {MODEL} in {folder} ({known})")
    model, arguments = load_model(folder / MODEL)
    agent = Agent(model, arguments, tuple(model.crawl_features))  # type: ignore[attr-defined]  # ours
    if env is not None:
        agent.check_fits(env)
    return agent
