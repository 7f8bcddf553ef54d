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
An audit that is missed or unsure counts as fresh for one end of the band, stale for the other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import floats

ALPHA, DRAWS, BINS = 0.05, 256, 10
GRID = 0.58 * 2.0 ** -np.arange(9.0)
WEIGHTS = np.array([0.1, 0.76, *[0.02] * 7])
"""The numbers l and their weights, for 1,000 audits of pages of which a tenth is stale."""
BAR = math.log(2.0 / ALPHA)  # the logarithm of the process at an end of the band


class MeasuredFreshness(NamedTuple):
    """The importance-weighted freshness that audits found, mean over their instants.

    Without audits it has the values below.

    Attributes:
        estimate: the measured freshness, nan without answers.
        low, high: its band of 95%.
        believed: the mean of the believed freshness at the same instants, nan without beliefs.
        audits, missed: number of audits, and of those without an answer.
        gain: width of the band without beliefs over that with them, nan if that has no width.
        belief_gap: believed less measured freshness, nan without answers or beliefs.
        gap_low, gap_high: its band of 95%, nan without beliefs.
        calibration: by tenths of the believed probability of a stale page: its mean, the share that
            was stale, and the number of audits with a sure answer, (bins, 3).
    """

    estimate: float = math.nan
    low: float = 0.0
    high: float = 1.0
    believed: float = math.nan
    audits: int = 0
    missed: int = 0
    gain: float = math.nan
    belief_gap: float = math.nan
    gap_low: float = -1.0
    gap_high: float = 1.0
    calibration: FloatArray = np.zeros((0, 3))

    @property
    def is_off(self) -> bool:
        """Whether the beliefs are wrong on average: the band of the gap does not contain 0."""
        return self.gap_low > 0.0 or self.gap_high < 0.0


def measure_freshness(
    stale: ArrayLike,
    believed: ArrayLike,
    mean_belief: ArrayLike,
    missed: ArrayLike = False,
    unsure: ArrayLike = False,
) -> MeasuredFreshness:
    """Return the freshness that n audits measured, in the order of their draws.

    Args:
        stale: whether each page was stale, (n,); any value in [0, 1] where the audit was missed.
        believed: the believed probability of that, (n,), 0 without beliefs.
        mean_belief: the mean of it over ``DRAWS`` other pages, (n,).
        missed: whether the audit has no answer, (n,).
        unsure: whether its answer may be wrong, (n,): it counts for estimates only.

    Raises ValueError if an array is of another length or not in [0, 1].
    """
    named = {"stale": stale, "believed": believed, "mean_belief": mean_belief}
    named |= {"missed": missed, "unsure": unsure}
    arrays = [np.atleast_1d(floats(name, x, flags=True)) for name, x in named.items()]
    for name, array in zip(named, arrays, strict=True):
        if not np.all((array >= 0.0) & (array <= 1.0)):
            raise ValueError(f"{name} must lie in [0, 1], got {array}")
    y, b, mean_b, lost, doubt = np.broadcast_arrays(*arrays)
    if y.size == 0:
        return MeasuredFreshness()
    is_known, believed = lost < 0.5, 1.0 - float(mean_b.mean())
    is_sure = is_known & (doubt < 0.5)
    lower, upper = np.where(is_sure, y, 0.0), np.where(is_sure, y, 1.0)
    low, high = np.clip(believed - np.array(_band(lower - b, upper - b, 1.0)), 0.0, 1.0)[::-1]
    plain_low, plain_high = np.clip(_band(lower, upper, 0.0), 0.0, 1.0)
    gap_low, gap_high = np.clip(_band(lower - b, upper - b, 0.0), -1.0, 1.0).tolist()
    gap = float(np.mean((y - b)[is_known])) if is_known.any() else math.nan
    y, b = y[is_sure], b[is_sure]
    bins = np.minimum(b * BINS, BINS - 1).astype(int)
    rows = [(b[bins == k].mean(), y[bins == k].mean(), (bins == k).sum()) for k in np.unique(bins)]
    return MeasuredFreshness(
        estimate=float(np.clip(believed - gap, low, high)),
        low=float(low),
        high=float(high),
        believed=believed,
        audits=is_known.size,
        missed=is_known.size - int(is_known.sum()),
        gain=float((plain_high - plain_low) / (high - low)) if high > low else math.nan,
        belief_gap=gap,
        gap_low=gap_low,
        gap_high=gap_high,
        calibration=np.array(rows, float).reshape(-1, 3),
    )


def _band(lower: FloatArray, upper: FloatArray, draws: float) -> tuple[float, float]:
    """Return the band of the mean mu of d, between arrays, (n,); with ``draws`` 1 of X less B."""
    below, above = _deviation(lower, 1.0, draws), _deviation(upper, -1.0, draws)
    return float(lower.mean()) - below, float(upper.mean()) + above


def _deviation(d: FloatArray, sign: float, draws: float) -> float:
    """Return by how much the mean of d may be above that of mu, or with sign -1 below it."""
    from scipy.optimize import brentq  # its import is slow

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
