"""Train an agent and compare it with the analytic policies on the same events.

With --seeds, runs that differ in their seed are trained side by side, each in a folder of its own
(seed-0, seed-1, ...); the curve and the reward of the agent are means over them, with intervals.

ALGORITHM is an algorithm of Stable-Baselines3 (ppo, a2c, dqn, sac; maskableppo and recurrentppo
with sb3-contrib), "clone" (imitate an analytic policy), "es" (evolve a correction of BeliefNCIS),
or "index" (learn an index from whether crawls at random found a change, in seconds).
Hyperparameters are the recommended ones of the environment, overridden by --hyperparameters,
overridden by options. A clone can be trained further by reward: ppo --start FOLDER, with the
network of the clone. Common analytic policies that can act in the environment, or those of
--policies, are evaluated once and saved in OUT: before the training of a single run, whose progress
bar shows the best of them. Other action forms are an argument of the environment: --env-arg
action=scores.

With --log, "index" learns from the crawls of a log of one's own instead of an environment, and
nothing is compared: python -m scripts.backtest LOG --agents OUT plays it. The options from --column
to --merge are those of scripts.backtest, and of the others only --seed and --fresh apply.

"generalist" takes no environment: it trains one agent for all families of pages, on all laws of
CrawlNCIS-v0, in minutes; of the options only --out, --seed and --fresh apply.

OUT receives the agent, run.json (what was asked for), config.json and the learning curve,
ranking.csv (mean rewards of all policies), rows.csv (rewards per seed), two pictures, and
provenance.json; also, of algorithms of Stable-Baselines3, validation.csv (rewards on held-out
seeds while learning) and their logs with --tensorboard. The same command goes on with an
interrupted run, and so does --resume OUT.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console

from agents.runs import read_rows
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED
from agents.sb3.validation import VALIDATION, ValidationRow
from crawl_envs import FAMILIES
from crawl_envs.evaluation import Row, mean_and_half_width
from scripts.logs import options as log_options
from scripts.logs.learning import learn_from_log
from scripts.reporting import tables
from scripts.reporting.commands import Fresh, at_least, command, one_line_errors, words_of
from scripts.reporting.commands import default_folder as folder_named
from scripts.reporting.comparisons import OF_FRAGMENTS, is_oracle, policy_factories
from scripts.reporting.options import given_only, named_values, read_instance, refuse
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.training.baselines import (
    REWARD,
    SIMPLE,
    baseline_rows,
    best_baseline,
    best_first,
    lane_rows,
    without_duplicates,
)
from scripts.training.generalist import KIND as GENERALIST
from scripts.training.generalist import train_generalist
from scripts.training.jobs import VALIDATED, Builder, Job
from scripts.training.pictures import draw_curve, draw_ranking
from scripts.training.ranking import (
    COLUMNS,
    ONE_HISTORY,
    TRACE,
    RankedPolicy,
    note_of,
    rank_policies,
    table_of,
)
from scripts.training.recipes import INDEX, KINDS, job_of, read_hyperparameters
from scripts.training.requests import (
    RUN,
    Request,
    check_same,
    discard,
    import_own,
    own_names,
    read_request,
    save_request,
    updated,
)
from scripts.training.seeds import curve_of, folder_of, requests_of, train_seeds

SHOWN = 4
"""Number of analytic policies in the table, besides the simple ones."""


def agent_rows(build: Builder, job: Job, episodes: int) -> list[Row]:
    """Evaluate an agent on the seeds of the comparison: its best actions, then sampled ones.

    The seeds differ from those of the training. A recorded trace, however, is the same for all
    seeds: there, and with a pinned instance, this is performance on the training data.
    """
    rows = lane_rows(job.label, build, job.environment, episodes)
    if job.samples_actions:
        rows += lane_rows(
            f"{job.label}, drawn", build, job.environment, episodes, deterministic=False
        )
    return rows


def compared(
    own: Sequence[Row], others: Sequence[Row], job: Job
) -> tuple[list[RankedPolicy], str | None]:
    """Return the ranking of the agent, the simple and the best policies, and the best of them.

    Oracles, evaluated only if named, are ranked but never the best.
    """
    ranked = without_duplicates(others, best_first(others))
    oracles = [row.policy for row in others if is_oracle(row.policy)]
    kept = {*SIMPLE, *ranked[:SHOWN], *oracles}
    rows = [*own, *(row for row in others if row.policy in kept)]
    best = ranked[0] if ranked else None
    return rank_policies(rows, REWARD, job.label, best), best


def measured(arguments: TrainArguments) -> str:
    """Describe the mean reward per step of an environment."""
    if arguments.env_id not in FAMILIES:
        return "mean reward per step"
    penalised = arguments.env_id == "CrawlHarmonic-v0"
    reward = arguments.env_args.get("reward") or ("penalty" if penalised else "freshness")
    if arguments.env_id == OF_FRAGMENTS and arguments.env_args.get("objective") != "holistic":
        reward = "fragments"
    unit = {
        "freshness": " (importance-weighted freshness)",
        "requests": " (fresh requests)",
        "penalty": " (minus the mean penalty)",
        "fragments": " (1 minus the mean divergence)",
    }
    return f"mean reward per step{unit.get(reward, '')}"


Curves = tuple[pd.DataFrame, str]
"""Learning curves, as :func:`draw_curve` takes them, and the unit of their horizontal axis."""


def curves_of(job: Job, out: Path) -> Curves | None:
    """Return the learning curve of a run and its validations; None without a curve in rewards."""
    curve = job.curve(out)
    if curve is None:
        return None
    learning, held_out = f"{job.label}, while learning", "best actions, held-out seeds"
    rows = [
        *((x, y, 0.0, learning) for x, y in zip(curve.after, curve.reached, strict=True)),
        *((*row, held_out) for row in read_rows(out / VALIDATION, ValidationRow)),
    ]
    return pd.DataFrame(rows, columns=["x", "y", "half", "label"]), curve.unit


def report(
    job: Job, own: list[Row], others: list[Row], out: Path, curves: Curves | None, title: str
) -> None:
    """Write, draw and print the ranking."""
    ranking, best = compared(own, others, job)
    write_csv(out / "rows.csv", Row._fields, [*own, *others])
    write_csv(out / "ranking.csv", COLUMNS, ranking)
    axis = measured(job.environment)
    if curves is not None:
        levels = [item for item in ranking if item.policy in (best, *SIMPLE)]
        data, unit = curves
        draw_curve(out / "curve.png", data, levels, unit=unit, title=title, measured=axis)
    draw_ranking(out / "ranking.png", ranking, agent=job.label, title=title, measured=axis)
    console = tables.console()
    console.print(table_of(ranking, job.label, "mean reward", note_of(ranking, best)))
    if job.environment.env_id == TRACE:
        console.print(ONE_HISTORY)
    note = f"{axis}; seeds from {FIRST_SEED} on -> {out}"
    console.print(note, soft_wrap=True)


def train_and_compare(request: Request, out: Path, fresh: bool) -> None:
    """Evaluate the baselines, train or go on, then compare, draw and print.

    Raises:
        ValueError: incompatible arguments, fewer than one episode, or another run in ``out``.
        OSError: ``out`` cannot be written.
    """
    job, episodes, specs = job_of(request), request.episodes, request.policies
    at_least(1, episodes=episodes)
    policy_factories(specs)
    begin(out, request, {out: job}, fresh)
    started = time.perf_counter()
    others = baseline_rows(job.environment, episodes, out, specs)
    build = job.run(out, beside=best_baseline(others))
    with Console(stderr=True).status("comparing with the analytic policies"):
        own = agent_rows(build, job, episodes)
    title = f"{job.label} in {job.environment.env_id}, seed {job.environment.seed}"
    report(job, own, others, out, curves_of(job, out), title)
    seconds = time.perf_counter() - started
    write_provenance(out / "provenance.json", "scripts.train", seconds, used=job.used())


def begin(out: Path, request: Request, jobs: Mapping[Path, Job], fresh: bool) -> None:
    """Check the runs in their folders, and save the request; with ``fresh``, discard old ones."""
    if not fresh:
        check_same(out, request)
    for folder, job in jobs.items():
        job.check(None if fresh else folder)
    check_folder(out)
    if fresh:
        discard(out)
    save_request(out, request)


def train_and_average(request: Request, out: Path, fresh: bool) -> None:
    """Train runs of several seeds side by side, then compare, draw and print their mean.

    Raises:
        ValueError: as for :func:`train_and_compare`.
    """
    episodes, specs = request.episodes, request.policies
    at_least(1, episodes=episodes, seeds=request.seeds)
    policy_factories(specs)
    requests = requests_of(request)
    jobs = [job_of(each) for each in requests]
    folders = [folder_of(out, each) for each in requests]
    begin(out, request, dict(zip(folders, jobs, strict=True)), fresh)
    started = time.perf_counter()
    train_seeds(requests, out)
    others = baseline_rows(jobs[0].environment, episodes, out, specs)
    rows = []
    with Console(stderr=True).status("comparing with the analytic policies"):
        for each, job in zip(requests, jobs, strict=True):
            build = job.load(folder_of(out, each))
            rows += [
                row._replace(setting=f"seed {each.options['seed']}")
                for row in lane_rows(job.label, build, job.environment, episodes)
            ]
    data, unit = curve_of(requests, out)
    write_csv(out / "curve.csv", list(data.columns), data.itertuples(index=False))
    names = {"after": "x", "mean": "y"}
    curves = data.rename(columns=names).assign(label=f"{jobs[0].label}, mean of {len(jobs)} runs")
    title = f"{jobs[0].label} in {jobs[0].environment.env_id}, {len(jobs)} runs; band: 95% interval"
    report(jobs[0], mean_rows(rows), others, out, (curves, unit) if unit else None, title)
    by_run = pd.DataFrame(rows).groupby("setting", sort=False)["value"].mean()
    mean, half = mean_and_half_width(by_run.tolist())
    said = ", ".join(f"{name}: {value:.4f}" for name, value in by_run.items())
    tables.console().print(f"over runs {mean:.4f} ± {half:.4f}  ({said})", soft_wrap=True)
    write_csv(out / "runs.csv", ("run", "mean_reward"), by_run.items())
    seconds = time.perf_counter() - started
    used = {**jobs[0].used(), "seeds": [each.options["seed"] for each in requests]}
    write_provenance(out / "provenance.json", "scripts.train", seconds, used=used)


def mean_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the means over runs, episode by episode."""
    data = pd.DataFrame(rows, columns=list(Row._fields))
    keys = ["id", "policy", "seed", "metric"]
    mean = data.groupby(keys, sort=False)["value"].mean().reset_index()
    return [Row(**each, setting="") for each in mean.to_dict("records")]


