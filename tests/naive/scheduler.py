"""The slow, obvious twin of the live scheduler: one page and one rule at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Page:
    """A page; ``row`` decides among equal values."""

    row: int
    parameters: list
    host: object = None
    copy: float | None = None
    counted: float = 0.0
    state: str = "ready"  # or new, sent, failed, parked
    sent: float = -math.inf
    turn: int = 0  # number of fetches before it
    later: list = field(default_factory=list)  # signals since it was sent


@dataclass
class Host:
    gap: float = 0.0
    most: float = math.inf
    opens: float = -math.inf
    busy: int = 0
    parked: list = field(default_factory=list)


class NaiveScheduler:
    """Answers as :class:`policies.scheduler.CrawlScheduler`, with a value of each page."""

    def __init__(self, value, bandwidth, *, timeout=1.0, new_share=0.5):
        self.value, self.bandwidth, self.timeout = value, bandwidth, timeout
        self.new_share, self.credit, self.allowance, self.time = new_share, 0.0, 0.0, 0.0
        self.pages, self.hosts, self.line = {}, {}, []
        self.limits, self.turns = (0.0, math.inf), 0

    def add(self, pages):
        pages = list(pages)
        for name in sorted({page.host for _, page, _ in pages} - {None}):
            self.hosts.setdefault(name, Host(*self.limits))
        for key, page, _ in sorted(pages, key=lambda each: -each[2]):
            assert key not in self.pages
            self.pages[key] = page
            self.make_ready(key)

    def host(self, page):
        return self.hosts.get(page.host)

    def make_ready(self, key):
        page = self.pages[key]
        page.state = "ready" if page.copy is not None else "new"
        if page.state == "new":
            self.line.append(key)

    def remove(self, key):
        page = self.pages.pop(key)
        host = self.host(page)
        if page.state == "sent" and host:
            host.busy -= 1
        if page.state == "parked":
            host.parked.remove(key)
        self.line = [other for other in self.line if other != key]

    def advance(self, time):
        self.allowance += self.bandwidth * (time - self.time)
        self.time = time

    def signal(self, key, time, weight=1.0):
        page = self.pages.get(key)
        if page is None or page.copy is None or time < page.copy:
            return 1
        page.counted += weight
        if page.state in ("sent", "failed"):
            page.later.append((time, weight))
        return 0

    def report(self, key, time):
        self.advance(max(self.time, time))
        page = self.pages.get(key)
        if page is None:
            return 1
        newer = page.copy is None or time > page.copy
        if newer:
            page.copy = time
            page.counted = sum(weight for moment, weight in page.later if moment > time)
        page.later = []
        if page.state == "sent" and self.host(page):
            self.host(page).busy -= 1
        if page.state in ("sent", "failed") or (page.state == "new" and newer):
            self.line = [other for other in self.line if other != key]
            self.make_ready(key)
        return int(not newer)

    def fail(self, key):
        page = self.pages.get(key)
        if page and page.state == "sent":
            page.state = "failed"
            if self.host(page):
                self.host(page).busy -= 1

    def is_open(self, page):
        host = self.host(page)
        return host is None or (host.opens <= self.time and host.busy < host.most)

    def park(self, key):
        self.pages[key].state = "parked"
        self.host(self.pages[key]).parked.insert(0, key)

    def choose(self):
        if self.line:
            self.credit += self.new_share
        key = None
        if self.credit >= 1.0:
            key = self.next_new()
            self.credit -= 1.0
        for other in (self.next_ready, self.next_new):
            key = other() if key is None else key
        return key

    def next_new(self):
        while self.line:
            key = self.line.pop(0)
            if self.is_open(self.pages[key]):
                return key
            self.park(key)
        return None

    def next_ready(self):
        def rank(key):
            page = self.pages[key]
            return self.value(page.parameters, self.time - page.copy, page.counted), -page.row

        ready = [key for key, page in self.pages.items() if page.state == "ready"]
        for key in sorted(ready, key=rank, reverse=True):
            if self.is_open(self.pages[key]):
                return key
            self.park(key)
        return None

    def next_batch(self, time, count):
        assert time >= self.time
        self.advance(time)
        self.allowance = min(self.allowance, count)
        if self.allowance < 1.0 - 1e-9 or not self.pages:
            return []
        due = [
            (page.sent, page.turn, key)
            for key, page in self.pages.items()
            if page.state in ("sent", "failed") and page.sent + self.timeout <= time
        ]
        for _, _, key in sorted(due):
            page = self.pages[key]
            if page.state == "sent" and self.host(page):
                self.host(page).busy -= 1
            self.make_ready(key)
        for host in sorted(self.hosts.values(), key=lambda each: each.opens):
            if host.parked and host.opens <= time and host.busy < host.most:
                keys, host.parked = host.parked, []
                for key in keys:
                    self.make_ready(key)
        chosen = []
        while len(chosen) < count and self.allowance > 1.0 - 1e-9:
            key = self.choose()
            if key is None:
                break
            page = self.pages[key]
            page.state, page.sent, page.turn = "sent", time, self.turns
            self.turns += 1
            if self.host(page):
                self.host(page).busy += 1
                self.host(page).opens = time + self.host(page).gap
            self.allowance -= 1.0
            chosen.append(key)
        return chosen
