"""Penalties C(n) of n undetected changes of a page, concave in n.

A penalty is given by its first increments C(n + 1) - C(n). Later increments decrease like 1 / n
from the last one. So the harmonic penalty H(n) = 1 + 1/2 + ... + 1/n of Kolobov et al. (2019,
eq. 2) is the single increment 1, and the binary one, 1 for n > 0, is the pair 1, 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.sim.state import State
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import floats
from crawl_envs.types.compiling import compiled

Penalty: TypeAlias = str | Sequence[float] | FloatArray

NAMED = {"binary": (1.0, 0.0), "harmonic": (1.0,)}
LARGEST = 1e100
"""Largest number in a table; its sums over pages and time are finite."""
ROUNDING = 1e-12
"""Share of the first increment by which a later one may exceed the one before it."""


def penalty_increments(penalty: Penalty, name: str = "objective") -> FloatArray:
    """Return the first increments of a penalty.

    Args:
        penalty: ``harmonic``, ``binary``, or a table C(0), C(1), .., C(K) of at least two numbers
            that starts at 0, does not fall and is concave. More than K changes cost C(K).
        name: name of the penalty in error messages.

    Raises:
        ValueError: an unknown name, or not such a table.
    """
    if isinstance(penalty, str):
        if penalty not in NAMED:
            raise ValueError(f"{name} must be one of {tuple(NAMED)} or a table, got {penalty!r}")
        return np.array(NAMED[penalty])
    table = _table(penalty, name)
    steps = np.append(np.diff(table), 0.0)
    if table[0] != 0.0 or steps[0] <= 0.0:
        raise ValueError(f"{name} must be a table that rises from 0, got {penalty!r}")
    if np.any(steps < 0.0) or np.any(np.diff(steps) > ROUNDING * steps[0]):
        raise ValueError(f"{name} must be a table that is concave, got {penalty!r}")
    return steps


def _table(penalty: ArrayLike, name: str) -> FloatArray:
    """Return a table as an array of numbers up to LARGEST; ValueError otherwise."""
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


@compiled(forceinline=True)
def increment(increments: FloatArray, changes: int) -> float:
    """Return C(changes + 1) - C(changes)."""
    known = increments.shape[0]
    if changes < known:
        return float(increments[changes])
    return float(increments[known - 1] * known / (changes + 1))


@compiled(forceinline=True)
def add_penalty(state: State, lane: int, number: int) -> None:
    """Add the increment of the last counted change to a page's penalty."""
    page = state.pages[lane, number]
    more = increment(state.increments, page.changes - 1)
    state.penalty[lane, number] += more
    state.lanes[lane].penalty_weight += page.importance * more


@compiled(forceinline=True)
def clear_penalty(state: State, lane: int, number: int) -> None:
    """Reset a page's penalty to 0."""
    record: Any = state.lanes[lane]
    record.penalty_weight -= state.pages[lane, number].importance * state.penalty[lane, number]
    state.penalty[lane, number] = 0.0
