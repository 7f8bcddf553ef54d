r"""Freshness that is measured by audits, with a band that holds for all numbers of them at once.

An audit fetches a page drawn by importance, which is stale, y = 1, or fresh, y = 0, and was
believed to be stale with probability b. With B, the mean belief of ``DRAWS`` further such pages at
the same instant, X = B + y - b has the mean P, the importance-weighted share of stale pages. Let
d = y - b, mu its mean given the past, and m in [-1/2, 1/2] the mean of earlier d. For each l < 2/3
the product over audits of (1 +- l (d - m)) exp(-+ l (mu - m)) exp(+- l (B - E B) - l^2 / (8 DRAWS))
is a supermartingale, by 1 + x <= exp x and Hoeffding's inequality for B. So is its mean over
several l, which is ever above 2 / ALPHA with probability ALPHA / 2 at most (Ville). This bounds the
sum of X - P, however P changes. (Theorem 4 of Howard, Ramdas, McAuliffe and Sekhon 2021,
"Time-uniform, nonparametric, nonasymptotic confidence sequences", has a smaller bound than 1 + x.)
A missed audit counts as fresh for one end of the band and as stale for the other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import floats

ALPHA, DRAWS, BINS = 0.05, 256, 10
GRID = 0.58 * 2.0 ** -np.arange(9.0)
WEIGHTS = np.array([0.1, 0.76, *[0.02] * 7])
"""The numbers l and their weights, for 1,000 audits of pages of which a tenth is stale."""
BAR = math.log(2.0 / ALPHA)  # the logarithm of the process at an end of the band


class MeasuredFreshness(NamedTuple):
    """The importance-weighted freshness that audits found, mean over their instants.

    Attributes:
        estimate: the measured freshness, with its band of 95%, low and high; nan without answers.
        believed: the mean of the believed freshness at the same instants.
        audits, missed: number of audits, and of those without an answer.
        gain: width of the band without beliefs over that with them.
        belief_gap: believed less measured freshness, with its band of 95%, gap_low and gap_high.
        calibration: by tenths of the believed probability of a stale page: its mean, the share that
            was stale, and the number of answered audits, (bins, 3).
    """

    estimate: float
    low: float
    high: float
    believed: float
    audits: int
    missed: int
    gain: float
    belief_gap: float
    gap_low: float
    gap_high: float
    calibration: FloatArray

    @property
    def is_off(self) -> bool:
        """Whether the beliefs are wrong on average: the band of the gap does not contain 0."""
        return not self.gap_low <= 0.0 <= self.gap_high


def measure_freshness(
    stale: ArrayLike, believed: ArrayLike, mean_belief: ArrayLike, missed: ArrayLike = False
) -> MeasuredFreshness:
    """Return the freshness that n audits measured, in the order of their draws.

    Args:
        stale: whether each page was stale, (n,); any value in [0, 1] where the audit was missed.
        believed: the believed probability of that, (n,), 0 without beliefs.
        mean_belief: the mean of it over ``DRAWS`` other pages, (n,).
        missed: whether the audit has no answer, (n,).

    Raises ValueError if an array is of another length or not in [0, 1].
    """
    named = {"stale": stale, "believed": believed, "mean_belief": mean_belief, "missed": missed}
    arrays = [np.atleast_1d(floats(name, x, flags=True)) for name, x in named.items()]
    for name, array in zip(named, arrays, strict=True):
        if not np.all((array >= 0.0) & (array <= 1.0)):
            raise ValueError(f"{name} must lie in [0, 1], got {array}")
    y, b, mean_b, lost = np.broadcast_arrays(*arrays)
    if y.size == 0:
        nothing = math.nan, 0.0, 1.0, math.nan, 0, 0, math.nan, math.nan, -1.0, 1.0
        return MeasuredFreshness(*nothing, np.zeros((0, 3)))
    is_known, belief = lost < 0.5, float(mean_b.mean())
    lowest, highest = np.where(is_known, y, 0.0), np.where(is_known, y, 1.0)
    bounds = np.array(_band(lowest - b, highest - b, 1.0))
    low, high = np.clip(1.0 - belief - bounds[::-1], 0.0, 1.0).tolist()
    width = np.ptp(np.clip(_band(lowest, highest, 0.0), 0.0, 1.0))
    y, b, bins = y[is_known], b[is_known], np.minimum(b[is_known] * BINS, BINS - 1).astype(int)
    rows = [(b[bins == k].mean(), y[bins == k].mean(), (bins == k).sum()) for k in np.unique(bins)]
    gap = float(np.mean(y - b)) if y.size else math.nan
    measured = float(np.clip(1.0 - belief - gap, low, high)), low, high, 1.0 - belief
    counts = is_known.size, is_known.size - y.size
    gaps = float(width / (high - low)), gap, *_band(lowest - arrays[1], highest - arrays[1], 0.0)
    return MeasuredFreshness(*measured, *counts, *gaps, np.array(rows, float).reshape(-1, 3))


def _band(lowest: FloatArray, highest: FloatArray, draws: float) -> tuple[float, float]:
    """Return the band of the mean mu of d, between arrays, (n,); with ``draws`` 1 of X less B."""
    below, above = _deviation(lowest, 1.0, draws), _deviation(highest, -1.0, draws)
    return float(lowest.mean()) - below, float(highest.mean()) + above


def _deviation(d: FloatArray, sign: float, draws: float) -> float:
    """Return by how much the mean of d may be above that of mu, or with sign -1 below it."""
    cost = log_costs(d, sign, draws)[:, -1]
    highest = float(np.min((BAR + cost) / GRID)) + 1.0
    root = brentq(lambda total: np.logaddexp.reduce(GRID * total - cost) - BAR, 0.0, highest)
    return float(root) / d.size


def log_costs(d: FloatArray, sign: float, draws: float) -> FloatArray:
    """Return c, (l, n), with sum exp(l sign sum(d - mu) - c) the process after each audit."""
    x = sign * (d - np.clip((np.cumsum(d) - d) / np.arange(1, d.size + 1), -0.5, 0.5))
    gain = np.multiply.outer(GRID, x)
    gain -= np.log1p(gain) - draws * GRID[:, None] ** 2 / (8.0 * DRAWS)
    return np.asarray(np.cumsum(gain, axis=1) - np.log(WEIGHTS)[:, None])
