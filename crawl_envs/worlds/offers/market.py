"""A market of shopping offers, drawn day by day: price changes, promotions, clicks, impressions.

It does not depend on crawls. A day is drawn in passes over merchants, offers, price changes and
clicks, all from one stream.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.sim.advance import AT_ONCE
from crawl_envs.sim.streams import Stream, loaded, next_uniform, rewind, store
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from crawl_envs.types.offer_features import HISTORY_DAYS
from crawl_envs.worlds.offers.features import (
    CHANGE_SUM,
    CLICK_SUMS,
    LONG_SPANS,
    VIEW_SUMS,
    add_day,
)
from crawl_envs.worlds.offers.law import (
    BACK,
    CHANGE_JUMP,
    CHANGE_SPREAD,
    DEMAND_JUMP,
    DEMAND_SPREAD,
    DRIFT_MEMORY,
    DRIFT_SPREAD,
    FIRST_DAY,
    FIRST_WEEKDAY,
    GONE,
    OBSOLETE_RATE,
    RING,
    STEPS_PER_DAY,
    CountArray,
    DayEvents,
    MarketLaw,
    MarketState,
    PriceArray,
    SingleArray,
    new_state,
    read_only,
)

CHUNK = 30.0
"""Largest mean of one Poisson number; those of larger means are sums."""
BLOCK = 256
"""Number of offers whose means are computed at once."""
UNUSUAL = 2.0
"""Mark, in place of a share, of numbers that take more or fewer uniform numbers than one."""
ROUNDING, SIXTH = 1e-15, 1.0 / 6.0
"""Bound on the rounding errors of an exponential in [0, 1] and of its series; a coefficient."""
DAYS_OF_YEAR = 365
GONE_DEMAND = 0.5
"""Factor per day of the demand for a discontinued offer."""
MOST_COUNTED = 60_000
"""Largest count of a day; counts saturate."""

SEASON_CHANGES, SEASON_CAMPAIGNS, SEASON_DEMAND = range(3)
BEGINS, ENDS = 1, 2


@compiled(forceinline=True)
def next_normal(stream: Stream) -> tuple[float, Stream]:
    """Draw a standard normal number, by Box and Muller; return it and the stream after it."""
    one, stream = next_uniform(stream)
    two, stream = next_uniform(stream)
    return math.sqrt(-2.0 * math.log(one)) * math.cos(2.0 * math.pi * two), stream


@compiled(forceinline=True)
def sure_zero(mean: float) -> float:
    """Return a share up to which a Poisson number is 0: the series of exp(-mean), cut below it."""
    return 1.0 - mean * (1.0 - mean * (0.5 - mean * SIXTH)) - ROUNDING


@compiled(forceinline=True)
def inverted(share: float, mean: float) -> int:
    """Return the Poisson number of a uniform share, by inversion."""
    number = 0
    if share > sure_zero(mean):
        chance = math.exp(-mean)
        while share > chance and number < 200:
            share -= chance
            number += 1
            chance *= mean / number
    return number


@compiled()
def next_poisson(stream: Stream, mean: float) -> tuple[int, Stream]:
    """Draw a Poisson number; return it and the stream after it."""
    total = 0
    while mean > 0.0:
        part = min(mean, CHUNK)
        mean -= part
        share, stream = next_uniform(stream)
        total += inverted(share, part)
    return total, stream


@compiled(forceinline=True)
def next_step(stream: Stream, cumulative: FloatArray, row: int) -> tuple[int, Stream]:
    """Draw a step of the day from a row of cumulative shares; return it and the stream after it."""
    share, stream = next_uniform(stream)
    step = 0
    while step < STEPS_PER_DAY - 1 and share > cumulative[row, step]:
        step += 1
    return step, stream


@compiled()
def draw_merchants(law: MarketLaw, state: MarketState, day: int, stream: Stream) -> Stream:
    """Draw drifts and promotions of the merchants, and write their factors of price changes."""
    numbers = law.numbers
    spread, memory = numbers[DRIFT_SPREAD], numbers[DRIFT_MEMORY]
    weekday = (day + int(numbers[FIRST_WEEKDAY])) % 7
    season = law.season[(day + int(numbers[FIRST_DAY])) % DAYS_OF_YEAR]
    innovation = spread * math.sqrt(1.0 - memory * memory)
    for merchant in range(state.factor.size):
        shock, stream = next_normal(stream)
        state.drift[merchant] = memory * state.drift[merchant] + innovation * shock
        level = math.exp(state.drift[merchant] - 0.5 * spread * spread)
        state.factor[merchant] = level * law.week[merchant, weekday] * season[SEASON_CHANGES]
        begins, stream = next_uniform(stream)
        state.campaign[merchant] = 0
        if state.campaign_end[merchant] == day:
            state.campaign[merchant] = ENDS
        idle = state.campaign_end[merchant] < day
        if idle and begins <= law.campaign_rate[merchant] * season[SEASON_CAMPAIGNS]:
            length, stream = next_uniform(stream)
            depth, stream = next_uniform(stream)
            state.campaign[merchant] = BEGINS
            state.campaign_end[merchant] = day + 2 + int(length * 8.999)
            state.campaign_discount[merchant] = 10 + 5 * int(depth * 8.999)
    return stream


@compiled()
def note_last_changes(mask: CountArray, day: int, last_change: SingleArray) -> None:
    """Update the times of the last price changes, before drawing a day."""
    for offer in range(mask.size):
        steps = mask[offer]
        if steps:
            step = STEPS_PER_DAY - 1
            while not (steps >> step) & 1:
                step -= 1
            last_change[offer] = day - 1 + step / STEPS_PER_DAY


@compiled()
def shift_habits(law: MarketLaw, state: MarketState, stream: Stream) -> Stream:
    """Draw the offers with new levels, and the discontinued offers with their steps."""
    numbers, price, demand_level = law.numbers, state.price, state.demand_level
    change, demand = numbers[CHANGE_JUMP], numbers[CHANGE_JUMP] + numbers[DEMAND_JUMP]
    gone = demand + numbers[OBSOLETE_RATE]
    state.going[:] = 0
    for offer in range(price.size):
        demand_level[offer] *= GONE_DEMAND if price[offer] == GONE else 1.0
    for offer in range(price.size):
        kind, stream = next_uniform(stream)
        if kind > gone:
            continue
        if kind <= change:
            normal, stream = next_normal(stream)
            state.change_level[offer] = math.exp(numbers[CHANGE_SPREAD] * normal)
        elif price[offer] == GONE:
            continue
        elif kind <= demand:
            normal, stream = next_normal(stream)
            demand_level[offer] = math.exp(numbers[DEMAND_SPREAD] * normal)
        else:
            share, stream = next_uniform(stream)
            state.going[offer] = min(int(share * STEPS_PER_DAY), STEPS_PER_DAY - 1) + 1
    return stream


@compiled(forceinline=True)
def change_mean(law: MarketLaw, state: MarketState, offer: int) -> float:
    """Return the expected price changes of an offer on a day, if it is not discontinued."""
    rate = law.change_scale[offer] * state.change_level[offer]
    mean: float = rate * state.factor[law.merchant[offer]]
    return mean


@compiled()
def shares_without_change(law: MarketLaw, state: MarketState, first: int, zero: FloatArray) -> None:
    """Write the shares of a block of offers up to which they have no price change, (size,)."""
    block = slice(first, first + zero.size)
    price, scale, level = state.price[block], law.change_scale[block], state.change_level[block]
    merchant = law.merchant[block]
    for place in range(zero.size):
        mean = scale[place] * level[place] * state.factor[np.uint32(merchant[place])]
        none = (price[place] == GONE) | (mean <= 0.0)
        zero[place] = UNUSUAL if none else sure_zero(mean)


@compiled()
def draw_changes(law: MarketLaw, state: MarketState, stream: Stream) -> Stream:
    """Draw the steps of price changes without promotions."""
    mask, shares = state.mask, np.empty(BLOCK)
    mask[:] = 0
    for first in range(0, mask.size, BLOCK):
        zero = shares[: mask.size - first]
        shares_without_change(law, state, first, zero)
        for place in range(zero.size):
            if zero[place] == UNUSUAL:
                continue
            share, stream = next_uniform(stream)
            if share <= zero[place]:
                continue
            offer = first + place
            mean = change_mean(law, state, offer)
            part = min(mean, CHUNK)
            number, stream = next_poisson(stream, mean - part)
            for _ in range(inverted(share, part) + number):
                step, stream = next_step(stream, law.hours, law.merchant[offer])
                mask[offer] |= 1 << step
    return stream


@compiled()
def draw_promotions(
    law: MarketLaw, state: MarketState, moving: PriceArray, stream: Stream
) -> tuple[int, Stream]:
    """Draw the steps at which offers join a new promotion, or leave one that ends.

    Write the offers whose price may change into ``moving``; return their number first.
    """
    number, promotion = 0, state.promotion
    for offer in range(promotion.size):
        promotion[offer] = 0
        seller = law.merchant[offer]
        if state.campaign[seller] and state.price[offer] != GONE:
            if state.campaign[seller] == ENDS:
                moves = state.discount[offer] > 0
            else:
                joins, stream = next_uniform(stream)
                moves = joins <= law.campaign_share[seller]
            if moves:
                step, stream = next_step(stream, law.hours, seller)
                promotion[offer] = step + 1
        moving[number] = offer
        number += (state.mask[offer] | promotion[offer] | state.going[offer]) != 0
    return number, stream


@compiled()
def demand_means(
    law: MarketLaw,
    state: MarketState,
    season: float,
    first: int,
    mean: FloatArray,
    zero: FloatArray,
) -> None:
    """Write the expected clicks and other impressions of a block of offers, (2, size).

    Write the shares up to which they are 0 too; UNUSUAL if they take not one share each.
    """
    block = slice(first, first + mean.shape[1])
    scale, level, share = law.view_scale[block], state.demand_level[block], law.click_share[block]
    for place in range(scale.size):
        shown = scale[place] * level[place] * season
        clicks = shown * share[place]
        others = shown - clicks
        mean[0, place], mean[1, place] = clicks, others
        zero[1, place] = sure_zero(others)
        unusual = (min(clicks, others) <= 0.0) | (max(clicks, others) > CHUNK)
        zero[0, place] = UNUSUAL if unusual else sure_zero(clicks)


@compiled()
def draw_shares(
    mean: FloatArray,
    zero: FloatArray,
    clicks: CountArray,
    views: CountArray,
    some: IntArray,
    shares: FloatArray,
    stream: Stream,
) -> tuple[int, Stream]:
    """Draw the uniform shares of a block of offers; keep those of offers with some impression.

    Write their places and shares, and return their number first. Unusual counts are drawn and
    written here, and their places kept with shares of 0.
    """
    number = 0
    for place in range(clicks.size):
        if zero[0, place] != UNUSUAL:
            share, stream = next_uniform(stream)
            other, stream = next_uniform(stream)
            keep = (share > zero[0, place]) | (other > zero[1, place])
        else:
            count, stream = next_poisson(stream, mean[0, place])
            others, stream = next_poisson(stream, mean[1, place])
            clicks[place] = min(count, MOST_COUNTED)
            views[place] = min(count + others, MOST_COUNTED)
            share, other, keep = 0.0, 0.0, count + others > 0
        some[number], shares[0, number], shares[1, number] = place, share, other
        number += keep
    return number, stream


@compiled()
def draw_demand(
    law: MarketLaw, state: MarketState, day: int, clicked: PriceArray, stream: Stream
) -> tuple[int, int, Stream]:
    """Draw the clicks and impressions of a day.

    Write the clicked offers into ``clicked``; return their number first, and that of clicks.
    """
    season, number, total = demand_season(law, day), 0, 0
    mean, zero, shares = np.empty((2, BLOCK)), np.empty((2, BLOCK)), np.empty((2, BLOCK))
    some = np.empty(BLOCK, np.int64)
    all_clicks, all_views = state.clicks[day % RING], state.views[day % RING]
    all_clicks[:] = 0
    all_views[:] = 0
    for first in range(0, all_clicks.size, BLOCK):
        clicks, views = all_clicks[first : first + BLOCK], all_views[first : first + BLOCK]
        demand_means(law, state, season, first, mean, zero)
        kept, stream = draw_shares(mean, zero, clicks, views, some, shares, stream)
        for row in range(kept):
            place = some[row]
            count = inverted(shares[0, row], mean[0, place])
            clicks[place] += count
            views[place] += count + inverted(shares[1, row], mean[1, place])
            total += clicks[place]
            clicked[number] = first + place
            number += clicks[place] > 0
    return number, total, stream


@compiled(forceinline=True)
def demand_season(law: MarketLaw, day: int) -> float:
    """Return the factor of the demand of a day."""
    factor: float = law.season[(day + int(law.numbers[FIRST_DAY])) % DAYS_OF_YEAR, SEASON_DEMAND]
    return factor


@compiled(forceinline=True)
def steps_of(state: MarketState, offer: int) -> int:
    """Return the steps at which the price of an offer may change, as bits."""
    promotion, going = 1 << state.promotion[offer] >> 1, 1 << state.going[offer] >> 1
    steps: int = int(state.mask[offer]) | promotion | going
    return steps


@compiled()
def start_of_prices(state: MarketState, moving: PriceArray) -> IntArray:
    """Return the first places of the price changes of each step, and the end of all.

    The numbers of changes are upper bounds, (STEPS_PER_DAY + 1,).
    """
    start = np.zeros(STEPS_PER_DAY + 1, np.int64)
    for offer in moving:
        steps = steps_of(state, offer)
        for step in range(STEPS_PER_DAY):
            start[step + 1] += (steps >> step) & 1
    for step in range(STEPS_PER_DAY):
        start[step + 1] += start[step]
    return start


@compiled(forceinline=True)
def new_base(law: MarketLaw, state: MarketState, offer: int, stream: Stream) -> Stream:
    """Change an offer's price without promotion: to the previous one, or to a new one."""
    base, before = state.base[offer], state.before[offer]
    back, stream = next_uniform(stream)
    state.before[offer] = base
    if back <= law.numbers[BACK] and before != base:
        state.base[offer] = before
        return stream
    share, stream = next_uniform(stream)
    price = max(int(base * (0.85 + 0.3 * share)), 1)
    state.base[offer] = price + 1 if price == base else price
    return stream


