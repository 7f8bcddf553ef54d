"""From crawl rates to crawls, one per slot.

A schedule is low-discrepancy when, at every slot, the number of crawls of each page is within one
of its share of the slots. Each crawl then has a window of slots, and always crawling the open
window that closes first meets all of them (Liu and Layland 1973; Tijdeman 1980). According to
secondary sources, Azar et al. (2018, Algorithm 3) turn optimal rates into a schedule in this way;
this module is a reconstruction, with the discrepancy bound that the name implies. The openings of
the windows are needed: with their ends alone, pages get ahead of their share without bound.
"""

from __future__ import annotations

import operator
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiling import compiled, inlined
from crawl_envs.types.heap import empty_heap, set_due

Method = Literal["deadline", "tijdeman"]

ROUNDING = 1e-12
"""Relative error of k / p that is still rounded to the next whole number."""


def low_discrepancy(rates: ArrayLike, slots: int, *, method: Method = "deadline") -> IntArray:
    """Return crawls in proportion to ``rates``, spread as evenly as one crawl per slot allows.

    With shares p = rates / sum(rates) of n pages (pages of rate 0 are left out):

    - ``"deadline"``: the k-th crawl of a page is released at slot floor((k-1)/p) and due by
      ceil(k/p); each slot takes the released crawl that is due first. After every slot t,
      ``|crawls - p t| < 1``.
    - ``"tijdeman"``: the chairman rule. Among the pages with p t - crawls >= 1/(2n-2), the one
      with the earliest deadline. ``|crawls - p t| <= 1 - 1/(2n-2)``, the best possible bound.

    Ties go to the lowest index. A longer schedule begins with the shorter one.

    Args:
        rates: crawl rates >= 0 in any unit, shape (m,), not all zero.
        slots: length of the schedule, >= 0.
        method: one of the two rules.

    Returns:
        The page of each slot, int64, shape (slots,).

    Raises:
        ValueError: rates negative, not finite or all zero; slots not a whole number >= 0; unknown
            method.
    """
    pages, shares = _shares(rates)
    slots = _slots(slots)
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {get_args(Method)}, got {method!r}")
    if len(pages) == 1:
        return np.full(slots, pages[0], dtype=np.int64)
    margin = 0.0 if method == "deadline" else 1.0 / (2 * len(pages) - 2)
    chosen = _earliest_deadline(shares, slots, method == "tijdeman", margin)
    schedule: IntArray = pages[chosen]
    return schedule


def random(rates: ArrayLike, slots: int, rng: np.random.Generator) -> IntArray:
    """Draw independent crawls, with probabilities in proportion to the rates.

    Arguments and errors as for :func:`low_discrepancy`; one uniform draw of ``rng`` per slot.
    """
    pages, shares = _shares(rates)
    upper = np.cumsum(shares)
    drawn = np.searchsorted(upper, rng.random(_slots(slots)) * upper[-1], side="right")
    schedule: IntArray = pages[np.minimum(drawn, len(pages) - 1)]
    return schedule


def _shares(rates: ArrayLike) -> tuple[IntArray, FloatArray]:
    """Return the pages of positive rate, and their shares of the slots."""
    given = np.asarray(rates, dtype=np.float64)
    if given.ndim != 1:
        raise ValueError(f"rates must have shape (m,), got shape {given.shape}")
    if not (np.isfinite(given) & (given >= 0.0)).all():
        bad = given[~(np.isfinite(given) & (given >= 0.0))][0]
        raise ValueError(f"rates must be finite and >= 0, got {bad}")
    largest = given.max(initial=0.0)
    pages = np.flatnonzero(given / largest if largest > 0.0 else given)
    if len(pages) == 0:
        raise ValueError("rates must be positive for at least one page, got none")
    relative = given[pages] / largest
    return pages, relative / relative.sum()


def _slots(slots: int) -> int:
    try:
        whole = operator.index(slots)
    except TypeError:
        raise ValueError(f"slots must be a whole number >= 0, got {slots!r}") from None
    if whole < 0:
        raise ValueError(f"slots must be a whole number >= 0, got {slots!r}")
    return whole


@inlined()
def _window(share: float, crawls: int, exact: bool, margin: float) -> tuple[float, float]:
    """Return the first slot (from 0) of a page's next crawl, and the time by which it is due.

    Numbers within rounding of a whole number are rounded, so shares like 1/3 get exact windows.
    Before slot t more than (t + 1) * (1 - ROUNDING) crawls have been released, hence at least
    t + 1, and t have been made: below 1 / ROUNDING slots, there is always a released crawl.
    """
    if exact:
        opens = np.ceil((crawls + margin) / share * (1.0 - ROUNDING)) - 1.0
        due = min((crawls + 1.0 - margin) / share, 1e300)
        carry = 8193.0 * due
        return max(opens, 0.0), carry - (carry - due)  # due to 40 bits, so that ties are ties
    opens = np.floor(crawls / share * (1.0 + ROUNDING))
    return opens, np.ceil((crawls + 1.0) / share * (1.0 - ROUNDING))


@compiled()
def _earliest_deadline(shares: FloatArray, slots: int, exact: bool, margin: float) -> IntArray:
    """Return the page of each slot. A page is in the list of its release slot, or in the heap."""
    num_pages = shares.size
    chosen = np.empty(slots, np.int64)
    crawls = np.zeros(num_pages, np.int64)
    due = np.empty(num_pages)
    released_at = np.full(slots, -1, np.int64)
    next_released = np.full(num_pages, -1, np.int64)
    heap = empty_heap(num_pages)
    for page in range(num_pages - 1, -1, -1):
        opens, due[page] = _window(shares[page], 0, exact, margin)
        if opens < slots:
            next_released[page] = released_at[int(opens)]
            released_at[int(opens)] = page
    for slot in range(slots):
        page = released_at[slot]
        while page >= 0:
            set_due(heap, page, due[page])
            page = next_released[page]
        page = heap.entries[0]
        chosen[slot] = page
        crawls[page] += 1
        opens, due[page] = _window(shares[page], crawls[page], exact, margin)
        set_due(heap, page, due[page] if opens <= slot else np.inf)
        if slot < opens < slots:
            next_released[page] = released_at[int(opens)]
            released_at[int(opens)] = page
    return chosen
