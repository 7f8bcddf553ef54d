r"""Draw the changes that happened between the crawls of a log, given what the crawls found.

A crawl tells whether a page changed since the crawl before, not how often or when. Changes may come
in bursts. After a change, a page changes again at the rate of the bursts with some probability, and
otherwise at its own, as in :mod:`policies.live.logs.change_paths`; without bursts it changes
as a Poisson process, as in the NCIS paper (Busa-Fekete et al., section 3). Each change is signalled
by at most one source, and there are false signals. Signals are late, as in
:mod:`policies.live.logs.signal_delays`; those that are counted, or of which only the day is known,
are at their time. All rates of change are multiplied by a factor that is constant in each of
``PERIODS`` parts of the log, since sites slow down or grow.

Nothing of this is known but crawls and signals. In each group of pages (a host, for instance)
change rates and rates of false signals have Gamma distributions of unknown mean and shape; sources
signal unknown shares of the changes, after delays of unknown means; the rate of bursts and the
probabilities to enter and to stay in one are unknown. :func:`impute` draws changes, rates and
distributions in turn (Gibbs sampling by data augmentation, Tanner and Wong 1987): given changes and
phases, rates and the factor have Gamma, probabilities Beta and shares Dirichlet distributions;
means and shapes are drawn by Metropolis steps. Several draws differ as much as the log leaves open.

The prior of bursts matters where crawls are rare and signals few. The probability to enter one has
a Beta distribution of mean 1/4 with most mass near 0; that to stay in one has most mass near 0 and
1. The rate in bursts has a Gamma distribution whose median is ten changes in the median time
between crawls, and 95% of whose mass is from .02 to 110. Where bursts cannot be told, numbers of
changes are too high (by 1.6 standard deviations in logs without signals, 80% of whose crawls find a
change); the times of first changes, on which freshness depends, are not.

Where bursts are much shorter than the times between crawls, the chain moves slowly: the share of
signalled changes and the rate in bursts are known together only. With draws 25 passes apart, 15 of
20 intervals of saved crawls contained the truth; 100 apart, 18 did.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import real, whole, whole_per_page
from policies.live.logs.change_paths import Drawn, Gaps, Law, draw_changes
from policies.live.logs.crawl_log import CrawlLog, crawls_before
from policies.live.logs.signal_delays import Periods, SignalDelays

FIRST_PASSES, PASSES = 300, 100
"""Number of passes of the sampler before the first draw, and before each further draw."""
STEPS = 10
"""Number of Metropolis steps per pass for each distribution of rates."""
SPREAD_OF_MEANS, SPREAD_OF_SHAPES = 2.0, 1.5
"""Prior standard deviations of the logarithms of a group's mean and shape."""
LEAST_RATE, SHORTEST = 1e-200, 1e-12
PERIODS, PERIOD_SHAPE = 8, 2.0
"""Number of parts of a log with separate rate factors, and the shape of the factors' Gamma
prior of mean 1."""
BURST_PRIOR = np.array([[0.5, 1.5], [0.5, 0.5], [0.5, 0.5]])
"""Beta priors of a burst's chance: after a single change, after one in a burst, at the start."""
BURST_SHAPE, BURST_DAYS = 0.5, 0.0227
"""Gamma prior of the change rate in bursts: shape, and rate in median times between crawls."""
LEAST_CHANCE = 1e-12
BEFORE = 1e-12
"""Time by which a signal at a crawl is moved before it, relative to 1 + the log's time in days."""


class Changes(NamedTuple):
    """Changes of all pages, sorted by time: page (n,) int64, and time in days, (n,) float64."""

    page: IntArray
    time: FloatArray


