"""One learner: what it believes of a set of pages, and the table of crawl values that follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import lambertw

from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray
from crawl_envs.types.compiled_policies import CompiledIndex
from crawl_envs.types.compiling import ready
from policies.ncis.priors import Beliefs
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables

SCORED = 5.0
"""Memories are compared over the last so many crawls per page, exponentially weighted."""

LAG = 16
"""Values are brought up to date once per m / LAG crawls: nobody asks for that of a page just
crawled, and to do many together is much faster."""

FAINT = 1e-9
"""Below this b two sources are not told from one."""


class OneSource(NamedTuple):
    """Pages whose signals come from one source, or are taken to; shapes (n,) but for ``worth``.

    ``worth`` is what a signal of each source counts, in signals of the one source, (S, n).
    """

    change_rate: FloatArray
    recall: FloatArray
    false_signal_rate: FloatArray
    worth: FloatArray


def one_source(alpha: FloatArray, evidence: FloatArray, signal_rate: FloatArray) -> OneSource:
    """Put one source in the place of several.

    It has the same rate of true signals, sum gamma_s (1 - e^-b_s), and of evidence,
    sum gamma_s b_s; so the change rate is the same, and the mean pace at which a page's probability
    of being fresh falls. For a single source that is the source itself.

    Args:
        alpha: rate of changes without signal, > 0, (n,).
        evidence: b_s = ln(gamma_s / nu_s), > 0, (S, n).
        signal_rate: gamma_s, > 0, (S, n).
    """
    true = (signal_rate * -np.expm1(-evidence)).sum(axis=0)
    if len(evidence) == 1:
        jump, rate = evidence[0], signal_rate[0]
    else:
        pace = (signal_rate * evidence).sum(axis=0)
        slope = pace / true  # b / (1 - e^-b) of the one source
        exact = slope + lambertw(-slope * np.exp(-slope)).real
        jump = np.where(slope < 1.0 + FAINT, evidence.max(axis=0), exact)
        rate = pace / jump
    change_rate = alpha + true
    return OneSource(change_rate, true / change_rate, rate * np.exp(-jump), evidence / jump)


class Learner:
    """Learns of a set of pages from the log of its crawls, and keeps their crawl values.

    Args:
        importance: of the pages, (m,).
        num_sources: of signals, S.
        interval: a guess of the mean time between two crawls of a page, > 0.
        group: the group of each page, (m,) int64.
        memories: for each memory, crawls of a page until what was seen fades to 1 / e; the one
            that has predicted best of late is believed.
        pooled: whether pages borrow from each other.
    """

    def __init__(
        self,
        importance: FloatArray,
        num_sources: int,
        interval: float,
        group: IntArray,
        memories: Sequence[float],
        pooled: bool,
    ) -> None:
        self.importance, self.num_sources, self.interval = importance, num_sources, interval
        self.beliefs = [
            Beliefs(group, num_sources, interval, memory=memory, pooled=pooled)
            for memory in memories
        ]
        self.scores: FloatArray = np.zeros(len(memories))
        self.best = 0
        self.seen: BoolArray = np.zeros(importance.size, np.bool_)
        self.crawls = 0
        self._due = max(1, importance.size // 4)
        self._lagging: list[int] = []
        self.worth: FloatArray = np.ones((num_sources, importance.size))
        self.index = CompiledIndex(ready(value_kernels.greedy_ncis_value), self._rows(slice(None)))

    def learn(self, log: CrawlLog) -> None:
        """Take in the crawls of a log, and bring the pages' values up to date."""
        signals = np.atleast_2d(log.signals).astype(np.float64)
        for k, page in enumerate(log.page.tolist()):
            heard = np.ascontiguousarray(signals[:, k])
            found = float(log.elapsed[k]), heard, bool(log.changed[k])
            told = [belief.learn(page, *found) for belief in self.beliefs]
            self.scores *= 1.0 - 1.0 / (SCORED * self.seen.size)
            self.scores += told
            self.seen[page] = True
            self._lagging.append(page)
        self.crawls += log.page.size
        if self.crawls >= self._due:
            self._renew()
        elif len(self._lagging) * LAG >= self.seen.size:
            pages = np.unique(self._lagging)
            self._lagging.clear()
            self.index.parameters[pages] = self._rows(pages)

    def weigh(self, importance: FloatArray) -> None:
        """Take on another importance of the same pages, (m,)."""
        if not np.array_equal(importance, self.importance):
            self.importance = importance
            self.index.parameters[:] = self._rows(slice(None))

    def counted(self, signals: IntArray) -> FloatArray:
        """What signals count, (m,) or (S, m), in signals of the one source; shape (m,)."""
        return np.asarray((self.worth * np.atleast_2d(signals)).sum(axis=0))

    def _renew(self) -> None:
        """Renew what pages share and the choice of memory; then all values."""
        self._due = self.crawls + int(self.seen.sum())
        self._lagging.clear()
        for belief in self.beliefs:
            belief.pool(self.seen)
        self.best = int(np.argmax(self.scores))
        self.index.parameters[:] = self._rows(slice(None))

    def _rows(self, pages: IntArray | slice) -> FloatArray:
        """The rows of the table of values for pages; what signals are worth is noted."""
        typical = self.beliefs[self.best].typical(pages).T
        s = self.num_sources
        page = one_source(typical[0], typical[1 : 1 + s], typical[1 + s :])
        self.worth[:, pages] = page.worth
        return value_tables.greedy_ncis_table(
            self.importance[pages], page.change_rate, page.recall, page.false_signal_rate
        )
