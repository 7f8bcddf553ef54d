"""Analytic policies: crawl values, solvers, schedules, and what is composed of them."""

from __future__ import annotations

from typing import Any

from policies.allocated import ChangeRateCrawl, LowDiscrepancy, UniformCrawl
from policies.binding import ActingPolicy, CrawlPolicy
from policies.contextual import ContextualBandit
from policies.delayed import GreedyNCISDelayed
from policies.discrete_lambdacrawl import DiscreteLambdaCrawl
from policies.greedy import (
    Greedy,
    GreedyCIS,
    GreedyCISPlus,
    GreedyHarmonic,
    GreedyNCIS,
    GreedyNCISApprox,
)
from policies.heuristics import RandomCrawl, RoundRobin
from policies.lambdacrawl import BinaryLambdaCrawl, LambdaCrawl, LambdaCrawlApprox
from policies.learning import (
    AsyncMirrorSync,
    AsyncPSGDSync,
    ExploreThenCommit,
    LambdaLearnAndCrawl,
    LambdaLearnAndCrawlApprox,
    LambdaLearnAndCrawlBinary,
    LearningGreedyNCIS,
    MirrorSync,
)
from policies.shipped import NutchAdaptive, StormCrawlerAdaptive
from policies.staleness import BeliefNCIS
from policies.strategy_bandits import Exp3, Exp3IX, Exp3PlusPlus
from policies.threshold import ThresholdNCIS
from policies.weighted import ChangeWeightedCrawl, ClickWeightedCrawl, ImpressionWeightedCrawl

__all__ = [
    "ActingPolicy",
    "AsyncMirrorSync",
    "AsyncPSGDSync",
    "BeliefNCIS",
    "BinaryLambdaCrawl",
    "ChangeRateCrawl",
    "ChangeWeightedCrawl",
    "ClickWeightedCrawl",
    "ContextualBandit",
    "CrawlPolicy",
    "DiscreteLambdaCrawl",
    "Exp3",
    "Exp3IX",
    "Exp3PlusPlus",
    "ExploreThenCommit",
    "Greedy",
    "GreedyCIS",
    "GreedyCISPlus",
    "GreedyHarmonic",
    "GreedyNCIS",
    "GreedyNCISApprox",
    "GreedyNCISDelayed",
    "ImpressionWeightedCrawl",
    "LambdaCrawl",
    "LambdaCrawlApprox",
    "LambdaLearnAndCrawl",
    "LambdaLearnAndCrawlApprox",
    "LambdaLearnAndCrawlBinary",
    "LearningGreedyNCIS",
    "LowDiscrepancy",
    "MirrorSync",
    "NutchAdaptive",
    "RandomCrawl",
    "RoundRobin",
    "StormCrawlerAdaptive",
    "ThresholdNCIS",
    "UniformCrawl",
    "make",
    "names",
]

_POLICIES: dict[str, type[ActingPolicy[Any]]] = {
    policy.__name__: policy
    for policy in (
        AsyncMirrorSync,
        AsyncPSGDSync,
        BeliefNCIS,
        BinaryLambdaCrawl,
        ChangeRateCrawl,
        ChangeWeightedCrawl,
        ClickWeightedCrawl,
        ContextualBandit,
        DiscreteLambdaCrawl,
        Exp3,
        Exp3IX,
        Exp3PlusPlus,
        ExploreThenCommit,
        Greedy,
        GreedyCIS,
        GreedyCISPlus,
        GreedyHarmonic,
        GreedyNCIS,
        GreedyNCISApprox,
        GreedyNCISDelayed,
        ImpressionWeightedCrawl,
        LambdaCrawl,
        LambdaCrawlApprox,
        LambdaLearnAndCrawl,
        LambdaLearnAndCrawlApprox,
        LambdaLearnAndCrawlBinary,
        LearningGreedyNCIS,
        LowDiscrepancy,
        MirrorSync,
        NutchAdaptive,
        RandomCrawl,
        RoundRobin,
        StormCrawlerAdaptive,
        ThresholdNCIS,
        UniformCrawl,
    )
}


def names(action: str | None = None) -> tuple[str, ...]:
    """The names that :func:`make` knows, in alphabetical order.

    With ``action``, a form of action, those of the policies that act in it; ``probe`` stands for
    the form ``page`` where pages can be probed.
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
