"""Strategies for offers on runs: rates, choices, and that they are what policies do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crawl_envs.evaluation import make_env, play
from crawl_envs.instances.market import market
from crawl_envs.types import Policy, Tracker
from crawl_envs.worlds.offers.law import STEPS_PER_DAY, DayEvents
from crawl_envs.worlds.offers.log import MarketLog, record
from policies import DiscreteLambdaCrawl, UniformCrawl, bind
from policies.bandits.strategy_bandit import StrategyBandit
from policies.offers.rates import HistoryRates, OfferRates
from scripts.experiments.measures import offer_freshness as offer_measures
from scripts.experiments.measures import offer_strategies as strategies
from scripts.experiments.measures.offer_strategies import (
    CHOICES,
    KAB5,
    KAB5_GAIN,
    KINDS,
    LAMBDA_ML,
    MIXTURE,
    STRATEGIES,
    Freshness,
    LambdaRest,
    Run,
)
from tests.crawl_envs.worlds.offers.markets import days_of
from tests.policies.offers.offer_core import OfferCore, OfferLane, features_of
from tests.scripts.experiments.offers.smoothed_rates import predict_by_history, smoothed

SMALL, LARGER = Run(3, 120, 2, 4), Run(3, 1500, 2, 5)
SCANTY = 0.05
"""A budget with which own crawls find few of the price changes."""


@pytest.fixture(autouse=True)
def _no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    predict_by_history(monkeypatch)


def log_of(run: Run) -> tuple[MarketLog, list[DayEvents]]:
    """Return the full log of a run, and the events of its days."""
    drawn = market(run.num_offers, seed=run.seed, first_day=strategies.FIRST_DAY)
    return record(drawn, run.num_days, run.seed), days_of(drawn, run.num_days, run.seed)


class Watched:
    """A policy whose calls are passed on, with the trackers and actions of each."""

    def __init__(self, env: Any, policy: Policy) -> None:
        self.core, self.policy = env.unwrapped, policy
        self.trackers: list[Tracker] = []
        self.actions: list[np.ndarray] = []

    def predict(self, *given: Any, **more: Any) -> tuple[Any, Any]:
        """Note and return the action."""
        self.trackers.append(self.core.tracker())
        action, state = self.policy.predict(*given, **more)
        self.actions.append(action)
        return action, state


def watched(run: Run, label: str, budget: float) -> Watched:
    """Play a strategy on a run and return what was noted."""
    played = []

    def noting(env: Any, policy: Policy, seed: int) -> None:
        played.append(Watched(env, policy))
        play(env, played[0], seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategies, "play_episode", noting)
        strategies.play(run, label, budget)
    return played[0]


@pytest.mark.parametrize("bandwidth", [60.0, 2.0])
def test_unspent_budget_is_spread_over_all_offers(bandwidth: float) -> None:
    change = [0.0, 0.0, 0.5, 0.0, 0.0, 0.3] if bandwidth == 60.0 else [0.1, 0.2, 0.5, 0.3, 0.2, 0.3]
    lane = OfferLane([features_of(0, np.arange(1.0, 7.0), 1.0, change)])
    core = OfferCore(lane, bandwidth=bandwidth)
    plain, spread = (
        bind(policy(), core).predict(core.reset())[0][0]
        for policy in (DiscreteLambdaCrawl, LambdaRest)
    )
    if bandwidth == 2.0:
        np.testing.assert_allclose(spread, plain, rtol=1e-9)
        return
    np.testing.assert_allclose(plain, [0, 0, STEPS_PER_DAY, 0, 0, STEPS_PER_DAY])
    np.testing.assert_allclose(spread, [6, 6, STEPS_PER_DAY, 6, 6, STEPS_PER_DAY])


@pytest.mark.parametrize("label", STRATEGIES)
def test_every_strategy_keeps_to_the_budget(label: str) -> None:
    actions = watched(SMALL, label, 0.3).actions
    assert len(actions) == SMALL.num_days * STEPS_PER_DAY
    for rates in actions:
        assert rates.shape == (SMALL.num_offers,)
        assert rates.min() >= 0.0
        assert rates.max() <= STEPS_PER_DAY
        assert rates.sum() <= 0.3 * SMALL.num_offers * (1.0 + 1e-9)


def test_own_crawls_know_less_than_the_log() -> None:
    run = Run(1, 400, 4, 2)
    (log, _), trackers = log_of(run), watched(run, "Delta_own", SCANTY).trackers
    for day, tracker in enumerate(trackers[::STEPS_PER_DAY]):
        assert tracker.offers is not None
        own, full = (book.change_frequency.sum() for book in (tracker.offers, log.features(day)))
        assert own == full if day == 0 else own <= full if day == 1 else own < full


@pytest.mark.parametrize("label", ["Delta_own", "lambda_own"])
def test_own_crawls_give_other_days_than_the_log(label: str) -> None:
    own, logged = (
        strategies.play(LARGER, name, SCANTY)[0] for name in (label, label.replace("own", "h"))
    )
    assert np.all(own.offer[1:] != logged.offer[1:])


def test_the_last_days_of_a_run_are_evaluated() -> None:
    cores = []

    def make(env: Any) -> Any:
        cores.append(env.unwrapped)
        return UniformCrawl()

    result, _ = strategies.play_policy(LARGER, SCANTY, make)
    assert np.array_equal(result.offer, strategies.play(LARGER, "Uniform", SCANTY)[0].offer)
    days = cores[0].days()
    assert len(days) == 7
    assert result.offer.tolist() == [day.fresh for day in days[2:]]
    assert result.click.tolist() == [day.hits / day.clicks for day in days[2:]]
    assert len({*result.offer.tolist()}) == 5


SOURCES: dict[str, Callable[[Tracker], OfferRates]] = {
    strategies.HISTORY: HistoryRates(),
    strategies.PREDICTED: smoothed,
}


@pytest.mark.parametrize("source", [*SOURCES, strategies.TRUTH])
def test_rates_are_cached_by_day_of_the_run(source: str) -> None:
    (_, drawn), asked = log_of(LARGER), []

    def make(env: Any) -> Any:
        rates = strategies.rates_of(LARGER, source, env)

        def noting(tracker: Tracker) -> OfferRates:
            asked.append((tracker, rates(tracker)))
            return asked[-1][1]

        return KINDS["lambda"](rates=noting)

    for budget in (0.1, 0.2):
        strategies.play_policy(LARGER, budget, make)
    days = LARGER.num_days
    assert len(asked) == 2 * days
    for day, (tracker, rates) in enumerate(asked[:days]):
        events = drawn[day]
        wanted = (events.click_mean, events.view_mean, events.change_chance)
        if source != strategies.TRUTH:
            wanted = SOURCES[source](tracker)
        for array, other in zip(rates, wanted, strict=True):
            assert array.dtype == np.float32
            np.testing.assert_array_equal(array, other.astype(np.float32))
        assert asked[days + day][1] is rates
        assert day == 0 or not np.array_equal(rates.click, asked[day - 1][1].click)


def test_true_rates_generate_the_day() -> None:
    log, drawn = log_of(LARGER)
    clicks = shown = variance = 0.0
    for day, events in enumerate(drawn):
        clicks += log.clicks[day].sum() - events.click_mean.sum()
        shown += log.impressions[day].sum() - events.view_mean.sum()
        variance += events.view_mean.sum()
    assert abs(clicks) < 4.0 * math.sqrt(variance)
    assert abs(shown) < 4.0 * math.sqrt(variance)


def history_of(label: str, budget: float = 0.3) -> Any:
    _, policy = strategies.play(SMALL, label, budget)
    assert isinstance(policy, StrategyBandit)
    return policy.history()


def test_the_even_mixture_never_learns_and_a_bandit_does() -> None:
    chances = {}
    for label in (KAB5, KAB5_GAIN, MIXTURE):
        history = history_of(label)
        assert len(history.reward) == STEPS_PER_DAY * SMALL.num_days
        chances[label] = history.probabilities
        np.testing.assert_allclose(chances[label].sum(axis=1), 1.0)
    np.testing.assert_allclose(chances[MIXTURE], 0.2)
    np.testing.assert_allclose(chances[KAB5][0], 0.2)
    assert np.ptp(chances[KAB5][-1]) > 0.0
    assert not np.array_equal(chances[KAB5], chances[KAB5_GAIN])


def test_arms_are_drawn_from_a_stream_of_the_run() -> None:
    history, rng = history_of(KAB5), np.random.default_rng((SMALL.seed, 5))
    sums = np.cumsum(history.probabilities, axis=1)
    drawn = [np.searchsorted(row, rng.random(), side="right") for row in sums]
    assert history.arm.tolist() == drawn


@pytest.mark.parametrize("label", CHOICES)
def test_choices_are_among_known_strategies(label: str) -> None:
    assert {*CHOICES[label].arms} <= {*STRATEGIES}
    env = make_env(strategies.ID, num_pages=50)
    env.reset(seed=0)
    arms = {arm: UniformCrawl() for arm in CHOICES[label].arms}
    policy = strategies.bandit(SMALL, CHOICES[label], arms, HistoryRates())
    assert len(bind(policy, env).update().labels) == len(CHOICES[label].arms)


def test_a_run_of_the_same_seed_is_the_same_and_of_another_is_not() -> None:
    first, _ = strategies.play(SMALL, KAB5, 0.2)
    again, _ = strategies.play(SMALL, KAB5, 0.2)
    other, _ = strategies.play(SMALL._replace(seed=4), KAB5, 0.2)
    np.testing.assert_array_equal(first.offer, again.offer)
    assert not np.array_equal(first.offer, other.offer)


def test_gains_are_shares_day_by_day() -> None:
    result = Freshness(np.array([0.6, 0.5, np.nan]), np.array([0.4, 0.0, 0.9]))
    base = Freshness(np.array([0.5, 0.0, 0.5]), np.array([0.8, 0.5, 0.9]))
    more = strategies.gains(result, base)
    np.testing.assert_allclose(more.click, [0.2, np.nan, np.nan])
    np.testing.assert_allclose(more.offer, [-0.5, -1.0, 0.0])


def test_measures_are_medians_of_evaluated_days() -> None:
    size = {"num_offers": SMALL.num_offers, "warm_up": SMALL.warm_up, "evaluated": SMALL.evaluated}
    rates = {
        label: offer_measures.measured(3, label=label, budget=0.5, daily=True, **size)
        for label in ("Delta_h", LAMBDA_ML, KAB5)
    }
    days, _ = strategies.play(SMALL, "Delta_h", 0.5)
    base, _ = strategies.play(SMALL, LAMBDA_ML, 0.5)
    assert days.offer.shape == (SMALL.evaluated,)
    assert rates["Delta_h"]["offer_freshness"] == float(np.median(days.offer))
    assert rates["Delta_h"]["offer_gain"] == float(np.median(days.offer / base.offer - 1.0))
    assert rates["Delta_h"]["offer_day[2]"] == days.offer[2]
    assert rates[LAMBDA_ML]["offer_freshness"] == float(np.median(base.offer))
    assert "offer_gain" not in rates[LAMBDA_ML]
    shares = [rates[KAB5][f"share[{arm}]"] for arm in range(5)]
    assert sum(shares) == pytest.approx(1.0)


def test_a_run_with_few_days_to_compare_has_no_gain() -> None:
    assert math.isnan(offer_measures.middle(np.array([0.1, np.nan, np.nan])))
    assert offer_measures.middle(np.array([0.1, 0.3, np.nan])) == pytest.approx(0.2)
