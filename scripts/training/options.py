"""The arguments of ``scripts.train`` and ``scripts.tune``: a field, a type and a text each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from scripts.logs import options as log_options


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Arguments of both commands."""

    POSITIONAL: ClassVar = ("algorithm", "env_id")

    algorithm: str | None = None
    """Kind of training, see above."""
    env_id: str | None = None
    """Id of the environment, such as CrawlNCIS-v0 or module:MyCrawl-v0."""
    out: Path | None = None
    """Output folder [named after the arguments, in runs]."""
    fresh: bool = False
    """Discard what is there and start anew."""
    env_arg: list[str] | None = None
    """Argument of the environment, such as num_pages=20; can be repeated."""
    instance: Path | None = None
    """JSON file with the arguments of a fixed Instance to train on."""
    train_pages: int | None = None
    """Pages in training, at the same m / R; 0: those of the environment [20, if they can be]."""


@dataclass(frozen=True, kw_only=True)
class TrainOptions(RunOptions):
    """Arguments of ``scripts.train``."""

    LEARNING: ClassVar = (
        *("steps", "lanes", "seed", "network", "width", "learning_rate", "gamma", "start"),
        *("teacher", "tensorboard", "validation", "callback", "train_pages"),
    )
    """Options of the training itself."""
    OF_LOGS: ClassVar = (
        *("log", "until", "column", "format", "events", "pages", "time_unit", "clock_tolerance"),
        *("max_bad", "merge"),
    )
    """Options of learning from a log."""

    hyperparameters: Path | None = None
    """YAML file in the format of RL-Zoo, such as scripts.tune writes."""
    set: list[str] | None = None
    """Another hyperparameter: batch_size=512 of the algorithm's class, rollout=32,
    rounds=4 of clone, crawls=100000 of index; can be repeated."""
    steps: int | None = None
    """Steps over all lanes, rounded up to rollouts [the recommended value]."""
    lanes: int | None = None
    """Number of parallel lanes [the recommended value]."""
    seed: int | None = None
    """Seed of network and episodes [0]."""
    network: str | None = None
    """pages (one scorer shared by any number of pages), mlp, plain (unscaled mlp), or module:Class,
    a features extractor of one's own [pages]."""
    width: int | None = None
    """Units of a hidden layer [32]."""
    learning_rate: str | None = None
    """Step size of the optimiser; lin_0.002 falls linearly to 0 [the recommended value]."""
    gamma: float | None = None
    """Discount per step [a time scale of m / R]."""
    start: str | None = None
    """Folder of an agent with the same network, to start from."""
    teacher: str | None = None
    """Policy to clone; clone only [GreedyNCIS]."""
    episodes: int | None = None
    """Number of seeds of the comparison [32]."""
    policies: str | None = None
    """Policies to compare with, besides the simple ones: comma-separated list of Name or
    Name:key=value, or all. Oracles must be named [common policies that can act]."""
    seeds: int | None = None
    """Number of runs side by side, from --seed on."""
    tensorboard: bool = False
    """Write logs for TensorBoard."""
    validation: int | None = None
    """Episodes on held-out seeds, played up to 20 times while learning; 0 for none [8]."""
    callback: list[str] | None = None
    """A callback of one's own, module:Class; can be repeated."""
    resume: Path | None = None
    """Go on with the run in this folder; all arguments are those of the run."""
    log: list[Path] | None = None
    """Crawl log to learn an index from; can be repeated. index only."""
    until: float | None = None
    """Last day of the log to learn from [its last crawl]."""
    column: log_options.Column = None
    format: log_options.Format = None
    events: log_options.Events = None
    pages: log_options.Pages = None
    time_unit: log_options.TimeUnit = None
    clock_tolerance: log_options.ClockTolerance = log_options.CLOCK_TOLERANCE
    max_bad: log_options.MaxBad = log_options.MAX_BAD
    merge: log_options.Merge = None


@dataclass(frozen=True, kw_only=True)
class TuneOptions(RunOptions):
    """Arguments of ``scripts.tune``."""

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
