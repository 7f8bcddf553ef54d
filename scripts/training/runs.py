"""Train an agent, one run or several, and compare it with policies on the same events."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from rich.console import Console

from agents.sb3.comparison import FIRST_SEED
from agents.sb3.lanes import pages_in_words
from crawl_envs.evaluation import Row, mean_and_half_width
from scripts.cli.options import check_counts
from scripts.present.tables import console
from scripts.study.entrants import SIMPLE, candidates_of, names_to_compare
from scripts.study.means import table
from scripts.study.rows import check_folder, write_csv, write_provenance
from scripts.training import requests
from scripts.training.baselines import REWARD, baseline_rows, lane_rows
from scripts.training.jobs import Job, job_of
from scripts.training.ranking import best_in_words, compared, draw_curve, measured, publish
from scripts.training.requests import Request
from scripts.training.seeds import curves_of_run, mean_curve, train_seeds


def train_and_compare(request: Request, out: Path, fresh: bool) -> None:
    """Evaluate policies, train or resume the requested runs, then write and print a comparison.

    Raises:
        ValueError: incompatible arguments, fewer than one episode, or another run in ``out``.
        OSError: ``out`` cannot be written.
    """
    check_counts(1, episodes=request.episodes, seeds=1 if request.seeds is None else request.seeds)
    candidates_of(names_to_compare(request.env_id, request.policies))
    runs = requests.runs_of(request, out)
    jobs = {folder: job_of(run) for folder, run in runs.items()}
    begin(out, request, jobs, fresh)
    job = next(iter(jobs.values()))
    pages = pages_in_words(job.environment)
    console().print(pages, soft_wrap=True)
    started, busy = time.perf_counter(), os.times()[:4]  # of this process and of ended workers
    baselines = baseline_rows(job.environment, request.episodes, out, request.policies)
    if request.seeds is None:
        job.run(out, beside=best_in_words(baselines))
    else:
        train_seeds(runs, jobs)
    with Console(stderr=True).status("comparing with the analytic policies"):
        agent_results = [
            row._replace(setting=folder.name.replace("-", " "))
            for folder, run in jobs.items()
            for row in agent_rows(run, folder, request.episodes)
        ]
    report(request, jobs, agent_results, baselines, out)
    used = {**asdict(job.arguments), **job.noted, "pages": pages}
    if request.seeds is not None:
        used["seeds"] = [run.arguments.seed for run in jobs.values()]
    seconds, spent = time.perf_counter() - started, round(sum(os.times()[:4]) - sum(busy), 1)
    file = out / "provenance.json"
    write_provenance(file, "scripts.train", seconds, processor_seconds=spent, used=used)


def begin(out: Path, request: Request, jobs: Mapping[Path, Job], fresh: bool) -> None:
    """Check each run's folder, and save the request; with ``fresh``, discard earlier runs."""
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
    agent_results: Sequence[Row],
    baselines: Sequence[Row],
    out: Path,
) -> None:
    """Write, draw and print the ranking of an agent; several runs count by their mean."""
    job, several = next(iter(jobs.values())), request.seeds is not None
    curves, unit = mean_curve(jobs, out) if several else curves_of_run(job, out)
    rows = mean_rows(agent_results)
    ranking, best = compared(rows, baselines, job.label)
    end = f"{request.seeds} runs; band: 95% interval" if several else f"seed {job.arguments.seed}"
    title, axis = f"{job.label} in {job.environment.env_id}, {end}", measured(job.environment)
    if not curves.empty:
        levels = [item for item in ranking if item.policy in (best, *SIMPLE)]
        draw_curve(out / "curve.png", curves, levels, unit=unit, title=title, measured=axis)
    look = {"agent": job.label, "title": title, "metric": "mean reward", "measured": axis}
    publish(out, [*rows, *baselines], ranking, best, **look)
    console().print(f"{axis}; seeds from {FIRST_SEED} on -> {out}", soft_wrap=True)
    if several:
        best_actions = table([row for row in agent_results if row.policy == job.label], REWARD)
        by_run = best_actions.groupby("setting", sort=False)["value"].mean()
        mean, half = mean_and_half_width(by_run.tolist())
        by_name = ", ".join(f"{name}: {value:.4f}" for name, value in by_run.items())
        console().print(f"over runs {mean:.4f} ± {half:.4f}  ({by_name})", soft_wrap=True)
        write_csv(out / "runs.csv", ("run", "mean_reward"), by_run.items())


def agent_rows(job: Job, out: Path, episodes: int) -> list[Row]:
    """Return rows of an agent on the seeds of the comparison: best actions, then sampled ones.

    These seeds differ from the seeds of the training. A recorded trace or a fixed instance is the
    same for all seeds, so its rows show performance on the training data.
    """
    build = job.load(out)
    rows = lane_rows(job.label, build, job.environment, episodes)
    if job.SAMPLES:
        label = f"{job.label}, drawn"
        rows += lane_rows(label, build, job.environment, episodes, deterministic=False)
    return rows


def mean_rows(rows: Sequence[Row]) -> list[Row]:
    """Return rows with the mean over runs of each policy, seed and metric."""
    data = pd.DataFrame(rows, columns=list(Row._fields))
    keys = ["id", "policy", "seed", "metric"]
    mean = data.groupby(keys, sort=False)["value"].mean().reset_index()
    return [Row(**record, setting="") for record in mean.to_dict("records")]
