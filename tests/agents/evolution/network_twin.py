"""A slow twin of the network of a correction, in plain Python."""

from __future__ import annotations

import numpy as np

from agents.evolution.network import Weights, hidden_units


def naive_network(free, x) -> float:
    """The score of one page, weight by weight."""
    hidden = hidden_units(len(free), len(x))
    numbers = iter(float(each) for each in free)
    inner = [[next(numbers) for _ in x] for _ in range(hidden)]
    bias = [next(numbers) for _ in range(hidden)]
    outer = [next(numbers) for _ in range(hidden)]
    score = sum(next(numbers) * each for each in x)
    for weights, start, end in zip(inner, bias, outer, strict=True):
        z = start + sum(weight * each for weight, each in zip(weights, x, strict=True))
        score += end * z / (1.0 + abs(z))
    return score


def number_of_weights(num_inputs: int, hidden: int) -> int:
    """The number of weights of K inputs and H hidden units: H (K + 2) + K."""
    return hidden * (num_inputs + 2) + num_inputs


def weights_of(free, num_inputs: int) -> Weights:
    """The weights of a network of K inputs from a row of numbers, (H (K + 2) + K,)."""
    hidden = hidden_units(len(free), num_inputs)
    inner, bias, outer, skip = np.split(free, np.cumsum([hidden * num_inputs, hidden, hidden]))
    return Weights(inner.reshape(hidden, num_inputs), bias, outer, skip)
