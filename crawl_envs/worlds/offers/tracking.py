"""What a tracker of offers holds, step by step: prices change, offers are crawled, clicks served.

A step of a day is: its price changes happen, the chosen offers are crawled, what is held is
compared with what is true, and the clicks of the step are served from what is held (Han et al.
2020, section 4.2). An offer is fresh where the held price is the true one, so also where a price
has come back to what is held.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.sim.streams import UintArray, loaded, next_uniform, store
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from crawl_envs.worlds.offers.law import RING, STEPS_PER_DAY, DayEvents, PriceArray, SingleArray

NUM_TOTALS = 11
(
    CLICKS,
    HITS,
    CRAWLS,
    FOUND,
    CHANGES,
    CLICK_TIME,
    EXPECTED_TIME,
    OFFER_TIME,
    FRESH_CLICKS,
    EXPECTED_CLICKS,
    FRESH_OFFERS,
) = range(NUM_TOTALS)
"""Rows of ``totals``. Since the episode began: clicks, those that saw the true price, crawls, those
that found another price, price changes, and the integrals over time, in days, of the last three.
Now: the expected clicks per day of what is fresh, those of all, and the number of fresh offers."""


class OfferTracking(NamedTuple):
    """The held prices of m offers, and what crawls found; kernels write it.

    Attributes:
        true, held: prices, (m,) int32.
        last_crawl: time of the last crawl, in days, (m,).
        changed: what it found: 1 another price, 0 none, -1 never crawled; (m,) int8.
        found: crawls per day that found another price, (RING, m); day d lies in row d % RING.
        last_found: when the latest of them was before the present day, (m,) days.
        found_today: the same of the present day, -inf where none was.
        totals: see the rows above, (NUM_TOTALS,).
    """

    true: PriceArray
    held: PriceArray
    last_crawl: FloatArray
    changed: NDArray[np.int8]
    found: NDArray[np.uint8]
    last_found: SingleArray
    found_today: SingleArray
    totals: FloatArray


def new_tracking(
    prices: PriceArray, changes: NDArray[np.uint8], latest: SingleArray
) -> OfferTracking:
    """Return the tracking that begins with all offers fresh.

    Args:
        prices: the true ones, (m,).
        changes: what was logged before, price changes per day, (RING, m).
        latest: when the latest of them was, in days, (m,).
    """
    m = prices.size
    return OfferTracking(
        true=prices.copy(),
        held=prices.copy(),
        last_crawl=np.zeros(m),
        changed=np.full(m, -1, np.int8),
        found=changes.copy(),
        last_found=latest.copy(),
        found_today=np.full(m, -np.inf, np.float32),
        totals=np.zeros(NUM_TOTALS),
    )


@compiled()
def begin_day(tracking: OfferTracking, day: int, click_mean: SingleArray) -> None:
    """Begin a day: weigh what is fresh by the day's expected clicks, (m,)."""
    totals, row = tracking.totals, day % RING
    fresh, weight, everything = 0, 0.0, 0.0
    for offer in range(click_mean.size):
        if tracking.found_today[offer] > tracking.last_found[offer]:
            tracking.last_found[offer] = tracking.found_today[offer]
        tracking.found[row, offer] = 0
        clicks = float(click_mean[offer])
        everything += clicks
        if tracking.true[offer] == tracking.held[offer]:
            fresh += 1
            weight += clicks
    totals[FRESH_OFFERS], totals[FRESH_CLICKS], totals[EXPECTED_CLICKS] = fresh, weight, everything


@compiled()
def change_prices(
    tracking: OfferTracking, offers: PriceArray, prices: PriceArray, click_mean: SingleArray
) -> None:
    """Let the price changes of a step happen."""
    totals = tracking.totals
    for position in range(offers.size):
        offer = offers[position]
        was = tracking.true[offer] == tracking.held[offer]
        tracking.true[offer] = prices[position]
        now = prices[position] == tracking.held[offer]
        if was != now:
            sign = 1.0 if now else -1.0
            totals[FRESH_OFFERS] += sign
            totals[FRESH_CLICKS] += sign * click_mean[offer]
    totals[CHANGES] += offers.size


