"""The page of the largest crawl value at any time, without evaluating every page.

The value of a page does not decrease between its crawls, so a page whose value stays below a bar
until some time can *sleep* until then. There are two or three bars. Pages above the first bar, the
*top*, about ``TOP_PAGES``, are compared each time. A choice is exact when its value reaches that
bar, because all other pages are below it; otherwise the bar is lowered. A page between two bars
sleeps below the higher one. So a lower first bar needs the values of the pages above the second
only, or the third, and all pages are evaluated only when those are used up. The number of pages
above a constant bar changes as a random walk: ``2 sqrt(m)`` pages last about ``4 m`` crawls.

Bars that are too high or too low cost time, and never change a choice. Pages can be added, removed
and changed at any time, in any order. Where rounding lets a value decrease by more than ``GUARD``,
as with several sources of signals, the value of a choice is below the largest by at most as much.
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
from crawl_envs.compiled.promises import NO_PROMISES, value_of

GUARD = 1e-12
"""Rounding tolerance of a value below a bar, relative to the bar."""

TOP_PAGES = 16
"""Number of pages that are to be above a new first bar."""

MAX_FILL = 3
"""A bar is raised if this many times the intended number of pages are above it."""

FULL_SCAN_BATCHES = 20
"""Up to this many batches of pages, every page is compared at each choice."""

THREE_BAR_PAGES = 20_000
"""From this number of pages on, three bars need fewer values than two."""

MIN_SLEEP = 4.0
"""Shortest sleep of a page that saves time, as a number of choices."""

BOUND_CHOICES = 6.0
"""Number of choices over which a bound of a value in the top holds."""

MIN_SIGNALS, SHORTENING = 0.25, 0.7
"""If more signals are expected, a sleep allows for them and is shortened by the factor."""

MAX_TRIES, RELATIVE_TOLERANCE, MAX_GROWTH = 4, 0.02, 5.0
"""Most tries to lengthen a sleep, relative tolerance of its end, most growth per try."""

MAX_DOUBLINGS = 16

MAX_AGES = 8.0
"""Longest guess of the time until a value reaches a bar, in ages of the copy."""

TOP = 0
"""Level of pages above the first bar; pages below all bars have the number of bars."""

ASLEEP, ABSENT = -1, -2

PAGE = np.dtype(
    [
        # time of the last crawl, and total weight of the signals since then
        ("last_crawl", np.float64),
        ("counted", np.float64),
        # total weight of signals above which the page wakes
        ("signal_limit", np.float64),
        # place among the members, or ASLEEP, or ABSENT; and level
        ("place", np.int32),
        ("level", np.int32),
    ]
)
"""The record of a page; a signal needs only one line of the cache to update it."""


class Point(NamedTuple):
    """The value of a page at one time."""

    time: float
    value: float


LEVEL = np.dtype([("bar", np.float64), ("end", np.int64)])
"""A level with a bar: the bar, and the number of pages above it."""

SEARCH = np.dtype(
    [
        # number of queued wakes, and of evaluations of values so far
        ("queued", np.int64),
        ("evaluated", np.int64),
        # pages that are chosen at one time, the most of late; choices since the last restart;
        # doublings of the last level, which is used up too early where values fall
        ("batch", np.int64),
        ("choices", np.int64),
        ("doublings", np.int64),
        # evaluations at the last raise of the bars, and for the choices since then
        ("raising", np.int64),
        ("choosing", np.int64),
        # time up to which wakes are queued, span of the queue, time up to which ``upper`` holds
        ("horizon", np.float64),
        ("span", np.float64),
        ("until", np.float64),
        # 1 + the page whose value was NaN; 0 if no value was NaN
        ("undefined", np.int64),
        # time of the last choice, and mean time between choices
        ("last", np.float64),
        ("pace", np.float64),
    ]
)


class LazyArgmax(NamedTuple):
    """The parameters of the values of m pages, and the state of the search for the largest."""

    # the table of the value: a row per page, and perhaps rows that pages share
    parameters: Annotated[FloatArray, np.float64, "rows P"]
    pages: Annotated[Records, PAGE, "m"]
    search: Annotated[Records, SEARCH, "1"]
    levels: Annotated[Records, LEVEL, "levels"]
    # time up to which a page is below its bar, -inf in the top; separate, because it is searched
    wake: Annotated[FloatArray, np.float64, "m"]
    # the pages above the last bar, those above the first bars first
    members: Annotated[SmallArray, np.int32, "m"]
    # the wakes until the horizon, a heap with outdated entries; and their pages
    due: Annotated[FloatArray, np.float64, "room"]
    due_page: Annotated[SmallArray, np.int32, "room"]
    # bounds of the values of the first members, inf where they are not known
    upper: Annotated[FloatArray, np.float64, "room"]
    # when pages are due by promises, if there are any; see :func:`value_of`
    promises: Annotated[FloatArray, np.float64, "promised 3"]


FIELDS = fields_of(LazyArgmax)
LAZY = StateType("LazyArgmax", FIELDS)
INITIAL: dict[str, Any] = {"pages": (0.0, 0.0, 0.0, ABSENT, 0)}
INITIAL |= dict.fromkeys(("wake", "upper", "promises"), math.inf)


def new_lazy_argmax(
    parameters: FloatArray,
    num_pages: int,
    start: float = 0.0,
    grows: bool = False,
    promises: FloatArray = NO_PROMISES,
) -> LazyArgmax:
    """Return a search for up to ``num_pages`` pages, without pages yet, from time ``start`` on.

    ``parameters`` is the table of the value, (>= m, P), which others write; ``promises``, (m, 3),
    says when pages are due (:func:`.promises.value_of`). ``grows`` says that the search may get
    room for many more pages.
    """
    bars = 3 if grows or num_pages >= THREE_BAR_PAGES else 2
    lengths = {"m": num_pages, "room": num_pages // 8 + 64, "levels": bars}
    lazy = LazyArgmax(parameters, *zeros(FIELDS[1:], lengths, INITIAL))
    lazy = lazy._replace(promises=promises)
    lazy.levels["bar"] = math.inf
    lazy.search["horizon"] = lazy.search["until"] = -math.inf
    lazy.search["last"] = start
    return lazy


def with_room(lazy: LazyArgmax, num_pages: int, width: int) -> LazyArgmax:
    """Return a copy of a search with room for ``num_pages`` pages of ``width`` parameters each."""
    lengths = {"m": num_pages, "rows": num_pages, "P": width, "room": num_pages // 8 + 64}
    if lazy.promises.size:
        lengths["promised"] = num_pages
    return LazyArgmax(*resized(lazy, FIELDS, lengths, INITIAL))


def lazy_table(lazy: LazyArgmax) -> IntArray:
    """Return the table of a search, the form in which compiled code receives its arrays."""
    return table_of(lazy, lengths_of(lazy, FIELDS))


def _lazy_at(typing_context: Any, table: Any) -> Any:
    """Type the intrinsic that turns a table of addresses into the search of compiled code."""
    return read_table(LAZY, table)


lazy_at: Any = intrinsic(_lazy_at)
"""Return the LazyArgmax of a table; its arrays are valid as long as their owner keeps them."""


@inlined(forceinline=True)
def below(lazy: LazyArgmax) -> int:
    """Return the level of the pages that are below all bars: the number of bars."""
    return int(lazy.levels.shape[0])


@inlined(forceinline=True)
def value_at(lazy: LazyArgmax, value: Any, page: int, time: float, signals: float = 0.0) -> float:
    """Return a page's value at a time, after more signals of weight ``signals``; -inf for NaN."""
    lazy.search[0].evaluated += 1
    elapsed, counted = time - lazy.pages[page].last_crawl, lazy.pages[page].counted + signals
    current = value_of(value, lazy.parameters, lazy.promises, page, elapsed, counted)
    if math.isnan(current):
        lazy.search[0].undefined = page + 1
        return -math.inf
    return float(current)


