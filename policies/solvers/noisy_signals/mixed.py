"""Pages of several sources, those with at most one useful one solved as pages of one source."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import FloatArray
from policies.solvers.noisy_signals.one_source import OneSource
from policies.solvers.noisy_signals.search import Levels
from policies.solvers.noisy_signals.sources import Sources


class Mixed:
    """Pages of several sources, some of which have one source with recall, or none.

    Arguments, methods and points are those of :class:`OneSource` and :class:`Sources`.
    """

    def __init__(self, *known: FloatArray) -> None:
        importance, change_rate, recall, false_signal_rate = self.known = known
        few = (recall > 0.0).sum(axis=0) <= 1
        useful = recall.argmax(axis=0)[None]
        single = (np.take_along_axis(array, useful, 0) for array in (recall, false_signal_rate))
        parts = (
            (OneSource, np.flatnonzero(few), (importance, change_rate, *single)),
            (Sources, np.flatnonzero(~few), self.known),
        )
        self._parts = [
            (kind(*(np.ascontiguousarray(array[..., chosen]) for array in arrays)), chosen)
            for kind, chosen, arrays in parts
        ]
        self.alpha, self.signal_rate = np.empty(len(importance)), np.empty(len(importance))
        for pages, chosen in self._parts:
            self.alpha[chosen], self.signal_rate[chosen] = pages.alpha, pages.signal_rate

    def spend(self, price: float, state: FloatArray, rates: FloatArray) -> None:
        """Fill in the rates at a multiplier; ``state`` is the start of the search."""
        for pages, chosen in self._parts:
            states, spent = state[chosen], rates[chosen]
            pages.spend(price, states, spent)
            state[chosen], rates[chosen] = states, spent

    def settle(self, state: FloatArray, rates: FloatArray) -> None:
        """Move pages whose rate differs from that of their point to the point of the rate."""
        for pages, chosen in self._parts:
            states = state[chosen]
            pages.settle(states, rates[chosen])
            state[chosen] = states

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """Return the sum of the freshness of all pages, weighted by importance."""
        return sum(pages.freshness(state[chosen], rates[chosen]) for pages, chosen in self._parts)

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """Return the crawl condition of each page."""
        found = Levels(*(np.empty(len(rates)) for _ in Levels._fields))
        for pages, chosen in self._parts:
            for array, part in zip(found, pages.levels(state[chosen], rates[chosen]), strict=True):
                array[chosen] = part
        return found
