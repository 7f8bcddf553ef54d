"""Which page gets each slot: from crawl rates, and from signals, to crawls.

A schedule is low-discrepancy when, at every slot, the number of crawls of each page is within one
of its share of the slots. Each crawl then has a window of slots, and always crawling the open
window that closes first meets all of them (Liu and Layland 1973; Tijdeman 1980). According to
secondary sources, Azar et al. (2018, Algorithm 3) turn optimal rates into a schedule in this way;
this module is a reconstruction, with the discrepancy bound that the name implies. The openings of
the windows are needed: with their ends alone, pages get ahead of their share without bound.

Where crawls have costs, a crawl takes as much time as it costs. Windows are then in time, in units
of the mean crawl; they open in time, but a long crawl may end after others were due.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.compiled.heap import empty_heap, set_due
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.arguments import whole
from crawl_envs.types.compiled_policies import RESPONSE_DUE

ROUNDING = 1e-12
"""Relative error of k / p that is still rounded to the next whole number."""
SLACK = 1e-9
"""Rounding error of a time in slots."""


def low_discrepancy(rates: ArrayLike, slots: int, cost: FloatArray | None = None) -> IntArray:
    """Return crawls in proportion to ``rates``, spread as evenly as one crawl per slot allows.

    With shares p = rates / sum(rates), the k-th crawl of a page is released at slot floor((k-1)/p)
    and due by ceil(k/p); each slot takes the released crawl that is due first. After every slot t,
    ``|crawls - p t| < 1``. Ties go to the lowest index. A longer schedule begins with the shorter
    one.

    Args:
        rates: crawl rates >= 0 in any unit, shape (m,), not all zero.
        slots: length of the schedule, >= 0: its crawls, or the cost that they reach together.
        cost: cost of a crawl of each page, > 0, (m,); None for 1.

    Returns:
        The page of each crawl, int64, shape (slots,) without costs.

    Raises:
        ValueError: an argument out of its range.
    """
    pages, shares = _shares(rates)
    costs = np.ones(len(pages)) if cost is None else cost[pages]
    mean_cost = float((shares * costs).sum() / shares.sum())
    end = whole("slots", slots, 0) / mean_cost
    schedule: IntArray = pages[_earliest_deadline(shares, costs / mean_cost, end)]
    return schedule


def random(rates: ArrayLike, slots: int, rng: np.random.Generator) -> IntArray:
    """Draw independent crawls, with probabilities in proportion to the rates.

    Arguments and errors as for :func:`low_discrepancy`; one uniform draw of ``rng`` per slot.
    """
    pages, shares = _shares(rates)
    upper = np.cumsum(shares)
    drawn = np.searchsorted(upper, rng.random(whole("slots", slots, 0)) * upper[-1], side="right")
    schedule: IntArray = pages[np.minimum(drawn, len(pages) - 1)]
    return schedule


def _shares(rates: ArrayLike) -> tuple[IntArray, FloatArray]:
    """Return the pages with a positive rate, and each one's share of the slots."""
    values = np.asarray(rates, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"rates must have shape (m,), got shape {values.shape}")
    bad = ~(np.isfinite(values) & (values >= 0.0))
    if bad.any():
        raise ValueError(f"rates must be finite and >= 0, got {values[bad][0]}")
    largest = values.max(initial=0.0)
    pages = np.flatnonzero(values / largest if largest > 0.0 else values)
    if len(pages) == 0:
        raise ValueError("rates must be positive for at least one page, got none")
    relative = values[pages] / largest
    return pages, relative / relative.sum()


@inlined()
def _window(share: float, crawls: int) -> tuple[float, float]:
    """Return the first slot (from 0) of a page's next crawl, and the time by which it is due.

    Numbers within rounding of a whole number are rounded, so shares like 1/3 get exact windows.
    Before slot t more than (t + 1) * (1 - ROUNDING) crawls have been released, hence at least
    t + 1, and t have been made: below 1 / ROUNDING slots, there is always a released crawl.
    """
    opens = np.floor(crawls / share * (1.0 + ROUNDING))
    return opens, np.ceil((crawls + 1.0) / share * (1.0 - ROUNDING))


@compiled()
def _earliest_deadline(shares: FloatArray, length: FloatArray, end: float) -> IntArray:
    """Return the page of each crawl up to time ``end``, in slots; ``length`` is that of a crawl.

    A page is in the list of its release slot, or in the heap. No page is more than a crawl ahead,
    which bounds their number.
    """
    num_pages, slots = shares.size, int(np.ceil(end))
    schedule = np.empty(slots + num_pages + 1, np.int64)
    crawls = np.zeros(num_pages, np.int64)
    due = np.empty(num_pages)
    released_at = np.full(slots, -1, np.int64)
    next_released = np.full(num_pages, -1, np.int64)
    heap = empty_heap(num_pages)
    for page in range(num_pages - 1, -1, -1):
        opens, due[page] = _window(shares[page], 0)
        if opens < slots:
            next_released[page] = released_at[int(opens)]
            released_at[int(opens)] = page
    now, number, slot = 0.0, 0, 0
    while now < end - SLACK and number < schedule.size:
        while slot < slots and (slot <= now + SLACK or heap.size[0] == 0):
            page = released_at[slot]
            while page >= 0:
                set_due(heap, page, due[page])
                page = next_released[page]
            slot += 1
        page = heap.entries[0]
        schedule[number] = page
        number += 1
        now += length[page]
        crawls[page] += 1
        opens, due[page] = _window(shares[page], crawls[page])
        set_due(heap, page, due[page] if opens < slot else np.inf)
        if slot <= opens < slots:
            next_released[page] = released_at[int(opens)]
            released_at[int(opens)] = page
    return schedule[:number]


def response_share(rates: FloatArray, change_rate: FloatArray) -> FloatArray:
    """Return the shares of pages' changes that make as many crawls as ``rates``, <= 1, (m,).

    Args:
        rates: crawls per unit of time, >= 0, (m,).
        change_rate: changes per unit of time, each of them signalled, >= 0, (m,).
    """
    return np.divide(rates, change_rate, out=np.ones_like(rates), where=rates < change_rate)


class ResponseQueue:
    """A first-in, first-out queue of the pages to crawl in response to signals.

    Every signal adds its page's share to the page's account, and a page whose account reaches 1
    joins the queue. When it is taken off, the fraction below 1 stays on its account: the first n
    signals of a page get floor(share n) responses, or fewer where one late crawl serves for
    several. :class:`crawl_envs.types.compiled_policies.CompiledSequence` follows the same rule.

    Args:
        share: the share of each page's signals that get a response, in [0, 1], (m,).

    Attributes:
        share: may be replaced; accounts and queue stay.
        account: the balance of each page's account, (m,).
    """

    def __init__(self, share: FloatArray) -> None:
        self.share = share
        self.account: FloatArray = np.zeros(share.shape)
        self._queue: deque[int] = deque()

    def __len__(self) -> int:
        """Return the number of pages in the queue."""
        return len(self._queue)

    def on_signal(self, pages: IntArray) -> None:
        """Add the signals of pages, (n,) in order of time, and queue pages that are due."""
        account = self.account
        for page in pages.tolist():
            due = account[page] >= RESPONSE_DUE
            account[page] += self.share[page]
            if not due and account[page] >= RESPONSE_DUE:
                self._queue.append(page)

    def take(self) -> int:
        """Remove and return the first page, whether it exists or not; IndexError if empty."""
        page = self._queue.popleft()
        while self.account[page] >= RESPONSE_DUE:
            self.account[page] -= 1.0
        return page
