"""The exact filter of pages whose changes and signals a hidden Markov chain drives.

The chain of a page has N states. It moves, and its page changes and signals, by a marked Markovian
arrival process (He and Neuts 1998). The constant rate of false signals cancels between signals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import expm
from scipy.special import pdtr

from crawl_envs.types import FloatArray, IntArray

STEP = 0.01
"""Time step of filters; events count as at a multiple of it."""
GAPS = 30.0 * np.linspace(0.0, 1.0, 65) ** 3
"""Times of survival functions, in mean gaps between changes of a page."""
Quality = tuple[float, float]
"""Share of a page's changes with a signal, and rate of its false signals."""
States = tuple[FloatArray, FloatArray]
"""Probabilities of states at time 0, (N,), and the generator of their moves, (N, N)."""
SMALLEST = 1e-200
"""A result of a smaller probability is one of rounding, and is ignored."""


class Chain(NamedTuple):
    """The chain of a page: states at time 0, (N,), and matrices by states before and after, (N, N).

    Steps are joint probabilities of a move within STEP and no signal, and no change in
    ``fresh_step``. Signals are rates; those of ``fresh_signal`` come without a change. ``survival``
    is the probability of no change within GAPS, by state, (GAPS, N).
    """

    first: FloatArray
    fresh_step: FloatArray
    step: FloatArray
    fresh_signal: FloatArray
    signal: FloatArray
    survival: FloatArray


def chain_of(
    first: FloatArray, moves: FloatArray, changes: FloatArray, quality: Quality, survival: Any
) -> Chain:
    """Return a chain by its rates of moves without an event and of moves with a change, (N, N)."""
    recall, false = quality[0], quality[1] * np.eye(first.size)
    steps = expm(STEP * moves), expm(STEP * (moves + (1.0 - recall) * changes))
    return Chain(first, *steps, false, false + recall * changes, survival)


def modulated(
    states: States, rates: FloatArray, mean: float, quality: Quality, shared_recall: float = 0.0
) -> Chain:
    """Return the chain of a page whose change rate, of a long-run mean, depends on hidden states.

    Signals of other pages in the same states tell of them: these pages have ``shared_recall``.
    """
    first, moves = states
    values, vectors = np.linalg.eig(moves - np.diag(rates))
    decays = np.exp(np.outer(GAPS / mean, values)) * np.linalg.solve(vectors, np.ones(rates.size))
    quiet, survival = moves - np.diag((1.0 + shared_recall) * rates), (decays @ vectors.T).real
    return chain_of(first, quiet, np.diag(rates), quality, survival)


def regular(rate: float, stages: int, quality: Quality) -> Chain:
    """Return the chain of stationary Erlang gaps of mean 1 / ``rate``; stages end by a change."""
    pace, changes, first = stages * rate, np.zeros((stages, stages)), np.full(stages, 1.0 / stages)
    changes[-1, 0] = pace
    moves = pace * (np.eye(stages, k=1) - np.eye(stages))
    survival = pdtr(np.arange(stages)[::-1], stages * GAPS[:, None])
    return chain_of(first, moves, changes, quality, survival)


def hourly(rate: float, opening: float, window: float, day: float, quality: Quality) -> Chain:
    """Return the chain of a page that changes in a share of each day, from ``opening`` in [0, 1).

    ``rate`` is the mean. The state is the hour, which is known: a STEP of the day. It is exact to
    about .01 only, since times are rounded to a STEP and the rate jumps.
    """
    states, (recall, false_rate) = round(day / STEP), quality
    since = day * (np.arange(states) / states + 1.0 - opening)

    def changes(time: FloatArray) -> FloatArray:
        """Return the mean changes in a time that begins with a window."""
        days, hour = np.divmod(time / day, 1.0)
        return np.asarray(rate * day * (days + np.minimum(hour / window, 1.0)))

    survival = np.exp(changes(since) - changes(since + GAPS[:, None] / rate))
    in_step = changes(since + STEP) - changes(since)
    move, false = np.roll(np.eye(states), 1, axis=1), false_rate * np.eye(states)
    fresh_step, step = (move * np.exp(-share * in_step)[:, None] for share in (1.0, recall))
    signal = false + np.diag(recall * in_step / STEP)
    return Chain(move[-1], fresh_step, step, false, signal, survival)


