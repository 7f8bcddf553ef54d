"""Define the kinds of training runs: reinforcement learning, cloning, learning an index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from stable_baselines3.common.callbacks import BaseCallback

import agents
from agents.catalog import ALGORITHMS, check_vacant
from agents.cloning.train import CloneArguments, clone
from agents.index import training
from agents.index.arguments import IndexArguments
from agents.index.stored import INDEX as INDEX_FILE
from agents.runs import CURVE, read_rows
from agents.sb3.arguments import TrainArguments
from agents.sb3.curve import CurveRow
from agents.sb3.hyperparameters import FALLBACK, WORDS, model_arguments
from agents.sb3.lanes import make_lanes, recommended
from agents.sb3.loading import MODEL, Agent, start_file
from agents.sb3.model_file import read_arguments
from agents.sb3.own_classes import own_class
from agents.sb3.training import train
from crawl_envs.types import Policy
from crawl_envs.types.arguments import one_of, whole
from scripts.cli.options import MAX_COUNT, PREFIX
from scripts.training.options import (
    CloneOptions,
    IndexOptions,
    LearnOptions,
    OwnOptions,
    RunOptions,
    training_options,
)
from scripts.training.requests import Request, read_request

CLONE, INDEX, OWN_CLASS = "clone", "index", "module:Class"
GENERALIST, OF_LOG = "generalist", f"{INDEX} --log"
"""Names of the two kinds of training that have no environment."""
KINDS: Mapping[str, type[RunOptions]] = {
    **dict.fromkeys(ALGORITHMS, LearnOptions),
    CLONE: CloneOptions,
    INDEX: IndexOptions,
}
"""Kinds of runs and their options: the algorithms of Stable-Baselines3, cloning, and learning an
index from outcomes of crawls."""


def options_of(kind: str) -> type[RunOptions]:
    """Return the class of options of a kind: one of KINDS or ``module:Class``; else ValueError."""
    return OwnOptions if ":" in kind else KINDS[one_of("algorithm", kind, KINDS, OWN_CLASS)]


def with_program(words: list[str]) -> list[str]:
    """Return the words of the command line with the name of the command to run in front.

    Raises:
        ValueError: the words name no algorithm and no run to resume.
    """
    algorithms = (*KINDS, GENERALIST)
    if not words:
        raise ValueError(
            f"scripts.train must be followed by an algorithm ({', '.join(algorithms)} or "
            f"{OWN_CLASS}), or by --resume FOLDER; see --help"
        )
    first, *rest = words
    parts = [word.split("=", 1) if word.startswith("--") else [word] for word in words]
    split = [*(part for word in parts for part in word), ""]
    if first.startswith("--") and "--resume" in split:
        folder = split[split.index("--resume") + 1]
        first, rest = read_request(Path(folder)).kind, words
        if ":" in first:
            raise ValueError(f"the class of the algorithm must be named: {first} --resume {folder}")
    if ":" in first:
        return [OWN_CLASS, first, *rest]
    one_of("algorithm", first, algorithms, OWN_CLASS)
    return [OF_LOG if first == INDEX and "--log" in split else first, *rest]


OF_CLONING = {"learning_rate": 3e-3, "lanes": 64, "gamma": 0.95, "train_pages": 0}
"""Recommended arguments of a run that clones a policy."""
SIZES = ("instance", "num_pages", "bandwidth", "horizon")
"""Arguments of the environment that the training of an index supports."""
TRAIN_FIELDS = {entry.name for entry in fields(TrainArguments)}
OF_CLONES = [entry.name for entry in fields(CloneArguments)]
OF_COMMAND = ("algorithm", "env_id", "env_args", "instance", "model_args")
"""Arguments of the command, which hyperparameters must not set."""
VALIDATION_EPISODES = 8
"""Default number of episodes of a validation."""


LearningCurve = tuple[str, list[tuple[int, float]]]
"""A learning curve: name of the unit of training, and points (units of training, value)."""


@dataclass(frozen=True)
class Job:
    """A run of an algorithm of Stable-Baselines3; subclasses are other kinds of runs.

    Attributes:
        label: name of the agent.
        arguments: arguments of the run.
        extra: additional arguments of the training function.
        noted: additional entries of the provenance.
    """

    SAMPLES: ClassVar[bool] = True
    """Whether the agent can also sample its actions."""
    FILE: ClassVar[str] = MODEL
    """Name of the file that holds the agent."""

    label: str
    arguments: Any
    extra: Mapping[str, Any]
    noted: Mapping[str, Any]

    @property
    def environment(self) -> TrainArguments:
        """Arguments of the environment in which the agent is compared with policies."""
        arguments: TrainArguments = self.arguments
        return arguments

    def run(self, out: Path, progress: bool = True, **more: Any) -> None:
        """Train in the folder ``out``, or resume its run; ``more`` goes to ``train``."""
        train(self.arguments, out, resume=True, progress=progress, **self.extra, **more)

    def curve(self, out: Path) -> LearningCurve:
        """Return the learning curve in a folder; it has no points if no rewards were measured."""
        rows = read_rows(out / CURVE, CurveRow)
        unit = "steps, over all lanes; an episode starts with all pages fresh"
        return unit, [(row.steps, row.mean_reward) for row in rows]

    def check(self, out: Path | None) -> None:
        """Raise ValueError if the arguments conflict with the environment or the folder ``out``."""
        for learns in (False, True):
            make_lanes(self.environment, 1, training=learns).close()
        if self.environment.start is not None:
            read_arguments(start_file(self.environment.start))
        if out is not None:
            check_vacant(out, but=self.FILE)
            if (out / self.FILE).exists():
                self.check_resumes(out)

    def check_resumes(self, out: Path) -> None:
        """Raise ValueError unless the agent in a folder was trained with this run's arguments."""
        self.arguments.check_resumes(read_arguments(out / MODEL))

    def load(self, out: Path) -> Callable[[Any], Policy]:
        """Return a function that takes an environment and loads the agent in a folder for it."""

        def build(env: Any) -> Policy:
            agent: Policy = agents.load(out, env)
            if isinstance(agent, Agent):
                agent.model.set_random_seed(self.arguments.seed)
            return agent

        return build


