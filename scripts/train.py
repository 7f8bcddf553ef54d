"""Train an agent and compare it with the analytic policies on the same events.

Each ALGORITHM below has options of its own: python -m scripts.train ppo --help shows those of ppo.
The algorithms of Stable-Baselines3, "clone" and "index" train in an environment, as in
python -m scripts.train ppo CrawlNCIS-v0, and so does one of your own, in the form of
Stable-Baselines3, by the name of its class: my_module:MyPPO. "index --log" and "generalist" take
none.

With --seeds, runs that differ in their seed are trained side by side, each in a folder of its own
(seed-0, seed-1, ...); the curve and the reward of the agent are means over them, with intervals.
Their seeds are 1000 apart, since the episodes of lane i have the seed of the run plus i.
Common analytic policies that can act in the environment, or those of --policies, are evaluated once
and saved in OUT: before the training of a single run, whose progress bar shows the best of them.

OUT receives the agent, run.json (what was asked for), config.json and the learning curve,
ranking.csv (mean rewards of all policies), rows.csv (rewards per seed), two pictures, and
provenance.json; also, of algorithms of Stable-Baselines3, validation.csv (rewards on held-out
seeds while learning) and their logs with --tensorboard. The same command goes on with an
interrupted run (clone and index start anew), and so does --resume OUT, without an algorithm.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pandas as pd
from rich.console import Console

from agents.catalog import GENERALIST as GENERALIST_FILE
from agents.catalog import check_vacant
from agents.generalist.training import GeneralistArguments, train
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED
from agents.sb3.lanes import pages_in_words
from crawl_envs import FAMILIES
from crawl_envs.evaluation import Row, mean_and_half_width
from crawl_envs.types.arguments import one_of
from scripts.cli.commands import (
    at_least,
    command_of,
    default_folder,
    given,
    one_line_errors,
    programs,
)
from scripts.logs.learning import learn_from_log
from scripts.logs.options import read_log, weights_and_groups
from scripts.present.tables import console
from scripts.study.entrants import OF_FRAGMENTS, SIMPLE, candidates_of, chosen_names
from scripts.study.rows import check_folder, write_csv, write_provenance
from scripts.training import requests
from scripts.training.baselines import baseline_rows, lane_rows
from scripts.training.jobs import INDEX, KINDS, OWN_CLASS, Job, job_of
from scripts.training.options import GeneralistOptions, LogOptions, OwnOptions, RunOptions
from scripts.training.ranking import best_in_words, compared, draw_curve, publish
from scripts.training.requests import Request
from scripts.training.seeds import curves_of_run, mean_curve, train_seeds

GENERALIST, OF_LOG = "generalist", f"{INDEX} --log"


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


def run_in_environment(kind: str, options: RunOptions) -> None:
    """Train in an environment, compare and draw."""
    kind = options.algorithm if isinstance(options, OwnOptions) else kind
    request = requests.request_of(kind, options)
    requests.import_own(kind, given(options))
    folder = options.resume or options.out or requests.folder_of_run(request)
    with one_line_errors(f"stopped; go on with --resume {folder}"):
        train_and_compare(request, folder, options.fresh)


def train_and_compare(request: Request, out: Path, fresh: bool) -> None:
    """Evaluate the policies, train or go on, one run or several, then compare, draw and print.

    Raises:
        ValueError: incompatible arguments, fewer than one episode, or another run in ``out``.
        OSError: ``out`` cannot be written.
    """
    at_least(1, episodes=request.episodes, seeds=1 if request.seeds is None else request.seeds)
    candidates_of(chosen_names(request.env_id, request.policies))
    runs = requests.runs_of(request, out)
    jobs = {folder: job_of(each) for folder, each in runs.items()}
    begin(out, request, jobs, fresh)
    job = next(iter(jobs.values()))
    pages = pages_in_words(job.environment)
    console().print(pages, soft_wrap=True)
    started = time.perf_counter()
    others = baseline_rows(job.environment, request.episodes, out, request.policies)
    if request.seeds is None:
        job.run(out, beside=best_in_words(others))
    else:
        train_seeds(runs, jobs)
    with Console(stderr=True).status("comparing with the analytic policies"):
        own = [
            row._replace(setting=folder.name.replace("-", " "))
            for folder, each in jobs.items()
            for row in agent_rows(each, folder, request.episodes)
        ]
    report(request, jobs, own, others, out)
    used = {**asdict(job.arguments), **job.noted, "pages": pages}
    used |= {} if request.seeds is None else {"seeds": [jobs[each].arguments.seed for each in jobs]}
    seconds = time.perf_counter() - started
    write_provenance(out / "provenance.json", "scripts.train", seconds, used=used)


def begin(out: Path, request: Request, jobs: Mapping[Path, Job], fresh: bool) -> None:
    """Check the runs in their folders, and save the request; with ``fresh``, discard old ones."""
    if not fresh:
        requests.check_same(out, request)
    for folder, job in jobs.items():
        job.check(None if fresh else folder)
    check_folder(out)
    if fresh:
        requests.discard(out)
    requests.save_request(out, request)


def report(
    request: Request,
    jobs: Mapping[Path, Job],
    own: Sequence[Row],
    others: Sequence[Row],
    out: Path,
) -> None:
    """Write, draw and print the ranking, of several runs of their means, and their spread."""
    job, several = next(iter(jobs.values())), request.seeds is not None
    curves, unit = mean_curve(jobs, out) if several else curves_of_run(job, out)
    rows = mean_rows(own)
    ranking, best = compared(rows, others, job.label)
    end = f"{request.seeds} runs; band: 95% interval" if several else f"seed {job.arguments.seed}"
    title, axis = f"{job.label} in {job.environment.env_id}, {end}", measured(job.environment)
    if not curves.empty:
        levels = [item for item in ranking if item.policy in (best, *SIMPLE)]
        draw_curve(out / "curve.png", curves, levels, unit=unit, title=title, measured=axis)
    look = {"agent": job.label, "title": title, "metric": "mean reward", "measured": axis}
    publish(out, [*rows, *others], ranking, best, **look)
    console().print(f"{axis}; seeds from {FIRST_SEED} on -> {out}", soft_wrap=True)
    if several:
        best_actions = pd.DataFrame([row for row in own if row.policy == job.label])
        by_run = best_actions.groupby("setting", sort=False)["value"].mean()
        mean, half = mean_and_half_width(by_run.tolist())
        said = ", ".join(f"{name}: {value:.4f}" for name, value in by_run.items())
        console().print(f"over runs {mean:.4f} ± {half:.4f}  ({said})", soft_wrap=True)
        write_csv(out / "runs.csv", ("run", "mean_reward"), by_run.items())


def agent_rows(job: Job, out: Path, episodes: int) -> list[Row]:
    """Evaluate an agent on the seeds of the comparison: its best actions, then sampled ones.

    The seeds differ from those of the training. A recorded trace, however, is the same for all
    seeds: there, and with a pinned instance, this is performance on the training data.
    """
    build = job.load(out)
    rows = lane_rows(job.label, build, job.environment, episodes)
    if job.SAMPLES:
        label = f"{job.label}, drawn"
        rows += lane_rows(label, build, job.environment, episodes, deterministic=False)
    return rows


def mean_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the means over runs, episode by episode."""
    data = pd.DataFrame(rows, columns=list(Row._fields))
    keys = ["id", "policy", "seed", "metric"]
    mean = data.groupby(keys, sort=False)["value"].mean().reset_index()
    return [Row(**each, setting="") for each in mean.to_dict("records")]


