"""Simulate a month of 1.3 million offers in steps of two hours, and measure time and memory.

This is the size of Han et al. 2020, section 4, here without an environment: the market is drawn
day by day, and only the tracker's data are kept. Every policy runs in a separate process that
reports the time of each part and its peak memory. Also measured are ``env.step`` at the size of
the experiments here, and predictions for one day. Writes ``offers.csv`` and ``provenance.json``.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from agents.predictors import TASKS, load, names
from crawl_envs.instances.market import market
from crawl_envs.types import FloatArray
from crawl_envs.types.offer_features import OfferFeatures
from crawl_envs.types.worker_processes import pool
from crawl_envs.worlds.offers.lanes import OfferLanes, offer_form
from crawl_envs.worlds.offers.law import STEPS_PER_DAY, Market
from crawl_envs.worlds.rollouts import ONE_LANE, Pinned
from policies.offers.strategies import discrete_rates
from scripts.timing.commands import Cases, Measurement, compiling, measuring
from scripts.timing.turns import taken

OFFERS, DAYS, QUICK_OFFERS, QUICK_DAYS = 1_300_000, 31, 20_000, 3
STEPPED_OFFERS, STEPPED_DAYS = 20_000, 7
CRAWLS_PER_OFFER = 0.1
UNIFORM, LAMBDA = "UniformCrawl", "DiscreteLambdaCrawl, history"
ONE_DAY, STEPS = "predictions of one day", "env.step"


class Figure(NamedTuple):
    """A measured number with its run, numbers of offers and days, description, and unit."""

    run: str
    offers: int
    days: int
    what: str
    value: float
    unit: str


@contextmanager
def added(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Add the wall time of the block to that of a part."""
    start = time.perf_counter()
    yield
    seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - start


def uniform_rates(features: OfferFeatures, bandwidth: float) -> FloatArray:
    """Return equal rates."""
    return np.full(features.clicks_30.size, bandwidth / features.clicks_30.size)


def history_rates(features: OfferFeatures, bandwidth: float) -> FloatArray:
    """Return the rates of LambdaCrawl for the averages of the last 30 days."""
    change = np.minimum(features.change_frequency.astype(np.float64), 1.0)
    clicks = features.clicks_30.astype(np.float64)
    return discrete_rates(clicks, change, bandwidth, float(STEPS_PER_DAY), 1.0 / STEPS_PER_DAY)


STRATEGIES: dict[str, Callable[[OfferFeatures, float], FloatArray]] = {
    UNIFORM: uniform_rates,
    LAMBDA: history_rates,
}


def lane_of(drawn: Market, days: int) -> OfferLanes:
    """Return a lane of a market at the start of an episode, without observations."""
    m, bandwidth = drawn.num_pages, drawn.bandwidth
    form = offer_form("rates", m, bandwidth)
    arguments: dict[str, Any] = {"horizon": float(days), "reveal": "importance", "observed": False}
    lanes = OfferLanes(1, Pinned(m), form, **arguments)
    lanes.begin(ONE_LANE, [0], [drawn])
    return lanes


def played(strategy: str, offers: int, days: int) -> list[Figure]:
    """Simulate a strategy; return its times by part, its memory, and its freshness."""
    seconds: dict[str, float] = {}
    part, start = partial(added, seconds), time.perf_counter()
    with part("market"):
        drawn = market(offers, seed=0, bandwidth=CRAWLS_PER_OFFER * offers)
    with part("history and first day"):
        lanes = lane_of(drawn, days)
    for _ in range(days):
        with part("features"):
            features = lanes.features_of(0)
        with part("solve"):
            rates = STRATEGIES[strategy](features, CRAWLS_PER_OFFER * offers)
        for step in range(STEPS_PER_DAY):
            ends = step == STEPS_PER_DAY - 1
            with part("last steps of days, and the next day" if ends else "other steps"):
                lanes.play((rates[np.newaxis],))
                lanes.newly_ended()
    total = time.perf_counter() - start
    ledger = lanes.ledger(0)
    figure = partial(Figure, strategy, offers, days)
    return [
        *(figure(name, value, "s") for name, value in seconds.items()),
        figure("total", total, "s"),
        figure("peak memory", peak_memory(), "GB"),
        figure("clicks that saw the true price", ledger.hits / max(ledger.requests, 1), "share"),
        figure("offers fresh at midnight", ledger.offer_freshness, "share"),
    ]


def peak_memory() -> float:
    """Return the peak memory of this process, in GB."""
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def predicted(name: str, offers: int) -> list[Figure]:
    """Predict the events of all offers on one day; return the time of each task."""
    figure = partial(Figure, f"{ONE_DAY}, {name}", offers, 1)
    drawn = market(offers, seed=0, bandwidth=CRAWLS_PER_OFFER * offers)
    features = lane_of(drawn, 1).features_of(0)
    predictors = load(name)
    seconds = {task: taken(predictors[task].predict, features) for task in TASKS}
    return [
        *(figure(task, value, "s") for task, value in seconds.items()),
        figure("total", sum(seconds.values()), "s"),
        figure("peak memory", peak_memory(), "GB"),
    ]


def stepped(offers: int, days: int) -> list[Figure]:
    """Step the environment with equal rates; return the mean and the median time of a step."""
    env = gymnasium.make("CrawlOffers-v1", num_pages=offers, horizon=float(days))
    env.reset(seed=0)
    rates = np.full(offers, CRAWLS_PER_OFFER)
    seconds = [taken(env.step, rates) for _ in range(days * STEPS_PER_DAY)]
    env.close()
    figure = partial(Figure, STEPS, offers, days)
    return [
        figure("mean step", 1e3 * float(np.mean(seconds)), "ms"),
        figure("median step", 1e3 * float(np.median(seconds)), "ms"),
    ]


def run_in_process(task: Callable[[], list[Figure]]) -> list[Figure]:
    """Run a task in a new process; it is killed if this one is interrupted.

    Raises:
        BrokenProcessPool: the process was killed.
    """
    with pool(1) as workers:
        return workers.submit(task).result()


def _tasks(offers: int, days: int, stepped_offers: int, stepped_days: int) -> Cases:
    tasks: list[partial[list[Figure]]] = [partial(played, one, offers, days) for one in STRATEGIES]
    tasks += [partial(predicted, name, offers) for name in names()]
    tasks.append(partial(stepped, stepped_offers, stepped_days))
    return {", ".join(map(str, task.args)): partial(run_in_process, task) for task in tasks}


def cases(quick: bool) -> Cases:
    """Return the tasks, each in a new process, after a short run of each that compiles."""
    sizes = (QUICK_OFFERS, QUICK_DAYS) if quick else (OFFERS, DAYS)
    measured = _tasks(*sizes, STEPPED_OFFERS, 1 if quick else STEPPED_DAYS)
    return {**compiling(_tasks(100, 1, 100, 1)), **measured}


OF = Measurement("scripts.timing.offers_scale", {"offers": Figure}, "A month of offers")
app = measuring(OF, __doc__, cases)

if __name__ == "__main__":
    app()
