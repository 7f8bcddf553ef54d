"""Costs of crawls: the kernel against its twin, and against arithmetic by hand."""

from __future__ import annotations

from dataclasses import asdict

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import simulate
from crawl_envs.instances import make
from crawl_envs.sim.tape import Tape
from crawl_envs.types.compiled_policies import CompiledSequence
from policies.ncis.greedy import GreedyNCIS
from tests.crawl_envs.sim.test_world import (
    assert_same_tape_play,
    assert_same_world,
    draw_actions,
)
from tests.environments import assert_same, assert_same_future, bare, batch
from tests.naive import pages as naive
from tests.naive.divergence import Penalty
from tests.worlds import random_events, rounded, single_of, stepped, vector_of

SEED, LANES, HORIZON = 3, 3, 4.0
PAGES = 6


def priced(name="noisy", spread=1.0, seed=SEED, **more):
    """An instance with costs, of few digits."""
    drawn = make(name, seed=seed, num_pages=PAGES, bandwidth=6.0, cost_spread=spread, **more)
    return rounded(drawn)


WORLDS = {
    "one source": {},
    "two sources": {"name": "sources"},
    "delay": {"delay": {"kind": "exponential", "mean": 0.5}},
    "bandwidth steps": {"bandwidth_steps": ((0.7, 12.0), (2.1, 2.5))},
}
FORMS = {
    "page": {"action": "page"},
    "scores": {"action": "scores", "batch": 3},
    "refresh": {"action": "refresh"},
    "penalty": {"action": "page", "penalty": "harmonic"},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("world", "start"),
    [*((world, "fresh") for world in WORLDS), ("two sources", "crawled"), ("delay", "crawled")],
)
def test_worlds_with_costs_are_the_twins(world, start, form):
    """Each lane alone, up to the end of its episode, which lanes reach after different steps."""
    form = FORMS[form]
    rng = np.random.default_rng(5)
    slots, action = form.get("batch", 1), form["action"]
    penalty = form.get("penalty")
    ends = set()
    for lane in range(LANES):
        instance = priced(seed=SEED + lane, **WORLDS[world])
        env = single_of(instance, horizon=HORIZON, start=start, **form)
        observation, _ = env.reset(seed=lane)
        twin = naive.World(
            instance,
            naive.drawn_events(instance, lane, 0, 10.0 * HORIZON),
            slots=slots,
            divergence=None if penalty is None else Penalty(penalty),
            action=action,
            horizon=HORIZON,
            start=start,
        )
        assert_same_world(env, 0, observation, twin)
        over = False
        while not over:
            assert twin.time - twin.origin <= HORIZON + 1e-9
            actions, crawls = draw_actions(rng, action, PAGES, 1, PAGES)
            observation, reward, _, over, _ = env.step(actions[0])
            twin.play_slot(crawls[0])
            if penalty is not None:
                twin.ledger["penalty_time"] = pytest.approx(twin.divergence_time, rel=1e-12)
            assert_same_world(env, 0, observation, twin)
            assert reward == twin.freshness()
        ends.add(twin.ledger["crawls"])
        spend = env.ledger().spend
        assert action == "refresh" or spend <= 6.0 * 10.0 * HORIZON
    assert len(ends) > 1


@pytest.mark.parametrize("action", ["page", "scores", "refresh"])
def test_costs_of_one_change_nothing(action):
    plain = make("noisy", seed=1, num_pages=PAGES, bandwidth=6.0, bandwidth_steps=((1.3, 9.0),))
    steps = []
    for instance in (plain, plain.with_cost(1.0)):
        env = vector_of(instance, 2, horizon=HORIZON, action=action)
        env.reset(seed=4)
        env.action_space.seed(0)
        records, over = [], False
        while not np.any(over):
            _, rewards, _, over, info = env.step(env.action_space.sample())
            records.append((rewards.tolist(), info["hits"].tolist(), asdict(env.ledger(1))))
        steps.append(records)
    assert steps[0] == steps[1]


def test_a_crawl_takes_its_cost_of_time_and_is_rewarded_for_it():
    """R = 2: decisions at 1/2, then 1/2, 3/2 and 1/4 later; nothing changes."""
    instance = Instance([1.0, 1.0, 1.0], 0.0, bandwidth=2.0, cost=[1.0, 3.0, 0.5])
    env = single_of(instance, horizon=2.5)
    env.reset(seed=0)
    times, rewards = [env.tracker().time], []
    for page in (0, 1, 2):
        _, reward, _, over, _ = env.step(page)
        times.append(env.tracker().time)
        rewards.append(reward)
        assert over == (page == 2)
    assert times == [0.5, 1.0, 2.5, 2.75]
    assert rewards == [1.0, 3.0, 0.5]
    assert env.ledger().spend == 4.5
    assert env.lanes.steps_of(instance) == 9  # at 1, 1.5, ..., 5 units of cost
    assert env.lanes.budget_share(0, env.ledger()) == 4.5 / 5.0


