"""The arrays of a batch of worlds: one record per lane, and other arrays with a row per lane.

:class:`State` is their only specification: names, element types and axes. Its arrays are never
rebound, so a copy of them is a copy of the worlds. Kernels receive its table
(:mod:`crawl_envs.compiled.array_tables`); its owner is :class:`crawl_envs.sim.world.World`.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray

from crawl_envs.compiled.array_tables import (
    Kinds,
    Records,
    SmallArray,
    fields_of,
    read_table,
    type_of,
    zeros,
)
from crawl_envs.sim.streams import UintArray
from crawl_envs.types import BoolArray, FloatArray, IntArray

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
        # slot of the first decision, slots per decision, largest elapsed time that observations
        # show, whether pages are born and die
        ("first_slot", np.int64),
        ("batch", np.int64),
        ("max_elapsed", np.float64),
        # with costs of crawls: how they are paid, and the largest integral of the bandwidth at a
        # decision
        ("payment", np.int64),
        ("budget", np.float64),
        ("mortal", np.bool_),
        # before the episode: integral of the bandwidth, or number of epochs; crawls so far of the
        # round of crawls; then the time at which the episode begins, -1 before it
        ("lead", np.float64),
        ("turn", np.int64),
        ("origin", np.float64),
        # sums over existing pages: importance, importance if fresh, weight, and weight times
        # divergence; time up to which the last two sums are integrated
        ("alive_weight", np.float64),
        ("fresh_weight", np.float64),
        ("divergent_weight", np.float64),
        ("divergence_weight", np.float64),
        ("divergence_since", np.float64),
        # the current slot: integrals over time of these sums, and numbers of events
        ("slot_alive", np.float64),
        ("slot_fresh", np.float64),
        ("slot_divergence", np.float64),
        ("slot_divergent", np.float64),
        ("slot_requests", np.int64),
        ("slot_hits", np.int64),
        ("slot_crawls", np.int64),
        ("slot_denied", np.int64),
        ("slot_spend", np.float64),
        ("logged", np.int64),
        ("reshaped", np.bool_),
        # the ledger
        ("fresh_time", np.float64),
        ("alive_time", np.float64),
        ("divergence_time", np.float64),
        ("requests", np.int64),
        ("hits", np.int64),
        ("crawls", np.int64),
        ("denied", np.int64),
        ("spend", np.float64),
        ("wasted", np.int64),
        ("changes", np.int64),
        ("changes_found", np.int64),
        ("signals", np.int64),
        # the tape, and whether its events are given day by day
        ("cursor", np.int64),
        ("length", np.int64),
        ("recorded", np.bool_),
        ("by_day", np.bool_),
        ("column_bits", np.int64),
        ("mean_gap", np.float64),
        ("next_time", np.float64),
        ("next_code", np.int64),
        ("delay_kind", np.int64),
        ("delay_mean", np.float64),
        ("delay_quantum", np.float64),
        # crawls at random instants: root of their stream, total rate, time of the next crawl, and,
        # while the rate is 0, the rest of the unit exponential until it
        ("rng_root", np.uint64),
        ("crawl_rate", np.float64),
        ("crawl_due", np.float64),
        ("hazard", np.float64),
        # token bucket: size, tokens at the time ``token_time``, this time, refill rate
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
        # changes and signals since ``last_crawl``; whether the last crawl found a change, -1 before
        # the first; whether the page exists
        ("changes", np.int32),
        ("signals", np.int32),
        ("changed", np.int8),
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
    ],
    align=True,
)
SPELL = np.dtype(
    [
        ("birth", np.float64),
        ("death", np.float64),
        ("key", np.uint64),
        ("size", np.int32),
        ("earlier", np.int32),
    ],
    align=True,
)
COPY = np.dtype(
    [
        # numbers of fragments: of the live page at time 0 and now, of the held copy, of both the
        # live page and the copy; time of the copy
        ("first", np.int32),
        ("live", np.int32),
        ("held", np.int32),
        ("common", np.int32),
        ("made", np.float64),
        # integral of the copy's divergence up to ``since``; time of the page's first change
        ("area", np.float64),
        ("since", np.float64),
        ("first_change", np.float64),
    ],
    align=True,
)
BASE = np.dtype(
    [
        # time of a base version, NaN for none; number of its fragments, and of those still live
        ("made", np.float64),
        ("held", np.int32),
        ("common", np.int32),
        # divergence and age of the held copy relative to it
        ("divergence", np.float64),
        ("age", np.float64),
    ],
    align=True,
)
PRICES = np.dtype([("true", np.int32), ("held", np.int32)], align=True)


class State(NamedTuple):
    """The arrays of N worlds of m pages; each annotation has an array's element type and axes.

    Axes of one name have one length, which is 0 where a world lacks an optional part: C sources of
    signals, if several, I increments of a penalty, D pages with a divergence, Q pages crawled at
    random instants, V pages with prices, G pages of fragments with h base versions, P pages with
    costs of crawls.
    """

    lanes: Annotated[Records, LANE, "N"]
    clock: Annotated[FloatArray, np.float64, "N clock_rows 3"]  # see crawl_envs.sim.clock
    stream: Annotated[UintArray, np.uint64, "N 4"]  # states of the generators of tapes
    last_crawl: Annotated[FloatArray, np.float64, "N m"]  # start of each page's elapsed time
    pages: Annotated[Records, PAGE, "N m"]
    alive_at_start: Annotated[BoolArray, np.bool_, "tapes m"]  # the pages that exist at time 0
    # per lane a block of drawn events or a whole recorded tape, or one for all lanes; the spell,
    # price or number of fragments of each event; the time since which the fragments that an update
    # replaces were there
    tape: Annotated[Records, EVENT, "tapes events"]
    detail: Annotated[SmallArray, np.int32, "tapes details"]
    since: Annotated[FloatArray, np.float64, "tapes updates"]
    alias: Annotated[Records, ALIAS, "N columns"]  # of (page, kind), with a power of two kinds
    # the signals under way, an IndexedHeap of entries by arrival
    pending_due: Annotated[FloatArray, np.float64, "N pending"]
    pending_code: Annotated[IntArray, np.int64, "N pending"]
    pending_entry: Annotated[IntArray, np.int64, "N pending"]
    pending_place: Annotated[IntArray, np.int64, "N pending"]
    pending_size: Annotated[IntArray, np.int64, "N 1"]
    # the first ``logged`` signals arrived, and the first ``slot_crawls`` crawls were made, in the
    # current slot
    signal_log: Annotated[Records, SIGNAL_ENTRY, "N logged"]
    crawl_log: Annotated[Records, CRAWL_ENTRY, "N crawled"]
    outcomes: Annotated[FloatArray, np.float64, "outcomes N"]  # of the last slot
    observations: Annotated[NDArray[np.float32], np.float32, "N F m"]
    # signals by source: since ``last_crawl``, and of the crawls in ``crawl_log``
    source_signals: Annotated[SmallArray, np.int32, "N C m"]
    crawl_signals: Annotated[SmallArray, np.int32, "N C crawled"]
    # what these crawls observe: prices, and the base versions of copies
    crawl_prices: Annotated[SmallArray, np.int32, "N crawled"]
    crawl_bases: Annotated[Records, BASE, "N crawled h"]
    increments: Annotated[FloatArray, np.float64, "I"]  # of the penalty of undetected changes
    divergence: Annotated[FloatArray, np.float64, "N D"]  # of each page's copy
    # crawls at random instants: alias tables of pages, probabilities at a signal, generators
    crawl_alias: Annotated[Records, ALIAS, "N Q"]
    chances: Annotated[FloatArray, np.float64, "N Q"]
    rng: Annotated[UintArray, np.uint64, "N 4"]
    # first spell of each page, and the end of the last, 0 where spells are not drawn yet; spells by
    # page, in order of birth
    spell_start: Annotated[IntArray, np.int64, "contents starts"]
    spells: Annotated[Records, SPELL, "contents spells"]
    copies: Annotated[Records, COPY, "N G"]
    bases: Annotated[Records, BASE, "N G h"]  # base versions of the copies, the latest first
    prices: Annotated[Records, PRICES, "N V"]
    cost: Annotated[FloatArray, np.float64, "N P"]  # of a crawl of each page


FIELDS = fields_of(State)

GROWING = {"clock_rows", "events", "details", "updates", "pending", "logged", "crawled", "spells"}
"""Names of the axes whose lengths grow as needed."""

KINDS: Kinds = {
    np.uint64: ("pending", "Q", "D", "V", "G", "P"),  # pages that are fresh or stale
    np.uint32: ("pending", "V", "G", "P"),  # with penalties, or crawls at random instants
    np.uint16: ("columns", "pending", "V", "G", "P"),  # recorded
    np.uint8: ("columns", "pending", "V", "P"),  # of fragments
    np.int8: ("columns", "pending", "G", "P"),  # offers
}
"""Axes that are empty in each kind of world, by the dtype of its table; others: int64."""

FRESHNESS, HITS, REQUESTS, CRAWLS, DIVERGENCE, DENIED, DECLARED, SIMILARITY, SPEND = range(9)
NUM_OUTCOMES = 9
"""Number of rows of the outcomes of a slot, named above.

SIMILARITY is 1 - DIVERGENCE, SPEND the cost of the crawls.
"""

BY_WAITING, BY_BATCH, UNPAID = range(3)
"""How crawls are paid: the next decision comes later by the cost; a batch ends at its bandwidth; or
not at all."""


def new_state(lengths: dict[str, int]) -> State:
    """Return a State of zeros; ``lengths`` has the length of each axis by name, else 0."""
    return State(*zeros(FIELDS, {"outcomes": NUM_OUTCOMES, **lengths}))


def _state_at(typing_context: Any, table: Any) -> Any:
    """Type the intrinsic that turns a table of addresses into the State of compiled code."""
    return read_table(type_of("State", FIELDS, table, KINDS), table)


state_at: Any = intrinsic(_state_at)
"""Return the State of a table; its arrays are valid as long as their owner keeps them alive."""
