"""Episodes that would take minutes are refused before anything has happened."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import crawl_envs  # noqa: F401
import policies
from crawl_envs import Instance
from crawl_envs.evaluation import evaluate, simulate
from crawl_envs.instances import make
from crawl_envs.instances.market import MARKET, MarketShape
from crawl_envs.instances.misspecified.occurrences import Misspecified
from crawl_envs.sim import law
from crawl_envs.sim.law import MAX_EVENTS, MAX_STORED_EVENTS, check_events
from crawl_envs.sim.tape import Tape
from crawl_envs.types import Delay
from crawl_envs.worlds.offers.log import record
from tests.worlds import vector_of

NCIS = "CrawlNCIS-v0"
SLOW = Instance([1.0, 2.0, 3.0], 1.0, bandwidth=2.0)
BUSY = {
    "requests": Instance([1e9] * 3, [1.0] * 3, bandwidth=2.0),
    "changes": Instance(1.0, [1e9, 1.0, 1.0], bandwidth=2.0),
    "false signals": Instance(1.0, 1.0, 0.0, [1.0, 1e9, 1.0], bandwidth=2.0),
}
EXPECTED = {
    "requests": r"importance .* at most 1e\+09 events in an episode, got 3e\+11",
    "changes": r"change_rate, .* at most 1e\+09 events in an episode, got 1e\+11",
    "false signals": r"false_signal_rate .* at most 1e\+09 events in an episode, got 1e\+11",
}


@pytest.mark.parametrize("case", BUSY)
def test_a_lane_that_is_refused_moves_no_other(case):
    size = {"num_pages": 3, "bandwidth": 2.0, "horizon": 100.0}
    envs = [gym.make_vec(NCIS, num_envs=2, **size).unwrapped for _ in range(2)]
    for env in envs:
        env.reset(seed=0)
    with pytest.raises(ValueError, match=EXPECTED[case]):
        envs[0].reset(seed=5, options={"instance": [SLOW, BUSY[case]]})
    one, other = (env.step(np.array([0, 1])) for env in envs)
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])


class Drawn:
    """A generator whose second instance has too many events."""

    num_pages = 3

    def __init__(self):
        self.count = 0

    def __call__(self, rng):
        self.count += 1
        return SLOW if self.count % 3 else BUSY["requests"]


def test_an_instance_that_is_drawn_for_the_next_episode():
    """Lanes keep what they had where one of several draws is refused."""
    env = vector_of(SLOW, 3, horizon=100.0)
    env.reset(seed=0)
    lanes, before = env.lanes, env.lanes.get_state()
    lanes._generator, lanes.resample = Drawn(), True
    lanes._pinned[:] = False
    with pytest.raises(ValueError, match=EXPECTED["requests"]):
        lanes.begin_next(np.ones(3, np.bool_))
    for name, array in before["world"].items():
        np.testing.assert_array_equal(array, lanes.get_state()["world"][name], name)


@pytest.mark.parametrize("case", BUSY)
def test_rollouts_and_evaluations_refuse(case):
    policy = policies.ThresholdNCIS()
    with pytest.raises(ValueError, match=EXPECTED[case]):
        simulate(BUSY[case], policy, 100.0)
    rows = evaluate(NCIS, {}, [0], num_pages=10, horizon=1e10)
    with pytest.raises(ValueError, match=r"the horizon 1e\+10 must give at most 1e\+09 events"):
        next(rows)


def test_a_rollout_has_no_more_crawls_than_can_be_kept():
    with pytest.raises(ValueError, match=r"bandwidth must give at most 1e\+08 crawls .* 2e\+08"):
        simulate(Instance(1.0, 1.0, bandwidth=2e6), policies.ThresholdNCIS(), 100.0)


def test_requests_count_where_they_are_played():
    check_events(BUSY["requests"], 100.0, requests=False)
    env = gym.make("CrawlHarmonic-v0", num_pages=3, bandwidth=2.0)
    env.reset(options={"instance": BUSY["requests"]})


def test_the_bound_is_met_and_not_passed():
    fits = Instance([6e6, 3e6], [5e5, 5e5], bandwidth=2.0)
    check_events(fits, MAX_EVENTS / 1e7)
    with pytest.raises(ValueError, match="events in an episode"):
        check_events(fits, MAX_EVENTS / 1e7 * (1.0 + 1e-9))


def test_recorded_events_are_counted(monkeypatch):
    tape = Tape.of_events(3, changes=([1.0, 2.0, 3.0, 9.0], [0, 1, 2, 0]))
    monkeypatch.setattr(law, "check_expected", lambda what, expected: counted.append(expected))
    counted = []
    check_events(BUSY["requests"], 3.0, True, tape)
    assert counted == [3.0]


def test_what_is_drawn_whole_has_a_bound_of_its_own():
    events = MAX_STORED_EVENTS / 100.0 * 1.01
    held = Misspecified(Instance([events, 1.0], 1.0, bandwidth=2.0), None)
    with pytest.raises(ValueError, match=r"importance .* at most 2e\+07 events in an episode, got"):
        check_events(held, 100.0)
    check_events(held, 50.0)
    spells = Misspecified(Instance([1e-12] * 2, 1e-12, bandwidth=2.0), None)
    with pytest.raises(ValueError, match=r"the horizon 1e\+12 must give at most 2e\+07"):
        check_events(spells, 1e12)


def test_signals_under_way_are_held_too():
    late = Instance(0.0, 1.0, 0.5, 1.0, bandwidth=2.0, delay=Delay("exponential", 1e12))
    with pytest.raises(ValueError, match=r"delay mean 1e\+12, .* at most 2e\+07 .* got 1.5e\+12"):
        check_events(late, 100.0)


def test_markets():
    crowded = MARKET.generator("market", 20_000, 2_000.0, shape=MarketShape(view_rate=1e5))
    market = crowded(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"offers, .* horizon 7 must give at most 1e\+09 events"):
        gym.make("CrawlOffers-v1", num_pages=20_000).reset(options={"instance": market})
    with pytest.raises(ValueError, match=r"offers, .* horizon 31 must give at most 1e\+09 events"):
        record(market, 31)
    with pytest.raises(ValueError, match=r"horizon 1e\+09 must give at most 1e\+09 events"):
        gym.make("CrawlOffers-v1", num_pages=20, horizon=1e9).reset(seed=0)


@pytest.mark.parametrize("name", ["noisy", "uniform", "lambdacrawl", "bing-like"])
def test_the_largest_sets_of_the_experiments_fit(name):
    check_events(make(name, num_pages=1_000_000, bandwidth=1e5), 200.0)
