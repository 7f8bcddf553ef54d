"""Bandits over strategies: bounds, draws, logs of the arms, learning, bad input."""

import numpy as np
import pytest

import policies
from policies import Exp3, Exp3IX, Exp3PlusPlus, bind
from policies.bandits.rewards import OFFER_GAIN_BOUND, gained_share, literal_reward
from policies.bandits.strategy_bandit import KAB5
from policies.offers.rates import OfferRates
from tests.naive.bandits import NaiveExp3, naive_draw
from tests.policies.offers.fake_offer_env import OfferStandIn, play
from tests.policies.small_environments import OFFERS, place

EVERY_BANDIT = pytest.mark.parametrize("bandit", [Exp3, Exp3IX, Exp3PlusPlus])
PAIR = {"turn": policies.RoundRobin(), "value": policies.Greedy()}


def test_the_bound_of_each_form():
    def bound(env):
        env.reset(seed=3)
        policy = bind(Exp3(), env)
        policy.predict(env.reset(seed=3)[0])
        return policy.of_lane().step_reward.bound, env.unwrapped.tracker().problem

    for form, crawls in (("page", 1), ("scores", 2), ("refresh", 6)):
        result, problem = bound(place("CrawlNCIS-v0", form))
        largest = np.sort(problem.importance)[-crawls:].sum()
        assert result == pytest.approx(largest / problem.importance.sum(), rel=1e-12)
    assert bound(place("CrawlHarmonic-v0", "rates"))[0] == 1.0
    result, problem = bound(place(OFFERS, "rates"))  # 24 crawls per day are 2 per step
    largest = np.sort(problem.importance)[-2:].sum()
    assert largest / problem.importance.sum() > OFFER_GAIN_BOUND == result


# Draws and arms


@pytest.mark.parametrize("reward", ["gain", "literal"])
@pytest.mark.parametrize("form", ["page", "scores"])
def test_exp3_is_algorithm_1(form, reward):
    """A twin that bids the naive bandit, and arms of its own that follow along."""
    env = place("CrawlNCIS-v0", form, num_pages=30, bandwidth=30.0, horizon=8.0)
    policy = bind(Exp3(arms=PAIR, reward=reward, gamma=0.3, record=True), env)
    observation, _ = env.reset(seed=5)
    core = env.unwrapped
    alone = [bind(arm, env) for arm in PAIR.values()]
    twin, rng = NaiveExp3(2, 0.3), core.rng(0).spawn(1)[0]
    importance = core.problem.importance
    bound = np.sort(importance)[-core.batch :].sum() / importance.sum()
    arms, rewards = [], []
    over = False
    while not over:
        chances = twin.probabilities()
        arm = naive_draw(chances, rng.random())
        wanted = [each.predict(observation)[0] for each in alone][arm]
        action, _ = policy.predict(observation)
        assert np.array_equal(action, wanted)
        observation, _, _, over, _ = env.step(action)
        log = core.last_log()
        step_reward = literal_reward(log, importance)
        if reward == "gain":
            step_reward = gained_share(log, importance) / bound
        twin.update(arm, min(step_reward, 1.0), chances[arm])
        arms.append(arm)
        rewards.append(step_reward)
    state = policy.update()
    history = state.history()
    assert history.arm.tolist() == arms
    assert history.reward == pytest.approx(rewards, rel=1e-12)
    assert len({*arms}) == 2
    assert state.selection_probabilities() == pytest.approx(
        dict(zip(PAIR, twin.probabilities(), strict=True)), rel=1e-9
    )
    assert history.probabilities.shape == (len(arms), 2)
    assert history.probabilities[0].tolist() == [0.5, 0.5]


def test_the_arms_of_offers_are_the_paper_s():
    env = place(OFFERS, "rates")
    policy = bind(Exp3(), env)
    policy.predict(env.reset(seed=0)[0])
    state = policy.of_lane()
    paper = ("Uniform", "ChangeWeighted", "ClickWeighted", "ImpressionWeighted", "DiscreteLambda")
    assert state.labels == KAB5 == tuple(f"{name}Crawl" for name in paper)
    assert state.selection_probabilities() == pytest.approx(dict.fromkeys(KAB5, 0.2))


class Notes:
    """A policy from outside the suite: it crawls page 0 and records logs and calls."""

    def __init__(self):
        self.observed, self.asked = [], 0

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.asked += 1
        assert observation.ndim == 2
        return np.int64(0), state

    def observe(self, log):
        self.observed.append(log.page.tolist())


