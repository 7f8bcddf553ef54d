from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from crawl_envs.instances.market import (
    BRANDS_EACH,
    CATEGORIES_EACH,
    CHANCES,
    DAYS_OF_YEAR,
    MARKET,
    SPREADS,
    UPPER_LIMITS,
    MarketShape,
    click_hours,
    draw_world,
    market,
    season,
)
from crawl_envs.sim.streams import generator, roots
from crawl_envs.worlds.offers.law import GONE, STEPS_PER_DAY
from crawl_envs.worlds.offers.log import record

SHAPE = MarketShape()
POSITIVES = (1 / 21, 1 / 76, 1 / 7)
"""Shares of offers per day: Han et al. 2020, section 4.1.1."""


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_shapes_of_a_market():
    m, merchants = 50, SHAPE.merchants
    drawn = market(m, seed=3)
    law = drawn.law
    for array in (*drawn.metadata, law.merchant, law.price, drawn.importance, drawn.change_rate):
        assert array.shape == (m,)
    assert law.week.shape == (merchants, 7)
    assert law.hours.shape == (merchants, STEPS_PER_DAY)
    assert law.click_hours.shape == (1, STEPS_PER_DAY)
    assert season().shape == law.season.shape == (DAYS_OF_YEAR, 3)
    assert drawn.bandwidth == pytest.approx(5.0)
    assert not any(array.flags.writeable for array in drawn.metadata)


def test_the_generator_draws_what_market_draws():
    drawn = MARKET.generator("market", 40)(generator(roots(5).instance, 0))
    assert same(drawn.law, market(40, seed=5).law)


def test_seeds_share_a_world():
    one, other = market(300, seed=5), market(300, seed=6)
    there = draw_world(0, SHAPE)
    for drawn in (one, other):
        assert np.array_equal(drawn.law.week, there.week)
        assert np.array_equal(drawn.law.campaign_rate, there.campaign_rate)
        metadata = drawn.metadata
        scale = there.merchant_change[metadata.merchant] * there.category_change[metadata.category]
        assert np.allclose(drawn.law.change_scale, SHAPE.change_rate * scale, rtol=1e-12)
        assert np.array_equal(metadata.country, there.country[metadata.merchant])
    elsewhere = market(300, seed=5, world=1)
    assert not np.array_equal(elsewhere.law.week, there.week)


def test_offers_carry_what_their_world_allows():
    metadata, there = market(2000, seed=1).metadata, draw_world(0, SHAPE)
    assert there.merchant_categories.shape == (SHAPE.merchants, CATEGORIES_EACH)
    assert there.category_brands.shape == (SHAPE.categories, BRANDS_EACH)
    sold = there.merchant_categories[metadata.merchant] == metadata.category[:, None]
    made = there.category_brands[metadata.category] == metadata.brand[:, None]
    assert sold.any(axis=1).all()
    assert made.any(axis=1).all()
    assert set(np.unique(metadata.condition)) == {0, 1, 2}
    assert np.all(np.diff(metadata.merchant) >= 0)


def test_rates_are_what_the_law_says_and_gone_offers_have_none():
    drawn = market(2000, seed=1)
    law, gone = drawn.law, drawn.law.price == GONE
    assert np.allclose(drawn.importance, law.view_scale * law.demand_level * law.click_share)
    assert np.allclose(drawn.change_rate[~gone], (law.change_scale * law.change_level)[~gone])
    assert not drawn.importance[gone].any()
    assert not drawn.change_rate[gone].any()
    result = stats.binomtest(int(gone.sum()), gone.size, SHAPE.obsolete)
    assert result.pvalue > 1e-3


@pytest.mark.parametrize(
    ("effects", "spread"),
    [
        ("merchant_change", "merchant_change"),
        ("merchant_views", "merchant_views"),
        ("category_change", "category_change"),
        ("category_views", "category_views"),
        ("category_clicks", "category_clicks"),
        ("brand_views", "brand_views"),
        ("brand_clicks", "brand_clicks"),
    ],
)
def test_effects_of_a_world_are_lognormal(effects, spread):
    shape = MarketShape(merchants=2000, categories=2000, brands=2000, fast=0.0)
    logs = np.log(getattr(draw_world(4, shape), effects)) / getattr(shape, spread)
    assert stats.kstest(logs, "norm").pvalue > 1e-3


def test_some_merchants_reprice_all_the_time():
    ordinary, some = MarketShape(merchants=2000, fast=0.0), MarketShape(merchants=2000, fast=0.1)
    factors = draw_world(4, some).merchant_change / draw_world(4, ordinary).merchant_change
    fast = factors > 1.5
    assert np.allclose(factors[fast], some.fast_factor)
    assert np.allclose(factors[~fast], 1.0)
    assert stats.binomtest(int(fast.sum()), 2000, 0.1).pvalue > 1e-3


