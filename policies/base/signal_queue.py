"""Signal responses: crawls made in response to signals, their shares and their order."""

from __future__ import annotations

from collections import deque

import numpy as np

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import RESPONSE_DUE


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
        """Add signals of pages, (n,), in order of time."""
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
