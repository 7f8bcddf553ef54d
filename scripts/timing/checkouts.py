"""Compare the speed of this checkout with another one.

Each checkout has a process on the same core, :mod:`scripts.timing.stepped`. Both make the same
environments and execute the same steps in turn. The ratio of their processor times is taken within
a turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.timing import stepped
from scripts.timing.commands import Cases
from scripts.timing.turns import spread

HERE = Path(__file__).resolve().parents[2]
"""Folder of this checkout."""


class Against(NamedTuple):
    """Speed of a case relative to another checkout, and seconds of a step here and there."""

    case: str
    median: float
    low: float
    high: float
    here: float
    there: float


@contextmanager
def worker(folder: Path, *words: str, **environment: str) -> Iterator[Callable[[str | int], Any]]:
    """Start a Python process; yield a function that sends it JSON and returns its answer.

    The function raises ValueError if the process ends.

    Args:
        folder: folder of the checkout that the process imports from.
        words: a file to run, or ``-c`` and code.
        environment: additional environment variables of the process.
    """
    command = [sys.executable, "-P", *words]
    variables, pipe = {**os.environ, "PYTHONPATH": str(folder), **environment}, subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=variables)
    assert process.stdin is not None
    assert process.stdout is not None
    inward, outward = process.stdin, process.stdout

    def ask(request: str | int) -> Any:
        with suppress(BrokenPipeError):
            inward.write(json.dumps(request) + "\n")
            inward.flush()
        if not (line := outward.readline()):
            raise ValueError(f"the process must answer {request!r}, got its end; see above")
        return json.loads(line)

    try:
        yield ask
    finally:
        process.kill()
        process.communicate()


def cases(folder: Path, turns: int, spell: float) -> Cases:
    """Return for each environment, by name, a function that compares it with another checkout.

    Args:
        folder: folder of the other checkout.
        turns: number of turns.
        spell: shortest length of a spell of steps, in seconds.

    Raises:
        ValueError: the folder is not a checkout.
    """
    if not (folder / "crawl_envs" / "__init__.py").is_file():
        raise ValueError(f"--against must be the folder of another checkout, got {folder}")
    return {name: partial(compared, name, folder, turns, spell) for name in stepped.CASES}


def compared(name: str, folder: Path, turns: int, spell: float) -> list[Against]:
    """Measure a case here and in another checkout; return the comparison as one row."""
    steps, seconds = stepped.CASES[name].steps, np.empty((turns, 2))
    with (
        worker(HERE, stepped.__file__) as here,
        worker(folder.resolve(), stepped.__file__) as there,
    ):
        both = here, there
        for ask in both:
            ask(name)
            ask(steps)  # compiles
        while max(ask(steps) for ask in both) < spell:
            steps *= 2
        for turn in range(turns):
            for place in (turn % 2, 1 - turn % 2):
                seconds[turn, place] = both[place](steps) / steps
    medians = np.median(seconds, axis=0).tolist()
    return [Against(name, *spread(seconds[:, 1] / seconds[:, 0]), *medians)]
