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
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

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
    """A process that steps the environments of the checkout in a folder, until the block ends."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", stepped.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )

    def ask(self, request: str | int) -> float:
        """Make a case, or so many steps of it; return the seconds of processor time."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise ValueError("a process that steps a checkout ended, see above")
        return float(json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()


def compare(folder: Path, turns: int, spell: float) -> list[Against]:
    """Compare this checkout with another one, with a progress bar.

    Args:
        folder: folder of the other one.
        turns: number of turns.
        spell: shortest length of a spell of steps, in seconds.

    Raises:
        ValueError: the folder is not a checkout.
    """
    if not (folder / "crawl_envs" / "__init__.py").is_file():
        raise ValueError(f"--against must be the folder of another checkout, got {folder}")
    with ExitStack() as stack:
        both = [stack.enter_context(Worker(each)) for each in (HERE, folder.resolve())]
        return run_cases(
            {name: partial(_compare_case, name, both, turns, spell) for name in stepped.CASES}
        )


def _compare_case(name: str, both: list[Worker], turns: int, spell: float) -> list[Against]:
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
