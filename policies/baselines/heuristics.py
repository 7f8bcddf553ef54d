"""Baselines: crawl pages in turn, at equal rates, at random, or by their change rates."""

from __future__ import annotations

from typing import Any

from crawl_envs.types import FloatArray, Problem
from policies.base.allocated import AllocatedPolicy, even_rates
from policies.base.index import IndexPolicy
from policies.base.policy import PAGE_FORMS
from policies.base.registry import registered
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables


@registered(kind="baseline")
class RoundRobin(IndexPolicy):
    """Crawls the page whose last crawl is longest ago, ties to the lowest index.

    The column ``elapsed`` suffices; ``threshold`` is a time. It ignores costs of crawls.
    """

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        table = value_tables.round_robin_table(problem.num_pages)
        return value_kernels.round_robin_value, table


@registered(kind="baseline")
class UniformCrawl(AllocatedPolicy):
    """Crawls every page at the same rate, whatever its cost."""

    shifts = False

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Return equal rates, (m,)."""
        return even_rates(problem, bandwidth)


@registered()
class ChangeRateCrawl(AllocatedPolicy):
    """Crawls every page in proportion to its change rate; at equal rates if none changes.

    It ignores costs of crawls, but keeps to the bandwidth.
    """

    needs = ("change_rate",)
    shifts = False

    def rates(self, problem: Problem, bandwidth: float) -> FloatArray:
        """Return rates in proportion to the change rates, (m,)."""
        assert problem.change_rate is not None
        largest = problem.change_rate.max()
        if largest <= 0.0:
            return even_rates(problem, bandwidth)
        shares: FloatArray = problem.change_rate / largest
        shares *= bandwidth / problem.spend(shares)
        return shares


@registered(kind="baseline")
class RandomCrawl(UniformCrawl):
    """Crawls pages at random with equal probabilities, drawn by the environment's generator."""

    acts = PAGE_FORMS

    def __init__(self) -> None:
        super().__init__(schedule="random")
