"""Area under the ROC curve, with intervals.

The area is the probability that a positive example scores above a negative one, ties counting half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types.arguments import whole

FloatArray = NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate with its 95 % interval."""

    estimate: float
    low: float
    high: float


class Subsets(NamedTuple):
    """Mean and standard deviation (ddof 1) over subsets of the examples."""

    mean: float
    deviation: float


class _Sorted(NamedTuple):
    """Examples in the order of their scores.

    ``order`` (n,) sorts the examples, ``starts`` (k,) are the first positions of the k distinct
    scores, and ``positive`` (n,) the sorted labels, as 0.0 and 1.0.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    positive: FloatArray


def _sorted(labels: ArrayLike, scores: ArrayLike) -> _Sorted:
    """Check and sort examples."""
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
    return _Sorted(order, starts, happened[order].astype(np.float64))


def _area(ordered: _Sorted, weights: FloatArray) -> float:
    """Return the area with weights (n,) in the order of the scores; NaN without both classes."""
    positive = np.add.reduceat(weights * ordered.positive, ordered.starts)
    negative = np.add.reduceat(weights * (1.0 - ordered.positive), ordered.starts)
    below = np.cumsum(negative) - 0.5 * negative
    pairs = positive.sum() * negative.sum()
    return float(positive @ below / pairs) if pairs > 0.0 else float("nan")


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Return the area under the ROC curve.

    Args:
        labels: (n,) bool, both classes present.
        scores: (n,), larger for likelier positives.

    Raises:
        ValueError: shapes that disagree, scores that are not finite, labels of one class.
    """
    ordered = _sorted(labels, scores)
    return _area(ordered, np.ones(len(ordered.order)))


def bootstrap(
    labels: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike | None = None,
    draws: int = 200,
    seed: int = 0,
) -> Interval:
    """Return the area with its bootstrap percentile interval.

    Examples of one offer on many days are correlated; as a group, they are drawn together, which
    gives the interval its proper width. Draws without both classes are left out.

    Args:
        labels: as of :func:`auc`.
        scores: as of :func:`auc`.
        groups: group of each example, (n,) integers >= 0; None puts each in its own.
        draws: number of bootstrap draws, >= 2.
        seed: seed of the draws, >= 0.

    Raises:
        ValueError: as :func:`auc`, or groups of another shape.
    """
    draws, rng = whole("draws", draws, 2), np.random.default_rng(whole("seed", seed, 0))
    ordered = _sorted(labels, scores)
    count = len(ordered.order)
    member = np.arange(count) if groups is None else np.asarray(groups)
    if member.shape != (count,):
        raise ValueError(f"groups must have shape ({count},), got {member.shape}")
    member = np.unique(member, return_inverse=True)[1][ordered.order]
    size = int(member.max()) + 1
    areas = []
    for _ in range(draws):
        drawn = np.bincount(rng.integers(0, size, size), minlength=size).astype(np.float64)
        areas.append(_area(ordered, drawn[member]))
    low, high = np.nanquantile(areas, (0.025, 0.975))
    return Interval(_area(ordered, np.ones(count)), float(low), float(high))


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
    _sorted(happened, values)
    rng = np.random.default_rng(whole("seed", seed, 0))
    parts = np.array_split(rng.permutation(len(values)), whole("subsets", subsets, 2))
    areas = [auc(happened[part], values[part]) for part in parts]
    return Subsets(float(np.mean(areas)), float(np.std(areas, ddof=1)))
