"""Train an agent and compare it with the analytic policies on the same events.

ALGORITHM is one of Stable-Baselines3's (ppo, a2c, dqn, sac, and with sb3-contrib maskableppo and
recurrentppo), "clone", which learns to do what an analytic policy does, or "es", which evolves an
index from reward alone. Hyperparameters are those that are recommended for the environment, then
those of --hyperparameters, then options. A clone can be trained further by reward: ppo --start
FOLDER, with the network of the clone. Before training, the analytic policies that can act in the
environment are played once, so that the progress bar can show the level to reach; they are kept in
OUT. Another form of action is an argument of the environment: --env-arg action=scores.

OUT gets the agent, its config.json and curve, standings.csv (its mean rewards beside the others'),
rows.csv (the same seed by seed), two pictures, and provenance.json.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED
from crawl_envs.evaluation import Row
from scripts.reporting import tables
from scripts.reporting.comparisons import OF_FRAGMENTS, is_oracle, policy_factories
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.training.jobs import Builder, Job
from scripts.training.options import (
    at_least,
    default_folder,
    given_only,
    named_values,
    one_line_errors,
    read_instance,
)
from scripts.training.pictures import draw_curve, draw_standings
from scripts.training.recipes import KINDS, Wanted, job_of
from scripts.training.rivals import (
    REWARD,
    SIMPLE,
    beside,
    best_first,
    lane_rows,
    rival_rows,
    that_differ,
)
from scripts.training.standings import (
    COLUMNS,
    ONE_HISTORY,
    TRACE,
    Standing,
    note_of,
    standings,
    table_of,
)

SHOWN = 4
"""The best analytic policies that are in the table beside the simple ones."""


def agent_rows(build: Builder, job: Job, episodes: int) -> list[Row]:
    """Play an agent on the seeds of the comparison: its best actions, then drawn ones.

    The seeds are not those that it was trained on, but a recorded trace is the same for all seeds:
    there, and with a pinned instance, this is how it does on what it was trained on.
    """
    rows = lane_rows(job.label, build, job.where, episodes)
    if job.draws:
        rows += lane_rows(f"{job.label}, drawn", build, job.where, episodes, deterministic=False)
    return rows


def compared(
    own: Sequence[Row], others: Sequence[Row], job: Job
) -> tuple[list[Standing], str | None]:
    """Return how the agent, the simple policies and the best others stand, and who is best.

    Oracles, which play where they are named, stand there too and are never the best.
    """
    ranked = that_differ(others, best_first(others))
    oracles = [row.policy for row in others if is_oracle(row.policy)]
    kept = {*SIMPLE, *ranked[:SHOWN], *oracles}
    rows = [*own, *(row for row in others if row.policy in kept)]
    best = ranked[0] if ranked else None
    return standings(rows, REWARD, job.label, best), best


def measured(where: TrainArguments) -> str:
    """Say what the mean reward per step of an environment is."""
    penalised = where.env_id == "CrawlHarmonic-v0"
    paid = where.env_args.get("reward") or ("penalty" if penalised else "freshness")
    if where.env_id == OF_FRAGMENTS and where.env_args.get("objective") != "holistic":
        paid = "fragments"
    unit = {
        "freshness": " (share of importance that is fresh)",
        "requests": " (fresh requests)",
        "penalty": " (minus the mean penalty)",
        "fragments": " (1 minus the mean divergence)",
    }
    return f"mean reward per step{unit.get(paid, '')}"


def report(job: Job, own: list[Row], others: list[Row], out: Path, episodes: int) -> None:
    """Write and draw how the agent stands, and print it."""
    found, best = compared(own, others, job)
    title = f"{job.label} in {job.where.env_id}, seed {job.where.seed}"
    write_csv(out / "rows.csv", Row._fields, [*own, *others])
    write_csv(out / "standings.csv", COLUMNS, found)
    axis, course = measured(job.where), job.course(out)
    if course is not None:
        levels = [item for item in found if item.policy in (best, *SIMPLE)]
        draw_curve(out / "curve.png", course, levels, agent=job.label, title=title, measured=axis)
    draw_standings(out / "standings.png", found, agent=job.label, title=title, measured=axis)
    console = tables.console()
    console.print(table_of(found, job.label, "mean reward", note_of(found, best)))
    if job.where.env_id == TRACE:
        console.print(ONE_HISTORY)
    note = f"{axis}; seeds from {FIRST_SEED} on -> {out}"
    console.print(note, soft_wrap=True)


def train_and_compare(job: Job, out: Path, episodes: int, resume: bool, specs: list[str]) -> None:
    """Find the level to reach, train, or go on training; then compare, draw and print.

    Raises:
        ValueError: arguments that do not fit together, fewer than one episode.
        OSError: ``out`` cannot be written.
    """
    at_least(1, episodes=episodes)
    policy_factories(specs)
    job.check(out, resume=resume)
    check_folder(out)
    begun = time.perf_counter()
    others = rival_rows(job.where, episodes, out, specs)
    build = job.run(out, resume=resume, beside=beside(others))
    with Console(stderr=True).status("comparing with the analytic policies"):
        own = agent_rows(build, job, episodes)
    report(job, own, others, out, episodes)
    seconds = time.perf_counter() - begun
    write_provenance(out / "provenance.json", "scripts.train", seconds, used=job.used())


app = typer.Typer(add_completion=False, rich_markup_mode=None)

Algorithm = Annotated[str, typer.Argument(help=f"Of {', '.join(KINDS)}.")]
EnvId = Annotated[str, typer.Argument(help="Id of the environment, CrawlNCIS-v0 say.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for all that is written.", show_default="runs/ALGORITHM-ENV"),
]
EnvArg = Annotated[
    list[str] | None,
    typer.Option(help="Argument of the environment, num_pages=20 say; any number of times."),
]
InstanceFile = Annotated[
    Path | None,
    typer.Option(help="JSON file with the arguments of the one Instance to train on."),
]
Hyperparameters = Annotated[
    Path | None,
    typer.Option(help="YAML file of one's own, in the format of RL-Zoo; scripts.tune writes one."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Any other hyperparameter: batch_size=512 of the algorithm's class, rollout=32, "
        "generations=500 or sigma=0.05 of es, rounds=4 of a clone; any number of times.",
    ),
]
RECOMMENDED = "as recommended"
Steps = Annotated[
    int | None,
    typer.Option(help="Steps in all lanes, rounded up to rollouts.", show_default=RECOMMENDED),
]
Lanes = Annotated[
    int | None, typer.Option(help="Lanes that step together.", show_default=RECOMMENDED)
]
Seed = Annotated[int | None, typer.Option(help="Seed of network and episodes.", show_default="0")]
Network = Annotated[
    str | None,
    typer.Option(
        help="pages (one scorer for all pages, of any number), mlp, or plain (unscaled).",
        show_default="pages",
    ),
]
Width = Annotated[int | None, typer.Option(help="Units of a hidden layer.", show_default="32")]
LearningRate = Annotated[
    float | None, typer.Option(help="Step size of the optimiser.", show_default=RECOMMENDED)
]
Gamma = Annotated[float | None, typer.Option(help="Discount per step.", show_default=RECOMMENDED)]
Start = Annotated[
    str | None, typer.Option(help="Folder of an agent of the same network to start from.")
]
Teacher = Annotated[
    str | None, typer.Option(help="Policy to clone; clone only.", show_default="GreedyNCIS")
]
Workers = Annotated[int | None, typer.Option(help="Processes; es only.", show_default="1")]
Episodes = Annotated[int, typer.Option(help="Seeds of the comparison.")]
Policies = Annotated[
    str | None,
    typer.Option(
        help="Policies to compare with, Name or Name:key=value, with commas, beside the simple "
        "ones; the best of them is the level to reach.",
        show_default="all that can act in the environment, but oracles",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in OUT.")]


@app.command(help=__doc__)
def main(
    algorithm: Algorithm,
    env_id: EnvId,
    out: Out = None,
    env_arg: EnvArg = None,
    instance: InstanceFile = None,
    hyperparameters: Hyperparameters = None,
    setting: Set = None,
    steps: Steps = None,
    lanes: Lanes = None,
    seed: Seed = None,
    network: Network = None,
    width: Width = None,
    learning_rate: LearningRate = None,
    gamma: Gamma = None,
    start: Start = None,
    teacher: Teacher = None,
    workers: Workers = None,
    episodes: Episodes = 32,
    policies: Policies = None,
    resume: Resume = False,
) -> None:
    """Train, compare, draw; say what is wrong in one line."""
    folder = out or default_folder(algorithm, env_id)
    options = {
        "steps": steps,
        "lanes": lanes,
        "seed": seed,
        "network": network,
        "width": width,
        "learning_rate": learning_rate,
        "gamma": gamma,
        "start": start,
        "teacher": teacher,
        "workers": workers,
    }
    stopped = f"stopped; go on with the same command and --resume: {folder}"
    with one_line_errors(folder, stopped):
        wanted = Wanted(
            algorithm,
            env_id,
            named_values(env_arg or []),
            read_instance(instance),
            given_only(options),
            named_values(setting or [], "set"),
            hyperparameters,
        )
        specs = [word.strip() for word in (policies or "").split(",") if word.strip()]
        train_and_compare(job_of(wanted), folder, episodes, resume, specs)


if __name__ == "__main__":
    app()
