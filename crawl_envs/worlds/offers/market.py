"""A market of shopping offers, drawn day by day: price changes, promotions, clicks, impressions.

It does not depend on crawls. A day is drawn in four passes, over merchants, offers, price changes
and clicks, all from one stream. The second costs 30 ns per offer; the cost of the others is
proportional to the number of events.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.sim.streams import Stream, loaded, next_uniform, rewind, store
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from crawl_envs.types.offer_features import HISTORY_DAYS
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
    ByteArray,
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
def next_poisson(stream: Stream, mean: float) -> tuple[int, Stream]:
    """Draw a Poisson number, by inversion; return it and the stream after it."""
    total = 0
    while mean > 0.0:
        part = min(mean, CHUNK)
        mean -= part
        share, stream = next_uniform(stream)
        chance = math.exp(-part)
        number = 0
        while share > chance and number < 200:
            share -= chance
            number += 1
            chance *= part / number
        total += number
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
def draw_merchants(law: MarketLaw, state: MarketState, day: int, factor: FloatArray) -> None:
    """Draw drifts and promotions of the merchants, and write their factors of price changes."""
    numbers, stream = law.numbers, loaded(state.stream)
    spread, memory = numbers[DRIFT_SPREAD], numbers[DRIFT_MEMORY]
    weekday = (day + int(numbers[FIRST_WEEKDAY])) % 7
    season = law.season[(day + int(numbers[FIRST_DAY])) % DAYS_OF_YEAR]
    innovation = spread * math.sqrt(1.0 - memory * memory)
    for merchant in range(factor.size):
        shock, stream = next_normal(stream)
        state.drift[merchant] = memory * state.drift[merchant] + innovation * shock
        level = math.exp(state.drift[merchant] - 0.5 * spread * spread)
        factor[merchant] = level * law.week[merchant, weekday] * season[SEASON_CHANGES]
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
    store(stream, state.stream)


@compiled()
def shift_habits(
    numbers: FloatArray,
    price: PriceArray,
    change_level: SingleArray,
    demand_level: SingleArray,
    going: ByteArray,
    stream: Stream,
) -> Stream:
    """Draw the offers with new levels, and the discontinued offers with their steps."""
    change, demand = numbers[CHANGE_JUMP], numbers[CHANGE_JUMP] + numbers[DEMAND_JUMP]
    gone = demand + numbers[OBSOLETE_RATE]
    for offer in range(price.size):
        going[offer] = 0
        kind, stream = next_uniform(stream)
        gone_before = price[offer] == GONE
        if gone_before:
            demand_level[offer] *= GONE_DEMAND
        if kind <= change:
            normal, stream = next_normal(stream)
            change_level[offer] = math.exp(numbers[CHANGE_SPREAD] * normal)
        elif gone_before:
            continue
        elif kind <= demand:
            normal, stream = next_normal(stream)
            demand_level[offer] = math.exp(numbers[DEMAND_SPREAD] * normal)
        elif kind <= gone:
            share, stream = next_uniform(stream)
            going[offer] = min(int(share * STEPS_PER_DAY), STEPS_PER_DAY - 1) + 1
    return stream


@compiled()
def draw_changes(
    price: PriceArray,
    merchant: PriceArray,
    scale: FloatArray,
    level: SingleArray,
    factor: FloatArray,
    hours: FloatArray,
    mask: CountArray,
    chance: SingleArray,
    stream: Stream,
) -> Stream:
    """Draw the steps of price changes without promotions; write the probabilities of changes."""
    for offer in range(price.size):
        steps = 0
        mean = scale[offer] * level[offer] * factor[merchant[offer]]
        if price[offer] == GONE:
            mean = 0.0
        number, stream = next_poisson(stream, mean)
        for _ in range(number):
            step, stream = next_step(stream, hours, merchant[offer])
            steps |= 1 << step
        mask[offer] = steps
        chance[offer] = 1.0 - math.exp(-mean)
    return stream


@compiled()
def draw_promotions(
    price: PriceArray,
    merchant: PriceArray,
    campaign: ByteArray,
    joining: FloatArray,
    hours: FloatArray,
    discount: ByteArray,
    promotion: ByteArray,
    chance: SingleArray,
    stream: Stream,
) -> Stream:
    """Draw the steps at which offers join a new promotion, or leave one that ends."""
    for offer in range(price.size):
        promotion[offer] = 0
        seller = merchant[offer]
        if campaign[seller] == 0 or price[offer] == GONE:
            continue
        if campaign[seller] == ENDS:
            moves = discount[offer] > 0
            likely = 1.0 if moves else 0.0
        else:
            joins, stream = next_uniform(stream)
            moves, likely = joins <= joining[seller], joining[seller]
        if moves:
            step, stream = next_step(stream, hours, seller)
            promotion[offer] = step + 1
        chance[offer] = 1.0 - (1.0 - chance[offer]) * (1.0 - likely)
    return stream


@compiled()
def draw_demand(
    scale: FloatArray,
    level: SingleArray,
    share: FloatArray,
    season: float,
    clicks: CountArray,
    views: CountArray,
    click_mean: SingleArray,
    view_mean: SingleArray,
    stream: Stream,
) -> Stream:
    """Draw the clicks and impressions of a day, (m,)."""
    for offer in range(scale.size):
        shown = scale[offer] * level[offer] * season
        clicked = shown * share[offer]
        number, stream = next_poisson(stream, clicked)
        others, stream = next_poisson(stream, shown - clicked)
        clicks[offer] = min(number, MOST_COUNTED)
        views[offer] = min(number + others, MOST_COUNTED)
        click_mean[offer] = clicked
        view_mean[offer] = shown
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
def draw_offers(law: MarketLaw, state: MarketState, day: int, factor: FloatArray) -> None:
    """Draw the times of price changes, and the impressions and clicks, of all offers."""
    price, merchant, chance = state.price, law.merchant, state.change_chance
    row = day % RING
    season = law.season[(day + int(law.numbers[FIRST_DAY])) % DAYS_OF_YEAR, SEASON_DEMAND]
    note_last_changes(state.mask, day, state.last_change)
    stream = shift_habits(
        *(law.numbers, price, state.change_level, state.demand_level, state.going),
        loaded(state.stream),
    )
    stream = draw_changes(
        *(price, merchant, law.change_scale, state.change_level, factor, law.hours),
        *(state.mask, chance, stream),
    )
    stream = draw_promotions(
        *(price, merchant, state.campaign, law.campaign_share, law.hours),
        *(state.discount, state.promotion, chance, stream),
    )
    clicks, views = state.clicks[row], state.views[row]
    stream = draw_demand(
        *(law.view_scale, state.demand_level, law.click_share, season, clicks, views),
        *(state.click_mean, state.view_mean, stream),
    )
    store(stream, state.stream)


@compiled()
def count_steps(mask: CountArray, promotion: ByteArray, going: ByteArray) -> IntArray:
    """Return upper bounds on the number of price changes by step, (STEPS_PER_DAY,)."""
    at_step = np.zeros(STEPS_PER_DAY, np.int64)
    for offer in range(mask.size):
        steps = mask[offer] | (1 << promotion[offer] >> 1) | (1 << going[offer] >> 1)
        step = 0
        while steps:
            at_step[step] += steps & 1
            steps >>= 1
            step += 1
    return at_step


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
    law: MarketLaw,
    state: MarketState,
    day: int,
    start: IntArray,
    offers: PriceArray,
    prices: PriceArray,
) -> IntArray:
    """Draw the new prices of the day; return the end of those of each step."""
    stream, row, end = loaded(state.stream), day % RING, start.copy()
    for offer in range(law.merchant.size):
        drawn, promotion, going = state.mask[offer], state.promotion[offer], state.going[offer]
        state.mask[offer] = 0
        state.changes[row, offer] = 0
        if not (drawn or promotion or going):
            continue
        for step in range(STEPS_PER_DAY):
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
                state.changes[row, offer] += 1
                offers[end[step]], prices[end[step]] = offer, price
                end[step] += 1
            if price == GONE:
                break
    store(stream, state.stream)
    return end


@compiled()
def write_clicks(law: MarketLaw, state: MarketState, day: int, offers: PriceArray) -> IntArray:
    """Draw the steps of a day's clicks, write their offers by step; return the starts of steps."""
    stream, clicks = loaded(state.stream), state.clicks[day % RING]
    steps = np.empty(offers.size, np.uint8)
    start = np.zeros(STEPS_PER_DAY + 1, np.int64)
    number = 0
    for offer in range(clicks.size):
        for _ in range(clicks[offer]):
            step, stream = next_step(stream, law.click_hours, 0)
            steps[number] = step
            start[step + 1] += 1
            number += 1
    for step in range(STEPS_PER_DAY):
        start[step + 1] += start[step]
    following = start[:-1].copy()
    number = 0
    for offer in range(clicks.size):
        for _ in range(clicks[offer]):
            step = steps[number]
            offers[following[step]] = offer
            following[step] += 1
            number += 1
    store(stream, state.stream)
    return start


