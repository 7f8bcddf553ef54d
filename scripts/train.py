"""Train an agent and compare it with the analytic policies on the same events.

With --seeds, runs that differ in their seed are trained side by side, each in a folder of its own
(seed-0, seed-1, ...); the curve and the reward of the agent are means over them, with intervals.

ALGORITHM is an algorithm of Stable-Baselines3 (ppo, a2c, dqn, sac; maskableppo and recurrentppo
with sb3-contrib), "clone" (imitate an analytic policy), or "index" (learn an index from whether
crawls at random found a change, in seconds).
Hyperparameters are the recommended ones, by one rule for all environments, overridden by
--hyperparameters, overridden by options. Where the number of pages can differ, an agent is trained
on 20 at the same m / R, and ranked on those of the environment; --train-pages 0 trains on those
too. A clone can be trained further by reward: ppo --start FOLDER, with its network. Common analytic
policies that can act in the environment, or those of --policies, are evaluated once and saved in
OUT: before the training of a single run, whose progress bar shows the best of them. Other action
forms are an argument of the environment: --env-arg action=scores.

With --log, "index" learns from the crawls of a log of one's own instead of an environment, and
nothing is compared: python -m scripts.backtest LOG --agents OUT plays it. The options from --column
to --merge are those of scripts.backtest, and of the others only --seed and --fresh apply.

"generalist" takes no environment: it trains one agent for all families of pages, on 14 laws of
CrawlNCIS-v0, in minutes; of the options only --out, --seed and --fresh apply, and an interrupted
training starts anew.

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

import pandas as pd
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
from scripts.reporting.commands import at_least, command_of, default_folder, given, one_line_errors
from scripts.reporting.comparisons import OF_FRAGMENTS, policy_factories
from scripts.reporting.options import refuse
from scripts.reporting.rows import check_folder, write_csv, write_provenance
from scripts.training.baselines import SIMPLE, baseline_rows, best_baseline
from scripts.training.cells import agent_rows, compared
from scripts.training.generalist import KIND as GENERALIST
from scripts.training.generalist import train_generalist
from scripts.training.jobs import Job
from scripts.training.options import TrainOptions
from scripts.training.pictures import draw_curve, draw_ranking
from scripts.training.ranking import COLUMNS, ONE_HISTORY, TRACE, note_of, table_of
from scripts.training.recipes import INDEX, job_of
from scripts.training.requests import (
    RUN,
    Request,
    check_same,
    discard,
    folder_of_run,
    import_own,
    request_of,
    save_request,
)
from scripts.training.seeds import curve_of, folder_of, requests_of, train_seeds


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
    few = job.environment.train_pages
    learning = f"{job.label}, while learning" + (f", on {few} pages" if few else "")
    held_out = "best actions, held-out seeds"
    rows = [
        *((x, y, 0.0, learning) for x, y in zip(curve.after, curve.reached, strict=True)),
        *((*row, held_out) for row in read_rows(out / VALIDATION, ValidationRow)),
    ]
    return pd.DataFrame(rows, columns=["x", "y", "half", "label"]), curve.unit


def train_and_compare(request: Request, out: Path, fresh: bool) -> None:
    """Evaluate the policies, train or go on, one run or several, then compare, draw and print.

    Raises:
        ValueError: incompatible arguments, fewer than one episode, or another run in ``out``.
        OSError: ``out`` cannot be written.
    """
    single = request.seeds is None
    at_least(1, episodes=request.episodes, **({} if single else {"seeds": request.seeds}))
    policy_factories(request.policies)
    requests = requests_of(request)
    jobs = {folder_of(out, each): job_of(each) for each in requests}
    begin(out, request, jobs, fresh)
    job = next(iter(jobs.values()))
    tables.console().print(job.pages(), soft_wrap=True)
    started = time.perf_counter()
    others = baseline_rows(job.environment, request.episodes, out, request.policies)
    if single:
        job.run(out, best_baseline(others))
    else:
        train_seeds(requests, out)
    with Console(stderr=True).status("comparing with the analytic policies"):
        own = [
            row._replace(setting=folder.name.replace("-", " "))
            for folder, each in jobs.items()
            for row in agent_rows(each, folder, request.episodes)
        ]
    if single:
        own = [row._replace(setting="") for row in own]
        title = f"{job.label} in {job.environment.env_id}, seed {job.environment.seed}"
        report(job, own, others, out, curves_of(job, out), title)
    else:
        report_runs(request, job, own, others, out)
    used = {**job.used(), "pages": job.pages()}
    used |= {} if single else {"seeds": [each.options["seed"] for each in requests]}
    seconds = time.perf_counter() - started
    write_provenance(out / "provenance.json", "scripts.train", seconds, used=used)


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


def report(
    job: Job,
    own: Sequence[Row],
    others: Sequence[Row],
    out: Path,
    curves: Curves | None,
    title: str,
) -> None:
    """Write, draw and print the ranking."""
    ranking, best = compared(own, others, job.label)
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


def report_runs(
    request: Request, job: Job, rows: Sequence[Row], others: Sequence[Row], out: Path
) -> None:
    """Write, draw and print the means over several runs, and their spread."""
    data, unit = curve_of(requests_of(request), out)
    write_csv(out / "curve.csv", list(data.columns), data.itertuples(index=False))
    names = {"after": "x", "mean": "y"}
    label = f"{job.label}, mean of {request.seeds} runs"
    curves = data.rename(columns=names).assign(label=label)
    title = f"{job.label} in {job.environment.env_id}, {request.seeds} runs; band: 95% interval"
    report(job, mean_rows(rows), others, out, (curves, unit) if unit else None, title)
    best = pd.DataFrame([row for row in rows if row.policy == job.label])
    by_run = best.groupby("setting", sort=False)["value"].mean()
    mean, half = mean_and_half_width(by_run.tolist())
    said = ", ".join(f"{name}: {value:.4f}" for name, value in by_run.items())
    tables.console().print(f"over runs {mean:.4f} ± {half:.4f}  ({said})", soft_wrap=True)
    write_csv(out / "runs.csv", ("run", "mean_reward"), by_run.items())


def mean_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the means over runs, episode by episode."""
    data = pd.DataFrame(rows, columns=list(Row._fields))
    keys = ["id", "policy", "seed", "metric"]
    mean = data.groupby(keys, sort=False)["value"].mean().reset_index()
    return [Row(**each, setting="") for each in mean.to_dict("records")]


