"""Options of ``scripts.train`` and ``scripts.tune``: a class per command, with its help."""

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
        help="Number of pages in training, with as many crawls per page; 0: as in the environment.",
        show_default="20, if the environment allows it",
    ),
]


@dataclass(frozen=True, kw_only=True)
class OutOptions:
    """Options of all commands that train or tune: the output folder, and a fresh start."""

    out: Annotated[
        Path | None,
        Option(help="Output folder.", show_default="named after the arguments, in runs"),
    ] = None
    fresh: Fresh = False


@dataclass(frozen=True, kw_only=True)
class EnvOptions(OutOptions):
    """Options of the commands that train in an environment."""

    env_id: Annotated[
        str | None, Argument(help="Environment, such as CrawlNCIS-v0 or module:MyCrawl-v0.")
    ] = None
    env_arg: EnvArgs = None
    instance: Annotated[
        Path | None, Option(help="JSON file with the arguments of a fixed Instance to train on.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(EnvOptions):
    """Options of the runs in an environment that are compared with policies.

    Fields of subclasses are options of the training itself.
    """

    resume: Annotated[
        Path | None, Option(help="Resume the run in this folder, with its arguments.")
    ] = None
    hyperparameters: Annotated[
        Path | None, Option(help="YAML file in the format of RL-Zoo, such as scripts.tune writes.")
    ] = None
    set: Annotated[
        list[str] | None,
        Option(
            help="Set a hyperparameter, such as batch_size=512 (an argument of the algorithm's "
            "class), rollout=32, rounds=4 (clone) or crawls=100000 (index); can be repeated."
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
        int | None, Option(help="Number of parallel runs, with seeds 1000 apart from --seed on.")
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
    """Options of the runs that train a model of Stable-Baselines3."""

    train_pages: TrainPages = None
    lanes: Annotated[
        int | None, Option(help="Number of parallel lanes.", show_default=RECOMMENDED)
    ] = None
    network: Annotated[
        str | None,
        Option(
            help="pages (one scorer for any number of pages), mlp, plain (unscaled mlp), or "
            "module:Class, your features extractor.",
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

    Default hyperparameters are overridden by --hyperparameters, and these by options. If the
    environment allows it, an agent is trained on 20 pages with as many crawls per page, and ranked
    on the pages of the environment; --train-pages 0 trains on these too. Action forms are set by
    --env-arg action=scores.
    """

    steps: Annotated[
        int | None,
        Option(help="Steps over all lanes, rounded up to rollouts.", show_default=RECOMMENDED),
    ] = None
    belief: Annotated[
        bool, Option("--belief", help="Show a belief about each page, for hidden change rates.")
    ] = False
    start: Annotated[
        str | None, Option(help="Folder of an agent to start from, such as a clone; same network.")
    ] = None
    tensorboard: Annotated[bool, Option("--tensorboard", help="Write TensorBoard's logs.")] = False
    validation: Annotated[
        int | None,
        Option(
            help="Episodes on held-out seeds, up to 20 times while learning; 0 for none.",
            show_default="8",
        ),
    ] = None
    callback: Annotated[
        list[str] | None, Option(help="Your callback, module:Class; can be repeated.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class OwnOptions(LearnOptions):
    """Learn by your algorithm: module:Class in the form of Stable-Baselines3.

    Its defaults are those of the algorithm that it derives from. Without one they are those of ppo
    (on-policy) or sac (off-policy), with --network mlp. --set NAME=VALUE sets its arguments.
    """

    algorithm: Annotated[str, Argument(help="The class, module:Class.")]


@dataclass(frozen=True, kw_only=True)
class CloneOptions(NetworkOptions):
    """Imitate an analytic policy.

    To train the clone by reward afterwards, use ppo --start FOLDER with the same network.
    """

    teacher: Annotated[str | None, Option(help="Policy to imitate.", show_default="GreedyNCIS")] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class IndexOptions(RunOptions):
    """Learn an index from outcomes of crawls.

    Pages are crawled at random, and each crawl finds a change or none. Learning takes seconds.
    """


@dataclass(frozen=True, kw_only=True)
class LogOptions(OutOptions, ReadingOptions):
    """Learn an index from the crawls of your log.

    To compare it with policies, use python -m scripts.backtest LOG --agents OUT. The options from
    --column to --merge are those of scripts.backtest.
    """

    log: Annotated[list[Path], Option(help="Crawl log to learn from; can be repeated.")]
    until: Annotated[
        float | None, Option(help="Last day to learn from.", show_default="the last crawl")
    ] = None
    seed: Annotated[int, Option(help="Seed of the training.")] = 0


@dataclass(frozen=True, kw_only=True)
class GeneralistOptions(OutOptions):
    """Train one agent for many laws of pages.

    It takes minutes. An interrupted training starts over.
    """

    seed: Annotated[int, Option(help="Seed of the training.")] = 0
    worlds: Annotated[
        str,
        Option(help="crawl-v2 (its laws), sites, fragments, or crawl-v1 (of generalist)."),
    ] = "crawl-v2"
    pages: Annotated[str, Option(help="Stream of page sets; any for the agent generalist.")] = (
        "train"
    )


@dataclass(frozen=True, kw_only=True)
class TuneOptions(EnvOptions):
    """Options of ``scripts.tune``."""

    algorithm: Annotated[
        str | None, Argument(help="An algorithm of Stable-Baselines3, or your module:Class.")
    ] = None
    train_pages: TrainPages = None
    trials: Annotated[int, Option(help="Total number of trials, including earlier runs.")] = 40
    steps: Annotated[int, Option(help="Steps of a trial over all lanes.")] = 200_000
    episodes: Annotated[int, Option(help="Number of validation seeds.")] = 32
    seed: Annotated[int, Option(help="Seed of the search and of each trial's training.")] = 0
    storage: Annotated[
        Path | None, Option(help="SQLite file of the trials.", show_default="OUT/study.db")
    ] = None


def training_options(kind: type[RunOptions]) -> list[str]:
    """Return the names of a kind's options that concern the training, not the comparison."""
    shared = {entry.name for entry in fields(RunOptions)} - {"seed", "learning_rate"}
    return [entry.name for entry in fields(kind) if entry.name not in {*shared, "algorithm"}]
