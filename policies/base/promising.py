"""Policies that can promise every page a longest interval between crawls."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.promises import NO_PROMISES
from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.arguments import check_domain, floats
from policies.base.policy import Policy
from policies.values.promises import promise_table


class PromisingPolicy(Policy):
    """A policy that crawls pages which are due by a promise before all others.

    Args:
        most_interval: longest time from a page's copy to its next crawl, > 0, inf for none, (m,) or
            one for all: pages that are due by it come before all others. The least bandwidth of the
            episode counts, hidden costs as 1. :mod:`policies.values.promises`: when it is kept.
        most_rounds: instead, the same in units of m / R, with costs sum c / R.

    Raises:
        ValueError: an interval not > 0; when an episode starts, promises that no schedule keeps.
    """

    threshold: float | None = None
    promised: tuple[tuple[str, FloatArray], ...] = ()

    def __init__(
        self, *, most_interval: ArrayLike | None = None, most_rounds: ArrayLike | None = None
    ) -> None:
        if most_interval is not None and most_rounds is not None:
            raise ValueError(f"most_rounds must be None with most_interval, got {most_rounds!r}")
        promises = ("most_interval", most_interval), ("most_rounds", most_rounds)
        self.promised = tuple((name, floats(name, x)) for name, x in promises if x is not None)
        for name, intervals in self.promised:
            if not (intervals > 0.0).all():
                raise ValueError(f"{name} must be > 0, inf for none, got {intervals.min()}")
            check_domain(name, intervals[np.isfinite(intervals)])
            self.reads_columns = False  # they do not show the bandwidth

    def promising(self, most_rounds: ArrayLike) -> Self:
        """Return a copy of the policy with this promise instead of its own."""
        policy = copy(self)
        PromisingPolicy.__init__(policy, most_rounds=most_rounds)
        return policy

    def promises(self, problem: Problem) -> FloatArray:
        """Return the table of promises, (m, 3), or (0, 3); ValueError if they cannot be kept.

        In the form ``refresh`` all crawls take a slot, or with a threshold nothing.
        """
        for name, promise in self.promised:
            cost, action = np.ones(problem.num_pages), self.form.action
            if problem.cost is not None and action != "refresh":
                cost = problem.cost
            if promise.shape not in ((), cost.shape):
                raise ValueError(f"{name} must be one or {cost.shape}, got shape {promise.shape}")
            bandwidth = min([problem.bandwidth, *(rate for _, rate in problem.bandwidth_steps)])
            unit = cost.sum() / bandwidth if name == "most_rounds" else 1.0
            wait = (self.form.batch if action == "scores" else cost.max()) / bandwidth
            cost = cost if self.threshold is None else 0.0 * cost
            intervals = np.broadcast_to(promise * unit, cost.shape)
            return promise_table(name, intervals, cost, bandwidth, wait)
        return NO_PROMISES
