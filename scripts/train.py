"""Train an agent, set it beside the analytic policies, and draw its learning curve."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

import policies
from agents.arguments import TrainArguments
from agents.comparison import FIRST_SEED, mean_rewards
from agents.curve import CurveRow, read_curve
from agents.loading import Agent
from agents.training import CURVE, train
from crawl_envs.types import FloatArray

SIMPLE = ("RandomCrawl", "RoundRobin")
"""Policies that need to know nothing, the bar that any agent should clear."""
PICTURE = "curve.png"
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
"""Colours that the colour-blind can tell apart (Okabe and Ito)."""
LINES = ((ORANGE, ":"), (PURPLE, "-."), (GREEN, "--"))


class Score(NamedTuple):
    """How a policy did: its mean reward per step over the seeds, and the mean's standard error."""

    policy: str
    mean: float
    error: float


def score(name: str, means: FloatArray) -> Score:
    """Summarise the mean rewards of a policy on each seed; one seed has no standard error."""
    spread = means.std(ddof=1) / math.sqrt(len(means)) if len(means) > 1 else math.nan
    return Score(name, float(means.mean()), float(spread))


def compare(agent: Agent, arguments: TrainArguments, episodes: int) -> list[Score]:
    """Score the agent, the simple policies and the best of the others on the same seeds.

    The agent is scored twice, taking its best action and drawing one. Its seeds are not those that
    it was trained on, but a recorded trace is the same for all seeds: there, and with a pinned
    instance, this is the score on what it was trained on.
    """

    def rewards(build: Any, **kwargs: Any) -> FloatArray:
        return mean_rewards(build, arguments, episodes=episodes, **kwargs)

    scores = [
        score(agent.name, rewards(lambda env: agent)),
        score(f"{agent.name}, drawn", rewards(lambda env: agent, deterministic=False)),
    ]
    analytic = []
    for name in (*SIMPLE, *(name for name in policies.names() if name not in SIMPLE)):
        try:
            means = rewards(lambda env, name=name: policies.make(name, env))
        except ValueError:
            continue  # it needs what this environment does not reveal, or another action
        (scores if name in SIMPLE else analytic).append(score(name, means))
    if analytic:
        scores.append(max(analytic, key=lambda one: one.mean))
    return scores


def draw_curve(
    rows: list[CurveRow], scores: list[Score], arguments: TrainArguments, path: Path
) -> None:
    """Draw the learning curve over the levels of the policies that do not learn."""
    from matplotlib.figure import Figure  # slow to import

    paid = arguments.env_args.get("reward", "freshness")
    unit = {"freshness": "share of importance that is fresh", "requests": "fresh requests"}
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(
        [row.steps for row in rows],
        [row.mean_reward for row in rows],
        color=BLUE,
        marker="o" if len(rows) == 1 else None,
        label=f"{arguments.algorithm}, while learning",
    )
    others = [one for one in scores if not one.policy.startswith(arguments.algorithm)]
    for one, (color, style) in zip(others, LINES, strict=False):
        axes.axhline(one.mean, color=color, linestyle=style, label=one.policy)
    axes.set_xlabel("steps, over all lanes; an episode starts with all pages fresh")
    axes.set_ylabel(f"mean reward per step\n({unit.get(paid, paid)})")
    axes.set_title(f"{arguments.env_id}, seed {arguments.seed}")
    axes.legend()
    figure.savefig(path, dpi=150)


