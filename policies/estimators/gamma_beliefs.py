r"""Gamma beliefs about the parameters of pages, updated crawl by crawl and pooled over groups.

The model of a page is P(no change) = exp(-theta . x) at a crawl, with hazards theta and exposures
x: in Busa-Fekete et al., section 3, theta = (alpha, b_1, .., b_S) and x = (tau, n_1, .., n_S) for
an interval of length tau with n_s signals of source s. All parameters are assumed independent and
Gamma distributed. With the belief theta_j ~ Gamma(a_j, r_j):

* a crawl without a change multiplies the density by exp(-theta . x), which gives a Gamma again: r_j
  grows by x_j;
* a crawl with a change multiplies it by 1 - exp(-theta . x). Each marginal is replaced by the Gamma
  of the same mean and variance. These have closed forms, since
  E[theta^k exp(-theta x)] = E[theta^k] (r / (r + x))^(a + k). An exposure that would be negative is
  set to zero, with the Gamma of the same mean.

The data of a page's crawls are a number of changes (a count), added to the shape, and the exposure
in which they were observed, added to the rate. They decay. The distributions that the pages of a
group share are stored separately, and updated from the beliefs about the pages. A crawl takes
constant time, and a page constant memory.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma as scipy_digamma

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray, IntArray

SHAPES = (0.3, 30.0)
"""Range to which the shapes of shared distributions are clipped."""
PSEUDO_PAGES = 5.0
"""Number of pseudo-pages with the average of all pages that are added to each group."""
LEAST_PROBABILITY = 1e-3
"""Least probability of an outcome in the scores of predictions."""
SMALLEST = 1e-6
"""Least mean of a shared distribution of :class:`Beliefs`, in changes per mean crawl interval, or
nats per signal."""


@inlined()
def log_fresh(
    counts: FloatArray, exposures: FloatArray, shape: FloatArray, rate: FloatArray, x: FloatArray
) -> float:
    """Return the logarithm of the predicted probability that a crawl finds no change.

    Arguments are documented in :func:`learn_crawl`.
    """
    fresh = 0.0
    for j in range(x.size):
        fresh -= (shape[j] + counts[j]) * math.log1p(x[j] / (rate[j] + exposures[j]))
    return fresh


@inlined()
def learn_crawl(
    counts: FloatArray,
    exposures: FloatArray,
    shape: FloatArray,
    rate: FloatArray,
    x: FloatArray,
    changed: bool,
    fading: float,
) -> float:
    """Update the belief about a page after a crawl, by the result of this crawl.

    Args:
        counts: numbers of changes of the page's data, (K,): d hazards, and other data that decay.
        exposures: exposures of the page's data, (K,); both are changed.
        shape: shapes of the shared distributions, (K,).
        rate: rates of the shared distributions, (K,).
        x: exposures of the crawl, >= 0, (d,).
        changed: whether the page had changed.
        fading: remaining share of earlier data, in [0, 1].

    Returns:
        The logarithm of the predicted probability of no change.
    """
    counts *= fading
    exposures *= fading
    fresh = log_fresh(counts, exposures, shape, rate, x)
    for j in range(x.size):
        if not changed:
            exposures[j] += x[j]
        elif fresh < 0.0 and x[j] > 0.0:
            a, r = shape[j] + counts[j], rate[j] + exposures[j]
            mean, variance = moments_after_change(a, r, x[j], fresh)
            matched = mean / variance if variance > 0.0 else 0.0
            exposures[j] = max(0.0, matched - rate[j])
            counts[j] = max(0.0, mean * (rate[j] + exposures[j]) - shape[j])
    return fresh


@inlined()
def moments_after_change(a: float, r: float, x: float, fresh: float) -> tuple[float, float]:
    """Return mean and variance of a hazard after a crawl with a change; before it is Gamma(a, r).

    ``x`` is its exposure, ``fresh`` the logarithm of the predicted probability of no change.
    """
    decay = math.log1p(x / r)
    first = math.expm1(fresh - decay) / math.expm1(fresh)
    second = math.expm1(fresh - 2.0 * decay) / math.expm1(fresh)
    mean = a / r * first
    return mean, mean * ((a + 1.0) / r * second / first - mean)


@compiled()
def pool_beliefs(
    counts: FloatArray,
    exposures: FloatArray,
    used: BoolArray,
    group: IntArray,
    shape: FloatArray,
    rate: FloatArray,
    smallest: FloatArray,
) -> None:
    """Update the shared distributions of all groups from the beliefs about their pages.

    This is one step of expectation maximisation. It finds the Gamma distribution nearest to the
    beliefs about the pages of the group and its pseudo-pages.

    Args:
        counts: of the pages' data, (m, K).
        exposures: of the pages' data, (m, K).
        used: which beliefs to use, (m, K).
        group: the group of each page, (m,).
        shape: shapes of the distributions, (G, K).
        rate: rates of the distributions, (G, K); both are changed where any belief is used.
        smallest: least means, (K,).
    """
    num_groups = shape.shape[0]
    for kind in range(shape.shape[1]):
        means, logs, sizes = np.zeros(num_groups), np.zeros(num_groups), np.zeros(num_groups)
        for page in range(group.size):
            if used[page, kind]:
                g = group[page]
                a, r = shape[g, kind] + counts[page, kind], rate[g, kind] + exposures[page, kind]
                means[g] += a / r
                logs[g] += digamma(a) - math.log(r)
                sizes[g] += 1.0
        total = sizes.sum()
        if total > 0.0:
            mean, log = means.sum() / total, logs.sum() / total
            for g in range(num_groups):
                size = sizes[g] + PSEUDO_PAGES
                group_mean = max((means[g] + PSEUDO_PAGES * mean) / size, smallest[kind])
                group_log = (logs[g] + PSEUDO_PAGES * log) / size
                fitted = gamma_shape(math.log(group_mean) - group_log)
                shape[g, kind] = min(max(fitted, SHAPES[0]), SHAPES[1])
                rate[g, kind] = shape[g, kind] / group_mean


@compiled()
def gamma_shape(gap: float) -> float:
    """Return the shape a of a Gamma distribution, given ``gap`` = ln E - E ln = ln a - digamma(a).

    Newton's method in 1 / a from a rational start (Minka 2002, "Estimating a Gamma distribution").
    """
    gap = max(gap, 1e-12)
    shape = (3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    for _ in range(6):
        excess = math.log(shape) - digamma(shape) - gap
        slope = shape * shape * (1.0 / shape - trigamma(shape))
        shape = 1.0 / (1.0 / shape + excess / slope)
    return shape


@compiled()
def digamma(x: float) -> float:
    """Return the derivative of the logarithm of the Gamma function at x > 0, to about 1e-12."""
    total = 0.0
    while x < 8.0:
        total -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return total + math.log(x) - 0.5 / x - series


@inlined()
def trigamma(x: float) -> float:
    """Return the second derivative of the log of the Gamma function at x > 0, to about 1e-10."""
    total = 0.0
    while x < 8.0:
        total += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return total + 1.0 / x + 0.5 * y + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))


@inlined()
def below_mean(shape: float) -> float:
    """Return about exp(E ln theta) / E theta for theta Gamma distributed with a shape >= 0.3.

    It is too large by 1% at a shape of 4, by 13% at 1, and by a factor of 2.9 at 0.3.
    """
    return math.exp(-0.5 / (shape + 0.1))


class Beliefs:
    """Gamma beliefs about alpha, the evidence b_s and the rate gamma_s of signals of every page.

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
        pages, groups = ((size, 1 + 2 * num_sources) for size in (group.size, group.max() + 1))
        self.group, self.pooled = group, pooled
        self.fading = 1.0 - 1.0 / memory
        self.counts, self.exposures = np.zeros(pages), np.zeros(pages)
        self.shape, self.rate = np.ones(groups), np.ones(groups)
        self.rate[:, 0] = interval
        self.rate[:, 1 + num_sources :] = 2.0 * interval
        self._smallest = np.full(self.rate.shape[1], SMALLEST)
        self._smallest[[0, *range(1 + num_sources, pages[1])]] /= interval

    def learn(self, page: int, elapsed: float, signals: FloatArray, changed: bool) -> float:
        """Update the belief about a page by a crawl, with signals since the crawl before, (S,).

        Returns:
            The logarithm of the predicted probability of ``changed``, at least LEAST_PROBABILITY.
        """
        group = self.group[page]
        belief = self.counts[page], self.exposures[page], self.shape[group], self.rate[group]
        return learn_page(*belief, elapsed, signals, changed, self.fading)

    def typical(self, pages: IntArray | slice) -> FloatArray:
        """Return a typical value of each parameter of pages, exp(E ln theta), (n, 1 + 2 S).

        It is below the mean, and lower with fewer data: change rates count as low until crawls show
        otherwise.
        """
        group = self.group[pages]
        shape = self.shape[group] + self.counts[pages]
        rate = self.rate[group] + self.exposures[pages]
        return np.asarray(np.exp(scipy_digamma(shape)) / rate)

    def pool(self, crawled: BoolArray) -> None:
        """Update the groups' distributions from the pages marked in ``crawled``, (m,) bool."""
        if self.pooled:
            used = np.repeat(crawled[:, None], self.shape.shape[1], axis=1)
            data = self.counts, self.exposures, used, self.group
            pool_beliefs(*data, self.shape, self.rate, self._smallest)


@compiled()
def learn_page(
    counts: FloatArray,
    exposures: FloatArray,
    shape: FloatArray,
    rate: FloatArray,
    elapsed: float,
    signals: FloatArray,
    changed: bool,
    fading: float,
) -> float:
    """Update the belief about a page as :meth:`Beliefs.learn` does; arrays are (1 + 2 S,)."""
    x = np.empty(1 + signals.size)
    x[0], x[1:] = elapsed, signals
    fresh = learn_crawl(counts, exposures, shape, rate, x, changed, fading)
    counts[x.size :] += signals
    exposures[x.size :] += elapsed
    probability = -math.expm1(fresh) if changed else math.exp(fresh)
    return math.log(max(probability, LEAST_PROBABILITY))
