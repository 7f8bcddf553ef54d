"""Drawn markets follow their laws.

Bounds are quantiles of the statistics' own distributions: a right program fails one in ten
thousand times, and not with these seeds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crawl_envs.worlds.offers.demand import next_poisson
from crawl_envs.worlds.offers.law import GONE, RING, STEPS_PER_DAY
from crawl_envs.worlds.offers.market import BEGINS, ENDS, draw_day, initial_state, next_normal
from tests.crawl_envs.worlds.offers.markets import (
    changes_by_step,
    clicks_by_step,
    uniform_law,
    with_numbers,
)
from tests.naive import pages as naive

RARE = 1e-4


class Days:
    """The days of a market, drawn one after the other."""

    def __init__(self, law, root=7):
        self.law, self.state, self.day = law, initial_state(law, root, 0), 0

    def draw(self):
        events = draw_day(self.law, self.state, self.day)
        self.day += 1
        return events

    def count(self, name):
        """The latest day's counts."""
        return getattr(self.state, name)[(self.day - 1) % RING].astype(np.int64)


def draws(kernel, number, *arguments):
    """Numbers that a kernel draws from one stream."""
    stream = tuple(np.uint64(word) for word in naive.Stream(12, 0).state)
    drawn = []
    for _ in range(number):
        value, stream = kernel(stream, *arguments)
        stream = tuple(np.uint64(word) for word in stream)
        drawn.append(value)
    return np.array(drawn)


def assert_chi_square(counts, expected):
    """Counts of cells agree with expected ones, which are >= 5 each and add up to the same."""
    assert min(expected) >= 5.0
    assert stats.chisquare(counts, np.asarray(expected)).pvalue > RARE


def assert_poisson(values, mean):
    """Chi-square over cells of at least 10 expected counts, the tails among them."""
    bounds, reached = [-1], 0.0
    for number in range(int(mean + 10.0 * math.sqrt(mean)) + 10):
        share = stats.poisson.cdf(number, mean)
        if min(share - reached, 1.0 - share) * len(values) >= 10.0:
            bounds.append(number)
            reached = share
    bounds.append(np.inf)
    expected = np.diff(stats.poisson.cdf(bounds, mean)) * len(values)
    counts = np.diff([(values <= bound).sum() for bound in bounds])
    assert len(counts) > 1
    assert_chi_square(counts, expected)


@pytest.mark.parametrize("mean", [0.05, 1.0, 7.5, 29.9, 30.0, 30.5, 75.0, 250.0])
def test_counts_are_poisson(mean):
    assert_poisson(draws(next_poisson, 12_000, mean), mean)


def test_a_count_of_mean_0_is_0():
    assert draws(next_poisson, 10, 0.0).tolist() == [0] * 10


def test_normal_numbers_are_normal():
    values = draws(next_normal, 12_000)
    assert stats.kstest(values, "norm").pvalue > RARE
    pairs = np.corrcoef(values[:-1], values[1:])[0, 1]
    assert abs(pairs) < stats.norm.isf(RARE / 2) / math.sqrt(len(values))


def test_clicks_and_impressions_are_poisson_of_their_means():
    """Offers alike at 40 impressions a day, a fifth of them clicked."""
    days = Days(uniform_law(3000, view_rate=40.0, click_share=0.2, change_rate=0.0))
    events = days.draw()
    np.testing.assert_allclose(events.click_mean, 8.0, rtol=1e-6)
    np.testing.assert_allclose(events.view_mean, 40.0, rtol=1e-6)
    clicks, views = days.count("clicks"), days.count("views")
    assert_poisson(clicks, 8.0)
    assert_poisson(views, 40.0)
    assert_poisson(views - clicks, 32.0)
    assert abs(np.corrcoef(clicks, views - clicks)[0, 1]) < 4.0 / math.sqrt(len(clicks))


def test_counts_of_a_day_saturate():
    law = uniform_law(2, click_share=0.7, change_rate=0.0)
    days = Days(law._replace(view_scale=np.array([100_000.0, 100.0])))
    events = days.draw()
    counts = days.count("clicks")
    assert counts[0] == days.count("views")[0] == 60_000
    assert 30 < counts[1] < 120
    assert (
        np.bincount(np.concatenate(clicks_by_step(events)).astype(int)).tolist() == counts.tolist()
    )
    np.testing.assert_allclose(events.click_mean, [70_000.0, 70.0], rtol=1e-6)


