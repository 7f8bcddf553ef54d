"""The law of importance, change rates and complete observation of the Bing set, fitted.

The set of Kolobov et al. (2019) is not part of this project. Everything here is fitted to what is
published of it, or chosen where nothing is; each number says which.

Change rates and importance are jointly log-normal. The published means of the set (per day, from
the costs in the caption of figure 1 of Kolobov et al.) are E[Delta] = 1.124, and under importance
weights E[Delta / (Delta + 0.2)] = 0.554 and E[ln(1 + 5 Delta)] = 1.118. Weights that are log-normal
too only shift the mean of ln Delta, by CORRELATION * CHANGE_SPREAD * IMPORTANCE_SPREAD. With change
rates kept to what a history of 98 daily crawls can show, three parameters fit the three means.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray

CHANGE_RANGE = (0.020, 5.36)
"""Least and largest change rate per day that 98 daily crawls tell apart from none and from all."""

CHANGE_MEDIAN = 0.43379
CHANGE_SPREAD = 1.68560
"""Fitted: median of the change rate per day, and standard deviation of its logarithm."""

WEIGHTED_MEDIAN = 0.27393
"""Fitted: the median under importance weights."""

IMPORTANCE_SPREAD = 1.5
"""Chosen: standard deviation of the logarithm of importance."""

CORRELATION = math.log(WEIGHTED_MEDIAN / CHANGE_MEDIAN) / (CHANGE_SPREAD * IMPORTANCE_SPREAD)
"""Of the logarithms of importance and change rate, with that spread; important pages change less
often."""

DECLARED = 0.04
DECLARED_IMPORTANCE = 0.264
"""Published: the share of URLs that declare signals, and the importance that they carry."""

DECLARED_QUANTILE = 1.75069
DECLARED_LOADING = (DECLARED_QUANTILE - 0.63106) / IMPORTANCE_SPREAD
"""The normal quantiles of both shares, and how far importance decides who declares: a page does
where ``loading * z + sqrt(1 - loading**2) * other`` exceeds the first, z the normal score of its
importance; importance weights shift z by IMPORTANCE_SPREAD."""

LEAST_SPREAD = abs(math.log(WEIGHTED_MEDIAN / CHANGE_MEDIAN)) / CHANGE_SPREAD
"""With less, no correlation brings about the weighted median."""


class Urls(NamedTuple):
    """What the law says of m URLs.

    Attributes:
        importance: of mean 1, (m,).
        change_rate: changes per day, (m,).
        declared: whether the URL's host tells of its changes, (m,).
    """

    importance: FloatArray
    change_rate: FloatArray
    declared: BoolArray


def urls_of(
    fame: FloatArray, own: FloatArray, other: FloatArray, spread: float = IMPORTANCE_SPREAD
) -> Urls:
    """Return the URLs of given independent standard normal scores, each of shape (m,).

    ``fame`` decides importance; with ``own`` it decides the change rate, with ``other`` whether
    the URL is declared.

    Args:
        fame: scores.
        own: scores.
        other: scores.
        spread: standard deviation of the logarithm of importance, >= LEAST_SPREAD. The correlation
            and the loading follow it, so that the published means stay what they are. Below 1.12
            the loading is at its end, 1, and the declared URLs carry less importance than they
            should: 16% of it at .75.

    Raises:
        ValueError: a spread that is too small.
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
