"""The page of the largest crawl value at any time, without evaluating every page.

The value of a page does not decrease between its crawls, so a page whose value stays below a bar
until some time can *sleep* until then. There are two bars. Pages above the *top bar*, about
``FEW``, are compared at every choice. A choice is exact when its value reaches that bar, because
all other pages are below it; otherwise the bar is lowered. Pages between both bars, the *band*,
sleep below the top bar, all others below the band's bar. So a lower top bar needs the values of
the band only, and all pages are evaluated only when the band is used up. The number of pages above
a constant bar changes as a random walk: a band of ``2 sqrt(m)`` pages lasts about ``4 m`` crawls.

Bars that are too high or too low cost time, and never change a choice. Pages can be added, removed
and changed at any time, in any order.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba.extending import intrinsic

from crawl_envs.compiled import FloatArray, IntArray
from crawl_envs.compiled.array_tables import (
    Records,
    SmallArray,
    StateType,
    fields_of,
    lengths_of,
    read_table,
    resized,
    table_of,
    zeros,
)
from crawl_envs.compiled.compiling import inlined

GUARD = 1e-12
"""Relative distance below a bar, for values that decrease by rounding."""

FEW = 16
"""Pages above a new top bar."""

MOST = 3
"""Times the intended number of pages above a bar, from which the bar is raised."""

CLOSE = 4.0
"""Choices before which a page that sleeps below the top bar is not worth waking again."""

AHEAD = 6.0
"""Choices for which the values of the top are bounded at once."""

LIKELY, SHORTER, WORTH = 0.25, 0.7, 0.1
"""Expected signals of a sleep from which it allows for them; its share of the time left then; and
the relative gain for which a longer sleep is tried."""

MOST_DOUBLINGS = 16

FARTHEST = 8.0
"""Longest guess of the time left, in ages of the copy."""

ASLEEP, ABSENT = -1, -2

PAGE = np.dtype(
    [
        # time of the last crawl, and total weight of the signals since then
        ("last_crawl", np.float64),
        ("counted", np.float64),
        # weight of signals up to which a page sleeps
        ("most", np.float64),
        # place among the members, or ASLEEP, or ABSENT
        ("place", np.int64),
    ]
)
"""A page; what a signal needs is in one line of the cache."""

SEARCH = np.dtype(
    [
        # numbers of pages above the top bar and in the band; of queued wakes; of values so far
        ("top", np.int64),
        ("band", np.int64),
        ("queued", np.int64),
        ("evaluated", np.int64),
        # most pages that are chosen at one time; choices since the last restart; doublings of the
        # band, which is used up too early where values fall
        ("batch", np.int64),
        ("choices", np.int64),
        ("doublings", np.int64),
        # values of the last raise of the bars, and of the choices since then
        ("raising", np.int64),
        ("choosing", np.int64),
        ("top_bar", np.float64),
        ("band_bar", np.float64),
        # end of the queue, its length in time, and end of the bounds ``upper``
        ("horizon", np.float64),
        ("span", np.float64),
        ("until", np.float64),
        # 1 + a page whose value was NaN; 0 if there was none
        ("undefined", np.int64),
        # time of the last choice, and mean time between choices
        ("last", np.float64),
        ("pace", np.float64),
    ]
)


class LazyArgmax(NamedTuple):
    """What the values of m pages are computed from, and the state of the search among them."""

    # the table of the value: a row per page, and perhaps rows that pages share
    parameters: Annotated[FloatArray, np.float64, "rows P"]
    pages: Annotated[Records, PAGE, "m"]
    search: Annotated[Records, SEARCH, "1"]
    # time up to which a page is below its bar, -inf in the top; apart, because it is searched
    wake: Annotated[FloatArray, np.float64, "m"]
    # the pages above the band's bar, those above the top bar first
    members: Annotated[SmallArray, np.int32, "m"]
    # the wakes until the horizon, a heap with outdated entries; and their pages
    due: Annotated[FloatArray, np.float64, "room"]
    due_page: Annotated[SmallArray, np.int32, "room"]
    # bounds of the values of the first members, inf where they are not known
    upper: Annotated[FloatArray, np.float64, "room"]


FIELDS = fields_of(LazyArgmax)
LAZY = StateType("LazyArgmax", FIELDS)
INITIAL = {"pages": (0.0, 0.0, 0.0, ABSENT), "wake": math.inf, "upper": math.inf}


def new_lazy_argmax(parameters: FloatArray, num_pages: int, start: float = 0.0) -> LazyArgmax:
    """Return a search without pages, for up to m pages, from a time on.

    ``parameters`` is the table of the value, (>= m, P), which others write.
    """
    lengths = {"m": num_pages, "room": num_pages // 8 + 64}
    lazy = LazyArgmax(parameters, *zeros(FIELDS[1:], lengths, INITIAL))
    lazy.search["top_bar"] = lazy.search["band_bar"] = math.inf
    lazy.search["horizon"] = lazy.search["until"] = -math.inf
    lazy.search["last"] = start
    return lazy


def with_room(lazy: LazyArgmax, num_pages: int, width: int) -> LazyArgmax:
    """Return the same search with room for m pages, whose tables have a width; it goes on."""
    lengths = {"m": num_pages, "rows": num_pages, "P": width, "room": num_pages // 8 + 64}
    return LazyArgmax(*resized(lazy, FIELDS, lengths, INITIAL))


def lazy_table(lazy: LazyArgmax) -> IntArray:
    """Return the table of a search; see :mod:`crawl_envs.compiled.array_tables`."""
    return table_of(lazy, lengths_of(lazy, FIELDS))


def _lazy_at(typing_context: Any, table: Any) -> Any:
    """Turn a table into the search of compiled code."""
    return read_table(LAZY, table)


lazy_at: Any = intrinsic(_lazy_at)
"""Return the LazyArgmax of a table; its arrays are valid as long as their owner keeps them."""


@inlined(forceinline=True)
def value_at(lazy: LazyArgmax, value: Any, page: int, time: float, signals: float = 0.0) -> float:
    """Return the value of a page at a time, after further signals; -inf, noted, for NaN."""
    lazy.search[0].evaluated += 1
    elapsed, counted = time - lazy.pages[page].last_crawl, lazy.pages[page].counted + signals
    current = value(lazy.parameters, page, elapsed, counted)
    if math.isnan(current):
        lazy.search[0].undefined = page + 1
        return -math.inf
    return float(current)


@inlined(forceinline=True)
def is_below(current: float, bar: float) -> bool:
    """Return whether a value is below a bar, not only by rounding."""
    return current < bar - GUARD * abs(bar)


@inlined(forceinline=True)
def bar_of(lazy: LazyArgmax, page: int) -> float:
    """Return the bar below which a page sleeps."""
    search = lazy.search[0]
    return float(search.top_bar if lazy.pages[page].place >= 0 else search.band_bar)


@inlined(forceinline=True)
def put_member(lazy: LazyArgmax, page: int, place: int) -> None:
    """Put a page at a place among the members, without a bound of its value."""
    lazy.members[place] = page
    lazy.pages[page].place = place
    if place < lazy.upper.shape[0]:
        lazy.upper[place] = math.inf


@inlined()
def leave(lazy: LazyArgmax, page: int) -> None:
    """Take a page out of the members."""
    search, members, hole = lazy.search[0], lazy.members, lazy.pages[page].place
    lazy.pages[page].place = ASLEEP
    if hole < 0:
        return
    last = search.top + search.band - 1
    if hole < search.top:
        search.top -= 1
        if hole != search.top:
            put_member(lazy, members[search.top], hole)
            if search.top < lazy.upper.shape[0]:
                lazy.upper[hole] = lazy.upper[search.top]
        hole = search.top
    else:
        search.band -= 1
    if hole != last:
        put_member(lazy, members[last], hole)


@inlined()
def to_top(lazy: LazyArgmax, page: int) -> None:
    """Let a member that is not in the top be compared at every choice."""
    search, hole = lazy.search[0], lazy.pages[page].place
    if hole != search.top:
        put_member(lazy, lazy.members[search.top], hole)
    put_member(lazy, page, search.top)
    search.top += 1
    search.band -= 1
    lazy.wake[page] = -math.inf


@inlined()
def push(lazy: LazyArgmax, time: float, page: int) -> None:
    """Add a wake to the queue; without room, end the queue before it."""
    due, due_page, search = lazy.due, lazy.due_page, lazy.search[0]
    hole = search.queued
    if hole == due.shape[0]:
        search.horizon = -math.inf
        return
    search.queued += 1
    while hole > 0 and time < due[(hole - 1) // 2]:
        parent = (hole - 1) // 2
        due[hole], due_page[hole] = due[parent], due_page[parent]
        hole = parent
    due[hole], due_page[hole] = time, page


@inlined()
def pop(lazy: LazyArgmax) -> None:
    """Remove the first wake of the queue."""
    due, due_page, search = lazy.due, lazy.due_page, lazy.search[0]
    search.queued -= 1
    size, hole = search.queued, 0
    time, page = due[size], due_page[size]
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        if child + 1 < size and due[child + 1] < due[child]:
            child += 1
        if time <= due[child]:
            break
        due[hole], due_page[hole] = due[child], due_page[child]
        hole = child
    due[hole], due_page[hole] = time, page


@inlined()
def sleep(lazy: LazyArgmax, page: int, until: float, signals: float) -> None:
    """Let a page sleep until a time or further signals."""
    lazy.wake[page], lazy.pages[page].most = until, lazy.pages[page].counted + signals
    if until <= lazy.search[0].horizon:
        push(lazy, until, page)


@inlined()
def sleeps(
    lazy: LazyArgmax, value: Any, page: int, now: float, current: float, step: float
) -> bool:
    """Let a page sleep below its bar, if it stays there for some time; return whether it does.

    ``step`` is a guess of the time left, corrected by the value's secant. If signals are likely,
    the page sleeps shorter, but not only until the next signal.
    """
    bar, close = bar_of(lazy, page), CLOSE * lazy.search[0].pace
    age = now - lazy.pages[page].last_crawl
    expected = (lazy.pages[page].counted + 0.5) * step / (age + step)
    if step > close and expected > LIKELY:
        signals = math.ceil(expected) + 1.0
        if is_below(value_at(lazy, value, page, now + SHORTER * step, signals), bar):
            sleep(lazy, page, now + SHORTER * step, signals)
            return True
    while step > close:
        then = value_at(lazy, value, page, now + step)
        more = max((bar - current) / (then - current) - 1.0, -1.0) if then > current else 0.0
        if is_below(then, bar):
            longer = step * (1.0 + 0.97 * min(more, 4.0))
            if more > WORTH and is_below(value_at(lazy, value, page, now + longer), bar):
                step = longer
            sleep(lazy, page, now + step, 0.0)
            return True
        step *= min(0.97 * (1.0 + more), 0.5)
    return False


@inlined(forceinline=True)
def time_left(lazy: LazyArgmax, page: int, now: float, current: float) -> float:
    """Return a guess of the time in which a page reaches its bar: the value's line through 0."""
    age = now - lazy.pages[page].last_crawl
    if current > 0.0:
        return float(age * min(bar_of(lazy, page) / current - 1.0, FARTHEST))
    return float(FARTHEST * (age + lazy.search[0].pace))


