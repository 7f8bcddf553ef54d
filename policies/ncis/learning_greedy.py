"""GREEDY-NCIS that learns change rates and the quality of signals while it crawls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw

from crawl_envs.compiled.compiling import ready
from crawl_envs.types import BoolArray, CrawlLog, FloatArray, IntArray, Tracker
from crawl_envs.types.arguments import whole_per_page
from crawl_envs.types.compiled_policies import CompiledIndex
from policies.base.policy import Pages, Policy
from policies.base.registry import registered
from policies.estimators.gamma_beliefs import Beliefs
from policies.values import kernels as value_kernels
from policies.values import tables as value_tables
from policies.values.ranking import best_pages

MEMORY = (math.inf, 30.0)
"""Crawls of a page until data decay to 1 / e: never, or fast enough for changing change rates."""
SCORE_MEMORY = 5.0
"""Number of crawls per page, exponentially weighted, over which candidate memories are compared."""

UPDATES_PER_ROUND = 16
"""Number of updates of values per m crawls: a page just crawled needs no value yet, and updates of
many pages together are much faster."""

MIN_EVIDENCE = 1e-9
"""Below this b, several sources are treated as one."""


@registered()
class LearningGreedyNCIS(Policy):
    """GREEDY-NCIS on learned parameters; only the importance of pages is known.

    No paper has this policy. For every page it has Gamma beliefs about the rate of unsignalled
    changes, the evidence of a signal by source, and the rates of signals
    (:mod:`policies.estimators.gamma_beliefs`), updated after every crawl of the page in constant
    time. The distributions that pages share, which serve as priors of new and rarely crawled pages,
    are updated every m crawls for m crawled pages. Values are those of :class:`policies.GreedyNCIS`
    at exp(E ln theta) of the beliefs: with few data the estimated change rate is low and the value
    after a long wait high, so that a page is crawled until data show that it changes too fast.
    There is no other exploration: a share of crawls by round robin cost more than it gained.

    Values are per unit of cost. Hidden costs are learned too: that of a page is the cost of its
    last crawl, 1 before the first.

    With several sources, signals have different weights; the value is that of one source with the
    same rates of true signals and of evidence (:func:`one_source`).

    It ignores revealed parameters. With observation columns it learns only from logs, through
    ``observe`` of :class:`policies.base.columns.FromColumns`.

    Every episode starts with no data unless ``keep`` is True. In the form ``refresh`` it crawls one
    page per decision.

    Args:
        memory: crawls of a page until data decay to 1 / e, > 1, inf for never; or several such
            numbers, to use the one with the best recent predictions of crawls.
        groups: the group of each page (a directory, a host), (m,) integers 0 .. G - 1: pages are
            shrunk towards their group, and groups towards all pages. None for one group.
        pooled: False for fixed prior distributions.
        keep: True continues with the beliefs of a lane's earlier episodes, for episodes of the
            same pages.

    Raises:
        ValueError: an argument out of its range; when an episode starts, groups of another number
            of pages.
    """

    learns = True
    needs = ("importance",)
    reads_columns = True
    uses_signals = True

    def __init__(
        self,
        *,
        memory: float | Sequence[float] = MEMORY,
        groups: ArrayLike | None = None,
        pooled: bool = True,
        keep: bool = False,
    ) -> None:
        self.memories = _memories(memory)
        self.groups = None if groups is None else whole_per_page("groups", groups, np.size(groups))
        self.pooled, self.keep = bool(pooled), bool(keep)
        self.learner: Learner | None = None

    def estimates(self) -> dict[str, FloatArray]:
        """Return the present estimates of the parameters of pages, by name.

        ``unsignalled_rate`` (alpha), (m,); ``evidence`` (b) and ``signal_rate`` (gamma), (S, m).
        """
        assert self.learner is not None
        names = "unsignalled_rate", "evidence", "signal_rate"
        return dict(zip(names, self.learner.typical(slice(None)), strict=True))

    def start(self, pages: Pages) -> None:
        """Begin without data, or with earlier beliefs, and learn from the first log."""
        tracker = pages.tracker()
        problem, learner = tracker.problem, self.learner if self.keep else None
        if problem.cost is not None or learner is None:
            self.cost = np.ones(problem.num_pages) if problem.cost is None else problem.cost.copy()
        importance = problem.importance / self.cost
        if learner is not None:
            learner.weigh(importance)
        else:
            interval = max(int(tracker.alive.sum()), 1) / (problem.bandwidth / self.cost.mean())
            if math.isnan(interval):  # from columns: a page has just been crawled in the last slot
                passed = tracker.elapsed[tracker.alive & (tracker.elapsed > 0.0)]
                slot = (passed.min() if passed.size else 1.0) / self.form.batch
                interval = int(tracker.alive.sum()) * slot
            self.learner = self._learner(importance, problem.num_sources, interval)
        self.update(pages.last_log(), tracker)

    def _learner(self, importance: FloatArray, num_sources: int, interval: float) -> Learner:
        num_pages = importance.size
        group = np.zeros(num_pages, np.int64) if self.groups is None else self.groups
        if group.size != num_pages:
            raise ValueError(f"groups must be of {num_pages} pages, got {group.size}")
        return Learner(importance, num_sources, interval, group, self.memories, self.pooled)

    def update(self, log: CrawlLog, tracker: Tracker) -> None:
        """Update beliefs, costs and crawl values by the crawls of a log."""
        assert self.learner is not None
        if log.cost is not None:
            self.cost[log.page] = log.cost
            self.learner.importance[log.page] = tracker.problem.importance[log.page] / log.cost
        self.learner.learn(log)

    def choose(self, tracker: Tracker) -> IntArray:
        """Return the pages with the largest crawl values at the present estimates."""
        assert self.learner is not None
        page_state = (tracker.elapsed, self.learner.counted(tracker.signals), tracker.alive)
        count = self.num_chosen(tracker)
        return best_pages(self.learner.index, page_state, self.form.action, count)


class OneSource(NamedTuple):
    """Parameters of pages with one source that stands for several; shapes (n,).

    ``signal_weight`` (S, n): how many signals of the one source a signal counts for, by source.
    """

    change_rate: FloatArray
    recall: FloatArray
    false_signal_rate: FloatArray
    signal_weight: FloatArray


def one_source(alpha: FloatArray, evidence: FloatArray, signal_rate: FloatArray) -> OneSource:
    """Return parameters of pages with one source that stands for several sources.

    The one source has the same rates of true signals, sum gamma_s (1 - e^-b_s), and of evidence,
    sum gamma_s b_s. So the change rate is the same, and so is the mean rate at which the log
    probability of being fresh decreases. A single source is unchanged.

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
        jump = np.where(slope < 1.0 + MIN_EVIDENCE, evidence.max(axis=0), exact)
        rate = pace / jump
    change_rate = alpha + true
    return OneSource(change_rate, true / change_rate, rate * np.exp(-jump), evidence / jump)


