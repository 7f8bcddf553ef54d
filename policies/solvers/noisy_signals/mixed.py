"""Pages of several sources; those with at most one useful source are solved as pages of one."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray
from policies.solvers.noisy_signals.one_source import OneSource
from policies.solvers.noisy_signals.search import Levels
from policies.solvers.noisy_signals.sources import Sources


class Mixed:
    """Pages of several sources, solved as :class:`OneSource` where at most one has recall.

    The other pages are solved as :class:`Sources`. Both classes document arguments and states.
    """

    def __init__(self, *parameters: FloatArray) -> None:
        importance, change_rate, recall, false_signal_rate = self.parameters = parameters
        few = (recall > 0.0).sum(axis=0) <= 1
        useful = recall.argmax(axis=0)[None]
        single = (np.take_along_axis(array, useful, 0) for array in (recall, false_signal_rate))
        parts = (
            (OneSource, np.flatnonzero(few), (importance, change_rate, *single)),
            (Sources, np.flatnonzero(~few), self.parameters),
        )
        self._parts = [
            (kind(*(np.ascontiguousarray(array[..., rows]) for array in arrays)), rows)
            for kind, rows, arrays in parts
        ]
        self.alpha, self.signal_rate = np.empty(len(importance)), np.empty(len(importance))
        for pages, rows in self._parts:
            self.alpha[rows], self.signal_rate[rows] = pages.alpha, pages.signal_rate

    def spend(self, price: float, state: FloatArray, rates: FloatArray) -> None:
        """Fill in crawl rates and states at a multiplier ``price``; searches start at ``state``."""
        for pages, rows in self._parts:
            states, spent = state[rows], rates[rows]
            pages.spend(price, states, spent)
            state[rows], rates[rows] = states, spent

    def settle(self, state: FloatArray, rates: FloatArray) -> None:
        """Move the state of each page to the point at which its crawl rate equals ``rates``."""
        for pages, rows in self._parts:
            states = state[rows]
            pages.settle(states, rates[rows])
            state[rows] = states

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """Return the sum of the freshness of all pages, weighted by importance."""
        return sum(pages.freshness(state[rows], rates[rows]) for pages, rows in self._parts)

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """Return the conditions under which pages are crawled: levels, signals, probabilities."""
        levels = Levels(*(np.empty(len(rates)) for _ in Levels._fields))
        for pages, rows in self._parts:
            for array, part in zip(levels, pages.levels(state[rows], rates[rows]), strict=True):
                array[rows] = part
        return levels
