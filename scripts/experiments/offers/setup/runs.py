"""Runs of strategies for shopping offers, after Han et al. 2020, section 4.2: what they share.

A run is a seed: a market of its own, the days of an episode on it, and coins of its own. (In the
paper a run is coins alone, on one set of offers.) All strategies of a run meet the same market,
days and coins. What is worked out for a run is kept until another run comes, in each process, so a
run's strategies should be played one after the other.

Rates come from somewhere (:data:`SOURCES`), and a strategy makes crawl rates of them
(:data:`KINDS`). Reward of a bandit: :mod:`policies.bandits.rewards`, with predicted clicks as weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from agents.predictors.predicted_rates import PredictedRates
from crawl_envs.instances.market import market
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.offer_features import OfferFeatures
from crawl_envs.worlds.offers.law import STEPS_PER_DAY
from crawl_envs.worlds.offers.log import (
    ArmChooser,
    DailyRates,
    MarketLog,
    play_arms,
    play_rates,
    record,
)
from crawl_envs.worlds.offers.world import OfferDay, OfferWorld
from policies.bandits import Bandit, Exp3Bandit, Exp3IXBandit, Exp3PlusPlusBandit
from policies.bandits.rewards import OFFER_GAIN_BOUND, gain_reward_of, literal_reward_of
from policies.offers.lambdacrawl import discrete_rates
from policies.offers.rates import HistoryRates, OfferRates, RateSource
from policies.offers.weighted import proportional_rates

WARM_UP, EVALUATED = 60, 31
"""Days that are played before days count, and days that count: 01/10 to 03/10, to 04/10."""
FIRST_DAY = 9
"""Day of the year on which a run begins, January 1 being 0."""
NUM_OFFERS = 20_000
QUICK_OFFERS, QUICK_WARM_UP, QUICK_EVALUATED = 2_000, 6, 5
PREDICTOR = "offers-network"
"""Name of the predictors, which were trained on other offers of the same merchants."""
GAMMA = 0.1
"""Of EXP3, as in the paper."""
HISTORY, OWN, PREDICTED, TRUTH = "history", "own crawls", "predicted", "truth"
SOURCES = (HISTORY, OWN, PREDICTED, TRUTH)
"""Where rates come from: averages of the last 30 days of the full log, or with the price changes
that the strategy's own crawls found; predictors; or what is behind the events of the day."""
KINDS = (
    *("uniform", "change", "click", "impression", "lambda"),
    *("lambda impressions", "lambda day", "lambda rest"),
)
"""What is made of them: Table 2 of the paper, and three further LambdaCrawls: one that weighs by
impressions; one whose problem is solved for steps of a day, as in the paper, and not for the steps
in which it acts; and one that spreads over all offers what it leaves unspent as the other offers,
by what it is told, never change or are never clicked."""


class Run(NamedTuple):
    """A seed, a number of offers, and days that are played before days count, and that count."""

    seed: int
    num_offers: int = NUM_OFFERS
    warm_up: int = WARM_UP
    evaluated: int = EVALUATED

    @property
    def num_days(self) -> int:
        """All days of the run."""
        return self.warm_up + self.evaluated


class Freshness(NamedTuple):
    """Both measures of every day that counts, (evaluated,): eq. 4, and eq. 3 at midnight."""

    click: FloatArray
    offer: FloatArray


class Strategy(NamedTuple):
    """A kind of KINDS, and where its rates come from."""

    kind: str
    source: str = PREDICTED


class Choice(NamedTuple):
    """Strategies, by label, and how one is chosen at every step.

    ``bandit`` makes a bandit of a number of arms; ``reward`` is ``literal`` or ``gain``.
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
even mixture plays each arm with the same probability for ever."""


@lru_cache(maxsize=1)
def log_of(run: Run) -> MarketLog:
    """Return the market of a run and all that happens on it."""
    there = market(run.num_offers, seed=run.seed, first_day=FIRST_DAY)
    return record(there, run.num_days, run.seed, keep_events=True)


@lru_cache(maxsize=1)
def predictors() -> RateSource:
    """Return the predictors, loaded once in a process."""
    return PredictedRates(PREDICTOR)


def of_features(source: RateSource, book: OfferFeatures) -> OfferRates:
    """Return what a source that reads the book alone says of a day."""
    asked: Any = SimpleNamespace(offers=book)
    return source(asked)


def true_rates(log: MarketLog, day: int) -> OfferRates:
    """Return expected clicks and impressions of a day, and the chance of a price change in it."""
    events = log.events[day]
    found = (events.click_mean, events.view_mean, events.change_chance)
    return OfferRates(*(array.astype(np.float64) for array in found))


