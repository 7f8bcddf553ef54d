"""The optimal continuous policy with noisy signals: Theorem 1 of Busa-Fekete et al."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.types import FloatArray, Instance, IntArray, Problem
from crawl_envs.types.arguments import check_domain
from crawl_envs.types.evidence import signal_evidence
from policies.solvers.allocation import Allocation, known_sources, normalised, positive
from policies.solvers.binary.periodic import solve_periodic
from policies.solvers.ncis.one_source import SinglePages
from policies.solvers.ncis.pages import AllPages, Pages, evidence_margin
from policies.solvers.ncis.several_sources import SeveralPages
from policies.values.sources.tables import single_sources

BUDGET_TOLERANCE = 1e-11
"""Relative error of the budget at which the search for the multiplier ends."""

NARROW = 1e-9
"""Relative width of a bracket of the multiplier whose rates may be mixed."""

LOST = 1e-13
"""Loss, as a share of the objective, at which they are mixed."""

SAME = 1e-12
"""Relative difference of rates that count as equal when rates are mixed."""

SILENT = 1e-30
"""Recalls below this are taken for 0: no such signal comes, and rates would underflow."""

MAX_ITERATIONS = 200
SAMPLED_ABOVE = 100_000
SAMPLE = 10_000


class _Solution(NamedTuple):
    """A multiplier with the state and the crawl rate of each page."""

    multiplier: float
    state: FloatArray
    rates: FloatArray
    iterations: int


def ncis(
    given: Instance | Problem, bandwidth: float | None = None, *, floor: float = 0.0
) -> Allocation:
    r"""Return optimal thresholds of continuous crawling with noisy signals (Theorem 1).

    Maximises the importance-weighted freshness ``sum mu~ w(iota) / psi(iota)`` over thresholds of
    the effective elapsed time, with crawl rates ``f(iota) = 1 / psi(iota)`` that sum to the
    bandwidth: no policy with this long-run crawl rate is better. For a multiplier Lambda each
    page is crawled where its value V reaches Lambda (Newton's method in a bracket); the multiplier
    is found by secants in a bracket on ``ln sum f`` against ``ln Lambda``.

    A page whose value never reaches the multiplier, V(inf) <= Lambda, has rate 0. A ``floor`` is
    the least rate of every page; pages that never change or have no importance get exactly that.

    Two kinds of pages are crawled on signals at any time (``thresholds`` inf, ``signals`` finite).
    With recall 1 the value increases with the number n of signals only. Without false signals one
    signal is certain: a page with a threshold of inf is then crawled on signals only, at their
    rate. Rates between two such steps, which may be needed to spend the budget, are randomised by
    ``probabilities`` (1 elsewhere): a page with recall 1 is crawled at its ``signals``-th signal
    with this probability, and otherwise at the next; a page without false signals, at each signal
    with this probability.

    With several sources, effective elapsed time is the time since the last crawl plus ``beta_s``
    for every signal from source s (see :mod:`policies.values.sources.values`). If recalls sum to 1
    (to within SIGNALLED of the rate of all signals), the state is the ``evidence`` of signals: a
    page is crawled at this level with its probability, and otherwise above it. A page with
    ``evidence`` inf is crawled at each certain signal with its probability. Rates equal those of
    the thresholds to rounding, unless recalls sum to more than 0.97 and very many sums of weak
    signals lie below the level: for random pages of two and three sources the error was below 1e-2
    in 99 of 100, and at most 3e-2. Pages of several sources take about 1 ms each, and up to 100 ms
    if recalls sum to 1.

    Args:
        given: an instance, or a problem with known parameters.
        bandwidth: crawls per unit time, > 0; that of ``given`` by default.
        floor: least crawl rate of each page, >= 0 and in the supported domain.

    Returns:
        The allocation, with ``thresholds``, ``signals`` and ``evidence``. The multiplier is 0, and
        the budget not fully spent, if every change is signalled and crawled immediately.

    Raises:
        ValueError: the change rates are unknown, all importance is zero, the bandwidth is not
            positive, the floor is negative or more than the bandwidth allows.
    """
    weight, change_rate, recall, false_rate = known_sources(given)
    recall = np.where(recall < SILENT, 0.0, recall)
    weight = normalised(weight)
    bandwidth = positive("bandwidth", given.bandwidth if bandwidth is None else bandwidth)
    floor = _checked_floor(floor, len(weight), bandwidth)
    useful = np.flatnonzero((weight > 0.0) & (change_rate > 0.0))
    kept = [array[..., useful] for array in (weight, change_rate, recall, false_rate)]
    pages = _kinds(useful, *kept)
    available = bandwidth - floor * (len(weight) - len(useful))
    solution = _spend(pages, floor, available, _start(pages, floor, available))
    levels = pages.levels(solution.state, solution.rates)
    waiting = 1.0 / floor if floor > 0.0 else math.inf
    thresholds, evidence, probabilities, signals = (
        _placed(array, pages.places, np.full(len(weight), other))
        for array, other in zip(levels, (waiting, math.inf, 1.0, math.inf), strict=True)
    )
    rates = _placed(solution.rates, pages.places, np.full(len(weight), floor))
    if given.recall is not None and given.recall.ndim > 1:
        signals = _enough(evidence, signal_evidence(change_rate, recall, false_rate))
        signals[:, np.isinf(evidence) & ((rates == 0.0) | (weight == 0.0))] = math.inf
    static = float(weight[change_rate == 0.0].sum())
    return Allocation(
        rates=rates,
        probabilities=probabilities,
        multiplier=solution.multiplier,
        objective=min(max(pages.freshness(solution.state, solution.rates), 0.0) + static, 1.0),
        iterations=solution.iterations,
        converged=solution.multiplier == 0.0 or bool(abs(rates.sum() / bandwidth - 1.0) <= 1e-9),
        thresholds=thresholds,
        signals=signals,
        evidence=evidence,
    )


def _kinds(
    useful: IntArray,
    importance: FloatArray,
    change_rate: FloatArray,
    recall: FloatArray,
    false_rate: FloatArray,
) -> AllPages:
    """Split pages by whether several sources are informative; ``useful`` are their numbers."""
    several = np.zeros(len(useful), np.bool_)
    alone, noise = recall[0], false_rate[0]
    if len(recall) > 1:
        several, alone, noise = single_sources(change_rate, recall, false_rate)
    one, more = np.flatnonzero(~several), np.flatnonzero(several)
    parts: list[tuple[IntArray, Pages]] = [
        (useful[one], SinglePages(importance[one], change_rate[one], alone[one], noise[one]))
    ]
    if len(more) > 0:
        known = (array[..., more] for array in (importance, change_rate, recall, false_rate))
        parts.append((useful[more], SeveralPages(*known)))
    return AllPages(parts)


def _enough(evidence: FloatArray, single: FloatArray) -> FloatArray:
    """Return the number of signals of each source (S, m) that add up to ``evidence`` (m,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = evidence_margin(evidence, single)
        number = np.maximum(np.ceil((evidence - margin) / single), 1.0)
    certain = np.isinf(single)
    return np.where(certain, 1.0, np.where(single > 0.0, number, math.inf))


def _checked_floor(floor: float, num_pages: int, bandwidth: float) -> float:
    if not (math.isfinite(floor) and 0.0 <= floor * num_pages <= bandwidth * (1.0 + 1e-12)):
        raise ValueError(
            f"floor must lie in [0, bandwidth / pages = {bandwidth / num_pages:g}], got {floor!r}"
        )
    check_domain("floor", floor)
    return float(floor)


def _placed(values: FloatArray, useful: IntArray, others: FloatArray) -> FloatArray:
    others[useful] = values
    return others


def _start(pages: AllPages, floor: float, bandwidth: float) -> float:
    """Return a first guess of the multiplier: that without signals, or of a sample of pages."""
    count = len(pages.importance)
    if count > SAMPLED_ABOVE:
        sample = pages.every(count // SAMPLE)
        share = bandwidth * len(sample.importance) / count
        return _spend(sample, floor, share, _start(sample, floor, share)).multiplier
    if count == 0 or not bandwidth > 0.0:
        return 0.0
    allocation = solve_periodic(normalised(pages.importance), pages.change_rate, bandwidth)
    return allocation.multiplier * float(pages.importance.sum())


class _Bracket:
    """The root of a decreasing function, below ``high``: secants within a bracket.

    Where they stall, at jumps, the steps grow, and then the bracket is halved.
    """

    def __init__(self, high: float, slope: float) -> None:
        self.low, self.high = -math.inf, high
        self._above, self._below = math.inf, -math.inf  # values at its ends
        self._at, self._value = math.nan, math.inf  # where it was last
        self._slope, self._stretch, self._stalls = slope, 1.0, 0

    @property
    def closed(self) -> bool:
        """Whether mixing the solutions at both ends loses nothing."""
        width = self.high - self.low
        if not self.low < 0.5 * (self.low + self.high) < self.high:
            return width < math.inf
        return width <= NARROW and width * (self._above - self._below) <= LOST

    def after(self, at: float, value: float) -> float:
        """Return the next point, given ``value`` (which may be -inf) at ``at``."""
        self._stalls = self._stalls + 1 if abs(value) > 0.2 * abs(self._value) else 0
        ahead = self._stalls > 0 and value * self._value > 0.0
        self._stretch = 4.0 * self._stretch if ahead else 1.0
        if math.isfinite(value + self._value) and value != self._value:
            slope = (value - self._value) / (at - self._at)
            self._slope = slope if slope < 0.0 else self._slope
        self._at, self._value = at, value
        if value > 0.0:
            self.low, self._above = at, value
        else:
            self.high, self._below = at, value
        step = max(min(-self._stretch * value / self._slope, 9.0), -9.0)
        half = 0.5 * (self.high - self.low)
        if (self._stalls > 1 and abs(step) > half) or not self.low < at + step < self.high:
            step = min(half, 2.0) if value > 0.0 else -min(half, 2.0)
        return at + step


def _spend(pages: AllPages, floor: float, bandwidth: float, start: float) -> _Solution:
    """Return the multiplier at which the pages spend the bandwidth.

    The rates at both ends of the bracket are kept, and mixed if it closes before the budget is
    spent: at a step of a page whose every change is signalled, or where pages drop out.
    """
    most = float((pages.importance / pages.change_rate).max(initial=0.0))
    few = np.full(len(pages.importance), floor)
    many = np.maximum(pages.signal_rate, floor)  # useful even if every change is signalled
    state = np.zeros((len(few), 3))
    if not pages.alpha.any() and many.sum() <= bandwidth:
        return _settled(pages, floor, _Solution(0.0, state, many, 0))
    if few.sum() >= bandwidth * (1.0 - BUDGET_TOLERANCE):
        return _settled(pages, floor, _Solution(most, state, few, 0))
    bracket = _Bracket(math.log(most), -0.7)
    at = min(math.log(start), bracket.high - 0.1) if start > 0.0 else bracket.high - 1.0
    rates = np.empty_like(few)
    iterations = 0
    while iterations < MAX_ITERATIONS:
        iterations += 1
        spent = pages.spend(math.exp(at), floor, state, rates)
        gap = math.log(spent / bandwidth) if spent > 0.0 else -math.inf
        if abs(gap) <= BUDGET_TOLERANCE:
            return _settled(pages, floor, _Solution(math.exp(at), state, rates, iterations))
        (many if gap > 0.0 else few)[:] = rates
        following = bracket.after(at, gap)
        if bracket.closed:
            break
        at = following
    rates = few + (bandwidth - few.sum()) / (many.sum() - few.sum()) * (many - few)
    state[np.abs(many - few) > SAME * many, 2] = 0.0
    return _settled(pages, floor, _Solution(math.exp(bracket.low), state, rates, iterations))


def _settled(pages: AllPages, floor: float, solution: _Solution) -> _Solution:
    pages.settle(floor, solution.state, solution.rates)
    return solution
