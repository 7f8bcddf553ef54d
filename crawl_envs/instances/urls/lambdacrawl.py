"""A synthetic substitute for the 18.5 million URLs of the LambdaCrawl paper (Kolobov et al. 2019).

The set, the Bing set, is not part of this project. Constants are fitted to its published
statistics, or chosen; each states which. Time is in days.

Change rates and importance are jointly log-normal. The published means of the set (from the costs
in the caption of figure 1) are E[Delta] = 1.124, and under importance weights
E[Delta / (Delta + 0.2)] = 0.554 and E[ln(1 + 5 Delta)] = 1.118. Log-normal weights only shift the
mean of ln Delta, by CORRELATION * CHANGE_SPREAD * IMPORTANCE_SPREAD. With change rates clipped to
the range identifiable from 98 daily crawls, three parameters fit the three means.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, Instance

CRAWLS_PER_PAGE = 0.2
"""Published: bandwidth over the number of pages, per day (section 7)."""

PUBLISHED_IMPORTANCE = 1134.0
"""Mean importance of the paper's set, from the caption of figure 1; here it is 1. Optima are equal;
multiply costs by this factor to compare with the paper."""

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

MIN_SPREAD = abs(CORRELATION) * IMPORTANCE_SPREAD
"""Least spread of importance for which some correlation gives the weighted median."""

DECLARED = 0.04
DECLARED_IMPORTANCE = 0.264
"""Published: share of URLs that declare signals, and their share of importance."""

DECLARED_QUANTILE = 1.75069
DECLARED_LOADING = (DECLARED_QUANTILE - 0.63106) / IMPORTANCE_SPREAD
"""Normal quantile of the declared share, and loading of importance: a page is declared where
``loading * z + sqrt(1 - loading**2) * other`` exceeds the quantile, with z the normal score of its
importance; importance weights shift z by IMPORTANCE_SPREAD."""

BLOCK = 2**16
"""Pages drawn at a time; it does not affect the pages."""


class Urls(NamedTuple):
    """Parameters of m URLs.

    Attributes:
        importance: weights, (m,); of mean 1 if drawn.
        change_rate: changes per day, (m,).
        complete: whether exactly the changes of the URL are signalled, (m,).
    """

    importance: FloatArray
    change_rate: FloatArray
    complete: BoolArray


def urls_of(
    fame: FloatArray, change: FloatArray, declaring: FloatArray, spread: float = IMPORTANCE_SPREAD
) -> Urls:
    """Turn independent standard normal scores into the parameters of m URLs.

    Args:
        fame: scores that determine importance, (m,).
        change: scores that, with ``fame``, determine change rates, (m,).
        declaring: scores that, with ``fame``, determine which URLs declare signals, (m,).
        spread: standard deviation of log importance, >= MIN_SPREAD. Correlation and loading are
            adjusted to preserve the published means. Below 1.12 the loading is limited to 1, and
            declared URLs have less than the published importance: 16% at .75.

    Raises:
        ValueError: ``spread`` is too small.
    """
    if not MIN_SPREAD <= spread < math.inf:
        raise ValueError(f"spread must be finite and >= {MIN_SPREAD:.3f}, got {spread}")
    correlation = CORRELATION * (IMPORTANCE_SPREAD / spread)
    loading = min(DECLARED_LOADING * (IMPORTANCE_SPREAD / spread), 1.0)
    pace = correlation * fame + math.sqrt(max(1.0 - correlation**2, 0.0)) * change
    score = loading * fame + math.sqrt(1.0 - loading**2) * declaring
    return Urls(
        np.exp(spread * (fame - 0.5 * spread)),
        np.clip(CHANGE_MEDIAN * np.exp(CHANGE_SPREAD * pace), *CHANGE_RANGE),
        score > DECLARED_QUANTILE,
    )


def draw_urls(rng: np.random.Generator, num_pages: int, block: int = BLOCK) -> Urls:
    """Draw the parameters of URLs in blocks: 17 bytes per page, and 100 per page of a block."""
    urls = Urls(np.empty(num_pages), np.empty(num_pages), np.empty(num_pages, np.bool_))
    for start in range(0, num_pages, block):
        rows = slice(start, min(start + block, num_pages))
        scores = rng.standard_normal((rows.stop - start, 3))
        for whole_set, drawn in zip(urls, urls_of(*scores.T), strict=True):
            whole_set[rows] = drawn
    return urls


def draw_lambdacrawl(rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw an instance of URLs, the first of any larger one; ``more`` as in complete_or_not."""
    return complete_or_not(*draw_urls(rng, num_pages), **more)


def complete_or_not(
    importance: FloatArray, change_rate: FloatArray, complete: BoolArray, **more: Any
) -> Instance:
    """Return an instance in which exactly the changes of ``complete`` pages, (m,), are signalled.

    ``more`` are bandwidth, bandwidth_steps and delay of :class:`crawl_envs.Instance`.

    Raises:
        ValueError: as for :class:`crawl_envs.Instance`.
    """
    return Instance(importance, change_rate, complete.astype(np.float64), **more)