def run_on_log(options: LogOptions) -> None:
    """Learn an index from a log, and print the log-loss of its held-out crawls."""
    until, seed = options.until, options.seed
    folder, started = options.out or default_folder(INDEX, options.title), time.perf_counter()
    if (folder / requests.RUN).exists():
        raise ValueError(f"{folder} holds a run in an environment; name another --out")
    log = read_log(options)
    _, group = weights_and_groups(log, options)
    last = math.inf if until is None else until
    loss, crawls = learn_from_log(log, group, folder, until=last, seed=seed, fresh=options.fresh)
    seconds = time.perf_counter() - started
    used = {"log": [str(path) for path in options.log], "until": until, "seed": seed}
    write_provenance(folder / "provenance.json", "scripts.train", seconds, used=used)
    console().print(
        f"log-loss of changed / not changed of the last {crawls} crawls: {loss:.4f} -> {folder}",
        soft_wrap=True,
    )


def run_generalist(options: GeneralistOptions) -> None:
    """Train the agent for every family."""
    folder, started = options.out or default_folder(GENERALIST), time.perf_counter()
    arguments = GeneralistArguments(seed=options.seed)
    check_vacant(folder, but=GENERALIST_FILE if options.fresh else "")
    check_folder(folder)
    (folder / GENERALIST_FILE).unlink(missing_ok=True)
    train(arguments, folder, progress=True)
    seconds = time.perf_counter() - started
    used = {"seed": options.seed}
    write_provenance(folder / "provenance.json", "scripts.train", seconds, used=used)
    console().print(f"trained in {seconds:.0f} s -> {folder}", soft_wrap=True)


def with_program(words: list[str]) -> list[str]:
    """Return the arguments of the command line with the name of their program in front.

    Raises:
        ValueError: neither an algorithm in front, nor a run to resume.
    """
    known = (*KINDS, GENERALIST)
    if not words:
        raise ValueError(
            f"scripts.train must be followed by an algorithm ({', '.join(known)} or {OWN_CLASS}), "
            "or by --resume FOLDER; --help says more"
        )
    first, *rest = words
    parts = [word.split("=", 1) if word.startswith("--") else [word] for word in words]
    split = [*(part for word in parts for part in word), ""]
    if first.startswith("--") and "--resume" in split:
        folder = split[split.index("--resume") + 1]
        first, rest = requests.read_request(Path(folder)).kind, words
        if ":" in first:
            raise ValueError(f"a class of your own must be named: {first} --resume {folder}")
    if ":" in first:
        return [OWN_CLASS, first, *rest]
    one_of("algorithm", first, known, OWN_CLASS)
    return [OF_LOG if first == INDEX and "--log" in split else first, *rest]


app = programs(with_program, __doc__)
for kind, options_class in {**KINDS, OWN_CLASS: OwnOptions}.items():
    command_of(partial(run_in_environment, kind), options_class, options_class.__doc__, kind, app)
command_of(run_on_log, LogOptions, LogOptions.__doc__, OF_LOG, app)
command_of(run_generalist, GeneralistOptions, GeneralistOptions.__doc__, GENERALIST, app)

if __name__ == "__main__":
    app()