def test_levels_of_offers_are_lognormal():
    law = market(4000, seed=2, shape=MarketShape(obsolete=0.0)).law
    assert stats.kstest(np.log(law.change_level) / SHAPE.offer_change, "norm").pvalue > 1e-3
    assert stats.kstest(np.log(law.demand_level) / SHAPE.offer_views, "norm").pvalue > 1e-3


def test_merchants_have_their_shares_of_the_offers():
    metadata, there = market(20_000, seed=2).metadata, draw_world(0, SHAPE)
    counts = np.bincount(metadata.merchant, minlength=SHAPE.merchants)
    assert there.size.sum() == pytest.approx(1.0)
    assert stats.chisquare(counts, 20_000 * there.size).pvalue > 1e-3


def test_weekly_rhythms():
    """Scheduled merchants have their share on one to three days, the others less at weekends."""
    week = draw_world(0, SHAPE).week
    assert np.allclose(week.mean(axis=1), 1.0)
    chosen = ~np.isclose(week, [1.15, 1.15, 1.15, 1.15, 1.1, 0.65, 0.65]).all(axis=1)
    assert stats.binomtest(int(chosen.sum()), len(week), SHAPE.scheduled).pvalue > 1e-3
    for row in week[chosen]:
        few = row > 7.0 * (1.0 - SHAPE.scheduled_share)
        assert 1 <= few.sum() <= 3
        assert row[few].sum() / 7.0 == pytest.approx(SHAPE.scheduled_share)
        assert np.ptp(row[few]) == pytest.approx(0.0, abs=1e-12)


def test_daily_rhythms_are_shares():
    for cumulative in (draw_world(0, SHAPE).hours, click_hours()):
        assert np.allclose(cumulative[:, -1], 1.0)
        assert np.all(np.diff(cumulative, axis=1) > 0.0)
    clicks = np.diff(click_hours()[0], prepend=0.0)
    assert np.argmax(clicks) in (9, 10)  # 18 to 20 and 20 to 22 o'clock


@pytest.fixture(scope="module")
def log():
    return record(market(5000, seed=11), 30, 11)


@pytest.mark.parametrize("task", range(3), ids=["price", "click", "impression"])
def test_positives_are_near_those_of_the_paper(log, task):
    """Within 10% of the paper's share, beyond what 5,000 offers leave open.

    Offers are drawn one by one, but within the one world, so that the mean over offers of their
    shares of days has their spread over sqrt(m) as its error; four times it is left open.
    """
    happened = np.array([log.labels(day)[task] for day in range(30)])
    each = happened.mean(axis=0)
    error = 4.0 * each.std() / np.sqrt(each.size)
    assert error < 0.3 * POSITIVES[task]
    assert abs(each.mean() - POSITIVES[task]) < 0.1 * POSITIVES[task] + error


def test_prices_of_a_few_offers_change_several_times_a_day(log):
    often = (log.changes.mean(axis=0) > 1.5).mean()
    assert 0.0 < often < 0.05


def test_most_offers_of_a_month_are_never_clicked(log):
    clicks = log.clicks[:30].sum(axis=0)
    assert (clicks == 0).mean() > 0.8
    assert np.sort(clicks)[-50:].sum() > 0.3 * clicks.sum()


BAD_NUMBERS = [
    *(
        (field.name, value, "")
        for field in dataclasses.fields(MarketShape)
        for value in (-1, float("nan"), "many", None)
    ),
    *((name, 1.5, r" must lie in \[0, 1\], got 1.5") for name in CHANCES),
    *(
        (name, 1e6, rf" must lie in \[0, {UPPER_LIMITS[name]:g}\], got 1000000.0")
        for name in UPPER_LIMITS
    ),
    ("drift_memory", 1.0, r" must lie in \[0, 1\), got 1.0"),
]


@pytest.mark.parametrize(("name", "value", "words"), BAD_NUMBERS)
def test_bad_numbers_of_a_shape(name, value, words):
    with pytest.raises(ValueError, match=name + words):
        MarketShape(**{name: value})


def test_all_spreads_have_an_end():
    MarketShape(**{name: UPPER_LIMITS[name] for name in UPPER_LIMITS})
    effects = ("merchant_", "category_", "brand_", "offer_")
    named = {field.name for field in dataclasses.fields(MarketShape)}
    spreads = {name for name in named if name.startswith(effects)} | {"drift"}
    assert spreads == set(SPREADS)
    assert {name for name in named if name.endswith("_rate")} <= set(CHANCES) | set(UPPER_LIMITS)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("num_offers", {"num_offers": 0}),
        ("num_offers", {"num_offers": 1.5}),
        ("seed", {"seed": -1}),
        ("bandwidth", {"bandwidth": 0.0}),
        ("first_day", {"first_day": 365}),
        ("world", {"world": -1}),
        ("shape", {"shape": {}}),
        ("corruption", {"corruption": 0.1}),
    ],
)
def test_bad_arguments_of_a_market(name, arguments):
    with pytest.raises(ValueError, match=name):
        market(**{"num_offers": 10, **arguments})