@inlined()
def stays_below(lazy: LazyArgmax, value: Any, page: int, now: float, current: float) -> bool:
    """Let a page sleep if its current value is below its bar; return whether it does."""
    if not is_below(current, bar_of(lazy, page)):
        return False
    return bool(sleeps(lazy, value, page, now, current, time_left(lazy, page, now, current)))


@inlined()
def rise(lazy: LazyArgmax, value: Any, page: int, now: float) -> None:
    """Place a page that slept, by its current value."""
    place_by(lazy, value, page, now, value_at(lazy, value, page, now))


@inlined()
def place_by(lazy: LazyArgmax, value: Any, page: int, now: float, current: float) -> None:
    """Place a page by its current value: asleep, in the band or in the top."""
    search = lazy.search[0]
    if lazy.pages[page].place == ASLEEP:
        if stays_below(lazy, value, page, now, current):
            return
        put_member(lazy, page, search.top + search.band)
        search.band += 1
    if not stays_below(lazy, value, page, now, current):
        to_top(lazy, page)


@inlined()
def count_signal(lazy: LazyArgmax, value: Any, page: int, weight: float, now: float) -> None:
    """Add the weight of a signal to a page, which need not be there, and place it again."""
    record = lazy.pages[page]
    record.counted += weight
    if record.place == ABSENT or weight == 0.0:
        return
    if 0 <= record.place < lazy.search[0].top:
        if record.place < lazy.upper.shape[0]:
            lazy.upper[record.place] = math.inf
    elif record.counted > record.most:
        rise(lazy, value, page, now)


