"""A market of shopping offers, drawn day by day: price changes, promotions, clicks, impressions.

It does not depend on crawls. A day is drawn in passes over merchants, offers, price changes and
clicks, all from one stream. In kernels ``market`` is a market: its law and its state, by
:data:`crawl_envs.worlds.offers.law.market_at`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from crawl_envs.compiled.array_tables import Records
from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.sim.advance import AT_ONCE
from crawl_envs.sim.state import EVENT
from crawl_envs.sim.streams import Stream, loaded, next_uniform, rewind, store
from crawl_envs.sim.tape import DAY, KIND_BITS, PRICE, REQUEST
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.offer_features import HISTORY_DAYS
from crawl_envs.worlds.offers.demand import (
    BLOCK,
    CHUNK,
    DAYS_OF_YEAR,
    SEASON_CAMPAIGNS,
    SEASON_CHANGES,
    UNUSUAL,
    click_means,
    demand_season,
    draw_clicks,
    draw_demand,
    inverted,
    next_poisson,
    next_step,
    sure_zero,
)
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
    market_at,
    new_state,
    read_only,
    start_state,
    table_of_market,
)

GONE_DEMAND = 0.5
"""Factor per day of the demand for a discontinued offer."""

BEGINS, ENDS = 1, 2


@inlined(forceinline=True)
def next_normal(stream: Stream) -> tuple[float, Stream]:
    """Draw a standard normal number by Box and Muller; return it and the stream after the draw."""
    one, stream = next_uniform(stream)
    two, stream = next_uniform(stream)
    return math.sqrt(-2.0 * math.log(one)) * math.cos(2.0 * math.pi * two), stream


@inlined()
def draw_merchants(market: Any, day: int, stream: Stream) -> Stream:
    """Draw each merchant's drift and promotions on a day, and set its factor of price changes."""
    numbers = market.numbers
    spread, memory = numbers[DRIFT_SPREAD], numbers[DRIFT_MEMORY]
    weekday = (day + int(numbers[FIRST_WEEKDAY])) % 7
    season = market.season[(day + int(numbers[FIRST_DAY])) % DAYS_OF_YEAR]
    innovation = spread * math.sqrt(1.0 - memory * memory)
    for merchant in range(market.factor.size):
        shock, stream = next_normal(stream)
        market.drift[merchant] = memory * market.drift[merchant] + innovation * shock
        level = math.exp(market.drift[merchant] - 0.5 * spread * spread)
        market.factor[merchant] = level * market.week[merchant, weekday] * season[SEASON_CHANGES]
        begins, stream = next_uniform(stream)
        market.campaign[merchant] = 0
        if market.campaign_end[merchant] == day:
            market.campaign[merchant] = ENDS
        idle = market.campaign_end[merchant] < day
        if idle and begins <= market.campaign_rate[merchant] * season[SEASON_CAMPAIGNS]:
            length, stream = next_uniform(stream)
            depth, stream = next_uniform(stream)
            market.campaign[merchant] = BEGINS
            market.campaign_end[merchant] = day + 2 + int(length * 8.999)
            market.campaign_discount[merchant] = 10 + 5 * int(depth * 8.999)
    return stream


@compiled()
def note_last_changes(
    moving: PriceArray, mask: CountArray, day: int, last_change: SingleArray
) -> None:
    """Set ``last_change``, (m,), of the offers whose price changed on the day before ``day``.

    ``moving`` are the offers that may have changed, and ``mask``, (m,), has each offer's steps as
    bits.
    """
    for offer in moving:
        steps = mask[offer]
        if steps:
            step = STEPS_PER_DAY - 1
            while not (steps >> step) & 1:
                step -= 1
            last_change[offer] = day - 1 + step / STEPS_PER_DAY


