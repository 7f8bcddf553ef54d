"""The arguments of ``scripts.train`` and ``scripts.tune``: a class per program, with its help.

A field, a type and a text are an option: see :func:`scripts.cli.commands.command_of`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from scripts.logs.options import ReadingOptions


@dataclass(frozen=True, kw_only=True)
class OutOptions:
    """Arguments of all programs."""

    POSITIONAL: ClassVar[tuple[str, ...]] = ()
    """Fields that are arguments without a name."""

    out: Path | None = None
    """Output folder [named after the arguments, in runs]."""
    fresh: bool = False
    """Discard what is there and start anew."""


@dataclass(frozen=True, kw_only=True)
class EnvOptions(OutOptions):
    """Arguments of the programs that train in an environment."""

    POSITIONAL: ClassVar = ("env_id",)

    env_id: str | None = None
    """Id of the environment, such as CrawlNCIS-v0 or module:MyCrawl-v0."""
    env_arg: list[str] | None = None
    """Argument of the environment, such as num_pages=20; can be repeated."""
    instance: Path | None = None
    """JSON file with the arguments of a fixed Instance to train on."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(EnvOptions):
    """Arguments of the runs in an environment that are compared with policies.

    Fields of subclasses are of the training itself.
    """

    resume: Path | None = None
    """Go on with the run in this folder; all arguments are those of the run."""
    hyperparameters: Path | None = None
    """YAML file in the format of RL-Zoo, such as scripts.tune writes."""
    set: list[str] | None = None
    """Another hyperparameter: batch_size=512 of the algorithm's class, rollout=32,
    rounds=4 of clone, crawls=100000 of index; can be repeated."""
    episodes: int | None = None
    """Number of seeds of the comparison [32]."""
    policies: str | None = None
    """Policies to compare with, besides the simple ones: comma-separated list of Name,
    Name:key=value, or folders or names of agents; or all policies. Oracles must be named [common
    policies that can act]."""
    seeds: int | None = None
    """Number of runs side by side, with seeds 1000 apart from --seed on."""
    seed: int | None = None
    """Seed of the training [0]."""
    learning_rate: str | None = None
    """Step size of the optimiser; but for index, lin_0.002 falls linearly to 0 [the recommended
    value]."""


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(RunOptions):
    """Arguments of the runs that train a model of Stable-Baselines3."""

    train_pages: int | None = None
    """Pages in training, at the same m / R; 0: those of the environment [20, if they can be]."""
    lanes: int | None = None
    """Number of parallel lanes [the recommended value]."""
    network: str | None = None
    """pages (one scorer shared by any number of pages), mlp, plain (unscaled mlp), or module:Class,
    a features extractor of one's own [pages]."""
    width: int | None = None
    """Units of a hidden layer [32]."""
    gamma: float | None = None
    """Discount per step [a time scale of m / R]."""


@dataclass(frozen=True, kw_only=True)
class LearnOptions(NetworkOptions):
    """Learn from reward by an algorithm of Stable-Baselines3.

    Hyperparameters are the recommended ones, by one rule for all environments, overridden by
    --hyperparameters, overridden by options. Where the number of pages can differ, an agent is
    trained on 20 at the same m / R, and ranked on those of the environment; --train-pages 0 trains
    on those too. Other action forms are an argument of the environment: --env-arg action=scores.
    """

    steps: int | None = None
    """Steps over all lanes, rounded up to rollouts [the recommended value]."""
    belief: bool = False
    """Show the agent the columns of a belief about each page, for hidden change rates."""
    start: str | None = None
    """Folder of an agent with the same network, such as a clone, to start from."""
    tensorboard: bool = False
    """Write logs for TensorBoard."""
    validation: int | None = None
    """Episodes on held-out seeds, played up to 20 times while learning; 0 for none [8]."""
    callback: list[str] | None = None
    """A callback of one's own, module:Class; can be repeated."""


@dataclass(frozen=True, kw_only=True)
class OwnOptions(LearnOptions):
    """Learn by an algorithm of one's own: a class of Stable-Baselines3's form, module:Class.

    Its defaults are those of the algorithm that it derives from; without one, those of ppo if it
    learns on policy, or else of sac, and --network mlp. Arguments of the class: --set NAME=VALUE.
    """

    POSITIONAL: ClassVar = ("algorithm", "env_id")

    algorithm: str
    """The class, module:Class."""


@dataclass(frozen=True, kw_only=True)
class CloneOptions(NetworkOptions):
    """Imitate an analytic policy.

    ppo --start FOLDER, with its network, trains the clone further by reward.
    """

    teacher: str | None = None
    """Policy to clone [GreedyNCIS]."""


@dataclass(frozen=True, kw_only=True)
class IndexOptions(RunOptions):
    """Learn an index from outcomes of crawls.

    They are made at random and find a change or none; learning takes seconds.
    """


@dataclass(frozen=True, kw_only=True)
class LogOptions(OutOptions, ReadingOptions):
    """Learn an index from the crawls of a log of one's own.

    Nothing is compared: python -m scripts.backtest LOG --agents OUT plays it. The options from
    --column to --merge are those of scripts.backtest.
    """

    POSITIONAL: ClassVar = ()

    log: list[Path]
    """Crawl log to learn from; can be repeated."""
    until: float | None = None
    """Last day of the log to learn from [its last crawl]."""
    seed: int = 0
    """Seed of the training."""


@dataclass(frozen=True, kw_only=True)
class GeneralistOptions(OutOptions):
    """Train one agent for all families of pages.

    It takes minutes, on 14 laws of CrawlNCIS-v0. An interrupted training starts anew.
    """

    seed: int = 0
    """Seed of the training."""


@dataclass(frozen=True, kw_only=True)
class TuneOptions(EnvOptions):
    """Arguments of ``scripts.tune``."""

    POSITIONAL: ClassVar = ("algorithm", "env_id")

    algorithm: str | None = None
    """An algorithm of Stable-Baselines3, or module:Class of one's own."""
    train_pages: int | None = None
    """Pages in training, at the same m / R; 0: those of the environment [20, if they can be]."""
    trials: int = 40
    """Total number of trials, with those of earlier runs."""
    steps: int = 200_000
    """Steps of a trial over all lanes."""
    episodes: int = 32
    """Number of validation seeds."""
    seed: int = 0
    """Seed of the search and of the training of each trial."""
    storage: Path | None = None
    """SQLite file of the trials [OUT/study.db]."""


def training_options(kind: type[RunOptions]) -> list[str]:
    """Return the names of the options of the training itself."""
    others = {entry.name for entry in fields(RunOptions)} - {"seed", "learning_rate"}
    others |= {*kind.POSITIONAL}
    return [entry.name for entry in fields(kind) if entry.name not in others]
