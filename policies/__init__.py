"""Analytic policies: crawl values, solvers, schedules, and what is composed of them."""

from __future__ import annotations

from typing import Any

from policies.bandits.over_policies import Exp3, Exp3IX, Exp3PlusPlus
from policies.base.allocated import ChangeRateCrawl, LowDiscrepancy, UniformCrawl
from policies.base.binding import ActingPolicy, CrawlPolicy
from policies.baselines.crawlers import NutchAdaptive, StormCrawlerAdaptive
from policies.baselines.heuristics import RandomCrawl, RoundRobin
from policies.lambdacrawl import (
    AsyncMirrorSync,
    AsyncPSGDSync,
    ExploreThenCommit,
    LambdaLearnAndCrawl,
    LambdaLearnAndCrawlApprox,
    LambdaLearnAndCrawlBinary,
    LearningGreedyNCIS,
    MirrorSync,
)
from policies.lambdacrawl.known_rates import BinaryLambdaCrawl, LambdaCrawl, LambdaCrawlApprox
from policies.longevity import (
    ChoGarciaMolina,
    CurrentDivergence,
    CurveFitting,
    DivergenceBounds,
    FragmentDynamic,
    FragmentStatic,
    HolisticDynamic,
    HolisticStatic,
    LearningLongevity,
    UniformRefresh,
)
from policies.longevity.refreshing import RefreshPolicy
from policies.ncis.belief import BeliefNCIS
from policies.ncis.delayed import GreedyNCISDelayed
from policies.ncis.greedy import (
    Greedy,
    GreedyCIS,
    GreedyCISPlus,
    GreedyHarmonic,
    GreedyNCIS,
    GreedyNCISApprox,
)
from policies.ncis.threshold import ThresholdNCIS
from policies.offers.contextual import ContextualBandit
from policies.offers.lambdacrawl import DiscreteLambdaCrawl
from policies.offers.weighted import (
    ChangeWeightedCrawl,
    ClickWeightedCrawl,
    ImpressionWeightedCrawl,
)

__all__ = [
    "ActingPolicy",
    "AsyncMirrorSync",
    "AsyncPSGDSync",
    "BeliefNCIS",
    "BinaryLambdaCrawl",
    "ChangeRateCrawl",
    "ChangeWeightedCrawl",
    "ChoGarciaMolina",
    "ClickWeightedCrawl",
    "ContextualBandit",
    "CrawlPolicy",
    "CurrentDivergence",
    "CurveFitting",
    "DiscreteLambdaCrawl",
    "DivergenceBounds",
    "Exp3",
    "Exp3IX",
    "Exp3PlusPlus",
    "ExploreThenCommit",
    "FragmentDynamic",
    "FragmentStatic",
    "Greedy",
    "GreedyCIS",
    "GreedyCISPlus",
    "GreedyHarmonic",
    "GreedyNCIS",
    "GreedyNCISApprox",
    "GreedyNCISDelayed",
    "HolisticDynamic",
    "HolisticStatic",
    "ImpressionWeightedCrawl",
    "LambdaCrawl",
    "LambdaCrawlApprox",
    "LambdaLearnAndCrawl",
    "LambdaLearnAndCrawlApprox",
    "LambdaLearnAndCrawlBinary",
    "LearningGreedyNCIS",
    "LearningLongevity",
    "LowDiscrepancy",
    "MirrorSync",
    "NutchAdaptive",
    "RandomCrawl",
    "RoundRobin",
    "StormCrawlerAdaptive",
    "ThresholdNCIS",
    "UniformCrawl",
    "UniformRefresh",
    "fragment_names",
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
        ChoGarciaMolina,
        ClickWeightedCrawl,
        ContextualBandit,
        CurrentDivergence,
        CurveFitting,
        DiscreteLambdaCrawl,
        DivergenceBounds,
        Exp3,
        Exp3IX,
        Exp3PlusPlus,
        ExploreThenCommit,
        FragmentDynamic,
        FragmentStatic,
        Greedy,
        GreedyCIS,
        GreedyCISPlus,
        GreedyHarmonic,
        GreedyNCIS,
        GreedyNCISApprox,
        GreedyNCISDelayed,
        HolisticDynamic,
        HolisticStatic,
        ImpressionWeightedCrawl,
        LambdaCrawl,
        LambdaCrawlApprox,
        LambdaLearnAndCrawl,
        LambdaLearnAndCrawlApprox,
        LambdaLearnAndCrawlBinary,
        LearningGreedyNCIS,
        LearningLongevity,
        LowDiscrepancy,
        MirrorSync,
        NutchAdaptive,
        RandomCrawl,
        RoundRobin,
        StormCrawlerAdaptive,
        ThresholdNCIS,
        UniformCrawl,
        UniformRefresh,
    )
}
_OF_FRAGMENTS = tuple(
    sorted(name for name, policy in _POLICIES.items() if issubclass(policy, RefreshPolicy))
)


def fragment_names() -> tuple[str, ...]:
    """The names, known to :func:`make`, of policies that are meant for pages with fragments.

    All act in the forms ``page``, ``scores`` and ``refresh``, and in the last one want to be told
    the ``threshold`` (:class:`UniformRefresh` the ``interval``) at which they refresh. The
    ``oracle`` of :class:`FragmentDynamic` and :class:`HolisticDynamic` is True: they read what
    truly happened, as :class:`CurrentDivergence` does with ``dynamic=True``.
    """
    return _OF_FRAGMENTS


def names(action: str | None = None, *, fragments: bool = False) -> tuple[str, ...]:
    """The names of policies that :func:`make` knows, in alphabetical order.

    Args:
        action: a form of action, to leave out those that do not act in it; ``probe`` stands for
            the form ``page`` where pages can be probed.
        fragments: whether pages have fragments, which adds :func:`fragment_names`. Without them
            it is the policies for every environment.
    """
    return tuple(
        sorted(
            name
            for name, policy in _POLICIES.items()
            if action in (None, *policy.acts) and (fragments or name not in _OF_FRAGMENTS)
        )
    )


def make(name: str, env: Any = None, **arguments: Any) -> ActingPolicy[Any]:
    """Build the policy of that name.

    Args:
        name: one of ``names(fragments=True)``.
        env: a crawl environment, single or vector, wrapped or not.
        **arguments: arguments of the policy's class.

    Raises:
        ValueError: unknown name, or what the policy's class objects to.
    """
    if name not in _POLICIES:
        raise ValueError(f"policy must be one of {', '.join(_POLICIES)}, got {name!r}")
    return _POLICIES[name](env, **arguments)
