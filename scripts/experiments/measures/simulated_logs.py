"""Simulate crawl logs under eight laws of changes, one of them the law of the formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, IntArray
from policies.live.logs.crawl_log import CrawlLog
from policies.live.logs.imputation import Changes
from scripts.live.example_log import changes_found

CHANGE_RATE, SHAPE = 0.2, 1.5
"""Mean changes per day and page, and shape of the Gamma distribution of change rates."""
RECALL, FALSE_SIGNAL_RATE = 0.6, 0.03
"""Share of the changes with a signal, and false signals per day and page."""


def poisson(rng: np.random.Generator, rate: FloatArray, days: float) -> Changes:
    """Return changes of m pages as Poisson processes with a rate per page."""
    page = np.repeat(np.arange(rate.size), rng.poisson(rate * days))
    return Changes(page, rng.random(page.size) * days)


def bursts(
    rng: np.random.Generator, rate: FloatArray, days: float, size: float = 4.0, gap: float = 0.3
) -> Changes:
    """Return changes in bursts: at Poisson times, a geometric number with exponential gaps."""
    begun = poisson(rng, rate / size, days)
    number = rng.geometric(1.0 / size, begun.page.size)
    page, time = np.repeat(begun.page, number), np.repeat(begun.time, number)
    since = rng.exponential(gap, page.size)
    first = np.cumsum(number) - number
    since[first] = 0.0
    total = np.cumsum(since)
    return Changes(page, time + total - np.repeat(total[first], number))


def slowing(rng: np.random.Generator, rate: FloatArray, days: float, times: float = 8.0) -> Changes:
    """Return Poisson changes whose rate starts ``times`` as high and falls over days / 8."""
    drawn = poisson(rng, rate * times, days)
    still = 1.0 / times + (1.0 - 1.0 / times) * np.exp(-drawn.time * 8.0 / days)
    accepted = rng.random(still.size) < still
    return Changes(drawn.page[accepted], drawn.time[accepted])


def weekly(rng: np.random.Generator, rate: FloatArray, days: float) -> Changes:
    """Return Poisson changes that occur from 8 to 18 o'clock, on five days of the week."""
    drawn = poisson(rng, rate * 24.0 / 10.0 * 7.0 / 5.0, days)
    hour, day = drawn.time % 1.0 * 24.0, drawn.time % 7.0
    accepted = (hour >= 8.0) & (hour < 18.0) & (day < 5.0)
    return Changes(drawn.page[accepted], drawn.time[accepted])


def deploys(rng: np.random.Generator, rate: FloatArray, days: float) -> Changes:
    """Return changes of which half are Poisson and half occur together on a fifth of all pages."""
    independent = poisson(rng, rate / 2.0, days)
    time = rng.random(rng.poisson(rate.mean() / 2.0 / 0.2 * days)) * days
    changed, page = np.nonzero(rng.random((time.size, rate.size)) < 0.2)
    return Changes(np.append(independent.page, page), np.append(independent.time, time[changed]))


Law = Callable[[np.random.Generator, FloatArray, float], Changes]
SETTINGS: dict[str, tuple[Law, float]] = {
    "Poisson, 2 days": (poisson, 2.0),
    "Poisson, 8 days": (poisson, 8.0),
    "bursts, 2 days": (bursts, 2.0),
    "bursts, 8 days": (bursts, 8.0),
    "slowing down, 2 days": (slowing, 2.0),
    "slowing down, 8 days": (slowing, 8.0),
    "weekly, 3 days": (weekly, 3.0),
    "deploys, 3 days": (deploys, 3.0),
}
"""Law of changes, and days between crawls of a page, by setting."""


def simulated_log(
    name: str,
    rng: np.random.Generator,
    *,
    num_pages: int,
    crawls: int,
) -> tuple[CrawlLog, Changes]:
    """Simulate the crawl log of a setting; return the log and the true changes.

    Args:
        name: a name of SETTINGS.
        rng: random generator.
        num_pages: number of pages.
        crawls: approximate number of crawls of each page after the first.
    """
    law, spacing = SETTINGS[name]
    days = crawls * spacing
    rate = rng.gamma(SHAPE, CHANGE_RATE / SHAPE, num_pages)
    changes = law(rng, rate, days)
    true = Changes(*_by_time(*(column[changes.time < days] for column in changes)))
    false = poisson(rng, np.full(num_pages, FALSE_SIGNAL_RATE), days)
    sent = rng.random(true.page.size) < RECALL
    signals = (np.append(column[sent], more) for column, more in zip(true, false, strict=True))
    signal_page, signal_time = _by_time(*signals)
    page, time = _crawls(rng, num_pages, days, spacing)
    page, changed, time = _by_time(page, changes_found(page, time, true), time)
    log = CrawlLog(
        urls=np.array([str(number) for number in range(num_pages)], np.object_),
        page=page,
        time=time,
        changed=changed,
        gone=np.zeros(page.size, np.bool_),
        signal_page=signal_page,
        signal_time=signal_time,
        signal_source=np.zeros(signal_page.size, np.int64),
        sources=("feed",),
        timed=np.ones(1, np.bool_),
    )
    return log, true


def _by_time(*columns: NDArray[Any]) -> list[NDArray[Any]]:
    """Sort the entries of all columns by the last column, which has times."""
    order = np.argsort(columns[-1], kind="stable")
    return [column[order] for column in columns]


def _crawls(
    rng: np.random.Generator, num_pages: int, days: float, spacing: float
) -> tuple[IntArray, FloatArray]:
    """Return pages and times of crawls, sorted: at day 0, then about every ``spacing`` days.

    Each page has a random phase, and each crawl is up to a fifth of the spacing early or late.
    """
    phase = rng.random(num_pages)[:, None]
    number = np.arange(int(days / spacing))
    late = 0.4 * (rng.random((num_pages, number.size)) - 0.5)
    time = np.clip((number + phase + late) * spacing, 1e-3, days)
    time = np.column_stack([np.zeros(num_pages), np.sort(time, axis=1)])
    return np.repeat(np.arange(num_pages), number.size + 1), time.ravel()
