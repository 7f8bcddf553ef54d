"""What the crawls of a step are worth to a bandit whose arms are strategies.

Han et al. (2020), eq. 2, pay the share of the crawled clicks that had changed,

    x = sum over crawled i of mu_i 1(i had changed) / sum over crawled i of mu_i,

which :func:`literal_reward` is. The text calls it the increase of click-weighted freshness, and it
is not: what it divides by depends on the arm. It is a rate of success, and best served by crawling
few pages, or worthless ones, that have surely changed. Among strategies that spend one budget, the
one that goes where prices change all the time earns the most of it and may be the worst of all for
freshness.

:func:`gain_reward` divides by the same number whatever the arm: the mu of all pages, times a bound
that brings typical rewards up from near 0 into [0, 1]. It is the gain in freshness at the moment
of the crawls.

Neither sees what a crawl leaves behind. Arms share the state of the copies, so that what one of
them earns depends on which were played before, and the bounds on regret of bandits, which compare
with one arm on the very same rewards, do not carry over to freshness.
"""

from __future__ import annotations

import numpy as np

from crawl_envs.arguments import whole
from crawl_envs.types import BoolArray, CrawlLog, FloatArray


def literal_reward(log: CrawlLog, weights: FloatArray) -> float:
    """Han et al. (2020), eq. 2: the share of what was crawled that had changed, by weight.

    Args:
        log: of the step; probes do not count.
        weights: of the pages, >= 0, (m,).

    Returns:
        In [0, 1]; 0 where nothing of any weight was crawled.
    """
    return literal_reward_of(*_crawled(log, weights))


def literal_reward_of(crawled: FloatArray, changed: BoolArray) -> float:
    """:func:`literal_reward` of crawls, given as arrays.

    Args:
        crawled: the weight of the page of each crawl, >= 0, (n,).
        changed: whether the crawl found a change, (n,).
    """
    spent = float(crawled.sum())
    return min(float(crawled[changed].sum()) / spent, 1.0) if spent > 0.0 else 0.0


def gained_share(log: CrawlLog, weights: FloatArray) -> float:
    """The weight of the crawls that found a change, as a share of that of all pages.

    Args:
        log: of the step; probes do not count.
        weights: of the pages, >= 0, (m,).

    Returns:
        >= 0, and at most 1 where no page is crawled twice; 0 where all weights are.
    """
    return gained_share_of(*_crawled(log, weights), float(weights.sum()))


def gained_share_of(crawled: FloatArray, changed: BoolArray, total: float) -> float:
    """:func:`gained_share` of crawls, given as arrays.

    Args:
        crawled: the weight of the page of each crawl, >= 0, (n,).
        changed: whether the crawl found a change, (n,).
        total: the weight of all pages, >= 0.
    """
    return float(crawled[changed].sum()) / total if total > 0.0 else 0.0


def gain_reward(log: CrawlLog, weights: FloatArray, bound: float) -> float:
    """The gained share, divided by a bound that does not depend on the arm, and at most 1.

    Args:
        log: of the step; probes do not count.
        weights: of the pages, >= 0, (m,).
        bound: the share that is paid with 1, in (0, 1].

    Returns:
        In [0, 1].

    Raises:
        ValueError: a bound outside (0, 1].
    """
    return gain_reward_of(*_crawled(log, weights), float(weights.sum()), bound)


def gain_reward_of(crawled: FloatArray, changed: BoolArray, total: float, bound: float) -> float:
    """:func:`gain_reward` of crawls, given as arrays.

    Args:
        crawled: the weight of the page of each crawl, >= 0, (n,).
        changed: whether the crawl found a change, (n,).
        total: the weight of all pages, >= 0.
        bound: the share that is paid with 1, in (0, 1].

    Raises:
        ValueError: a bound outside (0, 1].
    """
    if not 0.0 < bound <= 1.0:
        raise ValueError(f"bound must lie in (0, 1], got {bound!r}")
    return min(gained_share_of(crawled, changed, total) / bound, 1.0)


def sure_bound(weights: FloatArray, crawls: int) -> float:
    """The largest share of all weight that so many pages can hold: no gain exceeds it.

    Args:
        weights: of the pages, >= 0, (m,).
        crawls: the largest number of pages that a decision crawls, each once, >= 1.

    Returns:
        In (0, 1]; 1 where all weights are 0.

    Raises:
        ValueError: ``crawls`` is no whole number >= 1.
    """
    crawls = whole("crawls", crawls, 1)
    total = float(weights.sum())
    if crawls >= weights.size or total <= 0.0:
        return 1.0
    return float(np.partition(weights, -crawls)[-crawls:].sum()) / total


def _crawled(log: CrawlLog, weights: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The weight of each crawl, and whether it found a change; probes weigh nothing."""
    return np.where(log.probe, 0.0, weights[log.page]), log.changed
