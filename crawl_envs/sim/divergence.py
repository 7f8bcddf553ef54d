"""The divergence of held copies from live pages, and its integral over time.

Every page has a divergence D >= 0. The account of a lane is the sum over existing pages of weight
times D, and its integral over time. Three functions say what D is after an event or a crawl:

- *penalty*: C(n) of n undetected changes, concave in n, given by its first increments
  C(n + 1) - C(n). Later increments decrease like 1 / n from the last one. So the harmonic penalty
  H(n) = 1 + 1/2 + ... + 1/n of Kolobov et al. (2019, eq. 2) is the single increment 1, and the
  binary one, 1 for n > 0, is the pair 1, 0. The weight of a page is its importance.
- *fragments*: the Jaccard distance of live and held fragments (Olston and Pandey 2008, eq. 3). No
  sets are built: an event only checks whether its fragments were present when a copy was made. The
  weight is the importance.
- *price*: 1 if the held price is not the true one (Han et al. 2020). The weight is 1, so that the
  sum is the number of wrong prices; importance weights freshness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.array_tables import Records
from crawl_envs.compiled.compiling import inlined
from crawl_envs.sim.state import State
from crawl_envs.sim.versions import jaccard, was_present
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import floats, one_of

Penalty: TypeAlias = str | Sequence[float] | FloatArray

NAMED = {"binary": (1.0, 0.0), "harmonic": (1.0,)}
LARGEST = 1e100
"""Largest number in a table of penalties, so that sums over pages and time are finite."""
ROUNDING = 1e-12
"""Rounding tolerance of increments that must not rise, as a share of the first one."""


def penalty_increments(penalty: Penalty, name: str = "objective") -> FloatArray:
    """Return the first increments C(n + 1) - C(n) of the penalty C of n undetected changes.

    Args:
        penalty: ``harmonic``, ``binary``, or a table C(0), C(1), .., C(K) of at least two numbers
            that starts at 0, does not fall and is concave. More than K changes cost C(K).
        name: name of the penalty in error messages.

    Raises:
        ValueError: an unknown name, or not such a table.
    """
    if isinstance(penalty, str):
        one_of(name, penalty, NAMED, "a table")
        return np.array(NAMED[penalty])
    table = _table(penalty, name)
    steps = np.append(np.diff(table), 0.0)
    if table[0] != 0.0 or steps[0] <= 0.0:
        raise ValueError(f"{name} must be a table that rises from 0, got {penalty!r}")
    if np.any(steps < 0.0) or np.any(np.diff(steps) > ROUNDING * steps[0]):
        raise ValueError(f"{name} must be a table that is concave, got {penalty!r}")
    return steps


def _table(penalty: ArrayLike, name: str) -> FloatArray:
    """Return a penalty's table as an array; ValueError unless its numbers are up to LARGEST."""
    try:
        table = floats(name, penalty)
    except ValueError:
        table = np.zeros(0)
    if table.ndim != 1 or table.size < 2 or not np.all(np.abs(table) <= LARGEST):
        raise ValueError(
            f"{name} must be one of {tuple(NAMED)} or a table of at least two numbers up to "
            f"{LARGEST:g}, got {penalty!r}"
        )
    return table


# The account


@inlined(forceinline=True)
def integrate_divergence(record: Any, now: float) -> None:
    """Add a lane's divergence, and its pages' weight, over the time up to ``now`` to its totals."""
    passed = now - record.divergence_since
    record.slot_divergence += passed * record.divergence_weight
    record.slot_divergent += passed * record.divergent_weight
    record.divergence_since = now


@inlined(forceinline=True)
def increment(increments: FloatArray, changes: int) -> float:
    """Return the penalty of one more undetected change, C(changes + 1) - C(changes)."""
    known = increments.shape[0]
    if changes < known:
        return float(increments[changes])
    return float(increments[known - 1] * known / (changes + 1))


@inlined("divergence", forceinline=True)
def diverge(state: State, lane: int, number: int) -> None:
    """Add the latest change of a page, already in its count, to the page's divergence."""
    page, record = state.pages[lane, number], state.lanes[lane]
    integrate_divergence(record, record.time)
    if state.increments.shape[0] > 0:
        more = increment(state.increments, page.changes - 1)
        record.divergence_weight += page.importance * more
        state.divergence[lane, number] += more
    elif state.copies.shape[1] > 0 and np.isnan(state.copies[lane, number].first_change):
        state.copies[lane, number].first_change = record.time


@inlined("divergence", forceinline=True)
def converge(state: State, lane: int, number: int) -> None:
    """Set the divergence of a page to 0, because its held copy equals the live page."""
    record, weight = state.lanes[lane], state.pages[lane, number].importance
    if state.prices.shape[1] > 0:
        weight = 1.0
    integrate_divergence(record, record.time)
    record.divergence_weight -= weight * state.divergence[lane, number]
    state.divergence[lane, number] = 0.0


