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
    """Return change rates of pages with counted changes: (changes + a) / (time + b).

    Kolobov et al. print a = 1, b = 0 in eq. 11 and a = b = 0.5 in Algorithm 4, line 13;
    a = b = 0 is the maximum of the likelihood. All are consistent.

    Args:
        changes: U, counted in ``time``, >= 0; (m,) or a scalar.
        time: length of the count, >= 0; (m,) or a scalar.
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
    """Change rates from signals of pages that signal every change, without false signals.

    The changes of each page are counted; crawls have no effect.

    The estimate is :func:`complete_observation_rates`: with smoothing it is always positive and
    finite; with ``smoothing`` 0 a page without changes has rate 0. It is ``initial`` before the
    first :meth:`update`, and where time plus smoothing is 0.

    ``stderr_`` is sqrt(estimate / time), from the Fisher information time / Delta of a Poisson
    process; nan at time 0, and where the estimate is 0, a bound.

    Args:
        num_pages: m.
        smoothing: added to count and time, >= 0: one number for both, or two. (1, 0) is the
            paper's eq. 11.
        window: S > 0: only the last S units of time are used (S(n) of Algorithm 4); None for all.
        initial: first guess, >= 0; (m,) or a scalar.
        start: start time of the count.

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
        self._updated = False
        self.counts_: IntArray = np.zeros(self.num_pages, np.int64)
        self._pages: list[NDArray[np.int32]] = []  # of the window
        self._times: list[FloatArray] = []

    def update(self, page: ArrayLike, *, time: float, signal_time: ArrayLike | None = None) -> None:
        """Count signals up to now, of any pages.

        Args:
            page: of each signal, (n,) int; a page may come several times.
            time: current time, not before that of the last call.
            signal_time: time of each signal, not after ``time``, (n,); None for ``time`` itself.
                Used only with a window.

        Raises:
            ValueError: a page is out of range, a time is not finite, or time decreases.
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
        self._now, self._updated = now, True
        self.counts_ += np.bincount(pages, minlength=self.num_pages)
        if self.window is not None:
            self._pages.append(pages.astype(np.int32))
            self._times.append(moments)
            self._forget(now - self.window)

    @property
    def time_(self) -> float:
        """Length of the count, within the window if there is one."""
        counted = self._now - self.start
        return counted if self.window is None else min(counted, self.window)

    @property
    def estimate_(self) -> FloatArray:
        """Change rate of each page, (m,)."""
        if not self._updated:
            return self.initial.copy()
        rate = complete_observation_rates(self.counts_, self.time_, smoothing=self.smoothing)
        return np.where(np.isnan(rate), self.initial, rate)

    @property
    def stderr_(self) -> FloatArray:
        """Standard error of each page's estimate, (m,)."""
        estimate = self.estimate_
        if not self._updated or self.time_ == 0.0:
            return np.full(self.num_pages, np.nan)
        return np.where(estimate > 0.0, np.sqrt(estimate / self.time_), np.nan)

    def _forget(self, since: float) -> None:
        """Drop the signals before the window."""
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
