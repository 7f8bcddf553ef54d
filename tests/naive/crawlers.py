"""Slow, obvious twins of public crawlers: one page at a time, and lists instead of heaps."""

from __future__ import annotations

import math


class NutchPage:
    """A page of Nutch's AdaptiveFetchSchedule with its default configuration; time in days."""

    def __init__(self, time=0.0, sync_delta=True):
        self.interval = 30 * 86400.0
        self.modified = time
        self.sync_delta = sync_delta
        self.due = time + 30.0

    def crawl(self, time, changed):
        if changed:
            self.interval *= 0.8
            self.modified = time
        else:
            self.interval *= 1.4
        reference = time
        if self.sync_delta:
            delta = (time - self.modified) * 86400.0
            if delta > self.interval:
                self.interval = delta
            reference = time - 0.3 * delta / 86400.0
        self.interval = min(max(self.interval, 60.0), 365 * 86400.0)
        self.due = reference + self.interval / 86400.0
        if self.due - time > 90.0:
            self.due = time + 90.0
            if self.interval > 90 * 86400.0:
                self.interval = 0.9 * 90 * 86400.0


class StormPage:
    """A page of StormCrawler's AdaptiveScheduler with its defaults; time in days."""

    def __init__(self, time=0.0):
        self.interval = 1440
        self.due = time + 1.0

    def crawl(self, time, changed):
        if changed:
            self.interval = math.floor(0.5 * self.interval + 0.5 * 60)
        else:
            self.interval = min(math.floor(1.5 * self.interval), 20160)
        self.due = time + self.interval / 1440


def first_due(pages, alive=None):
    """Return the existing page that is due first, the lowest index among equals."""
    return min(
        (page.due, number) for number, page in enumerate(pages) if alive is None or alive[number]
    )[1]
