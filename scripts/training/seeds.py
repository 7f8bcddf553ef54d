"""Train several runs of a request that differ in their seed, and return learning curves."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from agents.progress import ProgressBar
from agents.runs import read_rows
from agents.sb3.validation import VALIDATION, ValidationRow
from scripts.study.means import means
from scripts.study.rows import write_csv
from scripts.training.jobs import Job, job_of
from scripts.training.requests import Request, import_user_classes

CURVE = ("after", "mean", "half", "count")
"""Columns of curve.csv: units of training, mean over seeds, half-width of its interval, seeds."""
HELD_OUT = "steps, over all lanes; best actions on held-out seeds"
POLL = 0.5
"""Seconds between two updates of the progress bars."""


def train_seeds(runs: Mapping[Path, Request], jobs: Mapping[Path, Job]) -> None:
    """Train unfinished runs in worker processes; an interrupt stops and saves all of them."""
    with _pool(min(len(runs), os.cpu_count() or 1)) as pool:
        running = {folder: pool.submit(run_request, runs[folder], folder) for folder in runs}
        with ProgressBar("{task.fields[reached]}", "{task.elapsed:.0f} s") as bar:
            tasks = {folder: bar.add_task(folder.name, total=1, reached="-") for folder in runs}
            while not all(task.finished for task in bar.tasks):
                for folder, future in running.items():
                    done, reached = int(future.done()), "-"
                    if points := jobs[folder].curve(folder)[1]:
                        reached = f"{points[-1][0]:,} ({points[-1][1]:.4f})"
                    bar.update(tasks[folder], completed=done, reached=reached)
                time.sleep(POLL)
    for future in running.values():
        future.result()


def run_request(request: Request, folder: Path) -> None:
    """Train the run of a request in a folder, without a progress bar (in a worker)."""
    import_user_classes(request.kind, request.options)
    job_of(request).run(folder, progress=False)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes; an error or interrupt here interrupts all, and they save runs."""
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


def curves_of_run(job: Job, out: Path) -> tuple[pd.DataFrame, str]:
    """Return a table of a run's learning curve and its validations, and the name of its unit.

    The columns are ``x`` in this unit, ``y``, ``half`` (of an interval) and ``label``.
    """
    unit, points = job.curve(out)
    few = job.environment.train_pages
    learning = f"{job.label}, while learning" + (f", on {few} pages" if few else "")
    rows = [(x, y, 0.0, learning) for x, y in points]
    held_out = read_rows(out / VALIDATION, ValidationRow)
    rows += [(*row, "best actions, held-out seeds") for row in held_out]
    return pd.DataFrame(rows, columns=["x", "y", "half", "label"]), unit


def mean_curve(jobs: Mapping[Path, Job], out: Path) -> tuple[pd.DataFrame, str]:
    """Return the mean learning curve of several runs and its unit, and write curve.csv.

    The table has the columns of :func:`curves_of_run`. Validations are used, if there are any.
    Runs of one algorithm have rows after the same numbers of steps.
    """
    points, unit = [], ""
    for folder, job in jobs.items():
        held_out = read_rows(folder / VALIDATION, ValidationRow)
        unit, run_points = job.curve(folder)
        if held_out:
            unit, run_points = HELD_OUT, [(row.steps, row.mean_reward) for row in held_out]
        points += run_points
    data = means(pd.DataFrame(points, columns=["after", "value"]), ("after",))[list(CURVE)]
    write_csv(out / "curve.csv", CURVE, data.itertuples(index=False))
    label = f"{job.label}, mean of {len(jobs)} runs"
    return data.rename(columns={"after": "x", "mean": "y"}).assign(label=label), unit
