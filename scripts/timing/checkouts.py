"""Speed of this checkout against another one, in one run.

Each checkout has a process on the same core, :mod:`scripts.timing.stepped`. Both make the same
environments and take turns at the same steps; the ratio of their processor times is taken within a
turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scripts.timing import stepped
from scripts.timing.commands import run_cases
from scripts.timing.turns import spread

HERE = Path(__file__).resolve().parents[2]
"""Folder of this checkout."""
TITLE = "Speed over that of the other checkout, and seconds of a step in both"


class Against(NamedTuple):
    """Speed of a case over that in another checkout, and the seconds of a step in both."""

    case: str
    median: float
    low: float
    high: float
    here: float
    there: float


class Worker:
    """A process that steps the environments of a checkout.

    Args:
        folder: folder of the checkout.

    Raises:
        ValueError: the folder is not a checkout.
    """

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", stepped.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )
        try:
            if self._answer() != str(folder / "crawl_envs"):
                raise ValueError(f"against must be the folder of a checkout, got {str(folder)!r}")
        except BaseException:
            self.stop()
            raise

    def ask(self, request: str | int) -> float:
        """Make a case, or so many steps of it; return the seconds of processor time."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise ValueError("a process that steps a checkout ended, see above")
        return str(json.loads(line))

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


@contextmanager
def workers(folder: Path) -> Iterator[tuple[Worker, Worker]]:
    """Yield the processes of this checkout and of another one."""
    started: list[Worker] = []
    try:
        for each in (HERE, folder.resolve()):
            started.append(Worker(each))
        yield started[0], started[1]
    finally:
        for worker in started:
            worker.stop()


def compare(folder: Path, turns: int, spell: float) -> list[Against]:
    """Compare this checkout with another one, with a progress bar.

    Args:
        folder: folder of the other one.
        turns: number of turns.
        spell: shortest length of a spell of steps, in seconds.
    """
    with workers(folder) as both:
        return run_cases(
            {name: partial(_compare_case, name, both, turns, spell) for name in stepped.CASES}
        )


def _compare_case(
    name: str, both: tuple[Worker, Worker], turns: int, spell: float
) -> list[Against]:
    steps = stepped.CASES[name].steps
    for worker in both:
        worker.ask(name)
        worker.ask(steps)  # compiles
    while max(worker.ask(steps) for worker in both) < spell:
        steps *= 2
    seconds = np.empty((turns, 2))
    for turn in range(turns):
        for place in (turn % 2, 1 - turn % 2):
            seconds[turn, place] = both[place].ask(steps) / steps
    here, there = np.median(seconds, axis=0)
    return [Against(name, *spread(seconds[:, 1] / seconds[:, 0]), float(here), float(there))]
