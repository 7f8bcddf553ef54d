"""An online model of the probability that a crawl finds a change.

Logistic regression on the context of a crawl, by Adagrad. The log odds of a change are

    w . (features of the crawl) + w . (features of the page) + sum of the weights of its kinds

where those of the crawl are MOMENT: 1, ln(.01 + elapsed / gap), whether the last crawl found a
change, whether it found none, and ln(1 + signals). The features of a page multiply the odds, as
does its change rate. Kinds are the page itself and, for offers, merchant, brand and so on, hashed
into a fixed number of weights, with collisions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, IntArray, Tracker
from crawl_envs.types.compiling import compiled
from crawl_envs.types.offer_features import HISTORY_FEATURES, OfferFeatures

MOMENT = ("one", "elapsed", "changed", "unchanged", "signals")
"""The features of a crawl."""
SOONEST = 0.01
"""Added to elapsed times, in gaps, before the logarithm."""
BUCKETS = 1 << 14
"""Number of weights of the hashed kinds of offers."""
_ODD = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: Fibonacci hashing


@dataclass
class ChangeModel:
    """The weights of a set of pages, and the pages' features.

    Attributes:
        gap: the unit of elapsed time: the mean time between two crawls of a page, > 0.
        known: features of each page, (m, S).
        kinds: indices of the weights of each page's kinds, (m, C) int64.
        weights: weights of the MOMENT features, of the page features, and of the kinds, (W,).
        squares: sums of the squared gradients so far, (W,).
        rate: learning rate, > 0: the size of the first step of a weight.
    """

    gap: float
    known: FloatArray
    kinds: IntArray
    weights: FloatArray
    squares: FloatArray
    rate: float

    @classmethod
    def at_start(cls, tracker: Tracker, rate: float) -> ChangeModel:
        """Return the model before any crawl: odds of a change are proportional to elapsed time."""
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
        """Update the page features on a new day."""
        self.known = known_features(tracker, self.gap)
        self.kinds = page_kinds(tracker, len(MOMENT) + self.known.shape[1])

    def chances(
        self, elapsed: FloatArray, changed: NDArray[np.int8], signals: IntArray
    ) -> FloatArray:
        """Return the probability that a crawl of each page now finds a change, in (0, 1), (m,).

        Args:
            elapsed: time since its last crawl, (m,).
            changed: result of that crawl: 1 changed, 0 unchanged, -1 no crawl, (m,).
            signals: number of signals since then, (m,).
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
        outcome: NDArray[np.bool_],
        changed: NDArray[np.int8],
    ) -> None:
        """Take in crawls in order, all (n,), and update ``changed``, (m,)."""
        given = (pages, elapsed, signals.astype(np.float64), outcome, changed)
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
    """Return the probability that a crawl of a page with these features finds a change."""
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
    """Write the probability of every page to ``out``."""
    moment = np.empty(len(MOMENT))
    for page in range(out.size):
        moment_of(elapsed[page], changed[page], signals[page], gap, moment)
        out[page] = change_chance(page, moment, known, kinds, weights)


@compiled()
def learn_changes(
    pages: IntArray,
    elapsed: FloatArray,
    signals: FloatArray,
    outcome: NDArray[np.bool_],
    changed: NDArray[np.int8],
    gap: float,
    known: FloatArray,
    kinds: IntArray,
    weights: FloatArray,
    squares: FloatArray,
    rate: float,
) -> None:
    """Take a step of Adagrad per crawl on its log loss."""
    moment = np.empty(len(MOMENT))
    first = moment.size
    for k in range(pages.size):
        page = pages[k]
        moment_of(elapsed[k], changed[page], signals[k], gap, moment)
        error = change_chance(page, moment, known, kinds, weights) - outcome[k]
        for j in range(first):
            step_down(weights, squares, j, error * moment[j], rate)
        for j in range(known.shape[1]):
            step_down(weights, squares, first + j, error * known[page, j], rate)
        for j in range(kinds.shape[1]):
            step_down(weights, squares, kinds[page, j], error, rate)
        changed[page] = outcome[k]


@compiled()
def step_down(
    weights: FloatArray, squares: FloatArray, place: int, slope: float, rate: float
) -> None:
    """Take a step of Adagrad: ``rate`` times the gradient over the root of the sum of squares."""
    squares[place] += slope * slope
    weights[place] -= rate * slope / np.sqrt(squares[place])


def known_features(tracker: Tracker, gap: float) -> FloatArray:
    """Return the features of each page beside its crawls, (m, S) float64, of the order of 1.

    The logarithm of its importance relative to the mean and, if revealed, of its change rate and
    false-signal rate per gap, and its recall; for offers the logarithms of the history features.
    """
    problem = tracker.problem
    mean = problem.importance.mean()
    columns = [np.log1p(problem.importance / (mean if mean > 0.0 else 1.0))]
    for rates in (problem.change_rate, problem.false_signal_rate):
        if rates is not None:
            columns.extend(np.log(SOONEST + gap * np.atleast_2d(rates)))
    if problem.recall is not None:
        columns.extend(np.atleast_2d(problem.recall))
    if tracker.offers is not None:
        columns.extend(_history(tracker.offers))
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.float64)


def _history(features: OfferFeatures) -> list[FloatArray]:
    columns = []
    for name in HISTORY_FEATURES:
        feature = np.asarray(getattr(features, name), np.float64)
        least = SOONEST if name == "change_frequency" else 1.0
        columns.append(np.log(least + feature))
    return columns


def page_kinds(tracker: Tracker, first: int) -> IntArray:
    """Return the indices of the weights of each page's kinds, (m, C) int64.

    The page's own weight has the index ``first`` plus that of the page; the BUCKETS weights of the
    kinds of offers follow.
    """
    num_pages = tracker.problem.num_pages
    columns = [first + np.arange(num_pages)]
    features = tracker.offers
    if features is not None:
        fields = [np.asarray(field) for field in features.metadata]
        fields.append(np.full(num_pages, features.day_of_week))
        for number, field in enumerate(fields):
            columns.append(first + num_pages + hashed(number, field))
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int64)


def hashed(field: int, values: NDArray[np.integer]) -> IntArray:
    """Return the bucket of each value of a field, in [0, BUCKETS)."""
    keys = (values.astype(np.uint64) << np.uint64(4)) | np.uint64(field)
    shift = np.uint64(64 - (BUCKETS.bit_length() - 1))
    return ((keys * np.uint64(_ODD)) >> shift).astype(np.int64)
