"""The result of a solver, and checks of the arguments of solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray, Instance, Problem
from crawl_envs.types.arguments import check_domain, page_arrays, per_page


@dataclass(frozen=True, eq=False)
class Allocation:
    """The result of a solver.

    Attributes:
        rates: crawls per unit time of each page, shape (m,), float64, >= 0.
        probabilities: probability of a crawl on a signal, shape (m,), in [0, 1]; None where the
            problem has none.
        multiplier: price of one unit of cost per unit time, in units of the objective (normalised
            importance for freshness); 0 where the budget exceeds what is useful. Crawls cost 1
            unless the solver has an argument ``cost``.
        objective: value of the objective at ``rates``.
        iterations: passes over all pages.
        converged: whether the budget is spent to 1e-9 (relative), or exceeds what is useful.
        thresholds: effective elapsed time at which each page is crawled, shape (m,), > 0; inf
            where time alone never leads to a crawl; None if the solver returns rates only.
        signals: number of signals since the last crawl that lead to a crawl at any time, shape
            (m,), float64, >= 1; inf where no number does; None if not computed. With several
            sources: the numbers for signals of one source only, shape (S, m).
        evidence: ``-ln`` of the probability that a page is fresh, in nats, at which it is crawled,
            shape (m,), >= 0; inf where only certainty leads to a crawl; None if not computed.
    """

    rates: FloatArray
    probabilities: FloatArray | None
    multiplier: float
    objective: float
    iterations: int
    converged: bool
    thresholds: FloatArray | None = None
    signals: FloatArray | None = None
    evidence: FloatArray | None = None


def source_parameters(problem: Instance | Problem) -> tuple[FloatArray, ...]:
    """Return a problem's importance and change rate, (m,), recall and false-signal rate, (S, m)."""
    if not isinstance(problem, Instance | Problem):
        raise ValueError(f"problem must be an Instance or a Problem, got {problem!r}")
    change_rate, recall, false_rate = problem.change_rate, problem.recall, problem.false_signal_rate
    if change_rate is None or recall is None or false_rate is None:
        raise ValueError("problem must reveal the parameters of the pages, got change_rate=None")
    importance, change_rate = page_arrays(importance=problem.importance, change_rate=change_rate)
    sources = [
        page_arrays(recall=share, false_signal_rate=rate)
        for share, rate in zip(np.atleast_2d(recall), np.atleast_2d(false_rate), strict=True)
    ]
    return importance, change_rate, *(np.stack(arrays) for arrays in zip(*sources, strict=True))


def checked_floor(floor: ArrayLike, cost: FloatArray, bandwidth: float) -> FloatArray:
    """Return least crawl rates of pages, (m,); ValueError if the bandwidth does not pay them."""
    floors = per_page("floor", floor, cost.size)
    check_domain("floor", floors)
    if not floors @ cost <= bandwidth * (1.0 + 1e-12):
        raise ValueError(
            f"floor must cost at most the bandwidth, {bandwidth:g}, got crawl rates that cost "
            f"{floors @ cost:g}; a floor of all pages can be {bandwidth / cost.sum():g}"
        )
    return floors


def normalised(importance: FloatArray) -> FloatArray:
    """Return importance as shares of its sum (mu~); ValueError if all of it is zero."""
    largest = importance.max()
    if largest <= 0.0:
        raise ValueError("importance must be positive for at least one page, got all zeros")
    shares: FloatArray = importance / largest
    shares /= shares.sum()
    return shares
