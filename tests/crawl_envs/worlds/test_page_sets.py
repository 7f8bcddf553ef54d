"""Page sets of training and of tests: two streams of seeds without a common instance."""

from __future__ import annotations

import numpy as np
import pytest

import policies
from crawl_envs import instances
from crawl_envs.evaluation import play, simulate
from crawl_envs.instances.market import MARKET
from crawl_envs.sim.streams import generator, roots
from tests.crawl_envs.sim.test_world import assert_same_log, assert_same_tracker
from tests.environments import HARMONIC, LONGEVITY, NCIS, OFFERS, bare, batch
from tests.naive import market as naive_market
from tests.naive import pages as naive
from tests.worlds import rounded

FAMILIES = (NCIS, HARMONIC, LONGEVITY, OFFERS)
SEEDS = (*range(40), 10**6, 2**32 - 1, 2**63)


def drawn(env):
    """The parameters of an environment's instance, as bytes."""
    env = env.unwrapped
    return env.instance.importance.tobytes() + env.instance.change_rate.tobytes()


def test_roots_are_those_of_the_twin_and_never_common():
    for pages in ("any", "train", "test"):
        assert [list(roots(seed, pages)) for seed in SEEDS] == [
            naive.roots(seed, pages) for seed in SEEDS
        ]
    assert {root % 2 for seed in SEEDS for root in roots(seed, "train")} == {0}
    assert {root % 2 for seed in SEEDS for root in roots(seed, "test")} == {1}
    every = {root for seed in SEEDS for p in ("any", "train", "test") for root in roots(seed, p)}
    assert len(every) == 9 * len(SEEDS)


def test_the_general_stream_is_that_of_the_seed_alone():
    words = np.random.SeedSequence(7).generate_state(3, np.uint64)
    assert list(roots(7)) == list(roots(7, "any")) == words.tolist()


@pytest.mark.parametrize("name", FAMILIES)
def test_no_seed_of_training_draws_pages_of_tests(name):
    every, streams = set(), ("any", "train", "test")
    for pages in streams:
        env = bare(name, pages=pages, resample=True)
        for seed in range(3):
            for _ in range(2):  # the episode of a seed and the next one
                env.reset(seed=seed)
                every.add(drawn(env))
                env.reset()
                every.add(drawn(env))
    assert len(every) == 2 * 3 * len(streams)


def test_instances_and_markets_are_those_of_environments():
    env = bare(NCIS, pages="test")
    env.reset(seed=3)
    made = instances.make("noisy", num_pages=6, bandwidth=6.0, seed=3, pages="test")
    assert np.array_equal(env.instance.change_rate, made.change_rate)
    shop = bare(OFFERS, pages="train", action="refresh", horizon=3.0)
    shop.reset(seed=3)
    root, tape, _ = naive.roots(3, "train")
    made = MARKET.generator("market", 30, 24.0)(generator(root, 0))
    assert np.array_equal(shop.instance.importance, made.importance)
    twin = naive_market.Tracker(made.law, tape, 0)
    twin.advance(0.0)
    for _ in range(24):
        shop.step(np.zeros(30, np.int8))
    twin.advance(2.0)
    assert np.flatnonzero(shop.lanes.fresh(0)).tolist() == twin.fresh() != list(range(30))
    assert (shop.ledger().requests, shop.ledger().hits) == (twin.clicks, twin.hits)


@pytest.mark.parametrize("pages", ["train", "test"])
def test_events_are_those_of_the_twin(pages):
    env = bare(NCIS, pages=pages)
    env.reset(seed=5)
    env.reset(seed=5, options={"instance": rounded(env.instance)})
    events = naive.drawn_events(env.instance, 5, 0, 20.0, pages)
    assert events != naive.drawn_events(env.instance, 5, 0, 20.0)
    twin = naive.World(env.instance, events)
    for page in (3, 1, 4, 1, 5, 2, 0):
        assert_same_tracker(env.tracker(), twin)
        assert_same_log(env.last_log(), twin)
        env.step(page)
        twin.play_slot([page])


@pytest.mark.parametrize("pages", ["any", "train", "test"])
def test_compiled_rollouts_are_those_of_the_environment(pages):
    env = bare(NCIS, pages=pages)
    env.reset(seed=2)
    stepped = play(env, policies.make("GreedyNCIS", env), 2, compiled=False)
    assert play(env, policies.make("GreedyNCIS", env), 2) == stepped
    rolled = simulate(env.instance, policies.make("GreedyNCIS", env), 2.0, 2, pages=pages)
    assert rolled.ledger == stepped


def test_states_of_other_streams_are_refused():
    one, other = bare(NCIS, pages="train"), bare(NCIS, pages="test")
    one.reset(seed=0)
    other.reset(seed=0)
    with pytest.raises(ValueError, match="with pages 'test', got 'train'"):
        other.set_state(one.get_state())


def test_lanes_keep_their_pages_unless_they_are_resampled():
    settings = {"horizon": 1.0, "autoreset_mode": "SameStep"}
    env = batch(64, **settings)
    sets = {seed: pages_of(env, seed, 1) for seed in (0, 1)}
    assert [len(of_seed) for of_seed in sets.values()] == [64, 64]
    assert len(sets[0] & sets[1]) == 63
    assert pages_of(env, 0, 3) == sets[0]
    assert len(pages_of(batch(64, resample=True, **settings), 0, 3)) == 3 * 64


def pages_of(env, seed, episodes):
    """The different page sets of all lanes in so many episodes."""
    env.reset(seed=seed)
    every, core = set(), env.unwrapped
    for _ in range(episodes):
        every |= {one.change_rate.tobytes() for one in core.instances}
        truncated = np.zeros(64, np.bool_)
        while not truncated.any():
            _, _, _, truncated, _ = env.step(np.zeros(64, np.int64))
    return every
