"""Inputs of a learned index, by page: numbers without a unit, for any number of pages.

Time is measured in cycles T = m / R, in which every page could be crawled once, and importance in
its mean over the pages. Neither the crawl value nor the probability that a page is fresh is among
the inputs. Two scales, of time and of signals, are learned: their logarithms are linear in the
static inputs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from agents.evolution.network import Weights, hidden_units, network_of
from crawl_envs.types import FloatArray, Problem

FLOOR = 0.05
"""Added to the arguments of logarithms."""

STATIC = (
    *("log_importance", "log_change_rate", "log_unsignalled_rate", "log_signalled_rate"),
    *("log_false_signal_rate", "recall", "precision"),
)
"""Inputs that are constant between crawls."""
DYNAMIC = ("log_elapsed", "scaled_elapsed", "log_signals", "scaled_signals")
"""Inputs that rise between crawls."""
INPUTS = (*STATIC, *DYNAMIC)
RISING = np.array([name in DYNAMIC for name in INPUTS])
"""Inputs in which the index must not decrease, (K,) bool."""
SCALES = 2 * (len(STATIC) + 1)
"""Number of weights of the two scales."""
LARGEST_LOG_SCALE = 10.0


class IndexWeights(NamedTuple):
    """The weights of an index: ``scales`` (2, len(STATIC) + 1), constants last, and ``network``.

    The first scale is that of elapsed time, the second that of signals.
    """

    scales: FloatArray
    network: Weights


def weights_of(free: FloatArray) -> IndexWeights:
    """Return the weights of an index from free numbers, (SCALES + H (K + 2) + K,).

    Raises:
        ValueError: no index has so many weights.
    """
    hidden_units(free.size - SCALES, len(INPUTS))
    return IndexWeights(free[:SCALES].reshape(2, -1).copy(), network_of(free[SCALES:], RISING))


def relative_importance(problem: Problem) -> FloatArray:
    """Return the importance over its mean, (m,); all 1 where the mean is 0."""
    mean = float(problem.importance.mean())
    return problem.importance / mean if mean > 0.0 else np.ones(problem.num_pages)


def static_inputs(problem: Problem, cycle: float | FloatArray) -> FloatArray:
    """Return the inputs that are constant between crawls, (len(STATIC), m).

    Args:
        problem: with all its parameters, and one source of signals.
        cycle: T, > 0, or a unit of time for each page, (m,).
    """
    assert problem.change_rate is not None
    assert problem.recall is not None
    assert problem.false_signal_rate is not None
    change, recall, false = problem.change_rate, problem.recall, problem.false_signal_rate
    true = recall * change
    signals = true + false
    precision = np.divide(true, signals, out=np.ones_like(true), where=signals > 0.0)
    rates = np.stack([change, (1.0 - recall) * change, true, false])
    weight = np.log(FLOOR + relative_importance(problem))
    return np.vstack([weight, np.log(FLOOR + rates * cycle), recall, precision])


def page_scales(static: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the scales of each page: of time, per cycle, and of signals; (2, m), > 0."""
    log_scale = scales[:, :-1] @ static + scales[:, -1:]
    return np.exp(np.clip(log_scale, -LARGEST_LOG_SCALE, LARGEST_LOG_SCALE))


def dynamic_inputs(
    elapsed: ArrayLike, signals: ArrayLike, cycle: float, scales: FloatArray
) -> FloatArray:
    """Return the inputs that rise between crawls, (len(DYNAMIC), ...).

    Args:
        elapsed: time since the last crawl, >= 0, (..., m).
        signals: signals since then, >= 0, (..., m).
        cycle: T, > 0.
        scales: as from :func:`page_scales`, (2, m).
    """
    age, count = np.broadcast_arrays(
        np.asarray(elapsed, np.float64) / cycle, np.asarray(signals, np.float64)
    )
    quick, counted = scales[0] * age, scales[1] * count
    saturated = quick / (1.0 + quick), counted / (1.0 + counted)
    return np.stack([np.log(FLOOR + age), saturated[0], np.log1p(counted), saturated[1]])


def initial_weights(
    hidden: int, rng: np.random.Generator, *, correction: bool = False
) -> FloatArray:
    """Return free numbers to start learning from, which no formula has a part in.

    The index is about the importance times the time since the last crawl, and rises with signals;
    hidden units are random, with small weights. A correction starts near no correction.
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
