r"""Gamma beliefs about the parameters of pages, updated crawl by crawl.

The model of a page is P(no change) = exp(-(alpha tau + sum_s b_s n_s)) over an interval of length
tau with n_s signals of source s (Busa-Fekete et al., section 3), and signals at rates gamma_s. All
these parameters are assumed independent and Gamma distributed. With the belief
alpha ~ Gamma(a, r), b_s ~ Gamma(c_s, d_s):

* a crawl without a change multiplies the density by exp(-(alpha tau + sum b_s n_s)), which gives a
  Gamma again: r grows by tau and d_s by n_s;
* a crawl with a change multiplies it by 1 - exp(-(...)). Each marginal is replaced by the Gamma of
  the same mean and variance. These have closed forms, since
  E[alpha^k exp(-alpha tau)] = E[alpha^k] (r / (r + tau))^(a + k). An exposure that would be
  negative is set to zero, with the Gamma of the same mean.

The data of a page's crawls, added to shape and rate, amount to a number of changes and the exposure
in which they were observed. They are stored apart from the distribution that pages share, so that
the latter can be updated, and decay by ``1 - 1 / memory`` with every crawl of the page. A crawl
takes constant time, and a page constant memory.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import compiled
from policies.estimators.gamma_prior import gamma_shape

LEAST_PROBABILITY = 1e-3
"""Least probability of an outcome in the scores of predictions."""

SHAPES = (0.3, 30.0)
"""Range to which the shapes of shared distributions are clipped."""

PSEUDO_PAGES = 5.0
"""Number of pseudo-pages, with the average of the whole set, that are added to each group."""

SMALLEST = 1e-6
"""Least mean of a shared distribution, in changes per mean crawl interval, or nats per signal."""


@compiled()
def update_belief(
    counts: FloatArray,
    exposures: FloatArray,
    shape: FloatArray,
    rate: FloatArray,
    elapsed: float,
    signals: FloatArray,
    changed: bool,
    fading: float,
) -> float:
    """Update the belief about a page after a crawl.

    Args:
        counts: numbers of changes of the page's data, (1 + 2 S,): for alpha, b_s, gamma_s.
        exposures: exposures of the page's data, (1 + 2 S,); both are changed.
        shape: shapes of the shared distributions, (1 + 2 S,).
        rate: rates of the shared distributions, (1 + 2 S,).
        elapsed: tau.
        signals: n_s, (S,).
        changed: whether the page had changed.
        fading: remaining share of earlier data, in [0, 1].

    Returns:
        The logarithm of the predicted probability of ``changed``.
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
    return math.log(max(probability, LEAST_PROBABILITY))


class Beliefs:
    """Gamma beliefs about alpha, b_s and gamma_s of every page, updated crawl by crawl.

    Args:
        group: the group of each page, 0 .. G - 1, (m,) int64.
        num_sources: S.
        interval: estimate of the mean time between two crawls of a page, > 0, for the scale of the
            initial shared distributions: one change, and half a signal, per such interval.
        memory: crawls of a page until data decay to 1 / e; inf for no decay.
        pooled: whether the shared distributions are updated.

    Attributes:
        counts: numbers of changes (and signals) of the pages' data, (m, 1 + 2 S).
        exposures: exposures of the pages' data, (m, 1 + 2 S).
        shape: shapes of the shared distributions, (G, 1 + 2 S).
        rate: rates of the shared distributions, (G, 1 + 2 S).
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
        """Update the belief after a crawl; arguments and result as for :func:`update_belief`."""
        group = self.group[page]
        return update_belief(
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
        """Return exp(E ln theta) of the beliefs about pages, (n, 1 + 2 S).

        It is below the mean, the more so the fewer data: change rates count as low until crawls
        have shown otherwise.
        """
        group = self.group[pages]
        shape = self.shape[group] + self.counts[pages]
        rate = self.rate[group] + self.exposures[pages]
        return np.asarray(np.exp(digamma(shape)) / rate)

    def pool(self, seen: BoolArray) -> None:
        """Update the shared distributions from the crawled pages, (m,) bool.

        One step of expectation maximisation: the Gamma distribution nearest to the beliefs about
        the group's pages.
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
        """Return averages over each group's pages and pseudo-pages, (G, 1 + 2 S)."""
        whole = values.mean(axis=0)
        if len(size) == 1:
            return np.asarray(whole[None])
        sums = [np.bincount(group, column, minlength=len(size)) for column in values.T]
        return np.asarray((np.stack(sums, axis=1) + PSEUDO_PAGES * whole) / (size + PSEUDO_PAGES))
