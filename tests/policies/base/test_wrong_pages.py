"""Pages, parameters and kernels that do not fit are refused, not read as if they did."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs.compiled.compiling import VALUE, compiled
from crawl_envs.evaluation import simulate
from crawl_envs.types import Instance, Problem
from policies.base.index import IndexPolicy
from tests.policies.replay import FEATURES, ReplayCore, random_lane

KNOWN = ("importance", "change_rate", "recall", "false_signal_rate")


def pages_of(num_pages):
    parameters = {name: np.full(num_pages, 0.5) for name in KNOWN}
    return policies.LivePages(Problem(num_pages, 1.0, **parameters))


@pytest.mark.parametrize("name", ["GreedyNCIS", "RoundRobin", "LambdaCrawl"])
@pytest.mark.parametrize("num_pages", [4, 9])
def test_a_tracker_of_more_or_fewer_pages_is_refused(name, num_pages):
    policy = policies.make(name, action_form="page")
    policy.start(pages_of(6))
    words = f"tracker must have the 6 pages that {name} started with, got {num_pages}"
    with pytest.raises(ValueError, match=words):
        policy.choose(pages_of(num_pages).tracker())


@pytest.mark.parametrize("name", KNOWN)
def test_parameters_of_a_problem_have_its_number_of_pages(name):
    parameters = {other: np.full(6, 0.5) for other in KNOWN}
    with pytest.raises(ValueError, match=rf"{name} must have 6 pages, got shape \(5,\)"):
        Problem(6, 1.0, **{**parameters, name: np.full(5, 0.5)})


def test_a_believed_problem_has_all_pages():
    policy = policies.Greedy(believed=lambda problem: pages_of(4).problem)
    with pytest.raises(ValueError, match=r"table of Greedy must have a row per page, at least \(6"):
        policy.start(pages_of(6))


def test_a_believed_problem_may_add_what_the_environment_hides():
    env = gym.make("CrawlNCIS-v0", num_pages=6, bandwidth=3.0, horizon=2.0, reveal="importance")
    observation, _ = env.reset(seed=1)
    believed = env.unwrapped.instance.problem()
    settings = {"believed": lambda problem: believed}
    hidden = policies.make("GreedyNCIS", env)
    with pytest.raises(ValueError, match="GreedyNCIS needs change_rate, recall"):
        hidden.predict(observation)
    page, _ = policies.make("GreedyNCIS", env, **settings).predict(observation)
    assert env.action_space.contains(page)


@compiled(VALUE.signature)
def by_weight(parameters, page, elapsed, signals):
    return parameters[page, 0] * elapsed


class Weighted(IndexPolicy):
    """Importance times age; importance is public, so it is not among the needs."""

    def _index(self, problem):
        return by_weight, problem.importance[:, None]  # a view, which is copied


def test_importance_is_read_from_its_column_without_being_needed():
    core = ReplayCore(random_lane(9, 3))
    bound, columns = policies.bind(Weighted(), core), policies.FromColumns(Weighted(), FEATURES)
    observation, chosen = core.reset(), []
    for _ in range(30):
        action, _ = bound.predict(observation)
        np.testing.assert_array_equal(columns.predict(observation)[0], action)
        chosen.append(int(action[0]))
        observation = core.step(action)
    assert np.bincount(chosen, minlength=9).max() > 4  # not in turn


def test_a_plain_function_is_no_index():
    class Plain(Weighted):
        def _index(self, problem):
            return (lambda parameters, page, elapsed, signals: 0.0), np.zeros((6, 1))

    instance = Instance(np.ones(6), 1.0, bandwidth=5.0)
    with pytest.raises(ValueError, match="index of Plain must be compiled by"):
        simulate(instance, Plain(), 2.0)


class Needy(policies.Policy):
    needs = ("change_rate",)

    def choose(self, tracker):
        return 0


def test_what_any_policy_needs_is_checked_at_the_start():
    env = gym.make("CrawlNCIS-v0", num_pages=5, reveal="importance")
    observation, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match="Needy needs change_rate, which the environment does not"):
        policies.bind(Needy(), env).predict(observation)


@pytest.mark.parametrize("choice", [1.0, [0.2], [0.2] * 4])
def test_shares_are_of_every_page(choice):
    class Rates(policies.Policy):
        acts = ("rates", "shares")

        def choose(self, tracker):
            return choice

    env = gym.make("CrawlHarmonic-v0", num_pages=5, action="shares")
    observation, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match=r"Rates must choose a number per page, \(5,\)"):
        policies.bind(Rates(), env).predict(observation)


@pytest.mark.parametrize("policy", [policies.Greedy, "Greedy", None])
def test_only_policies_are_bound(policy):
    with pytest.raises(
        ValueError, match=r"policy must be a policies.Policy that is not bound, got"
    ):
        policies.bind(policy, gym.make("CrawlNCIS-v0", num_pages=5))
