"""Fit a network whose outputs are the logarithms of positive weights, by Adam."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.index.inputs import MAX_LOG_WEIGHT, forward, positive_weights, shapes_of
from crawl_envs.types import FloatArray

Array = NDArray[np.float32]
FIRST_DECAY, SECOND_DECAY = 0.9, 0.999
MINIBATCH = 256
"""Default number of examples per step; so few that matrix products use one thread."""
MIN_EVIDENCE, MAX_EVIDENCE = 1e-6, 50.0
"""Bounds to which evidence is clipped in the losses."""


class Examples(NamedTuple):
    """The inputs of m pages, (m, K), and n examples: each one's page, functions (n, O), target."""

    inputs: Array
    page: NDArray[np.int64]
    functions: Array
    target: Array


class Round(NamedTuple):
    """A round of a fit: its name, number, mean loss on held-out examples, and weights.

    The weights of both networks, in a row, are None in the first fit.
    """

    fit: str
    number: int
    loss: float
    weights: FloatArray | None = None


class Loss(NamedTuple):
    """A loss of predicted sums (n,) against targets (n,), and its derivative in the sums."""

    value: Callable[[FloatArray, FloatArray], FloatArray]
    slope: Callable[[Array, Array], Array]

    def mean(self, layers: Sequence[Array], examples: Examples) -> float:
        """Return the mean loss of a network over examples."""
        exact = [layer.astype(np.float64) for layer in layers]
        weights = positive_weights(exact, examples.inputs.astype(np.float64))
        sums = (weights[examples.page] * examples.functions).sum(axis=1)
        return float(self.value(sums, examples.target.astype(np.float64)).mean())


def log_loss(x: FloatArray, changed: FloatArray) -> FloatArray:
    """Return minus the log-probability of each outcome; a change has probability 1 - exp(-x)."""
    x = np.clip(x, MIN_EVIDENCE, MAX_EVIDENCE)
    return np.where(changed > 0.5, -np.log(-np.expm1(-x)), x)


def log_loss_slope(x: Array, changed: Array) -> Array:
    """Return the derivative of :func:`log_loss` in x."""
    x = np.clip(x, MIN_EVIDENCE, MAX_EVIDENCE)
    return np.asarray(np.where(changed > 0.5, -1.0 / np.expm1(x), 1.0), np.float32)


def exponential_loss(mean: FloatArray, value: FloatArray) -> FloatArray:
    """Return ln mean + value / mean, whose expectation is minimal at the true mean."""
    mean = np.maximum(mean, MIN_EVIDENCE)
    return np.asarray(np.log(mean) + value / mean)


def exponential_slope(mean: Array, value: Array) -> Array:
    """Return the derivative of :func:`exponential_loss` in the mean."""
    mean = np.maximum(mean, MIN_EVIDENCE)
    return np.asarray((1.0 - value / mean) / mean)


LOG_LOSS = Loss(log_loss, log_loss_slope)
EXPONENTIAL = Loss(exponential_loss, exponential_slope)


def start_layers(
    num_inputs: int, hidden: int, start: Sequence[float], rng: np.random.Generator
) -> list[Array]:
    """Draw the layers of a network whose outputs are near ``start`` for any inputs."""
    layers = []
    for shape in shapes_of(num_inputs, hidden, len(start)):
        bound = 1.0 / math.sqrt(shape[0]) if len(shape) == 2 else 0.0
        layers.append(rng.uniform(-bound, bound, shape).astype(np.float32))
    layers[4] *= 0.3
    layers[5][:] = start
    return layers


def gradient(
    layers: Sequence[Array],
    inputs: Array,
    functions: Array,
    target: Array,
    slope: Callable[[Array, Array], Array],
) -> list[Array]:
    """Return the layers' gradient of the mean loss of the sums over exp(output_k) functions_k."""
    _, _, second, _, last, _ = layers
    low, high, outputs = forward(layers, inputs)
    terms = np.exp(np.clip(outputs, -MAX_LOG_WEIGHT, MAX_LOG_WEIGHT)) * functions
    back = terms * (slope(terms.sum(axis=1), target) / len(target))[:, None]
    back_high = (back @ last.T) * (1.0 - high * high)
    back_low = (back_high @ second.T) * (1.0 - low * low)
    return [
        *(inputs.T @ back_low, back_low.sum(axis=0)),
        *(low.T @ back_high, back_high.sum(axis=0)),
        *(high.T @ back, back.sum(axis=0)),
    ]


def fit(
    layers: list[Array],
    examples: Examples,
    tests: Examples | None,
    loss: Loss,
    *,
    rounds: int,
    steps: int,
    learning_rate: float,
    rng: np.random.Generator,
    minibatch: int = MINIBATCH,
) -> Iterator[float]:
    """Fit a network's layers in place by Adam, and yield the mean loss of ``tests``.

    The loss is yielded at the start and after every ``steps`` steps; NaN without ``tests``. The
    step size falls linearly to 0. Examples are drawn with replacement.
    """
    moments: list[Any] = [np.zeros_like(layer) for layer in layers]
    squares: list[Any] = [np.zeros_like(layer) for layer in layers]
    for step in range(rounds * steps + 1):
        if step > 0:
            rows = rng.integers(examples.page.size, size=minibatch)
            inputs, functions = examples.inputs[examples.page[rows]], examples.functions[rows]
            slopes = gradient(layers, inputs, functions, examples.target[rows], loss.slope)
            rate = learning_rate * (1.0 - (step - 1) / (rounds * steps))
            rate *= math.sqrt(1.0 - SECOND_DECAY**step) / (1.0 - FIRST_DECAY**step)
            for layer, slope, moment, square in zip(layers, slopes, moments, squares, strict=True):
                moment += (1.0 - FIRST_DECAY) * (slope - moment)
                square += (1.0 - SECOND_DECAY) * (slope * slope - square)
                layer -= rate * moment / (np.sqrt(square) + 1e-8)
        if step % steps == 0:
            yield math.nan if tests is None else loss.mean(layers, tests)
