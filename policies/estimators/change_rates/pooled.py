"""Change rates of pages that lend each other what they lack: empirical Bayes.

The model is that of :mod:`policies.estimators.signals.shrinkage` without signals: the rates of a group of
pages are drawn from a Gamma distribution, found by expectation and maximisation from all their
crawls, and the estimate of a page is the mode in ln Delta of its posterior. The pages are fitted
by the faster kernel of :mod:`.fitting`, everything starts from the estimate before, and every third
pass is a leap along the two before it: passes alone stop short where crawls are few.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from crawl_envs.types import FloatArray, IntArray
from policies.estimators.change_rates.counting import history_counts
from policies.estimators.change_rates.estimator import HistoryEstimator
from policies.estimators.change_rates.fitting import RateFit, fit_histories
from policies.estimators.change_rates.page_histories import Histories
from policies.estimators.histories import GammaPrior
from policies.estimators.signals.shrinkage import (
    IMAGINED,
    LONE_EVENT,
    MAX_PASSES,
    checked_groups,
    gamma_shape,
)

TOLERANCE = 1e-5
"""Change of every group's ln mean and ln shape in one pass at which they are settled."""
FARTHEST = 50.0
"""Longest leap, in passes."""


class EmpiricalBayesRate(HistoryEstimator):
    """Change rates under the distribution that crawls of all pages of a group point to.

    Positive and finite whatever crawls found; a page without crawls has its group's mean.
    ``stderr_`` is the posterior's, by the curvature at its mode; a page without crawls has the
    group's spread.

    Args:
        num_pages: m.
        groups: the group of each page, 0 .. G - 1, (m,) int, each with a page; None for one group.
        window: see :class:`HistoryEstimator`, as the rest.
        last: see there.
        initial: > 0; the mean of a group of which no page was crawled. Otherwise see there.

    Attributes:
        groups_: the distribution of each group, shape and rate (G, 1); None before any crawl.
        converged_: whether the distributions settled at the last look.
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
        """Whether the distributions settled."""
        self._refresh()
        return self._converged

    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        self._groups, found, self._converged = settle(
            crawls, self._group, self.initial, self._groups, start
        )
        return found.change_rate, found.stderr


def settle(
    crawls: Histories,
    group: IntArray,
    initial: FloatArray,
    prior: GammaPrior | None,
    start: FloatArray,
) -> tuple[GammaPrior, RateFit, bool]:
    """Expect and maximise until the distributions of the groups do not change any more.

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
        found = _under(crawls, group, given, start)
        start = found.change_rate
        return _maximise(found, group, first)

    for _ in range(MAX_PASSES // 3):
        near = improve(point)
        moved = float(np.abs(near - point).max())
        point, before = near, point
        if moved <= TOLERANCE:
            break
        far = improve(near)
        point = improve(_leap(before, near, far))
    found = _under(crawls, group, point, start)
    mean, shape = np.exp(point)
    settled = moved <= TOLERANCE and bool(found.converged.all())
    return GammaPrior(shape[:, None], (shape / mean)[:, None]), found, settled


def _under(crawls: Histories, group: IntArray, point: FloatArray, start: FloatArray) -> RateFit:
    """Estimates under groups' distributions; ``point`` has ln mean and ln shape, (2, G)."""
    mean, shape = np.exp(point)
    prior = GammaPrior(shape[group, None], (shape / mean)[group, None])
    return fit_histories(crawls, prior=prior, start=start)


def _leap(before: FloatArray, near: FloatArray, far: FloatArray) -> FloatArray:
    """Where two passes lead if followed on: SQUAREM (Varadhan and Roland 2008), per group.

    The step length is -|r| / |v| of the first difference r and the second v.
    """
    first, second = near - before, far - 2.0 * near + before
    size, bend = np.linalg.norm(first, axis=0), np.linalg.norm(second, axis=0)
    length = np.clip(size / np.maximum(bend, 1e-300), 1.0, FARTHEST)
    leap = 2.0 * length * first + length**2 * second
    return np.asarray(before + np.clip(leap, -1.0, 1.0))


def _first_means(crawls: Histories, group: IntArray, initial: FloatArray) -> FloatArray:
    """Means (G,) as if each change had been counted once, halfway through its interval."""
    found, _, time = history_counts(crawls)
    halves = np.where(crawls.changed, 0.5 * crawls.intervals, 0.0)
    exposure = np.bincount(group, time - history_counts(crawls._replace(intervals=halves))[2])
    events = np.bincount(group, found) + LONE_EVENT
    guess = np.bincount(group, initial) / np.bincount(group)
    return np.asarray(np.divide(events, exposure, out=guess, where=exposure > 0.0))


def _maximise(found: RateFit, group: IntArray, first: FloatArray) -> FloatArray:
    """Logarithms of means and shapes, (2, G), of the distributions nearest to the posteriors."""
    rate = found.change_rate
    log_precision = (rate / found.stderr) ** 2
    log_rate = np.log(rate) + digamma(log_precision) - np.log(log_precision)
    sizes = np.bincount(group) + IMAGINED
    mean = (np.bincount(group, rate) + IMAGINED * first) / sizes
    log_mean = (np.bincount(group, log_rate) + IMAGINED * (np.log(first) + digamma(1.0))) / sizes
    return np.log([mean, gamma_shape(np.log(mean) - log_mean)])