Algorithm = Annotated[str | None, typer.Argument(help=f"One of {', '.join(KINDS)}.")]
EnvId = Annotated[str | None, typer.Argument(help="Id, such as CrawlNCIS-v0 or module:MyCrawl-v0.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Output folder.", show_default="runs/ALGORITHM-ENV and --env-arg, --seed"),
]
EnvArg = Annotated[
    list[str] | None,
    typer.Option(help="Argument of the environment, such as num_pages=20; can be repeated."),
]
InstanceFile = Annotated[
    Path | None, typer.Option(help="JSON file with the arguments of a fixed Instance to train on.")
]
Hyperparameters = Annotated[
    Path | None,
    typer.Option(help="YAML file in the format of RL-Zoo, such as scripts.tune writes."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Another hyperparameter: batch_size=512 of the algorithm's class, rollout=32, "
        "generations=50 or sigma=0.05 of es, rounds=4 of clone; can be repeated.",
    ),
]
RECOMMENDED = "the recommended value"
Steps = Annotated[
    int | None,
    typer.Option(help="Steps over all lanes, rounded up to rollouts.", show_default=RECOMMENDED),
]
Lanes = Annotated[
    int | None, typer.Option(help="Number of parallel lanes.", show_default=RECOMMENDED)
]
Seed = Annotated[int | None, typer.Option(help="Seed of network and episodes.", show_default="0")]
Network = Annotated[
    str | None,
    typer.Option(
        help="pages (one scorer shared by any number of pages), mlp, plain (unscaled mlp), or "
        "module:Class, a features extractor of one's own.",
        show_default="pages",
    ),
]
Width = Annotated[int | None, typer.Option(help="Units of a hidden layer.", show_default="32")]
LearningRate = Annotated[
    float | None, typer.Option(help="Step size of the optimiser.", show_default=RECOMMENDED)
]
Gamma = Annotated[float | None, typer.Option(help="Discount per step.", show_default=RECOMMENDED)]
Start = Annotated[
    str | None, typer.Option(help="Folder of an agent with the same network, to start from.")
]
Teacher = Annotated[
    str | None, typer.Option(help="Policy to clone; clone only.", show_default="GreedyNCIS")
]
Workers = Annotated[int | None, typer.Option(help="Processes; es only.", show_default="1")]
Episodes = Annotated[
    int | None, typer.Option(help="Number of seeds of the comparison.", show_default="32")
]
Policies = Annotated[
    str | None,
    typer.Option(
        help="Policies to compare with, besides the simple ones: comma-separated list of Name or "
        "Name:key=value, or all. Oracles must be named.",
        show_default="common policies that can act in the environment",
    ),
]
Seeds = Annotated[int | None, typer.Option(help="Number of runs side by side, from --seed on.")]
Tensorboard = Annotated[
    bool | None, typer.Option("--tensorboard", help="Write logs for TensorBoard.")
]
Validation = Annotated[
    int | None,
    typer.Option(
        help="Episodes on held-out seeds, played up to 20 times while learning; 0 for none.",
        show_default=str(VALIDATED),
    ),
]
Callbacks = Annotated[
    list[str] | None,
    typer.Option("--callback", help="A callback of one's own, module:Class; can be repeated."),
]
Logs = Annotated[
    list[Path] | None,
    typer.Option("--log", help="Crawl log to learn an index from; can be repeated. index only."),
]
Until = Annotated[
    float | None,
    typer.Option(help="Last day of the log to learn from.", show_default="its last crawl"),
]
Resume = Annotated[
    Path | None,
    typer.Option(help="Go on with the run in this folder; all arguments are those of the run."),
]