@inlined(forceinline=True)
def is_below(current: float, bar: float) -> bool:
    """Return whether a value is below a bar by more than the rounding tolerance GUARD."""
    return current < bar - GUARD * abs(bar)


@inlined(forceinline=True)
def put_member(lazy: LazyArgmax, page: int, place: int, bound: float) -> None:
    """Put a page at place ``place`` of the members, with ``bound`` as the bound of its value."""
    lazy.members[place], lazy.pages[page].place = page, place
    if place < lazy.upper.shape[0]:
        lazy.upper[place] = bound


@inlined(forceinline=True)
def shift(lazy: LazyArgmax, place: int, hole: int) -> None:
    """Move the member at place ``place`` to place ``hole``, together with its bound."""
    if place != hole:
        bound = lazy.upper[place] if place < lazy.upper.shape[0] else math.inf
        put_member(lazy, lazy.members[place], hole, bound)


@inlined()
def move(lazy: LazyArgmax, page: int, to: int) -> None:
    """Move a page from its level to level ``to``, through the levels between them."""
    record, levels = lazy.pages[page], lazy.levels
    level, hole = record.level, record.place
    if hole < 0:
        level, hole = below(lazy), levels[below(lazy) - 1].end
    for passed in range(level, to):
        levels[passed].end -= 1
        shift(lazy, levels[passed].end, hole)
        hole = levels[passed].end
    for passed in range(level - 1, to - 1, -1):
        shift(lazy, levels[passed].end, hole)
        hole = levels[passed].end
        levels[passed].end += 1
    record.level = to
    if to == below(lazy):
        record.place = ASLEEP
    else:
        put_member(lazy, page, hole, math.inf)


