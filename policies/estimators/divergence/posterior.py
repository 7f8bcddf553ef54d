"""Posterior of the divergence curves of pages, learned from crawls and pooled over pages."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.estimators.divergence import posterior_kernels as kernels
from policies.estimators.divergence.profiles import OBSERVATION_BYTES, Footprint
from policies.estimators.divergence.shapes import ShapeTables, dynamic_shares, shape_tables, shapes
from policies.estimators.histories import CrawlHistories

NUM_RATES, MIDDLE_RATE = 17, 8
"""Rates L: powers of two times one update per ``interval``, which is the middle one."""
AGES_PER_OCTAVE, FIRST_AGE, NUM_AGES = 2, -6, 32
"""Grid of ages of the utilities: points per factor of two, log2 of the first age in intervals, and
number of points."""
STATIC, SINGLE, SHARE_POWER = 0.2, 0.5, 0.75
"""The initial prior: share of static pages, share of a single dynamic region among the others, and
exponent of the weight of dynamic shares A."""
BASE, FIRST_PAGES = 0.1, 10.0
"""Share of the prior that stays fixed, and the weight of the initial prior in pages."""
RENEWAL = 8
"""The prior is updated after this many page posteriors."""
OLDER = 0.3
"""Exponent of the likelihood of comparisons with earlier copies than the last: they overlap."""

RECALLS = (0.0, 0.1, 0.3, 0.6, 0.9, 0.99)
"""Grid of recalls."""
FALSE_RATES = (0.003, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Grid of false-signal rates, per interval."""
QUALITY_STRIDE = 2
"""Stride in the grid of update rates."""
QUALITY_BASE, QUALITY_FIRST_PAGES = 0.02, 5.0
"""``BASE`` and ``FIRST_PAGES`` of the prior of qualities."""


class QualityPosterior:
    """Posterior of the recall and the false-signal rate of pages, which share a prior.

    The likelihood of a page's crawls is computed for every pair of a recall and a false-signal
    rate, averaged over update rates. The prior over pairs is the average of the posteriors of pages
    (empirical Bayes).

    Args:
        interval: the scale of time, > 0.
        rates: grid of update rates, > 0, rising, (l,).
    """

    def __init__(self, interval: float, rates: FloatArray) -> None:
        recalls, false = np.meshgrid(RECALLS, np.array(FALSE_RATES) / interval, indexing="ij")
        self.recalls: FloatArray = recalls.reshape(-1)
        self.false_rates: FloatArray = false.reshape(-1)
        self.rates: FloatArray = np.append(0.0, rates[::QUALITY_STRIDE])
        self.log_rates: FloatArray = np.full(self.rates.size, -math.log(self.rates.size))
        size = self.recalls.size
        self.first: FloatArray = np.full(size, 1.0 / size)
        self.pooled: FloatArray = self.first.copy()
        self._weights: FloatArray = np.zeros(size)
        self._estimates = 0

    def weigh_rates(self, weights: FloatArray, static: float) -> None:
        """Set the weights of update rates, (l,), and of static pages, for averages over rates."""
        sums = np.add.reduceat(weights, np.arange(0, weights.size, QUALITY_STRIDE))
        self.log_rates = np.log(np.append(static, sums))

    def estimate(self, crawls: kernels.PageCrawls, num_pages: int) -> tuple[float, float]:
        """Return the mean recall and mean false-signal rate of a page, given its crawls.

        The page's posterior is added to the prior that pages share.
        """
        log_prior = np.log((1.0 - QUALITY_BASE) * self.pooled + QUALITY_BASE * self.first)
        grid = self.rates, self.log_rates, self.recalls, self.false_rates
        kernels.weigh_quality(self._weights, log_prior, *grid, crawls)
        self._estimates += 1
        step = 1.0 / (min(self._estimates, num_pages) + QUALITY_FIRST_PAGES)
        self.pooled += step * (self._weights - self.pooled)
        return self._means(self._weights)

    def typical(self) -> tuple[float, float]:
        """Return the recall and the false-signal rate to assume for a page without any crawl."""
        return self._means(self.pooled)

    def _means(self, weights: FloatArray) -> tuple[float, float]:
        """Return the mean recall and geometric mean false-signal rate for weights of pairs."""
        recall = float(weights @ self.recalls)
        return recall, math.exp(float(weights @ np.log(self.false_rates)))


