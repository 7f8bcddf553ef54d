"""What a learned index is told of a page: numbers without a unit, the same for any number of pages.

Time is measured in cycles T = m / R, in which every page could be crawled once, and importance in
its mean over the pages. There is no crawl value among the inputs, nor the probability that a page
is fresh. How fast time counts on a page, and how much a signal, is learned: two scales, whose
logarithms are linear in what stands still.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from agents.evolution.network import Weights, hidden_units, network_of
from crawl_envs.types import FloatArray, Problem

FLOOR = 0.05
"""Added to what a logarithm is taken of."""

STANDING = (
    *("log_importance", "log_change_rate", "log_unsignalled_rate", "log_signalled_rate"),
    *("log_false_signal_rate", "recall", "precision"),
)
"""Inputs that stay as they are between crawls."""
MOVING = ("log_elapsed", "scaled_elapsed", "log_signals", "scaled_signals")
"""Inputs that rise between crawls."""
INPUTS = (*STANDING, *MOVING)
RISING = np.array([name in MOVING for name in INPUTS])
"""In which inputs the index must not decrease, (K,)."""
SCALES = 2 * (len(STANDING) + 1)
"""How many weights the two scales have."""
LARGEST_LOG_SCALE = 10.0


class IndexWeights(NamedTuple):
    """The weights of an index: ``scales`` (2, len(STANDING) + 1), constants last, and ``network``.

    The first scale is that of elapsed time, the second that of signals.
    """

    scales: FloatArray
    network: Weights


def weights_of(free: FloatArray) -> IndexWeights:
    """The weights of an index from free numbers, (SCALES + H (K + 2) + K,).

    Raises:
        ValueError: no index has so many weights.
    """
    hidden_units(free.size - SCALES, len(INPUTS))
    return IndexWeights(free[:SCALES].reshape(2, -1).copy(), network_of(free[SCALES:], RISING))


def relative_importance(problem: Problem) -> FloatArray:
    """Importance over its mean, (m,); all 1 where nothing is important."""
    mean = float(problem.importance.mean())
    return problem.importance / mean if mean > 0.0 else np.ones(problem.num_pages)


def standing_inputs(problem: Problem, cycle: float) -> FloatArray:
    """The inputs that stay as they are, (len(STANDING), m).

    Args:
        problem: with all its parameters, and one source of signals.
        cycle: T, > 0.
    """
    assert problem.change_rate is not None
    assert problem.recall is not None
    assert problem.false_signal_rate is not None
    change, recall, false = problem.change_rate, problem.recall, problem.false_signal_rate
    true = recall * change
    heard = true + false
    precision = np.divide(true, heard, out=np.ones_like(true), where=heard > 0.0)
    rates = np.stack([change, (1.0 - recall) * change, true, false])
    weight = np.log(FLOOR + relative_importance(problem))
    return np.vstack([weight, np.log(FLOOR + rates * cycle), recall, precision])


def page_scales(standing: FloatArray, scales: FloatArray) -> FloatArray:
    """How fast time counts on each page, per cycle, and how much a signal; (2, m), > 0."""
    log_scale = scales[:, :-1] @ standing + scales[:, -1:]
    return np.exp(np.clip(log_scale, -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE))


def moving_inputs(
    elapsed: ArrayLike, signals: ArrayLike, cycle: float, scales: FloatArray
) -> FloatArray:
    """The inputs that rise, (len(MOVING), ...).

    Args:
        elapsed: time since the last crawl, >= 0, (..., m).
        signals: signals since then, >= 0, likewise.
        cycle: T, > 0.
        scales: of :func:`page_scales`, (2, m).
    """
    age, count = np.broadcast_arrays(
        np.asarray(elapsed, np.float64) / cycle, np.asarray(signals, np.float64)
    )
    quick, heard = scales[0] * age, scales[1] * count
    return np.stack(
        [np.log(FLOOR + age), quick / (1.0 + quick), np.log1p(heard), heard / (1.0 + heard)]
    )


def initial_weights(
    hidden: int, rng: np.random.Generator, *, correction: bool = False
) -> FloatArray:
    """Free numbers of an index to start learning from, which no formula went into.

    The index is about the importance times the time since the last crawl, the more so the more
    signals came; hidden units are random and weigh little. A correction starts near no correction.
    """
    num_inputs = len(INPUTS)
    inner = rng.normal(0.0, 1.0 / np.sqrt(num_inputs), (hidden, num_inputs))
    inner[:, RISING] = np.abs(inner[:, RISING])
    skip = np.where(RISING, -1.0, 0.0)
    if not correction:
        skip[INPUTS.index("log_elapsed")] = 1.0
        skip[INPUTS.index("scaled_signals")] = 1.0
    outer = np.full(hidden, -1.0 if correction else 0.1)
    return np.concatenate([np.zeros(SCALES), inner.ravel(), np.zeros(hidden), outer, skip])