def main(
    algorithm: Algorithm = None,
    env_id: EnvId = None,
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
    episodes: Episodes = None,
    policies: Policies = None,
    seeds: Seeds = None,
    tensorboard: Tensorboard = None,
    validation: Validation = None,
    callback: Callbacks = None,
    resume: Resume = None,
    fresh: Fresh = False,
    log: Logs = None,
    until: Until = None,
    column: log_options.Column = None,
    format: log_options.Format = None,
    events: log_options.Events = None,
    pages: log_options.Pages = None,
    time_unit: log_options.TimeUnit = None,
    clock_tolerance: log_options.ClockTolerance = log_options.CLOCK_TOLERANCE,
    max_bad: log_options.MaxBad = log_options.MAX_BAD,
    merge: log_options.Merge = None,
) -> None:
    """Train, compare and draw."""
    reading = log_options.Reading(
        column, format, events, time_unit, clock_tolerance, max_bad, merge
    )
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
        "tensorboard": tensorboard,
        "validation": validation,
        "callbacks": tuple(callback) if callback else None,
    }
    if log:
        if algorithm != INDEX or env_id is not None:
            raise ValueError(f"--log must follow {INDEX} alone, got {algorithm} {env_id or ''}")
        others = {"env_arg": env_arg or None, "instance": instance, "set": setting or None}
        others |= {"hyperparameters": hyperparameters, "seeds": seeds, "episodes": episodes}
        others |= {"policies": policies, "resume": resume, **options, "seed": None}
        refuse(others, "to --log")
        learn_from(log, reading, pages, until, seed or 0, out, fresh)
        return
    plain = log_options.CLOCK_TOLERANCE, log_options.MAX_BAD
    of_logs = {"column": column or None, "format": format, "events": events, "pages": pages}
    of_logs |= {"time_unit": time_unit, "merge": merge or None, "until": until}
    of_logs["clock_tolerance"] = None if clock_tolerance == plain[0] else clock_tolerance
    of_logs["max_bad"] = None if max_bad == plain[1] else max_bad
    refuse(of_logs, "without --log")
    if algorithm == GENERALIST:
        others = {"env_id": env_id, "env_arg": env_arg or None, "instance": instance}
        others |= {"set": setting or None, "hyperparameters": hyperparameters, "seeds": seeds}
        others |= {"episodes": episodes, "policies": policies, "resume": resume}
        refuse({**others, **options, "seed": None}, f"to {GENERALIST}")
        train_generalist(out, seed or 0, fresh)
        return
    request = base_request(algorithm, env_id, resume)
    request = updated(
        request,
        env_args=named_values(env_arg or []),
        instance=read_instance(instance),
        options=given_only(options),
        settings=named_values(setting or [], "set"),
        hyperparameters=read_hyperparameters(hyperparameters, request.env_id),
        seeds=seeds,
        episodes=episodes,
        policies=tuple(words_of("--policies", policies)) or None,
    )
    import_own(own_names(given_only(options)))
    folder = resume or out or default_folder(request)
    with one_line_errors(f"stopped; go on with --resume {folder}"):
        (train_and_compare if request.seeds is None else train_and_average)(request, folder, fresh)


