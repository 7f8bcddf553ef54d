"""A synthetic set in place of the 18.5 million URLs of the LambdaCrawl paper (Kolobov et al. 2019).

Importance, change rates and complete observation follow :mod:`crawl_envs.instances.urls.law`; 4% of
the pages, with 26.4% of the importance, have complete observation. Time is in days; the paper's
bandwidth is 0.2 crawls per day and page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crawl_envs.instances.urls.law import Urls, urls_of
from crawl_envs.types import BoolArray, FloatArray, Instance

CRAWLS_PER_PAGE = 0.2
"""Bandwidth over the number of pages, per day (Kolobov et al., section 7)."""

PUBLISHED_IMPORTANCE = 1134.0
"""Mean importance of the paper's set, from the caption of figure 1; here it is 1. Optima are equal;
multiply costs by this factor to compare with the paper."""

BLOCK = 2**16
"""Pages drawn at a time; it does not affect the pages."""


def draw_lambdacrawl(rng: np.random.Generator, num_pages: int, **more: Any) -> Instance:
    """Draw pages: a smaller set is a prefix of a larger one; ``more`` as in complete_or_not."""
    return complete_or_not(*draw_urls(rng, num_pages), **more)


def draw_urls(rng: np.random.Generator, num_pages: int, block: int = BLOCK) -> Urls:
    """Draw pages, ``block`` at a time; needs 17 bytes per page and 100 per page of the block."""
    urls = Urls(np.empty(num_pages), np.empty(num_pages), np.empty(num_pages, np.bool_))
    for start in range(0, num_pages, block):
        kept = slice(start, min(start + block, num_pages))
        scores = rng.standard_normal((kept.stop - start, 3))
        for whole_set, drawn in zip(urls, urls_of(*scores.T), strict=True):
            whole_set[kept] = drawn
    return urls


def complete_or_not(
    importance: FloatArray, change_rate: FloatArray, complete: BoolArray, **more: Any
) -> Instance:
    """Return an instance in which exactly the changes of ``complete`` pages, (m,), are signalled.

    These have recall 1, and there are no false signals. ``more`` are bandwidth, bandwidth_steps and
    delay of :class:`crawl_envs.Instance`.

    Raises:
        ValueError: as for :class:`crawl_envs.Instance`.
    """
    return Instance(importance, change_rate, complete.astype(np.float64), **more)
