"""Measure the first use of each family: processor seconds of make, reset and one step.

Each measurement runs in a new process. The first of a family compiles the simulator into an empty
cache, the second loads it. Imports are measured separately. Writes ``first_use.csv`` and
``provenance.json``.
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import NamedTuple

from scripts.cli.commands import command
from scripts.timing import commands
from scripts.timing.checkouts import HERE, worker
from scripts.timing.stepped import newest

FAMILIES = ("CrawlNCIS", "CrawlHarmonic", "CrawlTrace", "CrawlLongevity", "CrawlOffers")
USED = """
import json, time
start = time.process_time()
import gymnasium, crawl_envs
imported = time.process_time()
env = gymnasium.make(json.loads(input()))
env.reset(seed=0)
env.step(env.action_space.sample())
print(json.dumps([imported - start, time.process_time() - imported]))
"""


class FirstUse(NamedTuple):
    """Processor seconds of a family: imports; make, reset and step in first and second process."""

    family: str
    imports: float
    first: float
    second: float


def first_use(family: str) -> list[FirstUse]:
    """Measure the first use of a family with an empty cache, then with a full one; return a row."""
    seconds = []
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            with worker(HERE, "-c", USED, NUMBA_CACHE_DIR=cache) as ask:
                seconds.append(ask(newest(family)))
    (_, first), (imports, second) = seconds
    return [FirstUse(family, imports, first, second)]


def cases(quick: bool) -> commands.Cases:
    """Return a case for each family by name; only for the first family if ``quick``."""
    return {name: partial(first_use, name) for name in (FAMILIES[:1] if quick else FAMILIES)}


MEASUREMENT = commands.Measurement(
    "scripts.timing.first_use", "first_use", FirstUse, "Processor seconds of a first use"
)


def main(
    quick: commands.Quick = False, case: commands.Words = None, out: commands.Out = None
) -> None:
    """Measure, write and print."""
    folder = commands.folder_of(out, quick or bool(case))
    commands.measure(MEASUREMENT, commands.select_cases(cases(quick), case), folder)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