@compiled()
def write_prices(
    law: MarketLaw, state: MarketState, day: int, moving: PriceArray, stream: Stream
) -> tuple[PriceArray, PriceArray, IntArray, IntArray, Stream]:
    """Draw the new prices of the day.

    Return the offers, their new prices, the starts and ends of those of each step, and the stream.
    """
    start = start_of_prices(state, moving)
    offers, prices = np.zeros(start[-1], np.int32), np.zeros(start[-1], np.int32)
    end, changes = start[:-1].copy(), state.changes[day % RING]
    changes[:] = 0
    for offer in moving:
        drawn, promotion, going = state.mask[offer], state.promotion[offer], state.going[offer]
        steps = steps_of(state, offer)
        state.mask[offer] = 0
        for step in range(STEPS_PER_DAY):
            if not (steps >> step) & 1:
                continue
            if (drawn >> step) & 1:
                stream = new_base(law, state, offer, stream)
            if promotion == step + 1:
                off = state.campaign_discount[law.merchant[offer]]
                state.discount[offer] = 0 if state.discount[offer] else off
            price = max(state.base[offer] * (100 - state.discount[offer]) // 100, 1)
            price = GONE if going == step + 1 else price
            if price != state.price[offer]:
                state.price[offer] = price
                state.mask[offer] |= 1 << step
                changes[offer] += 1
                offers[end[step]], prices[end[step]] = offer, price
                end[step] += 1
            if price == GONE:
                break
    return offers, prices, start[:-1], end, stream


@compiled()
def write_clicks(
    law: MarketLaw, clicks: CountArray, clicked: PriceArray, total: int, stream: Stream
) -> tuple[PriceArray, IntArray, Stream]:
    """Draw the steps of a day's clicks.

    Return their offers by step, the starts of the steps, and the stream.
    """
    steps, offers = np.empty(total, np.uint8), np.empty(total, np.int32)
    start = np.zeros(STEPS_PER_DAY + 1, np.int64)
    for number in range(total):
        step, stream = next_step(stream, law.click_hours, 0)
        steps[number] = step
        start[step + 1] += 1
    for step in range(STEPS_PER_DAY):
        start[step + 1] += start[step]
    following, number = start[:-1].copy(), 0
    for offer in clicked:
        for _ in range(clicks[offer]):
            step = steps[number]
            offers[following[step]] = offer
            following[step] += 1
            number += 1
    return offers, start, stream


@compiled()
def draw_events(
    law: MarketLaw, state: MarketState, day: int
) -> tuple[PriceArray, PriceArray, IntArray, IntArray, PriceArray, IntArray]:
    """Draw the day after the latest one; return its events, as the first part of DayEvents."""
    add_day(state.clicks, day - 1, LONG_SPANS, state.sums[CLICK_SUMS:VIEW_SUMS])
    add_day(state.views, day - 1, LONG_SPANS, state.sums[VIEW_SUMS:CHANGE_SUM])
    add_day(state.changes, day - 1, (HISTORY_DAYS,), state.sums[CHANGE_SUM:])
    moving = np.empty(law.merchant.size, np.int32)
    stream = draw_merchants(law, state, day, loaded(state.stream))
    note_last_changes(state.mask, day, state.last_change)
    stream = shift_habits(law, state, stream)
    stream = draw_changes(law, state, stream)
    number, stream = draw_promotions(law, state, moving, stream)
    clicked = np.empty(law.merchant.size, np.int32)
    size, total, stream = draw_demand(law, state, day, clicked, stream)
    offers, prices, start, end, stream = write_prices(law, state, day, moving[:number], stream)
    clicks = state.clicks[day % RING]
    click_offers, click_start, stream = write_clicks(law, clicks, clicked[:size], total, stream)
    store(stream, state.stream)
    return offers, prices, start, end, click_offers, click_start


@compiled()
def click_means(law: MarketLaw, state: MarketState, day: int) -> SingleArray:
    """Return the expected clicks of the latest day, (m,)."""
    means, season = np.empty(state.price.size, np.float32), demand_season(law, day)
    for offer in range(means.size):
        shown = law.view_scale[offer] * state.demand_level[offer] * season
        means[offer] = shown * law.click_share[offer]
    return means


@compiled()
def view_means(law: MarketLaw, state: MarketState, day: int) -> SingleArray:
    """Return the expected impressions of the latest day, (m,)."""
    means, season = np.empty(state.price.size, np.float32), demand_season(law, day)
    for offer in range(means.size):
        means[offer] = law.view_scale[offer] * state.demand_level[offer] * season
    return means


@compiled()
def change_chances(law: MarketLaw, state: MarketState) -> SingleArray:
    """Return the probabilities of a price change on the latest day, (m,)."""
    chances = np.zeros(state.price.size, np.float32)
    for offer in range(chances.size):
        if state.price[offer] == GONE and not state.going[offer]:
            continue
        chances[offer] = 1.0 - math.exp(-change_mean(law, state, offer))
        seller = law.merchant[offer]
        if state.campaign[seller]:
            likely = 1.0 if state.promotion[offer] else 0.0
            if state.campaign[seller] == BEGINS:
                likely = law.campaign_share[seller]
            chances[offer] = 1.0 - (1.0 - chances[offer]) * (1.0 - likely)
    return chances


@compiled()
def draw_day_of(law: MarketLaw, state: MarketState, day: int, truth: bool) -> DayEvents:
    """Draw the day after the latest one, of a read-only law; see :func:`draw_day`."""
    events = draw_events(law, state, day)
    views = chances = np.empty(0, np.float32)
    if truth:
        views, chances = view_means(law, state, day), change_chances(law, state)
    return DayEvents(*events, click_means(law, state, day), views, chances)


@compiled()
def draw_days(law: MarketLaw, state: MarketState, first: int, end: int) -> None:
    """Draw the days from the first up to the end, after the latest one."""
    for day in range(first, end):
        draw_events(law, state, day)


def initial_state(law: MarketLaw, root: int, episode: int) -> MarketState:
    """Return the state of a market before day 0 of an episode, after drawing its history.

    Args:
        law: law of the market.
        root: root of the tape.
        episode: number of the episode since the seed.
    """
    law, state = read_only(law), new_state(law)
    rewind(state.stream, np.uint64(root), np.uint64(episode))
    days = max(AT_ONCE // law.merchant.size, 1)
    for first in range(-HISTORY_DAYS, 0, days):
        draw_days(law, state, first, min(first + days, 0))
    return state


def day_of_week(law: MarketLaw, day: int) -> int:
    """Return the weekday of a day, 0 for Monday."""
    return (day + int(law.numbers[FIRST_WEEKDAY])) % 7


def draw_day(law: MarketLaw, state: MarketState, day: int, truth: bool = True) -> DayEvents:
    """Draw the day after the latest one, and advance the state to its end.

    Without ``truth`` the expected impressions and the probabilities of changes are left out.
    """
    events: DayEvents = draw_day_of(read_only(law), state, day, truth)
    return events
