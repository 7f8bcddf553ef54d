"""Learn change rates and signal quality of a scheduler's pages from the results of fetches.

For every page there are Gamma beliefs about the rate of unsignalled changes, the evidence of a
signal and the rate of signals (:mod:`policies.estimators.gamma_beliefs`), in 24 bytes. Pages share
the distributions from which a page without data starts. These are learned as well, whenever the
number of fetches has doubled, from the pages with data and some of a prior. The prior has the scale
of all pages: one change in the mean time between two fetches of a page.

A page that is believed to change too often to be worth a fetch would never show that this is wrong,
or has changed. So what was learned of a page that was not fetched for ``MAX_AGE`` mean intervals is
forgotten, and until its next fetch it has the change rate at which a fetch is worth most: optimism
in the face of uncertainty (Auer, Cesa-Bianchi and Fischer 2002, "Finite-time Analysis of the
Multiarmed Bandit Problem").
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from crawl_envs.compiled.compiling import compiled, ready
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.arguments import within_domain
from policies.estimators.gamma_beliefs import SMALLEST, learn_page, pool_beliefs
from policies.live.scheduler.ids import grown
from policies.live.scheduler.page_values import evidence_of

LEARNED = ("change_rate", "recall", "false_signal_rate")
PRIOR_CHANGES = 1.0
"""Number of observed changes that a given rate stands for: a unit information prior (Kass and
Wasserman 1995)."""
MAX_AGE = 10.0
"""Age of a copy, in mean intervals between fetches of a page, above which a page's learned
rates are forgotten."""
BEST_CHANGES = 1.793282
"""Expected changes since a copy at which a fetch is worth most, where exp(x) = 1 + x + x^2."""
MOST_POOLED = 10_000
"""Most pages from whose data the shared distributions are learned."""
PRIOR_PAGES = 10
"""Number of pages with the prior's data that are added when shared distributions are learned."""
LEAST_SHARE = 1e-6
"""Least share of a page's changes without a signal, where its recall is given."""


