"""The page of each slot, by crawl rates that may change and by due responses to signals."""

from __future__ import annotations

import numpy as np

from crawl_envs.compiled.compiling import compiled
from crawl_envs.types import BoolArray, FloatArray
from policies.base.schedules import ResponseQueue

NO_CREDIT = 1e-9
"""A credit up to this counts as 0."""


@compiled()
def next_in_turn(
    shares: FloatArray, length: FloatArray, credit: FloatArray, alive: BoolArray
) -> int:
    """Return the page that gets the next slot, and add every page's share of it to its credit.

    It is the first due among the pages whose next crawl is released, ties to the lowest index: the
    earliest-deadline rule of :func:`policies.base.schedules.low_discrepancy`, slot by slot. O(m).

    Args:
        shares: shares of the slots, >= 0, with sum 1, (m,).
        length: length of a slot of each page, in slots, > 0, (m,); all 1 without costs.
        credit: share of the slots so far minus crawls so far, (m,), with sum 0 weighted by length;
            changed.
        alive: pages that may be crawled, at least one, (m,).
    """
    best, soonest, richest, largest = -1, np.inf, -1, -np.inf
    for page in range(shares.size):
        if not alive[page]:
            continue
        after = credit[page] + shares[page] * length[page]
        if after > largest:
            richest, largest = page, after
        if shares[page] > 0.0 and after > NO_CREDIT:
            due = np.ceil((1.0 - credit[page]) / shares[page] * (1.0 - 1e-12))
            if due < soonest:
                best, soonest = page, due
    if best < 0:
        best = richest
    for page in range(shares.size):
        credit[page] += shares[page] * length[best]
    credit[best] -= 1.0
    return best


class EvenSlots:
    """Assigns slots to pages by their rates, and to pages with due signal responses.

    Signal responses come first, in the order of :class:`policies.base.schedules.ResponseQueue`,
    with probabilities as shares. :func:`next_in_turn` assigns all other slots; if no page has a
    rate, they go to the largest account. Credits and accounts persist when rates change, so that
    every page gets the crawls of all plans together, within one crawl while rates are constant.
    With changing rates, no page is a crawl early; in trials with new random rates every few slots,
    none was late by more than 1.6 crawls.

    Where crawls have costs, a slot is as long as its crawl costs.

    Args:
        num_pages: m.
        cost: cost of a crawl of each page, > 0, (m,); None for 1.

    Attributes:
        credit: as for :func:`next_in_turn`, (m,).
        responses: the pending signal responses.
    """

    def __init__(self, num_pages: int, cost: FloatArray | None = None) -> None:
        self._cost = np.ones(num_pages) if cost is None else cost
        self._length: FloatArray = np.ones(num_pages)
        self.credit: FloatArray = np.zeros(num_pages)
        self.responses = ResponseQueue(np.zeros(num_pages))
        self._shares: FloatArray = np.zeros(num_pages)

    def plan(self, rates: FloatArray, answered: FloatArray) -> None:
        """Set new crawl rates, (m,), and new shares of signals that get a response, (m,)."""
        total = float(rates.sum())
        self._shares = rates / total if total > 0.0 else np.zeros_like(rates)
        self.responses.share = answered
        self.credit[self._shares == 0.0] = 0.0
        if total > 0.0:
            self._length = self._cost / float((rates * self._cost).sum() / total)
        self.credit -= self._shares * (self._length * self.credit).sum()

    def take(self, alive: BoolArray) -> int:
        """Assign the next slot, and return its page; 0 where no page is alive."""
        if not alive.any():
            return 0
        while self.responses:
            page = self.responses.take()
            if alive[page]:
                return page
        if self._shares.any():
            return int(next_in_turn(self._shares, self._length, self.credit, alive))
        page = int(np.where(alive, self.responses.account, -np.inf).argmax())
        self.responses.account[page] -= 1.0
        return page
