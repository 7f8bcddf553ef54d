r"""Empirical Bayes: estimates of pages with few crawls, shrunk to the distribution of their group.

A page with few crawls has little information. In this model, alpha and each b of a page are drawn
from Gamma distributions of the page's group (a host, a directory, all pages). Their shapes and
rates approximately maximise the marginal likelihood of all crawls of the group. The estimate of a
page is the mode, in logarithms, under its group's distribution.

The maximum is found by expectation and maximisation. The expectations of theta and ln theta over a
page's posterior are those of the Gamma distribution that has the same mode and curvature in
ln theta (Laplace's approximation, with a Gamma instead of a normal): k is one over the variance
of ln theta, E theta the mode, E ln theta = ln(mode) + digamma(k) - ln k. For counts of changes this
is exact, and so is the mean as the estimate. For yes/no observations, distributions are somewhat
too narrow and low: over 700 pages of 12 crawls, a Gamma of shape 2.7 and mean 1.22 (by exact
quadrature) was estimated as 3.5 and 1.10 (for 40 crawls, 2.9 and 1.22 as 3.4 and 1.17). Moments of
the MLEs do not exist: with few crawls many of them are 0 or infinite.

Each group has ``PSEUDO_PAGES`` additional pages, drawn from an exponential distribution whose mean
is the first guess. They bound the precision of small groups, and prevent estimates of 0 in groups
without any change or false signal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import whole_per_page
from policies.estimators.gamma_beliefs import gamma_shape
from policies.estimators.signal_likelihood import Crawls, Fit, fit_pages
from policies.estimators.signal_quality import SignalFit, as_signal_fit, crawls_of_pages

PSEUDO_PAGES = 1.0
MAX_PASSES = 6000
"""Where every change is signalled, alpha falls towards 0 ever more slowly, in some 4,000 passes."""
TOLERANCE = 1e-4
"""Relative change of every group's mean and shape in one pass at which the iteration ends."""
EXTRA_EVENTS = 0.5
SHAPES = (1e-3, 1e4)
"""Range of shapes; broader or narrower distributions have the same effect."""


