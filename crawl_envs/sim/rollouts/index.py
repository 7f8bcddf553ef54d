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

from crawl_envs.sim.advance import AT_ONCE, advance, close_slots, crawl
from crawl_envs.sim.clock import slot_time
from crawl_envs.sim.state import State, state_at
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import RESPONSE_DUE
from crawl_envs.types.compiling import SIGNAL_WEIGHT, VALUE, compiled

GUARD = 1.0 - 1e-12
"""Factor of the bound, for rounding."""

MIN_EPOCH = 8


class Search(NamedTuple):
    """State of the lazy search of an episode, kept between calls.

    Attributes:
        candidates: the candidates, in the first entries, (m,).
        place: place of each page among them, -1 if it is none, (m,).
        numbers: slots of the search, number of candidates, slots left, (3,).
        limits: the bound, and the time of the last of the slots, (2,).
    """

    candidates: IntArray
    place: IntArray
    numbers: IntArray
    limits: FloatArray


def new_search(num_pages: int) -> Search:
    """Return the initial search of an episode."""
    numbers = np.array([MIN_EPOCH, 0, 0])
    return Search(
        np.zeros(num_pages, np.int64), np.zeros(num_pages, np.int64), numbers, np.zeros(2)
    )


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


@compiled()
def find_candidates(
    state: State,
    value: Any,
    parameters: FloatArray,
    counted: FloatArray,
    epoch: int,
    candidates: IntArray,
    place: IntArray,
) -> tuple[int, float, float]:
    """Start a search of ``epoch`` slots; return the number of candidates, bound and last time.

    Writes the pages to ``candidates`` (m,), and the place of each page among them to ``place``
    (m,), -1 if it is none.
    """
    pages, last_crawl = state.pages, state.last_crawl
    now = state.lanes[0].time
    num_pages = pages.shape[1]
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
    count = 0
    for page in range(num_pages):
        if pages[0, page].alive:
            reach = value(parameters, page, last_time - last_crawl[0, page], counted[page])
            if reach >= bound * GUARD:
                candidates[count] = page
                place[page] = count
                count += 1
    return count, bound, last_time


@compiled()
def best_candidate(
    state: State,
    value: Any,
    parameters: FloatArray,
    counted: FloatArray,
    candidates: IntArray,
    count: int,
) -> int:
    """Return the candidate of the largest value, the lowest page among equals; 0 if none."""
    now = state.lanes[0].time
    last_crawl = state.last_crawl
    best, best_value = 0, -math.inf
    for position in range(count):
        page = candidates[position]
        page_value = value(parameters, page, now - last_crawl[0, page], counted[page])
        if page_value > best_value or (page_value == best_value and page < best):
            best, best_value = page, page_value
    return best


