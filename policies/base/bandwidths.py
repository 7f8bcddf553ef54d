"""The bandwidths to allocate in an episode, which may change in steps, and shares of them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, Problem

ROUNDING = 1e-12
"""Relative rounding error of a number of slots or epochs that counts as a whole number."""


def slot_bandwidths(problem: Problem, slots: int) -> list[tuple[float, int]]:
    """Return the pairs (bandwidth, number of crawls at it) of an episode of ``slots`` crawls."""
    periods: list[tuple[float, int]] = []
    crawls, begin, rate, due = 0, 0.0, problem.bandwidth, 0.0
    for time, next_rate in (*problem.bandwidth_steps, (math.inf, rate)):
        due += (time - begin) * rate
        end = slots if due >= slots else math.floor(due * (1.0 + ROUNDING))
        if end > crawls:
            periods.append((rate, end - crawls))
        crawls, begin, rate = end, time, next_rate
    return periods or [(problem.bandwidth, 0)]


def epoch_bandwidths(problem: Problem, epoch: float | None) -> list[tuple[float, float]]:
    """Return the pairs (start time, bandwidth) of the allocations of an episode; the first is at 0.

    An epoch has its mean bandwidth. With ``epoch`` None every bandwidth step starts an allocation.
    """
    steps = ((0.0, problem.bandwidth), *problem.bandwidth_steps)
    if epoch is None:
        return list(steps)
    frequency = 1.0 / epoch
    numbers = {0}
    for time, _ in steps[1:]:
        number = math.floor(time * frequency * (1.0 + ROUNDING))
        numbers |= {number, number + 1}
    starts = {number: number / frequency for number in sorted(numbers)}
    return [
        (start, _mean_bandwidth(steps, start, (number + 1) / frequency))
        for number, start in starts.items()
    ]


def bandwidth_at(problem: Problem, epoch: float, time: float) -> float:
    """Return the mean bandwidth of the epoch that begins at a time."""
    reached = time * (1.0 + 1e-9)
    return [rate for start, rate in epoch_bandwidths(problem, epoch) if start <= reached][-1]


def as_shares(
    action: FloatArray, problem: Problem, epoch: float, time: float
) -> NDArray[np.float32]:
    """Return an action of the form ``rates`` in the form ``shares``, (m,), in [-1, 1].

    A rate, times the cost of a crawl, is divided by the mean bandwidth of the epoch that begins at
    ``time``. The probabilities of pages with complete observation are shares themselves. Shares are
    rounded down, so that they spend no more than the rates.
    """
    spend = action if problem.cost is None else action * problem.cost
    shares = spend / bandwidth_at(problem, epoch, time)
    if problem.complete is not None:
        shares = np.where(problem.complete, action, shares)
    exact = 2.0 * np.minimum(shares, 1.0) - 1.0
    rounded = exact.astype(np.float32)
    return np.where(rounded > exact, np.nextafter(rounded, np.float32(-1.0)), rounded)


def _mean_bandwidth(steps: tuple[tuple[float, float], ...], start: float, end: float) -> float:
    crawls = 0.0
    for (begin, bandwidth), (until, _) in pairwise((*steps, (math.inf, 0.0))):
        crawls += max(min(end, until) - max(start, begin), 0.0) * bandwidth
    return crawls / (end - start)