def impute(
    log: CrawlLog,
    rng: np.random.Generator,
    *,
    end: float,
    group: ArrayLike | None = None,
    first: int = FIRST_PASSES,
    passes: int = PASSES,
) -> Iterator[Changes]:
    """Yield draws of the changes of all pages from their first crawl to ``end``, given the log.

    Args:
        log: crawls and signals.
        rng: source of randomness.
        end: last day, not before the last crawl.
        group: group of each page, (m,), integers from 0; None for one group.
        first: passes before the first draw, which forget the start; >= 0.
        passes: passes up to each draw, >= 1, which make draws nearly independent.

    Raises:
        ValueError: ``end`` is before the last crawl, a number of passes is out of its range, or
            ``group`` is not of m integers >= 0.
    """
    if real("end", end) < log.time.max(initial=0.0):
        raise ValueError(f"end must be at least {log.time.max()}, the last crawl, got {end!r}")
    m = log.num_pages
    number = np.zeros(m, np.int64) if group is None else whole_per_page("group", group, m)
    chain = _Chain(log, end, number, rng)
    skipped, between = whole("first", first, 0), whole("passes", passes, 1)
    for _ in range(skipped):
        chain.advance()
    while True:
        for _ in range(between):
            drawn = chain.advance()
        order = np.lexsort((drawn.page, drawn.time))
        yield Changes(drawn.page[order], drawn.time[order])


