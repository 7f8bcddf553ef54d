"""Empirical Bayes change rates: shrinkage of each page towards its group.

The model is that of :mod:`policies.estimators.signals.empirical_bayes` without signals: the rates
of a group of pages have a Gamma distribution, estimated by expectation and maximisation from all
their crawls, and the estimate of a page is the mode in ln Delta of its posterior. The pages are
fitted by the faster kernel of :mod:`.fitting`, each fit starts from the previous estimate, and
every third pass extrapolates the two before it: plain passes stop early where crawls are few.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from crawl_envs.types import FloatArray, IntArray
from policies.estimators.change_rates.cho_garcia_molina import history_counts
from policies.estimators.change_rates.estimator import HistoryEstimator
from policies.estimators.change_rates.fitting import RateFit, fit_histories
from policies.estimators.change_rates.page_histories import Histories
from policies.estimators.histories import GammaPrior
from policies.estimators.signals.empirical_bayes import (
    EXTRA_EVENTS,
    MAX_PASSES,
    PSEUDO_PAGES,
    checked_groups,
    gamma_shape,
)

TOLERANCE = 1e-5
"""Change of every group's ln mean and ln shape in one pass at which the iteration ends."""
FARTHEST = 50.0
"""Longest extrapolation, in passes."""


class EmpiricalBayesRate(HistoryEstimator):
    """Change rates under a distribution estimated from all pages of a group.

    Always positive and finite; a page without crawls has its group's mean. ``stderr_`` is that of
    the posterior, by the curvature at its mode; a page without crawls has the group's spread.

    Args:
        num_pages: m.
        groups: the group of each page, 0 .. G - 1, (m,) int, each with a page; None for one group.
        window: see :class:`HistoryEstimator`.
        last: see :class:`HistoryEstimator`.
        initial: > 0; the mean of a group without crawls. See :class:`HistoryEstimator`.

    Attributes:
        groups_: the distribution of each group, shape and rate (G, 1); None before any crawl.
        converged_: whether the distributions converged in the last fit.
    """

    def __init__(
        self,
        num_pages: int,
        *,
        groups: ArrayLike | None = None,
        window: float | None = None,
        last: int | None = None,
        initial: ArrayLike = 1.0,
    ) -> None:
        super().__init__(num_pages, window=window, last=last, initial=initial)
        if np.any(self.initial == 0.0):
            raise ValueError("initial must be > 0, got 0.0")
        self._group = checked_groups(groups, self.num_pages)
        self._groups: GammaPrior | None = None
        self._converged = True

    @property
    def groups_(self) -> GammaPrior | None:
        """The distribution of each group."""
        self._refresh()
        return self._groups

    @property
    def converged_(self) -> bool:
        """Whether the distributions converged."""
        self._refresh()
        return self._converged

    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        self._groups, fit, self._converged = settle(
            crawls, self._group, self.initial, self._groups, start
        )
        return fit.change_rate, fit.stderr


def settle(
    crawls: Histories,
    group: IntArray,
    initial: FloatArray,
    prior: GammaPrior | None,
    start: FloatArray,
) -> tuple[GammaPrior, RateFit, bool]:
    """Run expectation and maximisation until the distributions of the groups converge.

    Args:
        crawls: of the m pages.
        group: of each page, (m,).
        initial: guesses > 0, (m,), for groups without crawls.
        prior: distributions to start from, (G, 1); None for exponential ones.
        start: rates to start from, (m,).

    Returns:
        The distributions, the estimates under them, and whether all converged.
    """
    first = _first_means(crawls, group, initial)
    mean = first if prior is None else prior.mean[:, 0]
    shape = np.ones_like(mean) if prior is None else prior.shape[:, 0]
    point, moved = np.log([mean, shape]), math.inf

    def improve(given: FloatArray) -> FloatArray:
        nonlocal start
        fit = _under(crawls, group, given, start)
        start = fit.change_rate
        return _maximise(fit, group, first)

    for _ in range(MAX_PASSES // 3):
        near = improve(point)
        moved = float(np.abs(near - point).max())
        point, before = near, point
        if moved <= TOLERANCE:
            break
        far = improve(near)
        point = improve(_leap(before, near, far))
    fit = _under(crawls, group, point, start)
    mean, shape = np.exp(point)
    settled = moved <= TOLERANCE and bool(fit.converged.all())
    return GammaPrior(shape[:, None], (shape / mean)[:, None]), fit, settled


def _under(crawls: Histories, group: IntArray, point: FloatArray, start: FloatArray) -> RateFit:
    """Return estimates under the groups' distributions; ``point`` has ln mean and ln shape."""
    mean, shape = np.exp(point)
    prior = GammaPrior(shape[group, None], (shape / mean)[group, None])
    return fit_histories(crawls, prior=prior, start=start)


def _leap(before: FloatArray, near: FloatArray, far: FloatArray) -> FloatArray:
    """Extrapolate two passes: SQUAREM (Varadhan and Roland 2008), per group.

    The step length is -|r| / |v| of the first difference r and the second v.
    """
    first, second = near - before, far - 2.0 * near + before
    size, bend = np.linalg.norm(first, axis=0), np.linalg.norm(second, axis=0)
    length = np.clip(size / np.maximum(bend, 1e-300), 1.0, FARTHEST)
    leap = 2.0 * length * first + length**2 * second
    return np.asarray(before + np.clip(leap, -1.0, 1.0))


def _first_means(crawls: Histories, group: IntArray, initial: FloatArray) -> FloatArray:
    """Return means (G,) as if each change were counted once, halfway through its interval."""
    changes, _, time = history_counts(crawls)
    halves = np.where(crawls.changed, 0.5 * crawls.intervals, 0.0)
    exposure = np.bincount(group, time - history_counts(crawls._replace(intervals=halves))[2])
    events = np.bincount(group, changes) + EXTRA_EVENTS
    guess = np.bincount(group, initial) / np.bincount(group)
    return np.asarray(np.divide(events, exposure, out=guess, where=exposure > 0.0))


def _maximise(fit: RateFit, group: IntArray, first: FloatArray) -> FloatArray:
    """Return ln means and ln shapes, (2, G), of the distributions closest to the posteriors."""
    rate = fit.change_rate
    log_precision = (rate / fit.stderr) ** 2
    log_rate = np.log(rate) + digamma(log_precision) - np.log(log_precision)
    sizes = np.bincount(group) + PSEUDO_PAGES
    mean = (np.bincount(group, rate) + PSEUDO_PAGES * first) / sizes
    log_mean = (
        np.bincount(group, log_rate) + PSEUDO_PAGES * (np.log(first) + digamma(1.0))
    ) / sizes
    return np.log([mean, gamma_shape(np.log(mean) - log_mean)])