def test_clicks_follow_the_hours():
    days = Days(uniform_law(500, view_rate=40.0, click_share=0.5))
    counts = sum(np.array([*map(len, clicks_by_step(days.draw()))]) for _ in range(4))
    shares = np.diff(days.law.click_hours[0], prepend=0.0)
    assert shares.max() > 2.0 * shares.min()
    assert_chi_square(counts, shares * counts.sum())


def test_price_changes_follow_the_merchants_weeks_and_hours():
    """By step they are independent Poisson numbers, at most one of them visible."""
    law = uniform_law(4000, change_rate=0.5, scheduled=0.7)
    days = Days(law)
    offers = np.bincount(law.merchant, minlength=3)
    shares = np.diff(law.hours, prepend=0.0)
    assert (law.week.max(1) > 1.3).all()
    for day in range(14):
        seen = np.zeros((3, STEPS_PER_DAY))
        for step, changes in enumerate(changes_by_step(days.draw())):
            for offer, _ in changes:
                seen[law.merchant[offer], step] += 1
        weekday = (9 + day) % 7
        chance = 1.0 - np.exp(-0.5 * law.week[:, [weekday]] * shares)
        expected, spread = offers[:, None] * chance, chance * (1.0 - chance) * offers[:, None]
        statistic = ((seen - expected) ** 2 / spread).sum()
        assert stats.chi2.sf(statistic, seen.size) > RARE


def test_the_chance_of_a_change_is_that_of_changing_prices():
    """With drifts, weeks and promotions; the chance of going is left out."""
    law = uniform_law(
        *(3000, 1),
        **{"change_rate": 0.2, "drift": 0.5, "campaign_rate": 0.3, "campaign_share": 0.6},
    )
    days, shares = Days(law), np.diff(law.hours, prepend=0.0)
    assert shares.min() > 0.0
    total, expected, variance = 0, 0.0, 0.0
    for _ in range(20):
        events = days.draw()
        chance = events.change_chance.astype(float)
        total += (days.count("changes") > 0).sum()
        expected += chance.sum()
        variance += (chance * (1.0 - chance)).sum()
    assert 0.2 * 3000 * 20 < expected < 0.8 * 3000 * 20
    # a promotion that undoes a change of the same step is seen as none: one in 1000 at most
    assert abs(total - expected) < 4.0 * math.sqrt(variance) + 0.001 * expected


# Prices


def test_promotions_take_prices_down_for_2_to_10_days_and_back():
    law = uniform_law(
        *(400,), merchants=200, change_rate=0.0, campaign_rate=0.2, campaign_share=0.5
    )
    days = Days(law)
    base, began = days.state.base.copy(), {}
    lengths, discounts, joined = [], [], [0, 0]
    for day in range(120):
        days.draw()
        state = days.state
        np.testing.assert_array_equal(state.base, base)
        cut = base * (100 - state.discount.astype(int)) // 100
        np.testing.assert_array_equal(state.price, np.maximum(cut, 1))
        inside = state.discount > 0
        for seller in np.flatnonzero(state.campaign):
            own = law.merchant == seller
            if state.campaign[seller] == BEGINS:
                began[seller] = day
                discounts.append(int(state.campaign_discount[seller]))
                assert set(state.discount[own]) <= {0, discounts[-1]}
                joined = [joined[0] + inside[own].sum(), joined[1] + own.sum()]
            else:
                assert state.campaign[seller] == ENDS
                assert not inside[own].any()
                lengths += [day - began[seller]] if seller in began else []
    assert set(lengths) == set(range(2, 11))
    assert set(discounts) == set(range(10, 55, 5))
    assert_chi_square(np.bincount(lengths)[2:], [len(lengths) / 9] * 9)
    assert_chi_square(np.bincount(discounts)[10::5], [len(discounts) / 9] * 9)
    assert stats.binomtest(int(joined[0]), int(joined[1]), 0.5).pvalue > RARE


