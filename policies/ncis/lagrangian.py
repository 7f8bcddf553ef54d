r"""The Lagrangian index of pages, after Avrachenkov, Borkar and Shah (arXiv:2412.12641).

Re-crawl scheduling is a restless bandit whose arms are pages. If the bandwidth only holds on
average, pages are independent, and pay a price Lambda per crawl, the multiplier. A page loses
c = mu P(stale) per unit of time, which does not fall between crawls, and a crawl restarts it. So it
is crawled where c reaches its least mean loss c*, prices included, with

    Lambda = E int_0^inf (c* - c_t)^+ dt,    c_t: the loss t after a crawl, with no other crawl.

At the state where c = c*, the right side is the crawl value V of GREEDY-NCIS: V is Whittle's index,
the price at which crawl and wait are equally good. The Lagrangian index is the gain Q(x, crawl) -
Q(x, wait) at the one price that spends the bandwidth, where a page waits for the next slot, 1 / R
later. Let y be the evidence of the state x, so that P(fresh) = exp(-y) and V(y) is a function of
it, and V(y*) = Lambda. Without a crawl P(fresh) is exp(-y) times that of a page just crawled, so

    Q(x, crawl) - Q(x, wait) = -E_x int_0^inf (c* - c_t)^+ dt = -exp(-y) V(y* - y)     if y < y*,
                             = (c - c*) / R = mu (exp(-y*) - exp(-y)) / R              if y >= y*,

to the leading order in 1 / R. It is -Lambda after a crawl and changes its sign where V reaches
Lambda: both indices crawl the same pages, and rank these and the others in different orders. Where
V stays below Lambda, y* is infinite, c* = mu, and the index is
V(inf) - Lambda - exp(-y) V(inf) < 0.

The paper has an index for restart models in discrete time. These forms follow from its definition,
for the states of CrawlNCIS. Where crawls have costs, Lambda is a price per unit of cost, and the
index is the gain per unit of cost.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np

from crawl_envs.compiled.compiling import VALUE, compiled, inlined, ready
from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.arguments import real
from crawl_envs.types.compiled_policies import CompiledIndex
from policies import solvers, values
from policies.base.registry import registered
from policies.ncis.delayed import evidence_value
from policies.ncis.greedy import GreedyNCIS, several_sources
from policies.values.series import ALPHA, EVIDENCE, SATURATED, TERMS, TOP
from policies.values.sources.kernels import START, greedy_ncis_sources_value

LEVEL, SURPLUS, WEIGHT = 0, 1, 2
"""Columns that are added to the table of GREEDY-NCIS: y*, V(y*) - Lambda and mu."""

HALVINGS = 60
"""Steps of a bisection over levels up to SATURATED: an error of 4e-17."""


@inlined()
def _advantage(parameters: FloatArray, page: int, first: int, y: float, later: float) -> float:
    """Return the Lagrangian index of a page at evidence y, given ``later`` = V(y* - y).

    ``first`` is the first of the columns that are added to the table of GREEDY-NCIS.
    """
    level: float = parameters[page, first + LEVEL]
    surplus: float = parameters[page, first + SURPLUS]
    if y < level:
        return surplus - math.exp(-y) * later
    slot: float = parameters[parameters.shape[0] - 1, 0]
    weight: float = parameters[page, first + WEIGHT]
    return surplus + weight * (math.exp(-level) - math.exp(-y)) * slot


@compiled(VALUE.signature)
def lagrangian_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return the Lagrangian index of a page with one source of signals, from time and signals."""
    y: float = parameters[page, ALPHA] * elapsed
    if signals > 0:
        y += parameters[page, EVIDENCE] * signals
    gap = max(parameters[page, TERMS + LEVEL] - y, 0.0) if y < math.inf else 0.0
    return _advantage(parameters, page, TERMS, y, evidence_value(parameters, page, 0.0, gap))


