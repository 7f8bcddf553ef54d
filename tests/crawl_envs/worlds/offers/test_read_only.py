"""Nobody writes to what markets share, nor to a day's events; kernels know them in one form."""

from __future__ import annotations

import copy
import pickle

import gymnasium
import numpy as np
import pytest

from crawl_envs.instances.market import MarketShape, market, world
from crawl_envs.worlds.offers import market as market_days
from crawl_envs.worlds.offers import tracking as offer_tracking
from crawl_envs.worlds.offers.law import MarketLaw, read_only
from crawl_envs.worlds.offers.log import play_rates, record
from tests.crawl_envs.worlds.offers.markets import small_market


def environment():
    env = gymnasium.make("CrawlOffers-v0", num_pages=30, horizon=3.0)
    env.reset(seed=0)
    return env.unwrapped


def assert_read_only(arrays):
    for name, array in zip(arrays._fields, arrays, strict=True):
        assert not array.flags.writeable, name
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_worlds_markets_and_events_are_read_only():
    env, drawn = environment(), market(20, seed=7)
    for arrays in (world(0, MarketShape()), drawn.law, drawn.metadata, env.events()):
        assert_read_only(arrays)
    assert_read_only(env.get_state()["world"]["lanes"][0]["events"])
    assert_read_only(record(drawn, 1, 0, keep_events=True).events[0])


def test_a_view_leaves_the_arrays_of_the_caller_alone():
    own = MarketLaw(*(array.copy() for array in small_market().law))
    marked = read_only(own)
    assert own.week.flags.writeable
    assert np.shares_memory(marked.week, own.week)
    assert read_only(marked) is marked


def signatures():
    return {
        name: len(kernel.signatures)
        for module in (market_days, offer_tracking)
        for name, kernel in vars(module).items()
        if name in ("draw_merchants", "draw_offers", "write_prices", "write_clicks", "play_step")
    }


def test_arrays_without_the_flag_compile_nothing_again():
    env, rates = environment(), np.full(30, 0.1)
    env.step(rates)
    log = record(small_market(), 1, 0, keep_events=True)
    play_rates(log, lambda day, held: np.full(12, 0.1), 0)
    before = signatures()
    assert len(before) == 5
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), environment()]
    copies[-1].set_state(pickle.loads(pickle.dumps(env.get_state())))
    rewards = [[each.step(rates)[1] for _ in range(13)] for each in (env, *copies)]
    assert all(each == rewards[0] for each in rewards)
    moved = pickle.loads(pickle.dumps(log))
    assert moved.events[0].click_mean.flags.writeable
    assert moved.market.law.week.flags.writeable
    play_rates(moved, lambda day, held: np.full(12, 0.1), 0)
    record(moved.market, 1, 0)
    assert signatures() == before
