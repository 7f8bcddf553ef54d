"""Runs that end in an agent: learning from reward, cloning, evolving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from agents.cloning.train import CloneArguments, clone
from agents.evolution import load_index
from agents.evolution import train as evolution
from agents.evolution.arguments import EvolutionArguments
from agents.evolution.stored import INDEX
from agents.sb3 import hyperparameters
from agents.sb3.arguments import TrainArguments, make_lanes
from agents.sb3.curve import read_curve
from agents.sb3.loading import MODEL, start_file
from agents.sb3.model_file import read_arguments
from agents.sb3.training import CURVE, train
from crawl_envs.types import Policy
from scripts.training.options import at_least

Builder = Callable[[Any], Policy]


class Course(NamedTuple):
    """How a run went: what was reached, and after how many of what."""

    reached: list[float]
    after: list[int]
    unit: str


class Job(Protocol):
    """A run of a command."""

    @property
    def label(self) -> str:
        """What the agent is called."""

    @property
    def where(self) -> TrainArguments:
        """The environment that it is trained in."""

    @property
    def draws(self) -> bool:
        """Whether it can also draw its actions."""

    def check(self, out: Path, *, resume: bool) -> None:
        """Raise ValueError where training would, before any work is done."""

    def run(self, out: Path, *, resume: bool, beside: str) -> Builder:
        """Train, writing to a folder, and return what builds the agent for an environment.

        ``beside`` is shown beside the reward so far.
        """

    def course(self, out: Path) -> Course | None:
        """Return the learning curve in a folder; None where there is none in rewards."""

    def used(self) -> dict[str, Any]:
        """Return all settings, as plain values."""


@dataclass(frozen=True)
class Learning:
    """A run of an algorithm of Stable-Baselines3."""

    arguments: TrainArguments

    @property
    def label(self) -> str:
        """The algorithm's name."""
        return self.arguments.algorithm

    @property
    def where(self) -> TrainArguments:
        """The arguments of the run."""
        return self.arguments

    @property
    def draws(self) -> bool:
        """Whether it can also draw its actions."""
        return True

    def check(self, out: Path, *, resume: bool) -> None:
        """Raise ValueError for arguments that the environment or the folder objects to."""
        _check_run(self.arguments, out, resume)

    def run(self, out: Path, *, resume: bool, beside: str) -> Builder:
        """Train; see :func:`agents.sb3.training.train`."""
        agent = train(self.arguments, out, resume=resume, progress=True, beside=beside)
        agent.model.set_random_seed(self.arguments.seed)
        return lambda env: agent

    def course(self, out: Path) -> Course:
        """Return the mean reward while learning."""
        rows = read_curve(out / CURVE)
        unit = "steps, over all lanes; an episode starts with all pages fresh"
        return Course([row.mean_reward for row in rows], [row.steps for row in rows], unit)

    def used(self) -> dict[str, Any]:
        """Return the run's arguments, and what is recommended beside them."""
        told = hyperparameters.model_arguments(self.label, self.arguments.env_id)
        return {**asdict(self.arguments), "recommended": told}


@dataclass(frozen=True)
class Cloning:
    """A run that clones a policy."""

    arguments: TrainArguments
    told: CloneArguments

    @property
    def label(self) -> str:
        """Whose clone it is."""
        return f"clone of {self.told.teacher}"

    @property
    def where(self) -> TrainArguments:
        """The arguments of the environment, algorithm and network."""
        return self.arguments

    @property
    def draws(self) -> bool:
        """Whether it can also draw its actions."""
        return True

    def check(self, out: Path, *, resume: bool) -> None:
        """Raise ValueError for arguments that the environment or the folder objects to."""
        _check_run(self.arguments, out, resume)

    def run(self, out: Path, *, resume: bool, beside: str) -> Builder:
        """Clone; see :func:`agents.cloning.clone`. The teacher is what it is measured against."""
        agent = clone(self.arguments, self.told, out, resume=resume, progress=True)
        agent.model.set_random_seed(self.arguments.seed)
        return lambda env: agent

    def course(self, out: Path) -> None:
        """Return no curve: a clone learns in rounds, of which rounds.csv tells."""

    def used(self) -> dict[str, Any]:
        """Return the arguments of the run, and how it clones."""
        return {**asdict(self.arguments), "clone": asdict(self.told)}


@dataclass(frozen=True)
class Evolution:
    """A run that evolves an index; it needs no torch but what the comparison takes."""

    arguments: EvolutionArguments
    workers: int = 1

    @property
    def label(self) -> str:
        """The name of the kind."""
        return "es"

    @property
    def where(self) -> TrainArguments:
        """The environment, which the index is evolved for."""
        names = ("instance", "num_pages", "bandwidth", "horizon", "reveal")
        return TrainArguments(
            env_args={name: getattr(self.arguments, name) for name in names},
            instance=self.arguments.pinned,
            seed=self.arguments.seed,
        )

    @property
    def draws(self) -> bool:
        """An index always takes its best action."""
        return False

    def check(self, out: Path, *, resume: bool) -> None:
        """Raise ValueError for a folder that holds an index already, or too few workers."""
        at_least(1, workers=self.workers)
        if (out / INDEX).exists() and not resume:
            raise ValueError(f"{out} holds an index already; resume it, or choose another folder")
        make_lanes(self.where, 1, training=False).close()

    def run(self, out: Path, *, resume: bool, beside: str) -> Builder:
        """Evolve; its progress bar shows the best analytic policy of its own validation."""
        evolution.evolve(self.arguments, out, resume=resume, workers=self.workers, progress=True)
        return lambda env: load_index(out, env)

    def course(self, out: Path) -> Course:
        """Return the freshness in validations."""
        rows = evolution.read_curve(out / evolution.CURVE)
        unit = "generations; validations on episodes of their own"
        return Course([row.freshness for row in rows], [row.generation for row in rows], unit)

    def used(self) -> dict[str, Any]:
        """Return the arguments of the run."""
        return asdict(self.arguments)


def _check_run(arguments: TrainArguments, out: Path, resume: bool) -> None:
    """Raise ValueError where a run of Stable-Baselines3 would, but for what only building tells."""
    make_lanes(arguments, 1, training=False).close()
    if arguments.start is not None:
        read_arguments(start_file(arguments.start))
    if (out / MODEL).exists():
        if not resume:
            raise ValueError(f"{out} holds an agent already; resume it, or choose another folder")
        arguments.check_resumes(read_arguments(out / MODEL))
