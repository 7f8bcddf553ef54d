"""The arrays of a batch of worlds: one record per lane, and other arrays with a row per lane.

Kernels work on a :class:`State`. Its arrays are never rebound, so a copy of them is a copy of the
worlds. A kernel called from Python receives the state as a small table of addresses and makes the
arrays from it by :func:`state_at`: one argument instead of twenty, and no reference counts, which
would cost more than the events. The owner of a table must keep the arrays alive, as
:class:`crawl_envs.sim.world.World` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from crawl_envs.sim.streams import UintArray
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import compiled

LANE = np.dtype(
    [
        # the tape: root of the stream, and number of the episode since its seed
        ("root", np.uint64),
        ("episode", np.uint64),
        # current time; time to play up to; whether it is not reached yet; whether the lane has
        # moved in this step; whether steps skip it
        ("time", np.float64),
        ("target", np.float64),
        ("busy", np.bool_),
        ("moved", np.bool_),
        ("idle", np.bool_),
        ("slot", np.int64),
        # slot of the first decision, slots per decision, end of the episode, whether pages are
        # born and die, whether outcomes of probes are shown
        ("first_slot", np.int64),
        ("batch", np.int64),
        ("horizon", np.float64),
        ("mortal", np.bool_),
        ("probing", np.bool_),
        ("fresh_weight", np.float64),
        ("alive_weight", np.float64),
        ("penalty_weight", np.float64),
        # the current slot
        ("slot_fresh", np.float64),
        ("slot_alive", np.float64),
        ("slot_penalty", np.float64),
        ("slot_requests", np.int64),
        ("slot_hits", np.int64),
        ("slot_crawls", np.int64),
        ("slot_denied", np.int64),
        ("logged", np.int64),
        ("counted", np.int64),
        ("reshaped", np.bool_),
        # the ledger
        ("fresh_time", np.float64),
        ("alive_time", np.float64),
        ("penalty_time", np.float64),
        ("requests", np.int64),
        ("hits", np.int64),
        ("crawls", np.int64),
        ("probes", np.int64),
        ("denied", np.int64),
        ("wasted", np.int64),
        ("changes", np.int64),
        ("changes_found", np.int64),
        ("signals", np.int64),
        # the tape
        ("cursor", np.int64),
        ("length", np.int64),
        ("recorded", np.bool_),
        ("column_bits", np.int64),
        ("mean_gap", np.float64),
        ("next_time", np.float64),
        ("next_code", np.int64),
        ("pending", np.int64),
        ("delay_kind", np.int64),
        ("delay_mean", np.float64),
        ("delay_quantum", np.float64),
        # crawls at random instants: root of their stream, total rate, time of the next one, what
        # is left of a unit exponential until then while the rate is 0
        ("rng_root", np.uint64),
        ("crawl_rate", np.float64),
        ("crawl_due", np.float64),
        ("hazard", np.float64),
        # their token bucket: its size, its content at a time, that time, its refill rate
        ("bucket", np.float64),
        ("tokens", np.float64),
        ("token_time", np.float64),
        ("token_rate", np.float64),
    ],
    align=True,
)


PAGE = np.dtype(
    [
        ("importance", np.float64),
        ("changes", np.int32),
        ("signals", np.int32),
        ("changed", np.int8),
        ("probed", np.int8),
        ("alive", np.bool_),
    ],
    align=True,
)
EVENT = np.dtype([("time", np.float64), ("code", np.int64)], align=True)
ALIAS = np.dtype([("cut", np.float64), ("other", np.int32)], align=True)
SIGNAL_ENTRY = np.dtype(
    [("time", np.float64), ("page", np.int64), ("source", np.int64)], align=True
)
CRAWL_ENTRY = np.dtype(
    [
        ("page", np.int64),
        ("time", np.float64),
        ("elapsed", np.float64),
        ("signals", np.int64),
        ("changed", np.bool_),
        ("probe", np.bool_),
    ],
    align=True,
)

Records: TypeAlias = NDArray[Any]


class State(NamedTuple):
    """N worlds of m pages, as arrays of records.

    C is the number of sources if signals are counted by source, and 0 for a single one. M is m if
    penalties are counted, else 0. A is m if pages are crawled at random instants, else 0.

    Attributes:
        lanes: LANE, (N,).
        clock: rows (start, crawls before, bandwidth), (N, S, 3).
        stream: the generator's state, (N, 4) words.
        last_crawl: start of each page's elapsed time, (N, m).
        pages: PAGE, (N, m): importance, changes and signals since ``last_crawl``, whether the last
            crawl found a change (-1 none yet), whether the last probe since then did (-1 none),
            whether the page exists.
        alive_at_start: mask of the pages that exist at time 0, (m,).
        tape: EVENT, (N, E): per lane a block of drawn events or a whole recorded tape; or (1, E)
            recorded ones for all lanes.
        alias: ALIAS, (N, K m), alias table of (page, kind); K kinds, a power of two.
        pending: EVENT, (N, P), a heap of the signals under way.
        signal_log: SIGNAL_ENTRY, (N, L); the first ``logged`` arrived in the current slot.
        crawl_log: CRAWL_ENTRY, (N, B); the first ``slot_crawls`` were made at its start.
        outcomes: outcomes of the last slot, (NUM_OUTCOMES, N).
        shown: observation of each page, [lane, feature, page] float32, (N, F, m).
        source_signals: signals since ``last_crawl`` by source and page, (N, C, m) int32.
        crawl_signals: signals of the crawls in ``crawl_log`` by source, (N, C, B) int32.
        increments: first increments of the penalty, (K,); see
            :func:`crawl_envs.sim.penalties.increment`. K = 0 counts no penalty.
        penalty: the penalty of each page's changes since ``last_crawl``, (N, M).
        crawl_alias: ALIAS, (N, A), alias table of the pages of random crawls.
        chances: probability of a crawl at a signal, (N, A).
        rng: state of the generator of random crawls, (N, 4) words.
    """

    lanes: Records
    clock: FloatArray
    stream: UintArray
    last_crawl: FloatArray
    pages: Records
    alive_at_start: NDArray[np.bool_]
    tape: Records
    alias: Records
    pending: Records
    signal_log: Records
    crawl_log: Records
    outcomes: FloatArray
    shown: NDArray[np.float32]
    source_signals: NDArray[np.int32]
    crawl_signals: NDArray[np.int32]
    increments: FloatArray
    penalty: FloatArray
    crawl_alias: Records
    chances: FloatArray
    rng: UintArray


FRESHNESS, HITS, REQUESTS, CRAWLS, PENALTY, DENIED, DECLARED = range(7)
NUM_OUTCOMES = 7
"""Rows of the outcomes."""
DIVERGENCE, FRAGMENTS = NUM_OUTCOMES, NUM_OUTCOMES + 1
"""Further rows for pages with fragments: the mean divergence of copies, and 1 minus it."""

ARRAY_DTYPES = (
    LANE,
    np.dtype(np.float64),
    np.dtype(np.uint64),
    np.dtype(np.float64),
    PAGE,
    np.dtype(np.bool_),
    EVENT,
    ALIAS,
    EVENT,
    SIGNAL_ENTRY,
    CRAWL_ENTRY,
    np.dtype(np.float64),
    np.dtype(np.float32),
    np.dtype(np.int32),
    np.dtype(np.int32),
    np.dtype(np.float64),
    np.dtype(np.float64),
    ALIAS,
    np.dtype(np.float64),
    np.dtype(np.uint64),
)
"""Element types of the arrays of a State, which kernels assume."""


def address_table(state: State) -> IntArray:
    """Return the table of a state: a row (address, shape padded by zeros) per array, (20, 4)."""
    table = np.zeros((len(state), 4), np.int64)
    arrays: tuple[NDArray[Any], ...] = tuple(state)
    for row, (array, dtype) in enumerate(zip(arrays, ARRAY_DTYPES, strict=True)):
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        table[row, 0] = array.ctypes.data
        table[row, 1 : 1 + array.ndim] = array.shape
    return table


def _pointer_to(typing_context: Any, address: Any) -> Any:
    """Turn an address into a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


