"""Events, and the superposition of Poisson processes that they are drawn from.

An event is a time and a code, ``code = page * CODE_STRIDE + kind``. A kind that a generated world
draws is a bit that says whether the page changes and, above it, the source of the signal that
arrives, counted from 1, or 0 for none; neither is a request. So a page with S sources has 2 + 2 S
kinds; of source s they are ``SIGNAL + 2 * s`` and ``CHANGE_SIGNAL + 2 * s``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crawl_envs.kernels import compiled
from crawl_envs.sim.state import Records
from crawl_envs.sim.streams import Stream, next_uniform
from crawl_envs.types import FloatArray, Instance

REQUEST = 0
CHANGE = 1
SIGNAL = 2
CHANGE_SIGNAL = 3
BIRTH = 32
DEATH = 33
KIND_BITS = 6
CODE_STRIDE = 1 << KIND_BITS
KIND_MASK = CODE_STRIDE - 1

CodeArray = NDArray[np.int64]

DELAY_NONE, DELAY_CONSTANT, DELAY_EXPONENTIAL, DELAY_POISSON = range(4)


def column_bits(num_sources: int) -> int:
    """Return in how many bits the kinds of a page are counted where they are drawn.

    Columns of alias tables are ``page << column_bits | kind``, so that no draw has to divide.
    """
    return (1 + 2 * num_sources).bit_length()


def event_rates(instance: Instance, requests: bool = True) -> FloatArray:
    """Return the rate of every (page, kind) that is drawn, shape (m, 2 ** column_bits).

    The rates of kinds from 2 + 2 S on are 0, and those of requests unless they are played.
    """
    rates = np.zeros((instance.num_pages, 1 << column_bits(instance.num_sources)))
    rates[:, REQUEST] = instance.importance * requests
    rates[:, CHANGE] = instance.unsignalled_rate
    end = SIGNAL + 2 * instance.num_sources
    rates[:, SIGNAL:end:2] = np.atleast_2d(instance.false_signal_rate).T
    rates[:, CHANGE_SIGNAL:end:2] = np.atleast_2d(instance.recall * instance.change_rate).T
    return rates


@compiled()
def fill_alias(rates: FloatArray, alias: Records) -> None:
    """Build Walker's alias table of ``rates`` by Vose's method; both have shape (n,).

    Column i stands for itself below ``alias[i].cut`` and for column ``alias[i].other`` above it.
    """
    count = rates.shape[0]
    total = rates.sum()
    small = np.empty(count, np.int64)
    large = np.empty(count, np.int64)
    num_small = num_large = 0
    for column in range(count):
        alias[column].cut = rates[column] * count / total if total > 0.0 else 1.0
        alias[column].other = column
        if alias[column].cut < 1.0:
            small[num_small] = column
            num_small += 1
        else:
            large[num_large] = column
            num_large += 1
    while num_small > 0 and num_large > 0:
        num_small -= 1
        low, high = small[num_small], large[num_large - 1]
        alias[low].other = high
        alias[high].cut -= 1.0 - alias[low].cut
        if alias[high].cut < 1.0:
            num_large -= 1
            small[num_small] = high
            num_small += 1
    for position in range(num_large):
        alias[large[position]].cut = 1.0
    for position in range(num_small):
        alias[small[position]].cut = 1.0


@compiled(forceinline=True)
def draw_gap(stream: Stream, mean: float) -> tuple[float, Stream]:
    """Draw an exponential waiting time of the given mean, which may be infinite."""
    uniform, stream = next_uniform(stream)
    return -math.log(uniform) * mean, stream


@compiled(forceinline=True)
def draw_code(stream: Stream, alias: Records, bits: int) -> tuple[int, Stream]:
    """Draw the code of an event from an alias table of pages by 2 ** ``bits`` kinds; one word."""
    uniform, stream = next_uniform(stream)
    scaled = (1.0 - uniform) * alias.shape[0]
    column = int(scaled)
    entry = alias[column]
    # Arithmetic instead of a branch, which could not be predicted.
    column += (scaled - column >= entry.cut) * (entry.other - column)
    return int((column >> bits << KIND_BITS) | (column & ((1 << bits) - 1))), stream


@compiled()
def draw_delay(stream: Stream, kind: int, mean: float, quantum: float) -> tuple[float, Stream]:
    """Draw how long a signal travels; a Poisson count is found by inversion of one uniform."""
    if kind == DELAY_EXPONENTIAL:
        uniform, stream = next_uniform(stream)
        return -math.log(uniform) * mean, stream
    if kind == DELAY_POISSON:
        uniform, stream = next_uniform(stream)
        left = 1.0 - uniform
        count_mean = mean / quantum
        probability = math.exp(-count_mean)
        count = 0
        while left >= probability and probability > 0.0:
            left -= probability
            count += 1
            probability *= count_mean / count
        return count * quantum, stream
    return (mean if kind == DELAY_CONSTANT else 0.0), stream
