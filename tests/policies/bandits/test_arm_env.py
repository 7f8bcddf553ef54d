"""Choosing a strategy per step, as an environment."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import policies
from policies.bandits import ArmEnv
from policies.bandits.rewards import OFFER_GAIN_BOUND, gained_share, literal_reward, sure_bound
from policies.bandits.strategy_bandit import default_arms
from tests.policies.small_environments import EVERY_PLACE, OFFERS, place

PAIR = {"turn": policies.RoundRobin, "value": policies.Greedy}


def arms_of(env):
    """The default arms of an environment, which first has to be reset to say what is known."""
    env.reset(seed=0)
    return default_arms(env.unwrapped.action_form, env.unwrapped.tracker())


@pytest.mark.parametrize("reward", [None, "gain", "literal"])
@EVERY_PLACE
def test_it_passes_gymnasium_s_own_check(name, form, reward):
    env = place(name, form)
    with warnings.catch_warnings():
        # It has to be the wrapper that is checked, not what it wraps.
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version")
        check_env(ArmEnv(env, arms_of(env), reward), skip_render_check=True)


def play_alone(env, policy, seed):
    rows, _ = env.reset(seed=seed)
    learn, over, step_rewards = getattr(policy, "observe", lambda log: None), False, []
    learn(env.unwrapped.last_log())
    while not over:
        rows, reward, _, over, _ = env.step(policy.predict(rows)[0])
        learn(env.unwrapped.last_log())
        step_rewards.append(reward)
    return env.unwrapped.ledger(), step_rewards


@EVERY_PLACE
def test_one_arm_throughout_is_its_policy(name, form):
    env = place(name, form)
    arms = arms_of(env)
    wrapped = ArmEnv(env, arms)
    assert wrapped.action_space == gym.spaces.Discrete(len(arms))
    assert wrapped.labels == tuple(arms)
    for number, make in enumerate(arms.values()):
        alone, rewards = play_alone(env, make(env), 4)
        wrapped.reset(seed=4)
        over, step_rewards = False, []
        while not over:
            _, reward, _, over, info = wrapped.step(number)
            assert info["arm"] == number
            step_rewards.append(reward)
        assert env.unwrapped.ledger() == alone
        assert step_rewards == rewards


@pytest.mark.parametrize("reward", ["gain", "literal"])
@pytest.mark.parametrize(
    ("name", "form", "sizes", "crawls"),
    [
        ("CrawlNCIS-v0", "scores", {"num_pages": 20, "bandwidth": 20.0, "horizon": 8.0}, 2),
        (OFFERS, "rates", {"num_pages": 300, "bandwidth": 235.0}, 20),
        (OFFERS, "scores", {"num_pages": 300, "bandwidth": 240.0}, 20),
    ],
)
def test_rewards_are_those_of_the_bandits(name, form, sizes, crawls, reward):
    env = place(name, form, **sizes)
    wrapped = ArmEnv(env, arms_of(env), reward)
    rng = np.random.default_rng(1)
    wrapped.reset(seed=2)
    importance = env.unwrapped.tracker().problem.importance
    step_rewards = []
    for _ in range(30):
        _, result, *_ = wrapped.step(rng.integers(wrapped.action_space.n))
        log = env.unwrapped.last_log()
        assert log.page.size <= crawls
        wanted = literal_reward(log, importance)
        if reward == "gain":
            bound = sure_bound(importance, crawls)
            bound = min(bound, OFFER_GAIN_BOUND) if name == OFFERS else bound
            wanted = min(gained_share(log, importance) / bound, 1.0)
        assert result == pytest.approx(wanted, rel=1e-12)
        step_rewards.append(result)
    assert 0.0 < max(step_rewards) <= 1.0


def test_a_bound_of_one_s_own():
    env = place("CrawlNCIS-v0", "page", num_pages=20, bandwidth=20.0, horizon=8.0)
    result = []
    for bound in (1.0, 0.08):
        wrapped = ArmEnv(env, {"turn": policies.RoundRobin}, "gain", gain_bound=bound)
        wrapped.reset(seed=2)
        result.append(np.array([wrapped.step(0)[1] for _ in range(40)]))
    assert result[1] == pytest.approx(np.minimum(result[0] / 0.08, 1.0), rel=1e-12)
    assert np.any(result[1] == 1.0)
    assert np.any((result[1] > 0.0) & (result[1] < 1.0))


@pytest.mark.parametrize("reward", ["gain", "literal"])
def test_rewards_use_the_importance_of_a_restored_state(reward):
    def expected_reward(log, weights):
        if reward == "literal":
            return literal_reward(log, weights)
        bound = min(sure_bound(weights, 50), OFFER_GAIN_BOUND)
        return min(gained_share(log, weights) / bound, 1.0)

    env = place(OFFERS, "rates", num_pages=2000, bandwidth=600.0, reveal="importance")
    wrapped = ArmEnv(env, {"even": policies.UniformCrawl}, reward)
    core, revealed, states = env.unwrapped, [], []
    for seed in (9, 2):
        wrapped.reset(seed=seed)
        revealed.append(core.tracker().problem.importance)
        states.append(core.get_state())
    core.set_state(states[0])
    result = np.empty((6, 3))
    for step in range(6):
        result[step, 0] = wrapped.step(0)[1]
        result[step, 1:] = [expected_reward(core.last_log(), weights) for weights in revealed]
    np.testing.assert_allclose(result[:, 0], result[:, 1], rtol=1e-12)
    assert not np.allclose(result[:, 0], result[:, 2], rtol=1e-2)


class FixedAction:
    """It says the same, whatever it is asked."""

    def __init__(self, said):
        self.said = said

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return self.said


UNFIT = {
    "no pair": (3, "predict must return a pair, an action and a state, got int 3"),
    "nothing": (None, "predict must return a pair, .* got NoneType None"),
    "an array": (np.zeros(30), "predict must return a pair, .* got ndarray"),
    "three": ((np.zeros(30), None, None), "predict must return a pair, .* got tuple"),
    "shorter": ((np.zeros(29), None), r"action must have shape \(30,\), got \(29,\)"),
    "a page": ((3, None), r"action must have shape \(30,\), got \(\)"),
    "ragged": (([[1], [1, 2]], None), r"action must have shape \(30,\), got rows of different"),
}


@pytest.mark.parametrize("form", ["rates", "scores"])
@pytest.mark.parametrize("case", UNFIT)
def test_an_arm_that_says_what_is_unfit_is_named(case, form):
    said, message = UNFIT[case]
    env = place(OFFERS, form)
    arms = {"even": FixedAction((np.zeros(30), None)), "mine": FixedAction(said)}
    wrapped = ArmEnv(env, arms)
    wrapped.reset(seed=0)
    wrapped.step(0)
    with pytest.raises(ValueError, match=f"^arm 'mine': {message}"):
        wrapped.step(1)
    bandit = policies.Exp3(env, arms={"mine": arms["mine"]})
    rows, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match=f"^arm 'mine': {message}"):
        bandit.predict(rows)


def test_an_arm_that_names_several_pages_where_one_is_crawled_is_named():
    env = small()
    wrapped = ArmEnv(env, {**PAIR, "mine": FixedAction((np.zeros(5, np.int64), None))})
    wrapped.reset(seed=0)
    with pytest.raises(ValueError, match=r"^arm 'mine': action must have shape \(\), got \(5,\)"):
        wrapped.step(2)


class Notes:
    """A policy that crawls page 0 and records the logs it observes."""

    def __init__(self, env):
        self.observed = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return 0, state

    def observe(self, log):
        self.observed.append(log.page.tolist())


def test_every_arm_observes_every_step():
    env = place("CrawlNCIS-v0", "page")
    notes = Notes(env)
    wrapped = ArmEnv(env, {**PAIR, "notes": notes})
    wrapped.reset(seed=0)
    crawled = []
    for action in (0, 1, 2, 0, 1):
        wrapped.step(action)
        crawled.append(env.unwrapped.last_log().page.tolist())
    assert notes.observed == [[], *crawled]


def test_a_mask_of_pages_is_not_one_of_arms():
    env = place("CrawlTrace-v0", "page")
    _, info = env.reset(seed=0)
    assert info["action_mask"].size > 2
    wrapped = ArmEnv(env, PAIR)
    _, info = wrapped.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 1]
    *_, info = wrapped.step(np.int64(1))
    assert info["action_mask"].tolist() == [1, 1]
    assert info["action_mask"].dtype == np.int8
    assert wrapped.get_wrapper_attr("action_masks")().tolist() == [True, True]


def test_a_policy_can_be_bound_to_the_environment_of_arms():
    """The core is still accessible, so that arms can be bound before or after."""
    wrapped = ArmEnv(place("CrawlNCIS-v0", "page"), PAIR)
    assert policies.Greedy(wrapped).core is wrapped.unwrapped


def small():
    return place("CrawlNCIS-v0", "page")


@pytest.mark.parametrize("action", [2, -1, 0.5, "turn", None, np.zeros(2, np.int64)])
def test_an_action_outside_its_space_changes_nothing(action):
    env = small()
    wrapped = ArmEnv(env, PAIR)
    with pytest.raises(gym.error.ResetNeeded):
        wrapped.step(0)
    wrapped.reset(seed=0)
    before = env.unwrapped.ledger()
    with pytest.raises(ValueError, match=r"action must be an integer in \[0, 2\), got"):
        wrapped.step(action)
    assert env.unwrapped.ledger() == before