@compiled()
def crawl_offers(
    tracking: OfferTracking,
    day: int,
    step: int,
    chosen: IntArray,
    click_mean: SingleArray,
    elapsed: FloatArray,
    found: BoolArray,
) -> None:
    """Crawl the chosen offers; write the time since their last crawl, and what was found."""
    totals, row = tracking.totals, day % RING
    time = (day * STEPS_PER_DAY + step) / STEPS_PER_DAY
    for position in range(chosen.size):
        offer = chosen[position]
        other = tracking.true[offer] != tracking.held[offer]
        elapsed[position] = time - tracking.last_crawl[offer]
        found[position] = other
        tracking.changed[offer] = other
        tracking.last_crawl[offer] = time
        if other:
            tracking.held[offer] = tracking.true[offer]
            totals[FRESH_OFFERS] += 1.0
            totals[FRESH_CLICKS] += click_mean[offer]
            totals[FOUND] += 1.0
            if tracking.found[row, offer] < 255:
                tracking.found[row, offer] += 1
            tracking.found_today[offer] = time
    totals[CRAWLS] += chosen.size


@compiled()
def serve_clicks(tracking: OfferTracking, offers: PriceArray) -> None:
    """Serve the clicks of a step from what is held."""
    hits = 0
    for position in range(offers.size):
        offer = offers[position]
        hits += tracking.true[offer] == tracking.held[offer]
    tracking.totals[CLICKS] += offers.size
    tracking.totals[HITS] += hits


@compiled()
def play_step(
    tracking: OfferTracking,
    events: DayEvents,
    day: int,
    step: int,
    chosen: IntArray,
    elapsed: FloatArray,
    found: BoolArray,
) -> None:
    """Play a step of a day, in which the chosen offers are crawled; see :func:`crawl_offers`."""
    first, last = events.price_start[step], events.price_end[step]
    offers, prices = events.price_offer[first:last], events.new_price[first:last]
    change_prices(tracking, offers, prices, events.click_mean)
    crawl_offers(tracking, day, step, chosen, events.click_mean, elapsed, found)
    first, last = events.click_start[step], events.click_start[step + 1]
    serve_clicks(tracking, events.click_offer[first:last])
    totals = tracking.totals
    totals[CLICK_TIME] += totals[FRESH_CLICKS] / STEPS_PER_DAY
    totals[EXPECTED_TIME] += totals[EXPECTED_CLICKS] / STEPS_PER_DAY
    totals[OFFER_TIME] += totals[FRESH_OFFERS] / STEPS_PER_DAY


@compiled()
def systematic(chances: FloatArray, scale: float, offset: float, chosen: IntArray) -> int:
    """Choose offers at random, each with its own chance, in a number as fixed as can be.

    Systematic sampling (Madow, 1949): the offers in whose part of the cumulative sum of
    ``min(scale * chances, 1)`` one of the points offset, offset + 1, .. lies. Each is chosen with
    exactly its chance, and the number of all is the sum of the chances, rounded down or up.

    Args:
        chances: (m,).
        scale: their unit.
        offset: uniform in (0, 1].
        chosen: where the numbers of the chosen offers are written, room for that sum rounded up.

    Returns:
        How many were chosen.
    """
    reached, point, number = 0.0, offset, 0
    for offer in range(chances.size):
        chance = min(scale * chances[offer], 1.0)
        reached += chance
        if reached >= point and chance > 0.0:
            chosen[number] = offer
            number += 1
            point += 1.0
    return number


@compiled()
def choose_at_random(rng: UintArray, rates: FloatArray) -> IntArray:
    """Toss a coin for which offers a step crawls at rates per day, (m,); see :func:`systematic`."""
    total, scale = 0.0, 1.0 / STEPS_PER_DAY
    for offer in range(rates.size):
        total += min(scale * rates[offer], 1.0)
    offset, stream = next_uniform(loaded(rng))
    store(stream, rng)
    chosen = np.empty(int(total) + 2, np.int64)
    return chosen[: systematic(rates, scale, offset, chosen)]


@compiled()
def play_day(
    tracking: OfferTracking, events: DayEvents, day: int, rates: FloatArray, rng: UintArray
) -> None:
    """Play a day in whose every step offers are crawled at random at the same rates per day."""
    for step in range(STEPS_PER_DAY):
        chosen = choose_at_random(rng, rates)
        elapsed, found = np.empty(chosen.size), np.empty(chosen.size, np.bool_)
        play_step(tracking, events, day, step, chosen, elapsed, found)