def initial_state(law: MarketLaw, root: int, episode: int) -> MarketState:
    """Return the state of a market before day 0 of an episode, after drawing its history.

    Args:
        law: law of the market.
        root: root of the tape.
        episode: number of the episode since the seed.
    """
    state = new_state(law)
    rewind(state.stream, np.uint64(root), np.uint64(episode))
    for day in range(-HISTORY_DAYS, 0):
        draw_day(law, state, day)
    return state


def day_of_week(law: MarketLaw, day: int) -> int:
    """Return the weekday of a day, 0 for Monday."""
    return (day + int(law.numbers[FIRST_WEEKDAY])) % 7


def draw_day(law: MarketLaw, state: MarketState, day: int) -> DayEvents:
    """Draw the day after the latest one, and advance the state to its end."""
    law, factor = read_only(law), np.empty(law.week.shape[0])
    draw_merchants(law, state, day, factor)
    draw_offers(law, state, day, factor)
    at_step = count_steps(state.mask, state.promotion, state.going)
    total, num_clicks = int(at_step.sum()), int(state.clicks[day % RING].sum())
    start = np.cumsum(at_step) - at_step
    offers, prices = np.zeros(total, np.int32), np.zeros(total, np.int32)
    end = write_prices(law, state, day, start, offers, prices)
    clicked = np.empty(num_clicks, np.int32)
    click_start = write_clicks(law, state, day, clicked)
    truth: list[SingleArray] = [
        array.copy() for array in (state.click_mean, state.view_mean, state.change_chance)
    ]
    drawn = DayEvents(offers, prices, start, end, clicked, click_start, *truth)
    events: DayEvents = read_only(drawn)
    return events