class Cloning(Job):
    """A run that clones a policy in rounds, recorded in rounds.csv."""

    def run(self, out: Path, progress: bool = True, **more: Any) -> None:
        """Clone the policy into a folder; see :func:`agents.cloning.train.clone`."""
        clone(self.arguments, out=out, resume=True, progress=progress, **self.extra)

    def curve(self, out: Path) -> LearningCurve:
        """Return a learning curve without points: cloning has no rewards."""
        return "", []


class IndexJob(Job):
    """A run that learns an index from outcomes of crawls; only the comparison needs torch."""

    SAMPLES, FILE = False, INDEX_FILE

    @property
    def environment(self) -> TrainArguments:
        """Arguments of the environment of the comparison; exploration has ``train_pages`` pages."""
        arguments: IndexArguments = self.arguments
        pages = arguments.of_exploration().num_pages
        return TrainArguments(
            env_args={name: getattr(arguments, name) for name in SIZES},
            instance=arguments.pinned,
            train_pages=0 if pages == arguments.num_pages else pages,
            seed=arguments.seed,
        )

    def run(self, out: Path, progress: bool = True, **more: Any) -> None:
        """Learn the index in a folder; a bar shows the best analytic policy in validation."""
        training.learn_index(self.arguments, out, progress=progress)

    def curve(self, out: Path) -> LearningCurve:
        """Return the learning curve in a folder: validated freshness after each round."""
        rows = read_rows(out / CURVE, training.CurveRow)
        unit = "rounds; validation on separate episodes"
        return unit, [(row.round, row.freshness) for row in rows]

    def check_resumes(self, out: Path) -> None:
        """Raise ValueError unless the index in a folder was learned with this run's arguments."""
        training.check_finished(out, self.arguments)


def job_of(request: Request) -> Job:
    """Return the run that a request asks for.

    Modules of user classes must be imported already.

    Raises:
        ValueError: an unknown algorithm, an option that does not apply to it, or an invalid value.
    """
    kind, options = request.kind, request.options
    for name in options:
        one_of(f"option of {kind}", name, training_options(options_of(kind)))
    if kind == INDEX:
        return IndexJob(kind, _of_index(request), {}, {})
    if kind == CLONE:
        named = {**request.settings, **options}
        cloning = CloneArguments(**{name: named[name] for name in OF_CLONES if name in named})
        rest = {name: value for name, value in request.settings.items() if name not in OF_CLONES}
        arguments = _of_model("ppo", replace(request, settings=rest), OF_CLONING)
        noted = {"clone": asdict(cloning)}
        return Cloning(
            f"clone of {cloning.teacher}", arguments, {"clone_arguments": cloning}, noted
        )
    arguments = _of_model(kind, request, {})
    extra = {
        "tensorboard": options.get("tensorboard", False),
        "validation": whole("validation", options.get("validation", VALIDATION_EPISODES), 0),
        "callbacks": [
            own_class("callback", name, BaseCallback)() for name in options.get("callback", ())
        ],
    }
    label = kind.rpartition(":")[-1]
    return Job(label, arguments, extra, {"recommended": model_arguments(kind)})


def _of_index(request: Request) -> IndexArguments:
    """Return the arguments of a requested run that learns an index."""
    if request.env_id.removeprefix(PREFIX) != FALLBACK:
        raise ValueError(f"env_id must be {FALLBACK} for {INDEX}, got {request.env_id!r}")
    for name in request.env_args:
        one_of(f"env-arg of {INDEX}", name, SIZES)
    values = {**request.hyperparameters, **request.settings, **request.options, **request.env_args}
    for name in values:
        one_of(f"settings of {INDEX}", name, [entry.name for entry in fields(IndexArguments)])
    return IndexArguments(**{"pinned": request.instance, **values})


def _of_model(algorithm: str, request: Request, base: Mapping[str, Any]) -> TrainArguments:
    """Return the arguments of a requested run of Stable-Baselines3; ``base`` has defaults."""
    named = [*base.items(), *request.hyperparameters.items(), *request.settings.items()]
    values = {WORDS.get(name, name): value for name, value in named}
    for name in OF_COMMAND:
        if name in values:
            raise ValueError(f"hyperparameters must not name {name!r}, an argument of the command")
    rest = {name: value for name, value in values.items() if name not in TRAIN_FIELDS}
    train_values = {**values, **request.options}
    train_values = {name: train_values[name] for name in train_values if name in TRAIN_FIELDS}
    train_values |= {"env_args": request.env_args, "instance": request.instance, "model_args": rest}
    pages = whole("train_pages", train_values.get("train_pages", 0), 0, MAX_COUNT)
    if pages:
        fewer = {**train_values, "train_pages": 0}
        few = replace(recommended(algorithm, request.env_id, **fewer), train_pages=pages)
        try:
            make_lanes(few, 1, training=True).close()
        except ValueError as error:
            raise ValueError(
                f"train_pages must be 0, or a number of pages that {request.env_id} accepts with "
                f"the other arguments, got {pages}"
            ) from error
    return recommended(algorithm, request.env_id, **train_values)
