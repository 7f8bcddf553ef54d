"""Runs that train an agent: reinforcement learning, cloning, evolution."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from stable_baselines3.common.callbacks import BaseCallback

from agents.cloning.train import CloneArguments, clone
from agents.evolution import load_index
from agents.evolution import train as evolution
from agents.evolution.arguments import EvolutionArguments
from agents.evolution.stored import INDEX
from agents.sb3 import hyperparameters
from agents.sb3.arguments import TrainArguments, make_lanes
from agents.sb3.curve import read_curve
from agents.sb3.loading import MODEL, Agent, load, start_file
from agents.sb3.model_file import read_arguments
from agents.sb3.training import CURVE, train
from crawl_envs.types import Policy
from scripts.reporting.options import at_least

Builder = Callable[[Any], Policy]


class LearningCurve(NamedTuple):
    """A learning curve: the values reached, after how many units, and the unit."""

    reached: list[float]
    after: list[int]
    unit: str


class Job(Protocol):
    """A training run."""

    @property
    def label(self) -> str:
        """Name of the agent."""

    @property
    def environment(self) -> TrainArguments:
        """Environment of the training."""

    @property
    def samples_actions(self) -> bool:
        """Whether it can also sample its actions."""

    def check(self, out: Path, *, resume: bool) -> None:
        """Check the arguments before training; raise ValueError."""

    def run(self, out: Path, *, resume: bool, beside: str, progress: bool = True) -> Builder:
        """Train, write to a folder, and return a function of an environment that loads the agent.

        ``beside`` is text shown next to the current reward.
        """

    def load(self, out: Path) -> Builder:
        """Return a function of an environment that loads the agent of a folder."""

    def curve(self, out: Path) -> LearningCurve | None:
        """Return the learning curve of a folder; None without one in rewards."""

    def used(self) -> dict[str, Any]:
        """Return all settings, as plain values."""


@dataclass(frozen=True)
class Learning:
    """A training run of an algorithm of Stable-Baselines3; see :func:`agents.sb3.training.train`.

    ``callbacks`` are named ``module:Class``.
    """

    arguments: TrainArguments
    tensorboard: bool = False
    validation: int = 0
    callbacks: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Name of the algorithm."""
        return self.arguments.algorithm

    @property
    def environment(self) -> TrainArguments:
        """Arguments of the run."""
        return self.arguments

    @property
    def samples_actions(self) -> bool:
        """Whether it can also sample its actions."""
        return True

    def check(self, out: Path, *, resume: bool) -> None:
        """Raise ValueError for arguments that conflict with the environment or the folder."""
        at_least(0, validation=self.validation)
        for name in self.callbacks:
            own_callback(name)
        _check_run(self.arguments, out, resume)

    def run(self, out: Path, *, resume: bool, beside: str, progress: bool = True) -> Builder:
        """Train; see :func:`agents.sb3.training.train`."""
        agent = train(
            self.arguments,
            out,
            resume=resume,
            progress=progress,
            beside=beside,
            tensorboard=self.tensorboard,
            validation=self.validation,
            callbacks=[own_callback(name) for name in self.callbacks],
        )
        agent.model.set_random_seed(self.arguments.seed)
        return lambda env: agent

    def load(self, out: Path) -> Builder:
        """Return the agent of a folder, for any environment."""
        agent = load(out / MODEL)
        if isinstance(agent, Agent):
            agent.model.set_random_seed(self.arguments.seed)
        return lambda env: agent

    def curve(self, out: Path) -> LearningCurve:
        """Return the mean reward during training."""
        rows = read_curve(out / CURVE)
        unit = "steps, over all lanes; an episode starts with all pages fresh"
        return LearningCurve([row.mean_reward for row in rows], [row.steps for row in rows], unit)

    def used(self) -> dict[str, Any]:
        """Return the arguments of the run and the recommended hyperparameters."""
        recommended = hyperparameters.model_arguments(self.label, self.arguments.env_id)
        return {**asdict(self.arguments), "recommended": recommended}