def test_all_arms_observe_every_step():
    env = place("CrawlNCIS-v0", "page", horizon=6.0)
    notes = Notes()
    arms = {
        "notes": notes,
        "nutch": policies.NutchAdaptive(),
        "learner": policies.LearningGreedyNCIS(),
        "among": Exp3(arms=PAIR),
    }
    policy = bind(Exp3(arms=arms, record=True), env)
    rows, _ = env.reset(seed=1)
    crawled = []
    for _ in range(30):
        action, _ = policy.predict(rows)
        crawled.append([int(action)])
        rows, *_ = env.step(action)
    state = policy.update()
    assert notes.observed == [[], *crawled]
    acting = state.history().arm
    assert notes.asked == np.sum(acting == 0)
    assert {*acting.tolist()} == {0, 1, 2, 3}
    # What Nutch knows is what it would know if it had stood by at every step.
    other = policies.make("NutchAdaptive", env)
    rows, _ = env.reset(seed=1)
    for [page] in crawled:
        other.predict(rows)
        rows, *_ = env.step(page)
    other.predict(rows)
    mine, theirs = state.arms.policies[1].revisits, other.of_lane().revisits
    assert np.array_equal(mine.due, theirs.due)
    assert np.array_equal(mine.interval, theirs.interval)


def test_bandits_among_the_arms_draw_apart():
    """From their parent, from each other, and of any depth."""
    env = place("CrawlNCIS-v0", "page")

    among = Exp3(arms={"deep": Exp3(arms=PAIR)}, gamma=1.0)
    policy = bind(Exp3(arms={"one": among, "other": among}, gamma=1.0), env)
    policy.predict(env.reset(seed=3)[0])
    state = policy.of_lane()
    middle = state.arms.policies
    bandits = [state, *middle, *(arm.arms.policies[0] for arm in middle)]
    draws = [bandit.own_rng(env.unwrapped).random() for bandit in bandits]
    assert len({*draws}) == 5
    assert draws[0] == env.unwrapped.rng().spawn(1)[0].random()


# What is learned


class Only(policies.Policy):
    """Crawls given offers in turn, at the rates form's highest rate, whatever is known."""

    acts = ("rates",)

    def __init__(self, pages, count):
        self.pages, self.count = pages, count

    def choose(self, tracker):
        steps = round(tracker.time * 12)
        chosen = self.pages[(steps * self.count + np.arange(self.count)) % len(self.pages)]
        rates = np.zeros(tracker.problem.num_pages)
        rates[chosen] = 12.0
        return rates


def misleading():
    """200 worthless offers that change all the time, and 200 that matter and change sometimes.

    Going for the first finds a change at every crawl, and does nothing for freshness.
    """
    merchant = np.repeat([0, 1], 200)
    importance = np.where(merchant == 0, 0.001, 1.0)
    world = OfferStandIn(merchant, [0.9, 0.01], importance, budget=0.6)
    sure, worthy = np.arange(200), np.arange(200, 400)
    arms = {
        "sure": Only(sure, 20),
        "worthy": Only(worthy, 20),
    }
    return world, arms


@EVERY_BANDIT
def test_the_gain_finds_the_arm_that_serves_freshness_and_the_literal_reward_does_not(bandit):
    result = {}
    for reward in ("gain", "literal"):
        world, arms = misleading()
        bound = 0.02 if reward == "gain" else None
        policy = bandit(arms=arms, reward=reward, gain_bound=bound, record=True)
        policy = bind(policy, world)
        fresh = play(world, policy, 3000)
        last = policy.of_lane().history().arm[-500:]
        result[reward] = fresh[-500:].mean(), np.mean(last == 1)
    assert result["gain"][1] > 0.75
    assert result["literal"][1] < 0.4
    assert result["gain"][0] > result["literal"][0] + 0.02


def test_a_tight_bound_clips():
    world, arms = misleading()
    policy = bind(Exp3(arms=arms, gain_bound=1e-6, record=True), world)
    play(world, policy, 60)
    rewards = policy.of_lane().history().reward
    assert np.sum(rewards == 1.0) > 10
    assert np.all((rewards == 0.0) | (rewards == 1.0))


def test_weights_of_a_source_are_asked_for_every_day():
    world, arms = misleading()
    asked = []

    def source(tracker):
        asked.append(tracker.offers.day)
        click = np.where(np.arange(400) < 200, 1.0 + tracker.offers.day, 0.0)
        return OfferRates(click, click, np.zeros(400))

    policy = Exp3(arms=arms, weights=source, record=True, gain_bound=20 / 200)
    policy = bind(policy, world)
    play(world, policy, 36)
    assert asked == [0, 1, 2]
    history = policy.of_lane().history()
    assert np.all(history.reward[history.arm == 1] == 0.0)
    assert np.all(history.reward[history.arm == 0] > 0.0)
    assert history.reward.max() <= 1.0


# Bad input


@EVERY_BANDIT
def test_an_unknown_argument_is_blamed_on_the_bandit_that_got_it(bandit):
    name = bandit.__name__
    wanted = rf"^{name}\.__init__\(\) got an unexpected keyword argument 'foo'$"
    with pytest.raises(TypeError, match=wanted):
        bandit(foo=1)
