"""The optimal continuous policy with noisy signals: Theorem 1 of Busa-Fekete et al."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crawl_envs.kernels import compiled
from crawl_envs.types import FloatArray, Instance, IntArray, Problem
from policies.lambert import pieces
from policies.solvers.allocation import Allocation, known_parameters, normalised, positive
from policies.solvers.crossing import Point, last, reach
from policies.solvers.periodic import binary_periodic
from policies.value_kernels import greedy_ncis_value
from policies.value_tables import cycle_length_table, greedy_ncis_table
from policies.value_terms import ALPHA, EVIDENCE, FIRST, GAMMA, TOP

BUDGET_TOLERANCE = 1e-11
"""Budget left open, as a share, at which the search for the multiplier ends."""

NARROW = 1e-9
"""Width of a bracket of the multiplier, as a share, between whose ends rates may be mixed."""

LOST = 1e-13
"""Loss, as a share of the objective, at which they are."""

SAME = 1e-12
"""Rates that differ by this share are one where rates are mixed."""

MAX_ITERATIONS = 200
SAMPLED_ABOVE = 100_000
SAMPLE = 10_000


class _Pages(NamedTuple):
    """Pages that change and are of importance: their tables, and the least rate of each."""

    values: FloatArray
    lengths: FloatArray
    floor: float

    def every(self, step: int) -> _Pages:
        """Every ``step``-th page."""
        values, lengths = (np.ascontiguousarray(table[::step]) for table in self[:2])
        return _Pages(values, lengths, self.floor)


class _Found(NamedTuple):
    """A multiplier, and where and how often each page is crawled at it (see ``crossing``)."""

    multiplier: float
    elapsed: FloatArray
    signals: FloatArray
    rates: FloatArray
    iterations: int


def ncis(
    given: Instance | Problem, bandwidth: float | None = None, *, floor: float = 0.0
) -> Allocation:
    r"""Optimal thresholds of continuous crawling with noisy signals (Theorem 1).

    Maximises the importance-weighted freshness ``sum mu~ w(iota) / psi(iota)`` over thresholds of
    the effective elapsed time, with crawl rates ``f(iota) = 1 / psi(iota)`` that sum to the
    bandwidth: no policy of whatever kind that crawls at this rate in the long run does better. For
    a multiplier Lambda each page is crawled where its value V reaches Lambda (Newton's method in a
    bracket); the multiplier by secants in a bracket on ``ln sum f`` against ``ln Lambda``.

    Where a page is never worth the multiplier, V(inf) <= Lambda, its rate is 0. With a ``floor``
    no page is crawled less often than that, and the others compete for what is left. A page that
    never changes, or has no importance, gets the floor alone.

    Two kinds of pages are crawled on signals, whatever the time (``thresholds`` inf, ``signals``
    finite). With recall 1 their value climbs with the number n of signals only. Without false
    signals a single one is certain: then a page with a threshold of inf is crawled on signals
    only, at their rate. Rates between two such steps, which the last of the budget may ask for,
    take a coin (``probabilities``, 1 elsewhere): a page with recall 1 is crawled by its
    ``signals``-th signal with this probability, and else by the next; a page without false
    signals, by each signal with this probability.

    Args:
        given: the instance, or what is known of it; with a single source of signals.
        bandwidth: crawls per unit time, > 0; that of ``given`` by default.
        floor: least crawl rate of each page, >= 0.

    Returns:
        The allocation, with ``thresholds`` and ``signals``. The multiplier is 0, and not all of
        the budget spent, where every change is signalled and crawled away at once.

    Raises:
        ValueError: the change rates are not known, all importance is zero, several sources, the
            bandwidth is not positive, the floor is negative or more than the bandwidth allows.
    """
    parameters = known_parameters(given)
    weight = normalised(parameters[0])
    bandwidth = positive("bandwidth", given.bandwidth if bandwidth is None else bandwidth)
    floor = _checked_floor(floor, len(weight), bandwidth)
    useful = np.flatnonzero((weight > 0.0) & (parameters[1] > 0.0))
    kept = [np.ascontiguousarray(array[useful]) for array in (weight, *parameters[1:])]
    pages = _Pages(greedy_ncis_table(*kept), cycle_length_table(*kept[1:]), floor)
    available = bandwidth - floor * (len(weight) - len(useful))
    found = _spend(pages, available, _start(pages, kept, available))
    thresholds, signals, probabilities = _described(pages, found)
    rates = _placed(found.rates, useful, np.full(len(weight), floor))
    fresh = _freshness(pages.values, found.elapsed, found.signals, found.rates)
    static = float(weight[parameters[1] == 0.0].sum())
    waiting = 1.0 / floor if floor > 0.0 else math.inf
    return Allocation(
        rates=rates,
        probabilities=_placed(probabilities, useful, np.ones(len(weight))),
        multiplier=found.multiplier,
        objective=min(fresh + static, 1.0),
        iterations=found.iterations,
        converged=found.multiplier == 0.0 or bool(abs(rates.sum() / bandwidth - 1.0) <= 1e-9),
        thresholds=_placed(thresholds, useful, np.full(len(weight), waiting)),
        signals=_placed(signals, useful, np.full(len(weight), math.inf)),
    )


def _checked_floor(floor: float, num_pages: int, bandwidth: float) -> float:
    if not (math.isfinite(floor) and 0.0 <= floor * num_pages <= bandwidth * (1.0 + 1e-12)):
        raise ValueError(
            f"floor must lie in [0, bandwidth / pages = {bandwidth / num_pages:g}], got {floor!r}"
        )
    return float(floor)


def _placed(found: FloatArray, useful: IntArray, others: FloatArray) -> FloatArray:
    others[useful] = found
    return others


def _start(pages: _Pages, parameters: Sequence[FloatArray], bandwidth: float) -> float:
    """A first guess of the multiplier: that without signals, or that of a sample of many pages."""
    count = len(pages.values)
    if count > SAMPLED_ABOVE:
        step = count // SAMPLE
        sample = [np.ascontiguousarray(array[::step]) for array in parameters]
        share = bandwidth * len(sample[0]) / count
        part = pages.every(step)
        return _spend(part, share, _start(part, sample, share)).multiplier
    if count == 0 or not bandwidth > 0.0:
        return 0.0
    found = binary_periodic(parameters[0], parameters[1], bandwidth)
    return found.multiplier * float(parameters[0].sum())


class _Bracket:
    """The root of a decreasing function, below ``high``: secants within a bracket.

    Where they stall, at jumps, they reach ever further ahead, and then halve it.
    """

    def __init__(self, high: float, slope: float) -> None:
        self.low, self.high = -math.inf, high
        self._above, self._below = math.inf, -math.inf  # values at its ends
        self._at, self._value = math.nan, math.inf  # where it was last
        self._slope, self._stretch, self._stalls = slope, 1.0, 0

    @property
    def closed(self) -> bool:
        """Whether nothing is lost by mixing what is found at its ends."""
        width = self.high - self.low
        if not self.low < 0.5 * (self.low + self.high) < self.high:
            return width < math.inf
        return width <= NARROW and width * (self._above - self._below) <= LOST

    def after(self, at: float, value: float) -> float:
        """Where to look next, with ``value`` (which may be -inf) found at ``at``."""
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


def _spend(pages: _Pages, bandwidth: float, start: float) -> _Found:
    """The multiplier at which the pages spend the bandwidth.

    The rates at the lower end of the bracket are kept, and those at its upper end, to be mixed
    where it closes before the budget is met: at a step of a page with recall 1, or where pages
    drop out.
    """
    most = float(pages.values[:, TOP].max(initial=0.0))
    few = np.full(len(pages.values), pages.floor)
    many = np.maximum(pages.values[:, GAMMA], pages.floor)  # of use where every change is signalled
    state = np.zeros((3, len(few)))  # elapsed, signals, length: where the next search starts
    if not pages.values[:, ALPHA].any() and many.sum() <= bandwidth:
        return _settled(pages, 0.0, state, many, 0)
    if few.sum() >= bandwidth * (1.0 - BUDGET_TOLERANCE):
        return _settled(pages, most, state, few, 0)
    bracket = _Bracket(math.log(most), -0.7)
    at = min(math.log(start), bracket.high - 0.1) if start > 0.0 else bracket.high - 1.0
    rates = np.empty_like(few)
    iterations = 0
    while iterations < MAX_ITERATIONS:
        iterations += 1
        spent = _pass(*pages, math.exp(at), pieces(), state, rates)
        gap = math.log(spent / bandwidth) if spent > 0.0 else -math.inf
        if abs(gap) <= BUDGET_TOLERANCE:
            return _settled(pages, math.exp(at), state, rates, iterations)
        (many if gap > 0.0 else few)[:] = rates
        following = bracket.after(at, gap)
        if bracket.closed:
            break
        at = following
    rates = few + (bandwidth - few.sum()) / (many.sum() - few.sum()) * (many - few)
    state[2, np.abs(many - few) > SAME * many] = 0.0
    return _settled(pages, math.exp(bracket.low), state, rates, iterations)


def _settled(
    pages: _Pages, multiplier: float, state: FloatArray, rates: FloatArray, iterations: int
) -> _Found:
    _settle(*pages, state, rates)
    return _Found(multiplier, state[0], state[1], rates, iterations)


@compiled()
def _pass(
    values: FloatArray,
    lengths: FloatArray,
    floor: float,
    price: float,
    pieces: FloatArray,
    state: FloatArray,
    rates: FloatArray,
) -> float:
    """Rates at a multiplier, and their sum; ``state`` is where each page's search starts."""
    total = 0.0
    for page in range(rates.size):
        start = Point(state[0, page], state[1, page], state[2, page])
        point = reach(values, lengths, page, price, start, pieces)
        state[0, page] = point.elapsed
        state[1, page] = point.signals
        state[2, page] = point.length
        rates[page] = max(1.0 / point.length, floor)
        total += rates[page]
    return total


