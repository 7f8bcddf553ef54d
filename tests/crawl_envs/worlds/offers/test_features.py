"""Books are the means of plain lists of days, and know nothing of the day that begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crawl_envs.sim.streams import roots
from crawl_envs.types.offer_features import HISTORY_FEATURES, NO_CHANGE
from crawl_envs.worlds.offers.features import daily_means, features_of
from crawl_envs.worlds.offers.law import RING, STEPS_PER_DAY
from crawl_envs.worlds.offers.log import record
from crawl_envs.worlds.offers.market import day_of_week, draw_day, initial_state
from crawl_envs.worlds.offers.tracking import begin_day, new_tracking, play_step
from tests.crawl_envs.worlds.offers.markets import KINDS, market_of, small_market
from tests.naive import market as naive_market

DAYS, SEED = 42, 3


def twin_features(twin):
    """Table 3's history features of all offers as the twin's present day begins, by name."""
    offers = []
    for offer in twin.offers:
        changes = {day: len(steps) for day, steps in offer.changes.items()}
        latest = offer.last_change(twin.day)
        offers.append(naive_market.history(offer.clicks, offer.views, changes, latest, twin.day))
    return {name: [offer[name] for offer in offers] for name in HISTORY_FEATURES}


def features(table):
    return {name: getattr(table, name).tolist() for name in HISTORY_FEATURES}


def book_now(market, state, day):
    """The book of the state's latest day, made of what the state keeps."""
    counts = (state.clicks, state.views, state.changes)
    return features_of(
        market.metadata, day, day_of_week(market.law, day), counts, state.last_change
    )


@pytest.mark.parametrize("kind", KINDS)
def test_books_are_the_twins(kind):
    """Those of the log and those that a lane makes of the last days alone."""
    market = market_of(kind, SEED)
    log, root = record(market, DAYS, SEED), roots(SEED).tape
    state, twin = initial_state(market.law, root, 0), naive_market.Market(market.law, root, 0)
    for day in range(DAYS):
        expected, weekday = twin_features(twin), twin.weekday()
        draw_day(market.law, state, day)
        twin.draw_day()
        for table in (log.features(day), book_now(market, state, day)):
            assert features(table) == expected
            assert (table.day, table.day_of_week) == (day, weekday)
            assert table.metadata is market.metadata
            for name in HISTORY_FEATURES:
                array = getattr(table, name)
                assert array.dtype == np.float32
                assert not array.flags.writeable


@pytest.mark.parametrize("kind", ["ordinary", "promotions", "big rates", "obsolescence"])
def test_features_of_a_tracker_count_the_changes_its_crawls_detect(kind):
    """Before the episode, what was logged; clicks and impressions are those of the log."""
    market = market_of(kind, SEED)
    log, root = record(market, DAYS, SEED, keep_events=True), roots(SEED).tape
    world = naive_market.Market(market.law, root, 0)
    logged = [{d: len(steps) for d, steps in offer.changes.items()} for offer in world.offers]
    latest = [offer.last_change(0) for offer in world.offers]
    twin = naive_market.Tracker(log.prices.tolist(), logged, latest)
    tracking = new_tracking(log.prices, log.history_ring(), log.last_change[0])
    rng, offers, differ = np.random.default_rng(SEED), range(log.num_pages), 0
    for day, events in enumerate(log.events):
        begin_day(tracking, day, events.click_mean)
        table = log.features(day, tracking)
        span = range(day - 30, day)
        counts = [{d: twin.detected_on(offer, d) for d in span} for offer in offers]
        expected = [
            naive_market.history(offer.clicks, offer.views, seen, twin.last_detected(n, day), day)
            for n, (offer, seen) in enumerate(zip(world.offers, counts, strict=True))
        ]
        shown = features(table)
        assert shown == {name: [one[name] for one in expected] for name in HISTORY_FEATURES}
        differ += shown["change_frequency"] != features(log.features(day))["change_frequency"]
        happened = world.draw_day()
        for step in range(STEPS_PER_DAY):
            chosen = rng.permutation(log.num_pages)[: rng.integers(0, 3)]
            room = np.empty(chosen.size), np.empty(chosen.size, np.bool_)
            play_step(tracking, events, day, step, chosen, *room)
            twin.play_step(day, step, happened.changes[step], chosen.tolist(), [])
    assert differ > 0


def test_the_books_compared_are_not_all_zeros():
    log = record(market_of("ordinary", SEED), DAYS, SEED)
    for name in HISTORY_FEATURES:
        shown = [row for day in range(DAYS) for row in getattr(log.features(day), name).tolist()]
        assert len(set(shown)) > 4


