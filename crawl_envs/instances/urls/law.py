"""Fitted law of importance, change rates and complete observation of the Bing set.

The set of Kolobov et al. (2019) is not part of this project. Constants are fitted to its published
statistics, or chosen; each states which.

Change rates and importance are jointly log-normal. The published means of the set (per day, from
the costs in the caption of figure 1 of Kolobov et al.) are E[Delta] = 1.124, and under importance
weights E[Delta / (Delta + 0.2)] = 0.554 and E[ln(1 + 5 Delta)] = 1.118. Log-normal
weights only shift the mean of ln Delta, by CORRELATION * CHANGE_SPREAD * IMPORTANCE_SPREAD. With
change rates clipped to the range identifiable from 98 daily crawls, three parameters fit the three
means.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray

CHANGE_RANGE = (0.020, 5.36)
"""Range of change rates per day that 98 daily crawls distinguish from 0 and from infinity."""

CHANGE_MEDIAN = 0.43379
CHANGE_SPREAD = 1.68560
"""Fitted: median of the change rate per day, and standard deviation of its logarithm."""

WEIGHTED_MEDIAN = 0.27393
"""Fitted: median of the change rate under importance weights."""

IMPORTANCE_SPREAD = 1.5
"""Chosen: standard deviation of the logarithm of importance."""

CORRELATION = math.log(WEIGHTED_MEDIAN / CHANGE_MEDIAN) / (CHANGE_SPREAD * IMPORTANCE_SPREAD)
"""Correlation of log importance and log change rate; important pages change less often."""

DECLARED = 0.04
DECLARED_IMPORTANCE = 0.264
"""Published: share of URLs that declare signals, and their share of importance."""

DECLARED_QUANTILE = 1.75069
DECLARED_LOADING = (DECLARED_QUANTILE - 0.63106) / IMPORTANCE_SPREAD
"""Normal quantile of the declared share, and loading of importance: a page is declared where
``loading * z + sqrt(1 - loading**2) * other`` exceeds the quantile, with z the normal score of its
importance; importance weights shift z by IMPORTANCE_SPREAD."""

LEAST_SPREAD = abs(math.log(WEIGHTED_MEDIAN / CHANGE_MEDIAN)) / CHANGE_SPREAD
"""Least spread for which some correlation gives the weighted median."""


class Urls(NamedTuple):
    """Parameters of m URLs.

    Attributes:
        importance: weights of mean 1, (m,).
        change_rate: changes per day, (m,).
        declared: whether changes of the URL are signalled, (m,).
    """

    importance: FloatArray
    change_rate: FloatArray
    declared: BoolArray


def urls_of(
    fame: FloatArray, own: FloatArray, other: FloatArray, spread: float = IMPORTANCE_SPREAD
) -> Urls:
    """Return URLs for independent standard normal scores.

    Args:
        fame: scores that determine importance, (m,).
        own: scores that, with ``fame``, determine change rates, (m,).
        other: scores that, with ``fame``, determine which URLs are declared, (m,).
        spread: standard deviation of log importance, >= LEAST_SPREAD. Correlation and loading are
            adjusted to preserve the published means. Below 1.12 the loading is limited to 1, and
            declared URLs have less than the published importance: 16% at .75.

    Raises:
        ValueError: ``spread`` is too small.
    """
    if not LEAST_SPREAD <= spread < math.inf:
        raise ValueError(f"spread must be finite and >= {LEAST_SPREAD:.3f}, got {spread}")
    correlation = CORRELATION * (IMPORTANCE_SPREAD / spread)
    loading = min(DECLARED_LOADING * (IMPORTANCE_SPREAD / spread), 1.0)
    pace = correlation * fame + math.sqrt(max(1.0 - correlation**2, 0.0)) * own
    score = loading * fame + math.sqrt(1.0 - loading**2) * other
    return Urls(
        np.exp(spread * (fame - 0.5 * spread)),
        np.clip(CHANGE_MEDIAN * np.exp(CHANGE_SPREAD * pace), *CHANGE_RANGE),
        score > DECLARED_QUANTILE,
    )
