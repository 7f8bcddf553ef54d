"""Area under the ROC curve, with intervals.

The area is the probability that a positive example scores above a negative one, ties counting half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from crawl_envs.types.arguments import whole


class Interval(NamedTuple):
    """An estimate with its 95 % interval."""

    estimate: float
    low: float
    high: float


class Subsets(NamedTuple):
    """Mean and standard deviation (ddof 1) over subsets of the examples."""

    mean: float
    deviation: float


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Return the area under the ROC curve.

    Args:
        labels: (n,) bool, both classes present.
        scores: (n,), larger for likelier positives.

    Raises:
        ValueError: shapes that disagree, scores that are not finite, labels of one class.
    """
    happened, values = np.asarray(labels), np.asarray(scores, np.float64)
    if happened.ndim != 1 or happened.shape != values.shape:
        raise ValueError(
            f"labels and scores must have one shape (n,), got {happened.shape} and {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"scores must be finite, got {values[~np.isfinite(values)][0]}")
    happened = happened.astype(bool)
    if not happened.any() or happened.all():
        raise ValueError(f"labels must hold both classes, got {len(happened)} of one")
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ranked[1:] > ranked[:-1])))
    positive = np.add.reduceat(happened[order].astype(np.float64), starts)
    negative = np.add.reduceat((~happened[order]).astype(np.float64), starts)
    below = np.cumsum(negative) - 0.5 * negative
    return float(positive @ below / (positive.sum() * negative.sum()))


def over_markets(areas: ArrayLike) -> Interval:
    """Return the mean of the areas of independent markets, with its interval of Student's t.

    Offers of a market share merchants, seasons and promotions: an interval over the offers of one
    market, as from a bootstrap, leaves out most of what the next market may differ by. Markets are
    few: a percentile bootstrap over ten would cover 90 %, Student's t covers 95 %.

    Args:
        areas: of one predictor on each market, (k,), k >= 2.

    Raises:
        ValueError: fewer than two areas, or one that is not in [0, 1].
    """
    values = np.asarray(areas, np.float64)
    if values.ndim != 1 or values.size < 2 or not np.all((values >= 0.0) & (values <= 1.0)):
        raise ValueError(f"areas must be two or more numbers in [0, 1], got {areas!r}")
    error = float(values.std(ddof=1)) / np.sqrt(values.size)
    mean, half = float(values.mean()), float(stdtrit(values.size - 1, 0.975)) * error
    return Interval(mean, mean - half, mean + half)


def over_subsets(labels: ArrayLike, scores: ArrayLike, subsets: int = 20, seed: int = 0) -> Subsets:
    """Return the area's mean and standard deviation over random subsets (Han et al. 2020, §5.1).

    Args:
        labels: as of :func:`auc`.
        scores: as of :func:`auc`.
        subsets: number of random parts of equal size, up to one example, >= 2.
        seed: seed of the split, >= 0.

    Raises:
        ValueError: as :func:`auc`; a subset with one class only.
    """
    happened, values = np.asarray(labels), np.asarray(scores)
    auc(happened, values)
    rng = np.random.default_rng(whole("seed", seed, 0))
    parts = np.array_split(rng.permutation(len(values)), whole("subsets", subsets, 2))
    areas = [auc(happened[part], values[part]) for part in parts]
    return Subsets(float(np.mean(areas)), float(np.std(areas, ddof=1)))
