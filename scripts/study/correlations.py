"""Correlation coefficients of numbers per page."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def correlation(first: ArrayLike, second: ArrayLike, *, ranked: bool = False) -> float:
    """Return the correlation coefficient over the pages on which both are known.

    Args:
        first: numbers by page, NaN where unknown, (m,).
        second: the numbers to correlate with, (m,).
        ranked: True for Spearman's coefficient, of ranks; False for Pearson's.

    Returns:
        The coefficient; NaN with fewer than three known pages, or if one of the two is constant.
    """
    from scipy.stats import rankdata  # slow to import

    both = np.array([first, second], np.float64)
    both = both[:, ~np.isnan(both).any(axis=0)]
    if both.shape[1] < 3 or np.ptp(both, axis=1).min() == 0.0:
        return float("nan")
    return float(np.corrcoef(*(rankdata(both, axis=1) if ranked else both))[0, 1])
