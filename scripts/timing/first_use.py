"""Measure the first use of each family: processor seconds of make, reset and one step.

Each measurement has a process of its own. The first of a family compiles the simulator into an
empty cache, the second finds it there. Imports are measured apart. Writes ``first_use.csv`` and
``provenance.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import NamedTuple

from scripts.timing.checkouts import HERE
from scripts.timing.commands import Cases, measuring
from scripts.timing.stepped import newest

COLD_START_LIMIT = 1.0
"""Seconds."""
COLD_START = (
    "import crawl_envs, gymnasium; env = gymnasium.make('CrawlNCIS-v0', instance='noisy'); "
    "env.reset(seed=0); env.step(0)"
)
FAMILIES = ("CrawlNCIS", "CrawlHarmonic", "CrawlTrace", "CrawlLongevity", "CrawlOffers")
MEASURED = """
import json, sys, time
start = time.process_time()
import gymnasium, crawl_envs
imported = time.process_time()
env = gymnasium.make(sys.argv[1])
env.reset(seed=0)
env.step(env.action_space.sample())
print(json.dumps([imported - start, time.process_time() - imported]))
"""


class FirstUse(NamedTuple):
    """Processor seconds of a family: imports, and make, reset and step in two processes."""

    family: str
    imports: float
    first: float
    second: float


def cold_start() -> tuple[float, float]:
    """Return wall and processor time of a process that imports, makes, resets and steps."""
    start, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-c", COLD_START], check=True)
    after = os.times()
    busy = sum(after[2:4]) - sum(before[2:4])
    return time.perf_counter() - start, busy


def seconds(family: str, cache: str) -> list[float]:
    """Return the seconds of imports, and of make, reset and step, in a new process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-P", "-c", MEASURED, newest(family)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ValueError(f"the process that used {family} failed, see above")
    taken: list[float] = json.loads(done.stdout)
    return taken


def first_use(family: str) -> list[FirstUse]:
    """Return the seconds of a family with an empty cache, and then with a full one, as a row."""
    with tempfile.TemporaryDirectory() as cache:
        _, first = seconds(family, cache)
        imports, second = seconds(family, cache)
    return [FirstUse(family, imports, first, second)]


def cases(quick: bool) -> Cases:
    """Return a case for each family, or for the first."""
    return {name: partial(first_use, name) for name in (FAMILIES[:1] if quick else FAMILIES)}


app = measuring(
    "scripts.timing.first_use",
    __doc__,
    cases,
    FirstUse._fields,
    name="first_use",
    title="Processor seconds of a first use",
)

if __name__ == "__main__":
    app()
