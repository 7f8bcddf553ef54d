"""Runs of strategies for shopping offers, after Han et al. 2020, section 4.2.

A run is a seed: its own market, the days of an episode on it, and its own random numbers. (In the
paper a run is random numbers alone, on one set of offers.) All strategies of a run share market,
days and random numbers. Each process caches the latest run, so a run's strategies should be played
one after the other.

Rates have a source (:data:`SOURCES`), and a strategy turns them into crawl rates (:data:`KINDS`).
Reward of a bandit: :mod:`policies.bandits.rewards`, with predicted clicks as weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from agents.predictors.predicted_rates import PredictedRates
from crawl_envs.instances.market import market
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.offer_features import OfferFeatures
from crawl_envs.worlds.offers.law import STEPS_PER_DAY
from crawl_envs.worlds.offers.log import MarketLog, record
from policies.bandits import Bandit, Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit
from policies.bandits.rewards import OFFER_GAIN_BOUND, gain_reward_of, literal_reward_of
from policies.offers.lambdacrawl import discrete_rates
from policies.offers.rates import HistoryRates, OfferRates, RateSource
from policies.offers.weighted import proportional_rates
from scripts.experiments.offers.setup.playing import DailyRates, OfferDay, OfferLanes, play_days

WARM_UP, EVALUATED = 60, 31
"""Days before evaluation, 01/10 to 03/10, and evaluated days, to 04/10."""
FIRST_DAY = 9
"""First day of a run in the year; January 1 is 0."""
NUM_OFFERS = 20_000
QUICK_OFFERS, QUICK_WARM_UP, QUICK_EVALUATED = 2_000, 6, 5
PREDICTOR = "offers-network"
"""Name of the predictors, which were trained on other offers of the same merchants."""
GAMMA = 0.1
"""Exploration of EXP3, as in the paper."""
HISTORY, OWN, PREDICTED, TRUTH = "history", "own crawls", "predicted", "truth"
SOURCES = (HISTORY, OWN, PREDICTED, TRUTH)
"""Sources of rates: averages over the last 30 days of the full log, or with price changes from the
strategy's own crawls; predictors; or the true rates of the day."""
KINDS = (
    *("uniform", "change", "click", "impression", "lambda"),
    *("lambda impressions", "lambda day", "lambda rest"),
)
"""Kinds of strategy: Table 2 of the paper, and three further LambdaCrawls: weighted by impressions;
solved for steps of a day, as in the paper, not for the steps in which it acts; and with its unspent
budget spread over all offers (unspent where known rates of change or clicks are 0)."""


class Run(NamedTuple):
    """A seed, a number of offers, days before evaluation, and evaluated days."""

    seed: int
    num_offers: int = NUM_OFFERS
    warm_up: int = WARM_UP
    evaluated: int = EVALUATED

    @property
    def num_days(self) -> int:
        """All days of the run."""
        return self.warm_up + self.evaluated


class Freshness(NamedTuple):
    """Both measures of every evaluated day, (evaluated,): eq. 4, and eq. 3 at midnight."""

    click: FloatArray
    offer: FloatArray


class Strategy(NamedTuple):
    """A kind of KINDS, and the source of its rates."""

    kind: str
    source: str = PREDICTED


class Choice(NamedTuple):
    """Labels of strategies, and the bandit that chooses one at every step.

    ``bandit`` constructs a bandit from a number of arms; ``reward`` is ``literal`` or ``gain``.
    """

    arms: tuple[str, ...]
    bandit: Callable[[int], Bandit] = partial(Exp3Bandit, gamma=GAMMA)
    reward: str = "literal"


UNIFORM, LAMBDA_ML, LAMBDA_TRUE = "Uniform", "lambda_ml", "lambda_true"
STRATEGIES: Mapping[str, Strategy] = {
    UNIFORM: Strategy("uniform"),
    "Delta_h": Strategy("change", HISTORY),
    "mu_h": Strategy("click", HISTORY),
    "nu_h": Strategy("impression", HISTORY),
    "lambda_h": Strategy("lambda", HISTORY),
    "lambda_nu_h": Strategy("lambda impressions", HISTORY),
    "lambda_h rest": Strategy("lambda rest", HISTORY),
    "Delta_own": Strategy("change", OWN),
    "lambda_own": Strategy("lambda", OWN),
    "lambda_nu_own": Strategy("lambda impressions", OWN),
    "lambda_own rest": Strategy("lambda rest", OWN),
    "Delta_ml": Strategy("change"),
    "mu_ml": Strategy("click"),
    "nu_ml": Strategy("impression"),
    LAMBDA_ML: Strategy("lambda"),
    "lambda_nu_ml": Strategy("lambda impressions"),
    "lambda_ml day": Strategy("lambda day"),
    LAMBDA_TRUE: Strategy("lambda", TRUTH),
}
"""Single strategies. mu and nu do not depend on price changes, so they have no ``own``."""

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
"""Bandits of section 5.4. Those named ``day`` have LambdaCrawl with steps of a day as an arm. The
even mixture always plays each arm with the same probability."""


