"""One step of an evolution strategy: opposite candidates, ranks, Adam (Salimans et al. 2017).

Tim Salimans, Jonathan Ho, Xi Chen, Szymon Sidor, Ilya Sutskever: Evolution Strategies as a
Scalable Alternative to Reinforcement Learning, arXiv:1703.03864, section 2.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.types import FloatArray

FIRST_DECAY, SECOND_DECAY = 0.9, 0.99
"""Decay of Adam's averages of gradients, and of their squares."""
AVERAGING = 0.95
"""Decay of the average of the centres."""


class Centre(NamedTuple):
    """State of a search: arrays of one number per weight.

    Attributes:
        free: the centre of the candidates.
        average: the moving average of the centres so far.
        gradient: Adam's average of gradients.
        square: Adam's average of their squares.
        generation: number of steps so far.
    """

    free: FloatArray
    average: FloatArray
    gradient: FloatArray
    square: FloatArray
    generation: int


def start_at(free: FloatArray) -> Centre:
    """Return a search before its first step."""
    return Centre(free, free, np.zeros(free.size), np.zeros(free.size), 0)


def noise_of(centre: Centre, pairs: int, seed: int) -> FloatArray:
    """Return the directions of a generation's candidates, (pairs, n), standard normal."""
    return np.random.default_rng([seed, 0, centre.generation]).standard_normal(
        (pairs, centre.free.size)
    )


def candidates_of(centre: Centre, noise: FloatArray, sigma: float) -> FloatArray:
    """Return the candidates, (2 pairs, n): those along the noise, then those against it."""
    return np.concatenate([centre.free + sigma * noise, centre.free - sigma * noise])


def ranks_of(fitness: FloatArray) -> FloatArray:
    """Return ranks from -1/2 for the worst to 1/2 for the best, ties averaged, (n,)."""
    _, place, number = np.unique(fitness, return_inverse=True, return_counts=True)
    last = np.cumsum(number)
    middle = last - 0.5 * (number + 1.0)
    return np.asarray(middle[place] / (fitness.size - 1.0) - 0.5)


def stepped(
    centre: Centre, noise: FloatArray, fitness: FloatArray, sigma: float, learning_rate: float
) -> Centre:
    """Return the centre after a step towards the fitter candidates.

    Args:
        centre: the state of the search.
        noise: directions of the candidates, (pairs, n).
        fitness: of the candidates, (2 pairs,), in the order of :func:`candidates_of`.
        sigma: the candidates' standard deviation.
        learning_rate: Adam's step size.
    """
    pairs, count = noise.shape[0], centre.generation + 1
    ranks = ranks_of(fitness)
    slope = (ranks[:pairs] - ranks[pairs:]) @ noise / (2.0 * pairs * sigma)
    gradient = FIRST_DECAY * centre.gradient + (1.0 - FIRST_DECAY) * slope
    square = SECOND_DECAY * centre.square + (1.0 - SECOND_DECAY) * slope**2
    rise = gradient / (1.0 - FIRST_DECAY**count)
    spread = np.sqrt(square / (1.0 - SECOND_DECAY**count))
    free = centre.free + learning_rate * rise / (spread + 1e-8)
    average = AVERAGING * centre.average + (1.0 - AVERAGING) * free
    return Centre(free, average, gradient, square, count)