def test_promotions_begin_at_their_rate():
    """Where none is on, one begins with the merchant's chance."""
    law = uniform_law(10, merchants=500, campaign_rate=0.1, change_rate=0.0)
    days = Days(law)
    began, variance, expected = 0, 0.0, 0.0
    for day in range(60):
        free = days.state.campaign_end < day
        days.draw()
        began += (days.state.campaign == BEGINS).sum()
        assert free[days.state.campaign == BEGINS].all()
        expected += law.campaign_rate[free].sum()
        variance += (law.campaign_rate * (1.0 - law.campaign_rate))[free].sum()
    assert abs(began - expected) < 4.0 * math.sqrt(variance)


def test_prices_go_back_or_to_within_15_percent():
    """Half of the changes of an offer that has changed before go back."""
    law = with_numbers(uniform_law(1500, change_rate=0.5), back=0.5)
    prices = np.full(1500, 2_000_000, np.int32)
    days = Days(law._replace(price=prices, week=np.ones_like(law.week)))
    ratios, back = [], [0, 0]
    for _ in range(8):
        before, base = days.state.before.copy(), days.state.base.copy()
        days.draw()
        once = days.count("changes") == 1
        new = days.state.base
        np.testing.assert_array_equal(days.state.before[once], base[once])
        known = once & (before != base)
        returned = known & (new == before)
        back = [back[0] + returned.sum(), back[1] + known.sum()]
        large = once & ~returned & (base > 10_000)
        ratios += (new[large] / base[large]).tolist()
        assert (new[once] != base[once]).all()
    assert stats.binomtest(int(back[0]), int(back[1]), 0.5).pvalue > 1e-3
    ratios = np.array(ratios)
    assert len(ratios) > 1000
    assert stats.kstest(ratios, "uniform", (0.85, 0.3)).pvalue > RARE
    assert 0.8499 <= ratios.min() < 0.86
    assert 1.14 < ratios.max() <= 1.1501


# Levels


def test_drifts_have_their_spread_and_memory_and_a_mean_factor_of_1():
    spread, memory, merchants = 0.5, 0.8, 2000
    law = uniform_law(2, merchants=merchants, drift=spread, drift_memory=memory)
    days = Days(law)  # after 30 days of 0.8, what they began at is forgotten
    first = days.state.drift.copy()
    days.draw()
    second = days.state.drift.copy()
    low, high = stats.chi2.ppf([RARE / 2, 1.0 - RARE / 2], merchants) / merchants
    for drift in (first, second):
        assert low < (drift**2).mean() / spread**2 < high
        assert stats.kstest(drift / spread, "norm").pvalue > RARE
    innovation = (second - memory * first) / (spread * math.sqrt(1.0 - memory**2))
    assert low < (innovation**2).mean() < high
    assert abs(np.corrcoef(first, innovation)[0, 1]) < 4.0 / math.sqrt(merchants)
    factors = np.exp(second - 0.5 * spread**2)
    assert abs(factors.mean() - 1.0) < 4.0 * factors.std() / math.sqrt(merchants)


@pytest.mark.parametrize(
    ("level", "jump", "spread"),
    [
        ("change_level", "change_jump", "change_spread"),
        ("demand_level", "demand_jump", "demand_spread"),
    ],
)
def test_levels_are_redrawn_at_their_rate(level, jump, spread):
    law = with_numbers(uniform_law(4000), **{jump: 0.15, spread: 0.7})
    days = Days(law)
    for _ in range(3):
        before = getattr(days.state, level).copy()
        days.draw()
        new = getattr(days.state, level)[getattr(days.state, level) != before]
        assert stats.binomtest(len(new), 4000, 0.15).pvalue > RARE
        assert stats.kstest(np.log(new) / 0.7, "norm").pvalue > RARE
    other = "demand_level" if level == "change_level" else "change_level"
    assert (getattr(days.state, other) == 1.0).all()


def test_offers_go_at_their_rate_and_at_any_step():
    law = with_numbers(uniform_law(4000, change_rate=0.0), obsolete_rate=0.04)
    days = Days(law)
    steps = np.zeros(STEPS_PER_DAY)
    for _ in range(8):
        there = days.state.price != GONE
        events = days.draw()
        leaving = there & (days.state.price == GONE)
        assert stats.binomtest(int(leaving.sum()), int(there.sum()), 0.04).pvalue > RARE
        for step, changes in enumerate(changes_by_step(events)):
            assert {price for _, price in changes} <= {GONE}
            steps[step] += len(changes)
    assert_chi_square(steps, [steps.sum() / STEPS_PER_DAY] * STEPS_PER_DAY)
