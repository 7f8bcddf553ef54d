"""The set-up of the LambdaCrawl paper (Kolobov et al. 2019): a stand-in for its 18.5 million URLs.

Importance, change rates and which pages have complete observation follow
:mod:`crawl_envs.instances.urls.law`; 4% of the pages have it, and carry 26.4% of the importance.
Time is in days; the paper's bandwidth is 0.2 crawls a day for every page.
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
"""Mean importance of the set, derived from the caption of figure 1; that of the stand-in is 1. All
optima are the same; costs are to be multiplied by this to compare with the paper's."""

BLOCK = 2**16
"""Pages drawn at a time; the pages are the same whatever it is."""


@dataclass(frozen=True)
class LambdaCrawlSet:
    """A generator of the stand-in set; call it with a NumPy generator for an instance.

    Pages with complete observation have recall 1 and no false signals, all others no signals.
    Pages are drawn one after the other, so a smaller set is the beginning of a larger one.

    Args:
        num_pages: number of pages, m >= 1.
        bandwidth: crawls per day, > 0; the paper's is CRAWLS_PER_PAGE * m.
        bandwidth_steps: later changes of it, as (time, bandwidth) pairs.
        delay: how long signals travel.

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
    """Draw pages, ``block`` at a time; needs 17 bytes a page and 100 a page of the block."""
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
    """Return the instance in which every change of the ``complete`` pages, (m,), is signalled.

    The other pages send no signals, and there are no false ones.

    Raises:
        ValueError: as :class:`crawl_envs.types.Instance` does.
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
