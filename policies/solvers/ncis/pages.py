"""The interface of pages for the solver of Theorem 1, and its implementation for mixed kinds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, Self

import numpy as np

from crawl_envs.types import FloatArray, IntArray


class Levels(NamedTuple):
    """Crawl conditions of pages, arrays of shape (k,); see :class:`policies.solvers.Allocation`.

    ``signals`` are those of one source.
    """

    thresholds: FloatArray
    evidence: FloatArray
    probabilities: FloatArray
    signals: FloatArray


class Pages(Protocol):
    """Pages that change and have importance.

    ``state``, (k, 3), is the start of each page's search, with its cycle length last; a length of 0
    means unknown. Arrays ``importance`` (as shares of all), ``change_rate``, ``alpha`` and
    ``signal_rate`` (of informative signals) have shape (k,).
    """

    importance: FloatArray
    change_rate: FloatArray
    alpha: FloatArray
    signal_rate: FloatArray

    def every(self, step: int) -> Self:
        """Return every ``step``-th page."""

    def spend(self, price: float, floor: float, state: FloatArray, rates: FloatArray) -> float:
        """Fill in the rates at a multiplier, at least ``floor``; return their sum."""

    def settle(self, floor: float, state: FloatArray, rates: FloatArray) -> None:
        """Move pages whose rate differs from that of their point to the point of the rate."""

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """Return the sum of mu~ w / psi = rate V + mu~ exp(-y), valid also between two steps."""

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """Return the crawl condition of each page."""


class AllPages:
    """Pages of several kinds, concatenated; ``places`` are their numbers among all pages."""

    def __init__(self, parts: Sequence[tuple[IntArray, Pages]]) -> None:
        self.parts = [pages for _, pages in parts]
        self.places = np.concatenate([places for places, _ in parts])
        self.importance = np.concatenate([pages.importance for pages in self.parts])
        self.change_rate = np.concatenate([pages.change_rate for pages in self.parts])
        self.alpha = np.concatenate([pages.alpha for pages in self.parts])
        self.signal_rate = np.concatenate([pages.signal_rate for pages in self.parts])
        ends = np.cumsum([0, *(len(pages.alpha) for pages in self.parts)])
        self._spans = [slice(*pair) for pair in pairwise(ends)]

    def every(self, step: int) -> AllPages:
        """Return every ``step``-th page of each kind."""
        return AllPages(
            [
                (self.places[span][::step], pages.every(step))
                for span, pages in zip(self._spans, self.parts, strict=True)
            ]
        )

    def spend(self, price: float, floor: float, state: FloatArray, rates: FloatArray) -> float:
        """Fill in the rates at a multiplier, at least ``floor``; return their sum."""
        return sum(
            pages.spend(price, floor, state[span], rates[span])
            for span, pages in zip(self._spans, self.parts, strict=True)
        )

    def settle(self, floor: float, state: FloatArray, rates: FloatArray) -> None:
        """Move pages whose rate differs from that of their point to the point of the rate."""
        for span, pages in zip(self._spans, self.parts, strict=True):
            pages.settle(floor, state[span], rates[span])

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """Return the sum of mu~ w / psi."""
        return sum(
            pages.freshness(state[span], rates[span])
            for span, pages in zip(self._spans, self.parts, strict=True)
        )

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """Return the crawl condition of each page."""
        levels = [
            pages.levels(state[span], rates[span])
            for span, pages in zip(self._spans, self.parts, strict=True)
        ]
        return Levels(*(np.concatenate(arrays) for arrays in zip(*levels, strict=True)))


def evidence_margin(level: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return the tolerance of evidence around a level, (k,), within which it equals the level.

    It covers rounding, and is less than a quarter of the least ``evidence`` of a signal, (S, k).
    """
    least = np.where(evidence > 0.0, evidence, np.inf).min(axis=0)
    margin: FloatArray = np.minimum(1e-6 * level, 0.25 * least)
    return margin
