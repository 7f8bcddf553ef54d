"""The optimal continuous policy with noisy signals: Theorem 1 of Busa-Fekete et al."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray, Instance, IntArray, Problem
from crawl_envs.types.arguments import quantity
from crawl_envs.types.evidence import signal_evidence
from policies.solvers.allocation import Allocation, checked_floor, normalised, source_parameters
from policies.solvers.binary_periodic import solve_periodic
from policies.solvers.crawl_cost import columns_and_cost, in_crawls
from policies.solvers.multiplier import root
from policies.solvers.noisy_signals.mixed import Mixed
from policies.solvers.noisy_signals.one_source import OneSource
from policies.solvers.noisy_signals.sources import evidence_margin

BUDGET_TOLERANCE = 1e-11
"""Relative error of the budget at which the search for the multiplier ends."""

SILENT = 1e-30
"""Recalls below this count as 0: such signals never come, and rates would underflow."""

SAMPLED_ABOVE = 100_000
SAMPLE = 10_000

Pages = OneSource | Mixed


class _Solution(NamedTuple):
    """A multiplier, with the state and the crawl rate of each page at this multiplier."""

    multiplier: float
    state: FloatArray
    rates: FloatArray
    iterations: int


def ncis(
    problem: Instance | Problem,
    bandwidth: float | None = None,
    *,
    floor: ArrayLike = 0.0,
    cost: ArrayLike | None = None,
) -> Allocation:
    r"""Return optimal thresholds of continuous crawling with noisy signals (Theorem 1).

    Maximises the importance-weighted freshness ``sum mu~ w(iota) / psi(iota)`` over thresholds of
    the effective elapsed time, with crawl rates ``f(iota) = 1 / psi(iota)`` that spend the
    bandwidth: no policy with this long-run spending is better. For a multiplier Lambda each page
    is crawled where its value V reaches Lambda c, with c the cost of a crawl.

    A page whose value never reaches this price, V(inf) <= Lambda c, has rate 0. A ``floor`` is
    the least rate of every page, and the rate of pages that never change or have no importance.

    Two kinds of pages are crawled on signals at any time (``thresholds`` inf, ``signals`` finite).
    With recall 1 the value increases with the number n of signals only. Without false signals one
    signal is certain: a page with a threshold of inf is then crawled on signals only, at their
    rate. To spend the budget, rates between two such steps are randomised by ``probabilities`` (1
    elsewhere). A page with recall 1 is crawled at its ``signals``-th signal with this probability,
    and otherwise at the next; a page without false signals, at each signal with this probability.

    With several sources, effective elapsed time is the time since the last crawl plus ``beta_s``
    for every signal from source s (see :mod:`policies.values.sources`). If recalls sum to 1
    (to within SIGNALLED of the rate of all signals), the state is the ``evidence`` of signals: a
    page is crawled at this level with its probability, and otherwise above it. A page with
    ``evidence`` inf is crawled at each certain signal with its probability. Rates match their
    thresholds to six digits. Where recalls sum to nearly 1, cycles rise in many steps, and the
    error was below 1e-3 in 99 of 100 random cases, and at most .1; that of the objective was at
    most 4.3e-4. A page of several sources takes .1 to .6 ms; one with at most one useful source is
    solved as a page of one.

    Args:
        problem: an instance, or a problem that reveals the parameters of its pages.
        bandwidth: cost of all crawls per unit time, > 0; that of ``problem`` by default.
        floor: least crawl rate of each page, >= 0, in the supported domain, (m,) or a scalar.
        cost: c, the cost of a crawl of each page, > 0, shape (m,), or a scalar; None for that of
            ``problem`` if it has one, else 1.

    Returns:
        The allocation, with ``thresholds``, ``signals`` and ``evidence``. The multiplier is 0, and
        some of the budget unspent, if every change is signalled and crawled immediately.

    Raises:
        ValueError: the change rates are unknown, all importance is zero, the bandwidth is not
            positive, a floor is negative, all cost more than the bandwidth, a cost is not > 0.
    """
    weight, change_rate, recall, false_rate = source_parameters(problem)
    recall = np.where(recall < SILENT, 0.0, recall)
    bandwidth = problem.bandwidth if bandwidth is None else bandwidth
    bandwidth = quantity("bandwidth", bandwidth, above=0.0)
    cost = getattr(problem, "cost", None) if cost is None else cost
    weight, costs = columns_and_cost(cost, importance=weight)
    weight = normalised(weight)
    change_rate, false_rate = change_rate * costs, false_rate * costs
    floors = checked_floor(floor, costs, bandwidth)
    spend = floors * costs
    useful = np.flatnonzero((weight > 0.0) & (change_rate > 0.0))
    columns = [array[..., useful] for array in (weight, change_rate, recall, false_rate)]
    pages = _pages(*columns)
    available = bandwidth - float(np.delete(spend, useful).sum())
    solution = _spend(pages, spend[useful], available)
    levels = pages.levels(solution.state, solution.rates)
    waiting = np.divide(1.0, spend, out=np.full(len(spend), math.inf), where=spend > 0.0)
    thresholds, evidence, probabilities, signals = (
        _place(array, useful, np.full(len(weight), default))
        for array, default in zip(levels, (waiting, math.inf, 1.0, math.inf), strict=True)
    )
    rates = _place(solution.rates, useful, spend)
    if problem.recall is not None and problem.recall.ndim > 1:
        signals = _signals_needed(evidence, signal_evidence(change_rate, recall, false_rate))
        signals[:, np.isinf(evidence) & ((rates == 0.0) | (weight == 0.0))] = math.inf
    static = float(weight[change_rate == 0.0].sum())
    allocation = Allocation(
        rates=rates,
        probabilities=probabilities,
        multiplier=solution.multiplier,
        objective=min(max(_freshness(pages, solution), 0.0) + static, 1.0),
        iterations=solution.iterations,
        converged=solution.multiplier == 0.0 or bool(abs(rates.sum() / bandwidth - 1.0) <= 1e-9),
        thresholds=thresholds,
        signals=signals,
        evidence=evidence,
    )
    return in_crawls(allocation, costs, floors)


def _pages(*parameters: FloatArray) -> Pages:
    """Return pages for importance and change rate, (k,), recall and false-signal rate, (S, k)."""
    return OneSource(*parameters) if len(parameters[2]) == 1 else Mixed(*parameters)


def _freshness(pages: Pages, solution: _Solution) -> float:
    """Return the freshness; crawls beyond signals do not count where every change is signalled."""
    rates = solution.rates
    useful = np.where(pages.alpha == 0.0, np.minimum(rates, pages.signal_rate), rates)
    return pages.freshness(solution.state, useful)


def _signals_needed(evidence: FloatArray, single: FloatArray) -> FloatArray:
    """Return how many signals of each source, worth ``single``, reach ``evidence`` (m,); (S, m)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = evidence_margin(evidence, single)
        number = np.maximum(np.ceil((evidence - margin) / single), 1.0)
    certain = np.isinf(single)
    return np.where(certain, 1.0, np.where(single > 0.0, number, math.inf))