# Fragments


@inlined(forceinline=True)
def measure_copy(state: State, lane: int, number: int) -> None:
    """Compute the divergence of a page's copy from its counts of live, held, common fragments."""
    record, page, copy = state.lanes[lane], state.pages[lane, number], state.copies[lane, number]
    old, now = state.divergence[lane, number], record.time
    new = jaccard(copy.live, copy.held, copy.common) if page.alive else 0.0
    copy.area += old * (now - copy.since)
    copy.since = now
    record.divergence_weight += page.importance * (new - old)
    state.divergence[lane, number] = new


@inlined(forceinline=True)
def note_change(state: State, lane: int, copy: Any) -> None:
    """Integrate the divergence up to a change of a page; store the time of its first change."""
    record: Any = state.lanes[lane]
    integrate_divergence(record, record.time)
    if np.isnan(copy.first_change):
        copy.first_change = record.time


@inlined("copies")
def change_fragments(state: State, lane: int, number: int, spell: int, sign: int) -> None:
    """Let the fragments of a recorded spell appear (``sign`` 1) on a page, or disappear (-1)."""
    copy, bases, spells = state.copies[lane, number], state.bases[lane, number], state.spells[0]
    note_change(state, lane, copy)
    size = sign * spells[spell].size
    copy.live += size
    copy.common += size * was_present(spells, spell, copy.made)
    for slot in range(bases.shape[0]):
        bases[slot].common += size * was_present(spells, spell, bases[slot].made)
    measure_copy(state, lane, number)


@inlined("copies")
def update_fragments(state: State, lane: int, number: int, size: int, since: float) -> None:
    """Replace ``size`` fragments of a page, present since the time ``since``, by as many new ones.

    A missing base version has the time NaN, which is later than no time, so it needs no special
    case.
    """
    record, page = state.lanes[lane], state.pages[lane, number]
    copy, bases = state.copies[lane, number], state.bases[lane, number]
    note_change(state, lane, copy)
    copy.live -= size
    copy.common -= size * (since < copy.made)
    for slot in range(bases.shape[0]):
        bases[slot].common -= size * (since < bases[slot].made)
    measure_copy(state, lane, number)
    copy.live += size
    measure_copy(state, lane, number)
    record.fresh_weight -= page.importance * (page.changes == 0)
    record.changes += 1
    page.changes += 1


@inlined(forceinline=True)
def renew_copy(copy: Any, now: float, made: float) -> None:
    """Replace a held copy by the live page at time ``now``; ``made`` is the time of its version."""
    copy.made, copy.held, copy.common = made, copy.live, copy.live
    copy.area, copy.since, copy.first_change = 0.0, now, np.nan


@inlined(forceinline=True)
def forget_bases(bases: Records) -> None:
    """Remove all base versions of a page: the earlier copies that new copies are compared with."""
    for slot in range(bases.shape[0]):
        bases[slot].made, bases[slot].divergence, bases[slot].age = np.nan, np.nan, np.nan


@inlined("copies", forceinline=True)
def crawl_fragments(state: State, lane: int, number: int) -> None:
    """Replace a page's held copy by its live version, and compare it with the base versions."""
    copy, bases = state.copies[lane, number], state.bases[lane, number]
    now = state.lanes[lane].time
    for slot in range(bases.shape[0] - 1, 0, -1):
        bases[slot] = bases[slot - 1]
    if bases.shape[0] > 0:
        bases[0].made, bases[0].held, bases[0].common = copy.made, copy.held, copy.common
    renew_copy(copy, now, now)
    for slot in range(bases.shape[0]):
        base = bases[slot]
        if np.isnan(base.made):
            break
        base.age = now - base.made
        base.divergence = jaccard(copy.live, base.held, base.common)


@inlined("copies")
def restart_fragments(state: State, lane: int) -> None:
    """Give all pages of a lane copies that equal the live pages at time 0, and no base versions."""
    for number in range(state.copies.shape[1]):
        copy = state.copies[lane, number]
        copy.live = copy.first
        renew_copy(copy, 0.0, 0.0)
        forget_bases(state.bases[lane, number])


# Prices


@inlined("prices")
def change_price(state: State, lane: int, number: int, true: int) -> None:
    """Set the true price of an offer; the copy is fresh if it equals the held price, else stale."""
    record, page, price = state.lanes[lane], state.pages[lane, number], state.prices[lane, number]
    stale, wrong = page.changes > 0, true != price.held
    price.true = true
    record.changes += 1
    page.changes = (page.changes + 1) * wrong
    if stale != wrong:
        sign = 1.0 if wrong else -1.0
        integrate_divergence(record, record.time)
        record.fresh_weight -= sign * page.importance
        record.divergence_weight += sign
        state.divergence[lane, number] += sign