def test_a_last_crawl_that_costs_more_than_the_rest_is_cut():
    """R = 2 until 2.5: the slot from 1.5 on, of cost 50, ends at 3, the next whole slot."""
    instance = Instance([1.0, 1.0], 0.0, bandwidth=2.0, cost=[1.0, 50.0])
    env = single_of(instance, horizon=2.5)
    env.reset(seed=0)
    rewards = [env.step(page)[1] for page in (0, 0, 1)]
    assert env.tracker().time == 3.0
    assert rewards == [1.0, 1.0, 3.0]
    assert env.ledger().spend == 52.0
    rollout = simulate(instance, policies.RoundRobin(), 2.5)
    assert rollout.crawls.tolist() == [0, 1]
    assert rollout.ledger.time == 3.0


def test_the_rewards_of_an_episode_are_the_integral_of_freshness():
    env = single_of(priced(), horizon=HORIZON)
    env.reset(seed=0)
    first = env.ledger()
    total, over = 0.0, False
    while not over:
        _, reward, _, over, _ = env.step(1)
        total += reward
    last = env.ledger()
    weight = env.instance.importance.sum()
    expected = 6.0 * (last.fresh_time - first.fresh_time) / weight
    assert total == pytest.approx(expected, rel=1e-12)


def test_the_crawl_cost_of_a_reward_is_by_cost():
    env = bare(cost_spread=1.0, crawl_cost=0.25)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(2)
    assert info["reward_crawl_cost"] == -0.25 * env.instance.cost[2]
    assert reward == info["reward_freshness"] + info["reward_crawl_cost"]


def test_a_batch_carries_over_what_it_does_not_spend():
    """Two units per decision: 1 and 3 do not fit, so 1 is left; then 3 fits, and nothing else."""
    instance = Instance([1.0] * 3, 0.0, bandwidth=2.0, cost=[1.0, 3.0, 0.5])
    env = single_of(instance, horizon=5.0, action="scores", batch=2)
    env.reset(seed=0)
    scores = np.array([1.0, 0.5, 0.0], np.float32)
    crawled = []
    for _ in range(3):
        _, reward, *_ = env.step(scores if not crawled else scores - [1.0, 0.0, 0.0])
        crawled.append(env.last_log().page.tolist())
        assert reward == 1.0
    assert crawled == [[0], [1], []]
    assert env.ledger().spend == 4.0


def test_lanes_end_on_their_own_and_start_again():
    """A lane of a vector is the single environment of its seed."""
    vector = batch(3, cost_spread=1.0, autoreset_mode="SameStep")
    vector.reset(seed=8)
    single = bare(cost_spread=1.0)
    lane, ends, apart = 1, [0, 0, 0], False
    assert_same(single.reset(seed=9)[0], vector.unwrapped.current_observation(lane))
    rng = np.random.default_rng(0)
    while min(ends) < 2:
        pages = rng.integers(6, size=3)
        _, rewards, _, over, _ = vector.step(pages)
        observation, reward, _, truncated, _ = single.step(pages[lane])
        assert (reward, truncated) == (rewards[lane], over[lane])
        if truncated:
            assert single.ledger() == vector.unwrapped.ledger(lane, finished=True)
            observation, _ = single.reset()
        assert_same(observation, vector.unwrapped.current_observation(lane))
        ends = [end + bool(one) for end, one in zip(ends, over, strict=True)]
        apart |= 0 < over.sum() < 3
    assert apart


def test_a_limit_of_steps_ends_lanes_with_costs():
    vector = batch(2, cost_spread=1.0, max_episode_steps=4, autoreset_mode="SameStep")
    vector.reset(seed=8)
    over = [vector.step(np.zeros(2, np.int64))[3].tolist() for _ in range(8)]
    assert over == [[False] * 2] * 3 + [[True] * 2] + [[False] * 2] * 3 + [[True] * 2]


def test_states_are_restored_in_mid_episode():
    one, other = bare(cost_spread=1.0), bare(cost_spread=1.0)
    one.reset(seed=2)
    other.reset(seed=5)
    for page in (0, 3, 5):
        one.step(page)
    other.set_state(one.get_state())
    assert_same_future(one, other)
    with pytest.raises(ValueError, match="costs"):
        bare().set_state(one.get_state())


def test_only_costs_depend_on_their_spread():
    plain, spread = (make("noisy", seed=7, cost_spread=x) for x in (0.0, 0.8))
    for name in ("importance", "change_rate", "recall", "false_signal_rate"):
        assert np.array_equal(getattr(plain, name), getattr(spread, name))
    assert plain.cost is None
    costs = make("uniform", seed=7, num_pages=100_000, cost_spread=0.8).cost
    assert costs.mean() == pytest.approx(1.0, abs=0.01)
    assert np.log(costs).std() == pytest.approx(0.8, rel=0.01)
    env = bare(cost_spread=0.8)
    env.reset(seed=7)
    column = env.current_observation()[:, env.features.index("cost")]
    assert np.array_equal(column, env.problem.cost.astype(np.float32))