def learn_from(
    paths: list[Path],
    reading: log_options.Reading,
    pages: Path | None,
    until: float | None,
    seed: int,
    out: Path | None,
    fresh: bool,
) -> None:
    """Learn an index from a log, and print the log-loss of its held-out crawls."""
    folder, started = out or folder_named(INDEX, paths[0].name), time.perf_counter()
    if (folder / RUN).exists():
        raise ValueError(f"{folder} holds a run in an environment; name another --out")
    log = log_options.read_log(paths, reading)
    _, group = log_options.weights_and_groups(log, pages, reading.merge)
    last = math.inf if until is None else until
    loss, crawls = learn_from_log(log, group, folder, until=last, seed=seed, fresh=fresh)
    seconds = time.perf_counter() - started
    used = {"log": [str(path) for path in paths], "until": until, "seed": seed}
    write_provenance(folder / "provenance.json", "scripts.train", seconds, used=used)
    tables.console().print(
        f"log-loss of changed / not changed of the last {crawls} crawls: {loss:.4f} -> {folder}",
        soft_wrap=True,
    )


def base_request(algorithm: str | None, env_id: str | None, resume: Path | None) -> Request:
    """Return the request of the run to resume, or a new one.

    Raises:
        ValueError: neither or both are named, or there is no run to resume.
    """
    if resume is not None:
        if algorithm is not None or env_id is not None:
            raise ValueError("--resume takes the algorithm and the environment from the run")
        return read_request(resume)
    if algorithm is None or env_id is None:
        raise ValueError("ALGORITHM and ENV_ID must be given, or --resume FOLDER")
    return Request(kind=algorithm, env_id=env_id)


def default_folder(request: Request) -> Path:
    """Return the folder of a run that names its environment, seeds and network."""
    own = {"seed": request.options.get("seed"), "network": request.options.get("network")}
    named = {**request.env_args, **given_only(own), **given_only({"seeds": request.seeds})}
    words = [f"{name}={value}" for name, value in named.items()]
    return folder_named(request.kind, request.env_id, *words)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
