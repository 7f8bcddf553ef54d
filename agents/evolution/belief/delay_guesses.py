r"""What a crawl would be worth if all that was told were true, but for a delay of signals.

With signals that travel exponential times of mean d, a signal that arrives at age a after the last
crawl is evidence -ln(1 - p (1 - exp(-a / d))) of a change since then, with p the precision, and
lambda Delta d (1 - exp(-t / d)) changes of the time t since the crawl have signals that are still
under way (as in :mod:`policies.ncis.delayed`). Which of MEANS is likeliest, and how much more so than
what is believed without delays, shows in what crawls find.
"""

from __future__ import annotations

import math

from agents.evolution.belief.layout import (
    BEST,
    COUNTS,
    CYCLE,
    EVIDENCE,
    GUESSES,
    HEARD_RATE,
    LIKELY,
    PRECISION,
    TRUST,
)
from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled

MEANS = (0.0, 0.1, 0.3, 0.8, 2.0)
"""Of delays, in cycles T."""
LEAST_CHANCE = 1e-3
"""Chances of what is found are taken to be no less, so that no single crawl decides."""
TRUSTED = 4.0
"""Difference of log-likelihoods, in which trust turns from 1/2 to 1 / (1 + 1/e)."""


@compiled()
def weight_at_face_value(row: FloatArray, first: int, age: float, cycle: float) -> None:
    """Take note of a signal at an age, for every guess of the delay."""
    for guess in range(GUESSES):
        share = row[first + PRECISION]
        if MEANS[guess] > 0.0:
            share *= -math.expm1(-age / (MEANS[guess] * cycle))
        row[first + EVIDENCE + guess] -= math.log1p(-min(share, 1.0 - 1e-6))
        row[first + COUNTS + guess] += share


@compiled()
def read_at_face_value(
    row: FloatArray, first: int, alpha: float, elapsed: float, cycle: float, guess: int
) -> tuple[float, float]:
    """Return x and B of a page by a guess of the delay; ``alpha`` is told."""
    unheard = alpha * elapsed
    if MEANS[guess] > 0.0:
        mean = MEANS[guess] * cycle
        unheard += row[first + HEARD_RATE] * mean * -math.expm1(-elapsed / mean)
    return unheard + row[first + EVIDENCE + guess], unheard + row[first + COUNTS + guess]


@compiled()
def log_chance(x: float, changed: bool) -> float:
    """Return the logarithm of the chance of what a crawl found, at evidence x."""
    chance = -math.expm1(-x) if changed else math.exp(-x)
    return math.log(LEAST_CHANCE + (1.0 - LEAST_CHANCE) * chance)


@compiled()
def weigh_guesses(
    row: FloatArray,
    first: int,
    shared: FloatArray,
    alpha: float,
    elapsed: float,
    believed: float,
    changed: bool,
) -> None:
    """Weigh the guesses by what a crawl found; ``believed`` is the belief's x."""
    best = 0
    for guess in range(GUESSES):
        x, _ = read_at_face_value(row, first, alpha, elapsed, shared[CYCLE], guess)
        shared[LIKELY + guess] += log_chance(x, changed)
        if shared[LIKELY + guess] > shared[LIKELY + best]:
            best = guess
    shared[LIKELY + GUESSES] += log_chance(believed, changed)
    shared[BEST] = best
    ahead = shared[LIKELY + best] - shared[LIKELY + GUESSES]
    shared[TRUST] = 1.0 / (1.0 + math.exp(-ahead / TRUSTED))