class Cycle:
    """Crawl pages in a fixed order, in steps and in compiled code."""

    pages = np.array([0, 3, 1, 5, 2, 4, 3])

    def compile(self, problem, slots, rng):
        return CompiledSequence(self.pages)


@pytest.mark.parametrize("world", WORLDS)
def test_rollouts_are_steps(world):
    instance = priced(**WORLDS[world])
    env = single_of(instance, horizon=HORIZON)
    rollout = simulate(instance, policies.GreedyNCIS(), HORIZON, SEED)
    pages = stepped(env, policies.bind(GreedyNCIS(), env), seed=SEED)
    assert rollout.crawls.tolist() == pages
    assert rollout.ledger == env.ledger()
    env.reset(seed=SEED)
    for number, page in enumerate(simulate(instance, Cycle(), HORIZON, SEED).crawls):
        assert page == Cycle.pages[number % 7]
        env.step(page)
    assert env.ledger() == simulate(instance, Cycle(), HORIZON, SEED).ledger


def mortal_tapes(count=8):
    """Tapes of a site whose page 1 is always there, with costs on the grid of the events and off.

    Pages die and are born again, many of them within one slot or at the time of a crawl.
    """
    rng = np.random.default_rng(1)
    for number in range(count):
        lists = random_events(rng, 4, end=24.0, changes=60, signals=90, births=60, deaths=60)
        times, pages = lists["deaths"]
        lists["deaths"] = times, np.where(pages == 1, 2, pages)
        cost = rng.integers(1, 8, 4) / 4.0 if number % 2 else rng.uniform(0.2, 2.0, 4)
        rates = {"change_rate": [1.0, 2.0, 0.5, 1.0], "recall": 0.5, "false_signal_rate": 0.5}
        yield Instance([1.0, 2.0, 0.5, 1.0], **rates, bandwidth=2.0, cost=cost), lists


def test_worlds_of_births_and_deaths_are_the_twins():
    """A crawl of a page that does not exist is wasted and costs as much."""
    rng, wasted = np.random.default_rng(0), 0
    for instance, lists in mortal_tapes():
        crawls = rng.integers(4, size=16)
        env, rewards = assert_same_tape_play(instance, lists, crawls.tolist(), horizon=24.0)
        ledger = env.ledger()
        assert ledger.spend == pytest.approx(instance.cost[crawls].sum(), rel=1e-12)
        assert sum(rewards) > 0.0
        wasted += ledger.wasted
    assert wasted > 0


@pytest.mark.parametrize("name", ["GreedyNCIS", "RoundRobin", "BeliefNCIS"])
def test_rollouts_are_steps_where_pages_are_born_and_die(name):
    for instance, lists in mortal_tapes():
        tape = Tape.of_events(4, **lists)
        env = single_of(instance, horizon=24.0, tape=tape)
        rollout = simulate(instance, policies.find(name)(), 24.0, SEED, tape=tape)
        assert stepped(env, policies.make(name, env), seed=SEED) == rollout.crawls.tolist()
        assert rollout.ledger == env.ledger()
        spend = np.append(0.0, instance.cost[rollout.crawls[:-1]].cumsum())
        assert rollout.times == pytest.approx((1.0 + spend) / 2.0, rel=1e-12)


def test_rollouts_have_room_for_cheap_crawls():
    """R = 2 for 3 units of time: 1 + 50 decisions at a tenth, whose times are by hand."""
    instance = Instance([1.0, 1.0], 1.0, bandwidth=2.0, cost=0.1)
    rollout = simulate(instance, policies.Greedy(), 3.0)
    assert rollout.crawls.size == 51
    assert rollout.times == pytest.approx((1.0 + 0.1 * np.arange(51)) / 2.0)
    assert rollout.ledger.spend == pytest.approx(5.1)


BAD = {
    "zero": ({"cost": 0.0}, r"cost must be in \[1e-12, 1e\+12\], got 0.0 for page 0"),
    "negative": ({"cost": [1.0, -1.0]}, "cost must be finite and >= 0, got -1"),
    "shape": ({"cost": [1.0] * 3}, "cost must be a scalar or have shape"),
    "domain": ({"cost": [1.0, 1e-13]}, r"cost must be in \[.*got 1e-13 for page 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_costs_are_refused(case):
    arguments, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        Instance([1.0, 1.0], 1.0, bandwidth=1.0, **arguments)


def test_environments_without_costs_refuse_them():
    pinned = priced()
    for name in ("CrawlNCIS-v0", "CrawlHarmonic-v0", "CrawlLongevity-v0"):
        with pytest.raises(ValueError, match="costs with cost_spread > 0"):
            bare(name).reset(seed=0, options={"instance": pinned})
    with pytest.raises(TypeError):
        gym.make("CrawlOffers-v1", cost_spread=1.0)
    with pytest.raises(ValueError, match="cost_spread must lie in"):
        gym.make("CrawlNCIS-v0", cost_spread=4.0)
