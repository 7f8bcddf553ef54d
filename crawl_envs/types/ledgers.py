"""What truly happened in an episode, counted."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ledger:
    """What happened in one lane since its reset.

    ``fresh_time`` is the integral over time of the importance of the pages that are fresh, and
    ``alive_time`` that of all existing pages; ``hits`` are requests served with a fresh copy;
    ``changes_found`` are crawls that found their page changed and ``wasted`` those of pages that
    do not exist. ``penalty_time`` is the integral of the sum over existing pages of importance
    times the penalty of the changes that no crawl has found, None where none is counted. ``probes``
    are the crawls that only looked, and ``denied`` those that an empty bucket of tokens prevented.
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
    probes: int = 0
    denied: int = 0

    @property
    def freshness(self) -> float:
        """Importance-weighted share of page time that was fresh, in [0, 1]; NaN before time 0+."""
        return self.fresh_time / self.alive_time if self.alive_time > 0.0 else math.nan

    @property
    def accuracy(self) -> float:
        """Share of requests served fresh, in [0, 1]; NaN when nothing was requested."""
        return self.hits / self.requests if self.requests else math.nan

    @property
    def cost(self) -> float:
        """Sum over pages of importance times penalty, averaged over time: J of LambdaCrawl.

        NaN where no penalty is counted, and before time 0+.
        """
        return self._penalty_by(self.time)

    @property
    def penalty(self) -> float:
        """Importance-weighted mean penalty of a page, averaged over time; NaN like the cost."""
        return self._penalty_by(self.alive_time)

    def _penalty_by(self, amount: float) -> float:
        return (
            math.nan if self.penalty_time is None or amount <= 0.0 else self.penalty_time / amount
        )


@dataclass(frozen=True, slots=True)
class OfferLedger(Ledger):
    """What happened in one lane of shopping offers since its reset; requests are clicks.

    ``offer_freshness`` is the share of the offers that was fresh at midnight, averaged over the
    days that are over (Han et al. 2020, eq. 3); NaN before the first midnight.
    """

    offer_freshness: float = math.nan


@dataclass(frozen=True, slots=True)
class FragmentLedger(Ledger):
    """What happened in one lane of pages with fragments since its reset.

    ``divergence_time`` is the integral over time of the importance of existing pages times the
    divergence of their copies: the Jaccard distance of the fragments, live and held.
    """

    divergence_time: float = 0.0

    @property
    def divergence(self) -> float:
        """Importance-weighted mean divergence, in [0, 1]; NaN before time 0+ (eq. 2)."""
        return self.divergence_time / self.alive_time if self.alive_time > 0.0 else math.nan
