r"""What is believed of pages while they are crawled: Gamma distributions, crawl by crawl.

The model of a page is P(no change) = exp(-(alpha tau + sum_s b_s n_s)) over an interval of length
tau with n_s signals of source s (Busa-Fekete et al., section 3), and signals at rates gamma_s. All
these numbers are taken to be independent and Gamma distributed. With the belief
alpha ~ Gamma(a, r), b_s ~ Gamma(c_s, d_s):

* a crawl that finds no change multiplies the density by exp(-(alpha tau + sum b_s n_s)), which is
  Gamma again: r grows by tau and d_s by n_s;
* a crawl that finds a change multiplies it by 1 - exp(-(...)). The Gamma of the same mean and
  variance is put in the place of each margin. They are closed forms, since
  E[alpha^k exp(-alpha tau)] = E[alpha^k] (r / (r + tau))^(a + k). Where that would take the
  exposure below zero, it is zero, and the Gamma is that of the same mean.

What a page's crawls add to shape and rate reads like a number of changes and the exposure in which
they were seen. It is kept apart from the distribution that the page shares with the others, so that
this one can be renewed as more becomes known, and it fades by ``1 - 1 / memory`` with every crawl
of the page. A crawl costs constant time, and a page constant memory.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from policies.estimators.signals.shrinkage import gamma_shape

SURPRISE = 1e-3
"""A finding counts as no less probable than this where predictions are scored."""

SHAPES = (0.3, 30.0)
"""Shapes of shared distributions are kept between these."""

IMAGINED = 5.0
"""A group's distribution is that of its pages and of so many like those of the whole set."""

SMALLEST = 1e-6
"""Least mean of a shared distribution, in changes per mean crawl interval, or nats per signal."""


@compiled()
def take_in(
    counts: FloatArray,
    exposures: FloatArray,
    shape: FloatArray,
    rate: FloatArray,
    elapsed: float,
    signals: FloatArray,
    changed: bool,
    fading: float,
) -> float:
    """Take in a crawl of one page.

    Args:
        counts: changes that the page's crawls amount to, (1 + 2 S,): for alpha, b_s, gamma_s.
        exposures: the same of exposures; both are changed.
        shape: of the shared distributions, (1 + 2 S,).
        rate: of the shared distributions, (1 + 2 S,).
        elapsed: tau.
        signals: n_s, (S,).
        changed: what was found.
        fading: what is left of earlier crawls, in [0, 1].

    Returns:
        The logarithm of the probability that had been given to what was found.
    """
    num_sources = signals.size
    d = 1 + num_sources
    counts *= fading
    exposures *= fading
    fresh = 0.0  # ln P(no change)
    for j in range(d):
        x = elapsed if j == 0 else signals[j - 1]
        fresh -= (shape[j] + counts[j]) * math.log1p(x / (rate[j] + exposures[j]))
    if changed and fresh < 0.0:
        for j in range(d):
            x = elapsed if j == 0 else signals[j - 1]
            if x > 0.0:
                a, r = shape[j] + counts[j], rate[j] + exposures[j]
                decay = math.log1p(x / r)
                first = math.expm1(fresh - decay) / math.expm1(fresh)
                second = math.expm1(fresh - 2.0 * decay) / math.expm1(fresh)
                mean = a / r * first
                spread = mean * ((a + 1.0) / r * second / first - mean)  # the variance
                matched = mean / spread if spread > 0.0 else 0.0
                exposures[j] = max(0.0, matched - rate[j])
                counts[j] = max(0.0, mean * (rate[j] + exposures[j]) - shape[j])
    elif not changed:
        exposures[0] += elapsed
        for s in range(num_sources):
            exposures[1 + s] += signals[s]
    for s in range(num_sources):
        counts[d + s] += signals[s]
        exposures[d + s] += elapsed
    probability = -math.expm1(fresh) if changed else math.exp(fresh)
    return math.log(max(probability, SURPRISE))


class Beliefs:
    """Gamma distributions of alpha, b_s and gamma_s of every page; a crawl at a time.

    Args:
        group: the group of each page, 0 .. G - 1, (m,) int64.
        num_sources: S.
        interval: a guess of the mean time between two crawls of a page, > 0, for the scale of the
            first shared distributions: one change, and half a signal, per such interval.
        memory: crawls of a page until what was seen fades to 1 / e; inf never fades.
        pooled: whether the shared distributions are renewed.

    Attributes:
        counts: changes (and signals) that the crawls amount to, (m, 1 + 2 S).
        exposures: and the exposure, (m, 1 + 2 S).
        shape: of the shared distributions, (G, 1 + 2 S).
        rate: of the shared distributions, (G, 1 + 2 S).
    """

    def __init__(
        self,
        group: IntArray,
        num_sources: int,
        interval: float,
        *,
        memory: float = math.inf,
        pooled: bool = True,
    ) -> None:
        num_groups, d = int(group.max()) + 1, 1 + 2 * num_sources
        self.group, self.num_sources, self.pooled = group, num_sources, pooled
        self.fading = 1.0 - 1.0 / memory
        self.counts: FloatArray = np.zeros((group.size, d))
        self.exposures: FloatArray = np.zeros((group.size, d))
        self.shape: FloatArray = np.ones((num_groups, d))
        self.rate: FloatArray = np.ones((num_groups, d))
        self.rate[:, 0] = interval
        self.rate[:, 1 + num_sources :] = 2.0 * interval
        self._smallest = np.full(d, SMALLEST)
        self._smallest[[0, *range(1 + num_sources, d)]] /= interval

    def learn(self, page: int, elapsed: float, signals: FloatArray, changed: bool) -> float:
        """Take in a crawl; :func:`take_in` says what, and what it returns."""
        group = self.group[page]
        return take_in(
            self.counts[page],
            self.exposures[page],
            self.shape[group],
            self.rate[group],
            elapsed,
            signals,
            changed,
            self.fading,
        )

    def typical(self, pages: IntArray | slice) -> FloatArray:
        """exp(E ln theta) of what is believed of pages, (n, 1 + 2 S).

        Below the mean, and the more so the less is known: a page that may change seldom is taken
        for one that does until crawls have shown how often it changes.
        """
        group = self.group[pages]
        shape = self.shape[group] + self.counts[pages]
        rate = self.rate[group] + self.exposures[pages]
        return np.asarray(np.exp(digamma(shape)) / rate)

    def pool(self, seen: BoolArray) -> None:
        """Renew the shared distributions from the pages that were crawled, (m,) bool.

        One step of expectation and maximisation: of all Gamma distributions, the one nearest to the
        beliefs about the group's pages.
        """
        if not self.pooled or not seen.any():
            return
        group = self.group[seen]
        shape = self.shape[group] + self.counts[seen]
        rate = self.rate[group] + self.exposures[seen]
        size = np.bincount(group, minlength=len(self.shape))[:, None]
        mean = self._averages(shape / rate, group, size)
        log_mean = self._averages(digamma(shape) - np.log(rate), group, size)
        mean = np.maximum(mean, self._smallest)
        self.shape = np.clip(gamma_shape(np.log(mean) - log_mean), *SHAPES)
        self.rate = self.shape / mean

    def _averages(self, values: FloatArray, group: IntArray, size: IntArray) -> FloatArray:
        """Averages over each group's pages and the imagined ones, (G, 1 + 2 S)."""
        whole = values.mean(axis=0)
        if len(size) == 1:
            return np.asarray(whole[None])
        sums = [np.bincount(group, column, minlength=len(size)) for column in values.T]
        return np.asarray((np.stack(sums, axis=1) + IMAGINED * whole) / (size + IMAGINED))
