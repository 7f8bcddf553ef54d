"""Runs that train an agent: reinforcement learning, cloning, an index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from stable_baselines3.common.callbacks import BaseCallback

from agents.catalog import check_vacant
from agents.cloning.train import CloneArguments, clone
from agents.index import load_index, training
from agents.index.arguments import IndexArguments
from agents.index.stored import INDEX
from agents.runs import CURVE, read_rows
from agents.sb3 import hyperparameters
from agents.sb3.arguments import TrainArguments
from agents.sb3.curve import CurveRow
from agents.sb3.lanes import make_lanes, pages_in_words
from agents.sb3.loading import MODEL, load, start_file
from agents.sb3.model_file import read_arguments
from agents.sb3.own_classes import own_class
from agents.sb3.training import train
from crawl_envs.types import Policy
from scripts.reporting.commands import at_least

VALIDATED = 8
"""Default number of episodes of a validation."""

Builder = Callable[[Any], Policy]
"""Makes the policy from its environment."""


class LearningCurve(NamedTuple):
    """A learning curve: the values reached, after how many units, and the unit."""

    reached: list[float]
    after: list[int]
    unit: str


@dataclass(frozen=True)
class Job(ABC):
    """A training run."""

    SAMPLES: ClassVar[bool] = False
    """Whether the agent can also sample its actions."""
    FILE: ClassVar[str] = MODEL
    """Its file."""

    arguments: Any

    @property
    @abstractmethod
    def label(self) -> str:
        """Name of the agent."""

    @property
    @abstractmethod
    def environment(self) -> TrainArguments:
        """The environment that the agent is meant for."""

    @abstractmethod
    def run(self, out: Path, beside: str = "", progress: bool = True) -> None:
        """Train, or go on with the run in a folder; ``beside`` is shown next to the reward."""

    @abstractmethod
    def load(self, out: Path) -> Builder:
        """Return a function of an environment that loads the agent of a folder."""

    def check(self, out: Path | None) -> None:
        """Raise ValueError for arguments that conflict with the environment or the folder."""
        if out is not None:
            check_vacant(out, but=self.FILE)
        make_lanes(self.environment, 1, training=False).close()

    def curve(self, out: Path) -> LearningCurve | None:
        """Return the learning curve of a folder; None without one in rewards."""
        return None

    def used(self) -> dict[str, Any]:
        """Return all settings, as plain values."""
        return asdict(self.arguments)

    def pages(self) -> str:
        """Say on how many pages the agent is trained and ranked."""
        return pages_in_words(self.environment)


@dataclass(frozen=True)
class ModelJob(Job):
    """A run that trains a model of Stable-Baselines3."""

    SAMPLES = True

    arguments: TrainArguments

    @property
    def environment(self) -> TrainArguments:
        """Arguments of environment, algorithm and network."""
        return self.arguments

    def check(self, out: Path | None) -> None:
        """Raise ValueError for arguments that conflict with the environment or the folder."""
        super().check(out)
        make_lanes(self.arguments, 1, training=True).close()
        if self.arguments.start is not None:
            read_arguments(start_file(self.arguments.start))
        if out is not None and (out / MODEL).exists():
            self.arguments.check_resumes(read_arguments(out / MODEL))

    def load(self, out: Path) -> Builder:
        """Return a function of an environment that loads the agent of a folder."""

        def build(env: Any) -> Policy:
            agent = load(out / MODEL, env)
            agent.model.set_random_seed(self.arguments.seed)
            return agent

        return build


@dataclass(frozen=True)
class Learning(ModelJob):
    """A training run of an algorithm of Stable-Baselines3; see :func:`agents.sb3.training.train`.

    ``callback`` has names ``module:Class``; the modules are imported already. ``until`` ends the
    run before ``arguments.steps``, None for not.
    """

    tensorboard: bool = False
    validation: int = VALIDATED
    callback: tuple[str, ...] = ()
    until: int | None = None

    @property
    def label(self) -> str:
        """Name of the algorithm."""
        return self.arguments.algorithm

    def check(self, out: Path | None) -> None:
        """Raise ValueError for arguments that conflict with the environment or the folder."""
        at_least(0, validation=self.validation)
        self.own_callbacks()
        super().check(out)

    def own_callbacks(self) -> list[BaseCallback]:
        """Return new callbacks of one's own."""
        return [own_class("callback", name, BaseCallback)() for name in self.callback]

    def run(self, out: Path, beside: str = "", progress: bool = True) -> None:
        """Train; see :func:`agents.sb3.training.train`."""
        train(
            self.arguments,
            out,
            resume=True,
            until=self.until,
            progress=progress,
            beside=beside,
            tensorboard=self.tensorboard,
            validation=self.validation,
            callbacks=self.own_callbacks(),
        )

    def curve(self, out: Path) -> LearningCurve:
        """Return the mean reward during training."""
        rows = read_rows(out / CURVE, CurveRow)
        unit = "steps, over all lanes; an episode starts with all pages fresh"
        return LearningCurve([row.mean_reward for row in rows], [row.steps for row in rows], unit)

    def used(self) -> dict[str, Any]:
        """Return the arguments of the run and the recommended hyperparameters."""
        recommended = hyperparameters.model_arguments(self.label, self.arguments.env_id)
        return {**super().used(), "recommended": recommended}


