"""Slow twins of what agents.evolution computes, in plain Python."""

from __future__ import annotations

import math

import numpy as np

FLOOR = 0.05


def ramp(x: float) -> float:
    return (x + math.sqrt(x * x + 0.01)) / 2.0


def sat(z: float) -> float:
    return z / (1.0 + abs(z))


def naive_network(free, rising, x) -> float:
    """The score of one page, weight by weight."""
    num_inputs = len(rising)
    hidden = (len(free) - num_inputs) // (num_inputs + 2)
    numbers = iter(float(each) for each in free)
    inner = [[next(numbers) for _ in rising] for _ in range(hidden)]
    bias = [next(numbers) for _ in range(hidden)]
    outer = [next(numbers) for _ in range(hidden)]
    skip = [next(numbers) for _ in rising]
    score = sum((ramp(w) if up else w) * each for w, up, each in zip(skip, rising, x, strict=True))
    for weights, start, end in zip(inner, bias, outer, strict=True):
        z = start
        for weight, up, each in zip(weights, rising, x, strict=True):
            z += (ramp(weight) if up else weight) * each
        score += (ramp(end) if any(rising) else end) * sat(z)
    return score


def naive_score(free, problem, cycle: float, page: int, elapsed: float, signals: float) -> float:
    """The score of a page from what is known of it."""
    importance = problem.importance[page] / problem.importance.mean()
    change, recall = problem.change_rate[page], problem.recall[page]
    false = problem.false_signal_rate[page]
    signal_rate = recall * change + false
    static = [
        math.log(FLOOR + importance),
        math.log(FLOOR + change * cycle),
        math.log(FLOOR + (1.0 - recall) * change * cycle),
        math.log(FLOOR + recall * change * cycle),
        math.log(FLOOR + false * cycle),
        recall,
        recall * change / signal_rate if signal_rate > 0.0 else 1.0,
    ]
    time_scale, signal_scale = (
        math.exp(min(10.0, max(-10.0, float(np.dot(row[:-1], static)) + row[-1])))
        for row in np.reshape(free[:16], (2, 8))
    )
    age = elapsed / cycle
    dynamic = [
        math.log(FLOOR + age),
        time_scale * age / (1.0 + time_scale * age),
        math.log(1.0 + signal_scale * signals),
        signal_scale * signals / (1.0 + signal_scale * signals),
    ]
    rising = [False] * 7 + [True] * 4
    return naive_network(free[16:], rising, [*static, *dynamic])
