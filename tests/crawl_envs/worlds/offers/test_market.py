"""A market's days are the twin's, draw for draw, and recordings are the days drawn by hand.

Nobody writes to what markets share, nor to a day's events.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from crawl_envs.instances.market import MarketShape, draw_world, market
from crawl_envs.sim.state import EVENT
from crawl_envs.sim.streams import roots
from crawl_envs.sim.tape import CODE_STRIDE, DAY, PRICE, REQUEST
from crawl_envs.worlds.offers import market as market_days
from crawl_envs.worlds.offers.law import GONE, RING, Market, MarketLaw, read_only
from crawl_envs.worlds.offers.log import record
from crawl_envs.worlds.offers.market import draw_day, initial_state
from tests.crawl_envs.worlds.offers.markets import (
    KINDS,
    changes_by_step,
    clicks_by_step,
    days_of,
    market_of,
    small_market,
)
from tests.environments import OFFERS, bare
from tests.naive import market as naive_market
from tests.naive import pages as naive

DAYS = 42


def pair_of(law, seed, episode=0):
    """A market's state when day 0 begins, and its twin's."""
    return (
        initial_state(law, roots(seed).tape, episode),
        naive_market.Market(law, naive.roots(seed)[1], episode),
    )


def column(twin, name):
    return [getattr(offer, name) for offer in twin.offers]


def assert_same_state(state, twin):
    """After a day, the twin stands at the beginning of the next."""
    latest = twin.day - 1
    assert state.stream.tolist() == twin.stream.state
    for name in ("price", "base", "before", "discount", "change_level", "demand_level"):
        assert getattr(state, name).tolist() == column(twin, name)
    for day in range(latest - 29, latest + 1):
        row = day % RING
        assert state.clicks[row].tolist() == [offer.clicks[day] for offer in twin.offers]
        assert state.views[row].tolist() == [offer.views[day] for offer in twin.offers]
        assert state.changes[row].tolist() == [len(offer.changes[day]) for offer in twin.offers]
    steps = [sum(1 << step for step in offer.changes[latest]) for offer in twin.offers]
    assert state.mask.tolist() == steps
    assert state.last_change.tolist() == [offer.last_change(latest) for offer in twin.offers]
    assert state.drift.tolist() == [merchant.drift for merchant in twin.merchants]
    assert state.campaign_end.tolist() == [merchant.end for merchant in twin.merchants]
    assert state.campaign_discount.tolist() == [m.discount for m in twin.merchants]


def assert_same_day(events, day):
    assert changes_by_step(events) == day.changes
    assert clicks_by_step(events) == day.clicks
    for name in ("click_mean", "view_mean", "change_chance"):
        drawn = getattr(events, name)
        assert drawn.dtype == np.float32
        assert drawn.tolist() == getattr(day, name)


@pytest.mark.parametrize("kind", KINDS)
def test_days_are_the_twins(kind):
    for seed in (3, 4):
        law = market_of(kind, seed).law
        state, twin = pair_of(law, seed, episode=seed % 2)
        assert_same_state(state, twin)
        for day in range(DAYS):
            assert_same_day(draw_day(law, state, day), twin.draw_day())
            assert_same_state(state, twin)


def twin_block(events, day):
    """The twin's events of a day as a list of (time, code, detail)."""
    block = []
    while True:
        time, kind, what = next(events)
        if kind == "day":
            return [*block, (day + 1.0, DAY, 0)]
        offer, price = what if kind == "price" else (what, 0)
        code = offer * CODE_STRIDE + (PRICE if kind == "price" else REQUEST)
        block.append((time, code, price))


@pytest.mark.parametrize("kind", KINDS)
def test_events_of_a_tape_are_the_twins(kind):
    """Prices change at the start of a step, clicks are spread over it, and the day ends."""
    law = market_of(kind, 5).law
    state, twin = pair_of(law, 5)
    expected = naive_market.happening(twin)
    next(expected)
    for day in range(20):
        block, detail, *_ = draw_day(law, state, day)
        assert (block.dtype, detail.dtype) == (EVENT, np.int32)
        drawn = [(*event, new) for event, new in zip(block.tolist(), detail.tolist(), strict=True)]
        assert drawn == twin_block(expected, day)


def test_the_kinds_of_markets_have_what_they_are_named_for():
    """Otherwise the comparison above would say little."""

    def twin_of(kind):
        twin = naive_market.Market(market_of(kind, 3).law, naive.roots(3)[1], 1)
        return twin, [twin.draw_day() for _ in range(DAYS)]

    twin, days = twin_of("big rates")
    assert max(max(day.click_mean) for day in days) > 60.0
    assert max(len(offer.changes[0]) for offer in twin.offers) > 5
    twin, days = twin_of("tiny rates")
    assert not any(any(day.clicks) for day in days)
    twin, _ = twin_of("promotions")
    assert sum(merchant.end > DAYS - 10 for merchant in twin.merchants) > 1
    assert any(offer.discount for offer in twin.offers)
    twin, days = twin_of("obsolescence")
    left = {price == GONE for day in days for step in day.changes for _, price in step}
    assert left == {True, False}
    gone = [offer for offer in twin.offers if offer.price == GONE]
    assert 0 < len(gone) < len(twin.offers)
    assert any(offer.discount for offer in gone)
    twin, days = twin_of("pennies")
    assert {1, 2} <= {price for day in days for step in day.changes for _, price in step}
    assert len(twin_of("one offer")[0].offers) == len(twin_of("one merchant")[0].merchants) == 1


