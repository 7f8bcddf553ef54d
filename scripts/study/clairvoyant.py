"""A greedy policy with hindsight: a strong reference on recorded histories.

It knows which pages are stale and when each changes next. It crawls the stale page with the largest
importance times time until its next change. This is not a proven bound, but policies that must
infer staleness stay far below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.sim.clock import clock_rows, slot_time, slots_until
from crawl_envs.sim.tape import BIRTH, CHANGE, CODE_STRIDE, DEATH, Tape
from crawl_envs.types import BoolArray, FloatArray, IntArray, Policy
from crawl_envs.types.arguments import quantity
from scripts.study.specs import spec


class Replay:
    """A policy that crawls a fixed sequence of pages."""

    def __init__(self, pages: IntArray) -> None:
        self.pages, self.slot = pages, 0

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """Return the page that the sequence has for the next slot, and the unchanged state."""
        self.slot += 1
        return self.pages[self.slot - 1], state


@spec("suite-clairvoyant")
def clairvoyant_policy(env: Any) -> Policy:
    """Return the clairvoyant policy for an environment that replays a recorded window.

    In ``CrawlSites-v0`` it is that of the present episode.
    """
    lanes, instance = env.unwrapped.lanes, env.unwrapped.instance
    pages = clairvoyant(
        getattr(instance, "tape", lanes.tape),
        instance.importance,
        instance.bandwidth,
        lanes.origin_of(instance) + lanes.horizon,
        before=round(lanes.lead_of(instance)),
    )
    return Replay(pages)


def clairvoyant(
    tape: Tape, importance: FloatArray, bandwidth: float, horizon: float, *, before: int = 0
) -> IntArray:
    """Return the page to crawl in each slot of a recorded tape, shape (slots,) int64.

    Slots in which no page is stale have page 0, whose crawl has no effect.

    Args:
        tape: the events.
        importance: of each page, >= 0, shape (m,).
        bandwidth: crawls per unit time, > 0.
        horizon: end of the second to last slot, > 0.
        before: slots before the first of these, in which the pages of time 0 are crawled in order.

    Raises:
        ValueError: the horizon is not positive and finite, or importance has another shape.
    """
    quantity("horizon", horizon, above=0.0)
    if np.shape(importance) != tape.alive.shape:
        raise ValueError(
            f"importance must have shape {tape.alive.shape}, got {np.shape(importance)}"
        )
    clock = clock_rows(bandwidth)
    page, kind = np.divmod(tape.code, CODE_STRIDE)
    changes, deaths = (kind < BIRTH) & (kind & CHANGE > 0), kind == DEATH
    ends = changes | deaths
    first, following = _next_of_page(page[ends], tape.time[ends], tape.alive.size)
    until = np.full(tape.time.size, np.inf)
    until[ends] = following
    return _choices(
        tape.time,
        page,
        np.select([changes, deaths, kind == BIRTH], [CHANGE, DEATH, BIRTH], 0),
        until,
        first,
        tape.alive,
        np.ascontiguousarray(importance, dtype=np.float64),
        clock,
        slots_until(clock, horizon),
        horizon,
        before,
    )


def _next_of_page(
    page: IntArray, time: FloatArray, num_pages: int
) -> tuple[FloatArray, FloatArray]:
    """Return times of each page's first event and of each event's next on its page; inf if none."""
    order = np.lexsort((np.arange(page.size), page))
    following = np.full(page.size, np.inf)
    same = page[order][1:] == page[order][:-1]
    following[order[:-1][same]] = time[order][1:][same]
    first = np.full(num_pages, np.inf)
    first[page[::-1]] = time[::-1]
    return first, following


@compiled()
def _choices(
    time: FloatArray,
    page: IntArray,
    kind: IntArray,
    until: FloatArray,
    first: FloatArray,
    alive_at_start: BoolArray,
    importance: FloatArray,
    clock: FloatArray,
    slots: int,
    horizon: float,
    before: int,
) -> IntArray:
    """Return the page of each slot: largest importance times time to the page's next change."""
    choices = np.zeros(slots, np.int64)
    alive, stale, next_change = alive_at_start.copy(), np.zeros_like(alive_at_start), first.copy()
    event, first_round = 0, np.flatnonzero(alive_at_start)
    for slot in range(slots):
        now = slot_time(clock, slot + 1)
        while event < time.size and time[event] < now:
            number = page[event]
            if kind[event] == BIRTH:
                alive[number], stale[number] = True, False
            elif kind[event] == DEATH:
                alive[number] = False
            elif kind[event] == CHANGE:
                stale[number] = True
            if kind[event] == CHANGE or kind[event] == DEATH:
                next_change[number] = until[event]
            event += 1
        if slot < before:
            if slot < first_round.size:
                stale[first_round[slot]] = False
            continue
        best = 0.0
        for number in range(alive.size):
            if alive[number] and stale[number]:
                gain = importance[number] * (min(next_change[number], horizon) - now)
                if gain > best:
                    best, choices[slot] = gain, number
        stale[choices[slot]] = False
    return choices[before:]
