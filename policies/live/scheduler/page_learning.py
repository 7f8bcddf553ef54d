"""When a scheduler learns of its pages, forgets, and explores; beliefs are of :mod:`.learning`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from crawl_envs.compiled.compiling import ready
from crawl_envs.types import BoolArray, FloatArray, IntArray
from policies.live.scheduler.ids import first_of_each
from policies.live.scheduler.learning import BEST_CHANGES, MAX_AGE, PageLearner
from policies.live.scheduler.pages import PageTables
from policies.live.scheduler.signal_log import signals_until
from policies.live.scheduler.states import ABSENT, GONE, SENT

REWRITTEN = 500
"""Pages whose estimates follow new shared distributions with each report."""


class PageLearning:
    """Keeps the estimates of pages, if change rates and signal quality are learned.

    Args:
        pages: the tables of the pages, with the beliefs.
        learns: whether anything is learned; without it, calls change nothing.
    """

    def __init__(self, pages: PageTables, learns: bool) -> None:
        self.pages, self.learns = pages, learns

    @property
    def interval(self) -> float:
        """The mean time between two fetches of a page."""
        return len(self.pages.ids) / self.pages.pace.bandwidth

    def first(self, count: int) -> dict[str, FloatArray]:
        """Return what is assumed of the parameters of n new pages: nothing unless it is learned."""
        if not self.learns:
            return {}
        pages, interval = self.pages, (len(self.pages) + count) / self.pages.pace.bandwidth
        if pages.learner is None:
            room = pages.choices.status.size
            pages.learner = PageLearner(interval, room, pages.num_sources)
        pages.learner.rescale(interval)
        first = pages.learner.first()
        return {k: np.repeat(x[..., None], count, axis=-1) for k, x in first.items()}

    def begin(
        self,
        rows: IntArray,
        columns: Mapping[str, FloatArray],
        names: Collection[str],
        is_back: BoolArray | None = None,
    ) -> None:
        """Forget what was learned of pages, and take columns for data.

        Args:
            rows: the pages, (n,).
            columns: their columns, (n,) or (S, n) each.
            names: the columns that are data. Without any, pages that were gone keep what was
                learned of them.
            is_back: which pages were gone, (n,); None for none.
        """
        pages = self.pages
        if pages.learner is None:
            return
        if names or is_back is None:
            pages.learner.begin(rows, columns, names)
            return
        pages.learner.begin(rows[~is_back], columns, names)
        if is_back.any():
            pages.write_learned(rows[is_back])

    def learn(self, rows: IntArray, times: FloatArray, changed: BoolArray) -> None:
        """Learn from the first fetch of each page that has a copy, and write its parameters."""
        pages, learner = self.pages, self.pages.learner
        if learner is None:
            return
        copies = pages.lazy.pages["last_crawl"][rows]
        elapsed = times - copies
        useful = (elapsed > 0.0) & np.isfinite(elapsed) & (copies >= pages.last_gap)
        used = np.flatnonzero(first_of_each(rows) & useful)
        signals = np.zeros((used.size, pages.num_sources))
        ready(signals_until)(pages.arguments[0], rows[used], times[used], signals)
        if learner.learn(rows[used], elapsed[used], signals, changed[used]):
            learner.share(pages.living())
        following = learner.next_rows(REWRITTEN)
        following = following[~np.isin(pages.choices.status[following], (ABSENT, GONE))]
        pages.write_learned(np.union1d(rows[used], following))
        pages.admit(following, only_ready=True)
        looked = np.union1d(following, learner.rows_in_turn(used.size, len(pages.ids)))
        self._explore(np.setdiff1d(looked, rows))

    def forget(self, since: float) -> None:
        """Forget what was learned of the pages that have a copy since a time."""
        pages, learner = self.pages, self.pages.learner
        if learner is None:
            return
        copies = pages.lazy.pages["last_crawl"]
        rows = np.flatnonzero((copies > since) & np.isfinite(copies))
        learner.begin(rows, {}, ())
        learner.share(pages.living())
        pages.write_learned(np.intersect1d(rows, pages.living()))

    def _explore(self, rows: IntArray) -> None:
        """Forget what was learned of pages without a fetch for long, and value them highly."""
        pages, max_age = self.pages, MAX_AGE * self.interval
        assert pages.learner is not None
        ages = pages.pace.time - pages.lazy.pages["last_crawl"][rows]
        old = (ages > max_age) & ~np.isin(pages.choices.status[rows], (ABSENT, GONE, SENT))
        if not old.any():
            return
        rows, columns = rows[old], pages.of(rows[old])
        pages.learner.begin(rows, columns, ())
        columns |= {"change_rate": BEST_CHANGES / ages[old], "recall": 0.0 * columns["recall"]}
        pages.write(rows, columns, pages.parameters(columns))
        pages.weigh(rows)
        pages.admit(rows, only_ready=True)