def learn_from(options: TrainOptions) -> None:
    """Learn an index from a log, and print the log-loss of its held-out crawls."""
    paths, until, seed = options.log or [], options.until, options.seed or 0
    folder, started = options.out or default_folder(INDEX, paths[0].name), time.perf_counter()
    if (folder / RUN).exists():
        raise ValueError(f"{folder} holds a run in an environment; name another --out")
    reading = log_options.Reading(*(getattr(options, name) for name in log_options.Reading._fields))
    log = log_options.read_log(paths, reading)
    _, group = log_options.weights_and_groups(log, options.pages, reading.merge)
    last = math.inf if until is None else until
    loss, crawls = learn_from_log(log, group, folder, until=last, seed=seed, fresh=options.fresh)
    seconds = time.perf_counter() - started
    used = {"log": [str(path) for path in paths], "until": until, "seed": seed}
    write_provenance(folder / "provenance.json", "scripts.train", seconds, used=used)
    tables.console().print(
        f"log-loss of changed / not changed of the last {crawls} crawls: {loss:.4f} -> {folder}",
        soft_wrap=True,
    )


def main(options: TrainOptions) -> None:
    """Train, compare and draw."""
    asked = given(options)
    if options.log:
        if options.algorithm != INDEX or options.env_id is not None:
            got = f"{options.algorithm} {options.env_id or ''}"
            raise ValueError(f"--log must follow {INDEX} alone, got {got}")
        taken = (*options.OF_LOGS, "algorithm", "seed", "out", "fresh")
        refuse({name: value for name, value in asked.items() if name not in taken}, "to --log")
        learn_from(options)
        return
    refuse({name: asked.get(name) for name in options.OF_LOGS}, "without --log")
    if options.algorithm == GENERALIST:
        taken = ("algorithm", "seed", "out", "fresh")
        others = {name: value for name, value in asked.items() if name not in taken}
        refuse(others, f"to {GENERALIST}")
        train_generalist(options.out, options.seed or 0, options.fresh)
        return
    request = request_of(options)
    import_own(asked)
    folder = options.resume or options.out or folder_of_run(request)
    with one_line_errors(f"stopped; go on with --resume {folder}"):
        train_and_compare(request, folder, options.fresh)


app = command_of(main, TrainOptions, __doc__)

if __name__ == "__main__":
    app()
