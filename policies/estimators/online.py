"""Change rates that follow a crawl: estimates from the history of every page."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import per_page, quantity, real, whole
from policies.estimators.change_rates import bounds, fit_histories
from policies.estimators.histories import (
    CrawlHistories,
    Histories,
    check_intervals,
    numbers,
    rows_of_pages,
    truths,
)
from policies.estimators.moments import match_histories


class HistoryEstimator(ABC):
    """An estimator of change rates from the history of crawls, or from the end of it.

    Before any crawl the estimate of every page is ``initial``. From the first crawl of any page on
    it is the result of the method, also for pages without crawls; ``initial`` remains only where
    the result is nan: without smoothing, and without crawls of the page. The estimate is computed
    on access, starting from the last one.

    Args:
        num_pages: m.
        smoothing: length of one changed and one unchanged imaginary interval of every page, >= 0,
            in units of time (Kolobov et al., Algorithm 4, line 11). With it the estimate is
            positive and finite, and ln(2) / smoothing for a page without crawls, 1.386 per day for
            half a day. With 0 it is 0 if no crawl detected a change, and inf if all did.
        window: S, in units of time: only crawls made less than S before the latest known time
            are used (Kolobov et al., Algorithm 4: S(n)); None for all.
        initial: first guess, >= 0, (m,) or a scalar.

    Attributes:
        estimate_: change rates, (m,).

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        num_pages: int,
        *,
        smoothing: float = 0.5,
        window: float | None = None,
        initial: ArrayLike = 1.0,
    ) -> None:
        self.num_pages = whole("num_pages", num_pages, 1)
        self.smoothing = quantity("smoothing", smoothing)
        self.window = None if window is None else quantity("window", window, above=0.0)
        self.initial = per_page("initial", initial, self.num_pages)
        timed = {} if window is None else {"time": np.float64}
        self._crawls = CrawlHistories(
            self.num_pages, None, elapsed=np.float64, changed=np.bool_, **timed
        )
        self._now = -math.inf
        self._any = self._stale = False
        self._estimate: FloatArray = self.initial.copy()

    def update(
        self,
        page: ArrayLike,
        elapsed: ArrayLike,
        changed: ArrayLike,
        *,
        time: ArrayLike | None = None,
        now: float | None = None,
    ) -> None:
        """Add crawls, those of a page in the order made.

        Args:
            page: (n,) int; a page may come several times.
            elapsed: time since the page's crawl before, 0 or in [1e-30, 1e12]; (n,).
            changed: whether the page had changed, (n,) bool.
            time: of each crawl, >= 0, (n,), or one for all; required with a ``window``.
            now: current time, which moves the window even without crawls; None for the latest
                time given so far.

        Raises:
            ValueError: a number is out of its range, shapes disagree, a page is out of range, a
                page had changed in no time, or a window has no time.
        """
        present = -math.inf if now is None else real("now", now, least=0.0)
        lengths = np.atleast_1d(numbers("elapsed", elapsed))
        flags = truths("changed", np.atleast_1d(changed), lengths.shape)
        pages, _ = rows_of_pages(np.atleast_1d(page), self.num_pages, len(lengths))
        check_intervals("elapsed", lengths, flags)
        if time is None and self.window is not None:
            raise ValueError("time must be given where a window of time is kept, got None")
        times = np.atleast_1d(numbers("time", 0.0 if time is None else time))
        if times.shape not in ((1,), lengths.shape):
            raise ValueError(f"time must have shape {lengths.shape}, got {times.shape}")
        if time is not None and len(lengths):
            present = max(present, float(times.max()))
        self._crawls.append(pages, elapsed=lengths, changed=flags, time=times)
        self._now = max(self._now, present)
        self._any |= len(lengths) > 0
        self._stale = self._any

    @property
    def estimate_(self) -> FloatArray:
        """Change rate of each page."""
        if self._stale:
            if self.window is not None:
                self._crawls.forget(self._now - self.window)
            rates = self._fit(self._crawls.intervals(), self._estimate)
            self._estimate = np.where(np.isnan(rates), self.initial, rates)
            self._stale = False
        return self._estimate.copy()

    @abstractmethod
    def _fit(self, crawls: Histories, start: FloatArray) -> FloatArray:
        """Return estimates, (m,); nan where undetermined. ``start`` is the previous estimate."""


class MomentMatching(HistoryEstimator):
    """Online moment matching, see :func:`.match_moments`; the paper has no smoothing.

    Arguments as for :class:`HistoryEstimator`.
    """

    def _fit(self, crawls: Histories, start: FloatArray) -> FloatArray:
        return match_histories(crawls, self.smoothing).change_rate


class ChangeRateMLE(HistoryEstimator):
    """Maximum likelihood from whether each crawl detected a change (Kolobov et al., eq. 10).

    Args:
        num_pages: m.
        smoothing: see :class:`HistoryEstimator`.
        low: least rate, >= 0.
        high: greatest rate, > ``low``. The public code of the paper searches [0.0005, 7] per day.
        window: see :class:`HistoryEstimator`.
        initial: see :class:`HistoryEstimator`; the paper's experiments start from 1 per day.
    """

    def __init__(
        self,
        num_pages: int,
        *,
        smoothing: float = 0.5,
        low: float = 0.0,
        high: float = math.inf,
        window: float | None = None,
        initial: ArrayLike = 1.0,
    ) -> None:
        super().__init__(num_pages, smoothing=smoothing, window=window, initial=initial)
        self.low, self.high = bounds(low, high)

    def _fit(self, crawls: Histories, start: FloatArray) -> FloatArray:
        return fit_histories(crawls, self.smoothing, self.low, self.high, start).change_rate
