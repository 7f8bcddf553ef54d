"""LambdaCrawl and similar policies: published figures, budgets, signal responses, and costs."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.evaluation import evaluate, simulate
from crawl_envs.types import Instance
from policies import solvers
from policies.base import schedules
from policies.base.bandwidths import epoch_bandwidths
from tests.naive import schedules as naive_schedules
from tests.naive.harmonic import periodic_bound
from tests.naive.signal_queue import NaiveResponses
from tests.policies.replay import ReplayCore, ReplayLane, run

HARMONIC = "CrawlHarmonic-v0"
OWN = ("BinaryLambdaCrawl", "ChangeRateCrawl", "LambdaCrawl", "LambdaCrawlApprox", "UniformCrawl")
EVERY_ONE = pytest.mark.parametrize("name", OWN)
GOLDEN = Instance([1.0, 2.0, 4.0, 1.0], [0.1, 0.5, 2.0, 5.0], bandwidth=1.0)


def rng():
    return np.random.default_rng(0)


def mixed(num_pages=40, bandwidth=8.0, seed=0, **more):
    rng = np.random.default_rng(seed)
    importance, change_rate = rng.random((2, num_pages))
    recall = 1.0 * (rng.random(num_pages) < 0.5)
    return Instance(importance, change_rate, recall, bandwidth=bandwidth, **more)


# Other penalties


def test_other_penalties_change_the_rates():
    instance = mixed(10, bandwidth=2.0)
    problem = instance.problem()
    own = policies.LambdaCrawl(penalty=np.sqrt)
    plan = own.allocate(problem, 2.0)
    solved = solvers.concave_penalty(
        instance.importance, instance.change_rate, 2.0, np.sqrt, instance.complete
    )
    np.testing.assert_array_equal(plan.rates, solved.rates)
    np.testing.assert_array_equal(plan.probabilities, solved.probabilities)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1.0, 20_001.0))])
    table = policies.LambdaCrawl(penalty=harmonic)
    known = policies.LambdaCrawl().allocate(problem, 2.0)
    np.testing.assert_allclose(table.allocate(problem, 2.0).rates, known.rates, rtol=1e-8)
    assert np.abs(plan.rates / known.rates - 1.0).max() > 0.01


# Published figures: the public code's, on four pages


@pytest.mark.parametrize(
    ("name", "arguments", "published"),
    [
        ("LambdaCrawl", {}, [0.087997, 0.227422, 0.524288, 0.160293]),
        ("BinaryLambdaCrawl", {}, [0.174672, 0.368589, 0.456740, 0.0]),
        ("BinaryLambdaCrawl", {"floor": 0.4}, [0.167042, 0.344461, 0.388497, 0.1]),
        ("LambdaCrawlApprox", {}, [0.125, 0.25, 0.5, 0.125]),
        ("UniformCrawl", {}, [0.25, 0.25, 0.25, 0.25]),
        ("ChangeRateCrawl", {}, [0.1 / 7.6, 0.5 / 7.6, 2.0 / 7.6, 5.0 / 7.6]),
    ],
)
def test_published_rates_are_the_action(name, arguments, published):
    core = ReplayCore(ReplayLane(GOLDEN), action_form="rates")
    action, _ = policies.make(name, core, **arguments).predict(core.reset())
    assert action.shape == (1, 4)
    assert action.dtype == np.float64
    np.testing.assert_allclose(action[0], published, atol=6e-7)


@pytest.mark.parametrize(
    ("bandwidth", "published"),
    [(1.0, [1.0, 0.514286, 0.257143, 0.025714]), (3.0, [1.0, 1.0, 0.96, 0.096])],
)
def test_published_probabilities_are_the_action(bandwidth, published):
    instance = Instance(GOLDEN.importance, GOLDEN.change_rate, 1.0, bandwidth=bandwidth)
    core = ReplayCore(ReplayLane(instance), action_form="rates")
    action, _ = policies.make("LambdaCrawl", core).predict(core.reset())
    np.testing.assert_allclose(action[0], published, atol=6e-7)


# Rates


@EVERY_ONE
def test_actions_spend_the_budget(name):
    instance = mixed()
    core = ReplayCore(ReplayLane(instance), action_form="rates")
    (action,), _ = policies.make(name, core).predict(core.reset())
    assert action[instance.complete].max() <= 1.0
    spent = np.where(instance.complete, action * instance.change_rate, action).sum()
    if name in ("LambdaCrawl", "LambdaCrawlApprox"):
        assert spent == pytest.approx(8.0, rel=1e-9)
    rates = policies.make(name).rates(instance.problem(), 8.0)
    capped = np.where(instance.complete, np.minimum(rates, instance.change_rate), rates)
    np.testing.assert_allclose(spent, capped.sum(), rtol=1e-9)
    assert spent > 5.0


@EVERY_ONE
def test_without_an_environment_only_lambdacrawl_responds_to_signals(name):
    instance = mixed()
    policy = policies.make(name, action_form="rates")
    (rule,) = policy.compile(instance.problem(), 0, rng()).rules
    assert rule.start == 0.0
    if name in ("LambdaCrawl", "LambdaCrawlApprox"):
        assert not rule.rates[instance.complete].any()
        assert np.all(rule.chances[instance.complete] > 0.0)
    else:
        np.testing.assert_array_equal(rule.rates, policy.rates(instance.problem(), 8.0))
        assert not rule.chances.any()
    assert not rule.chances[~instance.complete].any()


@pytest.mark.parametrize("epoch", [0.7, 1.0, 2.5])
def test_every_epoch_has_its_mean_bandwidth(epoch):
    instance = mixed(bandwidth_steps=[(2.2, 16.0), (2.4, 3.0), (7.0, 8.0)])
    core = ReplayCore(ReplayLane(instance), action_form="rates", epoch=epoch)
    policy = policies.make("LambdaCrawl", core)
    observation = core.reset()
    for number in range(10):
        times = (number + (np.arange(20_000) + 0.5) / 20_000) * epoch
        bandwidths = np.array([8.0, 16.0, 3.0, 8.0])
        bandwidth = bandwidths[np.searchsorted([2.2, 2.4, 7.0], times, side="right")].mean()
        (action,), _ = policy.predict(observation)
        allocation = solvers.harmonic(
            instance.importance, instance.change_rate, bandwidth, complete=instance.complete
        )
        expected = np.where(instance.complete, allocation.probabilities, allocation.rates)
        np.testing.assert_allclose(action, expected, rtol=2e-3)
        observation = core.step([action])


def test_bandwidths_of_epochs_are_exact():
    problem = Instance(1.0, 1.0, bandwidth=1.0, bandwidth_steps=[(2.0, 3.0), (2.5, 5.0)]).problem()
    assert epoch_bandwidths(problem, None) == [(0.0, 1.0), (2.0, 3.0), (2.5, 5.0)]
    assert epoch_bandwidths(problem, 1.0) == [(0.0, 1.0), (2.0, 4.0), (3.0, 5.0)]
    assert epoch_bandwidths(problem, 0.5) == [(0.0, 1.0), (2.0, 3.0), (2.5, 5.0), (3.0, 5.0)]
    assert epoch_bandwidths(problem, 4.0) == [(0.0, (2.0 + 1.5 + 7.5) / 4.0), (4.0, 5.0)]


def test_hidden_change_rates_are_missed_only_where_shares_need_them():
    for recall in (0.0, 1.0):
        lane = ReplayLane(Instance([1.0, 2.0], 0.5, recall, bandwidth=1.0))
        lane.reveal = "importance"
        core = ReplayCore(lane, action_form="rates")
        policy, observation = policies.make("UniformCrawl", core), core.reset()
        if recall == 0.0:
            np.testing.assert_array_equal(policy.predict(observation)[0], [[0.5, 0.5]])
            continue
        with pytest.raises(ValueError, match="UniformCrawl needs change_rate where"):
            policy.predict(observation)


@pytest.mark.parametrize("recall", [0.0, 1.0])
@EVERY_ONE
def test_pages_without_importance_or_changes(name, recall):
    for importance, change_rate in ((0.0, 1.0), (1.0, 0.0)):
        instance = Instance([importance] * 3, change_rate, recall, bandwidth=3.0)
        core = ReplayCore(ReplayLane(instance), action_form="rates")
        (action,), _ = policies.make(name, core).predict(core.reset())
        assert np.all(np.isfinite(action))
        slotted = ReplayCore(ReplayLane(instance, (), 4.0))
        assert run(policies.make(name, slotted), slotted, 6)[0] == [0, 1, 2, 0, 1, 2]


# Schedules


@EVERY_ONE
def test_without_signals_counts_stay_within_one_of_their_share(name):
    instance = Instance(*np.random.default_rng(3).random((2, 30)), bandwidth=6.0)
    policy = policies.make(name)
    compiled = policy.compile(instance.problem(), 3000, rng())
    assert compiled.answered is None or not compiled.answered.any()
    rates = policy.rates(instance.problem(), 6.0)
    assert naive_schedules.discrepancy(rates, compiled.pages) < 1.0


def test_where_slots_are_short_a_crawl_answers_for_several_signals():
    instance = Instance(np.ones(12), 2.0, 1.0, bandwidth=6.0)  # a quarter of the signals
    policy = policies.LambdaCrawl()
    rolled = simulate(instance, policy, 200.0, penalty="harmonic", requests=False)
    by_chance = simulate(
        instance,
        policies.LambdaCrawl().in_form("rates"),
        200.0,
        penalty="harmonic",
        requests=False,
    )
    assert rolled.crawl_counts.sum() == 1200
    np.testing.assert_allclose(rolled.crawl_counts, 100, rtol=0.1)
    assert rolled.ledger.cost < 0.95 * by_chance.ledger.cost


@EVERY_ONE
@pytest.mark.parametrize("complete", [0.5, 1.0])
def test_compiled_steps_and_twin_crawl_alike(name, complete):
    rng = np.random.default_rng(5)
    recall = 1.0 * (rng.random(15) < complete)
    instance = Instance(*rng.random((2, 15)) * 4.0, recall, bandwidth=5.0)
    env = gymnasium.make(HARMONIC, num_pages=15, bandwidth=5.0, horizon=30.0, action="page")
    policy = policies.make(name, env)
    observation, _ = env.reset(seed=2, options={"instance": instance})
    form = policy.compile(instance.problem(), 150, env.unwrapped.rng())
    twin, stepped, expected, over = NaiveResponses(*form), [], [], False
    while not over:
        for page in env.unwrapped.last_log().signal_page:
            twin.on_signal(page)
        expected.append(twin.crawl())
        action, _ = policy.predict(observation)
        stepped.append(int(action))
        observation, _, _, over, _ = env.step(action)
    rolled = simulate(instance, policy, 30.0, 2, penalty="harmonic", requests=False)
    assert stepped == expected
    assert rolled.crawls.tolist() == expected
    assert rolled.ledger == env.unwrapped.ledger()
    env.close()


def test_more_signals_in_a_slot_than_the_log_holds():
    instance = Instance([1.0, 1.0, 5.0], [40.0, 60.0, 1.0], [1.0, 1.0, 0.0], bandwidth=1.0)
    env = gymnasium.make(HARMONIC, num_pages=3, bandwidth=1.0, horizon=30.0, action="page")
    policy = policies.make("LambdaCrawl", env)
    observation, _ = env.reset(seed=2, options={"instance": instance})
    stepped, most, over = [], 0, False
    while not over:
        most = max(most, env.unwrapped.last_log().signal_page.size)
        action, _ = policy.predict(observation)
        stepped.append(int(action))
        observation, _, _, over, _ = env.step(action)
    assert most > 64
    assert len(set(stepped)) == 3
    assert simulate(instance, policy, 30.0, 2, requests=False).crawls.tolist() == stepped
    env.close()


def test_a_bandwidth_that_steps_has_its_own_schedule_or_its_mean():
    steps = [(100.0, 8.0), (200.0, 0.5)]
    plain = Instance([1.0] * 3, [0.1, 1.0, 4.0], bandwidth=0.5, bandwidth_steps=steps)
    policy = policies.LambdaCrawl()
    pages = policy.compile(plain.problem(), 900, rng()).pages
    for part, bandwidth in ((pages[:50], 0.5), (pages[50:850], 8.0), (pages[850:], 0.5)):
        rates = policy.rates(plain.problem(), bandwidth)
        np.testing.assert_array_equal(part, schedules.low_discrepancy(rates, len(part)))
    signalled = Instance(
        [1.0] * 3, [0.1, 1.0, 4.0], [0, 1, 1], bandwidth=0.5, bandwidth_steps=steps
    )
    form = policy.compile(signalled.problem(), 900, rng())
    allocation = solvers.harmonic([1.0] * 3, [0.1, 1.0, 4.0], 3.0, complete=signalled.complete)
    np.testing.assert_allclose(form.answered, allocation.probabilities, rtol=1e-9)


# With the environment


@EVERY_ONE
@pytest.mark.parametrize("steps", [(), ((2.5, 12.0), (4.0, 3.0))])
def test_compiled_rates_crawl_as_steps_do(name, steps):
    settings = {"num_pages": 12, "horizon": 8.0, "bandwidth": 6.0, "bandwidth_steps": steps}
    chosen = {name: lambda env: policies.make(name, env)}
    fast = list(evaluate(HARMONIC, chosen, range(3), **settings))
    slow = list(evaluate(HARMONIC, chosen, range(3), compiled=False, **settings))
    assert [row.metric for row in fast] == [row.metric for row in slow]
    np.testing.assert_allclose([row.value for row in fast], [row.value for row in slow], rtol=1e-9)


def test_random_crawls_cost_what_the_formulas_say():
    instance = mixed(num_pages=60, bandwidth=12.0, seed=2)
    for name in ("LambdaCrawl", "BinaryLambdaCrawl"):
        policy = policies.make(name, action_form="rates", **({"floor": 0.4} if "B" in name else {}))
        (rule,) = policy.compile(instance.problem(), 0, rng()).rules
        complete, rates = rule.chances > 0.0, rule.rates
        expected = -np.sum(
            instance.importance
            * np.log(np.where(complete, rule.chances, rates / (rates + instance.change_rate)))
        )
        costs = [
            simulate(instance, policy, 400.0, s, penalty="harmonic", requests=False).ledger.cost
            for s in range(12)
        ]
        error = np.std(costs, ddof=1) / np.sqrt(12)
        assert abs(np.mean(costs) - expected) < 4.0 * error + 0.004 * expected
        assert error < 0.01 * expected


# The gains by derandomising, and by using each page's state


def test_greedy_beats_schedules_and_schedules_beat_chance():
    instance = mixed(num_pages=100, bandwidth=20.0, seed=8)
    costs = {}
    for label, policy in (
        ("chance", policies.LambdaCrawl().in_form("rates")),
        ("schedule", policies.LambdaCrawl()),
        ("greedy", policies.GreedyHarmonic()),
    ):
        costs[label] = np.array(
            [
                simulate(instance, policy, 500.0, s, penalty="harmonic", requests=False).ledger.cost
                for s in range(16)
            ]
        )
    for better, worse in (("schedule", "chance"), ("greedy", "schedule")):
        gain = costs[worse] - costs[better]
        assert gain.mean() > 5.0 * gain.std(ddof=1) / 4.0
    bound = periodic_bound(instance.importance, instance.change_rate, instance.complete, 20.0)
    solved = solvers.harmonic_periodic(
        instance.importance, instance.change_rate, 20.0, complete=instance.complete
    )
    assert solved.objective == pytest.approx(bound, rel=1e-9)
    greedy = costs["greedy"]
    assert bound < greedy.mean() + 3.0 * greedy.std(ddof=1) / 4.0 < 1.02 * bound
