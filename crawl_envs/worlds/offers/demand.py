"""The demand for shopping offers: the random numbers of clicks and impressions of each day.

A number is drawn by one uniform share, by inversion. Means and shares are for a block of offers at
once. Most numbers are 0, which a share shows without an exponential.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawl_envs.compiled.compiling import inlined
from crawl_envs.sim.streams import Stream, next_uniform
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.worlds.offers.law import (
    FIRST_DAY,
    RING,
    STEPS_PER_DAY,
    CountArray,
    PriceArray,
    SingleArray,
)

CHUNK = 30.0
"""Largest mean of a Poisson number drawn at once; for larger means several are added."""
BLOCK = 256
"""Number of offers whose means are computed at once."""
UNUSUAL = 2.0
"""Mark of an offer whose counts do not take exactly one uniform number each."""
ROUNDING, SIXTH = 1e-15, 1.0 / 6.0
"""Bound on the rounding errors of an exponential in [0, 1] and of its series; a coefficient."""
DAYS_OF_YEAR = 365
MAX_COUNTED = 60_000
"""Largest number of clicks or impressions of an offer that a day counts."""

SEASON_CHANGES, SEASON_CAMPAIGNS, SEASON_DEMAND = range(3)
"""Columns of the seasonal factors of a market."""


@inlined(forceinline=True)
def sure_zero(mean: float) -> float:
    """Return a lower bound of exp(-mean): a Poisson number is 0 for uniform shares up to it."""
    return 1.0 - mean * (1.0 - mean * (0.5 - mean * SIXTH)) - ROUNDING


@inlined(forceinline=True)
def inverted(share: float, mean: float) -> int:
    """Return the Poisson number of a given mean that belongs to a uniform share, by inversion."""
    number = 0
    if share > sure_zero(mean):
        chance = math.exp(-mean)
        while share > chance and number < 200:
            share -= chance
            number += 1
            chance *= mean / number
    return number


@inlined()
def next_poisson(stream: Stream, mean: float) -> tuple[int, Stream]:
    """Draw a Poisson number of a given mean; return it and the stream after the draw."""
    total = 0
    while mean > 0.0:
        part = min(mean, CHUNK)
        mean -= part
        share, stream = next_uniform(stream)
        total += inverted(share, part)
    return total, stream


@inlined(forceinline=True)
def next_step(stream: Stream, cumulative: FloatArray, row: int) -> tuple[int, Stream]:
    """Draw a step of the day by cumulative shares, (rows, steps); return it and the new stream."""
    share, stream = next_uniform(stream)
    step = 0
    for reached in range(STEPS_PER_DAY - 1):
        step += share > cumulative[row, reached]
    return step, stream


@inlined(forceinline=True)
def demand_season(market: Any, day: int) -> float:
    """Return the seasonal factor by which the demand for all offers on a day is multiplied."""
    factor: float = market.season[
        (day + int(market.numbers[FIRST_DAY])) % DAYS_OF_YEAR, SEASON_DEMAND
    ]
    return factor


@inlined()
def demand_means(
    market: Any, season: float, first: int, mean: FloatArray, zero: FloatArray
) -> None:
    """Write the expected clicks and other impressions of a block of offers to ``mean``, (2, size).

    ``zero``, (2, size), gets the uniform shares up to which both numbers are 0. Offers that need
    more or fewer than one share per number get UNUSUAL.
    """
    block = slice(first, first + mean.shape[1])
    scale, level = market.view_scale[block], market.demand_level[block]
    share = market.click_share[block]
    for place in range(scale.size):
        views = scale[place] * level[place] * season
        clicks = views * share[place]
        other_views = views - clicks
        mean[0, place], mean[1, place] = clicks, other_views
        zero[1, place] = sure_zero(other_views)
        unusual = (min(clicks, other_views) <= 0.0) | (max(clicks, other_views) > CHUNK)
        zero[0, place] = UNUSUAL if unusual else sure_zero(clicks)


@inlined()
def draw_shares(
    mean: FloatArray,
    zero: FloatArray,
    clicks: CountArray,
    views: CountArray,
    some: IntArray,
    shares: FloatArray,
    stream: Stream,
) -> tuple[int, Stream]:
    """Draw uniform shares for the clicks and views of a block of offers; keep those that give some.

    ``some`` and ``shares`` get the kept places and shares; their number and the stream are
    returned. Counts of UNUSUAL offers are drawn and written here, and their shares are 0.
    """
    number = 0
    for place in range(clicks.size):
        if zero[0, place] != UNUSUAL:
            share, stream = next_uniform(stream)
            views_share, stream = next_uniform(stream)
            keep = (share > zero[0, place]) | (views_share > zero[1, place])
        else:
            count, stream = next_poisson(stream, mean[0, place])
            other_views, stream = next_poisson(stream, mean[1, place])
            clicks[place] = min(count, MAX_COUNTED)
            views[place] = min(count + other_views, MAX_COUNTED)
            share, views_share, keep = 0.0, 0.0, count + other_views > 0
        some[number], shares[0, number], shares[1, number] = place, share, views_share
        number += keep
    return number, stream


@inlined()
def draw_demand(market: Any, day: int, stream: Stream) -> Stream:
    """Draw each offer's clicks and impressions on a day, and return the stream after the draws.

    Write the clicked offers into ``clicked``, and their number and that of clicks into ``sizes``.
    """
    season, number, total = demand_season(market, day), 0, 0
    mean, zero, shares = np.empty((2, BLOCK)), np.empty((2, BLOCK)), np.empty((2, BLOCK))
    some = np.empty(BLOCK, np.int64)
    all_clicks, all_views = market.clicks[day % RING], market.views[day % RING]
    all_clicks[:] = 0
    all_views[:] = 0
    for first in range(0, all_clicks.size, BLOCK):
        clicks, views = all_clicks[first : first + BLOCK], all_views[first : first + BLOCK]
        demand_means(market, season, first, mean, zero)
        num_drawn, stream = draw_shares(mean, zero, clicks, views, some, shares, stream)
        for row in range(num_drawn):
            place = some[row]
            count = inverted(shares[0, row], mean[0, place])
            clicks[place] += count
            views[place] += count + inverted(shares[1, row], mean[1, place])
            total += clicks[place]
            market.clicked[number] = first + place
            number += clicks[place] > 0
    market.sizes[1], market.sizes[2] = number, total
    return stream


@inlined()
def draw_clicks(market: Any, day: int, stream: Stream) -> tuple[PriceArray, IntArray, Stream]:
    """Draw the step of the day at which each click of a day happens.

    Returns the clicked offers sorted by step, the first place of each step, and the new stream.
    """
    total, clicks = market.sizes[2], market.clicks[day % RING]
    steps, offers = np.empty(total, np.uint8), np.empty(total, np.int32)
    start = np.zeros(STEPS_PER_DAY + 1, np.int64)
    for number in range(total):
        step, stream = next_step(stream, market.click_hours, 0)
        steps[number] = step
        start[step + 1] += 1
    for step in range(STEPS_PER_DAY):
        start[step + 1] += start[step]
    following, number = start[:-1].copy(), 0
    for row in range(market.sizes[1]):
        offer = market.clicked[row]
        for _ in range(clicks[offer]):
            step = steps[number]
            offers[following[step]] = offer
            following[step] += 1
            number += 1
    return offers, start, stream


@inlined()
def click_means(market: Any, day: int) -> SingleArray:
    """Return the expected number of clicks of each offer on the latest day, (m,)."""
    means, season = np.empty(market.price.size, np.float32), demand_season(market, day)
    for offer in range(means.size):
        views = market.view_scale[offer] * market.demand_level[offer] * season
        means[offer] = views * market.click_share[offer]
    return means
