"""The default arms of a bandit over strategies."""

from __future__ import annotations

from crawl_envs.types import Tracker
from policies.base.allocated import ChangeRateCrawl, UniformCrawl, complete_pages
from policies.base.binding import ActingPolicy
from policies.baselines.heuristics import RandomCrawl, RoundRobin
from policies.lambdacrawl import LambdaLearnAndCrawl, LambdaLearnAndCrawlBinary
from policies.lambdacrawl.known_rates import BinaryLambdaCrawl, LambdaCrawl
from policies.ncis.greedy import Greedy, GreedyNCIS
from policies.ncis.learning_greedy import LearningGreedyNCIS
from policies.offers.lambdacrawl import DiscreteLambdaCrawl
from policies.offers.weighted import (
    ChangeWeightedCrawl,
    ClickWeightedCrawl,
    ImpressionWeightedCrawl,
)

Strategy = type[ActingPolicy]

KAB5: tuple[Strategy, ...] = (
    UniformCrawl,
    ChangeWeightedCrawl,
    ClickWeightedCrawl,
    ImpressionWeightedCrawl,
    DiscreteLambdaCrawl,
)
"""The five arms of Han et al. (2020), section 5.4."""


def default_arms(action_form: str, tracker: Tracker) -> dict[str, Strategy]:
    """Return the strategies that fit an action form and the revealed parameters, by policy name.

    In the form ``rates``: KAB5 for offers; elsewhere even, proportional and optimal rates, or
    policies that learn change rates if these are hidden. In the forms that name pages: round robin,
    random pages, and the crawl values for which enough is revealed.

    Args:
        action_form: the environment's.
        tracker: at any decision.
    """
    if action_form == "rates":
        chosen = _of_rates(tracker)
    else:
        chosen = (RoundRobin, RandomCrawl, *_by_value(tracker))
    return {strategy.__name__: strategy for strategy in chosen}


def _of_rates(tracker: Tracker) -> tuple[Strategy, ...]:
    if tracker.offers is not None:
        return KAB5
    if tracker.problem.change_rate is not None:
        return UniformCrawl, ChangeRateCrawl, BinaryLambdaCrawl, LambdaCrawl
    learned = (LambdaLearnAndCrawl, LambdaLearnAndCrawlBinary)
    return learned if complete_pages(tracker.problem).any() else (UniformCrawl, *learned)


def _by_value(tracker: Tracker) -> tuple[Strategy, ...]:
    if tracker.problem.change_rate is None:
        return (LearningGreedyNCIS,)
    return (Greedy,) if tracker.problem.recall is None else (Greedy, GreedyNCIS)
