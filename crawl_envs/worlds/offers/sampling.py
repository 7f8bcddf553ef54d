"""Systematic sampling of the offers that are crawled in a step, and what crawls have found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.sim.state import state_at
from crawl_envs.sim.streams import UintArray, loaded, next_uniform, store
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.worlds.budgets import SPEND_ROUNDING
from crawl_envs.worlds.offers.law import RING, STEPS_PER_DAY, MarketState, SingleArray


@inlined()
def systematic(
    rates: FloatArray, factor: float, offset: float, sampled: IntArray
) -> tuple[int, float]:
    """Choose offers to crawl in a step at random, by rates per day, in an almost constant number.

    Systematic sampling (Madow, 1949): an offer is chosen if one of the points offset, offset + 1,
    .. lies in its interval of the cumulative sum of the probabilities, which are at most 1. Each is
    chosen with exactly this probability, and their number is the sum of all, rounded down or up.

    Args:
        rates: crawls per day, (m,).
        factor: factor of the rates, at most 1.
        offset: uniform in (0, 1].
        sampled: output, the first chosen offers, as many as fit.

    Returns:
        Number of chosen offers, and the sum of the probabilities; NaN if a rate is not a finite
        number >= 0.
    """
    reached, point, number, bad = 0.0, offset, 0, 0
    max_rate, scale = float(STEPS_PER_DAY), 1.0 / STEPS_PER_DAY
    for offer in range(rates.size):  # a separate loop, which is vectorised
        bad += not 0.0 <= rates[offer] < np.inf
    for offer in range(rates.size):
        chance = min(scale * (min(rates[offer], max_rate) * factor), 1.0)
        reached += chance
        if reached >= point and chance > 0.0:
            sampled[min(number, sampled.size - 1)] = offer
            number += 1
            point += 1.0
    return number, reached if bad == 0 else np.nan


@compiled()
def sample_offers(
    rates: FloatArray,
    budgets: FloatArray,
    strict: bool,
    rng: UintArray,
    idle: BoolArray,
    sampled: IntArray,
    counts: IntArray,
) -> tuple[int, float]:
    """Choose the offers that each lane crawls in a step at random, by rates per day, (N, m).

    Args:
        rates: crawls per day; a rate above one crawl per step counts as one per step.
        budgets: crawls per day of each lane, (N,); rates above them are scaled down.
        strict: whether to stop at a lane above its budget.
        rng: states of the generators, (N, 4).
        idle: lanes to skip, (N,).
        sampled: output, the chosen offers of each lane, (N, B).
        counts: output, the number of chosen offers in each lane, (N,).

    Returns:
        A lane with invalid rates and their sum, NaN if one is not a finite number >= 0; or -1, 0.
    """
    for lane in range(counts.size):
        counts[lane] = 0
        if idle[lane]:
            continue
        offset, stream = next_uniform(loaded(rng[lane]))
        store(stream, rng[lane])
        number, total = systematic(rates[lane], 1.0, offset, sampled[lane])
        spent = total * STEPS_PER_DAY
        over = spent > budgets[lane] * (1.0 + SPEND_ROUNDING)
        if np.isnan(spent) or (over and strict):
            return lane, spent
        if over:
            factor = budgets[lane] / spent
            number, total = systematic(rates[lane], factor, offset, sampled[lane])
        counts[lane] = number
    return -1, 0.0


class FoundChanges(NamedTuple):
    """The price changes found by crawls of N lanes.

    Attributes:
        counts: crawls per day with another price, (N, RING, m), day d in row d % RING.
        last: time of the latest found change before the current day, in days, (N, m).
        today: time of the latest found change on the current day, -inf for none, (N, m).
    """

    counts: NDArray[np.uint8]
    last: SingleArray
    today: SingleArray


def no_changes(num_lanes: int, num_pages: int) -> FoundChanges:
    """Return an empty record of the price changes that the crawls of N lanes have found."""
    never = np.full((num_lanes, num_pages), -np.inf, np.float32)
    return FoundChanges(np.zeros((num_lanes, RING, num_pages), np.uint8), never, never.copy())


@compiled()
def note_found_changes(table: IntArray, detected: FoundChanges) -> None:
    """Add the price changes that the crawls of the current step found to the record ``detected``.

    Idle lanes are skipped. A crawl is recorded once, however often this is called.
    """
    state = state_at(table)
    for lane in range(state.lanes.shape[0]):
        record = state.lanes[lane]
        for position in range(record.slot_crawls * (not record.idle)):
            entry = state.crawl_log[lane, position]
            new = np.float32(entry.time) > detected.today[lane, entry.page]
            if new and entry.changed:
                row = int(entry.time) % RING
                count = detected.counts[lane, row, entry.page]
                detected.counts[lane, row, entry.page] = min(count + 1, 255)
                detected.today[lane, entry.page] = entry.time


def start_day(detected: FoundChanges, lane: int, day: int, state: MarketState) -> None:
    """Start a day of a lane in the record ``detected``; all changes before day 0 count as found."""
    if day == 0:
        detected.counts[lane], detected.last[lane] = state.changes, state.last_change
        detected.today[lane] = -np.inf
    np.maximum(detected.last[lane], detected.today[lane], out=detected.last[lane])
    detected.counts[lane, day % RING] = 0
