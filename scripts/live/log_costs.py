"""Costs of crawls in a backtest: those that policies expect, and those that they pay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.types import FloatArray, Instance, Problem, Reveal
from policies.live.logs.costs import expected_costs, page_means
from policies.live.logs.crawl_log import CrawlLog
from scripts.live.replay import crawls_within

BLIND = ", blind to cost"
"""End of the name of a policy that does not know the costs, but pays them."""


class Costs(NamedTuple):
    """Costs of crawls of m pages, in units of the log's mean cost of a crawl.

    Attributes:
        expected: what policies expect from the crawls before the start, (m,); None if blind.
        paid: mean of the page's crawls after the start, which each crawl costs, (m,).
        mean: mean cost of the log's crawls after the start, in ``unit``.
        spend: cost of these crawls, in ``unit``.
        unit: unit of the log's costs.
    """

    expected: FloatArray | None
    paid: FloatArray
    mean: float
    spend: float
    unit: str


def costs_within(log: CrawlLog, start: float, end: float) -> Costs:
    """Return the costs of crawls in (start, end]; pages without a cost in it cost the expected."""
    crawls = crawls_within(log, start, end)
    expected, paid = expected_costs(log, start), page_means(log, crawls, last=crawls.size)
    paid = np.where(np.isnan(paid), expected, paid)
    spend = float(paid[log.page[crawls]].sum())
    mean = spend / crawls.size
    return Costs(expected / mean, paid / mean, mean, spend, log.unit)


class LoggedPages(Instance):
    """Pages whose crawls cost something else than policies expect, at a constant bandwidth.

    Args:
        expected_cost: what policies expect, (m,); None for crawls of equal cost.
        **arguments: of :class:`crawl_envs.types.Instance`.
    """

    def __init__(self, *, expected_cost: FloatArray | None, **arguments: Any) -> None:
        super().__init__(**arguments)
        vars(self)["expected_cost"] = expected_cost

    def _public(self, reveal: Reveal) -> Problem:
        changes = {"cost": vars(self)["expected_cost"], "bandwidth_steps": ()}
        return replace(super()._public(reveal), **changes)
