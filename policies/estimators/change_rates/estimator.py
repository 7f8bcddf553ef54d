"""What all estimators of change rates have in common, and those that look at whole histories."""

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
    """Change rates of m pages, learnt from what is observed of them.

    How they are told of observations depends on what they observe: crawls, crawls with the age
    of what they found, or changes themselves.
    """

    num_pages: int

    @property
    def estimate_(self) -> FloatArray:
        """Change rate of each page, per unit time, (m,); a copy."""

    @property
    def stderr_(self) -> FloatArray:
        """Its standard error, (m,); nan where there is none. A copy."""


class HistoryEstimator(ABC):
    """An estimator that looks at the history of crawls, or at the end of it.

    Before any crawl the estimate of every page is ``initial``. From the first crawl of any page on
    it is what the method makes of the page's crawls, were they none; ``initial`` stands only where
    the method says nothing, which is where it is not smoothed and the page was not crawled. The
    estimate is made when it is asked for, from where it was the last time.

    Args:
        num_pages: m.
        window: S, in units of time: only crawls made less than S before the latest time known
            count (Kolobov et al., Algorithm 4: S(n)); None for all.
        last: only the last so many crawls of each page count; None for all.
        initial: first guess, >= 0, (m,) or a scalar.

    Attributes:
        estimate_: change rates, (m,).
        stderr_: standard errors, (m,); nan before any crawl, and where the method has none.

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
        """Take in crawls, those of a page in the order made.

        Args:
            page: (n,) int; a page may come several times.
            elapsed: time since the page's crawl before, 0 or in [1e-100, 1e100]; (n,).
            changed: what was found, (n,) bool.
            time: of each crawl, >= 0, (n,), or one for all; needed with a ``window``.
            now: the present, which moves the window on even without crawls; None for the latest
                time given so far.

        Raises:
            ValueError: a number is out of its range, shapes disagree, a page is none of the m, a
                page had changed in no time, or there is a window and no time.
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
        """Crawls kept, of all pages together."""
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
        found, self._stderr = self._fit(crawls, self._estimate)
        self._estimate = np.where(np.isnan(found), self.initial, found)
        self._stale = False

    @abstractmethod
    def _fit(self, crawls: Histories, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Estimates and standard errors, (m,); nan where crawls say nothing.

        ``start`` is the estimate before.
        """