@inlined()
def count_crawl(lazy: LazyArgmax, value: Any, page: int, now: float) -> None:
    """Reset the age and the signals of a page, and place it again.

    Its age at this crawl is the first guess of the time until its next one.
    """
    record = lazy.pages[page]
    age = now - record.last_crawl
    record.last_crawl, record.counted = now, 0.0
    leave(lazy, page)
    if not sleeps(lazy, value, page, now, 0.0, age):
        rise(lazy, value, page, now)


@inlined()
def add(lazy: LazyArgmax, value: Any, page: int, now: float) -> None:
    """Add a page, or place it again after a change of any kind."""
    leave(lazy, page)
    rise(lazy, value, page, now)


@inlined()
def remove(lazy: LazyArgmax, page: int) -> None:
    """Remove a page, if it is there."""
    leave(lazy, page)
    lazy.pages[page].place, lazy.wake[page] = ABSENT, math.inf


@inlined()
def kth_largest(values: FloatArray, k: int) -> float:
    """Return the k-th largest of n values, -inf if k > n; values are reordered (quickselect)."""
    low, high = 0, values.shape[0] - 1
    if k > values.shape[0]:
        return -math.inf
    while low < high:
        pivot, left, right = values[(low + high) // 2], low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if k - 1 <= right:
            high = right
        elif k - 1 >= left:
            low = left
        else:
            break
    return float(values[k - 1])


@inlined(forceinline=True)
def top_size(lazy: LazyArgmax) -> int:
    """Return the number of pages above a new top bar."""
    return int(max(FEW, 2 * lazy.search[0].batch))


@inlined(forceinline=True)
def band_size(lazy: LazyArgmax) -> int:
    """Return the number of pages above a new bar of the band."""
    num_pages = lazy.wake.shape[0]
    size = 4 * top_size(lazy) + 2 * int(math.sqrt(num_pages))
    return int(min(size << lazy.search[0].doublings, max(size, num_pages // 4)))


@inlined()
def restart(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Set both bars by the values of all pages."""
    search, num_pages, count = lazy.search[0], lazy.wake.shape[0], 0
    if search.choices < num_pages // 4:
        search.doublings = min(search.doublings + 1, MOST_DOUBLINGS)
    else:
        search.doublings = max(search.doublings - 1, 0)
    search.choices = 0
    current = np.empty(num_pages)
    for page in range(num_pages):
        if lazy.pages[page].place != ABSENT:
            lazy.pages[page].place = ASLEEP
            current[count] = value_at(lazy, value, page, now)
            count += 1
    ordered = current[:count].copy()
    search.band_bar = kth_largest(ordered, band_size(lazy))
    search.top_bar = kth_largest(ordered, top_size(lazy))
    search.horizon = -math.inf
    search.top = search.band = search.queued = count = 0
    for page in range(num_pages):
        if lazy.pages[page].place != ABSENT:
            place_by(lazy, value, page, now, current[count])
            count += 1


@inlined()
def values_now(lazy: LazyArgmax, value: Any, now: float, first: int, last: int) -> FloatArray:
    """Return the values of the members from place ``first`` to before ``last``."""
    current = np.empty(last - first)
    for place in range(first, last):
        current[place - first] = value_at(lazy, value, lazy.members[place], now)
    return current


@inlined()
def renew_top(lazy: LazyArgmax, value: Any, now: float, count: int) -> None:
    """Place the first members again, those of the top at least."""
    search, members = lazy.search[0], lazy.members[:count].copy()
    search.band += search.top
    search.top = 0
    for page in members:
        rise(lazy, value, page, now)


@inlined()
def lower_top_bar(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Lower the top bar to let some of the band pass; restart where the band is used up."""
    search = lazy.search[0]
    count = search.top + search.band
    bar = kth_largest(values_now(lazy, value, now, 0, count), top_size(lazy))
    if bar < search.band_bar:
        restart(lazy, value, now)
    else:
        search.top_bar = bar
        renew_top(lazy, value, now, count)


@inlined()
def raise_bars(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Raise a bar that too many pages are above, not more often than is worth it.

    Some are not above it, but will be soon, so a bar by their values may be lower. It is not taken
    then: other pages sleep below the bar. Below an infinite one there are none.
    """
    search = lazy.search[0]
    if search.choosing < search.raising:
        return
    before = search.evaluated
    if search.top > MOST * top_size(lazy):
        bar = kth_largest(values_now(lazy, value, now, 0, search.top), top_size(lazy))
        if bar > search.top_bar or search.top_bar == math.inf:
            search.top_bar = bar
            renew_top(lazy, value, now, search.top)
    if search.band > MOST * band_size(lazy):
        first, last = search.top, search.top + search.band
        bar = kth_largest(values_now(lazy, value, now, first, last), band_size(lazy))
        bar = min(bar, search.top_bar)
        if bar > search.band_bar or search.band_bar == math.inf:
            search.band_bar = bar
            for page in lazy.members[first:last].copy():
                leave(lazy, page)
                rise(lazy, value, page, now)
    if search.evaluated > before:
        search.raising, search.choosing = search.evaluated - before, 0


@inlined()
def queue_wakes(lazy: LazyArgmax, most: int) -> bool:
    """Queue the wakes until the horizon; return whether they are at most ``most``."""
    search = lazy.search[0]
    search.queued = 0
    for page in range(lazy.wake.shape[0]):
        if -math.inf < lazy.wake[page] <= search.horizon:
            if search.queued == most:
                return False
            push(lazy, lazy.wake[page], page)
    return True


@inlined()
def fill_queue(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Wake the pages that are due, and queue those that are due until the next horizon."""
    search = lazy.search[0]
    search.horizon = -math.inf
    for page in range(lazy.wake.shape[0]):
        if -math.inf < lazy.wake[page] < now:
            rise(lazy, value, page, now)
    search.span = max(2.0 * search.span, search.pace)
    search.horizon = now + search.span
    while not queue_wakes(lazy, lazy.due.shape[0] // 2):
        search.span *= 0.5
        search.horizon = now + search.span
        if search.horizon == now:  # more are due at once than there is room for
            search.queued = 0
            return


@inlined()
def wake_pages(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Place the pages again that have slept long enough."""
    search = lazy.search[0]
    if now > search.horizon:
        fill_queue(lazy, value, now)
    while search.queued > 0 and lazy.due[0] < now:
        time, page = lazy.due[0], lazy.due_page[0]
        pop(lazy)
        if lazy.wake[page] == time:
            rise(lazy, value, page, now)


@inlined()
def bound_top(lazy: LazyArgmax, value: Any, now: float) -> int:
    """Bound the values of the top for some choices, and return the place of the largest bound."""
    search, upper, first = lazy.search[0], lazy.upper, 0
    bounded = min(search.top, upper.shape[0])
    if now > search.until:
        search.until = now + AHEAD * search.pace
        upper[:bounded] = math.inf
    for place in range(bounded):
        if upper[place] == math.inf:
            bound = value_at(lazy, value, lazy.members[place], search.until)
            upper[place] = bound + GUARD * abs(bound) if bound > -math.inf else bound
        if upper[place] > upper[first]:
            first = place
    return first


@inlined()
def best_of_top(lazy: LazyArgmax, value: Any, now: float) -> tuple[int, float]:
    """Return the page of the top with the largest value, the lowest among equals, and its value.

    Pages are evaluated if their bound reaches the largest value so far, that of the largest bound
    first.
    """
    first = bound_top(lazy, value, now)
    best, largest = -1, -math.inf
    for turn in range(-1, lazy.search[0].top):
        place = first if turn < 0 else turn
        skipped = turn == first or (place < lazy.upper.shape[0] and lazy.upper[place] < largest)
        if skipped or lazy.search[0].top == 0:
            continue
        page = lazy.members[place]
        current = value_at(lazy, value, page, now)
        if current > largest or (current == largest and page < best) or best < 0:
            best, largest = int(page), current
    return best, largest


@inlined()
def pass_time(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Move the pages that are above a bar by now."""
    search = lazy.search[0]
    if now > search.last:
        pace = now - search.last
        search.pace = pace if search.pace == 0.0 else 0.9 * search.pace + 0.1 * pace
        search.last = now
    wake_pages(lazy, value, now)
    raise_bars(lazy, value, now)


@inlined()
def best_page(lazy: LazyArgmax, value: Any, now: float) -> int:
    """Return the page of the largest value, the lowest among equals; -1 if there is none."""
    search = lazy.search[0]
    while True:
        pass_time(lazy, value, now)
        before = search.evaluated
        best, largest = best_of_top(lazy, value, now)
        search.choosing += search.evaluated - before
        if largest >= search.top_bar:
            search.choices += 1
            return best
        lower_top_bar(lazy, value, now)