@compiled()
def _settle(
    values: FloatArray, lengths: FloatArray, floor: float, state: FloatArray, rates: FloatArray
) -> None:
    """Put every page whose rate is not that of its point to the point of its rate."""
    for page in range(rates.size):
        length = state[2, page]
        if rates[page] > 0.0 and (length == 0.0 or 1.0 / length < floor):
            point = last(values, lengths, page, 1.0 / rates[page])
            state[0, page] = point.elapsed
            state[1, page] = point.signals
            state[2, page] = point.length


@compiled()
def _freshness(
    values: FloatArray, elapsed: FloatArray, signals: FloatArray, rates: FloatArray
) -> float:
    """The sum of mu~ w / psi = rate V + mu~ exp(-y), which also holds between two steps."""
    total = 0.0
    for page in range(rates.size):
        rate = rates[page]
        alpha = values[page, ALPHA]
        if rate == 0.0:
            continue
        if alpha == 0.0:  # more crawls than signals are of no use
            rate = min(rate, values[page, GAMMA])
        value = greedy_ncis_value(values, page, elapsed[page], signals[page])
        weight = values[page, FIRST] * (alpha + values[page, GAMMA])
        y = alpha * elapsed[page] if alpha > 0.0 else 0.0
        if signals[page] > 0.0:
            y += values[page, EVIDENCE] * signals[page]
        total += rate * value + weight * math.exp(-y)
    return total


def _described(pages: _Pages, found: _Found) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Thresholds, signals and probabilities, as :func:`ncis` returns them."""
    alpha, evidence = pages.values[:, ALPHA], pages.values[:, EVIDENCE]
    gamma, crawled = pages.values[:, GAMMA], found.rates > 0.0
    observed, certain = alpha == 0.0, np.isinf(evidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        beta = np.where(evidence > 0.0, evidence / alpha, math.inf)
        later = np.where(found.elapsed > 0.0, np.ceil(found.elapsed / beta), 0.0)
        counted = np.maximum(found.signals + np.where(np.isinf(beta), math.inf, later), 1.0)
        signals = np.where(observed, found.signals, np.where(certain, 1.0, counted))
        past = np.where(found.signals > 0.0, beta * found.signals, 0.0)
        thresholds = np.where(observed | ~crawled, math.inf, found.elapsed + past)
        mixed = np.where(certain, found.rates / gamma, signals + 1.0 - gamma / found.rates)
    coin = crawled & (observed | (certain & (found.rates < gamma)))
    return (
        thresholds,
        np.where(crawled, signals, math.inf),
        np.where(coin, np.clip(mixed, 0.0, 1.0), 1.0),
    )