class GammaPrior(NamedTuple):
    """Gamma distributions of alpha and of the evidence b of each source, one set for each group.

    Attributes:
        shape: > 0, (G, 1 + S).
        rate: in units of time for alpha, of signals for b; > 0, (G, 1 + S).
    """

    shape: FloatArray
    rate: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Mean of alpha and of each b in each group, (G, 1 + S)."""
        return self.shape / self.rate


class EmpiricalBayes(NamedTuple):
    """Distributions of alpha and b in groups of pages, and the estimates of single pages.

    Attributes:
        groups: the distributions of the groups, shape and rate (G, 1 + S); ``groups.mean`` is the
            estimate of a page without crawls.
        fit: the estimates of the m pages; their standard errors are those of the posterior.
        converged: whether the distributions converged.
    """

    groups: GammaPrior
    fit: SignalFit
    converged: bool


def empirical_bayes(
    elapsed: ArrayLike,
    signals: ArrayLike | None,
    changed: ArrayLike,
    *,
    page: ArrayLike,
    groups: ArrayLike | None = None,
    num_pages: int | None = None,
) -> EmpiricalBayes:
    """Estimate alpha and b of every page from its crawls and those of its group (empirical Bayes).

    Args:
        elapsed: time between a crawl and the page's crawl before, 0 or in [1e-12, 1e12]; (n,).
        signals: signals received meanwhile, (n,), or (S, n) of S sources; None for no signals: then
            alpha is the change rate.
        changed: whether the page had changed, (n,) bool.
        page: the page of each crawl, (n,) int.
        groups: the group of each page, 0 .. G - 1, (m,) int; None for a single group.
        num_pages: m; None for the size of ``groups``, or else the largest page plus 1.

    Raises:
        ValueError: as :func:`signal_quality_mle`; or ``groups`` are not m whole numbers >= 0,
            or a group has no pages.
    """
    if num_pages is None and groups is not None:
        num_pages = np.size(groups)
    crawls = crawls_of_pages(elapsed, signals, changed, page, num_pages)
    group = _checked_groups(groups, len(crawls.offsets) - 1)
    first = mean = _first_means(crawls, group)
    shape, start = np.ones_like(mean), np.zeros((len(group), mean.shape[1]))
    converged = False
    for _ in range(MAX_PASSES):
        result = fit_pages(crawls, shape[group], (shape / mean)[group], start)
        if converged:
            break
        start = result.theta
        new_mean, new_shape = _maximise(result, group, first)
        moved = np.maximum(np.abs(new_mean / mean - 1.0), np.abs(new_shape / shape - 1.0))
        mean, shape, converged = new_mean, new_shape, bool(moved.max() <= TOLERANCE)
    converged = converged and bool(result.converged.all())
    fit = as_signal_fit(crawls, result, signals is not None and np.ndim(signals) == 1)
    return EmpiricalBayes(GammaPrior(shape, shape / mean), fit, converged)


def _checked_groups(groups: ArrayLike | None, num_pages: int) -> IntArray:
    """Return the group of each page, (m,), all 0 for None; ValueError if a group is empty."""
    if groups is None:
        return np.zeros(num_pages, np.int64)
    group = whole_per_page("groups", groups, num_pages)
    empty = np.flatnonzero(np.bincount(group) == 0)
    if len(empty):
        raise ValueError(f"groups must each have a page, got none in group {empty[0]}")
    return group


def _sums(values: FloatArray, group: IntArray) -> FloatArray:
    """Return the sum of the rows ``values`` of each group, (G, d), given the group of each row."""
    return np.stack([np.bincount(group, column) for column in values.T], axis=1)


def _first_means(crawls: Crawls, group: IntArray) -> FloatArray:
    """Return first means of alpha and b by group, (G, d), from the numbers of changes.

    Each change is counted once, halfway through its interval. Half a change is added, with the time
    that it takes at the mean of all pages, so that groups with few data have about that mean.
    Without any signal, evidence is 1.
    """
    of_crawl = np.repeat(group, np.diff(crawls.offsets))
    count = int(group.max()) + 1
    events = np.bincount(of_crawl, crawls.changed, minlength=count) / crawls.design.shape[1]
    exposure = crawls.design * np.where(crawls.changed, 0.5, 1.0)[:, None]
    total = np.stack([np.bincount(of_crawl, x, minlength=count) for x in exposure.T], axis=1)
    pooled = np.ones(total.shape[1])
    np.divide(events.sum() + EXTRA_EVENTS, total.sum(axis=0), out=pooled, where=total.any(axis=0))
    guess: FloatArray = (events[:, None] + EXTRA_EVENTS) / (total + EXTRA_EVENTS / pooled)
    return guess


def _maximise(result: Fit, group: IntArray, first: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means and shapes, (G, d), of the Gamma distributions nearest to the pages' posteriors.

    ``first`` is the mean of the pseudo-pages that are added to each group, (G, d).
    """
    variance = np.diagonal(result.covariance, axis1=1, axis2=2)
    log_precision = result.theta**2 / variance
    log_theta = np.log(result.theta) + digamma(log_precision) - np.log(log_precision)
    sizes = np.bincount(group)[:, None] + PSEUDO_PAGES
    mean = (_sums(result.theta, group) + PSEUDO_PAGES * first) / sizes
    log_first = np.log(first) + digamma(1.0)
    log_mean = (_sums(log_theta, group) + PSEUDO_PAGES * log_first) / sizes
    gaps = np.log(mean) - log_mean
    shape = np.reshape([gamma_shape(gap) for gap in gaps.flat], gaps.shape)
    return mean, np.clip(shape, *SHAPES)
