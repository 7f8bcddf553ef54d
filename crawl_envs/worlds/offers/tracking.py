"""The held prices of a tracker of offers, step by step: price changes, crawls, clicks.

In a step of a day prices change, the chosen offers are crawled, freshness is measured, and the
clicks of the step are served with the held prices (Han et al. 2020, section 4.2). An offer is fresh
if the held price equals the true one, also after a price has reverted to the held one.
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
    OBSERVED_CHANGES,
    CHANGES,
    CLICK_TIME,
    EXPECTED_TIME,
    OFFER_TIME,
    FRESH_CLICKS,
    EXPECTED_CLICKS,
    FRESH_OFFERS,
) = range(NUM_TOTALS)
"""Rows of ``totals``. Of the episode: clicks, clicks with the true price, crawls, crawls that found
another price, price changes, and the integrals over time, in days, of the last three rows.
Current values: expected clicks per day of fresh offers, those of all, number of fresh offers."""


class OfferTracking(NamedTuple):
    """The held prices of m offers, and the outcomes of crawls; kernels write it.

    Attributes:
        true, held: prices, (m,) int32.
        last_crawl: time of the last crawl, in days, (m,).
        changed: outcome of the last crawl: 1 another price, 0 none, -1 never crawled; (m,) int8.
        observed_changes: crawls per day with another price, (RING, m), day d in row d % RING.
        last_observed: time of the latest of them before the current day, in days, (m,).
        observed_today: the same of the current day, -inf for none, (m,).
        totals: the rows above, (NUM_TOTALS,).
    """

    true: PriceArray
    held: PriceArray
    last_crawl: FloatArray
    changed: NDArray[np.int8]
    observed_changes: NDArray[np.uint8]
    last_observed: SingleArray
    observed_today: SingleArray
    totals: FloatArray


def new_tracking(
    prices: PriceArray, changes: NDArray[np.uint8], latest: SingleArray
) -> OfferTracking:
    """Return the initial tracking, with all offers fresh.

    Args:
        prices: true prices, (m,).
        changes: price changes per day logged before, (RING, m).
        latest: time of the latest of them, in days, (m,).
    """
    m = prices.size
    return OfferTracking(
        true=prices.copy(),
        held=prices.copy(),
        last_crawl=np.zeros(m),
        changed=np.full(m, -1, np.int8),
        observed_changes=changes.copy(),
        last_observed=latest.copy(),
        observed_today=np.full(m, -np.inf, np.float32),
        totals=np.zeros(NUM_TOTALS),
    )


@compiled()
def begin_day(tracking: OfferTracking, day: int, click_mean: SingleArray) -> None:
    """Start a day: weight fresh offers by the day's expected clicks, (m,)."""
    totals, row = tracking.totals, day % RING
    fresh, weight, everything = 0, 0.0, 0.0
    for offer in range(click_mean.size):
        if tracking.observed_today[offer] > tracking.last_observed[offer]:
            tracking.last_observed[offer] = tracking.observed_today[offer]
        tracking.observed_changes[row, offer] = 0
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
    """Apply the price changes of a step."""
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
    changed: BoolArray,
) -> None:
    """Crawl the chosen offers; write the times since their last crawl, and whether they changed."""
    totals, row = tracking.totals, day % RING
    time = (day * STEPS_PER_DAY + step) / STEPS_PER_DAY
    for position in range(chosen.size):
        offer = chosen[position]
        other = tracking.true[offer] != tracking.held[offer]
        elapsed[position] = time - tracking.last_crawl[offer]
        changed[position] = other
        tracking.changed[offer] = other
        tracking.last_crawl[offer] = time
        if other:
            tracking.held[offer] = tracking.true[offer]
            totals[FRESH_OFFERS] += 1.0
            totals[FRESH_CLICKS] += click_mean[offer]
            totals[OBSERVED_CHANGES] += 1.0
            if tracking.observed_changes[row, offer] < 255:
                tracking.observed_changes[row, offer] += 1
            tracking.observed_today[offer] = time
    totals[CRAWLS] += chosen.size


@compiled()
def serve_clicks(tracking: OfferTracking, offers: PriceArray) -> None:
    """Serve the clicks of a step with the held prices."""
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
    changed: BoolArray,
) -> None:
    """Play a step of a day with crawls of the chosen offers; see :func:`crawl_offers`."""
    first, last = events.price_start[step], events.price_end[step]
    offers, prices = events.price_offer[first:last], events.new_price[first:last]
    change_prices(tracking, offers, prices, events.click_mean)
    crawl_offers(tracking, day, step, chosen, events.click_mean, elapsed, changed)
    first, last = events.click_start[step], events.click_start[step + 1]
    serve_clicks(tracking, events.click_offer[first:last])
    totals = tracking.totals
    totals[CLICK_TIME] += totals[FRESH_CLICKS] / STEPS_PER_DAY
    totals[EXPECTED_TIME] += totals[EXPECTED_CLICKS] / STEPS_PER_DAY
    totals[OFFER_TIME] += totals[FRESH_OFFERS] / STEPS_PER_DAY


@compiled()
def systematic(chances: FloatArray, scale: float, offset: float, chosen: IntArray) -> int:
    """Sample offers with given probabilities, in an almost constant number.

    Systematic sampling (Madow, 1949): an offer is chosen if one of the points offset, offset + 1,
    .. lies in its interval of the cumulative sum of ``min(scale * chances, 1)``. Each is chosen
    with exactly this probability, and their number is the sum of all, rounded down or up.

    Args:
        chances: probabilities up to the factor ``scale``, (m,).
        scale: factor of the probabilities.
        offset: uniform in (0, 1].
        chosen: output, the chosen offers; its size is at least the sum rounded up.

    Returns:
        Number of chosen offers.
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
    """Return a random choice of offers for a step at rates per day, (m,), by :func:`systematic`."""
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
    """Play a day with random crawls at the same rates per day in every step."""
    for step in range(STEPS_PER_DAY):
        chosen = choose_at_random(rng, rates)
        elapsed, changed = np.empty(chosen.size), np.empty(chosen.size, np.bool_)
        play_step(tracking, events, day, step, chosen, elapsed, changed)
