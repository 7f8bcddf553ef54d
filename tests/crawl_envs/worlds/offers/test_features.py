"""Features are the means of plain lists of days, and know nothing of the day that begins."""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.sim.streams import roots
from crawl_envs.types.offer_features import HISTORY_FEATURES, NO_CHANGE
from crawl_envs.worlds.offers.features import features_of, sums_of, write_changes, write_features
from crawl_envs.worlds.offers.law import RING
from crawl_envs.worlds.offers.log import record
from crawl_envs.worlds.offers.market import day_of_week, draw_day, initial_state
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


def features_now(market, state, day):
    """The features of the state's latest day, made of what the state keeps."""
    counts = (state.clicks, state.views, state.changes)
    return features_of(
        market.metadata, day, day_of_week(market.law, day), counts, state.last_change
    )


def columns_now(state, day):
    """The columns of the state's latest day, from its sums."""
    columns = np.full((len(HISTORY_FEATURES), state.price.size), np.nan, np.float32)
    write_features(day, state.clicks, state.views, state.sums, state.last_change, columns)
    found = sums_of(state.changes, day, (30,))[0]
    again = np.full((2, state.price.size), np.nan, np.float32)
    write_changes(day, found, state.last_change, again)
    assert again.tolist() == columns[:2].tolist()
    return columns.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_the_twins(kind):
    """Those of the log, those of the last days alone, and those from sums kept day by day."""
    market = market_of(kind, SEED)
    log, root = record(market, DAYS, SEED), roots(SEED).tape
    state, twin = initial_state(market.law, root, 0), naive_market.Market(market.law, root, 0)
    for day in range(DAYS):
        expected, weekday = twin_features(twin), twin.weekday()
        draw_day(market.law, state, day)
        twin.draw_day()
        assert columns_now(state, day) == list(expected.values())
        for table in (log.features(day), features_now(market, state, day)):
            assert features(table) == expected
            assert (table.day, table.day_of_week) == (day, weekday)
            assert table.metadata is market.metadata
            for name in HISTORY_FEATURES:
                array = getattr(table, name)
                assert array.dtype == np.float32
                assert not array.flags.writeable


def test_the_features_compared_are_not_all_zeros():
    log = record(market_of("ordinary", SEED), DAYS, SEED)
    for name in HISTORY_FEATURES:
        shown = [row for day in range(DAYS) for row in getattr(log.features(day), name).tolist()]
        assert len(set(shown)) > 4


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
