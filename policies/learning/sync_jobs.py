"""Crawls and probes of pages as jobs with due times, and what they tell of the cost's slope."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray


class SyncJobs:
    r"""Plans a crawl of each page every 1/r, and with probability eps a probe in between.

    Of a page crawled every 1/r that costs c(a) at age a, the mean cost is J = r int_0^{1/r} c, and
    dJ/dr = (E c(U/r) - c(1/r)) / r with U uniform on (0, 1). A gap between two crawls that held a
    probe gives the sample (c(probe) - c(crawl)) / (eps r), one without gives 0: unbiased (Kolobov,
    Bubeck and Zimmert, ICML 2020).

    One slot serves one job, that which is due first, even before it is due. Lateness therefore does
    not pile up, and times are off by the few slots that jobs wait for each other; in place of 1/r
    stands the true length of the gap. A gap is planned when it begins, with the rate that holds
    then; those at the start of an episode, which all begin at once, give no sample.

    Args:
        rates: r of each page, > 0, (m,).
        probing: eps, in (0, 1].
        now: the time; all pages count as crawled then.
        coins: for the probes.
    """

    def __init__(
        self, rates: FloatArray, probing: float, now: float, coins: np.random.Generator
    ) -> None:
        m = rates.size
        self.rates, self.probing, self.coins = rates, probing, coins
        self._due: FloatArray = np.empty(m)
        self._next: FloatArray = np.empty(m)  # the sooner of the crawl and the probe
        self._probed: FloatArray = np.full(m, np.nan)  # what the probe of this gap cost
        self._opening: BoolArray = np.ones(m, np.bool_)
        self.total: FloatArray = np.zeros(m)
        self.gaps: IntArray = np.zeros(m, np.int64)
        for page in range(m):
            self._plan(page, now)

    def serve(self) -> tuple[int, bool]:
        """The page whose job is due first, and whether that is a probe."""
        page = int(self._next.argmin())
        return page, bool(self._next[page] < self._due[page])

    def probed(self, page: int, cost: float) -> None:
        """Note what a probe found."""
        self._probed[page] = cost
        self._next[page] = self._due[page]

    def crawled(self, page: int, now: float, elapsed: float, cost: float) -> None:
        """Note what a crawl found ``elapsed`` after the one before, and plan the next gap."""
        if self._opening[page]:
            self._opening[page] = False
        else:
            probe = self._probed[page]
            self.gaps[page] += 1
            if not np.isnan(probe):
                self.total[page] += (probe - cost) * elapsed / self.probing
        self._plan(page, now)

    def slopes(self) -> tuple[IntArray, FloatArray]:
        """The pages with samples since the last call, and the means of these; forgets them."""
        pages = np.flatnonzero(self.gaps)
        means = self.total[pages] / self.gaps[pages]
        self.total[:] = 0.0
        self.gaps[:] = 0
        return pages, np.asarray(means)

    def _plan(self, page: int, now: float) -> None:
        gap = 1.0 / self.rates[page]
        self._due[page] = self._next[page] = now + gap
        self._probed[page] = np.nan
        toss, where = self.coins.random(2)
        if toss < self.probing:
            self._next[page] = now + where * gap
