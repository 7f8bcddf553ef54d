"""True totals of an episode."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """True totals of one lane since the start of its episode.

    ``fresh_time`` is the integral over time of the importance of fresh pages, ``alive_time`` that
    of all existing pages; ``hits`` is the number of requests served fresh, ``changes_found`` that
    of crawls of changed pages, ``wasted`` that of crawls of pages that do not exist.
    ``penalty_time`` is the integral over time of the sum over existing pages of importance times
    the penalty of undetected changes, None if not counted. ``denied`` is the number of crawls
    prevented by an empty token bucket, ``spend`` the total cost of crawls: their number, if all
    cost 1.

    Ledgers of one kind are equal if all totals are, where NaN equals NaN.
    """

    time: float
    fresh_time: float
    alive_time: float
    requests: int
    hits: int
    crawls: int
    wasted: int
    changes: int
    changes_found: int
    signals: int
    penalty_time: float | None = None
    denied: int = 0
    spend: float = 0.0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger) or type(other) is not type(self):
            return NotImplemented
        return self._totals() == other._totals()

    def __hash__(self) -> int:
        return hash(self._totals())

    def _totals(self) -> tuple[Any, ...]:
        """Return all totals as a tuple, with a word instead of each NaN, for comparisons."""
        totals = (getattr(self, field.name) for field in fields(self))
        return tuple("NaN" if total != total else total for total in totals)

    @property
    def freshness(self) -> float:
        """Share of time that pages were fresh, weighted by importance, in [0, 1]; NaN at time 0."""
        return self.fresh_time / self.alive_time if self.alive_time > 0.0 else math.nan

    @property
    def accuracy(self) -> float:
        """Share of requests whose page was fresh, in [0, 1]; NaN without requests."""
        return self.hits / self.requests if self.requests else math.nan

    @property
    def cost(self) -> float:
        """Sum over pages of importance times penalty, averaged over time: J of LambdaCrawl.

        NaN if no penalty is counted, and before time 0+.
        """
        return self._penalty_by(self.time)

    @property
    def penalty(self) -> float:
        """Mean penalty of a page over time, weighted by importance; NaN where the cost is NaN."""
        return self._penalty_by(self.alive_time)

    def _penalty_by(self, amount: float) -> float:
        return (
            math.nan if self.penalty_time is None or amount <= 0.0 else self.penalty_time / amount
        )


@dataclass(frozen=True, slots=True, eq=False)
class OfferLedger(Ledger):
    """True totals of one lane of shopping offers since its reset; requests are clicks.

    ``offer_freshness`` is the share of offers fresh at midnight, averaged over completed days (Han
    et al. 2020, eq. 3); NaN before the first midnight.
    """

    offer_freshness: float = math.nan


@dataclass(frozen=True, slots=True, eq=False)
class FragmentLedger(Ledger):
    """True totals of one lane of pages with fragments since its reset.

    ``divergence_time`` is the integral over time of the importance of existing pages times the
    divergence of their copies, the Jaccard distance of live and held fragments.
    """

    divergence_time: float = 0.0

    @property
    def divergence(self) -> float:
        """Mean divergence of copies, weighted by importance, in [0, 1]; NaN at time 0 (eq. 2)."""
        return self.divergence_time / self.alive_time if self.alive_time > 0.0 else math.nan
