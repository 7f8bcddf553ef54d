"""Policies that need no parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.types import FloatArray, IntArray, Problem
from policies.base import schedules
from policies.base.index import IndexPolicy
from policies.base.registry import registered
from policies.base.sequence import SequencePolicy
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables


@registered
class RoundRobin(IndexPolicy):
    """Crawls the page whose last crawl is longest ago: all in turn, the lowest index first.

    Arguments and errors as for :class:`policies.base.index.IndexPolicy`; the column ``elapsed``
    suffices, and ``threshold`` is a time.
    """

    def _index(self, problem: Problem) -> tuple[Any, FloatArray]:
        table = value_tables.round_robin_table(problem.num_pages)
        return value_kernels.round_robin_value, table


@registered
class RandomCrawl(SequencePolicy):
    """Crawls pages at random with equal probabilities, drawn by the environment's generator.

    Arguments and errors as for :class:`policies.base.sequence.SequencePolicy`.
    """

    def _sequence(self, problem: Problem, slots: int, rng: np.random.Generator) -> IntArray:
        return schedules.random(np.ones(problem.num_pages), slots, rng)
