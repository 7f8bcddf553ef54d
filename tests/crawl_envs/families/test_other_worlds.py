"""A batch of lanes of a world that is neither pages of events nor rates: what any family needs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import policies
from crawl_envs import Instance
from crawl_envs.checks import check_crawl_env, check_policy, check_tracker
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.envs.vector import CrawlVectorEnv
from crawl_envs.evaluation import play
from crawl_envs.sim.state import CRAWLS, FRESHNESS, NUM_OUTCOMES
from crawl_envs.spaces.actions import TopScores
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import CrawlLog, Ledger, Tracker
from crawl_envs.types.offer_features import OfferFeatures, OfferMetadata
from crawl_envs.worlds.lanes import Episodes
from tests.environments import assert_same

FEATURES = ("elapsed", "changed", "importance", "clicks_1", "brand", "day_of_week")
CRAWLED = 2


class Draws:
    """Draws instances of five pages, whose bandwidth decides how long episodes are."""

    num_pages = 5

    def __call__(self, rng: np.random.Generator) -> Instance:
        bandwidth = float(rng.choice([8.0, 12.0, 20.0]))
        return Instance(rng.random(5), rng.random(5), bandwidth=bandwidth)


class DiceLanes(Episodes):
    """Steps of a fixed length; in each, pages change by chance and then the two best are crawled.

    A slot is a step, although the form of action has a batch of two.
    """

    reported = (("crawls", CRAWLS),)
    features = FEATURES

    def __init__(self, num_lanes: int = 1, **more: Any) -> None:
        form = TopScores(Draws.num_pages, CRAWLED)
        super().__init__(num_lanes, Draws(), form, **{"horizon": 2.0, **more})
        shape = (num_lanes, self.num_pages)
        self._world = {
            "root": np.zeros(num_lanes, np.uint64),
            "number": np.zeros(num_lanes, np.int64),
            "slot": np.zeros(num_lanes, np.int64),
            "stale": np.zeros(shape, np.bool_),
            "last_crawl": np.zeros(shape),
            "changed": np.full(shape, -1, np.int8),
            "totals": np.zeros((num_lanes, 4)),
            "page": np.zeros((num_lanes, CRAWLED), np.int64),
            "detected": np.zeros((num_lanes, CRAWLED), np.bool_),
        }
        self._outcomes = np.zeros((NUM_OUTCOMES, num_lanes))

    def _step(self, lane: int) -> float:
        return CRAWLED / self.instance(lane).bandwidth

    def _last_slot_of(self, instance: Instance) -> int:
        return math.floor(self.horizon * instance.bandwidth / CRAWLED + 1e-9) - 1

    def _decisions_left(self):
        return self._last_slot - self._world["slot"] + 1

    def _episode(self, lane: int) -> int:
        return int(self._world["number"][lane])

    def _count_episodes(self, chosen) -> None:
        self._world["number"][chosen] += 1

    def _set_streams(self, lane, lane_roots, episode) -> None:
        self._world["root"][lane], self._world["number"][lane] = lane_roots.tape, episode

    def _set_instance(self, lane, instance) -> None:
        pass

    def _restart_worlds(self, chosen) -> None:
        for name, start in {"stale": False, "changed": -1, "slot": 0, "totals": 0.0}.items():
            self._world[name][chosen] = start
        self._world["last_crawl"][chosen] = 0.0
        self._world["page"][chosen] = -1

    def _idle_ended(self) -> None:
        pass

    def _get_world(self):
        return {name: array.copy() for name, array in self._world.items()}

    def _set_world(self, state) -> None:
        self._world = {name: array.copy() for name, array in state.items()}

    def play(self, actions):
        pages, _ = actions
        self._outcomes[:] = 0.0
        for lane in map(int, np.flatnonzero(~self.ended)):
            self._play_lane(lane, pages[lane])
        return tuple(self._outcomes)

    def _play_lane(self, lane: int, chosen) -> None:
        world, instance = self._world, self.instance(lane)
        key = [int(world[name][lane]) for name in ("root", "number", "slot")]
        changes = np.random.default_rng(key).random(self.num_pages) < instance.change_rate
        stale = world["stale"][lane]
        stale |= changes
        world["page"][lane], world["detected"][lane] = chosen, stale[chosen]
        world["changed"][lane][chosen] = stale[chosen]
        world["slot"][lane] += 1
        world["last_crawl"][lane][chosen] = world["slot"][lane] * self._step(lane)
        stale[chosen] = False
        weight = instance.importance
        fresh = float(weight[~stale].sum() / weight.sum())
        self._outcomes[FRESHNESS, lane], self._outcomes[CRAWLS, lane] = fresh, CRAWLED
        world["totals"][lane] += (
            fresh * weight.sum() * self._step(lane),
            weight.sum() * self._step(lane),
            changes.sum(),
            world["detected"][lane].sum(),
        )

    def observations(self, copy: bool = True):
        return np.stack([self.observation(lane) for lane in range(self.num_lanes)])

    def observation(self, lane: int):
        tracker = self.tracker(lane)
        offer_features = tracker.offers
        ours = (tracker.elapsed, tracker.changed, tracker.problem.importance)
        day = np.full(self.num_pages, offer_features.day_of_week)
        columns = (*ours, offer_features.clicks_1, offer_features.metadata.brand, day)
        return np.stack(columns, axis=1).astype(np.float32)

    def action_masks(self):
        return np.ones((self.num_lanes, self.num_pages), np.bool_)

    def tracker(self, lane: int) -> Tracker:
        world = self._world
        now = float(world["slot"][lane] * self._step(lane))
        ones = np.ones(self.num_pages)
        numbers = np.arange(self.num_pages, dtype=np.int32)
        history = [(ones * k).astype(np.float32) for k in range(1, 11)]
        metadata = OfferMetadata(*(numbers + k for k in range(6)))
        return Tracker(
            problem=self.instance(lane).problem(self.reveal),
            episode=int(self.episodes[lane]),
            time=now,
            elapsed=now - world["last_crawl"][lane],
            signals=np.zeros(self.num_pages, np.int64),
            changed=world["changed"][lane].copy(),
            alive=ones.astype(np.bool_),
            probed=np.full(self.num_pages, -1, np.int8),
            offers=OfferFeatures(metadata, 3, 3, *history),
        )

    def last_log(self, lane: int) -> CrawlLog:
        page = self._world["page"][lane]
        page = page[page >= 0]
        none = np.zeros(0, np.int64)
        return CrawlLog(
            page=page,
            time=np.full(page.size, self.tracker(lane).time),
            elapsed=np.full(page.size, self._step(lane)),
            signals=np.zeros(page.size, np.int64),
            changed=self._world["detected"][lane][: page.size],
            signal_page=none,
            signal_time=np.zeros(0),
            signal_source=none,
            probe=np.zeros(page.size, np.bool_),
        )

    def fresh(self, lane: int):
        return ~self._world["stale"][lane]

    def ledger(self, lane: int) -> Ledger:
        slot = int(self._world["slot"][lane])
        fresh, alive, changes, detected = self._world["totals"][lane]
        return Ledger(
            time=slot * self._step(lane),
            fresh_time=float(fresh),
            alive_time=float(alive),
            requests=0,
            hits=0,
            crawls=slot * CRAWLED,
            wasted=0,
            changes=int(changes),
            changes_found=int(detected),
            signals=0,
        )

    def num_slots(self, lane: int) -> int:
        return int(self._last_slot[lane]) + 1

    def crawls_allowed(self, lane: int) -> float:
        return float(CRAWLED * self.num_slots(lane))


def single(**more: Any) -> CrawlEnv:
    return CrawlEnv(DiceLanes(**more), Objective())


def vector(num_lanes: int, mode: str, **more: Any) -> CrawlVectorEnv:
    return CrawlVectorEnv(DiceLanes(num_lanes, **more), Objective(), autoreset_mode=mode)


def scores(count: int):
    return np.random.default_rng(0).random((count, Draws.num_pages)).astype(np.float32)


def test_its_environment_passes_the_suites_checks():
    check_crawl_env(single)


def test_policies_of_the_suite_act_in_it():
    check_policy(lambda env: policies.make("Greedy", env), single)


def test_unfinished_lanes_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Episodes(1, Draws(), TopScores(5, 2), horizon=1.0)


def test_a_vector_plays_what_single_environments_play_and_each_lane_ends_by_its_own_clock():
    env = vector(3, "SameStep")
    env.reset(seed=1)
    lengths = [env.num_slots(lane) for lane in range(3)]
    assert len(set(lengths)) > 1, "the seed must draw episodes of several lengths"
    alone = [single() for _ in range(3)]
    for lane, one in enumerate(alone):
        one.reset(seed=1 + lane)
    ended = np.zeros(3, np.int64)
    for step, action in enumerate(scores(45)):
        observations, rewards, _, truncated, info = env.step(np.tile(action, (3, 1)))
        for lane, one in enumerate(alone):
            observation, reward, _, over, _ = one.step(action)
            assert (rewards[lane], truncated[lane]) == (reward, over)
            assert over == ((step + 1) % lengths[lane] == 0)
            if over:
                assert np.array_equal(info["final_obs"][lane], observation)
                observation, _ = one.reset()
                ended[lane] += 1
            assert np.array_equal(observations[lane], observation)
    assert ended.min() >= 2


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_episodes_go_on_with_new_draws_and_resampling_with_new_instances(mode):
    for resample in (False, True):
        env = vector(1, mode, resample=resample)
        env.reset(seed=3)
        first, states = env.instances[0], []
        for action in scores(60):
            env.step(action[None])
            states.append((env.lanes._episode(0), env.instances[0]))
        assert {episode for episode, _ in states} >= {0, 1, 2}
        assert all(instance is first for _, instance in states) == (not resample)


def test_a_state_of_other_lanes_is_refused():
    env = single()
    env.reset(seed=0)
    state = env.get_state()
    assert_same(state["kind"], env.lanes._kind())
    other = single(horizon=3.0)
    with pytest.raises(ValueError, match=r"with horizon 3\.0, got 2\.0"):
        other.set_state(state)


def test_a_policy_with_a_compiled_form_takes_steps_in_it(monkeypatch):
    """Its lanes claim to act by page, for which ``play`` would go to compiled code."""
    env = single()
    env.reset(seed=5)
    monkeypatch.setattr(CrawlEnv, "action_form", "page")
    policy = Steps()
    ledger = play(env, policy, 5)
    assert policy.taken == env.num_slots() == ledger.crawls // CRAWLED


class Steps:
    """Crawls the first two pages, and says that it could be compiled."""

    taken = 0

    def compile(self, problem, num_slots, rng):
        raise AssertionError("not to be compiled")

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.taken += 1
        return np.array([1, 1, 0, 0, 0], np.float32), state


@pytest.mark.parametrize("column", ["clicks_1", "brand", "day_of_week"])
def test_columns_of_offers_are_checked(monkeypatch, column):
    true = DiceLanes.observation

    def wrong(self, lane):
        observation = true(self, lane)
        observation[:, FEATURES.index(column)] += 1.0
        return observation

    check_tracker(single)
    monkeypatch.setattr(DiceLanes, "observation", wrong)
    with pytest.raises(AssertionError, match=f"column {column} must be what the tracker knows"):
        check_tracker(single)


def test_columns_that_no_tracker_knows_are_named(monkeypatch):
    monkeypatch.setattr(DiceLanes, "features", (*FEATURES[:-1], "mystery_3"))
    with pytest.raises(AssertionError, match="column mystery_3 must be in the tracker"):
        check_tracker(single)
