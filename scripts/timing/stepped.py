"""Environments whose steps are timed, and a process that steps them on request.

The process imports only the registered environments, so it can run with another checkout on its
path. It answers lines of JSON with seconds of processor time: a name of CASES makes this case, a
number executes that many steps.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import crawl_envs  # noqa: F401  # registers the environments

LANES, PAGES = 64, 100
PAGES_DRAWN, RATES_DRAWN = 1024, 16
"""Numbers of random actions (pages; vectors of rates) that are drawn in advance and reused."""


class Case(NamedTuple):
    """An environment to step: family and arguments, with random pages or rates < ``max_rate``.

    One execution has ``steps`` steps, which are an episode with its reset if resets are slow.
    ``lanes`` is None for a single environment; ``wrapped`` keeps the wrappers of ``make``. The
    first reset gets ``options``. ``pages`` is the number of pages.
    """

    family: str
    arguments: Mapping[str, Any] = {}
    steps: int = 1
    max_rate: float | None = None
    lanes: int | None = LANES
    wrapped: bool = True
    options: Mapping[str, Any] | None = None
    pages: int = PAGES


def ncis(pages: int) -> dict[str, Any]:
    """Return the arguments of an environment of pages that are crawled once per unit of time."""
    return {"num_pages": pages, "bandwidth": float(pages), "instance": "noisy"}


NCIS = ncis(PAGES)
_HARMONIC = {"num_pages": PAGES, "bandwidth": 20.0}
_OFFERS = {"num_pages": 1000, "bandwidth": 100.0}
CASES = {
    "ncis": Case("CrawlNCIS", NCIS),
    "ncis, not copied": Case("CrawlNCIS", {**NCIS, "copy": False}),
    "harmonic, pages": Case("CrawlHarmonic", {**_HARMONIC, "action": "page"}),
    "harmonic, rates": Case("CrawlHarmonic", {**_HARMONIC, "action": "rates"}, max_rate=0.4),
    "trace": Case("CrawlTrace", {"trace": "garden-handbook"}, pages=65),
    "longevity": Case("CrawlLongevity", {"num_pages": PAGES}, steps=601),
    "offers": Case("CrawlOffers", _OFFERS, 85, 0.2, pages=1000),
    "offers, a year": Case("CrawlOffers", {**_OFFERS, "horizon": 350.0}, 85, 0.2, pages=1000),
    "ncis, single": Case("CrawlNCIS", NCIS, lanes=None),
}


def newest(family: str) -> str:
    """Return the id of a family's environment with the highest registered version."""
    specs = [spec for spec in gymnasium.registry.values() if spec.name == family]
    return max(specs, key=lambda spec: spec.version or 0).id


def make_env(case: Case) -> Any:
    """Make and reset the environment of a case, and return it."""
    name = newest(case.family)
    env: Any
    if case.lanes is None:
        env = gymnasium.make(name, **case.arguments)
    else:
        env = gymnasium.make_vec(name, num_envs=case.lanes, **case.arguments)
    env = env if case.wrapped else env.unwrapped
    env.reset(seed=0, options=case.options)
    return env


def random_actions(space: Any, max_rate: float | None = None) -> Any:
    """Draw many random actions of a space: pages, or rates below ``max_rate`` if given."""
    rng = np.random.default_rng(0)
    if max_rate is not None:
        return rng.uniform(0.0, max_rate, size=(RATES_DRAWN, *space.shape))
    high = space.n if hasattr(space, "n") else space.nvec[0]
    return rng.integers(high, size=(PAGES_DRAWN, *space.shape))


def step_task(env: Any, actions: Any, *, resets: bool = False) -> Callable[[int], None]:
    """Return a task that steps an environment; with ``resets``, it resets after each episode.

    The rows of ``actions`` are reused in turn. The environment must have been reset.
    """

    def task(times: int) -> None:
        for step in range(times):
            result = env.step(actions[step % len(actions)])
            if resets and (result[2] or result[3]):
                env.reset()

    return task


def stepping(case: Case) -> Callable[[int], None]:
    """Make the environment of a case, and return a task that steps it with random actions."""
    env = make_env(case)
    actions = random_actions(env.action_space, case.max_rate)
    return step_task(env, actions, resets=case.lanes is None)


def main() -> None:
    """Answer each line of JSON with the seconds it took, until the end of the input."""
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
