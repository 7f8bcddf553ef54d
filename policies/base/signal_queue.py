"""Signals that are answered by crawls: in which share, and in which order."""

from __future__ import annotations

from collections import deque

import numpy as np

from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import RESPONSE_DUE


def response_share(rates: FloatArray, change_rate: FloatArray) -> FloatArray:
    """The shares of pages' changes that make as many crawls as ``rates``, at most 1, (m,).

    Args:
        rates: crawls per unit of time, >= 0, (m,).
        change_rate: changes per unit of time, each of them signalled, >= 0, (m,).
    """
    return np.divide(rates, change_rate, out=np.ones_like(rates), where=rates < change_rate)


class ResponseQueue:
    """The pages whose signals are to be answered, first come, first served.

    Every signal adds its page's share to the page's account, and a page whose account reaches 1
    joins the queue. When it is taken off, what is below 1 stays on its account: of a page's first n
    signals floor(share n) are answered, or fewer where one crawl that had to wait answers for
    several. :class:`crawl_envs.types.compiled_policies.CompiledSequence` goes by the same rule.

    Args:
        share: the share of its signals that is answered, in [0, 1], (m,).

    Attributes:
        share: may be replaced; accounts and queue stay.
        account: what stands on each page's account, (m,).
    """

    def __init__(self, share: FloatArray) -> None:
        self.share = share
        self.account: FloatArray = np.zeros(share.shape)
        self._waiting: deque[int] = deque()

    def __len__(self) -> int:
        """How many pages wait."""
        return len(self._waiting)

    def on_signal(self, pages: IntArray) -> None:
        """Take in signals of pages, (n,), in the order that they came."""
        account = self.account
        for page in pages.tolist():
            due = account[page] >= RESPONSE_DUE
            account[page] += self.share[page]
            if not due and account[page] >= RESPONSE_DUE:
                self._waiting.append(page)

    def take(self) -> int:
        """Take the first page off the queue, whether it exists or not; IndexError if none waits."""
        page = self._waiting.popleft()
        while self.account[page] >= RESPONSE_DUE:
            self.account[page] -= 1.0
        return page
