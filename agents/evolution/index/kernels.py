"""A learned index as compiled values, and their tables.

A table has a row per page and, after the last page, one per dynamic input and one for the output:
the weights that all pages share. A page's row has the sums over its static inputs.
"""

from __future__ import annotations

import math

import numpy as np

from agents.evolution.index.inputs import (
    DYNAMIC,
    FLOOR,
    IndexWeights,
    page_scales,
    relative_importance,
    static_inputs,
)
from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.compiling import VALUE, compiled, inlined
from policies.values.kernels import greedy_ncis_value
from policies.values.series import TERMS
from policies.values.tables import greedy_ncis_table

PACE, TIME_SCALE, SIGNAL_SCALE, DIRECT, UNITS = range(5)
"""Columns: 1 / T; the scale of time over T; that of signals; the part of the score without hidden
units; the first unit. They come after others."""
OWN = 1
"""Number of columns before them in a learned index: the importance relative to the mean."""
CORRECTED = TERMS
"""Number of columns before them in a corrected value: those of GREEDY-NCIS."""
SHARED = len(DYNAMIC) + 1
"""Number of rows after the pages."""
LARGEST_SCORE = 200.0
"""Scores are clipped here, so that values are finite and positive."""
LARGEST_CORRECTION = math.log(3.0)
"""A correction is a factor in [1/3, 3]."""


@inlined()
def page_score(table: FloatArray, first: int, page: int, elapsed: float, signals: float) -> float:
    """Return a page's score; the network's columns begin at ``first``."""
    age = elapsed * table[page, first + PACE]
    scaled_age = elapsed * table[page, first + TIME_SCALE]
    scaled_count = signals * table[page, first + SIGNAL_SCALE]
    log_age, scaled_age = math.log(FLOOR + age), scaled_age / (1.0 + scaled_age)
    log_count, scaled_count = math.log1p(scaled_count), scaled_count / (1.0 + scaled_count)
    row = table.shape[0] - SHARED
    score: float = table[page, first + DIRECT]
    score += table[row, first + DIRECT] * log_age
    score += table[row + 1, first + DIRECT] * scaled_age
    score += table[row + 2, first + DIRECT] * log_count
    score += table[row + 3, first + DIRECT] * scaled_count
    for column in range(first + UNITS, table.shape[1]):
        unit = table[page, column]
        unit += table[row, column] * log_age
        unit += table[row + 1, column] * scaled_age
        unit += table[row + 2, column] * log_count
        unit += table[row + 3, column] * scaled_count
        score += table[row + 4, column] * unit / (1.0 + abs(unit))
    return score


@compiled(VALUE.signature)
def learned_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return the importance times the exponential of the score."""
    importance: float = parameters[page, 0]
    score = page_score(parameters, OWN, page, elapsed, signals)
    return importance * math.exp(min(max(score, -LARGEST_SCORE), LARGEST_SCORE))


@compiled(VALUE.signature)
def corrected_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """Return V_GREEDY_NCIS times a factor in [1/3, 3], the exponential of the score."""
    score = page_score(parameters, CORRECTED, page, elapsed, signals)
    factor = math.exp(min(max(score, -LARGEST_CORRECTION), LARGEST_CORRECTION))
    return greedy_ncis_value(parameters, page, elapsed, signals) * factor


def learned_table(problem: Problem, weights: IndexWeights, cycle: float) -> FloatArray:
    """Return the table of :func:`learned_value`, (m + SHARED, OWN + UNITS + H).

    Args:
        problem: with all its parameters, and one source of signals.
        weights: of an index of H hidden units.
        cycle: T, > 0.
    """
    return _table(problem, weights, cycle, relative_importance(problem)[:, None])


def corrected_table(problem: Problem, weights: IndexWeights, cycle: float) -> FloatArray:
    """Return the table of :func:`corrected_value`, (m + SHARED, CORRECTED + UNITS + H)."""
    assert problem.change_rate is not None
    assert problem.recall is not None
    assert problem.false_signal_rate is not None
    ncis = greedy_ncis_table(
        problem.importance, problem.change_rate, problem.recall, problem.false_signal_rate
    )
    return _table(problem, weights, cycle, ncis)


def _table(problem: Problem, weights: IndexWeights, cycle: float, before: FloatArray) -> FloatArray:
    """Return the table of ``before``, (m, first), and the network's columns after it."""
    static, network = static_inputs(problem, cycle), weights.network
    num_pages, first = before.shape
    fixed = static.shape[0]
    scales = page_scales(static, weights.scales)
    table = np.zeros((num_pages + SHARED, first + UNITS + network.bias.size))
    table[:num_pages, :first] = before
    table[:num_pages, first + PACE] = 1.0 / cycle
    table[:num_pages, first + TIME_SCALE] = scales[0] / cycle
    table[:num_pages, first + SIGNAL_SCALE] = scales[1]
    table[:num_pages, first + DIRECT] = network.skip[:fixed] @ static
    table[:num_pages, first + UNITS :] = static.T @ network.inner[:, :fixed].T + network.bias
    table[num_pages:-1, first + DIRECT] = network.skip[fixed:]
    table[num_pages:-1, first + UNITS :] = network.inner[:, fixed:].T
    table[-1, first + UNITS :] = network.outer
    return table
