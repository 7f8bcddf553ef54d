"""A synthetic set in place of the 18.5 million URLs of the LambdaCrawl paper (Kolobov et al. 2019).

Importance, change rates and complete observation follow :mod:`crawl_envs.instances.urls.law`; 4% of
the pages, with 26.4% of the importance, have complete observation. Time is in days; the paper's
bandwidth is 0.2 crawls per day and page.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawl_envs.instances.urls.law import Urls, urls_of
from crawl_envs.types import BoolArray, FloatArray, Instance
from crawl_envs.types.arguments import bandwidth_function, whole
from crawl_envs.types.delay import Delay

CRAWLS_PER_PAGE = 0.2
"""Bandwidth over the number of pages, per day (Kolobov et al., section 7)."""

PUBLISHED_IMPORTANCE = 1134.0
"""Mean importance of the paper's set, from the caption of figure 1; here it is 1. Optima are equal;
multiply costs by this factor to compare with the paper."""

BLOCK = 2**16
"""Pages drawn at a time; it does not affect the pages."""


@dataclass(frozen=True)
class LambdaCrawlSet:
    """Generator of the synthetic set; calling it with a NumPy generator returns an instance.

    Pages with complete observation have recall 1 and no false signals, all others no signals.
    Pages are drawn in order, so a smaller set is a prefix of a larger one.

    Args:
        num_pages: number of pages, m >= 1.
        bandwidth: crawls per day, > 0; CRAWLS_PER_PAGE * m in the paper.
        bandwidth_steps: later changes of it, as (time, bandwidth) pairs.
        delay: delay of signals.

    Raises:
        ValueError: fewer than one page, a bad bandwidth.
    """

    num_pages: int
    bandwidth: float
    bandwidth_steps: tuple[tuple[float, float], ...] = ()
    delay: Delay | None = None

    def __post_init__(self) -> None:
        whole("num_pages", self.num_pages, 1)
        bandwidth_function(self.bandwidth, self.bandwidth_steps)

    def __call__(self, rng: np.random.Generator) -> Instance:
        """Draw an instance."""
        urls = draw_urls(rng, self.num_pages)
        return complete_or_not(
            urls.importance,
            urls.change_rate,
            urls.declared,
            bandwidth=self.bandwidth,
            bandwidth_steps=self.bandwidth_steps,
            delay=self.delay,
        )


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
    importance: FloatArray,
    change_rate: FloatArray,
    complete: BoolArray,
    *,
    bandwidth: float,
    bandwidth_steps: tuple[tuple[float, float], ...] = (),
    delay: Delay | None = None,
) -> Instance:
    """Return an instance in which exactly the changes of ``complete`` pages, (m,), are signalled.

    Raises:
        ValueError: as for :class:`crawl_envs.types.Instance`.
    """
    return Instance(
        importance,
        change_rate,
        complete.astype(np.float64),
        0.0,
        bandwidth=bandwidth,
        bandwidth_steps=bandwidth_steps,
        delay=delay,
    )
