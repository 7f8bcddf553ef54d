"""A learned index as compiled values, and the tables that they read.

A table has a row per page and, beyond the last page, one per moving input and one for the output:
the weights that all pages share. What the inputs that stand still give is summed in a page's row.
"""

from __future__ import annotations

import math

import numpy as np

from agents.evolution.index.inputs import (
    FLOOR,
    MOVING,
    IndexWeights,
    page_scales,
    relative_importance,
    standing_inputs,
)
from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.compiling import VALUE, compiled
from policies.values.kernels import greedy_ncis_value
from policies.values.series import TERMS
from policies.values.tables import greedy_ncis_table

PACE, QUICK, HEARD, DIRECT, UNITS = range(5)
"""Columns: 1 / T; the scale of time over T; that of signals; what the score has without any unit;
the first unit. They come after others."""
OWN = 1
"""Columns before them where the index is learned: the importance relative to the mean."""
CORRECTED = TERMS
"""Columns before them where a value is corrected: those of GREEDY-NCIS."""
SHARED = len(MOVING) + 1
"""Rows beyond the pages."""
LARGEST_SCORE = 200.0
"""Scores are cut here, so that values are finite and positive."""
LARGEST_CORRECTION = math.log(3.0)
"""A correction is a factor in [1/3, 3]."""


@compiled()
def page_score(table: FloatArray, first: int, page: int, elapsed: float, signals: float) -> float:
    """Return a page's score; ``first`` columns of the table are not the network's."""
    age = elapsed * table[page, first + PACE]
    quick = elapsed * table[page, first + QUICK]
    heard = signals * table[page, first + HEARD]
    log_age, quick = math.log(FLOOR + age), quick / (1.0 + quick)
    log_heard, heard = math.log1p(heard), heard / (1.0 + heard)
    row = table.shape[0] - SHARED
    score: float = table[page, first + DIRECT]
    score += table[row, first + DIRECT] * log_age
    score += table[row + 1, first + DIRECT] * quick
    score += table[row + 2, first + DIRECT] * log_heard
    score += table[row + 3, first + DIRECT] * heard
    for column in range(first + UNITS, table.shape[1]):
        unit = table[page, column]
        unit += table[row, column] * log_age
        unit += table[row + 1, column] * quick
        unit += table[row + 2, column] * log_heard
        unit += table[row + 3, column] * heard
        score += table[row + 4, column] * unit / (1.0 + abs(unit))
    return score


@compiled(VALUE.signature)
def learned_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """The importance times the exponential of the score."""
    importance: float = parameters[page, 0]
    score = page_score(parameters, OWN, page, elapsed, signals)
    return importance * math.exp(min(max(score, -LARGEST_SCORE), LARGEST_SCORE))


@compiled(VALUE.signature)
def corrected_value(parameters: FloatArray, page: int, elapsed: float, signals: float) -> float:
    """V_GREEDY_NCIS times a factor in [1/3, 3], the exponential of the score."""
    score = page_score(parameters, CORRECTED, page, elapsed, signals)
    factor = math.exp(min(max(score, -LARGEST_CORRECTION), LARGEST_CORRECTION))
    return greedy_ncis_value(parameters, page, elapsed, signals) * factor


def learned_table(problem: Problem, weights: IndexWeights, cycle: float) -> FloatArray:
    """The table of :func:`learned_value`, (m + SHARED, OWN + UNITS + H).

    Args:
        problem: with all its parameters, and one source of signals.
        weights: of an index of H hidden units.
        cycle: T, > 0.
    """
    return _table(problem, weights, cycle, relative_importance(problem)[:, None])


def corrected_table(problem: Problem, weights: IndexWeights, cycle: float) -> FloatArray:
    """The table of :func:`corrected_value`, (m + SHARED, CORRECTED + UNITS + H)."""
    assert problem.change_rate is not None
    assert problem.recall is not None
    assert problem.false_signal_rate is not None
    ncis = greedy_ncis_table(
        problem.importance, problem.change_rate, problem.recall, problem.false_signal_rate
    )
    return _table(problem, weights, cycle, ncis)


def _table(problem: Problem, weights: IndexWeights, cycle: float, before: FloatArray) -> FloatArray:
    """The network's columns, after those of ``before``, (m, first)."""
    standing, network = standing_inputs(problem, cycle), weights.network
    num_pages, first = before.shape
    fixed = standing.shape[0]
    scales = page_scales(standing, weights.scales)
    table = np.zeros((num_pages + SHARED, first + UNITS + network.bias.size))
    table[:num_pages, :first] = before
    table[:num_pages, first + PACE] = 1.0 / cycle
    table[:num_pages, first + QUICK] = scales[0] / cycle
    table[:num_pages, first + HEARD] = scales[1]
    table[:num_pages, first + DIRECT] = network.skip[:fixed] @ standing
    table[:num_pages, first + UNITS :] = standing.T @ network.inner[:, :fixed].T + network.bias
    table[num_pages:-1, first + DIRECT] = network.skip[fixed:]
    table[num_pages:-1, first + UNITS :] = network.inner[:, fixed:].T
    table[-1, first + UNITS :] = network.outer
    return table
