"""BeliefNCIS in environments: rollouts, and its freshness against published formulas."""

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs
import policies
from crawl_envs.evaluation import play
from crawl_envs.instances import STRESS, traces
from policies.ncis.belief import layout
from policies.ncis.belief.warm_start import CHANGE, SIGNAL, History
from scripts.data.replays import past

SETTINGS = {
    "noisy": ("CrawlNCIS-v0", {"instance": "noisy", "num_pages": 9, "bandwidth": 12.0}),
    "sources": ("CrawlNCIS-v0", {"instance": "sources", "num_pages": 9, "bandwidth": 12.0}),
    "cold": (
        "CrawlNCIS-v0",
        {"instance": "noisy", "num_pages": 9, "bandwidth": 12.0, "reveal": "importance"},
    ),
    "deploys": ("CrawlNCIS-v0", {"instance": "deploys", "num_pages": 20, "bandwidth": 20.0}),
    "trace": ("CrawlTrace-v0", {"days_per_crawl": 60.0}),
    "trace, both": (
        "CrawlTrace-v0",
        {"days_per_crawl": 60.0, "signals": "both", "reveal": "importance"},
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_rollouts_crawl_as_steps_do(name):
    family, arguments = SETTINGS[name]
    env = gym.make(family, **arguments)
    env.reset(seed=5)
    policy = policies.make("BeliefNCIS", env)
    quick = play(env, policy, 5)
    env.reset(seed=5)
    slow = play(env, policy, 5, compiled=False)
    assert quick.crawls >= 100
    assert quick == slow


def test_with_a_history_too():
    family, arguments = SETTINGS["noisy"]
    env = gym.make(family, **arguments)
    env.reset(seed=5)
    rng = np.random.default_rng(1)
    kinds = rng.choice([CHANGE, SIGNAL], 400)
    history = History(
        np.sort(rng.uniform(0.0, 50.0, 400)), rng.integers(0, 9, 400), kinds, np.ones(9, bool), 50.0
    )
    results = {}
    for label, given in (("blank", None), ("taught", history)):
        policy = policies.make("BeliefNCIS", env, history=given, memory=20.0)
        env.reset(seed=5)
        quick = play(env, policy, 5)
        env.reset(seed=5)
        assert quick == play(env, policy, 5, compiled=False)
        results[label] = quick
    assert results["blank"] != results["taught"]


def differences(seeds, first, second, **arguments):
    """Freshness of the first policy less that of the second, by seed, on the same events."""
    freshness = []
    for seed in seeds:
        env = gym.make("CrawlNCIS-v0", **arguments)
        env.reset(seed=seed)
        one, other = (
            play(env, policies.make(name, env), seed).freshness for name in (first, second)
        )
        freshness.append(one - other)
    return np.array(freshness)


def interval(freshness):
    half = 2.05 * freshness.std(ddof=1) / np.sqrt(freshness.size)
    return freshness.mean() - half, freshness.mean() + half


def test_near_greedy_ncis_where_true_parameters_are_revealed():
    settings = {"instance": "noisy", "num_pages": 100, "bandwidth": 100.0, "horizon": 50.0}
    low, high = interval(differences(range(20), "BeliefNCIS", "GreedyNCIS", **settings))
    assert low > -0.003
    assert high < 0.003


@pytest.mark.parametrize("setting", ["deploys", "wrong signal quality"])
def test_above_greedy_ncis_where_the_revealed_model_is_wrong(setting):
    low, _ = interval(differences(range(6), "BeliefNCIS", "GreedyNCIS", **STRESS[setting]))
    assert low > 0.0


def test_as_fresh_as_learning_greedy_ncis_where_nothing_is_revealed():
    freshness = differences(range(8), "BeliefNCIS", "LearningGreedyNCIS", **STRESS["cold start"])
    low, high = interval(freshness)
    assert low > -0.005
    assert high > 0.0


@pytest.mark.parametrize("reveal", ["importance", "parameters"])
def test_parameters_are_looked_at_only_where_they_are_revealed(reveal):
    family, arguments = SETTINGS["noisy"]
    played = {}
    for recall in (0.2, 0.9):
        env = gym.make(family, **(arguments | {"reveal": reveal}))
        truth = crawl_envs.Instance(1.0 + np.arange(9), 0.5, recall, 0.3, bandwidth=12.0)
        env.reset(seed=5, options={"instance": truth})
        scores = policies.make("BeliefNCIS", env).update().scores(env.unwrapped.tracker())
        problem = env.unwrapped.problem
        played[recall] = policies.make("BeliefNCIS", env).compile(problem, 0, None).memory.pages
        assert scores.shape == (9,)
    assert np.array_equal(played[0.2], played[0.9]) == (reveal == "importance")


@pytest.mark.parametrize(("num_pages", "first"), [(8, 2), (3, 1)])
def test_shared_beliefs_are_renewed_soon_and_then_at_each_round_of_crawls(num_pages, first):
    env = gym.make("CrawlNCIS-v0", num_pages=num_pages, bandwidth=4.0, horizon=20.0)
    env.reset(seed=0)
    policy = policies.make("BeliefNCIS", env)
    shared = policy.update().learner.memory.shared
    due = []
    for _ in range(3 * num_pages):
        if not due or shared[layout.DUE] != due[-1]:
            due.append(int(shared[layout.DUE]))
        env.step(0)
        policy.update()
    assert due[:3] == [first, first + num_pages, first + 2 * num_pages]


def test_a_recorded_trace_teaches_the_days_that_follow():
    trace = traces.load(traces.find("garden-handbook"))
    history = past(trace, 0.0, 100.0, "directory")
    env = gym.make("CrawlTrace-v0", trace="garden-handbook", window=(100.0, 200.0))
    env.reset(seed=0)
    taught, blank = (policies.make("BeliefNCIS", env, history=given) for given in (history, None))
    tracker = env.unwrapped.tracker()
    rates = [policy.update().beliefs(tracker)["change_rate"] for policy in (taught, blank)]
    assert (rates[0] != rates[1])[tracker.alive].all()
