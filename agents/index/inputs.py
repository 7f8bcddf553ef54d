"""The inputs of a page, and the networks that compute the weights of its index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.index.kernels import (
    BASES,
    EVIDENCES,
    IMPORTANCE,
    LEVELS,
    NUM_BASES,
    NUM_LEVELS,
    PACE,
    UNSIGNALLED,
)
from crawl_envs.types import FloatArray, Problem

FLOOR = 0.05
"""Constant added to the arguments of logarithms, which may be 0."""
INPUTS = (
    *("log_unsignalled_rate", "log_signalled_rate", "log_false_signal_rate"),
    *("recall", "precision"),
)
"""Inputs of a page. The unit of time is 1 over its change rate."""
MAX_LOG_WEIGHT = 15.0
MAX_EVIDENCE = 8.0
"""Maximal evidence of a signal, in nats; a source without false signals has infinite evidence."""
MIN_UNSIGNALLED = 0.01
"""Minimal share of changes without a signal."""
Layers = tuple[FloatArray, ...]
"""A network of two layers of H units tanh: W1 (K, H), b1 (H,), W2 (H, H), b2 (H,), W3 (H, O),
b3 (O,)."""


class OutcomeNetworks(NamedTuple):
    """The networks that give the weights a_k of staleness and c_k of the crawl value."""

    staleness: Layers
    value: Layers


def shapes_of(num_inputs: int, hidden: int, outputs: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of a network's layers."""
    layer = (num_inputs, hidden), (hidden,), (hidden, hidden), (hidden,)
    return (*layer, (hidden, outputs), (outputs,))


def number_of_weights(hidden: int) -> int:
    """Return the number of weights of both networks, of H hidden units."""
    networks = (shapes_of(len(INPUTS), hidden, outputs) for outputs in (NUM_BASES, NUM_LEVELS))
    return sum(math.prod(shape) for shapes in networks for shape in shapes)


def networks_of(weights: FloatArray, hidden: int) -> OutcomeNetworks:
    """Return the networks of H hidden units from their weights in a row."""
    layers, place = [], 0
    for outputs in (NUM_BASES, NUM_LEVELS):
        for shape in shapes_of(len(INPUTS), hidden, outputs):
            size = math.prod(shape)
            layers.append(weights[place : place + size].reshape(shape))
            place += size
    return OutcomeNetworks(tuple(layers[:6]), tuple(layers[6:]))


def forward(
    layers: Sequence[NDArray[Any]], inputs: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the values of both hidden layers, (m, H), and the outputs, (m, O)."""
    first, bias, second, bias_2, last, bias_3 = layers
    low = np.tanh(inputs @ first + bias)
    high = np.tanh(low @ second + bias_2)
    return low, high, high @ last + bias_3


def positive_weights(layers: Sequence[FloatArray], inputs: FloatArray) -> FloatArray:
    """Return the exponential of a network's outputs, (m, O), of inputs (m, K)."""
    outputs = np.clip(forward(layers, inputs)[2], -MAX_LOG_WEIGHT, MAX_LOG_WEIGHT)
    return np.asarray(np.exp(outputs))


def page_inputs(problem: Problem) -> FloatArray:
    """Return the inputs of each page, (m, K), with all its parameters; sources are pooled."""
    assert problem.change_rate is not None
    pooled = problem.pooled()
    assert pooled.recall is not None
    assert pooled.false_signal_rate is not None
    change, recall, false = problem.change_rate, pooled.recall, pooled.false_signal_rate
    true = recall * change
    signals = true + false
    precision = np.divide(true, signals, out=np.ones_like(true), where=signals > 0.0)
    rates = np.stack([(1.0 - recall) * change, true, false]) * _inverse(change)
    return np.vstack([np.log(FLOOR + rates), recall, precision]).T


def outcome_table(problem: Problem, networks: OutcomeNetworks) -> FloatArray:
    """Return the table of page parameters that :func:`agents.index.kernels.outcome_value` reads.

    A page that never changes has the value 0.

    Args:
        problem: the pages, with all their parameters.
        networks: networks with the inputs INPUTS.
    """
    assert problem.change_rate is not None
    assert problem.recall is not None
    assert problem.false_signal_rate is not None
    rate, inputs = problem.change_rate, page_inputs(problem)
    recall, false = np.atleast_2d(problem.recall), np.atleast_2d(problem.false_signal_rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = np.nan_to_num(np.log1p(recall * rate / false), posinf=MAX_EVIDENCE)
    table = np.empty((problem.num_pages, EVIDENCES + len(evidence)))
    table[:, UNSIGNALLED] = np.maximum(1.0 - recall.sum(axis=0), MIN_UNSIGNALLED)
    table[:, EVIDENCES:] = np.minimum(evidence, MAX_EVIDENCE).T
    table[:, IMPORTANCE] = problem.importance * _inverse(rate)
    table[:, PACE] = rate
    table[:, BASES:LEVELS] = positive_weights(networks.staleness, inputs)
    table[:, LEVELS:EVIDENCES] = positive_weights(networks.value, inputs)
    return table


def _inverse(rate: FloatArray) -> FloatArray:
    """Return 1 / rate for each rate, and 0 for rate 0."""
    return np.divide(1.0, rate, out=np.zeros_like(rate), where=rate > 0.0)
