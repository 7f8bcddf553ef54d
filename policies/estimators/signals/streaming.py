"""Estimates that follow a crawl as it goes, for all pages at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import real, whole
from policies.estimators.histories import NO_PRIOR, GammaPrior, history
from policies.estimators.signals.likelihood import Crawls
from policies.estimators.signals.newton import Fit, fit_pages
from policies.estimators.signals.quality import SignalFit, SignalQuality, as_signal_fit


class SignalQualityEstimator:
    """Estimates alpha and b of every page from its last crawls.

    A bounded window: of each page the last ``window`` crawls are kept, and the likelihood of
    :func:`signal_quality_mle` is maximised over them, with a prior if there is one. With
    ``half_life``, a crawl counts half for each ``half_life`` of time between it and the page's
    last crawl: exponential forgetting within the window. Only pages crawled since the last look
    are fitted again, from where they were.

    Args:
        num_pages: m.
        num_sources: S; 0 estimates change rates without signals.
        window: crawls kept of each page; memory is m * window * (2 + S) numbers.
        half_life: in units of time, > 0; inf forgets nothing within the window.
        prior: Gamma prior of (alpha, b_1, .., b_S); None for the MLE.

    Attributes:
        estimate_: (alpha, b_1, .., b_S) of each page, (m, 1 + S); nan, inf and 0 as in
            :class:`SignalFit`. Pages without crawls have the prior's mean, or nan.
        stderr_: standard errors, (m, 1 + S).
        fit_: all of it as a :class:`SignalFit`; with ``signal_rate`` over the same crawls.
        quality_: as a :class:`SignalQuality`.
        crawls_: crawls in the window, (m,) int64.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        num_pages: int,
        num_sources: int = 1,
        *,
        window: int = 64,
        half_life: float = math.inf,
        prior: GammaPrior | None = None,
    ) -> None:
        self.num_pages = whole("num_pages", num_pages, 1)
        self.num_sources = whole("num_sources", num_sources, 0)
        self.window = whole("window", window, 1)
        self.half_life = (
            half_life if half_life == math.inf else real("half_life", half_life, above=0)
        )
        self.prior = NO_PRIOR if prior is None else prior
        m, d = self.num_pages, 1 + self.num_sources
        self._shape, self._rate = self.prior.of(m, d)
        self._design: FloatArray = np.zeros((m, self.window, d))
        self._changed: BoolArray = np.zeros((m, self.window), np.bool_)
        self._seen: IntArray = np.zeros(m, np.int64)
        self._stale: BoolArray = np.ones(m, np.bool_)
        self._fit: Fit | None = None

    def update(
        self, page: ArrayLike, elapsed: ArrayLike, signals: ArrayLike | None, changed: ArrayLike
    ) -> None:
        """Take in crawls, those of a page in the order made.

        Args:
            page: (n,) int; a page may come several times.
            elapsed: time since the page's crawl before, (n,), >= 0.
            signals: received meanwhile, (n,), or (S, n) of several sources; None without sources.
            changed: what was found, (n,) bool.

        Raises:
            ValueError: as :func:`signal_quality_mle` does.
        """
        new = history(elapsed, signals, changed, page, self.num_pages)
        if new.design.shape[1] != 1 + self.num_sources:
            raise ValueError(
                f"signals must be of {self.num_sources} sources, got {new.design.shape[1] - 1}"
            )
        counts = np.diff(new.offsets)
        pages = np.repeat(np.arange(self.num_pages), counts)
        place = np.arange(len(pages)) - np.repeat(new.offsets[:-1], counts)
        kept = place >= np.repeat(counts, counts) - self.window
        slot = (self._seen[pages] + place)[kept] % self.window
        self._design[pages[kept], slot] = new.design[kept]
        self._changed[pages[kept], slot] = new.changed[kept]
        self._seen += counts
        self._stale |= counts > 0

    @property
    def crawls_(self) -> IntArray:
        """Crawls in the window of each page."""
        return np.minimum(self._seen, self.window)

    @property
    def estimate_(self) -> FloatArray:
        """Alpha and b of each page."""
        return self._current().theta.copy()

    @property
    def stderr_(self) -> FloatArray:
        """Standard errors of the estimate."""
        return np.asarray(np.sqrt(np.diagonal(self._current().covariance, axis1=1, axis2=2)))

    @property
    def fit_(self) -> SignalFit:
        """The estimate in the words of the suite."""
        crawls = self._crawls(np.arange(self.num_pages))
        return as_signal_fit(crawls, self._current(), self.num_sources == 1)

    @property
    def quality_(self) -> SignalQuality:
        """Change rate, recall, precision and false signals of each page."""
        return self.fit_.quality()

    def _current(self) -> Fit:
        """Fit the pages that were crawled since the last look."""
        stale = np.flatnonzero(self._stale)
        if self._fit is None:
            start = np.zeros_like(self._shape)
            self._fit = fit_pages(self._crawls(stale), self._shape, self._rate, start)
        elif len(stale):
            start = self._fit.theta[stale]
            found = fit_pages(self._crawls(stale), self._shape[stale], self._rate[stale], start)
            for name in Fit._fields:
                getattr(self._fit, name)[stale] = getattr(found, name)
        self._stale[:] = False
        return self._fit

    def _crawls(self, pages: IntArray) -> Crawls:
        """The windows of pages as crawls; empty places weigh nothing."""
        design, d = self._design[pages], 1 + self.num_sources
        places = np.arange(self.window)
        age = (self._seen[pages, None] - 1 - places) % self.window  # 0 is the last crawl
        weight = (age < np.minimum(self._seen[pages, None], self.window)).astype(np.float64)
        if self.half_life < math.inf:
            order = np.argsort(age, axis=1)
            times = np.take_along_axis(design[:, :, 0], order, axis=1)
            since = np.cumsum(times, axis=1) - times
            weight *= np.exp2(-np.take_along_axis(since, age, axis=1) / self.half_life)
        return Crawls(
            np.ascontiguousarray(design.reshape(-1, d)),
            self._changed[pages].ravel(),
            weight.ravel(),
            np.arange(len(pages) + 1) * self.window,
        )
