"""Change rates of pages that signal every change."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import per_page, quantity, real, whole
from policies.estimators.histories import column, numbers, rows_of_pages

SMOOTHED = (0.5, 0.5)
"""Added to count and time in Algorithm 4, line 13, of Kolobov et al."""

LITERAL = (1.0, 0.0)
"""Added to count and time in their eq. 11."""


def complete_observation_rates(
    changes: ArrayLike, time: ArrayLike, *, smoothing: float | tuple[float, float] = SMOOTHED
) -> FloatArray:
    """Change rates of pages whose changes were counted: (changes + a) / (time + b).

    Kolobov et al. print a = 1, b = 0 in eq. 11 and a = b = 0.5 in Algorithm 4, line 13;
    a = b = 0 is the maximum of the likelihood. All are consistent.

    Args:
        changes: U, counted in ``time``, >= 0; (m,) or a scalar.
        time: how long they were counted, >= 0; (m,) or a scalar.
        smoothing: a and b, >= 0, or one number for both; b in units of time.

    Returns:
        Rates; nan where ``time`` + b is 0.

    Raises:
        ValueError: a number is negative or not finite.
    """
    extra_changes, extra_time = _pair(smoothing)
    with np.errstate(invalid="ignore", divide="ignore"):
        length = numbers("time", time) + extra_time
        rate = (numbers("changes", changes) + extra_changes) / length
    return np.where(length > 0.0, rate, np.nan)


class CompleteObservations:
    """Change rates from signals of pages that signal every change, and send no other signal.

    Of each page the changes so far are counted; how they were crawled does not matter.

    The estimate is :func:`complete_observation_rates`: smoothed it is positive and finite,
    whatever came. With ``smoothing`` 0 a page without changes has the rate 0. Before :meth:`update`
    is first called, and where no time has passed and none is imagined, it is ``initial``.

    ``stderr_`` is sqrt(estimate / time), from the Fisher information time / Delta of a Poisson
    process; nan where no time has passed, and where the estimate is 0, a bound.

    Args:
        num_pages: m.
        smoothing: what is added to count and time, >= 0: one number for both, or two. (1, 0) is
            the paper's eq. 11.
        window: S > 0: only the last S units of time count (S(n) of Algorithm 4); None for all.
        initial: first guess, >= 0; (m,) or a scalar.
        start: when counting began.

    Attributes:
        counts_: changes counted, in the window if there is one; (m,) int64.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        num_pages: int,
        *,
        smoothing: float | tuple[float, float] = SMOOTHED,
        window: float | None = None,
        initial: ArrayLike = 1.0,
        start: float = 0.0,
    ) -> None:
        self.num_pages = whole("num_pages", num_pages, 1)
        self.smoothing = _pair(smoothing)
        self.window = None if window is None else quantity("window", window, above=0.0)
        self.initial = per_page("initial", initial, self.num_pages)
        self.start = self._now = real("start", start)
        self._told = False
        self.counts_: IntArray = np.zeros(self.num_pages, np.int64)
        self._pages: list[NDArray[np.int32]] = []  # of the window
        self._times: list[FloatArray] = []

    def update(self, page: ArrayLike, *, time: float, signal_time: ArrayLike | None = None) -> None:
        """Count signals that came up to now, of whichever pages.

        Args:
            page: of each signal, (n,) int; a page may come several times.
            time: the present, not before that of the last call.
            signal_time: when each signal came, not after ``time``, (n,); None for ``time`` itself.
                It only matters where a window ends.

        Raises:
            ValueError: a page is none of the m, a time is not finite, or time runs backwards.
        """
        now = real("time", time, least=self._now)
        given = np.atleast_1d(np.asarray(page))
        pages, _ = rows_of_pages(given, self.num_pages, len(given))
        if signal_time is not None:
            moments = column("signal_time", signal_time, len(pages))
            if np.any(moments > now):
                raise ValueError(f"signal_time must not be after {now}, got {moments.max()}")
        elif self.window is not None:
            moments = np.full(len(pages), now)
        self._now, self._told = now, True
        self.counts_ += np.bincount(pages, minlength=self.num_pages)
        if self.window is not None:
            self._pages.append(pages.astype(np.int32))
            self._times.append(moments)
            self._forget(now - self.window)

    @property
    def time_(self) -> float:
        """How long changes were counted, in the window if there is one."""
        counted = self._now - self.start
        return counted if self.window is None else min(counted, self.window)

    @property
    def estimate_(self) -> FloatArray:
        """Change rate of each page, (m,)."""
        if not self._told:
            return self.initial.copy()
        rate = complete_observation_rates(self.counts_, self.time_, smoothing=self.smoothing)
        return np.where(np.isnan(rate), self.initial, rate)

    @property
    def stderr_(self) -> FloatArray:
        """Standard error of each page's estimate, (m,)."""
        estimate = self.estimate_
        if not self._told or self.time_ == 0.0:
            return np.full(self.num_pages, np.nan)
        return np.where(estimate > 0.0, np.sqrt(estimate / self.time_), np.nan)

    def _forget(self, since: float) -> None:
        """Drop the signals that came before the window."""
        for k, moments in enumerate(self._times):
            old = moments <= since
            if old.any():
                self.counts_ -= np.bincount(self._pages[k][old], minlength=self.num_pages)
                self._pages[k], self._times[k] = self._pages[k][~old], moments[~old]
        kept = [k for k, moments in enumerate(self._times) if len(moments)]
        self._pages = [self._pages[k] for k in kept]
        self._times = [self._times[k] for k in kept]


def _pair(smoothing: float | tuple[float, float]) -> tuple[float, float]:
    pair = smoothing if isinstance(smoothing, tuple) else (smoothing, smoothing)
    if len(pair) != 2:
        raise ValueError(f"smoothing must be a number >= 0, or two of them, got {smoothing!r}")
    first, second = (real("smoothing", number, least=0.0) for number in pair)
    return first, second
