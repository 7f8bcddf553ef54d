"""Costs of crawls in a backtest: those that policies expect, and those that they pay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.types import FloatArray, Instance, IntArray, Problem, Reveal
from policies.live.logs.costs import expected_costs, page_means
from policies.live.logs.crawl_log import CrawlLog
from scripts.live.replay import crawls_within

BLIND = ", blind to cost"
"""End of the name of a policy that does not know the costs, but pays them."""


class Costs(NamedTuple):
    """Costs of crawls of m pages, in units of the log's mean cost of a crawl.

    Attributes:
        expected: what policies expect from the crawls before the start, (m,); None if blind.
        paid: mean of the page's crawls after the start, (m,).
        error: relative standard error of ``paid``, (m,).
        mean: mean cost of the log's crawls after the start, in ``unit``.
        spend: cost of these crawls, in ``unit``.
        unit: unit of the log's costs.
    """

    expected: FloatArray | None
    paid: FloatArray
    error: FloatArray
    mean: float
    spend: float
    unit: str

    def drawn(self, seed: int) -> FloatArray:
        """Return what a crawl of each page costs in a draw, (m,): ``paid`` within its error."""
        normal = np.random.default_rng([seed, self.paid.size]).standard_normal(self.paid.size)
        costs: FloatArray = self.paid * np.exp(self.error * normal - 0.5 * self.error**2)
        return costs


def costs_within(log: CrawlLog, start: float, end: float) -> Costs:
    """Return the costs of crawls in (start, end]; pages without a cost in it cost the expected."""
    crawls = crawls_within(log, start, end)
    expected, paid = expected_costs(log, start), page_means(log, crawls, last=crawls.size)
    paid = np.where(np.isnan(paid), expected, paid)
    spend = float(paid[log.page[crawls]].sum())
    mean = spend / crawls.size
    error = relative_error(log, crawls, paid)
    return Costs(expected / mean, paid / mean, error, mean, spend, log.unit)


def relative_error(log: CrawlLog, crawls: IntArray, paid: FloatArray) -> FloatArray:
    """Return the standard error of each page's mean cost, as a share of the mean, (m,).

    The variance of a crawl's cost, as a share of its page's mean, is that of all pages together. A
    page without crawls counts as one with a crawl.
    """
    assert log.cost is not None
    crawls = crawls[~np.isnan(log.cost[crawls])]
    page = log.page[crawls]
    count = np.bincount(page, minlength=log.num_pages)
    excess = log.cost[crawls] / paid[page] - 1.0
    freedom = max(int((count[count > 0] - 1).sum()), 1)
    error: FloatArray = np.sqrt((excess**2).sum() / freedom / np.maximum(count, 1))
    return error


class LoggedPages(Instance):
    """Pages whose crawls cost something else than policies expect.

    Args:
        expected_cost: what policies expect, (m,); None for crawls of equal cost.
        **arguments: of :class:`crawl_envs.types.Instance`.
    """

    def __init__(self, *, expected_cost: FloatArray | None, **arguments: Any) -> None:
        super().__init__(**arguments)
        vars(self)["expected_cost"] = expected_cost

    def _public(self, reveal: Reveal) -> Problem:
        return replace(super()._public(reveal), cost=vars(self)["expected_cost"])