class Learner:
    """Learns the parameters of pages from logs of crawls, and updates their crawl values.

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
        self.crawled: BoolArray = np.zeros(importance.size, np.bool_)
        self.crawls = 0
        self._due = max(1, importance.size // 4)
        self._lagging: list[int] = []
        self.signal_weight: FloatArray = np.ones((num_sources, importance.size))
        self.index = CompiledIndex(ready(value_kernels.greedy_ncis_value), self._rows(slice(None)))

    def learn(self, log: CrawlLog) -> None:
        """Update the beliefs about pages by the crawls of a log, and crawl values now and then."""
        signals = np.atleast_2d(log.signals).astype(np.float64)
        for k, page in enumerate(log.page.tolist()):
            counts = np.ascontiguousarray(signals[:, k])
            outcome = float(log.elapsed[k]), counts, bool(log.changed[k])
            log_probabilities = [belief.learn(page, *outcome) for belief in self.beliefs]
            self.scores *= 1.0 - 1.0 / (SCORE_MEMORY * self.crawled.size)
            self.scores += log_probabilities
            self.crawled[page] = True
            self._lagging.append(page)
        self.crawls += log.page.size
        if self.crawls >= self._due:
            self._renew()
        elif len(self._lagging) * UPDATES_PER_ROUND >= self.crawled.size:
            pages = np.unique(self._lagging)
            self._lagging.clear()
            self.index.parameters[pages] = self._rows(pages)

    def weigh(self, importance: FloatArray) -> None:
        """Set new importance of the same pages, (m,), and update their values."""
        if not np.array_equal(importance, self.importance):
            self.importance = importance
            self.index.parameters[:] = self._rows(slice(None))

    def counted(self, signals: IntArray) -> FloatArray:
        """Return the weight of each page's signals, (m,); ``signals`` are numbers by source."""
        return np.asarray((self.signal_weight * np.atleast_2d(signals)).sum(axis=0))

    def typical(self, pages: IntArray | slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return estimates of alpha, (n,), evidence b and signal rate gamma, (S, n) each."""
        rows, s = self.beliefs[self.best].typical(pages).T, self.num_sources
        return rows[0], rows[1 : 1 + s], rows[1 + s :]

    def _renew(self) -> None:
        """Update the distributions that pages share, the choice of memory, and all crawl values."""
        self._due = self.crawls + int(self.crawled.sum())
        self._lagging.clear()
        for belief in self.beliefs:
            belief.pool(self.crawled)
        self.best = int(np.argmax(self.scores))
        self.index.parameters[:] = self._rows(slice(None))

    def _rows(self, pages: IntArray | slice) -> FloatArray:
        """Return the pages' rows of the table of values; update the weights of their signals."""
        page = one_source(*self.typical(pages))
        self.signal_weight[:, pages] = page.signal_weight
        return value_tables.greedy_ncis_table(
            self.importance[pages], page.change_rate, page.recall, page.false_signal_rate
        )


def _memories(memory: float | Sequence[float]) -> tuple[float, ...]:
    memories = tuple(float(number) for number in np.atleast_1d(memory))
    if not memories or not all(number > 1.0 for number in memories):
        raise ValueError(f"memory must be > 1 crawl, or several such numbers, got {memory!r}")
    return memories