@inlined()
def shift_habits(market: Any, stream: Stream) -> Stream:
    """Draw new levels of price changes or demand for some offers, and discontinue others."""
    numbers, price, demand_level = market.numbers, market.price, market.demand_level
    change, demand = numbers[CHANGE_JUMP], numbers[CHANGE_JUMP] + numbers[DEMAND_JUMP]
    gone = demand + numbers[OBSOLETE_RATE]
    market.going[:] = 0
    for offer in range(price.size):
        demand_level[offer] *= GONE_DEMAND if price[offer] == GONE else 1.0
    for offer in range(price.size):
        kind, stream = next_uniform(stream)
        if kind > gone:
            continue
        if kind <= change:
            normal, stream = next_normal(stream)
            market.change_level[offer] = math.exp(numbers[CHANGE_SPREAD] * normal)
        elif price[offer] == GONE:
            continue
        elif kind <= demand:
            normal, stream = next_normal(stream)
            demand_level[offer] = math.exp(numbers[DEMAND_SPREAD] * normal)
        else:
            share, stream = next_uniform(stream)
            market.going[offer] = min(int(share * STEPS_PER_DAY), STEPS_PER_DAY - 1) + 1
    return stream


@inlined(forceinline=True)
def change_mean(market: Any, offer: int) -> float:
    """Return the expected number of price changes of an offer on a day, unless discontinued."""
    rate = market.change_scale[offer] * market.change_level[offer]
    mean: float = rate * market.factor[market.merchant[offer]]
    return mean


@inlined()
def shares_without_change(market: Any, first: int, zero: FloatArray) -> None:
    """Write the uniform shares up to which the offers of a block have no price change, (size,)."""
    block = slice(first, first + zero.size)
    scale, level = market.change_scale[block], market.change_level[block]
    price, merchant = market.price[block], market.merchant[block]
    for place in range(zero.size):
        mean = scale[place] * level[place] * market.factor[np.uint32(merchant[place])]
        none = (price[place] == GONE) | (mean <= 0.0)
        zero[place] = UNUSUAL if none else sure_zero(mean)


@inlined()
def draw_changes(market: Any, stream: Stream) -> Stream:
    """Draw the steps of the day at which prices change for other reasons than promotions."""
    mask, shares = market.mask, np.empty(BLOCK)
    mask[:] = 0
    for first in range(0, mask.size, BLOCK):
        zero = shares[: mask.size - first]
        shares_without_change(market, first, zero)
        for place in range(zero.size):
            if zero[place] == UNUSUAL:
                continue
            share, stream = next_uniform(stream)
            if share <= zero[place]:
                continue
            offer = first + place
            mean = change_mean(market, offer)
            part = min(mean, CHUNK)
            number, stream = next_poisson(stream, mean - part)
            for _ in range(inverted(share, part) + number):
                step, stream = next_step(stream, market.hours, market.merchant[offer])
                mask[offer] |= 1 << step
    return stream


@inlined()
def draw_promotions(market: Any, stream: Stream) -> Stream:
    """Draw the steps of the day at which offers start or end their part in a promotion.

    Write the offers whose price may change into ``moving``, and their number into ``sizes[0]``.
    """
    number, promotion = 0, market.promotion
    for offer in range(promotion.size):
        promotion[offer] = 0
        seller = market.merchant[offer]
        if market.campaign[seller] and market.price[offer] != GONE:
            if market.campaign[seller] == ENDS:
                moves = market.discount[offer] > 0
            else:
                joins, stream = next_uniform(stream)
                moves = joins <= market.campaign_share[seller]
            if moves:
                step, stream = next_step(stream, market.hours, seller)
                promotion[offer] = step + 1
        market.moving[number] = offer
        number += (market.mask[offer] | promotion[offer] | market.going[offer]) != 0
    market.sizes[0] = number
    return stream


@inlined(forceinline=True)
def steps_of(market: Any, offer: int) -> int:
    """Return the steps of the day at which an offer's price may change, as bits of an integer."""
    promotion, going = 1 << market.promotion[offer] >> 1, 1 << market.going[offer] >> 1
    steps: int = int(market.mask[offer]) | promotion | going
    return steps


@inlined()
def count_prices(market: Any) -> None:
    """Count the possible price changes of each step; write their first places into ``starts``."""
    start = market.starts
    start[:] = 0
    for row in range(market.sizes[0]):
        steps = steps_of(market, market.moving[row])
        for step in range(STEPS_PER_DAY):
            start[step + 1] += (steps >> step) & 1
    for step in range(STEPS_PER_DAY):
        start[step + 1] += start[step]


