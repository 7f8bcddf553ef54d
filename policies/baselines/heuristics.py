"""Policies that need no parameters."""

from __future__ import annotations

from typing import Any

from crawl_envs.types import FloatArray, Problem
from policies.base.allocated import UniformCrawl
from policies.base.binders import PAGE_FORMS, ActionForm
from policies.base.index import IndexPolicy
from policies.base.registry import registered
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables


@registered(kind="baseline")
class RoundRobin(IndexPolicy):
    """Crawls the page whose last crawl is longest ago: all in turn, the lowest index first.

    The column ``elapsed`` suffices; ``threshold`` is a time.
    """

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        table = value_tables.round_robin_table(problem.num_pages)
        return value_kernels.round_robin_value, table


@registered(kind="baseline")
class RandomCrawl(UniformCrawl):
    """Crawls pages at random with equal probabilities, drawn by the environment's generator."""

    acts = PAGE_FORMS

    def __init__(self, env: Any = None, *, action_form: ActionForm | None = None) -> None:
        super().__init__(env, action_form=action_form, schedule="random")
