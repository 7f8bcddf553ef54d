"""The arguments of ``scripts.train`` and ``scripts.tune``: a class per program, with its help."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from scripts.cli.options import EnvArgs, Fresh
from scripts.live.options import ReadingOptions

RECOMMENDED = "the recommended value"
TrainPages = Annotated[
    int | None,
    Option(
        help="Pages in training, at the same m / R; 0: those of the environment.",
        show_default="20, if they can be",
    ),
]


@dataclass(frozen=True, kw_only=True)
class OutOptions:
    """Arguments of all programs."""

    out: Annotated[
        Path | None,
        Option(help="Output folder.", show_default="named after the arguments, in runs"),
    ] = None
    fresh: Fresh = False


@dataclass(frozen=True, kw_only=True)
class EnvOptions(OutOptions):
    """Arguments of the programs that train in an environment."""

    env_id: Annotated[
        str | None, Argument(help="Environment, such as CrawlNCIS-v0 or module:MyCrawl-v0.")
    ] = None
    env_arg: EnvArgs = None
    instance: Annotated[
        Path | None, Option(help="JSON file with the arguments of a fixed Instance to train on.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(EnvOptions):
    """Arguments of the runs in an environment that are compared with policies.

    Fields of subclasses are of the training itself.
    """

    resume: Annotated[
        Path | None, Option(help="Go on with the run in this folder, with its arguments.")
    ] = None
    hyperparameters: Annotated[
        Path | None, Option(help="YAML file in the format of RL-Zoo, such as scripts.tune writes.")
    ] = None
    set: Annotated[
        list[str] | None,
        Option(
            help="Another hyperparameter: batch_size=512 of the algorithm's class, rollout=32, "
            "rounds=4 of clone, crawls=100000 of index; can be repeated."
        ),
    ] = None
    episodes: Annotated[
        int | None, Option(help="Number of seeds of the comparison.", show_default="32")
    ] = None
    policies: Annotated[
        str | None,
        Option(
            help="Policies to compare with, besides the simple ones: comma-separated list of Name, "
            "Name:key=value, or folders or names of agents; or all. Oracles must be named.",
            show_default="common policies that can act",
        ),
    ] = None
    seeds: Annotated[
        int | None, Option(help="Number of runs side by side, with seeds 1000 apart from --seed.")
    ] = None
    seed: Annotated[int | None, Option(help="Seed of the training.", show_default="0")] = None
    learning_rate: Annotated[
        str | None,
        Option(
            help="Step size of the optimiser; lin_0.002 falls linearly to 0, except for index.",
            show_default=RECOMMENDED,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(RunOptions):
    """Arguments of the runs that train a model of Stable-Baselines3."""

    train_pages: TrainPages = None
    lanes: Annotated[
        int | None, Option(help="Number of parallel lanes.", show_default=RECOMMENDED)
    ] = None
    network: Annotated[
        str | None,
        Option(
            help="pages (one scorer for any number of pages), mlp, plain (unscaled mlp), or "
            "module:Class, a features extractor of your own.",
            show_default="pages",
        ),
    ] = None
    width: Annotated[int | None, Option(help="Units of a hidden layer.", show_default="32")] = None
    gamma: Annotated[
        float | None, Option(help="Discount per step.", show_default="a time scale of m / R")
    ] = None


@dataclass(frozen=True, kw_only=True)
class LearnOptions(NetworkOptions):
    """Learn from reward by an algorithm of Stable-Baselines3.

    Hyperparameters are the recommended ones, by one rule for all environments, overridden by
    --hyperparameters, overridden by options. Where the number of pages can differ, an agent is
    trained on 20 at the same m / R, and ranked on those of the environment; --train-pages 0 trains
    on those too. Other action forms are an argument of the environment: --env-arg action=scores.
    """

    steps: Annotated[
        int | None,
        Option(help="Steps over all lanes, rounded up to rollouts.", show_default=RECOMMENDED),
    ] = None
    belief: Annotated[
        bool, Option("--belief", help="Show a belief about each page, for hidden change rates.")
    ] = False
    start: Annotated[
        str | None, Option(help="Folder of an agent with the same network to start from: a clone.")
    ] = None
    tensorboard: Annotated[bool, Option("--tensorboard", help="Write TensorBoard's logs.")] = False
    validation: Annotated[
        int | None,
        Option(
            help="Episodes on held-out seeds, played up to 20 times while learning; 0 for none.",
            show_default="8",
        ),
    ] = None
    callback: Annotated[
        list[str] | None, Option(help="A callback of your own, module:Class; can be repeated.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class OwnOptions(LearnOptions):
    """Learn by an algorithm of your own: a class of Stable-Baselines3's form, module:Class.

    Its defaults are those of the algorithm that it derives from; without one, those of ppo if it
    learns on policy, or else of sac, and --network mlp. Arguments of the class: --set NAME=VALUE.
    """

    algorithm: Annotated[str, Argument(help="The class, module:Class.")]


@dataclass(frozen=True, kw_only=True)
class CloneOptions(NetworkOptions):
    """Imitate an analytic policy.

    ppo --start FOLDER, with its network, trains the clone further by reward.
    """

    teacher: Annotated[str | None, Option(help="Policy to imitate.", show_default="GreedyNCIS")] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class IndexOptions(RunOptions):
    """Learn an index from outcomes of crawls.

    They are made at random and find a change or none; learning takes seconds.
    """


@dataclass(frozen=True, kw_only=True)
class LogOptions(OutOptions, ReadingOptions):
    """Learn an index from the crawls of a log of your own.

    Nothing is compared: python -m scripts.backtest LOG --agents OUT plays it. The options from
    --column to --merge are those of scripts.backtest.
    """

    log: Annotated[list[Path], Option(help="Crawl log to learn from; can be repeated.")]
    until: Annotated[
        float | None, Option(help="Last day to learn from.", show_default="the last crawl")
    ] = None
    seed: Annotated[int, Option(help="Seed of the training.")] = 0


@dataclass(frozen=True, kw_only=True)
class GeneralistOptions(OutOptions):
    """Train one agent for all families of pages.

    It takes minutes, on 14 laws of CrawlNCIS-v0. An interrupted training starts anew.
    """

    seed: Annotated[int, Option(help="Seed of the training.")] = 0


@dataclass(frozen=True, kw_only=True)
class TuneOptions(EnvOptions):
    """Arguments of ``scripts.tune``."""

    algorithm: Annotated[
        str | None, Argument(help="An algorithm of Stable-Baselines3, or module:Class of your own.")
    ] = None
    train_pages: TrainPages = None
    trials: Annotated[int, Option(help="Total number of trials, with those of earlier runs.")] = 40
    steps: Annotated[int, Option(help="Steps of a trial over all lanes.")] = 200_000
    episodes: Annotated[int, Option(help="Number of validation seeds.")] = 32
    seed: Annotated[int, Option(help="Seed of the search and of each trial's training.")] = 0
    storage: Annotated[
        Path | None, Option(help="SQLite file of the trials.", show_default="OUT/study.db")
    ] = None


def training_options(kind: type[RunOptions]) -> list[str]:
    """Return the names of the options of the training itself."""
    others = {entry.name for entry in fields(RunOptions)} - {"seed", "learning_rate"}
    return [entry.name for entry in fields(kind) if entry.name not in {*others, "algorithm"}]