@inlined()
def push(lazy: LazyArgmax, time: float, page: int) -> None:
    """Add the wake of a page at a time to the queue; if the queue is full, end it there."""
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
    """Remove the earliest wake from the queue, a binary heap by time."""
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
    """Let a page sleep until time ``until``, or until signals of weight over ``signals`` arrive."""
    lazy.wake[page], lazy.pages[page].signal_limit = until, lazy.pages[page].counted + signals
    if until <= lazy.search[0].horizon:
        push(lazy, until, page)


@inlined(forceinline=True)
def crossing(bar: float, first: Point, second: Point, third: Point) -> float:
    """Return a guess of when a value, a parabola through three points, reaches a bar."""
    since, before = third.time - second.time, 0.0
    slope = (third.value - second.value) / since
    if not slope > 0.0:
        return MAX_AGES * third.time
    if second.time > first.time:
        before = (second.value - first.value) / (second.time - first.time)
    bend = (slope - before) / (third.time - first.time)
    wait = (bar - third.value) / slope
    steeper = slope + bend * (2.0 * wait + since)
    if steeper > 0.2 * slope:
        wait -= bend * wait * (wait + since) / steeper
    return float(third.time + wait)


@inlined()
def sleeps(
    lazy: LazyArgmax, value: Any, page: int, now: float, current: float, step: float, bar: float
) -> bool:
    """Let a page sleep if its value stays below a bar for some time; return whether it sleeps.

    ``step`` is a guess of that time, which later values correct. ``current`` is the value now. If
    signals are likely, the page sleeps shorter, and the sleep allows for some signals.
    """
    min_sleep = MIN_SLEEP * lazy.search[0].pace
    age = now - lazy.pages[page].last_crawl
    expected = (lazy.pages[page].counted + 0.5) * step / (age + step)
    if step > min_sleep and expected > MIN_SIGNALS:
        signals = math.ceil(expected) + 1.0
        if is_below(value_at(lazy, value, page, now + SHORTENING * step, signals), bar):
            sleep(lazy, page, now + SHORTENING * step, signals)
            return True
    first, second, asleep, awake = Point(-age, 0.0), Point(0.0, current), 0.0, math.inf
    tries = 0
    while step > asleep + min_sleep and (tries < MAX_TRIES or asleep == 0.0):
        tries += 1
        third = Point(step, value_at(lazy, value, page, now + step))
        guess = crossing(bar, first, second, third)
        if not is_below(third.value, bar):
            awake = step
        else:
            asleep = step
            if guess <= step + max(min_sleep, RELATIVE_TOLERANCE * step):
                break
        margin = max(RELATIVE_TOLERANCE * abs(guess - step), 0.4 * min_sleep)
        guess = min(guess - margin, MAX_GROWTH * step)
        if guess >= 0.99 * awake:
            guess = asleep + 0.5 * (awake - asleep)
        step, first, second = (0.5 * step if guess <= 0.0 else guess), second, third
    if asleep > 0.0:
        sleep(lazy, page, now + asleep, 0.0)
    return asleep > 0.0


@inlined(forceinline=True)
def time_left(lazy: LazyArgmax, page: int, now: float, current: float, bar: float) -> float:
    """Return a guess of the time until a value, a line from 0 at the crawl, reaches a bar."""
    age = now - lazy.pages[page].last_crawl
    if current > 0.0:
        return float(age * min(bar / current - 1.0, MAX_AGES))
    return float(MAX_AGES * (age + lazy.search[0].pace))


