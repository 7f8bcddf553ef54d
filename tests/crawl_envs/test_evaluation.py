"""simulate = step loop; published sequences; rows and intervals."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from scipy import stats

import policies
from crawl_envs import instances
from crawl_envs.evaluation import Row, evaluate, mean_and_half_width, simulate, summarize
from crawl_envs.sim.tape import Tape
from crawl_envs.types import Instance
from tests.crawl_envs.sim.test_reference_events import WORLDS, lists_of
from tests.reference import reference
from tests.worlds import single_of, stepped

SLOTTED = [name for name in policies.names("page") if hasattr(getattr(policies, name), "compile")]


@pytest.mark.parametrize("instance", ["uniform", "partial", "noisy", "delayed"])
@pytest.mark.parametrize("name", SLOTTED)
def test_simulate_makes_the_crawls_of_the_step_loop(name, instance):
    arguments = {"num_pages": 60, "bandwidth": 20.0, "instance": instance}
    env = gymnasium.make("CrawlNCIS-v0", horizon=12.0, **arguments)
    env.reset(seed=4)
    pages = stepped(env, policies.make(name, env), seed=4)
    rollout = simulate(
        instances.make(instance, num_pages=60, bandwidth=20.0, seed=4),
        policies.make(name, env),
        12.0,
        seed=4,
    )
    np.testing.assert_array_equal(rollout.crawls, pages)
    assert rollout.ledger == env.unwrapped.ledger()


@pytest.mark.parametrize("window", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_simulate_where_pages_are_reborn_amid_signals(seed, window):
    """Random tapes with many deaths, rebirths and signals of few pages."""
    rng = np.random.default_rng(seed)
    lists = {
        name: (rng.uniform(0.0, 30.0, count), rng.integers(0, 6, count))
        for name, count in (("births", 60), ("deaths", 60), ("signals", 200), ("changes", 60))
    }
    tape = Tape.of_events(6, alive=rng.random(6) < 0.5, **lists)
    instance = Instance(rng.random(6), rng.random(6), 0.6, 0.5, bandwidth=2.0)
    env = single_of(instance, horizon=30.0, tape=tape)
    env.reset(seed=0)
    pages = stepped(env, policies.make("GreedyNCIS", env, delay_window=window), seed=0)
    policy = policies.make("GreedyNCIS", env, delay_window=window)
    rollout = simulate(instance, policy, 30.0, tape=tape)
    np.testing.assert_array_equal(rollout.crawls, pages)
    assert rollout.ledger == env.ledger()


def test_simulate_with_delay_window_and_bandwidth_steps():
    arguments = {
        "num_pages": 30,
        "bandwidth": 10.0,
        "bandwidth_steps": ((5.0, 25.0), (9.0, 4.0)),
        "delay": {"kind": "exponential", "mean": 0.3},
    }
    env = gymnasium.make("CrawlNCIS-v0", instance="noisy", horizon=14.0, **arguments)
    env.reset(seed=1)
    pages = stepped(env, policies.make("GreedyNCIS", env, delay_window=0.4), seed=1)
    rollout = simulate(
        instances.make("noisy", seed=1, **arguments),
        policies.make("GreedyNCIS", env, delay_window=0.4),
        14.0,
        seed=1,
    )
    np.testing.assert_array_equal(rollout.crawls, pages)
    plain = simulate(
        instances.make("noisy", seed=1, **arguments), policies.make("GreedyNCIS", env), 14.0, 1
    )
    assert not np.array_equal(plain.crawls, rollout.crawls)


def test_simulate_grows_the_log_of_signals():
    """Some slots bring far more signals than are provided for at first."""
    instance = Instance(1.0, np.ones(50), 0.5, 40.0, bandwidth=2.0)
    env = gymnasium.make("CrawlNCIS-v0", num_pages=50, bandwidth=2.0)
    env.reset(seed=3, options={"instance": instance})
    policy = policies.make("GreedyNCIS", env)
    pages = []
    for _ in range(15):
        action, _ = policy.predict(env.unwrapped.lanes.observation(0))
        pages.append(int(action))
        env.step(action)
    rollout = simulate(instance, policies.make("GreedyNCIS", env), 7.5, seed=3)
    np.testing.assert_array_equal(rollout.crawls, pages)
    assert rollout.ledger.signals > 10_000


REFERENCE_POLICIES = {
    "GREEDY": ("Greedy", {}),
    "GREEDY-CIS-I1": ("GreedyCIS", {"reading": "I1"}),
    "GREEDY-CIS-I2": ("GreedyCIS", {"reading": "I2"}),
    "GREEDY-CIS-I3": ("GreedyCIS", {"reading": "I3"}),
    "GREEDY-NCIS": ("GreedyNCIS", {}),
    "APPROX-1": ("GreedyNCISApprox", {"terms": 1}),
    "APPROX-2": ("GreedyNCISApprox", {"terms": 2}),
}


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world["name"])
def test_reference_worlds_give_their_crawls_and_hits(world):
    instance = Instance(
        world["mu"], world["Delta"], world["lam"], world["nu"], bandwidth=world["R"]
    )
    played = 0
    for label, result in world["results"].items():
        key, _, variant = label.partition(" delayed")
        name, arguments = REFERENCE_POLICIES[key]
        if "discard" in variant:
            arguments = {**arguments, "delay_window": 5.0 / world["R"]}
        tape = Tape.of_events(world["m"], **lists_of(world, delayed="delayed" in label))
        policy = policies.make(name, **arguments)
        rollout = simulate(instance, policy, world["T"], tape=tape)
        np.testing.assert_array_equal(rollout.crawls, result["crawl_sequence"], err_msg=label)
        served = rollout.ledger.hits, rollout.ledger.requests
        assert served == (result["hits"], result["requests"]), label
        played += 1
    assert played == len(world["results"]) >= 5


@pytest.mark.parametrize("index", range(3))
def test_reference_greedy_without_signals(index):
    """Exact expected accuracies over T = 1000 and the first picks, from independent code."""
    world = reference("greedy_deterministic")[index]
    arrays = {key: world[key] for key in ("mu", "Delta") if key in world}
    if not arrays:
        rng = np.random.default_rng(world["seed"])
        arrays = {"Delta": rng.random(world["m"]), "mu": rng.random(world["m"])}
    instance = Instance(arrays["mu"], arrays["Delta"], bandwidth=100.0)
    policy = policies.Greedy()
    rollout = simulate(instance, policy, 1000.0, seed=1)
    np.testing.assert_array_equal(rollout.crawls[:300], world["greedy_first300"])
    if world["greedy_counts"] is not None:
        np.testing.assert_array_equal(rollout.crawl_counts, world["greedy_counts"])
    assert rollout.freshness == pytest.approx(world["greedy_exact_acc"], abs=0.003)


def factories(*names):
    return {name: (lambda env, name=name: policies.make(name, env)) for name in names}


def test_evaluate_yields_the_same_rows_compiled_and_stepped():
    arguments = {"num_pages": 20, "bandwidth": 20.0, "horizon": 3.0, "instance": "noisy"}
    chosen = factories("Greedy", "GreedyNCIS", "RandomCrawl", "LowDiscrepancy")
    fast = list(evaluate("CrawlNCIS-v0", chosen, range(3), **arguments))
    slow = list(evaluate("CrawlNCIS-v0", chosen, range(3), compiled=False, **arguments))
    assert fast == slow
    assert {row.policy for row in fast} == set(chosen)


def test_bounds_stand_beside_policies():
    rows = list(
        evaluate(
            "CrawlNCIS-v0",
            factories("RoundRobin"),
            [0],
            setting="tiny",
            bounds={"ONE": lambda instance: float(instance.num_pages)},
            num_pages=5,
            horizon=1.0,
        )
    )
    assert Row("CrawlNCIS-v0", "tiny", "ONE", 0, "accuracy", 5.0) in rows


def test_intervals_are_students():
    values = [0.3, 0.5, 0.45, 0.9]
    mean, half = mean_and_half_width(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (mean - half, mean + half) == pytest.approx((low, high), rel=1e-12)
    assert np.isnan(mean_and_half_width([1.0])[1])


def test_differences_are_paired_by_seed():
    rows = [Row("id", "s", "a", seed, "m", float(seed)) for seed in range(4)]
    rows += [Row("id", "s", "b", seed, "m", seed + 0.5) for seed in range(1, 4)]
    by_policy = {summary.policy: summary for summary in summarize(rows, "m", reference="a")}
    assert by_policy["b"].difference == pytest.approx(0.5)
    assert by_policy["b"].difference_half_width == pytest.approx(0.0, abs=1e-12)
    assert by_policy["a"].difference == 0.0


def test_no_rows_have_no_summary():
    assert summarize([], "m") == []


def test_slotted_crawls_are_made_when_the_budget_allows_them():
    """At 2 per unit up to 3 and at 4 per unit from then on."""
    instance = Instance([1.0, 1.0], [1.0, 1.0], bandwidth=2.0, bandwidth_steps=((3.0, 4.0),))
    policy = policies.Greedy()
    rollout = simulate(instance, policy, 4.0)
    np.testing.assert_allclose(
        rollout.times, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.25, 3.5, 3.75, 4.0], rtol=1e-15
    )
