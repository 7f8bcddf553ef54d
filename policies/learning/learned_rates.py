"""What a crawler has learned of the change rates of its pages."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray
from policies import estimators


class CrawlEstimator(Protocol):
    """Estimates change rates from what crawls find, as :class:`policies.estimators` has them."""

    @property
    def estimate_(self) -> FloatArray:
        """Change rates, (m,)."""

    def update(
        self,
        page: IntArray,
        elapsed: FloatArray,
        changed: BoolArray,
        *,
        time: FloatArray,
        now: float,
    ) -> None:
        """Take in crawls in order of time."""


class LearnedRates:
    """Change rates from crawls, and from signals where observation is complete.

    Signals tell (U + smoothing) / (S + smoothing) for U signals in the time S: Algorithm 4 of
    Kolobov et al. (2019). The crawls of such pages, and probes, tell nothing more.

    Args:
        complete: pages whose every change is signalled, (m,).
        crawled: estimates the rates of the other pages.
        initial: first guess, before anything was observed, > 0.
        window: the last units of time that count for signals; None for all.
        smoothing: number of imaginary signals.
        since: when learning begins; signals before that do not count.

    Attributes:
        closed: True takes in nothing any more.
    """

    def __init__(
        self,
        complete: BoolArray,
        crawled: CrawlEstimator,
        *,
        initial: float = 1.0,
        window: float | None = None,
        smoothing: float = 0.5,
        since: float = 0.0,
    ) -> None:
        self.complete, self.closed, self.since = complete, False, since
        self._crawled = crawled
        self._logs: list[CrawlLog] = []
        self._time = since
        self._heard = estimators.CompleteObservations(
            complete.size, smoothing=smoothing, window=window, initial=initial, start=since
        )

    def take_in(self, log: CrawlLog, time: float) -> None:
        """Take in the crawls and signals of a log that ends at a time."""
        if not self.closed:
            self._logs.append(log)
            self._time = time

    def estimate(self) -> FloatArray:
        """Change rates, (m,)."""
        if self._logs:
            self._read()
        return np.where(self.complete, self._heard.estimate_, self._crawled.estimate_)

    def _read(self) -> None:
        """Pass on what came since the last look, all at once, which is much faster."""
        page, elapsed, changed, time, probe = (
            np.concatenate([getattr(log, name) for log in self._logs])
            for name in ("page", "elapsed", "changed", "time", "probe")
        )
        crawls = ~(self.complete[page] | probe)
        self._crawled.update(
            page[crawls], elapsed[crawls], changed[crawls], time=time[crawls], now=self._time
        )
        if self._time > self.since:
            signal = np.concatenate([log.signal_page for log in self._logs])
            times = np.concatenate([log.signal_time for log in self._logs])
            heard = self.complete[signal] & (times >= self.since)
            self._heard.update(signal[heard], time=self._time, signal_time=times[heard])
        self._logs.clear()