class DivergencePosterior:
    """The posterior of the divergence curves of m pages.

    Every page is static, or has an update rate, a dynamic share and a shape
    (:mod:`policies.estimators.divergence.shapes`). The last crawls of each page are stored; its
    posterior is recomputed from them when it is crawled or signalled, and only the resulting
    utility curve is stored (Olston and Pandey 2008, eq. 4, averaged over the posterior). The prior
    is a running average of the posteriors of pages; every crawl adds the posterior of one page
    (empirical Bayes).

    Args:
        num_pages: m.
        interval: the scale of time, > 0: rates range from 2^-8 to 2^8 per interval.
        copies: H >= 0, number of earlier copies that a crawl is compared with.
        memory: W >= 1, number of stored crawls of each page.

    Attributes:
        recall: recall of the signals of each page, 0 if they are ignored, (m,).
        false_rate: rate of the false signals of each page, (m,).
        quality: estimator of the two above from the first signal on; None if they are fixed.
        ages: grid of ages of the utilities, (T,).
        curves: the utility of a crawl at these ages with the present signals, (m, T) float32.
    """

    def __init__(self, num_pages: int, interval: float, *, copies: int, memory: int) -> None:
        self.tables: ShapeTables = shape_tables()
        self.rates: FloatArray = np.exp2(np.arange(NUM_RATES) - MIDDLE_RATE) / interval
        steps = np.arange(NUM_AGES) / AGES_PER_OCTAVE + FIRST_AGE
        self.ages: FloatArray = np.exp2(steps) * interval
        of_crawl = {"elapsed": np.float32, "signals": np.int16, "changed": np.bool_}
        of_copies = {"age": (np.float32, (copies,)), "lost_bin": (np.int8, (copies,))}
        self.histories = CrawlHistories(num_pages, memory, **of_crawl, **of_copies)
        self.recall: FloatArray = np.zeros(num_pages)
        self.false_rate: FloatArray = np.zeros(num_pages)
        self.quality: QualityPosterior | None = QualityPosterior(interval, self.rates)
        self.first: FloatArray = first_prior()
        self.pooled: FloatArray = self.first.copy()
        self.log_prior: FloatArray = np.log(self.first)
        self.curves = np.zeros((num_pages, NUM_AGES), np.float32)
        self._stale: BoolArray = np.ones(num_pages, np.bool_)
        self._signals: IntArray = np.zeros(num_pages, np.int64)
        self._signalled = False
        self._turn, self._visits = 0, 0
        self._weights: FloatArray = np.zeros(self.first.size)
        self._curve: FloatArray = np.zeros(NUM_AGES)

    def set_quality(self, recall: ArrayLike, false_rate: ArrayLike) -> None:
        """Set recall and false-signal rate of pages, (m,) each; they are not learned any more."""
        self.quality = None
        self.recall[:], self.false_rate[:] = recall, false_rate
        self._stale[:] = True

    def learn(
        self,
        page: int,
        elapsed: float,
        signals: int,
        changed: bool,
        divergence: FloatArray,
        age: FloatArray,
    ) -> None:
        """Add a crawl to a page's history; update its signal quality and the shared prior.

        Args:
            page: the page.
            elapsed: time since its last crawl.
            signals: number of signals in that time.
            changed: whether the page was updated in that time.
            divergence: divergence of the new copy from each of the H copies before, latest first,
                NaN if there is none, (H,).
            age: age of these copies, (H,).
        """
        past = self.histories
        past.append(
            np.array([page]),
            elapsed=elapsed,
            signals=min(signals, np.iinfo(np.int16).max),
            changed=changed,
            age=np.where(divergence > 0.0, age, 0.0),
            lost_bin=[kernels.bin_of(lost) for lost in divergence],
        )
        self._signals[page], self._stale[page] = 0, True
        self._signalled |= signals > 0
        if self.quality is not None and self._signalled:
            results = self.quality.estimate(self._crawls(page), past.count.size)
            self.recall[page], self.false_rate[page] = results
        self._pool()

    def set_signals(self, signals: IntArray) -> None:
        """Set each page's number of signals since its last crawl, (m,)."""
        new = signals != self._signals
        if not new.any():
            return
        if self.quality is not None and not self._signalled:
            unknown = self.histories.count == 0
            self.recall[unknown], self.false_rate[unknown] = self.quality.typical()
            self._stale[unknown] = True
        self._signalled = True
        self._signals[new] = signals[new]
        self._stale[new] = True

    def posterior(self, page: int) -> FloatArray:
        """Return the posterior weights of rates, shares and shapes for a page, with sum 1.

        The last weight belongs to a static page. The array is overwritten by the next call.
        """
        tables = self.log_prior, self.tables.log_lost, self.rates
        quality = self.recall[page], self.false_rate[page]
        kernels.weigh(self._weights, *tables, self._crawls(page), *quality, OLDER)
        return self._weights

    def _crawls(self, page: int) -> kernels.PageCrawls:
        columns = self.histories.of_page(page, *kernels.PageCrawls._fields)
        return kernels.PageCrawls(*columns)

    def renew(self) -> None:
        """Compute the utility curves of pages crawled or signalled since the last call."""
        blank: dict[tuple[float, float], FloatArray] = {}
        for page in np.flatnonzero(self._stale):
            kind = self.recall[page], self.false_rate[page]
            untouched = self.histories.count[page] == 0 and self._signals[page] == 0
            if untouched and kind in blank:
                self.curves[page] = blank[kind]
                continue
            self._write_curve(int(page))
            if untouched:
                blank[kind] = self._curve.copy()
        self._stale[:] = False

    def _write_curve(self, page: int) -> None:
        tables, output = self.tables, (self._curve, self.posterior(page))
        grid, signals = (tables.amount, self.rates, self.ages), int(self._signals[page])
        if self.recall[page] == 0.0 and signals == 0:
            kernels.utility_without_signals(*output, tables.gain, *grid)
        else:
            quality = self.recall[page], self.false_rate[page]
            kernels.expected_utility(
                *output, tables.divergence, tables.missed, *grid, signals, *quality
            )
        self.curves[page] = self._curve

    def _pool(self) -> None:
        """Add the posterior of a crawled page, the first among the next 16, to the prior."""
        count = self.histories.count
        for _ in range(16):
            page, self._turn = self._turn, (self._turn + 1) % count.size
            if count[page] > 0:
                break
        else:
            return
        self._visits += 1
        step = 1.0 / (min(self._visits, count.size) + FIRST_PAGES)
        self.pooled += step * (self.posterior(page) - self.pooled)
        if self._visits % RENEWAL == 0:
            prior = (1.0 - BASE) * self.pooled + BASE * self.first
            self.log_prior = np.log(prior)
            if self.quality is not None:
                by_rate = prior[:-1].reshape(NUM_RATES, -1).sum(axis=1)
                self.quality.weigh_rates(by_rate, float(prior[-1]))

    def utility(self, elapsed: FloatArray) -> FloatArray:
        """Return the expected utility of a crawl now, (m,), >= 0.

        Beyond the largest of ``ages`` it is constant.

        Args:
            elapsed: time since the last crawl of each page, >= 0, (m,).
        """
        self.renew()
        place = np.interp(elapsed, self.ages, np.arange(NUM_AGES))
        low = np.minimum(place.astype(np.int64), NUM_AGES - 2)
        share, pages = place - low, np.arange(elapsed.size)
        below, above = self.curves[pages, low], self.curves[pages, low + 1]
        value = below + share * (above - below)
        return np.asarray(np.where(elapsed < self.ages[0], value * elapsed / self.ages[0], value))

    def footprint(self) -> Footprint:
        """Return the bytes of memory per page: stored, and counted by the rule of the paper."""
        past = self.histories
        arrays = self.recall, self.false_rate, self._signals, self._stale, self.curves
        stored = (past.nbytes + sum(array.nbytes for array in arrays)) / past.count.size
        copies = past.columns["age"].shape[2]
        counted = OBSERVATION_BYTES * past.num_rows.mean() * max(copies, 1)
        return Footprint(stored, float(counted))


def first_prior() -> FloatArray:
    """Return the initial prior weights of rates, shares and shapes, then of a static page."""
    single = shapes()[:, 0] == 0.0
    of_shape = np.where(single, SINGLE / single.sum(), (1.0 - SINGLE) / (~single).sum())
    of_share = dynamic_shares() ** SHARE_POWER
    of_share /= of_share.sum()
    grid = np.full((NUM_RATES, 1, 1), 1.0 / NUM_RATES) * of_share[:, None] * of_shape
    return np.append((1.0 - STATIC) * grid.reshape(-1), STATIC)
