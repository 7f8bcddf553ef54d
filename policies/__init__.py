"""Analytic policies: crawl values, solvers, schedules, and what is composed of them."""

from __future__ import annotations

from typing import Any

from policies.allocated import ChangeRateCrawl, LowDiscrepancy, UniformCrawl
from policies.binding import CrawlPolicy
from policies.greedy import Greedy, GreedyCIS, GreedyCISPlus, GreedyNCIS, GreedyNCISApprox
from policies.heuristics import RandomCrawl, RoundRobin

__all__ = [
    "ChangeRateCrawl",
    "CrawlPolicy",
    "Greedy",
    "GreedyCIS",
    "GreedyCISPlus",
    "GreedyNCIS",
    "GreedyNCISApprox",
    "LowDiscrepancy",
    "RandomCrawl",
    "RoundRobin",
    "UniformCrawl",
    "make",
    "names",
]

_POLICIES: dict[str, type[CrawlPolicy[Any]]] = {
    policy.__name__: policy
    for policy in (
        ChangeRateCrawl,
        Greedy,
        GreedyCIS,
        GreedyCISPlus,
        GreedyNCIS,
        GreedyNCISApprox,
        LowDiscrepancy,
        RandomCrawl,
        RoundRobin,
        UniformCrawl,
    )
}


def names() -> tuple[str, ...]:
    """The names that :func:`make` knows, in alphabetical order."""
    return tuple(sorted(_POLICIES))


def make(name: str, env: Any = None, **arguments: Any) -> CrawlPolicy[Any]:
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