@lru_cache(maxsize=1)
def log_of(run: Run) -> MarketLog:
    """Return the market of a run and all its events."""
    there = market(run.num_offers, seed=run.seed, first_day=FIRST_DAY)
    return record(there, run.num_days, run.seed, keep_events=True)


@lru_cache(maxsize=1)
def predictors() -> RateSource:
    """Return the predictors, loaded once in a process."""
    return PredictedRates(PREDICTOR)


def rates_of(source: RateSource, offer_features: OfferFeatures) -> OfferRates:
    """Return the rates of a day from a source that reads offer features alone."""
    tracker: Any = SimpleNamespace(offers=offer_features)
    return source(tracker)


def true_rates(log: MarketLog, day: int) -> OfferRates:
    """Return expected clicks and impressions of a day, and the probability of a price change."""
    events = log.events[day]
    columns = (events.click_mean, events.view_mean, events.change_chance)
    return OfferRates(*(array.astype(np.float64) for array in columns))


@lru_cache(maxsize=3)
def beliefs(run: Run, source: str) -> OfferRates:
    """Return the rates of every day, (num_days, m) float32 each, from a source other than OWN."""
    log = log_of(run)
    shape = (run.num_days, run.num_offers)
    kept = OfferRates(*(np.empty(shape, np.float32) for _ in OfferRates._fields))
    rate_source: RateSource = predictors() if source == PREDICTED else HistoryRates()
    for day in range(run.num_days):
        if source == TRUTH:
            rates = true_rates(log, day)
        else:
            rates = rates_of(rate_source, log.features(day))
        for rows, array in zip(kept, rates, strict=True):
            rows[day] = array
    return kept


def believed(run: Run, source: str, day: int) -> OfferRates:
    """Return the rates of a day, (m,) float64 each, from a source other than OWN."""
    return OfferRates(*(rows[day].astype(np.float64) for rows in beliefs(run, source)))


def crawl_rates(kind: str, rates: OfferRates, bandwidth: float) -> FloatArray:
    """Return the crawls per day of each offer by a kind of strategy, (m,).

    Raises:
        ValueError: unknown kind; errors of the strategy itself.
    """
    most = float(STEPS_PER_DAY)
    weights = {"change": rates.change, "click": rates.click, "impression": rates.impression}
    if kind == "uniform":
        return np.full(rates.click.size, min(bandwidth / rates.click.size, most))
    if kind in weights:
        return proportional_rates(weights[kind], bandwidth, most)
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {kind!r}")
    importance = rates.impression if kind == "lambda impressions" else rates.click
    step = 1.0 if kind == "lambda day" else 1.0 / STEPS_PER_DAY
    crawls = discrete_rates(importance, rates.change, bandwidth, most, step)
    if kind == "lambda rest":
        rest = max(bandwidth - float(crawls.sum()), 0.0)
        crawls = np.minimum(crawls + rest / crawls.size, most)
    return crawls


@lru_cache(maxsize=8)
def planned(run: Run, source: str, kind: str, budget: float) -> FloatArray:
    """Return the crawl rates of every day, (num_days, m), from a source other than OWN.

    ``budget`` is in crawls per day and offer, b/n of the paper.
    """
    bandwidth = budget * run.num_offers
    plan = np.empty((run.num_days, run.num_offers))
    for day in range(run.num_days):
        plan[day] = crawl_rates(kind, believed(run, source, day), bandwidth)
    return plan


