r"""Empirical Bayes for counts: rates and shares of pages, shrunk to a distribution of all pages.

With a Gamma distribution of rates, a page with n events in T days has the estimate :math:`(a +
n)/(b + T)`. With a Beta distribution of shares, a page with h successes in n trials has :math:`(a +
h)/(a + b + n)`. A page without observations has the mean of the distribution.

The mean is the pooled value of all pages, and only the weight is fitted by maximum likelihood.
(Fitting the mean by likelihood as well is fragile: a few pages that lived for minutes and had a
burst of changes make it hundreds a day.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from crawl_envs.types import FloatArray, IntArray

LOG_BOUNDS = (-9.0, 9.0)
"""Bounds of the logarithm of a weight: the shape of a Gamma, the pseudo-counts of a Beta."""


class RatePrior(NamedTuple):
    """A Gamma distribution of the rates of pages, with ``shape`` a and inverse scale ``days`` b."""

    shape: float
    days: float

    @property
    def mean(self) -> float:
        """Mean rate, in events per day."""
        return self.shape / self.days

    def estimate(self, counts: IntArray | FloatArray, days: FloatArray) -> FloatArray:
        """Return each page's mean rate given its ``counts`` events in ``days``, (m,)."""
        return (self.shape + counts) / (self.days + days)

    def group_mean(self, counts: IntArray | FloatArray, days: FloatArray) -> float:
        """Return the mean rate of a group of pages, shrunk to the mean of the distribution."""
        return _shrunk_mean(self.mean, self.days, counts, days)


class SharePrior(NamedTuple):
    """A Beta distribution of the shares of pages; its two pseudo-counts are ``yes`` and ``no``."""

    yes: float
    no: float

    @property
    def mean(self) -> float:
        """Mean share of the distribution, in (0, 1)."""
        return self.yes / (self.yes + self.no)

    def estimate(self, yes: IntArray, total: IntArray) -> FloatArray:
        """Return each page's mean share given ``yes`` successes in ``total`` trials, (m,)."""
        return (self.yes + yes) / (self.yes + self.no + total)

    def group_mean(self, yes: IntArray, total: IntArray) -> float:
        """Return the mean share of a group of pages, shrunk to the mean of the distribution."""
        return _shrunk_mean(self.mean, self.yes + self.no, yes, total)


def _shrunk_mean(
    mean: float, weight: float, events: IntArray | FloatArray, exposure: IntArray | FloatArray
) -> float:
    """Return the mean of a group of pages, events over exposure, shrunk to the mean of all pages.

    Means of groups are assumed to differ as much as pages. The least mean squared error then has
    the mean of all pages count as much as ``weight`` plus the exposure of one page of the group.
    """
    weight += float(exposure.mean())
    return float((mean * weight + events.sum()) / (weight + exposure.sum()))


def fit_rate_prior(counts: IntArray | FloatArray, days: FloatArray) -> RatePrior:
    """Return the Gamma distribution of event rates that fits the counts of pages in their days.

    Its mean is all events over all days; its shape maximises the likelihood of the counts. Without
    any event, half an event is assumed, with the weight of one page's mean exposure.

    Args:
        counts: events of each page, shape (m,).
        days: exposure of each page, shape (m,); pages without exposure are ignored.

    Raises:
        ValueError: no page has any exposure.
    """
    exposed = days > 0.0
    if not exposed.any():
        raise ValueError("no page is alive in the window, so there is nothing to fit")
    n, t = counts[exposed].astype(np.float64), days[exposed]
    if n.sum() == 0.0:
        return RatePrior(0.5 * t.mean() / t.sum(), t.mean())
    mean = n.sum() / t.sum()

    def likelihood(shape: float) -> float:
        b = shape / mean
        terms = gammaln(shape + n) - gammaln(shape) - shape * np.log1p(t / b) - n * np.log(b + t)
        return float(terms.sum())

    shape = _most_likely(likelihood)
    return RatePrior(shape, shape / mean)


def fit_share_prior(yes: IntArray, total: IntArray) -> SharePrior:
    """Return the Beta distribution of shares that fits the successes and trials of pages.

    Its mean is all successes over all trials; the number of pseudo-counts maximises the likelihood
    of the counts. Without any trial it is Jeffreys' prior, half a count each; an outcome that never
    occurred counts half before the mean is computed.

    Args:
        yes: successes of each page, shape (m,).
        total: trials of each page, shape (m,); pages without trials are ignored.
    """
    observed = total > 0
    if not observed.any():
        return SharePrior(0.5, 0.5)
    h, n = yes[observed].astype(np.float64), total[observed].astype(np.float64)
    mean = max(h.sum(), 0.5) / n.sum()
    mean = min(mean, 1.0 - 0.5 / n.sum())

    def likelihood(weight: float) -> float:
        a, b = weight * mean, weight * (1.0 - mean)
        return float(np.sum(betaln(a + h, b + n - h) - betaln(a, b)))

    weight = _most_likely(likelihood)
    return SharePrior(weight * mean, weight * (1.0 - mean))


def _most_likely(likelihood: Callable[[float], float]) -> float:
    """Return the weight in [exp(-9), exp(9)] that maximises a log-likelihood."""
    from scipy.optimize import minimize_scalar  # slow to import

    optimum = minimize_scalar(
        lambda logarithm: -likelihood(float(np.exp(logarithm))),
        bounds=LOG_BOUNDS,
        method="bounded",
        options={"xatol": 1e-7},
    )
    return float(np.exp(optimum.x))
