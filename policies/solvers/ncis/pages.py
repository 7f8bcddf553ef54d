"""What the solver of Theorem 1 asks of pages, and pages of several kinds taken together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, Self

import numpy as np

from crawl_envs.types import FloatArray, IntArray


class Levels(NamedTuple):
    """When pages are crawled, arrays of shape (k,); see :class:`policies.solvers.Allocation`.

    ``signals`` are those of one source.
    """

    thresholds: FloatArray
    evidence: FloatArray
    probabilities: FloatArray
    signals: FloatArray


class Pages(Protocol):
    """Pages that change and are of importance.

    ``state`` is of shape (k, 3): where the search of each page starts, with its cycle length last;
    a length of 0 means that nothing is known. Arrays ``importance`` (as shares of all),
    ``change_rate``, ``alpha`` and ``signal_rate`` (of useful signals) have shape (k,).
    """

    importance: FloatArray
    change_rate: FloatArray
    alpha: FloatArray
    signal_rate: FloatArray

    def every(self, step: int) -> Self:
        """Every ``step``-th page."""

    def spend(self, price: float, floor: float, state: FloatArray, rates: FloatArray) -> float:
        """Fill in the rates at a multiplier, ``floor`` at least; returns their sum."""

    def settle(self, floor: float, state: FloatArray, rates: FloatArray) -> None:
        """Put every page whose rate is not that of its point to the point of its rate."""

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """The sum of mu~ w / psi = rate V + mu~ exp(-y), which also holds between two steps."""

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """When each page is crawled."""


class AllPages:
    """Pages of several kinds, one after the other; ``places`` are their numbers among all."""

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
        """Every ``step``-th page of each kind."""
        return AllPages(
            [
                (self.places[span][::step], pages.every(step))
                for span, pages in zip(self._spans, self.parts, strict=True)
            ]
        )

    def spend(self, price: float, floor: float, state: FloatArray, rates: FloatArray) -> float:
        """Fill in the rates at a multiplier, ``floor`` at least; returns their sum."""
        return sum(
            pages.spend(price, floor, state[span], rates[span])
            for span, pages in zip(self._spans, self.parts, strict=True)
        )

    def settle(self, floor: float, state: FloatArray, rates: FloatArray) -> None:
        """Put every page whose rate is not that of its point to the point of its rate."""
        for span, pages in zip(self._spans, self.parts, strict=True):
            pages.settle(floor, state[span], rates[span])

    def freshness(self, state: FloatArray, rates: FloatArray) -> float:
        """The sum of mu~ w / psi."""
        return sum(
            pages.freshness(state[span], rates[span])
            for span, pages in zip(self._spans, self.parts, strict=True)
        )

    def levels(self, state: FloatArray, rates: FloatArray) -> Levels:
        """When each page is crawled."""
        found = [
            pages.levels(state[span], rates[span])
            for span, pages in zip(self._spans, self.parts, strict=True)
        ]
        return Levels(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def evidence_margin(level: FloatArray, evidence: FloatArray) -> FloatArray:
    """How far around a level, (k,), evidence that signals add up to counts as being that level.

    It makes good for rounding, and is less than a quarter of any signal's ``evidence``, (S, k).
    """
    least = np.where(evidence > 0.0, evidence, np.inf).min(axis=0)
    margin: FloatArray = np.minimum(1e-6 * level, 0.25 * least)
    return margin
