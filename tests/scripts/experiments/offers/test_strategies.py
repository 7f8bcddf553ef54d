"""Strategies for offers on logged days: rates, choices, and that they are what policies do."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy.optimize import minimize

import policies as crawl_policies
from crawl_envs.sim.streams import roots
from crawl_envs.worlds.offers.law import STEPS_PER_DAY
from crawl_envs.worlds.offers.market import draw_day, initial_state
from policies.bandits import Exp3Bandit
from policies.bandits.rewards import OFFER_GAIN_BOUND
from policies.offers.rates import HistoryRates, OfferRates
from scripts.experiments.offers.setup import measures as offer_measures
from scripts.experiments.offers.setup import strategies
from scripts.experiments.offers.setup.playing import DailyRates, OfferDay, OfferLanes, play_days
from scripts.experiments.offers.setup.strategies import (
    CHOICES,
    KAB5,
    KAB5_GAIN,
    LAMBDA_ML,
    MIXTURE,
    STRATEGIES,
    BanditChooser,
    Freshness,
    Run,
)
from tests.scripts.experiments.offers.smoothed_rates import predict_by_history, smoothed

SMALL, LARGER = Run(3, 120, 2, 4), Run(3, 1500, 2, 5)
SCANTY = 0.05
"""A budget with which own crawls find few of the price changes."""


@pytest.fixture(autouse=True)
def _no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    predict_by_history(monkeypatch)


def rates_of(seed: int, num_offers: int = 6) -> OfferRates:
    rng = np.random.default_rng(seed)
    return OfferRates(
        rng.uniform(0.1, 2.0, num_offers),
        rng.uniform(0.1, 9.0, num_offers),
        rng.uniform(0.02, 0.7, num_offers),
    )


def played_days(
    run: Run, label: str, budget: float = SCANTY, strategy: DailyRates | None = None
) -> tuple[OfferDay, ...]:
    """Return the days of a strategy, by default that of the label."""
    one = strategies.strategy(run, label, budget) if strategy is None else strategy
    own, log = STRATEGIES[label].source == strategies.OWN, strategies.log_of(run)
    return play_days(log, [one], budget * run.num_offers, run.seed, own_crawls=own)


@pytest.mark.parametrize("kind", ["change", "click", "impression"])
def test_proportional_rates_spend_the_budget_in_proportion(kind: str) -> None:
    rates = rates_of(1)
    result = strategies.crawl_rates(kind, rates, 2.5)
    weights = getattr(rates, kind)
    np.testing.assert_allclose(result, 2.5 * weights / weights.sum(), rtol=1e-12)


def test_uniform_rates_are_equal() -> None:
    np.testing.assert_allclose(strategies.crawl_rates("uniform", rates_of(1), 1.5), 0.25)


@pytest.mark.parametrize("kind", ["lambda", "lambda impressions", "lambda day"])
def test_lambda_rates_give_the_most_freshness(kind: str) -> None:
    rates, bandwidth = rates_of(2), 2.0
    weights = rates.impression if kind == "lambda impressions" else rates.click
    step = 1.0 if kind == "lambda day" else 1.0 / STEPS_PER_DAY
    change = 1.0 - (1.0 - rates.change) ** step

    def freshness(crawl: np.ndarray) -> float:
        return float((weights * crawl / (crawl + change - crawl * change)).sum())

    best = minimize(
        lambda crawl: -freshness(crawl),
        np.full(6, bandwidth * step / 6),
        bounds=[(1e-9, 1.0)] * 6,
        constraints={"type": "eq", "fun": lambda crawl: crawl.sum() - bandwidth * step},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    result = strategies.crawl_rates(kind, rates, bandwidth) * step
    assert result.sum() == pytest.approx(bandwidth * step, rel=1e-9)
    assert freshness(result) >= -best.fun * (1.0 - 1e-9)
    assert freshness(result) == pytest.approx(-best.fun, rel=1e-6)


def test_what_is_left_unspent_is_spread_over_all_offers() -> None:
    rates = rates_of(4)._replace(change=np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.3]))
    plain = strategies.crawl_rates("lambda", rates, 60.0)
    np.testing.assert_allclose(plain, [0, 0, STEPS_PER_DAY, 0, 0, STEPS_PER_DAY])
    result = strategies.crawl_rates("lambda rest", rates, 60.0)
    np.testing.assert_allclose(result, [6, 6, STEPS_PER_DAY, 6, 6, STEPS_PER_DAY])
    full = rates_of(4)
    np.testing.assert_allclose(
        strategies.crawl_rates("lambda rest", full, 2.0),
        strategies.crawl_rates("lambda", full, 2.0),
        rtol=1e-9,
    )


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kind must be one of .*, got 'best'"):
        strategies.crawl_rates("best", rates_of(1), 1.0)


@pytest.mark.parametrize("label", STRATEGIES)
def test_every_strategy_keeps_to_the_budget(label: str) -> None:
    budget = 0.3
    strategy = strategies.strategy(SMALL, label, budget)
    asked = []

    def watched(day: int, lanes: OfferLanes) -> np.ndarray:
        asked.append(strategy(day, lanes))
        return asked[-1]

    days = played_days(SMALL, label, budget, watched)
    assert len(asked) == len(days) == SMALL.num_days
    for rates, day in zip(asked, days, strict=True):
        assert rates.shape == (SMALL.num_offers,)
        assert rates.min() >= 0.0
        assert rates.max() <= STEPS_PER_DAY
        assert rates.sum() <= budget * SMALL.num_offers * (1.0 + 1e-9)
        assert day.crawls <= budget * SMALL.num_offers + STEPS_PER_DAY


@pytest.mark.parametrize(
    ("label", "policy", "whose"),
    [
        ("Uniform", "UniformCrawl", "log"),
        ("mu_h", "ClickWeightedCrawl", "log"),
        ("Delta_h", "ChangeWeightedCrawl", "log"),
        ("lambda_h", "DiscreteLambdaCrawl", "log"),
        ("Delta_own", "ChangeWeightedCrawl", "crawled"),
        ("lambda_own", "DiscreteLambdaCrawl", "crawled"),
    ],
)
def test_runs_are_episodes_of_the_environment(label: str, policy: str, whose: str) -> None:
    """The days of a policy in ``CrawlOffers-v1``, with the same market, days and random numbers."""
    assert (STRATEGIES[label].source == strategies.OWN) == (whose == "crawled")
    env = gymnasium.make(
        "CrawlOffers-v1",
        num_pages=LARGER.num_offers,
        bandwidth=SCANTY * LARGER.num_offers,
        horizon=LARGER.num_days,
        action="rates",
        first_day=strategies.FIRST_DAY,
        price_history=whose,
    )
    rows, _ = env.reset(seed=LARGER.seed)
    acting = getattr(crawl_policies, policy)(env)
    done = False
    while not done:
        action, _ = acting.predict(rows)
        rows, _, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
    played = played_days(LARGER, label)
    assert played == env.unwrapped.days()
    assert len(played) == LARGER.num_days
    assert min(day.clicks for day in played) > 0


def rounded(tracker: Any) -> OfferRates:
    """Return the predicted rates as runs keep them, in single precision."""
    rates = smoothed(tracker)
    return OfferRates(*(array.astype(np.float32).astype(np.float64) for array in rates))


@pytest.mark.parametrize("label", [KAB5, KAB5_GAIN])
def test_bandits_are_episodes_of_the_environment(label: str) -> None:
    """With the random numbers of the policy: the same arms, rewards and days."""
    run, choice, budget = Run(5, 1000, 1, 3), CHOICES[label], 0.2
    env = gymnasium.make(
        "CrawlOffers-v1",
        num_pages=run.num_offers,
        bandwidth=budget * run.num_offers,
        horizon=run.num_days,
        action="rates",
        first_day=strategies.FIRST_DAY,
    )
    rows, _ = env.reset(seed=run.seed)
    rng = env.unwrapped.rng(0).spawn(1)[0]
    five = ("Uniform", "ChangeWeighted", "ClickWeighted", "ImpressionWeighted", "DiscreteLambda")
    acting = crawl_policies.Exp3(
        env,
        arms={
            name: getattr(crawl_policies, f"{name}Crawl")(
                env, **({} if name == "Uniform" else {"rates": rounded})
            )
            for name in five
        },
        weights=rounded,
        reward=choice.reward,
        gamma=strategies.GAMMA,
        record=True,
    )
    done = False
    while not done:
        action, _ = acting.predict(rows)
        rows, _, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
    acting.observe(env.unwrapped.last_log())
    history = acting.history()

    weights = strategies.beliefs(run, strategies.PREDICTED).click
    choosing = BanditChooser(choice.bandit(5), weights, rng, choice.reward)
    arms = [strategies.strategy(run, arm, budget) for arm in choice.arms]
    bandwidth = budget * run.num_offers
    days = play_days(strategies.log_of(run), arms, bandwidth, run.seed, choosing)
    assert choosing.arms == history.arm.tolist()
    assert {*choosing.arms} == {0, 1, 2, 3, 4}
    np.testing.assert_allclose(choosing.rewards, history.reward, rtol=1e-5)
    np.testing.assert_allclose(choosing.chances, history.probabilities, rtol=1e-5)
    assert np.ptp(choosing.chances[-1]) > 0.01
    assert len({*choosing.rewards}) > 10
    assert days == env.unwrapped.days()


@pytest.mark.parametrize("kind", ["Delta", "lambda"])
def test_what_own_crawls_know_makes_other_days_than_the_log(kind: str) -> None:
    own, logged = (played_days(LARGER, f"{kind}_{source}") for source in ("own", "h"))
    assert own[0] == logged[0]
    assert all(one != other for one, other in zip(own[3:], logged[3:], strict=True))


def test_own_crawls_know_less_than_the_log() -> None:
    run = Run(1, 400, 4, 2)
    log = strategies.log_of(run)
    seen = {}

    def watched(day: int, lanes: OfferLanes) -> np.ndarray:
        seen[day] = lanes.features_of(0).change_frequency.sum()
        return np.full(run.num_offers, 0.05)

    played_days(run, "Delta_own", 0.05, watched)
    full = [log.features(day).change_frequency.sum() for day in range(run.num_days)]
    assert seen[0] == full[0]
    assert all(seen[day] < full[day] for day in range(2, run.num_days))


@pytest.mark.parametrize("label", ["Uniform", "Delta_own", "lambda_h"])
def test_the_last_days_of_a_run_are_those_that_count(label: str) -> None:
    result, _ = strategies.play(LARGER, label, SCANTY)
    days = played_days(LARGER, label)
    counted = [days[number] for number in (2, 3, 4, 5, 6)]
    assert result.offer.tolist() == [day.fresh for day in days[2:7]]
    assert result.click.tolist() == [day.hits / day.clicks for day in counted]
    assert len({*result.offer.tolist()}) == 5


def test_true_rates_are_what_a_day_is_drawn_with() -> None:
    log = strategies.log_of(LARGER)
    law = log.market.law
    state = initial_state(law, roots(LARGER.seed).tape, 0)
    clicks = shown = variance = 0.0
    for day in range(LARGER.num_days):
        events = draw_day(law, state, day)
        rates = strategies.true_rates(log, day)
        np.testing.assert_array_equal(rates.click, events.click_mean)
        np.testing.assert_array_equal(rates.impression, events.view_mean)
        np.testing.assert_array_equal(rates.change, events.change_chance)
        assert all(array.dtype == np.float64 for array in rates)
        clicks += log.clicks[day].sum() - rates.click.sum()
        shown += log.impressions[day].sum() - rates.impression.sum()
        variance += rates.impression.sum()
        assert rates.click.sum() < 0.5 * rates.impression.sum()
    assert abs(clicks) < 4.0 * math.sqrt(variance)
    assert abs(shown) < 4.0 * math.sqrt(variance)


@pytest.mark.parametrize("source", [strategies.HISTORY, strategies.PREDICTED, strategies.TRUTH])
def test_beliefs_are_those_of_the_features_of_each_day(source: str) -> None:
    log, kept = strategies.log_of(LARGER), strategies.beliefs(LARGER, source)
    for day in range(LARGER.num_days):
        asked: Any = SimpleNamespace(offers=log.features(day))
        if source == strategies.TRUTH:
            rates = strategies.true_rates(log, day)
        else:
            rates = (HistoryRates() if source == strategies.HISTORY else smoothed)(asked)
        believed = strategies.believed(LARGER, source, day)
        for rows, used, array in zip(kept, believed, rates, strict=True):
            np.testing.assert_array_equal(rows[day], array.astype(np.float32))
            np.testing.assert_array_equal(used, rows[day])
            assert used.dtype == np.float64
            assert day == 0 or not np.array_equal(rows[day], rows[day - 1])


@pytest.mark.parametrize("reward", ["literal", "gain"])
def test_the_reward_has_the_weights_of_its_day(reward: str) -> None:
    weights = np.array([[1.0, 2.0, 3.0, 94.0], [10.0, 20.0, 30.0, 40.0]])
    choosing = BanditChooser(Exp3Bandit(2), weights, np.random.default_rng(0), reward)
    for _ in range(STEPS_PER_DAY + 1):
        choosing.choose()
        choosing.learn(np.array([0, 1, 2]), np.array([True, False, False]))
    first, last = choosing.rewards[STEPS_PER_DAY - 1], choosing.rewards[STEPS_PER_DAY]
    if reward == "literal":
        assert (first, last) == pytest.approx((1.0 / 6.0, 10.0 / 60.0))
    else:
        assert (first, last) == pytest.approx((0.01 / OFFER_GAIN_BOUND, 1.0))
    assert choosing.shares.sum() == pytest.approx(1.0)
    assert len(choosing.arms) == len(choosing.chances) == STEPS_PER_DAY + 1


def test_an_unknown_reward_is_refused() -> None:
    with pytest.raises(ValueError, match="reward must be literal or gain, got 'most'"):
        BanditChooser(Exp3Bandit(2), np.ones((1, 3)), np.random.default_rng(0), "most")


def test_no_crawls_have_no_reward() -> None:
    choosing = BanditChooser(Exp3Bandit(2), np.ones((1, 3)), np.random.default_rng(0))
    choosing.choose()
    choosing.learn(np.empty(0, np.int64), np.empty(0, np.bool_))
    assert choosing.rewards == [0.0]


def test_the_even_mixture_never_learns_and_a_bandit_does() -> None:
    chances = {}
    for label in (KAB5, KAB5_GAIN, MIXTURE):
        _, chosen = strategies.play(SMALL, label, 0.3)
        assert isinstance(chosen, BanditChooser)
        assert len(chosen.rewards) == STEPS_PER_DAY * SMALL.num_days
        chances[label] = np.array(chosen.chances)
        np.testing.assert_allclose(chances[label].sum(axis=1), 1.0)
    np.testing.assert_allclose(chances[MIXTURE], 0.2)
    np.testing.assert_allclose(chances[KAB5][0], 0.2)
    assert np.ptp(chances[KAB5][-1]) > 0.0


@pytest.mark.parametrize("label", CHOICES)
def test_choices_are_among_known_strategies(label: str) -> None:
    assert {*CHOICES[label].arms} <= {*STRATEGIES}
    assert strategies.chooser(SMALL, label).bandit.num_arms == len(CHOICES[label].arms)


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


def test_measures_are_medians_of_the_days_that_count() -> None:
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