def padded(arrays: Sequence[FloatArray]) -> FloatArray:
    """Return arrays as one, with zeros where one is smaller than the largest."""
    size = np.max([array.shape for array in arrays], axis=0)
    return np.stack([np.pad(x, [(0, n) for n in size - x.shape]) for x in arrays])


class ChainFilter:
    """The filter of pages with chains: P(state | log), and P(state, page is fresh | log), (m, N).

    For pages that share a chain, a crawl or signal of one page counts for the others as if pages
    were independent given the present state; they are given its path.

    Args:
        chains: the chain of each page.
        group: number of the chain that pages share, (m,); None for a chain per page.
    """

    def __init__(self, chains: Sequence[Chain], group: IntArray | None = None) -> None:
        self.group = np.arange(len(chains)) if group is None else group
        columns = [padded(parts) for parts in zip(*chains, strict=True)]
        self.state, self.fresh_step, self.step, self.fresh_signal, self.any_signal = columns[:5]
        self.survival, self.fresh_state = columns[5], self.state.copy()

    def wait(self, steps: int) -> None:
        """Pass a number of steps without signals."""
        for _ in range(steps):
            state = (self.state[:, None] @ self.step)[:, 0]
            fresh, total = self.fresh_state[:, None] @ self.fresh_step, state.sum(1, keepdims=True)
            self.state, self.fresh_state = state / total, fresh[:, 0] / total

    def signal(self, page: int, time: float) -> None:
        """Condition on a signal of a page."""
        fresh = self.fresh_state[page] @ self.fresh_signal[page]
        self._condition(page, self.state[page] @ self.any_signal[page], fresh)

    def crawl(self, page: int, changed: bool) -> None:
        """Condition on the result of a crawl of a page, which is fresh then."""
        fresh = self.fresh_state[page].copy()
        weights = np.maximum(self.state[page] - fresh, 0.0) if changed else fresh
        self._condition(page, weights, weights)

    def _condition(self, page: int, weights: FloatArray, fresh: FloatArray) -> None:
        """Set the states of a page, not normalised, and those of the pages that share its chain."""
        total, before = weights.sum(), self.state[page].copy()
        if not total > SMALLEST:
            weights, fresh, total = before, before, 1.0
        mates, ratio = self.group == self.group[page], np.zeros_like(before)
        np.divide(weights / total, before, out=ratio, where=before > 0.0)
        self.fresh_state[mates] *= ratio
        self.state[mates], self.fresh_state[page] = weights / total, fresh / total

    def fresh(self) -> FloatArray:
        """Return the probability that each page is fresh, (m,)."""
        return np.asarray(self.fresh_state.sum(axis=1))

    def factor(self, poisson: FloatArray) -> FloatArray:
        """Return the value without signals over ``poisson``, that of a rate of 1 per gap, (m,).

        It is the integral of max(F - F now, 0), in mean gaps, where F is the probability that a
        page that is crawled now is still fresh then, averaged over the result of the crawl.
        """
        changed = np.maximum(self.state - self.fresh_state, 0.0)
        results = np.stack((self.fresh_state, changed), axis=2)
        excess = self.survival @ results - (results.sum(1) * self.fresh()[:, None])[:, None]
        before, after = np.maximum(excess[:, :-1], 0.0), excess[:, 1:]
        share = np.where(after < 0.0, before / np.maximum(before - after, SMALLEST), 1.0)
        area = 0.5 * np.diff(GAPS)[:, None] * (before + np.maximum(after, 0.0)) * share
        return np.asarray(area.sum(axis=(1, 2)) / poisson)
