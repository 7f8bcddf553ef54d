"""Run strategies for shopping offers, as in Han et al. 2020, section 4.2.

A run has a seed: it is an episode of ``CrawlOffers-v1`` with its market, days and random numbers.
(The paper's runs share one set of offers.) A strategy is a policy with a source of rates. A process
caches the rates of the latest run, so simulate all strategies of a run before the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from agents.predictors.predicted_rates import PredictedRates
from crawl_envs.evaluation import make_env
from crawl_envs.evaluation import play as play_episode
from crawl_envs.types import FloatArray, Tracker
from policies import Policy, UniformCrawl, bind
from policies.bandits import Bandit, Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit
from policies.bandits.rewards import OFFER_GAIN_BOUND, Reward
from policies.bandits.strategy_bandit import StrategyBandit
from policies.offers.rates import HistoryRates, OfferRates, RateSource
from policies.offers.strategies import (
    ChangeWeightedCrawl,
    ClickWeightedCrawl,
    DiscreteLambdaCrawl,
    ImpressionWeightedCrawl,
)

ID = "CrawlOffers-v1"
FIRST_DAY = 9
"""First day of a run in the year; January 1 is 0."""
NUM_OFFERS = 20_000
PREDICTOR = "offers-network"
"""Name of the predictors, trained on other offers of the same merchants."""
GAMMA = 0.1
"""Exploration of EXP3, as in the paper."""
HISTORY, SELF_CRAWLED, PREDICTED, TRUTH = "history", "own crawls", "predicted", "truth"
"""Sources of rates: averages over the last 30 days of the full log; the same with price changes at
the strategy's crawls only; predictors; the true rates of the day."""


class LambdaRest(DiscreteLambdaCrawl):
    """LambdaCrawl with its unspent budget spread over all offers.

    Budget is unspent if known rates of change or clicks are 0.
    """

    def allocate(self, rates: OfferRates, bandwidth: float, highest: float) -> FloatArray:
        """Return the crawl rate of each offer, (m,)."""
        crawls = super().allocate(rates, bandwidth, highest)
        rest = max(bandwidth - float(crawls.sum()), 0.0)
        return np.minimum(crawls + rest / crawls.size, highest)


KINDS: Mapping[str, Callable[..., Policy]] = {
    "uniform": lambda rates: UniformCrawl(),
    "change": ChangeWeightedCrawl,
    "click": ClickWeightedCrawl,
    "impression": ImpressionWeightedCrawl,
    "lambda": DiscreteLambdaCrawl,
    "lambda impressions": partial(DiscreteLambdaCrawl, weight="impression"),
    "lambda day": partial(DiscreteLambdaCrawl, granularity="day"),
    "lambda rest": LambdaRest,
}
"""Kinds of strategy, as functions of ``rates``: Table 2 of the paper, and three other LambdaCrawls.
These are weighted by impressions, solved for steps of a day as in the paper (others for the steps
in which they act), and with unspent budget spread over all offers."""


class Run(NamedTuple):
    """A run: its seed, number of offers, days before evaluation, and number of evaluated days.

    By default the first 60 days are 01/10 to 03/10, and evaluation ends on 04/10.
    """

    seed: int
    num_offers: int = NUM_OFFERS
    warm_up: int = 60
    evaluated: int = 31

    @property
    def num_days(self) -> int:
        """The number of days of the run, before and during evaluation."""
        return self.warm_up + self.evaluated


QUICK_RUN = Run(0, 2_000, 6, 5)
DAYS, QUICK_DAYS = ([run.warm_up, run.evaluated] for run in (Run(0), QUICK_RUN))
QUICK_SIZE = {"num_offers": 500, "days": QUICK_DAYS}


class Freshness(NamedTuple):
    """Freshness of each evaluated day, (evaluated,): by clicks (eq. 4), and at midnight (eq. 3)."""

    click: FloatArray
    offer: FloatArray


class Choice(NamedTuple):
    """The strategies of a bandit, which chooses one of them at every step, and its reward."""

    arms: tuple[str, ...]
    bandit: Callable[[int], Bandit] = partial(Exp3Bandit, gamma=GAMMA)
    reward: Reward = "literal"


UNIFORM, LAMBDA_ML, LAMBDA_TRUE = "Uniform", "lambda_ml", "lambda_true"
STRATEGIES: Mapping[str, tuple[str, str]] = {
    UNIFORM: ("uniform", PREDICTED),
    "Delta_h": ("change", HISTORY),
    "mu_h": ("click", HISTORY),
    "nu_h": ("impression", HISTORY),
    "lambda_h": ("lambda", HISTORY),
    "lambda_nu_h": ("lambda impressions", HISTORY),
    "lambda_h rest": ("lambda rest", HISTORY),
    "Delta_own": ("change", SELF_CRAWLED),
    "lambda_own": ("lambda", SELF_CRAWLED),
    "lambda_nu_own": ("lambda impressions", SELF_CRAWLED),
    "lambda_own rest": ("lambda rest", SELF_CRAWLED),
    "Delta_ml": ("change", PREDICTED),
    "mu_ml": ("click", PREDICTED),
    "nu_ml": ("impression", PREDICTED),
    LAMBDA_ML: ("lambda", PREDICTED),
    "lambda_nu_ml": ("lambda impressions", PREDICTED),
    "lambda_ml day": ("lambda day", PREDICTED),
    LAMBDA_TRUE: ("lambda", TRUTH),
}
"""Single strategies: a kind of KINDS, and the source of its rates.

mu and nu have no ``own``, since they do not depend on price changes.
"""

