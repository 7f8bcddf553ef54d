"""A learned index as a picture would show it: over elapsed time and signals, beside a formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.evolution.policy import FEATURES, LearnedIndex
from agents.evolution.stored import StoredIndex
from crawl_envs.types import FloatArray, IntArray, Problem
from policies.values import greedy_ncis_observed


class IndexPicture(NamedTuple):
    """A page's index, tabulated.

    Attributes:
        elapsed: the times since the last crawl, (A,).
        signals: the numbers of signals since then, (S,).
        learned: the learned index, (S, A); only its order counts, so it is multiplied by one
            number that brings its mean logarithm to the formula's.
        formula: V_GREEDY_NCIS at the same states, (S, A).
    """

    elapsed: FloatArray
    signals: IntArray
    learned: FloatArray
    formula: FloatArray


def index_picture(
    index: StoredIndex,
    problem: Problem,
    page: int,
    elapsed: Sequence[float] | FloatArray,
    signals: Sequence[int] | IntArray,
) -> IndexPicture:
    """Tabulate the index of a page beside V_GREEDY_NCIS.

    Args:
        index: what was learned.
        problem: with all its parameters, one source of signals, and the bandwidth.
        page: which page, in [0, m).
        elapsed: times, >= 0, (A,).
        signals: whole numbers >= 0, (S,).

    Raises:
        ValueError: no such page; times or signals outside their range; a problem that lacks
            parameters or has several sources.
    """
    if not 0 <= page < problem.num_pages:
        raise ValueError(f"page must lie in [0, {problem.num_pages}), got {page!r}")
    if problem.num_sources > 1:
        raise ValueError(f"problem must have one source of signals, got {problem.num_sources}")
    times, counts = np.array(elapsed, np.float64), np.array(signals, np.int64)
    policy = LearnedIndex(features=FEATURES, index=index)
    form = policy.compile(problem, 0, np.random.default_rng(0))
    model = {
        name: getattr(problem, name)[page]
        for name in ("importance", "change_rate", "recall", "false_signal_rate")
    }
    states = np.broadcast_arrays(times[None], counts[:, None])
    formula = greedy_ncis_observed(*states, **model)
    flat = zip(*(each.ravel() for each in states), strict=True)
    worth = [form.value(form.parameters, page, float(t), float(n)) for t, n in flat]
    learned = np.array(worth).reshape(formula.shape)
    both = (learned > 0.0) & (formula > 0.0)
    if both.any():
        learned *= math.exp(float(np.mean(np.log(formula[both]) - np.log(learned[both]))))
    return IndexPicture(times, counts, learned, formula)
