"""A learner of the change models of a set of pages, and of the table of their crawl values."""

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

SCORE_MEMORY = 5.0
"""Number of crawls per page, exponentially weighted, over which candidate memories are compared."""

UPDATES_PER_ROUND = 16
"""Number of updates of values per m crawls: the value of a page just crawled is not needed yet, and
updating many together is much faster."""

LEAST_EVIDENCE = 1e-9
"""Below this b, several sources are treated as one."""


class OneSource(NamedTuple):
    """Parameters of pages with one source in place of several; shapes (n,).

    ``signal_weight`` (S, n): the weight of a signal of each source, in signals of the one source.
    """

    change_rate: FloatArray
    recall: FloatArray
    false_signal_rate: FloatArray
    signal_weight: FloatArray


def one_source(alpha: FloatArray, evidence: FloatArray, signal_rate: FloatArray) -> OneSource:
    """Return the parameters of one source in place of several.

    It has the same rate of true signals, sum gamma_s (1 - e^-b_s), and of evidence,
    sum gamma_s b_s; so the change rate is the same, and the mean rate at which the log probability
    of being fresh decreases. A single source stays the same.

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
        jump = np.where(slope < 1.0 + LEAST_EVIDENCE, evidence.max(axis=0), exact)
        rate = pace / jump
    change_rate = alpha + true
    return OneSource(change_rate, true / change_rate, rate * np.exp(-jump), evidence / jump)


class Learner:
    """Learns the change models of pages from logs of crawls, and maintains their crawl values.

    Args:
        importance: importance of the pages, (m,).
        num_sources: number of sources of signals, S.
        interval: estimate of the mean time between two crawls of a page, > 0.
        group: the group of each page, (m,) int64.
        memories: memories of several beliefs, in crawls of a page until data decay to 1 / e; the
            belief with the best recent predictions is used.
        pooled: whether pages share distributions that are learned.
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
        self.signal_weight: FloatArray = np.ones((num_sources, importance.size))
        self.index = CompiledIndex(ready(value_kernels.greedy_ncis_value), self._rows(slice(None)))

    def learn(self, log: CrawlLog) -> None:
        """Update beliefs on the crawls of a log, and the pages' values."""
        signals = np.atleast_2d(log.signals).astype(np.float64)
        for k, page in enumerate(log.page.tolist()):
            counts = np.ascontiguousarray(signals[:, k])
            outcome = float(log.elapsed[k]), counts, bool(log.changed[k])
            log_probabilities = [belief.learn(page, *outcome) for belief in self.beliefs]
            self.scores *= 1.0 - 1.0 / (SCORE_MEMORY * self.seen.size)
            self.scores += log_probabilities
            self.seen[page] = True
            self._lagging.append(page)
        self.crawls += log.page.size
        if self.crawls >= self._due:
            self._renew()
        elif len(self._lagging) * UPDATES_PER_ROUND >= self.seen.size:
            pages = np.unique(self._lagging)
            self._lagging.clear()
            self.index.parameters[pages] = self._rows(pages)

    def weigh(self, importance: FloatArray) -> None:
        """Set another importance of the same pages, (m,)."""
        if not np.array_equal(importance, self.importance):
            self.importance = importance
            self.index.parameters[:] = self._rows(slice(None))

    def counted(self, signals: IntArray) -> FloatArray:
        """Return the total weight of signals, (m,), by their numbers, (m,) or (S, m)."""
        return np.asarray((self.signal_weight * np.atleast_2d(signals)).sum(axis=0))

    def _renew(self) -> None:
        """Update the shared distributions, the choice of memory, and all values."""
        self._due = self.crawls + int(self.seen.sum())
        self._lagging.clear()
        for belief in self.beliefs:
            belief.pool(self.seen)
        self.best = int(np.argmax(self.scores))
        self.index.parameters[:] = self._rows(slice(None))

    def _rows(self, pages: IntArray | slice) -> FloatArray:
        """Return the rows of the table of values for pages; updates their signal weights."""
        typical = self.beliefs[self.best].typical(pages).T
        s = self.num_sources
        page = one_source(typical[0], typical[1 : 1 + s], typical[1 + s :])
        self.signal_weight[:, pages] = page.signal_weight
        return value_tables.greedy_ncis_table(
            self.importance[pages], page.change_rate, page.recall, page.false_signal_rate
        )