LAMBDA_DAY = "lambda_ml day"
FIVE = (UNIFORM, "Delta_ml", "mu_ml", "nu_ml", LAMBDA_ML)
KAB5, KAB5_GAIN, MIXTURE = "KAB5", "KAB5 gain", "even mixture"
KAB5_DAY, KAB5_DAY_GAIN = "KAB5 day", "KAB5 day gain"
SMALLER: Mapping[str, tuple[str, ...]] = {
    "KAB2": ("mu_ml", "Delta_ml"),
    "KAB3": ("mu_ml", "Delta_ml", UNIFORM),
    "KAB4": ("mu_ml", "Delta_ml", "nu_ml", UNIFORM),
    "KAB3'": ("mu_ml", "Delta_ml", "nu_ml"),
}
CHOICES: Mapping[str, Choice] = {
    KAB5: Choice(FIVE),
    KAB5_GAIN: Choice(FIVE, reward="gain"),
    "KAB5 EXP3-IX": Choice(FIVE, Exp3IXBandit),
    "KAB5 EXP3++": Choice(FIVE, Exp3PlusPlusBandit),
    KAB5_DAY: Choice((*FIVE[:-1], LAMBDA_DAY)),
    KAB5_DAY_GAIN: Choice((*FIVE[:-1], LAMBDA_DAY), reward="gain"),
    MIXTURE: Choice(FIVE, partial(Exp3Bandit, gamma=1.0)),
    **{label: Choice(arms) for label, arms in SMALLER.items()},
    **{f"{label} gain": Choice(arms, reward="gain") for label, arms in SMALLER.items()},
}
"""Bandits of section 5.4. An arm of those named ``day`` is LambdaCrawl with steps of a day. The
even mixture always draws each arm with the same probability."""


@lru_cache(maxsize=1)
def predictors() -> RateSource:
    """Return the source of predicted rates; each process loads the predictors once."""
    return PredictedRates(PREDICTOR)


@lru_cache(maxsize=3)
def _rates_by_day(run: Run, source: str) -> dict[int, OfferRates]:
    """Return an empty cache of rates by day, the same object for the same run and source."""
    return {}


def rates_of(run: Run, source: str, env: Any) -> RateSource:
    """Return a function that gives an offer's rates of a source, for the environment of a run."""
    cached = _rates_by_day(run, source)

    def rates(tracker: Tracker) -> OfferRates:
        assert tracker.offers is not None
        day = tracker.offers.day
        if day in cached:
            return cached[day]
        if source == TRUTH:
            events = env.unwrapped.events()
            computed = OfferRates(events.click_mean, events.view_mean, events.change_chance)
        else:
            computed = (predictors() if source == PREDICTED else HistoryRates())(tracker)
        computed = OfferRates._make(np.asarray(array, np.float32) for array in computed)
        if source != SELF_CRAWLED:
            cached[day] = computed
        return computed

    return rates


def bandit(
    run: Run, choice: Choice, strategies: Mapping[str, Policy], weights: RateSource
) -> StrategyBandit:
    """Return a bandit that chooses strategies; clicks from ``weights`` weight its reward."""
    return StrategyBandit(
        choice.bandit,
        arms={f"{place} {arm}": strategies[arm] for place, arm in enumerate(choice.arms)},
        reward=choice.reward,
        gain_bound=OFFER_GAIN_BOUND if choice.reward == "gain" else None,
        weights=weights,
        record=True,
        seed=(run.seed, len(choice.arms)),
    )


def play_policy(
    run: Run, budget: float, make: Callable[[Any], Policy], *, own_crawls: bool = False
) -> tuple[Freshness, Policy]:
    """Simulate a policy on a run; return freshness of the evaluated days, and the policy.

    Args:
        run: the run.
        budget: crawls per day and offer, b/n of the paper.
        make: function of the environment that returns the policy.
        own_crawls: whether features count only price changes at the policy's crawls.
    """
    env = make_env(
        ID,
        num_pages=run.num_offers,
        bandwidth=budget * run.num_offers,
        horizon=float(run.num_days),
        first_day=FIRST_DAY,
        price_history="crawled" if own_crawls else "log",
    )
    env.reset(seed=run.seed)
    policy = bind(make(env), env)
    play_episode(env, policy, run.seed)
    core: Any = env.unwrapped
    days = core.days()[run.warm_up :]
    click, offer = ([day.click_freshness for day in days], [day.fresh for day in days])
    return Freshness(np.array(click), np.array(offer)), policy.update()


def play(run: Run, label: str, budget: float) -> tuple[Freshness, Policy]:
    """Simulate a strategy or choice on a run; return freshness by day, and the policy."""
    labels = CHOICES[label].arms if label in CHOICES else (label,)

    def make(env: Any) -> Policy:
        made = {}
        for arm in labels:
            kind, source = STRATEGIES[arm]
            made[arm] = KINDS[kind](rates=rates_of(run, source, env))
        if label not in CHOICES:
            return made[label]
        return bandit(run, CHOICES[label], made, rates_of(run, PREDICTED, env))

    own_crawls = any(SELF_CRAWLED in STRATEGIES[arm] for arm in labels)
    return play_policy(run, budget, make, own_crawls=own_crawls)


@lru_cache(maxsize=2)
def reference(run: Run, budget: float) -> Freshness:
    """Return the freshness of the strategy lambda_ml on a run, by evaluated day."""
    return play(run, LAMBDA_ML, budget)[0]


def gains(freshness: Freshness, base: Freshness) -> Freshness:
    """Return freshness over that of ``base``, minus 1, for each evaluated day, (evaluated,) each.

    It is NaN if ``base`` has no value or 0: no clicks, or no clicks that saw the true price.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [day / base_day - 1.0 for day, base_day in zip(freshness, base, strict=True)]
    return Freshness(*(np.where(np.isfinite(share), share, np.nan) for share in shares))
