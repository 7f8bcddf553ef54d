"""The interface of change-rate estimators, and the base of those that keep histories."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import per_page, quantity, real, whole
from policies.estimators.change_rates.page_histories import Histories
from policies.estimators.change_rates.record import CrawlRecord


class ChangeRateEstimator(Protocol):
    """Change rates of m pages, estimated from observations.

    The arguments of ``update`` depend on the observations: crawls, crawls with the age of the last
    change, or changes themselves.
    """

    num_pages: int

    @property
    def estimate_(self) -> FloatArray:
        """Change rate of each page, per unit time, (m,); a copy."""

    @property
    def stderr_(self) -> FloatArray:
        """Standard error of each estimate, (m,); nan if unknown; a copy."""


class HistoryEstimator(ABC):
    """An estimator from the history of crawls, or from the end of it.

    Before any crawl the estimate of every page is ``initial``. From the first crawl of any page on
    it is the result of the method, also for pages without crawls; ``initial`` remains only where
    the result is nan: without smoothing, and without crawls of the page. The estimate is computed
    on access, starting from the last one.

    Args:
        num_pages: m.
        window: S, in units of time: only crawls made less than S before the latest known time
            are used (Kolobov et al., Algorithm 4: S(n)); None for all.
        last: number of the last crawls of each page that are used; None for all.
        initial: first guess, >= 0, (m,) or a scalar.

    Attributes:
        estimate_: change rates, (m,).
        stderr_: standard errors, (m,); nan before any crawl, and where undefined.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        num_pages: int,
        *,
        window: float | None = None,
        last: int | None = None,
        initial: ArrayLike = 1.0,
    ) -> None:
        self.num_pages = whole("num_pages", num_pages, 1)
        self.window = None if window is None else quantity("window", window, above=0.0)
        self.last = None if last is None else whole("last", last, 1)
        self.initial = per_page("initial", initial, self.num_pages)
        self._record = CrawlRecord(self.num_pages, timed=self.window is not None)
        self._now = -math.inf
        self._any = False
        self._stale = False
        self._estimate: FloatArray = self.initial.copy()
        self._stderr: FloatArray = np.full(self.num_pages, np.nan)

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
            elapsed: time since the page's crawl before, 0 or in [1e-100, 1e100]; (n,).
            changed: whether the page had changed, (n,) bool.
            time: of each crawl, >= 0, (n,), or one for all; required with a ``window``.
            now: current time, which moves the window even without crawls; None for the latest
                time given so far.

        Raises:
            ValueError: a number is out of its range, shapes disagree, a page is out of range, a
                page had changed in no time, or a window has no time.
        """
        present = -math.inf if now is None else real("now", now, least=0.0)
        count = self._record.append(page, elapsed, changed, time)
        if time is not None and count:
            present = max(present, float(np.max(time)))
        self._now = max(self._now, present)
        self._any |= count > 0
        self._stale = self._any

    @property
    def crawls_(self) -> int:
        """Number of stored crawls, of all pages together."""
        return self._record.size

    @property
    def estimate_(self) -> FloatArray:
        """Change rate of each page."""
        self._refresh()
        return self._estimate.copy()

    @property
    def stderr_(self) -> FloatArray:
        """Standard error of each page's estimate."""
        self._refresh()
        return self._stderr.copy()

    def _refresh(self) -> None:
        if not self._stale:
            return
        since = -math.inf if self.window is None else self._now - self.window
        crawls = self._record.by_page(since, 0 if self.last is None else self.last)
        rates, self._stderr = self._fit(crawls, self._estimate)
        self._estimate = np.where(np.isnan(rates), self.initial, rates)
        self._stale = False

    @abstractmethod
    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return estimates and standard errors, (m,); nan where undetermined.

        ``start`` is the previous estimate.
        """