@inlined()
def rise(lazy: LazyArgmax, value: Any, page: int, now: float) -> None:
    """Place a page whose sleep ended at the level that fits its value at time ``now``."""
    place_by(lazy, value, page, now, value_at(lazy, value, page, now))


@inlined()
def place_by(lazy: LazyArgmax, value: Any, page: int, now: float, current: float) -> None:
    """Move a page of value ``current`` up to the first level where it can sleep, or to the top."""
    level = lazy.pages[page].level
    while level > TOP:
        bar = lazy.levels[level - 1].bar
        if is_below(current, bar):
            step = time_left(lazy, page, now, current, bar)
            if sleeps(lazy, value, page, now, current, step, bar):
                break
        level -= 1
    if level == TOP:
        lazy.wake[page] = -math.inf
    if level != lazy.pages[page].level:
        move(lazy, page, level)


@inlined()
def count_signal(lazy: LazyArgmax, value: Any, page: int, weight: float, now: float) -> None:
    """Add the weight of a signal to a page; if the page is in the search, update its level."""
    record = lazy.pages[page]
    record.counted += weight
    if record.place == ABSENT or weight == 0.0:
        return
    if record.level == TOP:
        if record.place < lazy.upper.shape[0]:
            lazy.upper[record.place] = math.inf
    elif record.counted > record.signal_limit:
        rise(lazy, value, page, now)


@inlined()
def add(lazy: LazyArgmax, value: Any, page: int, now: float, guess: float = 0.0) -> None:
    """Add a page to the search, or place it again after any change of its value.

    ``guess`` is a guess of the time until it is chosen, if its value is near 0; 0 for no guess.
    """
    move(lazy, page, below(lazy))
    bar = lazy.levels[below(lazy) - 1].bar
    guessed = guess > 0.0 and bar > -math.inf
    if not (guessed and sleeps(lazy, value, page, now, 0.0, guess, bar)):
        rise(lazy, value, page, now)


@inlined()
def count_crawl(lazy: LazyArgmax, value: Any, page: int, now: float) -> None:
    """Note a crawl of a page: set its age and signals to 0, and place it again in the search.

    Its age at this crawl is the first guess of the time until its next crawl.
    """
    record = lazy.pages[page]
    age = now - record.last_crawl
    record.last_crawl, record.counted = now, 0.0
    add(lazy, value, page, now, age)


@inlined()
def remove(lazy: LazyArgmax, page: int) -> None:
    """Remove a page from the search; nothing changes if it is absent."""
    move(lazy, page, below(lazy))
    lazy.pages[page].place, lazy.wake[page] = ABSENT, math.inf


