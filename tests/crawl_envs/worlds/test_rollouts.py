"""Policies of rates in compiled code: the crawls and the rows of the loop of steps."""

from __future__ import annotations

import math
from dataclasses import asdict

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs import Instance
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.evaluation import evaluate, play, simulate
from crawl_envs.types.compiled_policies import CompiledRates, CompiledSequence, RateRule
from tests.crawl_envs.test_bad_input import complains
from tests.environments import HARMONIC, LONGEVITY, NCIS, OFFERS
from tests.worlds import rated_of

SEED, TRACE, DAYS = 4, "CrawlTrace-v0", [100.0, 130.0]
RATED = {"num_pages": 8, "bandwidth": 6.0, "horizon": 12.0}


class Steady:
    """Rates and answers by rules of (start, action), as a policy of steps and a compiled one."""

    def __init__(self, env, rules=None, share=0.9):
        self.core = env.unwrapped
        self.rules, self.share, self.asked = rules, share, 0

    def plan(self, problem):
        """By default, three ways to spend a share of the budget."""
        if self.rules is not None:
            return self.rules
        complete, pages = problem.complete, np.arange(problem.num_pages)
        plan = []
        for start, tilt in ((0.0, 0.0), (3.0, 1.0), (7.0, -0.5)):
            rates = np.where(complete, 0.0, np.exp(tilt * pages / pages.size))
            action = np.where(complete, 0.4 + 0.1 * tilt, 0.0)
            left = self.share * problem.bandwidth - action.sum()
            plan.append((start, action + rates * (left / max(rates.sum(), 1e-9))))
        return plan

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.asked += 1
        tracker = self.core.tracker()
        started = [action for start, action in self.plan(tracker.problem) if start <= tracker.time]
        return started[-1], state

    def compile(self, problem, slots, rng):
        rules = []
        for start, action in self.plan(problem):
            complete = problem.complete
            rates, chances = np.where(complete, 0.0, action), np.where(complete, action, 0.0)
            rules.append(RateRule(start, rates, chances))
        return CompiledRates(tuple(rules))


def stepped(env, policy, seed):
    """The pages and the times of the crawls of a loop of steps."""
    observation, _ = env.reset(seed=seed)
    pages, times, over = [], [], False
    while not over:
        action, _ = policy.predict(observation)
        observation, _, _, over, _ = env.step(action)
        log = env.unwrapped.last_log()
        pages.append(log.page)
        times.append(log.time)
    return np.concatenate(pages), np.concatenate(times)


def assert_same_ledger(one, other):
    """Counts are equal; integrals are sums over other parts of the episode."""
    for name, value in asdict(one).items():
        exact = not name.endswith("_time")
        expected = getattr(other, name)
        assert value == (expected if exact else pytest.approx(expected, rel=1e-12)), name


@pytest.mark.parametrize("epoch", [0.5, 1.0])
@pytest.mark.parametrize("instance", ["uniform", "mixed", "lambdacrawl"])
@pytest.mark.parametrize("seed", range(3))
def test_simulate_makes_the_crawls_of_the_step_loop(seed, instance, epoch):
    arguments = {**RATED, "bandwidth": 20.0, "num_pages": 20}
    env = gym.make(HARMONIC, instance=instance, epoch=epoch, **arguments)
    env.reset(seed=seed)
    policy = Steady(env)
    pages, times = stepped(env, policy, seed)
    assert policy.asked == 12 / epoch
    core = env.unwrapped
    rollout = simulate(
        core.instance, Steady(env), 12.0, seed=seed, penalty="harmonic", requests=False
    )
    np.testing.assert_array_equal(rollout.crawls, pages)
    np.testing.assert_array_equal(rollout.times, times)
    assert pages.size > 80
    assert_same_ledger(rollout.ledger, core.ledger())