@dataclass(frozen=True)
class Cloning:
    """A training run that clones a policy."""

    arguments: TrainArguments
    clone_arguments: CloneArguments

    @property
    def label(self) -> str:
        """Name of the clone."""
        return f"clone of {self.clone_arguments.teacher}"

    @property
    def environment(self) -> TrainArguments:
        """Arguments of environment, algorithm and network."""
        return self.arguments

    @property
    def samples_actions(self) -> bool:
        """Whether it can also sample its actions."""
        return True

    def check(self, out: Path, *, resume: bool) -> None:
        """Raise ValueError for arguments that conflict with the environment or the folder."""
        _check_run(self.arguments, out, resume)

    def run(self, out: Path, *, resume: bool, beside: str, progress: bool = True) -> Builder:
        """Clone; see :func:`agents.cloning.train.clone`. ``beside`` is not used."""
        agent = clone(self.arguments, self.clone_arguments, out, resume=resume, progress=progress)
        agent.model.set_random_seed(self.arguments.seed)
        return lambda env: agent

    def load(self, out: Path) -> Builder:
        """Return the agent of a folder, for any environment."""
        agent = load(out / MODEL)
        if isinstance(agent, Agent):
            agent.model.set_random_seed(self.arguments.seed)
        return lambda env: agent

    def curve(self, out: Path) -> None:
        """Return None: a clone learns in rounds, recorded in rounds.csv."""

    def used(self) -> dict[str, Any]:
        """Return the arguments of the run and of cloning."""
        return {**asdict(self.arguments), "clone": asdict(self.clone_arguments)}


@dataclass(frozen=True)
class Evolution:
    """A training run that evolves an index; only the comparison needs torch."""

    arguments: EvolutionArguments
    workers: int = 1

    @property
    def label(self) -> str:
        """Name of the kind of run."""
        return "es"

    @property
    def environment(self) -> TrainArguments:
        """Environment of the evolution."""
        names = ("instance", "num_pages", "bandwidth", "horizon", "reveal")
        return TrainArguments(
            env_args={name: getattr(self.arguments, name) for name in names},
            instance=self.arguments.pinned,
            seed=self.arguments.seed,
        )

    @property
    def samples_actions(self) -> bool:
        """False: an index always takes its best action."""
        return False

    def check(self, out: Path, *, resume: bool) -> None:
        """Raise ValueError for a folder that has an index already, or too few workers."""
        at_least(1, workers=self.workers)
        if (out / INDEX).exists() and not resume:
            raise ValueError(f"{out} holds an index already; resume it, or choose another folder")
        make_lanes(self.environment, 1, training=False).close()

    def run(self, out: Path, *, resume: bool, beside: str, progress: bool = True) -> Builder:
        """Evolve; the progress bar shows the best analytic policy of the validation."""
        evolution.evolve(
            self.arguments, out, resume=resume, workers=self.workers, progress=progress
        )
        return self.load(out)

    def load(self, out: Path) -> Builder:
        """Return a function of an environment that loads the index of a folder."""
        return lambda env: load_index(out, env)

    def curve(self, out: Path) -> LearningCurve:
        """Return the freshness in validation."""
        rows = evolution.read_curve(out / evolution.CURVE)
        unit = "generations; validation on separate episodes"
        return LearningCurve(
            [row.freshness for row in rows], [row.generation for row in rows], unit
        )

    def used(self) -> dict[str, Any]:
        """Return the arguments of the run."""
        return asdict(self.arguments)


def own_callback(name: str) -> BaseCallback:
    """Return a callback of one's own, made without arguments.

    Args:
        name: ``module:Class``.

    Raises:
        ValueError: no such class, or no callback of Stable-Baselines3.
    """
    module, _, attribute = name.partition(":")
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"callback {name!r} cannot be imported: {error}") from None
    if not (isinstance(kind, type) and issubclass(kind, BaseCallback)):
        raise ValueError(f"callback must be module:Class of a BaseCallback, got {name!r}")
    return kind()


def _check_run(arguments: TrainArguments, out: Path, resume: bool) -> None:
    """Raise ValueError if a run of Stable-Baselines3 would, before the model is built."""
    make_lanes(arguments, 1, training=False).close()
    if arguments.start is not None:
        read_arguments(start_file(arguments.start))
    if (out / MODEL).exists():
        if not resume:
            raise ValueError(f"{out} holds an agent already; resume it, or choose another folder")
        arguments.check_resumes(read_arguments(out / MODEL))
