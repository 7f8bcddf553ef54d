"""A model, learned crawl by crawl, of the probability that a crawl finds a change.

Logistic regression on the context of a crawl, by Adagrad. The log odds of a change are

    w . (moment of the crawl) + w . (what is known of the page) + sum of the weights of its kinds

where the moment has the MOMENT features: 1, ln(.01 + elapsed / gap), whether the last crawl found a
change, whether it found none, and ln(1 + signals). With ln(elapsed) in the odds, what is known of a
page acts on them as its change rate does. Kinds are the page itself and, of offers, merchant, brand
and so on, hashed into a fixed number of weights: two kinds that share one are taken for the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, IntArray, Tracker
from crawl_envs.types.compiling import compiled
from crawl_envs.types.offer_features import HISTORY_FEATURES, OfferFeatures

MOMENT = ("one", "elapsed", "changed", "unchanged", "signals")
"""The features of the moment of a crawl."""
SOONEST = 0.01
"""Added to elapsed times, in gaps, before their logarithm is taken."""
BUCKETS = 1 << 14
"""Weights into which the kinds of offers are hashed."""
_ODD = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: Fibonacci hashing


@dataclass
class ChangeModel:
    """The weights of a set of pages, and the context that goes with them.

    Attributes:
        gap: the unit of elapsed time: the mean time between two crawls of a page, > 0.
        known: what is known of each page, (m, S).
        kinds: the places of each page's kinds among the weights, (m, C) int64.
        weights: of the MOMENT features, then of what is known, then of the kinds, (W,).
        squares: the sum of the squares of each one's slopes so far, (W,).
        rate: how far a weight goes in its first step, > 0.
    """

    gap: float
    known: FloatArray
    kinds: IntArray
    weights: FloatArray
    squares: FloatArray
    rate: float

    @classmethod
    def at_start(cls, tracker: Tracker, rate: float) -> ChangeModel:
        """The model before any crawl: the odds of a change are in proportion to elapsed time."""
        problem = tracker.problem
        gap = problem.num_pages / problem.bandwidth
        known = known_features(tracker, gap)
        first = len(MOMENT) + known.shape[1]
        kinds = page_kinds(tracker, first)
        size = first + (BUCKETS if tracker.offers is not None else 0) + problem.num_pages
        weights = np.zeros(size)
        weights[MOMENT.index("elapsed")] = 1.0
        return cls(gap, known, kinds, weights, np.ones(size), rate)

    def renew(self, tracker: Tracker) -> None:
        """Take the book of a new day."""
        self.known = known_features(tracker, self.gap)
        self.kinds = page_kinds(tracker, len(MOMENT) + self.known.shape[1])

    def chances(
        self, elapsed: FloatArray, changed: NDArray[np.int8], signals: IntArray
    ) -> FloatArray:
        """The probability of each page that a crawl now finds a change, in (0, 1), (m,).

        Args:
            elapsed: time since its last crawl, (m,).
            changed: what that crawl found: 1 a change, 0 none, -1 no crawl, (m,).
            signals: received since then, (m,).
        """
        out = np.empty(len(elapsed))
        moment = (elapsed, changed, signals.astype(np.float64))
        change_chances(*moment, self.gap, self.known, self.kinds, self.weights, out)
        return out

    def learn(
        self,
        pages: IntArray,
        elapsed: FloatArray,
        signals: IntArray,
        found: NDArray[np.bool_],
        changed: NDArray[np.int8],
    ) -> None:
        """Take in crawls in their order, all (n,); ``changed`` (m,) is brought up to date."""
        given = (pages, elapsed, signals.astype(np.float64), found, changed)
        learn_changes(
            *given, self.gap, self.known, self.kinds, self.weights, self.squares, self.rate
        )


@compiled()
def moment_of(elapsed: float, changed: int, signals: float, gap: float, out: FloatArray) -> None:
    """Write the MOMENT features of a crawl."""
    out[0] = 1.0
    out[1] = np.log(SOONEST + elapsed / gap)
    out[2] = 1.0 if changed == 1 else 0.0
    out[3] = 1.0 if changed == 0 else 0.0
    out[4] = np.log1p(signals)


@compiled()
def change_chance(
    page: int, moment: FloatArray, known: FloatArray, kinds: IntArray, weights: FloatArray
) -> float:
    """The probability that a crawl of the page at that moment finds a change."""
    odds = 0.0
    first = moment.size
    for j in range(first):
        odds += weights[j] * moment[j]
    for j in range(known.shape[1]):
        odds += weights[first + j] * known[page, j]
    for j in range(kinds.shape[1]):
        odds += weights[kinds[page, j]]
    chance: float = 1.0 / (1.0 + np.exp(-odds))
    return chance


@compiled()
def change_chances(
    elapsed: FloatArray,
    changed: NDArray[np.int8],
    signals: FloatArray,
    gap: float,
    known: FloatArray,
    kinds: IntArray,
    weights: FloatArray,
    out: FloatArray,
) -> None:
    """Write the probability of every page."""
    moment = np.empty(len(MOMENT))
    for page in range(out.size):
        moment_of(elapsed[page], changed[page], signals[page], gap, moment)
        out[page] = change_chance(page, moment, known, kinds, weights)


@compiled()
def learn_changes(
    pages: IntArray,
    elapsed: FloatArray,
    signals: FloatArray,
    found: NDArray[np.bool_],
    changed: NDArray[np.int8],
    gap: float,
    known: FloatArray,
    kinds: IntArray,
    weights: FloatArray,
    squares: FloatArray,
    rate: float,
) -> None:
    """Take a step of Adagrad per crawl, down the slope of its log loss."""
    moment = np.empty(len(MOMENT))
    first = moment.size
    for k in range(pages.size):
        page = pages[k]
        moment_of(elapsed[k], changed[page], signals[k], gap, moment)
        error = change_chance(page, moment, known, kinds, weights) - found[k]
        for j in range(first):
            step_down(weights, squares, j, error * moment[j], rate)
        for j in range(known.shape[1]):
            step_down(weights, squares, first + j, error * known[page, j], rate)
        for j in range(kinds.shape[1]):
            step_down(weights, squares, kinds[page, j], error, rate)
        changed[page] = found[k]


@compiled()
def step_down(
    weights: FloatArray, squares: FloatArray, place: int, slope: float, rate: float
) -> None:
    """Adagrad: a step of ``rate`` times the slope over the root of the sum of all its squares."""
    squares[place] += slope * slope
    weights[place] -= rate * slope / np.sqrt(squares[place])


def known_features(tracker: Tracker, gap: float) -> FloatArray:
    """What is known of each page beside its crawls, (m, S) float64, of the order of 1.

    The logarithm of its importance relative to the mean and, where they are revealed, of its change
    rate and rate of false signals per gap, and its recall; of offers the history features of the
    book, in logarithms.
    """
    problem = tracker.problem
    mean = problem.importance.mean()
    columns = [np.log1p(problem.importance / (mean if mean > 0.0 else 1.0))]
    for told in (problem.change_rate, problem.false_signal_rate):
        if told is not None:
            columns.extend(np.log(SOONEST + gap * np.atleast_2d(told)))
    if problem.recall is not None:
        columns.extend(np.atleast_2d(problem.recall))
    if tracker.offers is not None:
        columns.extend(_history(tracker.offers))
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.float64)


def _history(book: OfferFeatures) -> list[FloatArray]:
    columns = []
    for name in HISTORY_FEATURES:
        feature = np.asarray(getattr(book, name), np.float64)
        least = SOONEST if name == "change_frequency" else 1.0
        columns.append(np.log(least + feature))
    return columns


def page_kinds(tracker: Tracker, first: int) -> IntArray:
    """The places of each page's kinds among the weights, (m, C) int64.

    The page's own weight stands at ``first`` plus its number; those of the kinds of offers, BUCKETS
    of them, follow.
    """
    num_pages = tracker.problem.num_pages
    columns = [first + np.arange(num_pages)]
    book = tracker.offers
    if book is not None:
        fields = [np.asarray(field) for field in book.metadata]
        fields.append(np.full(num_pages, book.day_of_week))
        for number, field in enumerate(fields):
            columns.append(first + num_pages + hashed(number, field))
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int64)


def hashed(field: int, values: NDArray[np.integer]) -> IntArray:
    """The bucket of each value of a field, in [0, BUCKETS)."""
    keys = (values.astype(np.uint64) << np.uint64(4)) | np.uint64(field)
    shift = np.uint64(64 - (BUCKETS.bit_length() - 1))
    return ((keys * np.uint64(_ODD)) >> shift).astype(np.int64)
