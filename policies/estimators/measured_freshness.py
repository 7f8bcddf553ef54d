r"""Freshness that is measured by audits, with a band that holds at all times at once.

An *audit* is a fetch of a page that is drawn at random by importance. Its page is stale, y = 1, or
fresh, y = 0, and was believed to be stale with probability b. With B, the mean belief of ``DRAWS``
further pages drawn by importance at the same instant, X = B + y - b has the mean P, the
importance-weighted share of stale pages, as B and b have the same mean: a control variate.

Let d = y - b, of mean mu given the past, and m in [-1/2, 1/2] a mean of earlier d. For each
l < 2/3 and both signs, the product over the audits of

    (1 +- l (d - m)) exp(-+ l (mu - m)) exp(+- l (B - E B) - l^2 / (8 DRAWS))

is a nonnegative supermartingale, as 1 + x <= exp x, and by Hoeffding's inequality for B. So is the
mean of it over several l. By Ville's inequality it is ever above 2 / ALPHA with probability
ALPHA / 2 at most, which bounds the sum of X - P. (Howard, Ramdas, McAuliffe and Sekhon 2021,
"Time-uniform, nonparametric, nonasymptotic confidence sequences", Theorem 4, weakens 1 + x by the
inequality of Fan, Grama and Liu 2015.) P may change in any way. Whether an audit is answered may
depend on its page, not on later draws; one that is missed counts as fresh for one end of the band
and as stale for the other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.arguments import floats

ALPHA, DRAWS, BINS = 0.05, 256, 10
STEPS = np.arange(-7, 2)
GRID = np.minimum(0.29 * 2.0**STEPS, 0.58)
"""The numbers l: bands are narrowest near 1,000 audits of pages of which a tenth is stale."""
WEIGHTS = np.array([*[0.02] * 7, 0.76, 0.1])


class MeasuredFreshness(NamedTuple):
    """The importance-weighted freshness, mean over the instants of n audits, by what they found.

    Attributes:
        estimate: the measured freshness; nan without an answered audit.
        low, high: its band of 95%, which holds for all numbers of audits at once, in [0, 1].
        believed: the mean of the believed freshness at the same instants; nan without audits.
        audits: their number, n.
        missed: the number of those without an answer; they widen the band by missed / audits.
        gain: width of the band without the beliefs, over that with them.
        belief_gap: mean over the audits of believed less found freshness; nan as ``estimate``.
        gap_low, gap_high: its band of 95%; the beliefs are wrong if it does not contain 0.
        calibration: by the believed probability of a stale page, in tenths that have audits: its
            mean, the share that was found stale, and the number of answered audits, (bins, 3).
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
    """Return the freshness that n audits measured, in the order in which they were handed out.

    Args:
        stale: whether the page of each was stale, (n,); of any value where it was missed.
        believed: the believed probability of that, (n,), 0 for all without beliefs.
        mean_belief: the mean of it over ``DRAWS`` pages drawn at the same instant, (n,).
        missed: whether the audit has no answer, (n,) or one for all.

    Raises:
        ValueError: an array is of another length, or not in [0, 1].
    """
    named = {"stale": stale, "believed": believed, "mean_belief": mean_belief, "missed": missed}
    arrays = {name: np.atleast_1d(floats(name, x, flags=True)) for name, x in named.items()}
    shape = arrays["stale"].shape
    for name, array in arrays.items():
        if (array.shape != shape and name != "missed") or not np.all((array >= 0) & (array <= 1)):
            raise ValueError(f"{name} must be numbers in [0, 1] of shape {shape}, got {array}")
    y, b, mean_b, lost = np.broadcast_arrays(*arrays.values())
    no_answer = lost > 0.5
    if not y.size:
        nothing = math.nan, 0.0, 1.0, math.nan, 0, 0, math.nan, math.nan, -1.0, 1.0
        return MeasuredFreshness(*nothing, np.zeros((0, 3)))
    ends = np.where(no_answer, 0.0, y), np.where(no_answer, 1.0, y)
    lowest, highest = (mean_b.mean() + x for x in _band(ends[0] - b, ends[1] - b, 1.0))
    low, high = np.clip([1.0 - highest, 1.0 - lowest], 0.0, 1.0).tolist()
    plain = np.ptp(np.clip(_band(*ends, 0.0), 0.0, 1.0))
    gap_low, gap_high = _band(ends[0] - b, ends[1] - b, 0.0)
    gap = float(np.mean((y - b)[~no_answer])) if not no_answer.all() else math.nan
    belief = 1.0 - float(mean_b.mean())
    return MeasuredFreshness(
        *(float(np.clip(belief - gap, low, high)), low, high, belief),
        *(y.size, int(no_answer.sum()), float(plain / (high - low))),
        *(gap, gap_low, gap_high, _calibration(y[~no_answer], b[~no_answer])),
    )


def _band(least: FloatArray, largest: FloatArray, draws: float) -> tuple[float, float]:
    """Return the band of the mean of d, by the least and the largest that each d may be, (n,).

    With ``draws`` 1 it is that of the mean of X less the mean of B.
    """
    down, up = _deviation(least, 1.0, draws), _deviation(largest, -1.0, draws)
    return float(least.mean() - down), float(largest.mean() + up)


def _deviation(d: FloatArray, sign: float, draws: float) -> float:
    """Return by how much the mean of d may be above the mean of mu, or with sign -1 below it."""
    count = np.arange(1, d.size + 1)
    x = sign * (d - np.clip((np.cumsum(d) - d) / count, -0.5, 0.5))
    cost = np.array([rate * x.sum() - np.log1p(rate * x).sum() for rate in GRID])
    cost += draws * d.size * GRID**2 / (8.0 * DRAWS)
    bar = math.log(2.0 / ALPHA)

    def excess(total: float) -> float:
        return float(np.logaddexp.reduce(GRID * total - cost + np.log(WEIGHTS))) - bar

    largest = float(np.min((bar - np.log(WEIGHTS) + cost) / GRID))
    return float(brentq(excess, 0.0, 1.0 + largest)) / d.size


def _calibration(stale: FloatArray, believed: FloatArray) -> FloatArray:
    """Return the rows of ``MeasuredFreshness.calibration``."""
    bins = np.minimum((believed * BINS).astype(np.int64), BINS - 1)
    some: list[BoolArray] = [bins == k for k in np.unique(bins)]
    rows = [[believed[which].mean(), stale[which].mean(), which.sum()] for which in some]
    return np.array(rows, float).reshape(-1, 3)