@compiled()
def fitting_epoch(epoch: int, count: int, num_pages: int) -> int:
    """Return the number of slots of the next search, given the candidates of the last.

    A search evaluates all pages twice, and every slot its candidates. Epochs grow if the search
    costs more, and shrink if the candidates do, as after a start with all pages fresh.
    """
    if count * epoch > 2 * num_pages:
        return max(MIN_EPOCH, epoch // 2)
    return 2 * epoch


@compiled()
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


@compiled()
def add_candidates(
    state: State,
    value: Any,
    parameters: FloatArray,
    counted: FloatArray,
    candidates: IntArray,
    place: IntArray,
    count: int,
    bound: float,
    last_time: float,
) -> int:
    """Add the new candidates among pages with signals in the last slot; return their number."""
    for position in range(state.lanes[0].logged):
        page = state.signal_log[0, position].page
        if place[page] < 0:
            since = last_time - state.last_crawl[0, page]
            if value(parameters, page, since, counted[page]) >= bound * GUARD:
                candidates[count] = page
                place[page] = count
                count += 1
    return count


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
    record = state.lanes[0]
    candidates, place, numbers, limits = search
    page_of_lane, one = np.empty((1, 1), np.int64), np.ones(1, np.int64)
    epoch, count, slots = numbers[0], numbers[1], numbers[2]
    bound, last_time, left = limits[0], limits[1], AT_ONCE
    while left > 0:
        if record.busy:
            complete, left = advance(state, left)
            if not complete:
                break
            close_slots(state)
            count_signals(state, parameters, signal_weight, delay_window, counted)
        if record.slot > crawls.shape[0]:
            return True
        if slots == 0 or record.reshaped:
            if slots == 0:
                epoch = fitting_epoch(epoch, count, counted.shape[0])
            count, bound, last_time = find_candidates(
                state, value, parameters, counted, epoch, candidates, place
            )
            slots = epoch
            left -= 2 * counted.shape[0]
        else:
            count = add_candidates(
                state, value, parameters, counted, candidates, place, count, bound, last_time
            )
        slots -= 1
        left -= 1 + count
        page = best_candidate(state, value, parameters, counted, candidates, count)
        crawls[record.slot - 1] = page
        counted[page] = 0.0
        page_of_lane[0, 0] = page
        crawl(state, page_of_lane, one)
        if count > 0 and value(parameters, page, last_time - record.time, 0.0) < bound * GUARD:
            count -= 1
            candidates[place[page]] = candidates[count]
            place[candidates[count]] = place[page]
            place[page] = -1
    numbers[0], numbers[1], numbers[2] = epoch, count, slots
    limits[0], limits[1] = bound, last_time
    return False


class Responses(NamedTuple):
    """The queue of crawls in response to signals, and the position in a sequence, of lane 0.

    Attributes:
        share: increment of a page's account per signal, (m,); (0,) without responses.
        account: account of each page, (m,).
        queue: ring of the pages whose account has reached 1, (m,).
        mark: start and length of the queue, and the next entry of the sequence, (3,).
    """

    share: FloatArray
    account: FloatArray
    queue: IntArray
    mark: IntArray


HEAD, WAITING, NEXT = range(3)


@compiled()
def queue_response(responses: Responses, page: int) -> None:
    """Add a signal to its page's account; when it reaches 1, append the page to the queue."""
    account, queue, mark = responses.account, responses.queue, responses.mark
    due = account[page] >= RESPONSE_DUE
    account[page] += responses.share[page]
    if not due and account[page] >= RESPONSE_DUE:
        queue[(mark[HEAD] + mark[WAITING]) % queue.shape[0]] = page
        mark[WAITING] += 1


@compiled()
def next_response(responses: Responses) -> int:
    """Remove the first page from the queue and reduce its account to its fractional part."""
    account, mark = responses.account, responses.mark
    page: int = responses.queue[mark[HEAD]]
    mark[HEAD] = (mark[HEAD] + 1) % responses.queue.shape[0]
    mark[WAITING] -= 1
    while account[page] >= RESPONSE_DUE:
        account[page] -= 1.0
    return page


@compiled()
def roll_sequence(table: IntArray, pages: IntArray, responses: Responses, crawls: IntArray) -> bool:
    """Play lane 0 to the end of ``crawls``, (slots,), and write the page of each slot.

    Slots crawl the queue of ``responses`` first, and otherwise ``pages`` in turn; see
    :class:`crawl_envs.types.compiled_policies.CompiledSequence`. Returns False as
    :func:`roll_index`.
    """
    state = state_at(table)
    record, log = state.lanes[0], state.signal_log
    mark, answering = responses.mark, responses.share.shape[0] > 0
    one, left = np.ones(1, np.int64), AT_ONCE
    while left > 0:
        if record.busy:
            complete, left = advance(state, left)
            if not complete:
                break
            close_slots(state)
            if answering:
                for position in range(record.logged):
                    queue_response(responses, log[0, position].page)
        if record.slot > crawls.shape[0]:
            return True
        if mark[WAITING] > 0:
            page = next_response(responses)
        else:
            page = pages[mark[NEXT]]
            mark[NEXT] += 1
            if mark[NEXT] == pages.shape[0]:
                mark[NEXT] = 0
        crawls[record.slot - 1] = page
        crawl(state, crawls[record.slot - 1 : record.slot].reshape(1, 1), one)
        left -= 1
    return False
