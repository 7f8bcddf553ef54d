"""Runs that differ in their seed alone: trained side by side, with one curve."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd

from agents.progress import ProgressBar
from agents.runs import read_rows
from agents.sb3.validation import VALIDATION, ValidationRow
from scripts.reporting.means import means
from scripts.training.jobs import Job, LearningCurve
from scripts.training.recipes import job_of
from scripts.training.requests import Request, import_own

CURVE = ("after", "mean", "half", "count")
"""Columns of the curve: units of training, mean over seeds, half-width of its interval, seeds."""
HELD_OUT = "steps, over all lanes; best actions on held-out seeds"
POLL = 0.5
"""Seconds between two looks at the curves of runs."""


def requests_of(request: Request) -> list[Request]:
    """Return the requests of the seeds, from that of the request on; itself if it is of one run."""
    if request.seeds is None:
        return [request]
    first = request.options.get("seed", 0)
    return [
        replace(request, options={**request.options, "seed": first + place})
        for place in range(request.seeds)
    ]


def folder_of(out: Path, request: Request) -> Path:
    """Return the folder of the run of a seed, ``out`` itself if there is only one run."""
    return out if request.seeds is None else out / f"seed-{request.options['seed']}"


def train_seeds(requests: Sequence[Request], out: Path) -> None:
    """Train the runs that are not finished, in worker processes; an interrupt saves them all."""
    jobs = {folder_of(out, request): job_of(request) for request in requests}
    with _pool(min(len(requests), os.cpu_count() or 1)) as pool:
        running = {
            folder: pool.submit(run_request, request, folder)
            for folder, request in zip(jobs, requests, strict=True)
        }
        with ProgressBar("{task.fields[reached]}", "{task.elapsed:.0f} s") as bar:
            tasks = {folder: bar.add_task(folder.name, total=1, reached="-") for folder in jobs}
            while not all(task.finished for task in bar.tasks):
                for folder, job in jobs.items():
                    done = running[folder].done()
                    bar.update(tasks[folder], completed=int(done), reached=_reached(job, folder))
                time.sleep(POLL)
    for future in running.values():
        future.result()


def run_request(request: Request, folder: Path) -> None:
    """Train one run, without a progress bar."""
    import_own(request.options)
    job_of(request).run(folder, progress=False)


def _reached(job: Job, folder: Path) -> str:
    """Return how far a run is, and its last mean reward, as text."""
    curve = job.curve(folder) if folder.exists() else None
    return f"{curve.after[-1]:,} ({curve.reached[-1]:.4f})" if curve and curve.after else "-"


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool whose workers are interrupted, and so save their runs, with this process."""
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    except BaseException:
        for process in tuple((pool._processes or {}).values()):
            if process.pid is not None:
                os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def curve_of(requests: Sequence[Request], out: Path) -> tuple[pd.DataFrame, str]:
    """Return the mean curve of the runs, with the columns CURVE, and the unit of ``after``.

    It is that of their validations, if they have any. Runs of one algorithm have rows after the
    same numbers of steps.
    """
    parts, unit = [], ""
    for request in requests:
        folder = folder_of(out, request)
        rows = read_rows(folder / VALIDATION, ValidationRow)
        curve = job_of(request).curve(folder)
        if rows:
            reached, after = [row.mean_reward for row in rows], [row.steps for row in rows]
            curve = LearningCurve(reached, after, HELD_OUT)
        if curve is not None:
            parts.append(pd.DataFrame({"after": curve.after, "value": curve.reached}))
            unit = curve.unit
    if not parts:
        return pd.DataFrame(columns=list(CURVE)), unit
    return means(pd.concat(parts), ("after",))[list(CURVE)], unit
