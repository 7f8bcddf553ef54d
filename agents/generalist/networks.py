"""Two networks that correct a belief: how stale a page is, and the value of its crawl."""

from __future__ import annotations

import math

import numpy as np

from agents.generalist.inputs import INPUTS, LEVEL, LOG_OFFSET
from agents.index.inputs import shapes_of
from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray

NUM_INPUTS = len(INPUTS)
NUM_VALUED = NUM_INPUTS + len(LEVEL)
MAX_INPUT = 6.0
"""Bound of the absolute value of standardised inputs."""
MAX_EVIDENCE = 10.0
SMALL_EVIDENCE = 1e-3
"""Evidence below which V_GREEDY is computed by the first terms of its series."""
MAX_LOG_FACTOR = 2.5
"""Bound of the absolute logarithm of a correction factor."""


def number_of_weights(hidden: int) -> int:
    """Return the number of weights that :func:`correct` needs, for networks of H hidden units."""
    both = (shapes_of(num_inputs, hidden, 1) for num_inputs in (NUM_INPUTS, NUM_VALUED))
    return 2 * NUM_VALUED + sum(math.prod(shape) for shapes in both for shape in shapes)


@inlined()
def layer(weights: FloatArray, inputs: FloatArray, out: FloatArray) -> int:
    """Write a layer's outputs tanh(W^T inputs + b), (H, n); return the number of weights used.

    W (K, H) and b (H,) are the first weights of the row. The innermost loops run over pages.
    """
    hidden, first = out.shape[0], inputs.shape[0] * out.shape[0]
    for j in range(hidden):
        for k in range(inputs.shape[1]):
            out[j, k] = weights[first + j]
        for i in range(inputs.shape[0]):
            weight = weights[i * hidden + j]
            for k in range(inputs.shape[1]):
                out[j, k] += weight * inputs[i, k]
        for k in range(inputs.shape[1]):
            out[j, k] = math.tanh(out[j, k])
    return int(first + hidden)


@inlined()
def write_outputs(weights: FloatArray, hidden: int, inputs: FloatArray, out: FloatArray) -> int:
    """Write a network's outputs, (n,), bounded by MAX_LOG_FACTOR, of inputs (K, n).

    The network has two layers of H units tanh and one output. Its weights are the first of the row:
    W1 (K, H), b1 (H,), W2 (H, H), b2 (H,), w3 (H,), b3. Return their number.
    """
    low, high = np.empty((hidden, inputs.shape[1])), np.empty((hidden, inputs.shape[1]))
    place = layer(weights, inputs, low)
    place += layer(weights[place:], low, high)
    for k in range(inputs.shape[1]):
        total = weights[place + hidden]
        for j in range(hidden):
            total += weights[place + j] * high[j, k]
        out[k] = min(max(total, -MAX_LOG_FACTOR), MAX_LOG_FACTOR)
    return int(place + hidden + 1)


@inlined()
def standardise(inputs: FloatArray, mean: FloatArray, scale: FloatArray) -> None:
    """Standardise and clip rows of ``inputs``, (K, n), in place; ``scale`` (K,) multiplies."""
    for i in range(inputs.shape[0]):
        for k in range(inputs.shape[1]):
            value = (inputs[i, k] - mean[i]) * scale[i]
            inputs[i, k] = min(max(value, -MAX_INPUT), MAX_INPUT)


@inlined()
def correct(
    weights: FloatArray, hidden: int, inputs: FloatArray, x: FloatArray, rate: FloatArray
) -> FloatArray:
    """Return the corrected crawl value of n pages of importance 1; overwrite ``x`` by corrected x.

    Args:
        weights: means (K,), scales (K,) and both networks, in a row.
        hidden: number of units of each hidden layer, H.
        inputs: inputs (K, n), not standardised; this function writes the last rows, LEVEL.
        x: believed evidence, (n,).
        rate: believed change rates, > 0, (n,).
    """
    mean, scale = weights[:NUM_VALUED], weights[NUM_VALUED : 2 * NUM_VALUED]
    networks, out, price = weights[2 * NUM_VALUED :], np.empty(x.shape), np.empty(x.shape)
    standardise(inputs[:NUM_INPUTS], mean, scale)
    place = write_outputs(networks, hidden, inputs[:NUM_INPUTS], out)
    for k in range(x.shape[0]):
        x[k] *= math.exp(out[k])
    write_levels(x, inputs[NUM_INPUTS:])
    write_prices(x, rate, price)
    standardise(inputs[NUM_INPUTS:], mean[NUM_INPUTS:], scale[NUM_INPUTS:])
    write_outputs(networks[place:], hidden, inputs, out)
    for k in range(x.shape[0]):
        price[k] *= math.exp(out[k])
    return price


@compiled()
def write_levels(x: FloatArray, out: FloatArray) -> None:
    """Write the inputs LEVEL of n pages at corrected evidence ``x``, (n,), to ``out``, (3, n)."""
    for k in range(x.shape[0]):
        out[0, k] = math.log(LOG_OFFSET + x[k])
        out[1, k] = -math.expm1(-x[k])
        out[2, k] = min(x[k], MAX_EVIDENCE)


@compiled()
def write_prices(x: FloatArray, rate: FloatArray, out: FloatArray) -> None:
    """Write the crawl value V_GREEDY of importance 1, (1 - (1 + x) exp(-x)) / rate, (n,)."""
    for k in range(x.shape[0]):
        if x[k] < SMALL_EVIDENCE:
            out[k] = x[k] * x[k] * (0.5 - x[k] / 3.0) / rate[k]
        else:
            out[k] = (1.0 - (1.0 + x[k]) * math.exp(-x[k])) / rate[k]