@lru_cache(maxsize=3)
def beliefs(run: Run, source: str) -> OfferRates:
    """Return the rates of every day, (num_days, m) float32 each, from a source other than OWN."""
    log = log_of(run)
    shape = (run.num_days, run.num_offers)
    kept = OfferRates(*(np.empty(shape, np.float32) for _ in OfferRates._fields))
    asked: RateSource = predictors() if source == PREDICTED else HistoryRates()
    for day in range(run.num_days):
        told = true_rates(log, day) if source == TRUTH else of_features(asked, log.book(day))
        for rows, array in zip(kept, told, strict=True):
            rows[day] = array
    return kept


def believed(run: Run, source: str, day: int) -> OfferRates:
    """Return the rates of a day, (m,) float64 each, from a source other than OWN."""
    return OfferRates(*(rows[day].astype(np.float64) for rows in beliefs(run, source)))


def crawl_rates(kind: str, rates: OfferRates, bandwidth: float) -> FloatArray:
    """Return the crawls per day of each offer that a kind of strategy makes of rates, (m,).

    Raises:
        ValueError: unknown kind; what the strategy itself objects to.
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
    found = discrete_rates(importance, rates.change, bandwidth, most, step)
    if kind == "lambda rest":
        rest = max(bandwidth - float(found.sum()), 0.0)
        found = np.minimum(found + rest / found.size, most)
    return found


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

    With OWN, the price changes of the last 30 days are those that its crawls found, and before the
    run those of the full log.
    """
    kind, source = STRATEGIES[label]
    if kind == "uniform":
        even = np.full(run.num_offers, min(budget, float(STEPS_PER_DAY)))
        return lambda day, world: even
    if source != OWN:
        plan = planned(run, source, kind, budget)
        return lambda day, world: plan[day]
    log, history = log_of(run), HistoryRates()

    def from_own_crawls(day: int, world: OfferWorld) -> FloatArray:
        told = of_features(history, log.book(day, world.tracking))
        return crawl_rates(kind, told, budget * run.num_offers)

    return from_own_crawls


class BanditChooser:
    """Chooses strategies by a bandit, and pays them (:class:`ArmChooser`).

    Args:
        bandit: as many arms as there are strategies.
        weights: of the offers by day, (num_days, m).
        rng: for the choice of arms.
        reward: ``literal`` or ``gain``, the latter with OFFER_GAIN_BOUND.

    Attributes:
        arms: the arms chosen so far.
        chances: with which probabilities, (K,) each: q of Algorithm 1, line 3.
        rewards: what they were paid.
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
        """Draw the arm of the step that follows."""
        self.chances.append(self.bandit.probabilities())
        self.arms.append(self.bandit.draw(self.rng.random()))
        return self.arms[-1]

    def learn(self, chosen: IntArray, found: BoolArray) -> None:
        """Pay the arm that was chosen last."""
        weights = self.weights[len(self.rewards) // STEPS_PER_DAY]
        crawled = weights[chosen]
        if self.reward == "literal":
            paid = literal_reward_of(crawled, found)
        else:
            paid = gain_reward_of(crawled, found, float(weights.sum()), OFFER_GAIN_BOUND)
        self.bandit.update(self.arms[-1], paid)
        self.rewards.append(paid)

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


def play(run: Run, label: str, budget: float) -> tuple[Freshness, ArmChooser | None]:
    """Play a label of STRATEGIES or CHOICES; return the days that count, and what chose."""
    log = log_of(run)
    if label in STRATEGIES:
        return counted(run, play_rates(log, strategy(run, label, budget), run.seed)), None
    arms = [strategy(run, arm, budget) for arm in CHOICES[label].arms]
    choosing = chooser(run, label)
    return counted(run, list(play_arms(log, arms, choosing, run.seed))), choosing


@lru_cache(maxsize=2)
def reference(run: Run, budget: float) -> Freshness:
    """Return what lambda_ml reaches on a run."""
    return play(run, LAMBDA_ML, budget)[0]


def counted(run: Run, days: list[OfferDay]) -> Freshness:
    """Return the measures of the days that count."""
    last = days[run.warm_up :]
    return Freshness(
        np.array([day.click_freshness for day in last]), np.array([day.fresh for day in last])
    )


def gains(found: Freshness, base: Freshness) -> Freshness:
    """Return by what share each day is fresher than in another run, (evaluated,) each.

    NaN where a day has nothing to compare with: no clicks, or none that saw the true price.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [found[i] / base[i] - 1.0 for i in range(2)]
    return Freshness(*(np.where(np.isfinite(share), share, np.nan) for share in shares))
