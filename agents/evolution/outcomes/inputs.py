"""What the weights of a page depend on, and the networks that compute them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from agents.evolution.index.inputs import FLOOR, STATIC, relative_importance, static_inputs
from agents.evolution.outcomes.kernels import LEVELS, NUM_BASES, NUM_LEVELS
from crawl_envs.types import FloatArray, Problem

HIDDEN_PARAMETERS = STATIC[:1]
"""Inputs where the environment hides the parameters of pages; else they are STATIC."""
LARGEST_LOG_WEIGHT = 15.0
Layers = tuple[FloatArray, ...]
"""A network of two layers of H units tanh: W1 (K, H), b1 (H,), W2 (H, H), b2 (H,), W3 (H, O),
b3 (O,)."""


class OutcomeNetworks(NamedTuple):
    """The networks of the weights a_k of staleness and c_k of the crawl value."""

    staleness: Layers
    value: Layers


def shapes_of(num_inputs: int, hidden: int, outputs: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of a network's layers."""
    layer = (num_inputs, hidden), (hidden,), (hidden, hidden), (hidden,)
    return (*layer, (hidden, outputs), (outputs,))


def number_of_weights(num_inputs: int, hidden: int) -> int:
    """Return the number of weights of both networks."""
    both = (shapes_of(num_inputs, hidden, outputs) for outputs in (NUM_BASES, NUM_LEVELS))
    return sum(math.prod(shape) for shapes in both for shape in shapes)


def networks_of(free: FloatArray, num_inputs: int) -> OutcomeNetworks:
    """Return the networks from their weights in a row.

    Raises:
        ValueError: no two networks of ``num_inputs`` inputs have so many weights.
    """
    hidden = 1
    while number_of_weights(num_inputs, hidden) < free.size:
        hidden += 1
    if number_of_weights(num_inputs, hidden) != free.size:
        raise ValueError(
            f"weights must be those of two networks of {num_inputs} inputs and H >= 1 units in "
            f"each hidden layer, got {free.size} numbers"
        )
    layers, place = [], 0
    for outputs in (NUM_BASES, NUM_LEVELS):
        for shape in shapes_of(num_inputs, hidden, outputs):
            size = math.prod(shape)
            layers.append(free[place : place + size].reshape(shape))
            place += size
    return OutcomeNetworks(tuple(layers[:6]), tuple(layers[6:]))


def positive_weights(layers: Sequence[FloatArray], inputs: FloatArray) -> FloatArray:
    """Return the exponential of a network's outputs, (m, O), of inputs (m, K)."""
    first, bias, second, bias_2, last, bias_3 = layers
    hidden = np.tanh(np.tanh(inputs @ first + bias) @ second + bias_2)
    outputs = np.clip(hidden @ last + bias_3, -LARGEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT)
    return np.asarray(np.exp(outputs))


def unit_of(problem: Problem, cycle: float) -> float:
    """Return the unit of time: 1 over the mean change rate, or where that is hidden or 0, T."""
    mean = 0.0 if problem.change_rate is None else float(problem.change_rate.mean())
    return 1.0 / mean if mean > 0.0 else cycle


def page_inputs(problem: Problem, unit: float) -> FloatArray:
    """Return the inputs of each page, (m, K), with one source of signals at most."""
    if problem.change_rate is None:
        return np.log(FLOOR + relative_importance(problem))[:, None]
    return static_inputs(problem, unit).T


def outcome_table(problem: Problem, networks: OutcomeNetworks, cycle: float) -> FloatArray:
    """Return the table of :func:`agents.evolution.outcomes.kernels.outcome_value`.

    Args:
        problem: the pages, with one source of signals at most.
        networks: with HIDDEN_PARAMETERS as inputs, or with all, which the problem then reveals.
        cycle: T = m / R, > 0.
    """
    if networks.staleness[0].shape[0] == len(HIDDEN_PARAMETERS):
        problem = replace(problem, change_rate=None)
    unit = unit_of(problem, cycle)
    inputs = page_inputs(problem, unit)
    table = np.empty((problem.num_pages, LEVELS + NUM_LEVELS))
    table[:, 0], table[:, 1] = relative_importance(problem), 1.0 / unit
    table[:, 2:LEVELS] = positive_weights(networks.staleness, inputs)
    table[:, LEVELS:] = positive_weights(networks.value, inputs)
    return table
