"""Whole episodes of one lane in compiled code, by index policies and sequences.

An index policy crawls the existing page of the largest value. Values do not decrease between
crawls, so a lazy search is exact: over the next K slots the largest value is never below ``bound``,
the K-th largest current value, because K - 1 crawls cannot cover all of these K pages. Each slot
evaluates only the candidates, the pages whose value may reach the bound within the K slots. A
signal can make its page a candidate. Births and deaths start a new search.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from crawl_envs.sim.advance import AT_ONCE, advance, close_slots, crawl_page, open_slot
from crawl_envs.sim.clock import slot_time
from crawl_envs.sim.state import State, state_at
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import RESPONSE_DUE
from crawl_envs.types.compiling import SIGNAL_WEIGHT, VALUE, compiled, inlined
from crawl_envs.types.heap import IndexedHeap, set_due

GUARD = 1.0 - 1e-12
"""Factor of the bound, for rounding."""

MIN_EPOCH = 8


class Search(NamedTuple):
    """State of the lazy search of an episode, kept between calls."""

    candidates: IntArray  # the candidates, in the first entries, (m,)
    place: IntArray  # place of each page among them, -1 if it is none, (m,)
    numbers: IntArray  # EPOCH, slots of the search; COUNT, of candidates; LEFT, slots left
    limits: FloatArray  # BOUND; LAST_TIME, of the slots


EPOCH, COUNT, LEFT = range(3)
BOUND, LAST_TIME = range(2)


def new_search(num_pages: int) -> Search:
    """Return the initial search of an episode."""
    none, numbers = np.zeros(num_pages, np.int64), np.array([MIN_EPOCH, 0, 0])
    return Search(none, none.copy(), numbers, np.zeros(2))


_WHOLE, _REAL = types.int64[::1], types.float64[::1]
INDEX_SIGNATURE = types.boolean(
    types.int64[::1],
    VALUE,
    types.float64[:, ::1],
    SIGNAL_WEIGHT,
    types.float64,
    _REAL,
    types.NamedTuple((_WHOLE, _WHOLE, _WHOLE, _REAL), Search),  # type: ignore[no-untyped-call]
    _WHOLE,
)


@compiled(SIGNAL_WEIGHT.signature)
def count_alike(parameters: FloatArray, page: int, age: float, source: int) -> float:
    """Count every signal as 1."""
    return 1.0


@inlined(forceinline=True)
def reaches(
    state: State,
    value: Any,
    parameters: FloatArray,
    counted: FloatArray,
    page: int,
    limits: tuple[float, float],
) -> bool:
    """Return whether the value of a page may reach a bound up to a time."""
    bound, last_time = limits
    since = last_time - state.last_crawl[0, page]
    return bool(value(parameters, page, since, counted[page]) >= bound * GUARD)


@inlined()
def find_candidates(
    state: State, value: Any, parameters: FloatArray, counted: FloatArray, search: Search
) -> None:
    """Start a search.

    A search evaluates all pages twice, and every slot its candidates. Epochs grow if the search
    costs more, and shrink if the candidates do, as after a start with all pages fresh.
    """
    pages, last_crawl, now = state.pages, state.last_crawl, state.lanes[0].time
    candidates, place, numbers, limits = search
    num_pages, count = pages.shape[1], 0
    if numbers[LEFT] == 0:
        costly = numbers[COUNT] * numbers[EPOCH] > 2 * num_pages
        numbers[EPOCH] = max(MIN_EPOCH, numbers[EPOCH] // 2) if costly else 2 * numbers[EPOCH]
    epoch = numbers[EPOCH]
    values = np.empty(num_pages)
    num_alive = 0
    for page in range(num_pages):
        place[page] = -1
        if pages[0, page].alive:
            values[num_alive] = value(parameters, page, now - last_crawl[0, page], counted[page])
            num_alive += 1
    bound = -math.inf
    if num_alive >= epoch:
        bound = np.partition(values[:num_alive], num_alive - epoch)[num_alive - epoch]
    last_time = slot_time(state.clock[0], state.lanes[0].slot + epoch - 1)
    end = bound, last_time
    limits[BOUND], limits[LAST_TIME] = end
    for page in range(num_pages):
        if pages[0, page].alive and reaches(state, value, parameters, counted, page, end):
            candidates[count], place[page] = page, count
            count += 1
    numbers[COUNT], numbers[LEFT] = count, epoch


@inlined()
def best_candidate(
    state: State, value: Any, parameters: FloatArray, counted: FloatArray, search: Search
) -> int:
    """Return the page of the largest value, the lowest among equals; 0 if there is none."""
    now, last_crawl, candidates = state.lanes[0].time, state.last_crawl, search.candidates
    best, best_value = 0, -math.inf
    for position in range(search.numbers[COUNT]):
        page = candidates[position]
        page_value = value(parameters, page, now - last_crawl[0, page], counted[page])
        if page_value > best_value or (page_value == best_value and page < best):
            best, best_value = page, page_value
    return best


@inlined(forceinline=True)
def crawl_one(state: State, page: int, crawls: IntArray) -> None:
    """Crawl a page in lane 0, and write it to its slot of ``crawls``."""
    record = state.lanes[0]
    crawls[record.slot - 1] = page
    record.slot += record.batch
    open_slot(record, slot_time(state.clock[0], record.slot))
    crawl_page(state, 0, page)


@inlined()
def count_signals(
    state: State,
    parameters: FloatArray,
    signal_weight: Any,
    delay_window: float,
    counted: FloatArray,
) -> None:
    """Add the weights of the signals of the last slot, except within the delay window of a crawl.

    A birth resets the page like a crawl.
    """
    log, last_crawl, pages = state.signal_log, state.last_crawl, state.pages
    record = state.lanes[0]
    if record.reshaped:
        start = slot_time(state.clock[0], record.slot - record.batch)
        for page in range(counted.shape[0]):
            if last_crawl[0, page] >= start or not pages[0, page].alive:
                counted[page] = 0.0
    for position in range(record.logged):
        entry = log[0, position]
        age = entry.time - last_crawl[0, entry.page]
        if age > delay_window or (age == 0.0 and delay_window == 0.0):
            counted[entry.page] += signal_weight(parameters, entry.page, age, entry.source)


@compiled(INDEX_SIGNATURE)
def roll_index(
    table: IntArray,
    value: Any,
    parameters: FloatArray,
    signal_weight: Any,
    delay_window: float,
    counted: FloatArray,
    search: Search,
    crawls: IntArray,
) -> bool:
    """Play lane 0 to the end of ``crawls``, one page per slot, by the largest value.

    ``counted`` (m,) is the summed weight of the signals of each page. Returns False if it must be
    called again, with a larger log of signals if that is full.
    """
    state = state_at(table)
    record, left = state.lanes[0], AT_ONCE
    candidates, place, numbers, limits = search
    end = limits[BOUND], limits[LAST_TIME]
    while left > 0:
        if record.busy:
            complete, left = advance(state, left)
            if not complete:
                break
            close_slots(state)
            count_signals(state, parameters, signal_weight, delay_window, counted)
        if record.slot > crawls.shape[0]:
            return True
        if numbers[LEFT] == 0 or record.reshaped:
            find_candidates(state, value, parameters, counted, search)
            left -= 2 * counted.shape[0]
            end = limits[BOUND], limits[LAST_TIME]
        else:
            for position in range(record.logged):
                page = state.signal_log[0, position].page
                if place[page] < 0 and reaches(state, value, parameters, counted, page, end):
                    candidates[numbers[COUNT]], place[page] = page, numbers[COUNT]
                    numbers[COUNT] += 1
        count = numbers[COUNT]
        left -= 1 + count
        page = best_candidate(state, value, parameters, counted, search)
        crawl_one(state, page, crawls)
        numbers[LEFT] -= 1
        counted[page] = 0.0
        if count > 0 and not reaches(state, value, parameters, counted, page, end):
            last = candidates[count - 1]
            candidates[place[page]], place[last] = last, place[page]
            place[page] = -1
            numbers[COUNT] -= 1
    return False


class Responses(NamedTuple):
    """The crawls in response to signals, and the position in a sequence, of lane 0."""

    share: FloatArray  # increment of a page's account per signal, (m,); (0,) without responses
    account: FloatArray  # account of each page, (m,)
    waiting: IndexedHeap  # the pages whose account has reached 1, in the order in which they did
    numbers: IntArray  # TURN, the next entry of the sequence; REACHED, pages that have waited


TURN, REACHED = range(2)


@inlined()
def add_responses(state: State, responses: Responses) -> None:
    """Add the signals of the last slot to the accounts of their pages."""
    account, waiting, numbers = responses.account, responses.waiting, responses.numbers
    for position in range(state.lanes[0].logged):
        page = state.signal_log[0, position].page
        account[page] += responses.share[page]
        if account[page] >= RESPONSE_DUE and waiting.place[page] < 0:
            set_due(waiting, page, float(numbers[REACHED]))
            numbers[REACHED] += 1


@inlined(forceinline=True)
def next_page(pages: IntArray, responses: Responses) -> int:
    """Return the page of the next slot: the first that waits, or the next of the sequence."""
    account, waiting, numbers = responses.account, responses.waiting, responses.numbers
    if waiting.size[0] > 0:
        page = waiting.entries[0]
        set_due(waiting, page, math.inf)
        while account[page] >= RESPONSE_DUE:
            account[page] -= 1.0
        return int(page)
    turn = numbers[TURN]
    numbers[TURN] = turn + 1 if turn + 1 < pages.shape[0] else 0
    return int(pages[turn])


@compiled()
def roll_sequence(table: IntArray, pages: IntArray, responses: Responses, crawls: IntArray) -> bool:
    """Play lane 0 to the end of ``crawls``, (slots,), and write the page of each slot.

    See :class:`crawl_envs.types.compiled_policies.CompiledSequence`. Returns False as
    :func:`roll_index`.
    """
    state = state_at(table)
    record, left = state.lanes[0], AT_ONCE
    while left > 0:
        if record.busy:
            complete, left = advance(state, left)
            if not complete:
                break
            close_slots(state)
            if responses.share.shape[0] > 0:
                add_responses(state, responses)
        if record.slot > crawls.shape[0]:
            return True
        crawl_one(state, next_page(pages, responses), crawls)
        left -= 1
    return False