@dataclass(frozen=True)
class Cloning(ModelJob):
    """A run that clones a policy; it learns in rounds, recorded in rounds.csv."""

    clone_arguments: CloneArguments

    @property
    def label(self) -> str:
        """Name of the clone."""
        return f"clone of {self.clone_arguments.teacher}"

    def run(self, out: Path, beside: str = "", progress: bool = True) -> None:
        """Clone; see :func:`agents.cloning.train.clone`. ``beside`` is not used."""
        clone(self.arguments, self.clone_arguments, out, resume=True, progress=progress)

    def used(self) -> dict[str, Any]:
        """Return the arguments of the run and of cloning."""
        return {**super().used(), "clone": asdict(self.clone_arguments)}


@dataclass(frozen=True)
class IndexJob(Job):
    """A run that learns an index from outcomes of crawls; only the comparison needs torch."""

    FILE = INDEX

    arguments: IndexArguments
    label = "index"

    @property
    def environment(self) -> TrainArguments:
        """Environment of the training."""
        names = ("instance", "num_pages", "bandwidth", "horizon")
        return TrainArguments(
            env_args={name: getattr(self.arguments, name) for name in names},
            instance=self.arguments.pinned,
            seed=self.arguments.seed,
        )

    def load(self, out: Path) -> Builder:
        """Return a function of an environment that loads the index of a folder."""
        return lambda env: load_index(out, env)

    def curve(self, out: Path) -> LearningCurve:
        """Return the freshness in validation."""
        rows = read_rows(out / CURVE, training.CurveRow)
        unit = "rounds; validation on separate episodes"
        return LearningCurve([row.freshness for row in rows], [row.round for row in rows], unit)

    def pages(self) -> str:
        """Say on how many pages the index is trained and ranked."""
        explored = self.arguments.of_exploration()
        cycle = explored.num_pages / explored.bandwidth
        ranked = self.arguments.num_pages
        return f"trained on {explored.num_pages} pages at m / R = {cycle:g}; ranked on {ranked}"

    def check(self, out: Path | None) -> None:
        """Raise ValueError for a folder with an index of another run."""
        super().check(out)
        if out is not None and (out / INDEX).exists():
            training.check_finished(out, self.arguments)

    def run(self, out: Path, beside: str = "", progress: bool = True) -> None:
        """Learn; the progress bar shows the best analytic policy of the validation."""
        training.learn_index(self.arguments, out, resume=True, progress=progress)
