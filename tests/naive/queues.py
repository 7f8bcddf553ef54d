"""Slow, obvious twins of crawlers' queues: one page at a time, and lists."""

from __future__ import annotations


class LagPage:
    """An origin of Software Heritage's scheduler; times in days."""

    def __init__(self):
        self.last_visit, self.last_update, self.signals = 0.0, None, 0
        self.position, self.offset = None, 4

    def stride(self):
        if self.offset < 2:
            return 1
        return 2 if self.offset < 5 else 4 ** (self.offset - 4)


class LagScheduler:
    """Software Heritage's policies of visited origins, in turns of 2 and 1."""

    def __init__(self, num_pages, weights=(40, 20), cooldown=0.5):
        self.pages = [LagPage() for _ in range(num_pages)]
        self.weights, self.cooldown, self.front = weights, cooldown, 0

    def visit(self, number, time, changed):
        page = self.pages[number]
        if page.last_update is None:
            self.front = max(self.front, page.position or 0)
        page.offset = min(max(page.offset + (-2 if changed else 1), 0), 10)
        page.position = (page.position or self.front) + page.stride()
        page.last_visit, page.signals = time, 0

    def signal(self, number, time):
        self.pages[number].last_update = time
        self.pages[number].signals += 1

    def next(self, count, time, slot, alive):
        """The pages of ``count`` slots from number ``slot`` on."""
        taken = []
        free = [n for n in range(len(self.pages)) if alive[n]]
        for k in range(slot, slot + count):
            lag, queue = self.weights
            # The share lag / (lag + queue) of k + 1 slots less that of k slots.
            turn = (k + 1) * lag // (lag + queue) - k * lag // (lag + queue)
            order = [self.by_lag, self.by_position] if turn else [self.by_position, self.by_lag]
            rested = [n for n in free if n not in taken]
            rested = [n for n in rested if time - self.pages[n].last_visit >= self.cooldown]
            page = order[0](rested)
            page = order[1](rested) if page is None else page
            if page is None:
                break
            taken.append(page)
        rest = sorted((self.pages[n].last_visit, n) for n in free if n not in taken)
        return taken + [n for _, n in rest[: count - len(taken)]]

    def by_lag(self, numbers):
        """The page whose last update is longest after its last visit."""
        lags = [
            (self.pages[n].last_visit - self.pages[n].last_update, n)
            for n in numbers
            if self.pages[n].signals
        ]
        return min(lags)[1] if lags else None

    def by_position(self, numbers):
        """The first page in the queue of those without an update."""
        line = [
            (self.pages[n].position or 0, n) for n in numbers if self.pages[n].last_update is None
        ]
        return min(line)[1] if line else None


class Tiers:
    """Tiers of equal numbers of pages, ranked once a round."""

    def __init__(self, importance, bandwidth, intervals=(1.0, 4.0, 16.0)):
        self.importance, self.bandwidth, self.intervals = importance, bandwidth, intervals
        m = len(importance)
        self.last, self.changes, self.observed = [0.0] * m, [0] * m, [0.0] * m
        self.again = 0.0

    def visit(self, page, time, changed):
        self.observed[page] += time - self.last[page]
        self.changes[page] += changed
        self.last[page] = time

    def rank(self, time):
        if time < self.again:
            return
        m = len(self.importance)
        cycle = m / self.bandwidth
        self.again = time + cycle
        rate = [(self.changes[n] + 1) / (self.observed[n] + cycle) for n in range(m)]
        order = sorted(range(m), key=lambda n: (-self.importance[n] * rate[n], n))
        count = len(self.intervals)
        tier = {
            n: next(k for k in range(count) if i < (k + 1) * m // count)
            for i, n in enumerate(order)
        }
        crawls = sum(1.0 / self.intervals[tier[n]] for n in range(m))
        self.interval = [self.intervals[tier[n]] * crawls / self.bandwidth for n in range(m)]

    def due(self, count):
        """The pages that are due first."""
        order = sorted((self.last[n] + self.interval[n], n) for n in range(len(self.last)))
        return [n for _, n in order[:count]]
