r"""Scale-free tables of the divergence of pages, for posteriors.

The model of section 3.3 of Olston and Pandey (2008), restricted to pages of one or two dynamic
regions and a static one. Such a page has an update *rate* L, a dynamic *share* A of its fragments,
and a *shape*: the number of items K of its scroll region (1 for churn), and the shares of its churn
region, if it has one too, in the updates (``phi``) and the dynamic fragments (``f``). A copy that
has missed N_1 and N_2 updates has lost the share A z of its fragments,

    z = f [N_1 >= 1] + (1 - f) min(N_2, K) / K,

and diverges by 2 A z / (1 + A z). Rates and shares only shift tables over log a (a = L t, the
expected updates) and log z. Hence tables over shapes alone serve pages of any rate.
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
"""Tabulated values of the expected updates a per factor of two."""
MIN_LOG2, MAX_LOG2 = -12, 12
"""log2 of the least and the largest tabulated a."""
NUM_AMOUNTS = PER_OCTAVE * (MAX_LOG2 - MIN_LOG2) + 1
SHARE_STEP, NUM_SHARES = 0.75, 12
"""Octaves between two shares A = 1, 2^-0.75, ..., and their number."""
BINS_PER_STEP = 2
"""Bins of lost shares per step of shares."""
ABOVE, BELOW = 4, 24
"""Bins of z above and below 1, 2^(-SHARE_STEP / BINS_PER_STEP) wide; values beyond are clipped."""
NUM_BINS = ABOVE + BELOW + 1
SMEAR = 1.0
"""Standard deviation, in bins, of an observed lost share: shares are tabulated coarsely."""
OUTLIERS = 0.05
"""Share of observations that follow no shape, uniform over the bins."""
MAX_CERTAIN = 4
"""Largest tabulated number j = 0 .. MAX_CERTAIN of certain updates."""
ITEMS = (1, 2, 4, 8, 16, 32)
SPEEDS = (0.25, 1.0, 4.0, 16.0, 64.0)
"""Update rates of the churn region relative to those of the scroll region."""
PARTS = (0.2, 0.5, 0.8)
"""Shares of the churn region in the dynamic fragments."""


class ShapeTables(NamedTuple):
    """Tables over expected updates a, shares A, and the s shapes.

    Attributes:
        log_lost: log-probability that an updated page has lost z, by bin,
            (NUM_AMOUNTS, NUM_BINS, s).
        divergence: E[D] after j certain updates and Poisson(a) more,
            (NUM_SHARES, s, NUM_AMOUNTS, MAX_CERTAIN + 1).
        missed: E[sum of d_k over k < N], N = j + Poisson(a), d_k = E[D] after k updates; of the
            same shape.
        gain: a times ``divergence`` less ``missed``, at j = 0, (NUM_SHARES, s, NUM_AMOUNTS).
        amount: a, (NUM_AMOUNTS,).
    """

    log_lost: Float32Array
    divergence: FloatArray
    missed: FloatArray
    gain: FloatArray
    amount: FloatArray


def shapes() -> FloatArray:
    """Return all shapes of pages as rows (phi, f, K), (s, 3)."""
    single = [(0.0, 0.0, items) for items in ITEMS]
    double = [
        (speed / (speed + 1.0), part, items)
        for items in ITEMS
        for speed in SPEEDS
        for part in PARTS
    ]
    return np.array(single + double, np.float64)


def dynamic_shares() -> FloatArray:
    """Return the grid of dynamic shares A, from 1 downwards, (NUM_SHARES,)."""
    return np.asarray(2.0 ** (-SHARE_STEP * np.arange(NUM_SHARES)))


def updates_distribution(amount: FloatArray, items: int, certain: int = 0) -> FloatArray:
    """Return P(min(certain + N, K) = i), K = items, N ~ Poisson(amount), (len(amount), K + 1)."""
    count = np.arange(items)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_amount = np.log(amount)[:, None]
        exponent = np.where(count == 0, 0.0, count * log_amount) - amount[:, None]
    few = np.exp(exponent - gammaln(count + 1.0))
    distribution = np.zeros((len(amount), items + 1))
    width = max(items - certain, 0)
    distribution[:, certain : certain + width] = few[:, :width]
    distribution[:, items] = np.maximum(1.0 - distribution[:, :items].sum(axis=1), 0.0)
    return distribution


def state_distribution(shape: FloatArray, amount: FloatArray, certain: int = 0) -> FloatArray:
    """Return P(N_1 >= 1 or not, min(N_2, K) = i) for a shape, (len(amount), 2, K + 1).

    ``certain`` updates and Poisson(amount) more are split over the two regions, N_1 and N_2.
    """
    from scipy.stats import binom  # slow to import

    phi, _, items = shape
    joint = np.zeros((len(amount), 2, int(items) + 1))
    for first in range(certain + 1):
        weight = binom.pmf(first, certain, phi)
        if weight > 0.0:
            second = updates_distribution((1.0 - phi) * amount, int(items), certain - first)
            unchanged = np.exp(-phi * amount) if first == 0 else np.zeros(len(amount))
            joint[:, 0] += weight * unchanged[:, None] * second
            joint[:, 1] += weight * (1.0 - unchanged)[:, None] * second
    return joint


def lost(shape: FloatArray) -> FloatArray:
    """Return the lost share z of dynamic fragments in each state of two regions, (2, K + 1)."""
    _, part, items = shape
    scrolled = (1.0 - part) * np.arange(int(items) + 1) / items
    return np.stack((scrolled, part + scrolled))


def _log_lost(shape: FloatArray, amount: FloatArray) -> FloatArray:
    """Return the log-probability of each bin of z for an updated page, (NUM_AMOUNTS, NUM_BINS)."""
    distribution = state_distribution(shape, amount).reshape(len(amount), -1)[:, 1:]
    z = lost(shape).reshape(-1)[1:]
    distribution, z = distribution[:, z > 0.0], z[z > 0.0]
    place = -np.log2(z) * BINS_PER_STEP / SHARE_STEP
    bins = np.arange(-ABOVE, BELOW + 1)
    weight = np.exp(-0.5 * ((bins - np.minimum(place, BELOW)[:, None]) / SMEAR) ** 2)
    weight /= weight.sum(axis=1, keepdims=True)
    chances = distribution @ weight
    chances /= chances.sum(axis=1, keepdims=True)
    return np.log((1.0 - OUTLIERS) * chances + OUTLIERS / NUM_BINS)


def mean_divergence(shape: FloatArray, amount: FloatArray, certain: int) -> FloatArray:
    """Return the mean D after certain + Poisson(a) updates, by share A, (NUM_SHARES, len(a))."""
    gone = dynamic_shares()[:, None] * lost(shape).reshape(1, -1)
    distribution = state_distribution(shape, amount, certain).reshape(len(amount), -1)
    return np.asarray((2.0 * gone / (1.0 + gone)) @ distribution.T)


@cache
def shape_tables() -> ShapeTables:
    """Return the tables of all shapes; they are computed at the first call."""
    grid = np.exp2(np.arange(NUM_AMOUNTS) / PER_OCTAVE + MIN_LOG2)
    edges = np.concatenate(([0.0], grid))
    nodes, weights = np.polynomial.legendre.leggauss(3)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    inner = (middle[:, None] + half[:, None] * nodes).reshape(-1)
    kinds = shapes()
    log_lost = np.stack([_log_lost(shape, grid) for shape in kinds], axis=-1)
    size = (NUM_SHARES, len(kinds), NUM_AMOUNTS, MAX_CERTAIN + 1)
    divergence, missed = np.zeros(size), np.zeros(size)
    for number, shape in enumerate(kinds):
        before = np.zeros(NUM_SHARES)
        for certain in range(MAX_CERTAIN + 1):
            values = mean_divergence(shape, np.concatenate((grid, inner, [0.0])), certain)
            at_nodes = values[:, NUM_AMOUNTS:-1].reshape(NUM_SHARES, NUM_AMOUNTS, 3)
            areas = np.cumsum((at_nodes @ weights) * half, axis=1)
            divergence[:, number, :, certain] = values[:, :NUM_AMOUNTS]
            missed[:, number, :, certain] = before[:, None] + areas
            before = before + values[:, -1]
    gain = grid * divergence[..., 0] - missed[..., 0]
    return ShapeTables(log_lost.astype(np.float32), divergence, missed, gain, grid)