@compiled(VALUE.signature)
def lagrangian_sources_value(
    parameters: FloatArray, page: int, elapsed: float, signals: float
) -> float:
    """Return the Lagrangian index with several sources; ``signals`` is their total evidence."""
    first = int(parameters[page, START]) - 3
    y: float = parameters[page, ALPHA] * elapsed + signals
    gap = max(parameters[page, first + LEVEL] - y, 0.0)
    later = greedy_ncis_sources_value(parameters, page, 0.0, gap)
    return _advantage(parameters, page, first, y, later)


def levels(value: Any, table: FloatArray, price: float) -> FloatArray:
    """Return the evidence at which the crawl value of each page reaches a price, (m,), or inf.

    Args:
        value: compiled crawl value V of the total evidence, its argument ``signals``.
        table: table of V, (m, P).
        price: price of a crawl, in units of importance times time, >= 0.
    """
    low, high = np.zeros(len(table)), np.full(len(table), SATURATED)
    pages, reached = np.arange(len(table)), np.empty(len(table))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        ready(values.fill)(ready(value), table, pages, np.zeros(len(table)), middle, reached)
        low = np.where(reached < price, middle, low)
        high = np.where(reached < price, high, middle)
    return np.where(table[:, TOP] > price, high, math.inf)


@registered(paper="Lagrangian index")
class LagrangianIndex(GreedyNCIS):
    """LIP: the gain of a crawl over waiting, at the price of a crawl that spends the bandwidth.

    The state, the model of signals and the arguments are those of :class:`policies.GreedyNCIS`,
    which crawls by Whittle's index. In the form ``refresh``, ``threshold=0`` crawls every page
    whose crawl pays the price. Formulas: :mod:`policies.ncis.lagrangian`.

    Args:
        price: price of a crawl, per unit of its cost, >= 0, in units of importance (not normalised)
            times time; None for the multiplier of :func:`policies.solvers.ncis`, of all pages and
            without delay.
        **settings: as for :class:`policies.GreedyNCIS`.

    Raises:
        ValueError: as for the base class; when an episode starts, an unknown bandwidth, or one that
            changes in steps, so that it has several prices, without ``price``.
    """

    reads_columns = False

    def __init__(self, *, price: float | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.price = None if price is None else real("price", price, least=0.0)

    def compile(self, problem: Problem, slots: int, rng: np.random.Generator) -> CompiledIndex:
        """Return the compiled index at the price, which is solved for if it is not an argument."""
        believed = problem if self.believed is None else self.believed(problem)
        self.require(believed)
        if not believed.bandwidth > 0.0 or (believed.bandwidth_steps and self.price is None):
            raise ValueError(
                f"{self.name} needs one known bandwidth, or price= where it changes in steps, got "
                f"{believed.bandwidth} and bandwidth_steps={believed.bandwidth_steps}"
            )
        priced = copy(self)
        priced.believed = lambda _: believed
        priced.price = spending_price(believed) if self.price is None else self.price
        return super(LagrangianIndex, priced).compile(problem, slots, rng)

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        price = self.price
        assert price is not None
        several = several_sources(problem)
        table = super()._index(problem)[1]
        index, value, end = lagrangian_value, evidence_value, TERMS
        if several:
            index, value = lagrangian_sources_value, greedy_ncis_sources_value
            end = int(table[0, START])
        level = levels(value, table, price)
        surplus = np.minimum(np.where(np.isinf(level), table[:, TOP] - price, 0.0), 0.0)
        columns = np.stack([level, surplus, problem.importance * (table[:, TOP] > 0.0)], axis=1)
        table = np.hstack([table[:, :end], columns, table[:, end:]])
        if several:
            table[:, START] += 3.0
        common = np.full((1, table.shape[1]), 1.0 / problem.bandwidth)
        return index, np.vstack([table, common])


def spending_price(problem: Problem) -> float:
    """Return the price of a unit of cost at which pages spend the bandwidth, >= 0.

    Its unit is importance times time, per crawl without costs.
    It is the multiplier of the relaxed problem, 0 where no page of importance > 0 changes.
    """
    assert problem.change_rate is not None
    if not np.any((problem.importance > 0.0) & (problem.change_rate > 0.0)):
        return 0.0
    return solvers.ncis(problem).multiplier * float(problem.importance.sum())