def strategy(run: Run, label: str, budget: float) -> DailyRates:
    """Return a strategy of STRATEGIES, to be played on the log of the run.

    With OWN, the price changes of the last 30 days are from its own crawls, and before the run
    from the full log.
    """
    kind, source = STRATEGIES[label]
    if kind == "uniform":
        even = np.full(run.num_offers, min(budget, float(STEPS_PER_DAY)))
        return lambda day, lanes: even
    if source != OWN:
        plan = planned(run, source, kind, budget)
        return lambda day, lanes: plan[day]
    history = HistoryRates()

    def from_own_crawls(day: int, lanes: OfferLanes) -> FloatArray:
        rates = history(lanes.tracker(0))
        return crawl_rates(kind, rates, budget * run.num_offers)

    return from_own_crawls


class BanditChooser:
    """Choice of strategies by a bandit.

    Args:
        bandit: with an arm per strategy.
        weights: of the offers by day, (num_days, m).
        rng: for the choice of arms.
        reward: ``literal`` or ``gain``, the latter with OFFER_GAIN_BOUND.

    Attributes:
        arms: arms chosen so far.
        chances: probabilities of all arms at each choice, (K,): q of Algorithm 1, line 3.
        rewards: rewards of the chosen arms.
    """

    def __init__(
        self,
        bandit: Bandit,
        weights: FloatArray,
        rng: np.random.Generator,
        reward: str = "literal",
    ) -> None:
        if reward not in ("literal", "gain"):
            raise ValueError(f"reward must be literal or gain, got {reward!r}")
        self.bandit, self.weights, self.rng, self.reward = bandit, weights, rng, reward
        self.arms: list[int] = []
        self.chances: list[FloatArray] = []
        self.rewards: list[float] = []

    def choose(self) -> int:
        """Draw the arm of the next step."""
        self.chances.append(self.bandit.probabilities())
        self.arms.append(self.bandit.draw(self.rng.random()))
        return self.arms[-1]

    def learn(self, chosen: IntArray, changed: BoolArray) -> None:
        """Update the bandit with the reward of the last chosen arm."""
        weights = self.weights[len(self.rewards) // STEPS_PER_DAY]
        crawled = weights[chosen]
        if self.reward == "literal":
            reward = literal_reward_of(crawled, changed)
        else:
            reward = gain_reward_of(crawled, changed, float(weights.sum()), OFFER_GAIN_BOUND)
        self.bandit.update(self.arms[-1], reward)
        self.rewards.append(reward)

    @property
    def shares(self) -> FloatArray:
        """The share of the steps in which each arm was chosen, (K,)."""
        return np.bincount(self.arms, minlength=self.bandit.num_arms) / len(self.arms)


def chooser(run: Run, label: str) -> BanditChooser:
    """Return the chooser of a label of CHOICES."""
    choice = CHOICES[label]
    rng = np.random.default_rng((run.seed, len(choice.arms)))
    weights = beliefs(run, PREDICTED).click
    return BanditChooser(choice.bandit(len(choice.arms)), weights, rng, choice.reward)


def play(run: Run, label: str, budget: float) -> tuple[Freshness, BanditChooser | None]:
    """Play a label of STRATEGIES or CHOICES; return the evaluated days and the chooser, if any."""
    choosing = None if label in STRATEGIES else chooser(run, label)
    labels = (label,) if choosing is None else CHOICES[label].arms
    arms = [strategy(run, arm, budget) for arm in labels]
    own = any(STRATEGIES[arm].source == OWN for arm in labels)
    bandwidth = budget * run.num_offers
    days = play_days(log_of(run), arms, bandwidth, run.seed, choosing, own_crawls=own)
    return counted(run, days), choosing


@lru_cache(maxsize=2)
def reference(run: Run, budget: float) -> Freshness:
    """Return the freshness of lambda_ml on a run."""
    return play(run, LAMBDA_ML, budget)[0]


def counted(run: Run, days: Sequence[OfferDay]) -> Freshness:
    """Return the measures of the evaluated days."""
    last = days[run.warm_up :]
    return Freshness(
        np.array([day.click_freshness for day in last]), np.array([day.fresh for day in last])
    )


def gains(freshness: Freshness, base: Freshness) -> Freshness:
    """Return the relative increase of each day over another run, (evaluated,) each.

    NaN where the other run has no value or 0: no clicks, or none that saw the true price.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [freshness[i] / base[i] - 1.0 for i in range(2)]
    return Freshness(*(np.where(np.isfinite(share), share, np.nan) for share in shares))