def parse_env_args(pairs: list[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs; values are JSON where they can be, and words otherwise.

    Raises:
        ValueError: a pair without ``=``, or without a name.
    """
    arguments = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not (name and separator):
            raise ValueError(f"env-arg must be name=value, got {pair!r}")
        try:
            arguments[name] = json.loads(text)
        except json.JSONDecodeError:
            arguments[name] = text
    return arguments


def read_instance(path: Path | None) -> dict[str, Any] | None:
    """Read the arguments of an instance from a JSON file.

    Raises:
        ValueError: the file cannot be read, or holds no JSON object.
    """
    if path is None:
        return None
    try:
        instance = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"instance file {path} cannot be read: {error}") from None
    if not isinstance(instance, dict):
        raise ValueError(f"instance file {path} must hold a JSON object, got {instance!r}")
    return instance


def table_of(scores: list[Score]) -> Table:
    """Return the table that is printed at the end."""
    table = Table()
    table.add_column("policy")
    table.add_column("mean reward", justify="right")
    table.add_column("std. error", justify="right")
    for one in scores:
        table.add_row(one.policy, f"{one.mean:.4f}", f"{one.error:.4f}")
    return table


def train_and_compare(arguments: TrainArguments, out: Path, episodes: int, resume: bool) -> None:
    """Train, or go on training; then compare, draw and print.

    Raises:
        ValueError: arguments that do not fit together, fewer than one episode.
        OSError: ``out`` cannot be written.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be an integer >= 1, got {episodes!r}")
    agent = train(arguments, out, resume=resume, progress=True)
    with Console(stderr=True).status("comparing with the analytic policies"):
        scores = compare(agent, arguments, episodes)
    draw_curve(read_curve(out / CURVE), scores, arguments, out / PICTURE)
    console = Console()
    console.print(table_of(scores))
    note = f"mean reward per step, {episodes} seeds from {FIRST_SEED} on -> {out}"
    console.print(note, soft_wrap=True, highlight=False)


@contextlib.contextmanager
def one_line_errors(out: Path) -> Iterator[None]:
    """End the command with one line on bad input, a failed write or an interrupt."""
    try:
        yield
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(f"error: cannot write {out}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"stopped; go on with the same command and --resume: {out}", err=True)
        raise typer.Exit(130) from None


app = typer.Typer(add_completion=False)
DEFAULT = TrainArguments()


@app.command(help="Train an agent, and compare it with the analytic policies on the same seeds.")
def main(
    algorithm: Annotated[str, typer.Argument(help="ppo, a2c, dqn or maskableppo.")],
    env_id: Annotated[str, typer.Argument(help="Id of the environment, CrawlNCIS-v0 say.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the model, its curve and its picture.",
            show_default="runs/ALGORITHM-ENV",
        ),
    ] = None,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(help="Argument of the environment, num_pages=20 say; any number of times."),
    ] = None,
    instance: Annotated[
        Path | None,
        typer.Option(help="JSON file with the arguments of the one Instance to train on."),
    ] = None,
    steps: Annotated[
        int, typer.Option(help="Steps in all lanes, rounded up to rollouts.")
    ] = DEFAULT.steps,
    lanes: Annotated[int, typer.Option(help="Lanes that step together.")] = DEFAULT.lanes,
    seed: Annotated[int, typer.Option(help="Seed of network and lanes.")] = DEFAULT.seed,
    network: Annotated[
        str, typer.Option(help="pages (one scorer for all pages), mlp, or plain (unscaled).")
    ] = DEFAULT.network,
    learning_rate: Annotated[
        float, typer.Option(help="Step size of the optimiser.")
    ] = DEFAULT.learning_rate,
    gamma: Annotated[float, typer.Option(help="Discount per step.")] = DEFAULT.gamma,
    episodes: Annotated[int, typer.Option(help="Seeds of the comparison.")] = 32,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in OUT.")] = False,
) -> None:
    """Train, compare, draw; say what is wrong in one line."""
    folder = out or Path("runs") / f"{algorithm}-{env_id}".replace(":", "-").replace("/", "-")
    with one_line_errors(folder):
        arguments = TrainArguments(
            algorithm=algorithm,
            env_id=env_id,
            env_args=parse_env_args(env_arg or []),
            instance=read_instance(instance),
            steps=steps,
            lanes=lanes,
            seed=seed,
            network=network,
            learning_rate=learning_rate,
            gamma=gamma,
        )
        train_and_compare(arguments, folder, episodes, resume)


if __name__ == "__main__":
    app()
