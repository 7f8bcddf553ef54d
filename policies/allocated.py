"""Policies that allocate crawl rates to pages, and then follow a schedule of them."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Literal, get_args

import numpy as np

from crawl_envs.types import FloatArray, IntArray, Problem
from policies import schedules, solvers
from policies.sequence import SequencePolicy

Schedule = Literal["low_discrepancy", "tijdeman", "random"]


class AllocatedPolicy(SequencePolicy):
    """Crawls pages at given rates.

    Args:
        env: a crawl environment, single or vector, wrapped or not.
        schedule: how rates become crawls: ``low_discrepancy`` or ``tijdeman`` (see
            :func:`policies.schedules.low_discrepancy`), or ``random``: independent draws.

    Raises:
        ValueError: as for :class:`policies.sequence.SequencePolicy`; unknown schedule.
    """

    def __init__(self, env: Any, *, schedule: Schedule = "low_discrepancy") -> None:
        super().__init__(env)
        if schedule not in get_args(Schedule):
            raise ValueError(f"schedule must be one of {get_args(Schedule)}, got {schedule!r}")
        self.schedule = schedule

    @abstractmethod
    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Crawls per unit time of each page, shape (m,), in sum ``bandwidth``."""

    def _regimes(self, problem: Problem, slots: int) -> list[tuple[float, int]]:
        """The bandwidths to allocate, one after the other, and for how many slots."""
        return [(problem.bandwidth, slots)]

    def _sequence(self, problem: Problem, slots: int, coins: np.random.Generator) -> IntArray:
        regimes = self._regimes(problem, slots)
        return np.concatenate(
            [self._crawls(self.rates(problem, rate), count, coins) for rate, count in regimes]
        )

    def _crawls(self, rates: FloatArray, slots: int, coins: np.random.Generator) -> IntArray:
        if self.schedule == "random":
            return schedules.random(rates, slots, coins)
        method: schedules.Method = "deadline" if self.schedule == "low_discrepancy" else "tijdeman"
        return schedules.low_discrepancy(rates, slots, method=method)


class LowDiscrepancy(AllocatedPolicy):
    """The rates that are optimal for evenly spaced crawls, without signals (NCIS, eq. 5).

    With its default schedule, the LDS of Busa-Fekete et al., section 6.4, after Algorithm 3 of
    Azar et al. When the bandwidth steps, it solves for the new one and starts a new schedule.
    """

    needs = ("importance", "change_rate")

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Optimal rates, shape (m,); equal ones where no page needs any crawl."""
        assert problem.change_rate is not None
        if not problem.importance.any():
            return _even(problem, bandwidth)
        found = solvers.binary_periodic(problem.importance, problem.change_rate, bandwidth).rates
        return found if found.any() else _even(problem, bandwidth)

    def _regimes(self, problem: Problem, slots: int) -> list[tuple[float, int]]:
        regimes: list[tuple[float, int]] = []
        made, begin, rate = 0, 0.0, problem.bandwidth
        due = 0.0
        for time, next_rate in (*problem.bandwidth_steps, (math.inf, rate)):
            due += (time - begin) * rate
            end = slots if due >= slots else math.floor(due * (1.0 + 1e-12))
            if end > made:
                regimes.append((rate, end - made))
            made, begin, rate = end, time, next_rate
        return regimes or [(problem.bandwidth, 0)]


class UniformCrawl(AllocatedPolicy):
    """Crawls every page at the same rate."""

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Equal rates, shape (m,)."""
        return _even(problem, bandwidth)


class ChangeRateCrawl(AllocatedPolicy):
    """Crawls every page in proportion to its change rate; at equal rates if none changes."""

    needs = ("change_rate",)

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Rates in proportion to the change rates, shape (m,)."""
        assert problem.change_rate is not None
        largest = problem.change_rate.max()
        if largest <= 0.0:
            return _even(problem, bandwidth)
        shares: FloatArray = problem.change_rate / largest
        shares *= bandwidth / shares.sum()
        return shares


def _even(problem: Problem, bandwidth: float) -> FloatArray:
    return np.full(problem.num_pages, bandwidth / problem.num_pages)