class _Chain:
    """A Gibbs sampler: draws changes, rates and the distributions of rates in turn."""

    def __init__(
        self, log: CrawlLog, end: float, group: IntArray, rng: np.random.Generator
    ) -> None:
        gaps, signals = _gaps(log, end)
        self.gaps, self.group, self.rng = gaps, group, rng
        self.page = np.repeat(np.arange(group.size), np.diff(gaps.first))
        self.signal_page = log.signal_page[signals]
        late = (log.timed[gaps.source] & (log.signal_span[signals] == 0.0)).astype(np.bool_)
        self.delays = SignalDelays(gaps, log.signal_time[signals], late, len(log.sources), rng)
        m, count, sources = group.size, int(group.max(initial=0)) + 1, len(log.sources)
        self.days = np.bincount(self.page, gaps.length, m)
        total = max(float(self.days.sum()), SHORTEST)
        signals = np.bincount(gaps.source, minlength=sources)[:sources]
        typical = [(np.count_nonzero(gaps.changed) + 0.5) / total, *(signals + 0.5) / total]
        self.priors = [_Prior(rate, count) for rate in typical]
        self.rates = np.repeat(np.array(typical)[:, None], m, axis=1)
        self.shares = np.full((1 + sources, count), 1.0 / (1 + sources))
        lengths = gaps.length[gaps.length > 0.0]
        self.burst_days = BURST_DAYS * float(np.median(lengths) if lengths.size else 1.0)
        self.burst_rate = np.full(count, BURST_SHAPE / self.burst_days)
        self.chances = np.tile(BURST_PRIOR[:, :1] / BURST_PRIOR.sum(axis=1)[:, None], count)
        edges = np.linspace(float(gaps.start.min(initial=end)), end, PERIODS + 1)
        self.periods = Periods(edges, np.ones(PERIODS))

    def advance(self) -> Drawn:
        """Draw changes, rates and signal delays, each given the rest; return the changes."""
        drawn = self.path()
        self._draw_factor(drawn)
        self._draw_bursts(drawn)
        self._draw_rates(drawn)
        self.delays.draw(drawn, self.change_rates, self.periods)
        return drawn

    @property
    def change_rates(self) -> FloatArray:
        """Change rates of pages by phase, (m, 2)."""
        return np.stack([self.rates[0], self.burst_rate[self.group]], axis=1)

    def path(self) -> Drawn:
        """Draw all changes, sorted by page and time, and all phases, given rates and delays."""
        law = Law(
            self.group,
            self.change_rates,
            np.ascontiguousarray(self.chances.T),
            np.ascontiguousarray(self.shares.T),
            np.ascontiguousarray(self.rates[1:].T),
        )
        drawn = draw_changes(self._gaps_by_clock(), law, self.rng)
        # Changes are drawn backward: of two at one time the later one comes first.
        order = np.lexsort((-np.arange(drawn.time.size), drawn.time, drawn.page))
        true = np.zeros(self.gaps.source.size, np.bool_)
        true[self.delays.order] = drawn.true
        return drawn._replace(
            true=true,
            page=drawn.page[order],
            time=self.periods.days(drawn.time[order]),
            phase=drawn.phase[order],
            signal=drawn.signal[order],
        )

    def _gaps_by_clock(self) -> Gaps:
        """Return the gaps in time scaled by the periods' factors, with signals at their changes."""
        gaps = self.delays.shifted()
        gap = np.repeat(np.arange(gaps.start.size), np.diff(gaps.signal))
        time = gaps.start[gap] + gaps.signal_at
        start, until, moments = (
            self.periods.clock(days) for days in (gaps.start, gaps.start + gaps.length, time)
        )
        pace = self.periods.factor_at(time)
        return gaps._replace(
            start=start, length=until - start, signal_at=moments - start[gap], pace=pace
        )

    def exposure(self, drawn: Drawn) -> FloatArray:
        """Return the expected number of changes in each period, given the phases, (PERIODS,)."""
        first, gaps = self.gaps.first, self.gaps
        alive = np.flatnonzero(np.diff(first))
        last = first[alive + 1] - 1
        places = np.searchsorted(drawn.page, alive)
        page = np.insert(drawn.page, places, alive)
        begin = np.insert(drawn.time, places, gaps.start[first[alive]])
        phase = np.insert(drawn.phase, places, drawn.moves[alive, 2, 1])
        until = np.append(begin[1:], 0.0)
        until[np.append(page[1:] != page[:-1], True)] = gaps.start[last] + gaps.length[last]
        rate = self.change_rates[page, phase]
        spent = [(rate * np.clip(until, a, b)).sum() - (rate * np.clip(begin, a, b)).sum()
                 for a, b in pairwise(self.periods.edges)]  # fmt: skip
        return np.array(spent)

    def _draw_factor(self, drawn: Drawn) -> None:
        """Draw the rate factor of each period, given the changes, and scale factors to mean 1."""
        count = np.histogram(drawn.time, self.periods.edges)[0]
        factor = self.rng.gamma(PERIOD_SHAPE + count) / (PERIOD_SHAPE + self.exposure(drawn))
        factor = np.maximum(factor / factor.mean(), LEAST_CHANCE)
        self.periods = self.periods._replace(factor=factor)

    def _draw_bursts(self, drawn: Drawn) -> None:
        """Draw the probabilities of bursts and the change rate in bursts for each group."""
        count = self.burst_rate.size
        for kind, prior in enumerate(BURST_PRIOR):
            counts = [np.bincount(self.group, drawn.moves[:, kind, k], count) for k in (1, 0)]
            self.chances[kind] = self.rng.beta(prior[0] + counts[0], prior[1] + counts[1])
        np.clip(self.chances, LEAST_CHANCE, 1.0 - LEAST_CHANCE, out=self.chances)
        number = np.bincount(self.group, drawn.moves[:, 1].sum(axis=1), count)
        days = np.bincount(self.group, drawn.days[:, 1], count)
        rate = self.rng.gamma(BURST_SHAPE + number, 1.0 / (self.burst_days + days))
        self.burst_rate = np.maximum(rate, LEAST_RATE)

    def _draw_rates(self, drawn: Drawn) -> None:
        """Draw the pages' rates, the shares of signalled changes, and the rates' distributions."""
        m, source, true = self.group.size, self.gaps.source, drawn.true
        sources, groups = len(self.shares) - 1, self.shares.shape[1]
        page = self.signal_page
        events, false = [np.bincount(drawn.page, minlength=m)], []
        for number in range(sources):
            of_source = source == number
            events.append(np.bincount(page[of_source & true], minlength=m))
            false.append(np.bincount(page[of_source & ~true], minlength=m))
        events[0] -= sum(events[1:])
        by_group = [np.bincount(self.group, count, groups) for count in events]
        share = self.rng.gamma(1.0 + np.array(by_group))
        self.shares = share / share.sum(axis=0)
        counts = [drawn.moves[:, 0].sum(axis=1), *false]
        days = [drawn.days[:, 0], *[self.days] * sources]
        for prior, rate, count, spent in zip(self.priors, self.rates, counts, days, strict=True):
            shape, mean = prior.shape[self.group], prior.mean[self.group]
            rate[:] = self.rng.gamma(shape + count, 1.0 / (shape / mean + spent))
            np.maximum(rate, LEAST_RATE, out=rate)
            prior.learn(rate, self.group, self.rng)


