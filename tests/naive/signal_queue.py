"""The slow, obvious twin of a sequence with signal responses: lists, and exact sums of shares."""

from __future__ import annotations

from fractions import Fraction
from math import floor

ROUNDING = Fraction(1, 10**9)


class NaiveResponses:
    """Chooses the next crawl, after signals that are added one by one."""

    def __init__(self, pages, answered=None):
        self.pages = [int(page) for page in pages]
        self.share = [] if answered is None else [Fraction(float(share)) for share in answered]
        self.account = [Fraction(0)] * len(self.share)
        self.queue = []
        self.turn = 0

    def on_signal(self, page):
        if self.share:
            self.account[page] += self.share[page]
            if page not in self.queue and self.account[page] >= 1 - ROUNDING:
                self.queue.append(page)

    def crawl(self):
        """Return the page of the next slot."""
        if self.queue:
            page = self.queue.pop(0)
            self.account[page] -= floor(self.account[page] + ROUNDING)
            return page
        page = self.pages[self.turn % len(self.pages)]
        self.turn += 1
        return page