@inlined()
def kth_largest(values: FloatArray, k: int) -> float:
    """Return the k-th largest of n values, -inf if k > n; quickselect reorders ``values``."""
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
def level_size(lazy: LazyArgmax, level: int) -> int:
    """Return how many pages are to be above a level's new bar; all pages if batches are large."""
    search, num_pages = lazy.search[0], lazy.wake.shape[0]
    if num_pages <= FULL_SCAN_BATCHES * search.batch:
        return int(num_pages + 1)
    top = max(TOP_PAGES, 2 * search.batch)
    if level == TOP:
        return int(top)
    size = 4 * top + 2 * int(math.sqrt(num_pages))
    size = min(size << search.doublings, max(size, num_pages // 4))
    return int(top * (size / top) ** (level / (below(lazy) - 1)))


@inlined()
def restart(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Evaluate all pages, and set all bars and the levels of all pages by their values."""
    search, levels, num_pages = lazy.search[0], lazy.levels, lazy.wake.shape[0]
    if search.choices < num_pages // 4:
        search.doublings = min(search.doublings + 1, MAX_DOUBLINGS)
    else:
        search.doublings = max(search.doublings - 1, 0)
    search.choices, search.queued, search.horizon = 0, 0, -math.inf
    for level in range(below(lazy)):
        levels[level].bar, levels[level].end = -math.inf, 0
    pages, count = np.empty(num_pages, np.int32), 0
    for page in range(num_pages):
        if lazy.pages[page].place != ABSENT:
            lazy.pages[page].place = ASLEEP
            pages[count] = page
            count += 1
    place_again(lazy, value, now, pages[:count], below(lazy) - 1)


@inlined()
def place_again(lazy: LazyArgmax, value: Any, now: float, pages: Any, level: int) -> bool:
    """Set the bars up to ``level`` by the values of ``pages``, which are above it, and place these.

    No bar is lowered below that of ``level``. If the first bar would be, nothing changes and the
    result is False; else it is True.
    """
    current = np.empty(pages.shape[0])
    for place in range(pages.shape[0]):
        current[place] = value_at(lazy, value, pages[place], now)
    ordered, levels = current.copy(), lazy.levels
    lowest_bar = levels[level].bar
    if kth_largest(ordered, level_size(lazy, TOP)) < lowest_bar:
        return False
    for higher in range(level + 1):
        levels[higher].bar = max(kth_largest(ordered, level_size(lazy, higher)), lowest_bar)
    for page in pages:
        move(lazy, page, level + 1)
    for place in range(pages.shape[0]):
        place_by(lazy, value, pages[place], now, current[place])
    return True


@inlined()
def lower_bars(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Lower the first bars by the values of few pages; evaluate all pages if that is not enough."""
    for level in range(TOP + 1, below(lazy)):
        if place_again(lazy, value, now, lazy.members[: lazy.levels[level].end].copy(), level):
            return
    restart(lazy, value, now)


@inlined()
def raise_bars(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Raise the bars that too many pages exceed, where this saves time.

    Pages that will exceed a bar within ``MIN_SLEEP`` choices are above it too, a batch per choice.
    """
    search, levels = lazy.search[0], lazy.levels
    if search.choosing < search.raising:
        return
    for level in range(below(lazy)):
        max_pages = MAX_FILL * level_size(lazy, level) + MIN_SLEEP * search.batch
        if levels[level].bar < math.inf and levels[level].end > max_pages:
            before = search.evaluated
            place_again(lazy, value, now, lazy.members[: levels[level].end].copy(), level)
            search.raising, search.choosing = search.evaluated - before, 0


@inlined()
def queue_wakes(lazy: LazyArgmax, max_wakes: int) -> bool:
    """Queue the wakes up to the search's horizon; return False if there are over ``max_wakes``."""
    search = lazy.search[0]
    search.queued = 0
    for page in range(lazy.wake.shape[0]):
        if -math.inf < lazy.wake[page] <= search.horizon:
            if search.queued == max_wakes:
                return False
            push(lazy, lazy.wake[page], page)
    return True


@inlined()
def fill_queue(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Wake the pages whose wake has passed, and queue the wakes up to a new horizon."""
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
    """Wake the pages whose sleep has ended by time ``now``, and place them by their values."""
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
    """Bound the values of the top's pages for some choices; return the largest bound's place."""
    search, upper, first = lazy.search[0], lazy.upper, 0
    bounded = min(lazy.levels[TOP].end, upper.shape[0])
    if now > search.until:
        search.until = now + BOUND_CHOICES * search.pace
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
    """Return the page of the largest value in the top, the lowest if several, and that value.

    Pages are evaluated only if their bound reaches the largest value so far. The page of the
    largest bound comes first.
    """
    first = bound_top(lazy, value, now)
    best, largest = -1, -math.inf
    for turn in range(-1, lazy.levels[TOP].end):
        place = first if turn < 0 else turn
        skipped = turn == first or (place < lazy.upper.shape[0] and lazy.upper[place] < largest)
        if skipped or lazy.levels[TOP].end == 0:
            continue
        page = lazy.members[place]
        current = value_at(lazy, value, page, now)
        if current > largest or (current == largest and page < best) or best < 0:
            best, largest = int(page), current
    return best, largest


@inlined()
def pass_time(lazy: LazyArgmax, value: Any, now: float) -> None:
    """Move the search to time ``now``: wake pages that may exceed a bar, and raise bars."""
    search = lazy.search[0]
    if now > search.last:
        pace = now - search.last
        search.pace = pace if search.pace == 0.0 else 0.9 * search.pace + 0.1 * pace
        search.last = now
    wake_pages(lazy, value, now)
    raise_bars(lazy, value, now)


@inlined()
def best_page(lazy: LazyArgmax, value: Any, now: float) -> int:
    """Return the page of the largest value at time ``now``, the lowest if several; -1 if none."""
    search = lazy.search[0]
    while True:
        pass_time(lazy, value, now)
        before = search.evaluated
        best, largest = best_of_top(lazy, value, now)
        search.choosing += search.evaluated - before
        if largest >= lazy.levels[TOP].bar:
            search.choices += 1
            return best
        lower_bars(lazy, value, now)