def rows_of(compiled, made, name=HARMONIC, **more):
    """The rows of a policy, which is put into ``made``."""

    def factory(env):
        made.append(Steady(env, share=more.get("share", 0.9)))
        return made[-1]

    size = {} if {"window", "trace"} & set(more) else RATED
    arguments = {**size, "action": "rates", **more}
    arguments.pop("share", None)
    return list(evaluate(name, {"steady": factory}, range(3), compiled=compiled, **arguments))


def assert_same_rows(one, other):
    assert [row[:-1] for row in one] == [row[:-1] for row in other]
    for mine, yours in zip(one, other, strict=True):
        assert mine.value == pytest.approx(yours.value, rel=1e-12, nan_ok=True), mine


PLAYABLE = {
    "mixed": {"instance": "mixed"},
    "uniform": {"instance": "uniform"},
    "other epochs": {"epoch": 0.5},
    "a table": {"objective": [0.0, 1.0, 1.5]},
    "more bandwidth later": {"bandwidth_steps": [(6.5, 20.0)]},
    "all the budget": {"instance": "uniform", "share": 1.0},
    "a horizon off the grid": {"horizon": 11.3},
    "delayed signals": {"instance": "mixed", "delay": {"kind": "constant", "mean": 0.25}},
    "requests": {"name": NCIS, "instance": "noisy"},
    "a trace": {"name": TRACE, "window": DAYS},
    "fragments": {"name": LONGEVITY, "signals": "noisy"},
    "recorded fragments": {"name": LONGEVITY, "instance": "garden-handbook", "window": DAYS},
}
STEPPED = {
    "a bucket": {"bucket": 2.0},
    "hidden rates": {"reveal": "importance"},
    "too much is asked for": {"share": 1.2},
    "too much of fragments": {"name": LONGEVITY, "share": 1.2},
    "a bucket of a trace": {"name": TRACE, "window": DAYS, "bucket": 2.0},
    "too much is asked for later": {"bandwidth_steps": [(6.5, 2.0)]},
    "epochs between the rules": {"epoch": 2.0},
}


@pytest.mark.parametrize("case", [*PLAYABLE, *STEPPED])
def test_compiled_rows_are_those_of_steps(case):
    """And where the budget, a bucket or hidden rates interfere, they are steps."""
    more = PLAYABLE.get(case, STEPPED.get(case))
    compiled, steps = [], []
    assert_same_rows(rows_of(True, compiled, **more), rows_of(False, steps, **more))
    assert all(policy.asked > 0 for policy in steps)
    assert all((policy.asked == 0) == (case in PLAYABLE) for policy in compiled)


def one_rule(problem, rates, chances):
    class OneRule(Steady):
        def compile(self, problem, slots, rng):
            return CompiledRates((RateRule(0.0, rates, chances),))

    return OneRule


@pytest.mark.parametrize("unsaid", ["rates of complete pages", "answers of other pages"])
def test_what_no_action_says_is_not_played_as_one(unsaid):
    env = gym.make(HARMONIC, instance="noisy", **RATED)
    env.reset(seed=0)
    zero, some = np.zeros(8), np.full(8, 0.1)
    rates, chances = (zero, some) if unsaid == "answers of other pages" else (some, zero)
    arguments = {**RATED, "instance": "mixed" if rates is some else "noisy"}
    asked = []

    def factory(env):
        policy = one_rule(env.unwrapped.problem, rates, chances)(env)
        asked.append(policy)
        return policy

    list(evaluate(HARMONIC, {"given": factory}, [0], **arguments))
    assert asked[0].asked == 12


BAD_RULES = {
    "too few rates": (np.zeros(2), np.zeros(3), "rates", r"\(3,\)"),
    "too few chances": (np.zeros(3), np.zeros(2), "chances", r"\(3,\)"),
    "a rate below 0": (np.array([0.0, -1.0, 0.0]), np.zeros(3), "rates", "-1.0"),
    "an endless rate": (np.array([0.0, np.inf, 0.0]), np.zeros(3), "rates", "inf"),
    "a rate that is no number": (np.full(3, np.nan), np.zeros(3), "rates", "nan"),
    "a chance above 1": (np.zeros(3), np.full(3, 1.5), "chances", r"\[0, 1\].*1.5"),
    "a chance below 0": (np.zeros(3), np.full(3, -0.5), "chances", r"\[0, 1\].*-0.5"),
}