def test_a_history_may_be_drawn_in_parts(monkeypatch):
    law = market_of("ordinary", 7).law
    states = []
    for most in (1, 7 * law.merchant.size, 1_000_000):
        monkeypatch.setattr(market_days, "AT_ONCE", most)
        states.append([array.tolist() for array in initial_state(law, 5, 0)])
    assert states[0] == states[1] == states[2]


@pytest.mark.parametrize("kind", ["ordinary", "big rates", "obsolescence"])
def test_a_record_is_the_days_drawn_one_by_one(kind):
    market, days = market_of(kind, 6), 45
    log, drawn = record(market, days, 6), days_of(market, days, 6)
    twin = naive_market.Market(market.law, naive.roots(6)[1], 0)
    assert log.num_days == days
    for events in drawn:
        assert_same_day(events, twin.draw_day())
    assert log.clicks.shape == log.impressions.shape == log.changes.shape == (75, log.num_pages)
    for day in range(-30, days):
        assert log.clicks[day].tolist() == [offer.clicks[day] for offer in twin.offers]
        assert log.impressions[day].tolist() == [offer.views[day] for offer in twin.offers]
        assert log.changes[day].tolist() == [len(offer.changes[day]) for offer in twin.offers]
    for day in range(days + 1):
        assert log.last_change[day].tolist() == [offer.last_change(day) for offer in twin.offers]


def test_labels_are_what_comes_true_within_the_day():
    market = market_of("ordinary", 2)
    log = record(market, 12, 2)
    for day, events in enumerate(days_of(market, 12, 2)):
        labels = log.labels(day)
        offers = range(log.num_pages)
        changed = {offer for step in changes_by_step(events) for offer, _ in step}
        assert labels.price_changed.tolist() == [offer in changed for offer in offers]
        clicked = {offer for step in clicks_by_step(events) for offer in step}
        assert labels.clicked.tolist() == [offer in clicked for offer in offers]
        assert labels.impressed.tolist() == [count > 0 for count in log.impressions[day].tolist()]
        assert not (labels.clicked & ~labels.impressed).any()
    for array in zip(*(log.labels(day) for day in range(12)), strict=True):
        assert 0 < np.array(array).sum() < np.array(array).size


@pytest.mark.parametrize("day", [-1, 4, 1.5, True])
def test_a_log_has_no_days_outside_its_range(day):
    """Of the day after the last one the features are known."""
    log = record(small_market(), 3)
    assert log.features(3).day == 3
    for call, last in ((log.features, 3), (log.labels, 2)):
        with pytest.raises(ValueError, match=rf"day must be an integer in \[0, {last}\], got"):
            call(day)


@pytest.mark.parametrize(("days", "seed", "named"), [(0, 0, "num_days"), (2, -1, "seed")])
def test_what_cannot_be_recorded(days, seed, named):
    with pytest.raises(ValueError, match=f"{named} must be an integer >= "):
        record(small_market(), days, seed)


# Read-only arrays


def test_what_is_shared_is_read_only():
    env, drawn = bare(OFFERS), market(20, seed=7)
    env.reset(seed=0)
    logged = days_of(drawn, 1, 0)[0]
    world = draw_world(0, MarketShape())
    for arrays in (world, drawn.law, drawn.metadata, env.events(), logged):
        assert not any(array.flags.writeable for array in arrays)


def test_a_view_leaves_the_arrays_of_the_caller_alone():
    own = MarketLaw(*(array.copy() for array in small_market().law))
    marked = read_only(own)
    assert own.week.flags.writeable
    assert np.shares_memory(marked.week, own.week)


@pytest.mark.parametrize(
    ("name", "array"),
    [("price", np.ones(30)), ("week", np.ones((3, 6))), ("click_share", np.ones(60)[::2])],
)
def test_kernels_are_given_no_other_arrays(name, array):
    market = small_market()
    with pytest.raises(ValueError, match=f"{name} must "):
        Market(market.metadata, market.law._replace(**{name: array}), bandwidth=1.0)


def test_copies_play_on_alike():
    """Copied and unpickled markets have arrays of their own."""
    env, rates = bare(OFFERS), np.full(30, 0.1)
    env.reset(seed=0)
    env.step(rates)
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), bare(OFFERS)]
    copies[-1].reset(seed=0)
    copies[-1].set_state(pickle.loads(pickle.dumps(env.get_state())))
    rewards = [[each.step(rates)[1] for _ in range(13)] for each in (env, *copies)]
    assert all(each == rewards[0] for each in rewards)
    events = [each.events().block.tolist() for each in (env, *copies)]
    assert all(each == events[0] for each in events)
