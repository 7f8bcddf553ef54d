r"""Draw the time of the change that each signal follows, given the changes of pages.

A signal that arrives at s follows a change at s - D. Delays D are exponential, with a mean of their
own in each source. False signals have such a D too, from the same distribution: they then come at
the same rate at s - D as at s, so that changes and phases given all D are those of
:mod:`policies.live.logs.change_paths` with signals at s - D. Given the changes, D is drawn in turn:

* The change of a true signal moves between the changes before and after it, from u to u'. The
  density of the path at u is in proportion to the factor of its period times
  exp(-(r_h - r_k) c(u)), if the phase goes from h to k, and c is the clock that runs as fast as the
  factor. u' comes from the truncated exponential distribution of D, and is refused if a crawl that
  found a change would have none left, or one that found none would have one. Every other change
  moves at a time: their neighbours stay.
* The mean of a source is drawn by Metropolis steps given the delays of its true signals. Its prior
  is uniform up to three times the median time between crawls.
* D of a false signal is drawn from its distribution.

If most signals of a source share their times with others, they are published in batches (a feed
that is polled every day). Then D is at most the time since the batch before: its distribution is
truncated there, and nearly uniform if its mean is long.

Two kinds of signals are not modelled, a share of about D over the days of the log: those under way
at the end, whose changes count as changes without a signal, and true ones of changes before the
first crawl of a page, which count as false.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.logs.change_paths import Drawn, Gaps

SWEEPS = 2
"""Number of times that each signalled change is moved in a pass."""
BATCHED = 0.8
"""Share of a source's signals beyond which they come in batches if their time is that of another
one."""
STEPS = 10
"""Number of Metropolis steps per pass for each mean delay."""
MIN_DELAY, FIRST_DELAY, MAX_DELAY = 1e-6, 0.03, 3.0
"""Range of the uniform prior of a mean delay, and its first value, in median times between
crawls."""


class Periods(NamedTuple):
    """Parts of a log between ``edges`` in days; each multiplies change rates by ``factor``."""

    edges: FloatArray
    factor: FloatArray

    def factor_at(self, time: FloatArray) -> FloatArray:
        """Return the factor of change rates at each time in days."""
        period = np.searchsorted(self.edges, time) - 1
        return self.factor[np.clip(period, 0, self.factor.size - 1)]

    def clock(self, time: FloatArray) -> FloatArray:
        """Convert days to the time of a clock that runs at the speed of the factor."""
        return np.interp(time, self.edges, self._ticks)

    def days(self, clock: FloatArray) -> FloatArray:
        """Convert times of the clock of :meth:`clock` back to days."""
        return np.interp(clock, self._ticks, self.edges)

    @property
    def _ticks(self) -> FloatArray:
        return np.append(0.0, np.cumsum(self.factor * np.diff(self.edges)))


class SignalDelays:
    """A sampler of the delays from changes to their signals, and of each source's mean delay.

    Attributes:
        mean: mean delay of each source in days, (S,).
        order: index of each signal of the gaps that :meth:`shifted` returned last.
    """

    def __init__(
        self,
        gaps: Gaps,
        time: FloatArray,
        late: BoolArray,
        num_sources: int,
        rng: np.random.Generator,
    ) -> None:
        """Draw first delays; ``late``, (k,) bool: which signals may be late; ``time``: (k,)."""
        self.gaps, self.late, self.rng = gaps, late, rng
        self.gap = np.repeat(np.arange(gaps.start.size), np.diff(gaps.signal))
        first = np.repeat(gaps.first[:-1], np.diff(gaps.first))
        self.first_gap, self.sent = first[self.gap], gaps.start[self.gap] + gaps.signal_at
        lengths = gaps.length[gaps.length > 0.0]
        typical = float(np.median(lengths)) if lengths.size else 1.0
        self.least, self.longest = MIN_DELAY * typical, MAX_DELAY * typical
        self.mean = np.full(num_sources, FIRST_DELAY * typical)
        self.bound = np.full(late.size, np.inf)
        for k in range(num_sources):
            signals = np.flatnonzero(late & (gaps.source == k))
            batch, of, number = np.unique(time[signals], return_inverse=True, return_counts=True)
            if (number[of] > 1).sum() > BATCHED * signals.size:
                wait = np.diff(batch)
                self.bound[signals] = np.append(np.median(wait) if wait.size else typical, wait)[of]
        self.delay = np.zeros(late.size)
        self.delay[late] = self._delays(np.flatnonzero(late), 0.0, np.inf)

    def shifted(self) -> Gaps:
        """Return the gaps with each signal moved back by its delay, to the time of its change."""
        time, gaps = self.sent - self.delay, self.gaps
        gap = self._gap_of(time, np.arange(time.size))
        inside = np.flatnonzero(~self.late | (time > gaps.start[gap]))
        self.order = inside[np.lexsort((time[inside], gap[inside]))]
        gap = gap[self.order]
        return gaps._replace(
            signal=np.searchsorted(gap, np.arange(gaps.start.size + 1)),
            signal_at=np.maximum(time[self.order] - gaps.start[gap], 0.0),
            source=gaps.source[self.order],
            pace=np.ones(gap.size),
        )

    def _gap_of(self, time: FloatArray, signal: IntArray) -> IntArray:
        """Return the gap that contains a time before each signal, at least the page's first gap."""
        gap, first, start = self.gap[signal], self.first_gap[signal], self.gaps.start
        back = np.flatnonzero(self.late[signal] & (time <= start[gap]) & (gap > first))
        while back.size:
            gap[back] -= 1
            back = back[(time[back] <= start[gap[back]]) & (gap[back] > first[back])]
        return gap

    def draw(self, drawn: Drawn, rates: FloatArray, periods: Periods) -> None:
        """Draw delays and mean delays, given the drawn changes and the change rates, (m, 2).

        ``drawn.true`` is in the order of the constructor's gaps, (k,).
        """
        if not self.late.any():
            return
        self._move_changes(drawn, rates, periods)
        source, true, false = self.gaps.source, drawn.true & self.late, self.late & ~drawn.true
        for k in np.unique(source[self.late]):
            signals = np.flatnonzero(true & (source == k))
            here = self._log_density(signals, self.mean[k])
            for _ in range(STEPS):
                mean = self.mean[k] * np.exp(self.rng.normal() * 2.0 / np.sqrt(signals.size + 1.0))
                there = self._log_density(signals, mean)
                if self.least < mean < self.longest and np.log(self.rng.random()) < there - here:
                    self.mean[k], here = mean, there
        self.delay[false] = self._delays(np.flatnonzero(false), 0.0, np.inf)

    def _log_density(self, signals: IntArray, mean: float) -> float:
        """Return the log density of ln(mean delay), given the delays of some signals."""
        delay, bound = self.delay[signals], self.bound[signals]
        terms = np.log(mean) + delay / mean + np.log(-np.expm1(-bound / mean))
        return float(np.log(mean) - terms.sum())

    def _delays(
        self, signal: IntArray, low: FloatArray | float, high: FloatArray | float
    ) -> FloatArray:
        """Draw the delays of signals between two limits from their exponential distributions."""
        mean = self.mean[self.gaps.source[signal]]
        high = np.minimum(high, self.bound[signal])
        spread = -np.expm1((low - high) / mean)
        delay: FloatArray = low - mean * np.log1p(-self.rng.random(signal.size) * spread)
        return delay

    def _move_changes(self, drawn: Drawn, rates: FloatArray, periods: Periods) -> None:
        """Draw new times of the changes with a signal, and set the delays of their signals."""
        page, time, gaps = drawn.page, drawn.time.copy(), self.gaps
        begins = np.append(True, page[1:] != page[:-1])[: page.size]
        start = gaps.start[np.minimum(gaps.first[page], gaps.start.size - 1)]
        before = np.where(begins, drawn.moves[page, 2, 1], np.append(0, drawn.phase)[:-1])
        slope = rates[page, before] - rates[page, drawn.phase]
        gap = np.repeat(np.arange(gaps.start.size), drawn.in_gap)
        changed, unchanged = gaps.has_evidence & gaps.changed, gaps.has_evidence & ~gaps.changed
        signal = np.append(self.order, -1)[drawn.signal]
        moving = np.flatnonzero((signal >= 0) & np.append(self.late, False)[signal])

        def log_density(time: FloatArray, change: IntArray) -> FloatArray:
            return np.log(periods.factor_at(time)) - slope[change] * periods.clock(time)

        for parity in (0, 1) * SWEEPS:
            change = moving[moving % 2 == parity]
            moving_signals, sent = signal[change], self.sent[signal[change]]
            low = np.where(begins, start, np.append(0.0, time)[:-1])[change]
            high = np.where(np.append(begins, True)[1:], np.inf, np.append(time, 0.0)[1:])[change]
            delay = self._delays(moving_signals, np.maximum(sent - high, 0.0), sent - low)
            moved, number = sent - delay, np.bincount(gap, minlength=gaps.start.size)
            into, out_of = self._gap_of(moved, moving_signals), gap[change]
            allowed = ~unchanged[into] & (~changed[out_of] | (number[out_of] > 1))
            ratio = log_density(moved, change) - log_density(time[change], change)
            accepted = (into == out_of) | allowed
            accepted &= (moved > low) & (np.log(self.rng.random(change.size)) < ratio)
            to = change[accepted]
            time[to], gap[to] = moved[accepted], into[accepted]
            self.delay[moving_signals[accepted]] = delay[accepted]
