"""Tables of page constants for the values of pages with several sources of signals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import FloatArray
from crawl_envs.types.evidence import signal_evidence
from policies.values.series import ALPHA, SATURATED, TOP
from policies.values.sources import kernels as columns
from policies.values.sources.recursion import fill_knots
from policies.values.tables import broadcast_pages, greedy_table

KNOTS = 116
"""Knots of a page for its value, in single precision: 1,392 bytes."""

LENGTH_KNOTS = 400
"""Knots of a page for its cycle length, in double precision."""

BLOCK = 1024
"""Pages of one call of compiled code."""

NOISIEST = 1e100
"""Largest ratio of false signals to changes; keeps squares of b from underflow."""


@compiled()
def _fill(recall: FloatArray, noise: FloatArray, table: FloatArray, knots: FloatArray) -> None:
    """Fill in the knots of pages, (m, 3, K), and columns DRIFT to CERTAIN of their table rows.

    ``recall`` and ``noise``, in units of Delta, have shape (m, S).
    """
    for page in range(recall.shape[0]):
        constants = fill_knots(recall[page], noise[page], knots[page])
        for k in range(4):
            table[page, columns.DRIFT + k] = constants[k]


def _checked(
    importance: ArrayLike, change_rate: ArrayLike, recall: ArrayLike, false_signal_rate: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return checked importance and change rate, (m,), recall and false-signal rate, (S, m).

    Raises ValueError like :func:`greedy_ncis_sources_table`.
    """
    for name, array in (("recall", recall), ("false_signal_rate", false_signal_rate)):
        if np.ndim(array) != 2:
            raise ValueError(f"{name} must have shape (S, m), sources first, got {np.shape(array)}")
    mu, delta, lam, nu = broadcast_pages(importance, change_rate, recall, false_signal_rate)
    over = lam.sum(axis=0) > 1.0 + 1e-12
    if np.any(over):
        worst = lam[:, int(np.argmax(over))].tolist()
        raise ValueError(f"recall must sum to at most 1 over sources, got {worst}")
    return mu[0], delta[0], lam, nu


def greedy_ncis_sources_table(
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return the constants of pages that ``greedy_ncis_sources_value`` needs, one row per page.

    Args:
        importance: mu, >= 0, (m,) or a scalar.
        change_rate: Delta, >= 0, (m,) or a scalar.
        recall: lambda_s, in [0, 1] with a sum of at most 1, (S, m): sources come first.
        false_signal_rate: nu_s, >= 0, (S, m).

    Raises:
        ValueError: an argument is outside its range, or shapes do not broadcast.
    """
    return _table((importance, change_rate, recall, false_signal_rate), KNOTS, np.float32)


def level_table(
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
) -> FloatArray:
    """Return the constants that ``level_value`` and ``cycle_length_sources_value`` need.

    Arguments and errors are documented in :func:`greedy_ncis_sources_table`.
    """
    return _table((importance, change_rate, recall, false_signal_rate), LENGTH_KNOTS, np.float64)


def _table(parameters: tuple[ArrayLike, ...], number: int, precision: Any) -> FloatArray:
    """Return the table rows of pages, each with ``number`` knots of the dtype ``precision``."""
    mu, delta, lam, nu = _checked(*parameters)
    start = columns.EVIDENCES + lam.shape[0]
    table = np.zeros((mu.size, start + 3 * number * np.dtype(precision).itemsize // 8))
    table[:, TOP] = greedy_table(np.where(delta > 0.0, mu, 0.0), delta)[:, TOP]
    table[:, ALPHA] = np.maximum(0.0, 1.0 - lam.sum(axis=0)) * delta
    table[:, columns.START] = start
    table[:, columns.EVIDENCES : start] = np.minimum(signal_evidence(delta, lam, nu), SATURATED).T
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        noise = np.where(delta > 0.0, np.minimum(nu / delta, NOISIEST), 0.0)
    for first in range(0, mu.size, BLOCK):
        pages = slice(first, first + BLOCK)
        rows, knots = table[pages], np.empty((min(BLOCK, mu.size - first), 3, number))
        _fill(lam.T[pages].copy(), noise.T[pages].copy(), rows, knots)
        rows[:, start:] = knots.reshape(len(rows), -1).astype(precision).view(np.float64)
    return table
