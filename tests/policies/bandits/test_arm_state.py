"""Arms that do not act follow the episode: their memory and their rewards."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import policies
from policies import Exp3, bind
from policies.bandits.rewards import gained_share, literal_reward
from policies.offers.rates import HistoryRates, OfferRates, StaleRates
from tests.policies.small_environments import OFFERS, place, places

SIZES = {"num_pages": 60, "bandwidth": 24.0, "horizon": 7.0}
STEPS = 12
MAKERS = {
    "change": policies.ChangeWeightedCrawl,
    "click": policies.ClickWeightedCrawl,
    "impression": policies.ImpressionWeightedCrawl,
    "lambda": policies.DiscreteLambdaCrawl,
    "day": partial(policies.DiscreteLambdaCrawl, granularity="day"),
    "again": policies.ClickWeightedCrawl,
}


class Noted:
    """The history of offers, which records the arm, day and features of each call."""

    def __init__(self, label, notes):
        self.label, self.notes = label, notes

    def __call__(self, tracker):
        self.notes.append((self.label, tracker.offers.day, tracker.offers))
        return HistoryRates()(tracker)


def stale_arms(notes):
    """Six arms, each with stale rates of its own."""
    return daily_arms(notes, StaleRates)


def daily_arms(notes, within=lambda source: source):
    """Six arms, each with rates of its own."""
    return {label: make(rates=within(Noted(label, notes))) for label, make in MAKERS.items()}


def asked_by(notes):
    """On which days each arm's rates were asked for, in order."""
    return {label: [day for name, day, _ in notes if name == label] for label in MAKERS}


def every_arm(*days):
    return {label: [*days] for label in MAKERS}


def played(env, policy, rows, steps):
    for _ in range(steps):
        rows, *_ = env.step(policy.predict(rows)[0])
    return rows


# What arms remember


def test_arms_read_the_rates_of_every_day():
    notes = []
    env = place(OFFERS, "rates", **SIZES)
    policy = bind(Exp3(arms=daily_arms(notes), gamma=1.0), env)
    rows, _ = env.reset(seed=3)
    played(env, policy, rows, 7 * STEPS)
    assert asked_by(notes) == every_arm(*range(7))


def test_stale_arms_are_reset_in_an_episode_and_after_set_state():
    notes = []
    env = place(OFFERS, "rates", **SIZES)
    policy = bind(Exp3(arms=stale_arms(notes), gamma=1.0), env)
    rows, _ = env.reset(seed=3)
    rows = played(env, policy, rows, 2 * STEPS + 5)
    state = env.unwrapped.get_state()
    kept = rows.copy()
    played(env, policy, rows, 2 * STEPS)
    assert asked_by(notes) == every_arm(0)
    env.unwrapped.set_state(state)
    policy.predict(kept)
    assert asked_by(notes) == every_arm(0, 2)
    played(env, policy, kept, 2 * STEPS)
    rows, _ = env.reset(seed=4)
    policy.predict(rows)
    assert asked_by(notes) == every_arm(0, 2, 0)


def test_a_bandit_among_the_arms_keeps_its_own_in_step():
    notes = []
    env = place(OFFERS, "rates", **SIZES)
    among = Exp3(arms=daily_arms(notes), gamma=1.0)
    others = dict.fromkeys(("a", "b", "c"), policies.UniformCrawl())
    policy = bind(Exp3(arms={**others, "among": among}, gamma=1.0), env)
    rows, _ = env.reset(seed=3)
    played(env, policy, rows, 5 * STEPS)
    assert asked_by(notes) == every_arm(*range(5))


def test_lanes_begin_apart():
    notes = []
    env = places(2, OFFERS, "rates", **SIZES)
    policy = bind(Exp3(arms=stale_arms(notes), gamma=1.0), env)
    rows, _ = env.reset(seed=3)
    policy.predict(rows)
    assert asked_by(notes) == every_arm(0, 0)
    played(env, policy, rows, 2 * STEPS)
    assert asked_by(notes) == every_arm(0, 0)
    assert len({id(features) for *_, features in notes}) == 2


# Rewards


def weights_of(day, num_pages):
    """Weights that matter on every other offer, and on the others the day after."""
    return np.where(np.arange(num_pages) % 2 == day % 2, 1.0, 0.001)


def alternating(tracker):
    click = weights_of(tracker.offers.day, tracker.problem.num_pages)
    return OfferRates(click, click, np.full(click.size, 0.1))


@pytest.mark.parametrize("observing", [False, True])
@pytest.mark.parametrize(
    ("reward", "given"), [("literal", {}), ("gain", {"gain_bound": 1.0})], ids=["literal", "gain"]
)
def test_the_last_step_of_a_day_has_the_weights_of_that_day(reward, given, observing):
    env = gym.make(OFFERS, num_pages=2000, bandwidth=2000.0, horizon=3.0, action="rates")
    policy = bind(Exp3(reward=reward, weights=alternating, record=True, **given), env)
    reward_of = literal_reward if reward == "literal" else gained_share
    rows, _ = env.reset(seed=3)
    core = env.unwrapped
    m = core.problem.num_pages
    wanted, otherwise = [], []
    for step in range(3 * STEPS):
        day = core.tracker().offers.day
        assert day == step // STEPS
        rows, *_ = env.step(policy.predict(rows)[0])
        if observing:
            policy.update()
        wanted.append(reward_of(core.last_log(), weights_of(day, m)))
        otherwise.append(reward_of(core.last_log(), weights_of(day + 1, m)))
    assert policy.update().history().reward.tolist() == pytest.approx(wanted, rel=1e-12)
    assert all(wanted[step] != pytest.approx(otherwise[step], rel=0.01) for step in (11, 23))