class PageLearner:
    """Beliefs about the change rates and the signal quality of pages, one page per row.

    Args:
        interval: mean time between two fetches of a page at the start, > 0, which scales the
            prior.
        room: number of rows.
        num_sources: number of sources of signals, S.

    Attributes:
        counts: numbers of changes and signals of the pages' data, (rows, 1 + 2 S) float32.
        exposures: exposures of the pages' data, (rows, 1 + 2 S) float32.
        shared: shapes and rates of the shared distributions, (2, 1 + 2 S).
        fetches: the number of fetches learned from, the number at which the distributions are
            learned next, and the number of rows rewritten by the last distributions, (3,).
    """

    def __init__(self, interval: float, room: int, num_sources: int = 1) -> None:
        self.counts, self.exposures = np.zeros((2, room, 1 + 2 * num_sources), np.float32)
        self.fetches: IntArray = np.array([0, 1, 0])
        self.rescale(interval)

    def rescale(self, interval: float) -> None:
        """Set the mean time between two fetches of a page, the scale of the prior.

        The shared distributions are the prior until the first ones are learned.
        """
        units = np.ones(self.counts.shape[1])
        units[0] = units[1 + units.size // 2 :] = interval
        self.least = SMALLEST / units
        if self.fetches[1] == 1:
            self.shared = self._prior()

    def _prior(self) -> FloatArray:
        """Return shapes and rates of the prior: a change and half a signal per mean interval."""
        units = SMALLEST / self.least
        units[1 + units.size // 2 :] *= 2.0
        return np.stack([np.ones_like(units), units])

    def make_room(self, room: int) -> None:
        """Enlarge the tables to a number of rows."""
        self.counts, self.exposures = grown(self.counts, room), grown(self.exposures, room)

    def first(self) -> dict[str, FloatArray]:
        """Return the rates and recall that are estimated for a page without data, by name."""
        none = np.zeros((1, self.least.size))
        return {name: x[..., 0] for name, x in self._columns(none, 0.0).items()}

    def begin(
        self, rows: IntArray, columns: Mapping[str, FloatArray], names: Collection[str]
    ) -> None:
        """Reset the beliefs about pages; the columns that are given count as data.

        Args:
            rows: the pages, (n,).
            columns: all of ``LEARNED``, (n,) or (S, n) each.
            names: names of the columns that count as data; the others are assumptions.
        """
        self.counts[rows] = self.exposures[rows] = 0.0
        if not names:
            return
        sources = {name: np.atleast_2d(columns[name]) for name in LEARNED[1:]}
        change, (recall, false), shape_rate = columns[LEARNED[0]], sources.values(), self.shared
        (shape, rate), signals = shape_rate, recall * change + false
        missed = np.maximum(1.0 - recall.sum(axis=0), LEAST_SHARE)
        evidence = evidence_of({LEARNED[0]: change, **sources}).clip(max=-math.log(LEAST_SHARE))
        values = np.concatenate([(missed * change)[None], evidence, signals]).T
        values = np.maximum(values, self.least)
        counts = np.maximum(PRIOR_CHANGES, values * rate)
        is_data = np.full(shape.size, any(name in names for name in LEARNED[1:]))
        is_data[0] = LEARNED[0] in names
        exposures = np.maximum(np.exp(digamma(shape + counts)) / values - rate, 0.0)
        self.counts[rows], self.exposures[rows] = counts * is_data, exposures * is_data

    def learn(
        self, rows: IntArray, elapsed: FloatArray, signals: FloatArray, changed: BoolArray
    ) -> bool:
        """Update beliefs by fetches of distinct pages; return whether it is time for :meth:`share`.

        Args:
            rows: the pages, (n,).
            elapsed: time since the copy before, > 0, (n,).
            signals: signals since then by source, (n, S).
            changed: whether the page had changed, (n,).
        """
        shape, rate = self.shared
        data = self.counts, self.exposures, shape, rate
        ready(learn_rows)(*data, rows, elapsed, signals, changed)
        self.fetches[0] += rows.size
        return bool(self.fetches[0] >= self.fetches[1])

    def next_rows(self, count: int) -> IntArray:
        """Return up to ``count`` rows whose estimates predate the last shared distributions."""
        begin = int(self.fetches[2])
        rows = np.arange(begin, min(begin + count, len(self.counts)))
        self.fetches[2] += rows.size
        return rows

    def rows_in_turn(self, count: int, num_pages: int) -> IntArray:
        """Return rows to inspect after ``count`` fetches; ``num_pages`` fetches cover all rows."""
        room = len(self.counts)
        per_fetch = -(-room // max(num_pages, 1))
        end = per_fetch * int(self.fetches[0])
        return np.unique(np.arange(max(end - per_fetch * count, end - room), end) % room)

    def share(self, rows: IntArray) -> None:
        """Learn the shared distributions from the data of those pages that were fetched."""
        fetched = rows[self.exposures[rows, -1] > 0.0]
        sample = fetched[:: max(1, -(-fetched.size // MOST_POOLED))]
        shape, rate = self.shared[:, None]
        counts, exposures = (
            np.concatenate([part[sample], np.repeat(prior[None], PRIOR_PAGES, axis=0)])
            for part, prior in zip(
                (self.counts, self.exposures), self._prior() - self.shared, strict=True
            )
        )
        every, one = np.ones(counts.shape, np.bool_), np.zeros(len(counts), np.int64)
        pool_beliefs(counts, exposures, every, one, shape, rate, self.least)
        self.fetches[1:] = max(2 * self.fetches[0], rows.size // 4), 0

    def columns(self, rows: IntArray) -> dict[str, FloatArray]:
        """Return the estimated columns of pages by name, (n,), or (S, n) with several sources."""
        return self._columns(self.counts[rows].astype(np.float64), self.exposures[rows])

    def _columns(self, counts: FloatArray, exposures: Any) -> dict[str, FloatArray]:
        """Convert gamma beliefs to change rates, recalls and false signal rates by exp(E ln x)."""
        shape, rate = self.shared
        typical = (np.exp(digamma(shape + counts)) / (rate + exposures)).T
        alpha, (evidence, signals) = typical[0], np.split(typical[1:], 2)
        false = within_domain(signals * np.exp(-evidence))
        change = within_domain(alpha + (signals - false).sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            recall = np.where(change > 0.0, (signals - false) / change, 0.0)
        recall /= np.maximum(recall.sum(axis=0), 1.0)
        if len(signals) == 1:
            recall, false = recall[0], false[0]
        return dict(zip(LEARNED, (change, recall, false), strict=True))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays of this learner by name."""
        names = ("counts", "exposures", "shared", "least", "fetches")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> PageLearner:
        """Return a learner from the arrays that :meth:`arrays` of another learner returned."""
        learner = cls(1.0, 0)
        for name, array in arrays.items():
            setattr(learner, name, array.copy())
        return learner


@compiled()
def learn_rows(
    counts: NDArray[np.float32],
    exposures: NDArray[np.float32],
    shape: FloatArray,
    rate: FloatArray,
    rows: IntArray,
    elapsed: FloatArray,
    signals: FloatArray,
    changed: BoolArray,
) -> None:
    """Update the rows of pages in the tables of counts and exposures after one fetch of each."""
    own_counts, own_exposures = np.empty(counts.shape[1]), np.empty(counts.shape[1])
    for position in range(rows.size):
        row = rows[position]
        own_counts[:], own_exposures[:] = counts[row], exposures[row]
        outcome = elapsed[position], signals[position], changed[position]
        learn_page(own_counts, own_exposures, shape, rate, *outcome, 1.0)
        counts[row], exposures[row] = own_counts, own_exposures