@pytest.mark.parametrize("case", BAD_RULES)
def test_rules_that_nobody_can_follow(case):
    rates, chances, *words = BAD_RULES[case]
    instance = Instance(np.ones(3), 1.0, bandwidth=3.0)
    env = rated_of(instance)
    env.reset(seed=0)
    policy = one_rule(None, rates, chances)(env)
    with pytest.raises(ValueError, match=words[0]) as caught:
        simulate(instance, policy, 5.0)
    assert caught.match(words[1])


class Turns(Steady):
    """Pages in turn, which is no policy of rates."""

    def compile(self, problem, slots, rng):
        return CompiledSequence(np.arange(problem.num_pages))

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.asked += 1
        return 0, state


@pytest.mark.parametrize(("policy", "form"), [(Turns, "rates"), (Steady, "page")])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_policy_of_another_form_does_not_play(policy, form, compiled):
    """A page is no action where rates are, nor the other way round: compiled or not."""
    rows = evaluate(HARMONIC, {"one": policy}, [0], compiled=compiled, action=form, **RATED)
    with pytest.raises(ValueError, match="action"):
        list(rows)


@pytest.mark.parametrize("name", ["LambdaCrawl", "LambdaCrawlApprox", "BinaryLambdaCrawl"])
def test_shipped_policies_of_rates(name):
    rows = {
        compiled: list(
            evaluate(
                HARMONIC,
                {name: lambda env: policies.make(name, env)},
                range(2),
                compiled=compiled,
                **RATED,
            )
        )
        for compiled in (True, False)
    }
    assert_same_rows(rows[True], rows[False])


SLOTTED = {
    "harmonic": {"id": HARMONIC, "instance": "noisy", **RATED},
    "requests": {"id": NCIS, "instance": "noisy", **RATED},
    "a trace": {"id": TRACE, "window": DAYS},
    "fragments": {"id": LONGEVITY, "signals": "noisy", **RATED},
    "recorded fragments": {"id": LONGEVITY, "instance": "garden-handbook", "window": DAYS},
    "offers": {"id": OFFERS, "num_pages": 99, "bandwidth": 40.0, "reveal": "parameters"},
}


@pytest.mark.parametrize("policy", ["Greedy", "RoundRobin", "LowDiscrepancy"])
@pytest.mark.parametrize("world", SLOTTED)
def test_slots_in_compiled_code(world, policy, monkeypatch):
    """The same ledger, to the last bit."""
    env = gym.make(**SLOTTED[world], action="page")
    env.reset(seed=SEED)
    steps = play(env, policies.make(policy, env), SEED, compiled=False)
    recorded = env.unwrapped.lanes.mortal
    if not (recorded and policy == "LowDiscrepancy"):  # a sequence is not of pages that die
        monkeypatch.setattr(CrawlEnv, "step", None)
    compiled = play(env, policies.make(policy, env), SEED)
    for name, value in asdict(steps).items():
        np.testing.assert_equal(getattr(compiled, name), value, name)
    assert steps.changes_found > 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"penalty": "quadratic"}, ("penalty", "'quadratic'")),
        ({"horizon": 0.1}, ("horizon", "0.1")),
        ({"horizon": math.nan}, ("horizon", "nan")),
        ({"seed": -1}, ("seed", "-1")),
    ],
)
def test_what_simulate_refuses(given, words):
    instance = Instance(np.ones(3), 1.0, bandwidth=3.0)
    env = rated_of(instance)
    env.reset(seed=0)
    arguments = {"horizon": 5.0, **given}
    complains(lambda: simulate(instance, Steady(env), **arguments), *words)