@inlined(forceinline=True)
def new_base(market: Any, offer: int, stream: Stream) -> Stream:
    """Change an offer's price without promotion to its previous or a new one; return the stream."""
    base, before = market.base[offer], market.before[offer]
    back, stream = next_uniform(stream)
    market.before[offer] = base
    if back <= market.numbers[BACK] and before != base:
        market.base[offer] = before
        return stream
    share, stream = next_uniform(stream)
    price = max(int(base * (0.85 + 0.3 * share)), 1)
    market.base[offer] = price + 1 if price == base else price
    return stream


@inlined()
def draw_prices(
    market: Any, day: int, stream: Stream
) -> tuple[PriceArray, PriceArray, IntArray, Stream]:
    """Draw the new prices of a day.

    Returns the offers and their new prices, those of each step from its start in ``starts`` on, the
    ends of the steps, and the stream.
    """
    start, changes = market.starts, market.changes[day % RING]
    offers, prices = np.empty(start[-1], np.int32), np.empty(start[-1], np.int32)
    end = start[:-1].copy()
    changes[:] = 0
    for row in range(market.sizes[0]):
        offer = market.moving[row]
        drawn, promotion, going = market.mask[offer], market.promotion[offer], market.going[offer]
        steps = steps_of(market, offer)
        market.mask[offer] = 0
        for step in range(STEPS_PER_DAY):
            if not (steps >> step) & 1:
                continue
            if (drawn >> step) & 1:
                stream = new_base(market, offer, stream)
            if promotion == step + 1:
                off = market.campaign_discount[market.merchant[offer]]
                market.discount[offer] = 0 if market.discount[offer] else off
            price = max(market.base[offer] * (100 - market.discount[offer]) // 100, 1)
            price = GONE if going == step + 1 else price
            if price != market.price[offer]:
                market.price[offer] = price
                market.mask[offer] |= 1 << step
                changes[offer] += 1
                offers[end[step]], prices[end[step]] = offer, price
                end[step] += 1
            if price == GONE:
                break
    return offers, prices, end, stream


@inlined()
def draw_counts(market: Any, day: int) -> int:
    """Draw the first half of the next day, ``day``: which offers may change price, and the clicks.

    Returns an upper bound on the number of events of the day.
    """
    add_day(market.clicks, day - 1, LONG_SPANS, market.sums[CLICK_SUMS:VIEW_SUMS])
    add_day(market.views, day - 1, LONG_SPANS, market.sums[VIEW_SUMS:CHANGE_SUM])
    add_day(market.changes, day - 1, (HISTORY_DAYS,), market.sums[CHANGE_SUM:])
    stream = draw_merchants(market, day, loaded(market.stream))
    note_last_changes(market.moving[: market.sizes[0]], market.mask, day, market.last_change)
    stream = shift_habits(market, stream)
    stream = draw_changes(market, stream)
    stream = draw_promotions(market, stream)
    stream = draw_demand(market, day, stream)
    store(stream, market.stream)
    count_prices(market)
    return int(market.starts[-1] + market.sizes[2] + 1)


@inlined()
def draw_events(market: Any, day: int, block: Records, detail: PriceArray) -> int:
    """Draw the second half of a day, its prices and times of clicks; return its number of events.

    Unless ``block`` is empty, the events are written into it, and new prices into ``detail``.
    Prices change at the start of a step, clicks spread evenly over it, as requests. The last event
    is the end of the day.
    """
    offers, prices, price_end, stream = draw_prices(market, day, loaded(market.stream))
    clicked, click_start, stream = draw_clicks(market, day, stream)
    store(stream, market.stream)
    place = 0
    for step in range(STEPS_PER_DAY * (block.size > 0)):
        start = day * STEPS_PER_DAY + step
        for row in range(market.starts[step], price_end[step]):
            block[place].time = start / STEPS_PER_DAY
            block[place].code = offers[row] << KIND_BITS | PRICE
            detail[place] = prices[row]
            place += 1
        first, end = click_start[step], click_start[step + 1]
        for row in range(first, end):
            inside = (row - first + 0.5) / (end - first)
            block[place].time = (start + inside) / STEPS_PER_DAY
            block[place].code = clicked[row] << KIND_BITS | REQUEST
            detail[place] = 0
            place += 1
    if block.size > 0:
        block[place].time, block[place].code = day + 1.0, DAY
        detail[place] = 0
    return place + 1


@compiled()
def rates_of(table: IntArray, day: int) -> tuple[SingleArray, SingleArray, SingleArray]:
    """Return each offer's expected clicks and views on a day, and its chance of a price change."""
    market = market_at(table)
    season = demand_season(market, day)
    offers = market.price.size
    views, chances = np.empty(offers, np.float32), np.zeros(offers, np.float32)
    for offer in range(offers):
        views[offer] = market.view_scale[offer] * market.demand_level[offer] * season
        if market.price[offer] == GONE and not market.going[offer]:
            continue
        chances[offer] = 1.0 - math.exp(-change_mean(market, offer))
        seller = market.merchant[offer]
        if market.campaign[seller]:
            chance = 1.0 if market.promotion[offer] else 0.0
            if market.campaign[seller] == BEGINS:
                chance = market.campaign_share[seller]
            chances[offer] = 1.0 - (1.0 - chances[offer]) * (1.0 - chance)
    return click_means(market, day), views, chances


@compiled()
def draw_days(tables: IntArray, lanes: IntArray, days: IntArray, number: int) -> int:
    """Draw the next ``number`` days of some lanes' markets; of days from 0 on, the first half.

    ``days`` has the next day of every lane. Returns the largest of the bounds on the number of
    events that :func:`draw_counts` gives.
    """
    max_events, block, detail = 0, np.empty(0, EVENT), np.empty(0, np.int32)
    for lane in lanes:
        market, first = market_at(tables[lane]), days[lane]
        for day in range(first, first + number):
            max_events = max(max_events, draw_counts(market, day))
            if day < 0:
                draw_events(market, day, block, detail)
    return max_events


@compiled()
def finish_day(table: IntArray, day: int, block: Records, detail: PriceArray) -> int:
    """Draw the second half of a market's next day by its table; return the number of its events."""
    return draw_events(market_at(table), day, block, detail)


def at_once(lanes: IntArray, num_offers: int) -> Iterator[IntArray]:
    """Split ``lanes`` into parts whose days are drawn by one call, so that interrupts work."""
    size = max(AT_ONCE // num_offers, 1)
    for first in range(0, lanes.size, size):
        yield lanes[first : first + size]


def draw_histories(tables: IntArray, lanes: IntArray, num_offers: int) -> None:
    """Draw the days of the history before day 0 in the markets of some lanes."""
    for part in at_once(lanes, num_offers):
        number = max(AT_ONCE // (num_offers * part.size), 1)
        for first in range(-HISTORY_DAYS, 0, number):
            draw_days(tables, part, np.full(len(tables), first), min(number, -first))


def initial_state(law: MarketLaw, root: int, episode: int) -> MarketState:
    """Return the state of a market at the start of an episode, after its drawn history.

    Args:
        law: law of the market.
        root: root of the tape.
        episode: number of the episode since the seed.
    """
    state = new_state(law)
    start_state(law, state)
    rewind(state.stream, np.uint64(root), np.uint64(episode))
    draw_histories(table_of_market(law, state)[None], np.zeros(1, np.int64), state.price.size)
    return state


def draw_day(law: MarketLaw, state: MarketState, day: int) -> DayEvents:
    """Draw the day after the latest one, advance the state by it, and return its events."""
    table = table_of_market(law, state)
    size = draw_days(table[None], np.zeros(1, np.int64), np.full(1, day), 1)
    block, detail = np.empty(size, EVENT), np.empty(size, np.int32)
    count = finish_day(table, day, block, detail)
    events: DayEvents = read_only(DayEvents(block[:count], detail[:count], *rates_of(table, day)))
    return events


def day_of_week(law: MarketLaw, day: int) -> int:
    """Return the weekday of day number ``day`` in a market, 0 for Monday."""
    return (day + int(law.numbers[FIRST_WEEKDAY])) % 7