pointer_to: Any = intrinsic(_pointer_to)


@compiled(forceinline=True)
def state_at(table: IntArray) -> State:
    """Return the state of a table; its arrays are valid as long as their owner keeps them alive."""
    num_lanes, num_pages = table[3, 1], table[3, 2]
    return State(
        carray(pointer_to(table[0, 0]), (num_lanes,), LANE),
        carray(pointer_to(table[1, 0]), (num_lanes, table[1, 2], 3), np.float64),
        carray(pointer_to(table[2, 0]), (num_lanes, 4), np.uint64),
        carray(pointer_to(table[3, 0]), (num_lanes, num_pages), np.float64),
        carray(pointer_to(table[4, 0]), (num_lanes, num_pages), PAGE),
        carray(pointer_to(table[5, 0]), (num_pages,), np.bool_),
        carray(pointer_to(table[6, 0]), (table[6, 1], table[6, 2]), EVENT),
        carray(pointer_to(table[7, 0]), (num_lanes, table[7, 2]), ALIAS),
        carray(pointer_to(table[8, 0]), (num_lanes, table[8, 2]), EVENT),
        carray(pointer_to(table[9, 0]), (num_lanes, table[9, 2]), SIGNAL_ENTRY),
        carray(pointer_to(table[10, 0]), (num_lanes, table[10, 2]), CRAWL_ENTRY),
        carray(pointer_to(table[11, 0]), (NUM_OUTCOMES, num_lanes), np.float64),
        carray(pointer_to(table[12, 0]), (num_lanes, table[12, 2], num_pages), np.float32),
        carray(pointer_to(table[13, 0]), (num_lanes, table[13, 2], num_pages), np.int32),
        carray(pointer_to(table[14, 0]), (num_lanes, table[14, 2], table[14, 3]), np.int32),
        carray(pointer_to(table[15, 0]), (table[15, 1],), np.float64),
        carray(pointer_to(table[16, 0]), (num_lanes, table[16, 2]), np.float64),
        carray(pointer_to(table[17, 0]), (num_lanes, table[17, 2]), ALIAS),
        carray(pointer_to(table[18, 0]), (num_lanes, table[18, 2]), np.float64),
        carray(pointer_to(table[19, 0]), (num_lanes, 4), np.uint64),
    )