@pytest.mark.parametrize("day", [0, 1, 17, 30, DAYS - 1])
def test_a_book_knows_nothing_of_its_day_and_later(day):
    """Other counts and changes from the day on change nothing in its book."""
    log = record(market_of("ordinary", SEED), DAYS, SEED)
    rows = slice(day, DAYS)
    changed = {}
    for name in ("clicks", "impressions", "changes"):
        changed[name] = getattr(log, name).copy()
        changed[name][rows] += 7
    last_change = log.last_change.copy()
    last_change[day + 1 :] = np.arange(day + 1, DAYS)[:, None] - 0.5
    other = replace(log, **changed, last_change=last_change)
    assert features(other.features(day)) == features(log.features(day))
    if day < DAYS - 1:
        tomorrow, before = features(other.features(day + 1)), features(log.features(day + 1))
        assert all(tomorrow[name] != before[name] for name in HISTORY_FEATURES)
    assert (log.last_change[day] < day).all()


def test_a_book_of_the_last_days_alone_knows_nothing_of_its_day():
    """The kept row of the present day, of a market that is another from this day on."""
    market, other = market_of("ordinary", SEED), market_of("big rates", SEED)
    days = 35
    states = [initial_state(market.law, 9, 0) for _ in range(2)]
    for day in range(days):
        for state in states:
            draw_day(market.law, state, day)
    changed = other.law._replace(week=market.law.week)
    for state, law in zip(states, (market.law, changed), strict=True):
        draw_day(law, state, days)
    books = [features(book_now(market, state, days)) for state in states]
    assert books[0] == books[1]
    for state, law in zip(states, (market.law, changed), strict=True):
        draw_day(law, state, days + 1)
    books = [features(book_now(market, state, days + 1)) for state in states]
    assert all(books[0][name] != books[1][name] for name in HISTORY_FEATURES)


@pytest.mark.parametrize("back", [1, 2, 7, 8, 14, 15, 30, 31])
def test_each_mean_looks_back_its_own_days(back):
    """One count, of 10, so many days ago."""
    for day in (0, 5, 40):
        counts = np.zeros((RING + 3, 1), np.uint16)
        counts[(day - back) % len(counts)] = 10
        means = daily_means(counts, day, (1, 7, 14, 30))
        spans = [span if back <= span else np.inf for span in (1, 7, 14, 30)]
        assert [mean.tolist() for mean in means] == [[np.float32(10 / span)] for span in spans]


@pytest.mark.parametrize(
    ("latest", "since"),
    [
        (99 + 11 / 12, 1 / 12),
        (99.0, 1.0),
        (70.0, 30.0),
        (69 + 11 / 12, NO_CHANGE),
        (69.0, NO_CHANGE),
        (10.0, NO_CHANGE),
        (-np.inf, NO_CHANGE),
    ],
)
def test_days_since_the_latest_change_that_was_seen_in_30_days(latest, since):
    """Beyond them a change is neither counted in the frequency nor remembered."""
    market = small_market(num_offers=1)
    none = np.zeros((RING, 1), np.uint8)
    table = features_of(market.metadata, 100, 0, (none,) * 3, np.array([latest], np.float32))
    assert table.days_since_change.tolist() == pytest.approx([since], rel=1e-4)
    if since == NO_CHANGE:
        assert table.days_since_change.tolist() == [NO_CHANGE]


@pytest.mark.parametrize("kind", ["ordinary", "pennies", "one merchant"])
def test_there_is_a_latest_change_where_and_only_where_the_frequency_counts_one(kind):
    log = record(market_of(kind, SEED), 70, SEED)
    for day in range(70):
        table = log.features(day)
        changed = table.change_frequency > 0.0
        np.testing.assert_array_equal(changed, table.days_since_change < NO_CHANGE)
        assert (table.days_since_change > 0.0).all()


@pytest.mark.parametrize("first_day", [0, 1, 6, 7, 364])
def test_weekdays_follow_the_calendar(first_day):
    """Day 0 of the year is a Monday; weeks go on over the end of the year."""
    market = small_market(first_day=first_day)
    log = record(market, 16, 0)
    for day in range(16):
        assert log.features(day).day_of_week == (first_day + day) % 7
        assert day_of_week(market.law, day) == (first_day + day) % 7
    assert day_of_week(market.law, -1) == (first_day - 1) % 7
