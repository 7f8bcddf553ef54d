"""A plain twin of the inputs and networks of a generalist, page by page."""

from __future__ import annotations

import math

import numpy as np

from agents.generalist.networks import NUM_INPUTS, NUM_VALUED
from agents.index.inputs import shapes_of
from tests.agents.generalist.belief_twin import Twin

KINDS = 12


def log_of(y: float) -> float:
    return math.log(0.001 + y)


def further_inputs(twin: Twin, page: int, value: float) -> list[float]:
    """The inputs of a page after those of its history; ``value`` over its importance."""
    x, expected_changes, rate, _, row, _, at = twin.read(page)
    alpha, cycle = row[at.believed], twin.cycle
    return [
        log_of(x),
        log_of(expected_changes),
        log_of(rate * cycle),
        log_of(twin.elapsed[page] / cycle),
        log_of(value / cycle),
        log_of(alpha * cycle),
        log_of(row[at.signal_rate] * cycle),
        row[at.signalled_rate] / rate,
        log_of(max(x - alpha * twin.elapsed[page], 0.0)),
        log_of(row[at.believed + 1]),
        row[at.active],
        math.log1p(row[at.kinds]),
        *(twin.calibration(kind) for kind in range(6)),
        *(interval_calibration(twin, changed, length) for changed in (0, 1) for length in range(3)),
    ]


def interval_calibration(twin: Twin, changed: int, length: int) -> float:
    """That of crawls after one that saw a change or not, in a range of lengths."""
    changes = expected = 3.0
    for number, crawl in enumerate(twin.crawls):
        before = [c.changed for c in twin.crawls[:number] if c.page == crawl.page]
        cycles = float(crawl.elapsed / twin.cycle)
        if (cycles > 0.4045) + (cycles > 1.2045) == length and bool(
            before and before[-1]
        ) == changed:
            changes, expected = changes + crawl.changed, expected + crawl.expected
    return math.log(changes / expected)


def price(weights, hidden: int, inputs, x: float, rate: float) -> tuple[float, float]:
    """The corrected x and the price of a page of inputs (NUM_INPUTS,)."""
    mean, scale = weights[:NUM_VALUED], weights[NUM_VALUED : 2 * NUM_VALUED]
    place, networks = 2 * NUM_VALUED, []
    for count in (NUM_INPUTS, NUM_VALUED):
        layers = []
        for shape in shapes_of(count, hidden, 1):
            layers.append(weights[place : place + math.prod(shape)].reshape(shape))
            place += math.prod(shape)
        networks.append(layers)

    def output(layers, values):
        first, bias, second, bias_2, last, bias_3 = layers
        hidden = np.tanh(np.tanh(values @ first + bias) @ second + bias_2)
        return float(np.clip((hidden @ last + bias_3)[0], -2.5, 2.5))

    def standard(values, part):
        return np.clip((values - mean[part]) * scale[part], -6.0, 6.0)

    known = standard(inputs, slice(None, NUM_INPUTS))
    x *= math.exp(output(networks[0], known))
    level = np.array([log_of(x), 1.0 - math.exp(-x), min(x, 10.0)])
    level = standard(level, slice(NUM_INPUTS, None))
    greedy = (1.0 - (1.0 + x) * math.exp(-x)) / rate
    return x, greedy * math.exp(output(networks[1], np.concatenate([known, level])))
