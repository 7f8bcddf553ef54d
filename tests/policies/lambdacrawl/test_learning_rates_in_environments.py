"""One contract of the policies that learn, in CrawlHarmonic-v0."""

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs.instances import make as make_instance
from policies import make

RATES = (
    "LambdaLearnAndCrawl",
    "LambdaLearnAndCrawlApprox",
    "LambdaLearnAndCrawlBinary",
    "ExploreThenCommit",
)
EVERY = pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, form) for name in RATES for form in ("rates", "page")),
        ("LearningGreedyNCIS", "page"),
    ],
)
WORLD = {"num_pages": 20, "bandwidth": 5.0, "horizon": 12.0, "reveal": "importance"}


def harmonic(**arguments):
    return gym.make("CrawlHarmonic-v0", **{**WORLD, **arguments})


def play(env, policy, seed=0, **options):
    """Actions and infos of an episode."""
    observation, _ = env.reset(seed=seed, **options)
    actions, infos, over = [], [], False
    while not over:
        action, _ = policy.predict(observation)
        observation, _, _, over, info = env.step(action)
        actions.append(action)
        infos.append(info)
    return np.array(actions), infos


@EVERY
def test_what_is_revealed_is_not_used(name, form):
    hidden, shown = (harmonic(action=form, reveal=part) for part in ("importance", "parameters"))
    first, _ = play(hidden, make(name, hidden))
    policy = make(name, shown)
    observation, _ = shown.reset(seed=0)
    assert np.array_equal(policy.predict(observation)[0], first[0])
    if form == "page":  # where rates are revealed, what they may spend differs
        assert np.array_equal(play(shown, make(name, shown))[0], first)


@pytest.mark.parametrize("name", RATES)
def test_what_is_declared_keeps_to_the_budget_even_where_it_steps(name):
    steps = [[4.0, 9.0], [8.5, 2.0]]
    env = harmonic(action="rates", overspend="error", bandwidth_steps=steps)
    _, infos = play(env, make(name, env))
    declared = np.array([info["declared"] for info in infos])
    budget = np.array([5.0] * 4 + [9.0] * 4 + [5.5] + [2.0] * 3)
    assert np.all(declared <= budget * (1.0 + 1e-9))
    if name == "LambdaLearnAndCrawl":
        assert declared == pytest.approx(budget, rel=1e-9)


def test_the_last_declaration_before_a_step_counts():
    env = harmonic(action="rates", overspend="error")
    one, other = (make("LambdaLearnAndCrawl", env, initial=initial) for initial in (1.0, 9.0))
    observation, _ = env.reset(seed=2)
    action, _ = one.predict(observation)
    other.predict(observation)
    with pytest.raises(ValueError, match="action must spend at most the bandwidth 5"):
        env.step(action)
    other.predict(observation)
    one.predict(observation)
    assert env.step(action)[-1]["declared"] == pytest.approx(5.0, rel=1e-9)


def test_the_learner_ends_near_the_policy_with_known_rates():
    instance = make_instance("mixed", num_pages=20, bandwidth=5.0, seed=3)
    env = harmonic(action="rates", horizon=200.0)
    policy = make("LambdaLearnAndCrawl", env)
    play(env, policy, 0, options={"instance": instance})
    error = np.abs(policy.of_lane().estimate() - instance.change_rate)
    assert np.median(error) < 0.1
    assert np.median(error[instance.complete]) < 0.05
