"""The states of a live scheduler's pages and hosts, for compiled code.

A page is *ready*, *sent* to the crawler, *parked* while its host may not be asked, *waiting* until
a time (after a failure, or until its least interval has passed), *new*: it has no copy yet, or
*gone*. One heap has the times at which a fetch is lost, a wait is over, and a page that is gone may
be forgotten. New pages are in one queue, the parked pages of a host in another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba.extending import intrinsic

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
from crawl_envs.compiled.heap import IndexedHeap
from crawl_envs.types import FloatArray, IntArray

ABSENT, READY, SENT, WAITING, PARKED, NEW, GONE = range(7)
STATES = "absent", "ready", "sent", "waiting", "parked", "new", "gone"
FRESH, STALE, MISSED, OPEN, DRAWN = range(5)
"""The answers of audits; open ones are handed out and have none yet, drawn ones are not."""
NO_LIMIT = int(np.iinfo(np.int32).max)
LINE = 0
"""Number of the queue of new pages; queue h + 1 has the parked pages of host h."""

SETTINGS = np.dtype(
    [
        # new pages in line; share of fetches for them, and what is left of it
        ("num_new", np.int64),
        ("new_share", np.float64),
        ("credit", np.float64),
        # time after which a page that was sent is ready again
        ("timeout", np.float64),
        # wait after a first failure, which doubles with each further one, and the longest wait
        ("retry", np.float64),
        ("most_retry", np.float64),
        # time for which a page that is gone is kept, and pages that may be forgotten
        ("keep_gone", np.float64),
        ("num_forgotten", np.int64),
        # difference of clocks; latest times of signals and of copies, which may be ahead of the
        # clock; and numbers of those that were ahead of it by more
        ("skew", np.float64),
        ("latest_signal", np.float64),
        ("latest_copy", np.float64),
        ("ahead", np.int64),
        # the value of the last page that was chosen by its value
        ("level", np.float64),
        # age up to which signals have no weight
        ("window", np.float64),
        # signals that are kept; entries that were ever used, and the last one that is free again
        ("num_events", np.int64),
        ("used_events", np.int64),
        ("free_event", np.int64),
    ]
)

# the cost per unit of time that promises need, the longest of them, and the largest cost of a
# recent choice; fetches since these were counted; fetches after deadlines, and the longest delay
PROMISE_NAMES = "rate", "longest", "wait_cost", "fetches", "late_fetches", "most_late"
PROMISES = np.dtype([(name, np.float64) for name in PROMISE_NAMES])


class Choices(NamedTuple):
    """The tables of the states of m pages and H hosts."""

    lines: Annotated[Records, SETTINGS, "1"]
    status: Annotated[SmallArray, np.int8, "m"]
    host: Annotated[SmallArray, np.int32, "m"]  # -1 if there is no limit
    # the first page of each queue, -1 if it is empty; and of a page in one its neighbours
    first: Annotated[SmallArray, np.int32, "Q"]
    following: Annotated[SmallArray, np.int32, "m"]
    preceding: Annotated[SmallArray, np.int32, "m"]
    # least time between two fetches of a host, most fetches at once; and their state
    gap: Annotated[FloatArray, np.float64, "H"]
    most: Annotated[SmallArray, np.int32, "H"]
    opens: Annotated[FloatArray, np.float64, "H"]
    held: Annotated[FloatArray, np.float64, "H"]
    busy: Annotated[SmallArray, np.int32, "H"]
    # hosts with parked pages by the time at which they open, an IndexedHeap
    opening: Annotated[FloatArray, np.float64, "H"]
    opening_host: Annotated[IntArray, np.int64, "H"]
    opening_place: Annotated[IntArray, np.int64, "H"]
    opening_size: Annotated[IntArray, np.int64, "1"]
    # failures in a row, time before which a page is not tried again, time of the last fetch that
    # was reported without a copy, least time between fetches
    fails: Annotated[SmallArray, np.int32, "m"]
    retry_at: Annotated[FloatArray, np.float64, "m"]
    failure_time: Annotated[FloatArray, np.float64, "m"]
    least: Annotated[FloatArray, np.float64, "m"]
    # sent, waiting and gone pages by the time at which that ends, an IndexedHeap
    due: Annotated[FloatArray, np.float64, "m"]
    due_page: Annotated[IntArray, np.int64, "m"]
    due_place: Annotated[IntArray, np.int64, "m"]
    due_size: Annotated[IntArray, np.int64, "1"]
    # the signals of each page: the latest one, their number; see ``signal_log``
    newest: Annotated[SmallArray, np.int32, "m"]
    logged: Annotated[SmallArray, np.int32, "m"]
    event_time: Annotated[FloatArray, np.float64, "E"]
    event_latest: Annotated[FloatArray, np.float64, "E"]
    event_source: Annotated[SmallArray, np.int32, "E"]
    event_next: Annotated[SmallArray, np.int32, "E"]
    slack: Annotated[FloatArray, np.float64, "S"]
    # where costs are used: the expected cost of each page, the number of its costs in that mean;
    # the expected cost of its last fetch, 0 if it is reported, and the period of the cap in which
    # it was handed out; the time of the last reported fetch; the expected costs and the number of
    # lost ones without report, and the time before which reports are of these
    cost: Annotated[FloatArray, np.float64, "P"]
    cost_samples: Annotated[SmallArray, np.int32, "P"]
    paid_cost: Annotated[FloatArray, np.float64, "P"]
    sent_period: Annotated[FloatArray, np.float64, "P"]
    reported: Annotated[FloatArray, np.float64, "P"]
    lost_cost: Annotated[FloatArray, np.float64, "P"]
    lost_fetches: Annotated[SmallArray, np.int32, "P"]
    lost_until: Annotated[FloatArray, np.float64, "P"]
    # sums and numbers of all costs so far, and of those of host h at h + 1
    cost_sums: Annotated[FloatArray, np.float64, "G"]
    cost_counts: Annotated[IntArray, np.int64, "G"]
    # where there are promises: longest interval of each page, inf for none; what is common to all
    most_interval: Annotated[FloatArray, np.float64, "D"]
    promises: Annotated[Records, PROMISES, "L"]


FIELDS = fields_of(Choices)
OPTIONAL_FIELDS = {field.name for field in FIELDS if {*field.axes} & {*"PGDL"}}
"""Names of the tables that are empty where no costs, or no promises, are used."""
CHOICES = StateType("Choices", FIELDS)
INITIAL = {
    **dict.fromkeys(("host", "first", "opening_place", "due_place", "newest"), -1),
    **dict.fromkeys(("opens", "held", "retry_at", "failure_time", "sent_period"), -math.inf),
    **dict.fromkeys(("reported", "lost_until"), -math.inf),
    **dict.fromkeys(("opening", "due", "most_interval"), math.inf),
    "most": NO_LIMIT,
    "cost": 1.0,
}


def new_choices(lengths: Mapping[str, int]) -> Choices:
    """Return tables in which all pages are absent and no host has limits."""
    choices = Choices(*zeros(FIELDS, lengths, INITIAL))
    lines = choices.lines
    lines["latest_signal"] = lines["latest_copy"] = -math.inf
    lines["free_event"] = -1
    return choices


def with_room(choices: Choices, lengths: Mapping[str, int]) -> Choices:
    """Return the tables with the same states, enlarged for more pages, hosts or signals."""
    return Choices(*resized(choices, FIELDS, lengths, INITIAL))


def choices_table(choices: Choices) -> IntArray:
    """Return the array by which compiled code reads the states; see ``choices_at``."""
    return table_of(choices, lengths_of(choices, FIELDS))


def _choices_at(typing_context: Any, table: Any) -> Any:
    """Generate the code that reads ``Choices`` from the array of :func:`choices_table`."""
    return read_table(CHOICES, table)


choices_at: Any = intrinsic(_choices_at)
"""Return the Choices of a table; its arrays are valid as long as their owner keeps them."""


@inlined(forceinline=True)
def opening_hosts(choices: Choices) -> IndexedHeap:
    """Return the heap of hosts with parked pages, ordered by the time at which each opens."""
    return IndexedHeap(
        choices.opening, choices.opening_host, choices.opening_place, choices.opening_size
    )


@inlined(forceinline=True)
def due_pages(choices: Choices) -> IndexedHeap:
    """Return the heap of sent, waiting and gone pages, ordered by when that state ends."""
    return IndexedHeap(choices.due, choices.due_page, choices.due_place, choices.due_size)


def sort_heap(due: FloatArray, entries: IntArray, place: IntArray) -> None:
    """Restore the order of an IndexedHeap after due times changed, none of them to infinity."""
    rows = np.flatnonzero(np.isfinite(due))
    rows = rows[np.argsort(due[rows], kind="stable")]
    entries[: rows.size], place[rows] = rows, np.arange(rows.size)


@inlined()
def join_queue(choices: Choices, page: int, queue: int) -> None:
    """Append a page to the queue of new pages or of a host's parked pages."""
    first = choices.first[queue]
    if first < 0:
        choices.first[queue] = first = page
        choices.preceding[page] = page
    last = choices.preceding[first]
    choices.following[page], choices.preceding[page] = first, last
    choices.following[last] = choices.preceding[first] = page


@inlined()
def leave_queue(choices: Choices, page: int, queue: int) -> None:
    """Remove a page from the queue of new pages or of a host's parked pages."""
    before, after = choices.preceding[page], choices.following[page]
    choices.following[before], choices.preceding[after] = after, before
    if choices.first[queue] == page:
        choices.first[queue] = after if after != page else -1
