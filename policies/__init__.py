"""Analytic policies: crawl values, solvers, schedules, and what is composed of them."""

from __future__ import annotations

from typing import Any

from policies.allocated import ChangeRateCrawl, LowDiscrepancy, UniformCrawl
from policies.binding import ActingPolicy, CrawlPolicy
from policies.delayed import GreedyNCISDelayed
from policies.greedy import Greedy, GreedyCIS, GreedyCISPlus, GreedyNCIS, GreedyNCISApprox
from policies.heuristics import RandomCrawl, RoundRobin
from policies.learning import LearningGreedyNCIS
from policies.threshold import ThresholdNCIS

__all__ = [
    "ActingPolicy",
    "ChangeRateCrawl",
    "CrawlPolicy",
    "Greedy",
    "GreedyCIS",
    "GreedyCISPlus",
    "GreedyNCIS",
    "GreedyNCISApprox",
    "GreedyNCISDelayed",
    "LearningGreedyNCIS",
    "LowDiscrepancy",
    "RandomCrawl",
    "RoundRobin",
    "ThresholdNCIS",
    "UniformCrawl",
    "make",
    "names",
]

_POLICIES: dict[str, type[ActingPolicy[Any]]] = {
    policy.__name__: policy
    for policy in (
        ChangeRateCrawl,
        Greedy,
        GreedyCIS,
        GreedyCISPlus,
        GreedyNCIS,
        GreedyNCISApprox,
        GreedyNCISDelayed,
        LearningGreedyNCIS,
        LowDiscrepancy,
        RandomCrawl,
        RoundRobin,
        ThresholdNCIS,
        UniformCrawl,
    )
}


def names(action: str | None = None) -> tuple[str, ...]:
    """The names that :func:`make` knows, in alphabetical order.

    With ``action``, a form of action, those of the policies that act in it.
    """
    return tuple(
        sorted(name for name, policy in _POLICIES.items() if action in (None, *policy.acts))
    )


def make(name: str, env: Any = None, **arguments: Any) -> ActingPolicy[Any]:
    """Build the policy of that name.

    Args:
        name: one of :func:`names`.
        env: a crawl environment, single or vector, wrapped or not.
        **arguments: arguments of the policy's class.

    Raises:
        ValueError: unknown name, or what the policy's class objects to.
    """
    if name not in _POLICIES:
        raise ValueError(f"policy must be one of {', '.join(names())}, got {name!r}")
    return _POLICIES[name](env, **arguments)
