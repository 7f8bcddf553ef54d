"""The agent in every family."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import agents
import policies
from agents.generalist.policy import LearnedBelief, formula_of, load_generalist
from crawl_envs.evaluation import make_env, play
from policies import bind
from scripts.suite.suites import SUITES
from tests.agents.generalist.belief_twin import Twin
from tests.agents.generalist.test_stored import stored
from tests.agents.generalist.twins import further_inputs, price

SMALL = {"num_pages": 20, "bandwidth": 20.0, "horizon": 5.0}
ACTS = {
    "harmonic": "GreedyHarmonic",
    "harmonic-unknown": "LambdaLearnAndCrawl",
    "harmonic-rates": "LambdaCrawl",
    "quality": "FragmentStatic",
    "quality-unknown": "LearningLongevity",
    "offers-rates": "DiscreteLambdaCrawl",
    "garden-directory-4": "BeliefNCIS",
}


@pytest.fixture
def folder(tmp_path):
    stored().save(tmp_path)
    return tmp_path


PLAYED = (
    *ACTS,
    *("noisy", "noisy-scores", "noisy-refresh", "sources", "cold"),
    "offers-scores",
)


@pytest.mark.parametrize(
    "task",
    [task for task in SUITES["crawl-v1"] if task.name in PLAYED],
    ids=lambda task: task.name,
)
def test_it_can_act_in_every_kind_of_task(task, folder):
    arguments = {**task.arguments}
    if task.track == "recorded":
        arguments["window"] = [100.0, 108.0]
    env = make_env(task.id, **arguments)
    policy = agents.load(folder, env)
    if task.name in ACTS:
        assert policy.name == ACTS[task.name]
    observation, _ = env.reset(seed=1)
    for _ in range(3):
        action, _ = policy.predict(observation)
        assert env.action_space.contains(action)
        observation, _, _, _, _ = env.step(action)


def test_tasks_of_pages_that_are_fresh_or_stale_are_left_to_its_belief():
    names = {task.name for task in SUITES["crawl-v1"] if task.bound != "clairvoyant"}
    left = {
        task.name
        for task in SUITES["crawl-v1"]
        if task.name in names and formula_of(make_env(task.id, **task.arguments)) is None
    }
    assert {"noisy", "noisy-unknown", "late", "offers-scores", "noisy-refresh"} <= left
    assert not left & {*ACTS}


@pytest.mark.parametrize("reveal", ["parameters", "importance"])
def test_rates_of_pages_that_are_fresh_or_stale(reveal, folder):
    env = make_env("CrawlNCIS-v0", action="rates", reveal=reveal, **SMALL)
    known = reveal == "parameters"
    name = "BinaryLambdaCrawl" if known else "LambdaLearnAndCrawlBinary"
    assert load_generalist(folder, env).name == name


@pytest.mark.parametrize("law", ["deploys", "late", "sources"])
def test_crawls_are_those_of_the_step_loop(law, folder):
    env = gymnasium.make("CrawlNCIS-v0", instance=law, **SMALL)
    env.reset(seed=4)
    compiled = play(env, agents.load(folder, env), 4)
    stepped = play(env, agents.load(folder, env), 4, compiled=False)
    assert compiled.freshness == stepped.freshness
    assert compiled.freshness != play(env, policies.make("BeliefNCIS", env), 4).freshness


@pytest.mark.parametrize("law", ["bursty", "deploys"])
def test_scores_are_those_of_the_twin(law):
    env = gymnasium.make("CrawlNCIS-v0", instance=law, **SMALL)
    env.reset(seed=3)
    agent, belief = bind(LearnedBelief(stored=stored()), env), policies.make("BeliefNCIS", env)
    twin, corrected = Twin(env), 0
    observation, over = env.reset(seed=3)[0], False
    while not over:
        twin.follow()
        tracker = env.unwrapped.tracker()
        found, plain = agent.update().scores(tracker), belief.update().scores(tracker)
        weight = env.unwrapped.problem.importance
        for page in range(0, 20, 7):
            if plain[page] < 0.02 * plain.max():
                assert found[page] == plain[page]
                continue
            inputs = twin.inputs(page) + further_inputs(twin, page, plain[page] / weight[page])
            x, _, rate, *_ = twin.read(page)
            _, expected = price(stored().weights, 3, np.array(inputs), x, rate)
            assert found[page] == pytest.approx(weight[page] * expected, rel=1e-6)
            corrected += 1
        action, _ = agent.predict(observation)
        observation, _, _, over, _ = env.step(action)
    assert corrected > 100


def test_it_serves_pages_without_an_environment(folder):
    instance = make_env("CrawlNCIS-v0", **SMALL)
    instance.reset(seed=0)
    pages = policies.LivePages(instance.unwrapped.problem)
    agent = agents.load(folder)
    agent.start(pages)
    (page,) = agent.choose(pages.tracker())
    assert 0 <= page < 20


def test_it_has_no_cycle(folder):
    env = make_env("CrawlNCIS-v0", **SMALL)
    with pytest.raises(ValueError, match="env must be a crawl environment, got object"):
        agents.load(folder, object())
    with pytest.raises(ValueError, match="cycle must be None"):
        agents.load(folder, env, cycle=1.0)