class _Prior:
    """The Gamma distributions of a rate in G groups, given by their mean and shape, (G,) each."""

    def __init__(self, typical: float, num_groups: int) -> None:
        self.typical = typical
        self.mean, self.shape = np.full(num_groups, typical), np.ones(num_groups)

    def learn(self, rate: FloatArray, group: IntArray, rng: np.random.Generator) -> None:
        """Draw each group's mean and shape, given the rates of its pages, (m,)."""
        count = self.mean.size
        pages = np.bincount(group, minlength=count)
        total = np.bincount(group, rate, count).astype(np.float64)
        logs = np.bincount(group, np.log(rate), count).astype(np.float64)

        def log_density(mean: FloatArray, shape: FloatArray) -> FloatArray:
            """Return the log density of (ln mean, ln shape), up to a constant."""
            of_pages = pages * (shape * np.log(shape / mean) - gammaln(shape))
            of_pages += (shape - 1.0) * logs - shape * total / mean
            unlikely = (np.log(mean / self.typical) / SPREAD_OF_MEANS) ** 2
            unlikely += (np.log(shape) / SPREAD_OF_SHAPES) ** 2
            density: FloatArray = of_pages - 0.5 * unlikely
            return density

        here = log_density(self.mean, self.shape)
        for _ in range(STEPS):
            mean = self.mean * np.exp(rng.normal(size=count) * 2.0 / np.sqrt(pages + 1.0))
            shape = self.shape * np.exp(rng.normal(size=count) * 2.0 / np.sqrt(pages + 1.0))
            there = log_density(mean, shape)
            better = np.log(rng.random(count)) < there - here
            self.mean, self.shape = np.where(better, (mean, shape), (self.mean, self.shape))
            here = np.where(better, there, here)


def _gaps(log: CrawlLog, end: float) -> tuple[Gaps, IntArray]:
    """Return the times between crawls, and after the last one of each page that still exists.

    Also returns the signals of the log in the order of the gaps.
    """
    order = log.sorted_crawls()
    page, time, gone = log.page[order], log.time[order], log.gone[order]
    last = np.append(page[1:] != page[:-1], True)
    until = np.where(last, end, np.append(time[1:], end))
    until[gone] = time[gone]
    before = crawls_before(log.signal_page, log.signal_time, page, time)
    inside = (before >= 0) & (log.signal_time <= end)
    inside[inside] &= ~gone[before[inside]]
    signals = np.flatnonzero(inside)
    signals = signals[np.lexsort((log.signal_time[signals], before[signals]))]
    gap = before[signals]
    # A signal at a crawl comes before it, also after rounding.
    moments = np.minimum(log.signal_time[signals], until[gap] - BEFORE * (1.0 + until[gap]))
    gaps = Gaps(
        first=np.searchsorted(page, np.arange(log.num_pages + 1)),
        start=time,
        length=until - time,
        has_evidence=~last & ~np.append(gone[1:], True),
        changed=np.append(log.changed[order][1:], False) & ~last,
        signal=np.searchsorted(gap, np.arange(page.size + 1)),
        signal_at=np.maximum(moments - time[gap], 0.0),
        source=log.signal_source[signals],
        pace=np.ones(gap.size),
    )
    return gaps, signals
