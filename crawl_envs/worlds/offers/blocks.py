"""The events of a day of a market as events of a tape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crawl_envs.sim.state import EVENT, Records
from crawl_envs.sim.tape import DAY, KIND_BITS, PRICE, REQUEST
from crawl_envs.types.compiling import compiled
from crawl_envs.worlds.offers.law import STEPS_PER_DAY, DayEvents


@compiled()
def block_of(events: DayEvents, day: int) -> tuple[Records, NDArray[np.int32]]:
    """Return the events of a day as EVENT records in order, and their details, the new prices.

    Prices change at the start of a step, clicks spread evenly over it, as requests. The last event
    is the end of the day.
    """
    prices = (events.price_end - events.price_start).sum()
    block = np.empty(prices + events.click_offer.size + 1, EVENT)
    detail = np.zeros(block.size, np.int32)
    place = 0
    for step in range(STEPS_PER_DAY):
        start = day * STEPS_PER_DAY + step
        for row in range(events.price_start[step], events.price_end[step]):
            block[place].time = start / STEPS_PER_DAY
            block[place].code = events.price_offer[row] << KIND_BITS | PRICE
            detail[place] = events.new_price[row]
            place += 1
        first, end = events.click_start[step], events.click_start[step + 1]
        for row in range(first, end):
            inside = (row - first + 0.5) / (end - first)
            block[place].time = (start + inside) / STEPS_PER_DAY
            block[place].code = events.click_offer[row] << KIND_BITS | REQUEST
            place += 1
    block[place].time, block[place].code = day + 1.0, DAY
    return block, detail