def _place(values: FloatArray, useful: IntArray, array: FloatArray) -> FloatArray:
    array[useful] = values
    return array


def _start(pages: Pages, floor: FloatArray, bandwidth: float) -> float:
    """Return a first multiplier: the optimum without signals, or the one of a sample of pages."""
    importance, change_rate = pages.parameters[:2]
    count = len(importance)
    if count > SAMPLED_ABOVE:
        step = count // SAMPLE
        sample = _pages(*(np.ascontiguousarray(array[..., ::step]) for array in pages.parameters))
        share = bandwidth * len(sample.parameters[0]) / count
        solution = _spend(sample, floor[::step], share)
        if solution.multiplier > 0.0:
            return solution.multiplier
    allocation = solve_periodic(normalised(importance), change_rate, bandwidth)
    return allocation.multiplier * float(importance.sum())


def _spend(pages: Pages, floor: FloatArray, bandwidth: float) -> _Solution:
    """Return the multiplier at which pages spend the bandwidth, with their states and rates.

    Rates jump at the steps of a page whose every change is signalled, or where pages drop out.
    """
    importance, change_rate = pages.parameters[:2]
    state, rates = np.zeros((len(importance), 3)), floor.copy()
    every = np.maximum(pages.signal_rate, floor)
    multiplier = float((importance / change_rate).max(initial=0.0))
    iterations = 0
    if not pages.alpha.any() and every.sum() <= bandwidth:  # as good as it gets
        multiplier, rates = 0.0, every
    elif rates.sum() < bandwidth * (1.0 - BUDGET_TOLERANCE):

        def spend(point: float, out: FloatArray) -> tuple[float, float]:
            filled = out if out.size > 0 else rates
            pages.spend(1.0 / point, state, filled)
            np.maximum(filled, floor, out=filled)
            return float(filled.sum()) / bandwidth, math.nan

        start = 1.0 / min(_start(pages, floor, bandwidth), 0.9 * multiplier)
        optimum = root(spend, start, rates, BUDGET_TOLERANCE)
        multiplier, iterations = 1.0 / optimum.point, optimum.iterations
    pages.settle(state, rates)
    return _Solution(multiplier, state, rates, iterations)
