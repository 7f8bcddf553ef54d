"""Environments to step in measurements of speed, and a process that steps them on request.

Nothing of the project is imported except the registered environments, so that the process can run
with another checkout on its path. It answers lines of JSON with seconds of processor time: a name
of CASES makes this case, a number makes so many steps of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import crawl_envs

LANES, PAGES = 64, 100
PLANNED = 16
"""Number of actions drawn in advance, and then reused."""


class Case(NamedTuple):
    """A family and its arguments, stepped with random pages, or random rates below ``most``.

    ``steps`` is the least number of steps of a measurement, an episode with its reset where resets
    are long. ``lanes`` is None for the single environment.
    """

    family: str
    arguments: Mapping[str, Any] = {}
    steps: int = 1
    most: float | None = None
    lanes: int | None = LANES


_NCIS = {"num_pages": PAGES, "bandwidth": float(PAGES), "instance": "noisy"}
_HARMONIC = {"num_pages": PAGES, "bandwidth": 20.0}
_OFFERS = {"num_pages": 1000, "bandwidth": 100.0}
CASES = {
    "ncis": Case("CrawlNCIS", _NCIS),
    "harmonic, pages": Case("CrawlHarmonic", {**_HARMONIC, "action": "page"}),
    "harmonic, rates": Case("CrawlHarmonic", {**_HARMONIC, "action": "rates"}, most=0.4),
    "trace": Case("CrawlTrace", {"trace": "garden-handbook"}),
    "longevity": Case("CrawlLongevity", {"num_pages": PAGES}, steps=601),
    "offers": Case("CrawlOffers", _OFFERS, 85, 0.2),
    "offers, not copied": Case("CrawlOffers", {**_OFFERS, "copy": False}, 85, 0.2),
    "offers, a year": Case("CrawlOffers", {**_OFFERS, "horizon": 350.0}, 85, 0.2),
    "ncis, single": Case("CrawlNCIS", _NCIS, lanes=None),
}


def newest(family: str) -> str:
    """Return the registered id of a family with the highest version."""
    specs = [spec for spec in gymnasium.registry.values() if spec.name == family]
    return max(specs, key=lambda spec: spec.version or 0).id


def step_task(env: Any, actions: Any, *, resets: bool = False) -> Callable[[int], None]:
    """Return the task of stepping an environment, with resets after ends of episodes if asked for.

    The actions, an array of some steps, are reused; the environment must have been reset.
    """

    def task(times: int) -> None:
        for step in range(times):
            result = env.step(actions[step % len(actions)])
            if resets and (result[2] or result[3]):
                env.reset()

    return task


def stepping(case: Case) -> Callable[[int], None]:
    """Return the task of stepping a case a number of times."""
    single, name = case.lanes is None, newest(case.family)
    env: Any
    if single:
        env = gymnasium.make(name, **case.arguments)
    else:
        env = gymnasium.make_vec(name, num_envs=case.lanes, **case.arguments)
    rng, space = np.random.default_rng(0), env.action_space
    if case.most is None:
        high = space.n if single else space.nvec[0]
        actions = rng.integers(high, size=(PLANNED, *space.shape))
    else:
        actions = rng.uniform(0.0, case.most, size=(PLANNED, *space.shape))
    env.reset(seed=0)
    return step_task(env, actions, resets=single)


def main() -> None:
    """Answer requests until the end of the input; the first line is the folder of the package."""
    print(json.dumps(os.path.dirname(crawl_envs.__file__)), flush=True)
    task: Callable[[int], None] | None = None
    for line in sys.stdin:
        request, start = json.loads(line), time.thread_time()
        if isinstance(request, str):
            task = stepping(CASES[request])
        elif task is not None:
            task(request)
        print(json.dumps(time.thread_time() - start), flush=True)


if __name__ == "__main__":
    main()
