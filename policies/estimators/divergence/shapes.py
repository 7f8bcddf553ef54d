r"""Tables of how pages diverge, free of scale, for beliefs about pages.

Of the model of section 3.3 of Olston and Pandey (2008) this has pages of one or two dynamic regions
beside the static one. Such a page has a *rate* L at which it is updated, a dynamic *share* A of its
fragments, and a *shape*: the number of items K of its scroll region (1 for churn), and the shares
of the updates (``phi``) and of the dynamic fragments (``f``) that a churn region beside it has. A
copy that has missed N_1 and N_2 updates has lost the share A z of its fragments,

    z = f [N_1 >= 1] + (1 - f) min(N_2, K) / K,

and diverges by 2 A z / (1 + A z). Rates and shares only shift what is tabulated against log a
(a = L t, the updates expected) and log z. Hence tables over shapes alone serve pages of any rate.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from crawl_envs.types import FloatArray

Float32Array = NDArray[np.float32]

PER_OCTAVE = 4
"""Expected updates a are tabulated at so many points per factor of two."""
LEAST, MOST = -12, 12
"""And between two to the power of these."""
NUM_AMOUNTS = PER_OCTAVE * (MOST - LEAST) + 1
SHARE_STEP, NUM_SHARES = 0.75, 12
"""Octaves between two shares A = 1, 2^-0.75, ..., and how many there are."""
BINS_PER_STEP = 2
"""Bins of lost shares per step of shares."""
ABOVE, BELOW = 4, 24
"""Bins of z above and below 1 (2^(-SHARE_STEP / BINS_PER_STEP) wide); those beyond are one each."""
NUM_BINS = ABOVE + BELOW + 1
SMEAR = 1.0
"""Standard deviation, in bins, with which a lost share is found: shares are tabulated coarsely."""
OUTLIERS = 0.05
"""Share of findings that follow no shape, evenly spread over the bins."""
TOLD = 4
"""Most updates that are known for certain, j = 0 .. TOLD."""
ITEMS = (1, 2, 4, 8, 16, 32)
SPEEDS = (0.25, 1.0, 4.0, 16.0, 64.0)
"""How many times as often as the scroll region a churn region beside it is updated."""
PARTS = (0.2, 0.5, 0.8)
"""Its shares of the dynamic fragments."""


class ShapeTables(NamedTuple):
    """What is tabulated, over expected updates a, shares A, and the s shapes.

    Attributes:
        log_found: logarithm of the probability that a page that was updated has lost z, by bin,
            (NUM_AMOUNTS, NUM_BINS, s).
        divergence: E[D] after j updates for certain and Poisson(a) more,
            (NUM_SHARES, s, NUM_AMOUNTS, TOLD + 1).
        missed: E[sum of d_k over k < N], N = j + Poisson(a), d_k = E[D] after k updates; the same.
        gain: a times the divergence after Poisson(a) updates less what is missed,
            (NUM_SHARES, s, NUM_AMOUNTS).
        amount: a, (NUM_AMOUNTS,).
    """

    log_found: Float32Array
    divergence: FloatArray
    missed: FloatArray
    gain: FloatArray
    amount: FloatArray


def shapes() -> FloatArray:
    """The shapes, as rows (phi, f, K), (s, 3)."""
    single = [(0.0, 0.0, items) for items in ITEMS]
    double = [
        (speed / (speed + 1.0), part, items)
        for items in ITEMS
        for speed in SPEEDS
        for part in PARTS
    ]
    return np.array(single + double, np.float64)


def dynamic_shares() -> FloatArray:
    """The shares A, falling, (NUM_SHARES,)."""
    return np.asarray(2.0 ** (-SHARE_STEP * np.arange(NUM_SHARES)))


def updates_law(amount: FloatArray, items: int, certain: int = 0) -> FloatArray:
    """P(min(certain + N, K) = i), N ~ Poisson(amount), (len(amount), K + 1)."""
    count = np.arange(items)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_amount = np.log(amount)[:, None]
        exponent = np.where(count == 0, 0.0, count * log_amount) - amount[:, None]
    few = np.exp(exponent - gammaln(count + 1.0))
    law = np.zeros((len(amount), items + 1))
    kept = max(items - certain, 0)
    law[:, certain : certain + kept] = few[:, :kept]
    law[:, items] = np.maximum(1.0 - law[:, :items].sum(axis=1), 0.0)
    return law


def state_law(shape: FloatArray, amount: FloatArray, certain: int = 0) -> FloatArray:
    """P(N_1 >= 1, min(N_2, K) = i) after ``certain`` updates and Poisson(a), (len(a), 2, K + 1)."""
    phi, _, items = shape
    joint = np.zeros((len(amount), 2, int(items) + 1))
    for first in range(certain + 1):
        weight = _binomial(certain, first, phi)
        if weight > 0.0:
            second = updates_law((1.0 - phi) * amount, int(items), certain - first)
            kept = np.exp(-phi * amount) if first == 0 else np.zeros(len(amount))
            joint[:, 0] += weight * kept[:, None] * second
            joint[:, 1] += weight * (1.0 - kept)[:, None] * second
    return joint


def _binomial(count: int, hits: int, chance: float) -> float:
    log_ways = gammaln(count + 1.0) - gammaln(hits + 1.0) - gammaln(count - hits + 1.0)
    return float(np.exp(log_ways) * chance**hits * (1.0 - chance) ** (count - hits))


def lost(shape: FloatArray) -> FloatArray:
    """Z in the states of :func:`state_law`, (2, K + 1)."""
    _, part, items = shape
    scrolled = (1.0 - part) * np.arange(int(items) + 1) / items
    return np.stack((scrolled, part + scrolled))


def _log_found(shape: FloatArray, amount: FloatArray) -> FloatArray:
    """Log P(bin of z | updated), (NUM_AMOUNTS, NUM_BINS)."""
    law = state_law(shape, amount).reshape(len(amount), -1)[:, 1:]
    z = lost(shape).reshape(-1)[1:]
    law, z = law[:, z > 0.0], z[z > 0.0]
    place = -np.log2(z) * BINS_PER_STEP / SHARE_STEP
    bins = np.arange(-ABOVE, BELOW + 1)
    weight = np.exp(-0.5 * ((bins - np.minimum(place, BELOW)[:, None]) / SMEAR) ** 2)
    weight /= weight.sum(axis=1, keepdims=True)
    found = law @ weight
    found /= found.sum(axis=1, keepdims=True)
    return np.log((1.0 - OUTLIERS) * found + OUTLIERS / NUM_BINS)


def mean_divergence(shape: FloatArray, amount: FloatArray, certain: int) -> FloatArray:
    """E[D] after ``certain`` updates and Poisson(a) more, by share A, (NUM_SHARES, len(a))."""
    gone = dynamic_shares()[:, None] * lost(shape).reshape(1, -1)
    law = state_law(shape, amount, certain).reshape(len(amount), -1)
    return np.asarray((2.0 * gone / (1.0 + gone)) @ law.T)


@cache
def shape_tables() -> ShapeTables:
    """The tables, made at the first call."""
    grid = np.exp2(np.arange(NUM_AMOUNTS) / PER_OCTAVE + LEAST)
    edges = np.concatenate(([0.0], grid))
    nodes, weights = np.polynomial.legendre.leggauss(3)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    inner = (middle[:, None] + half[:, None] * nodes).reshape(-1)
    kinds = shapes()
    found = np.stack([_log_found(shape, grid) for shape in kinds], axis=-1)
    size = (NUM_SHARES, len(kinds), NUM_AMOUNTS, TOLD + 1)
    divergence, missed = np.zeros(size), np.zeros(size)
    for number, shape in enumerate(kinds):
        before = np.zeros(NUM_SHARES)
        for certain in range(TOLD + 1):
            values = mean_divergence(shape, np.concatenate((grid, inner, [0.0])), certain)
            at_nodes = values[:, NUM_AMOUNTS:-1].reshape(NUM_SHARES, NUM_AMOUNTS, 3)
            areas = np.cumsum((at_nodes @ weights) * half, axis=1)
            divergence[:, number, :, certain] = values[:, :NUM_AMOUNTS]
            missed[:, number, :, certain] = before[:, None] + areas
            before = before + values[:, -1]
    gain = grid * divergence[..., 0] - missed[..., 0]
    return ShapeTables(found.astype(np.float32), divergence, missed, gain, grid)
