"""The slow, obvious twin of crawling at random instants, at rates and on shares of the signals.

The crawls of all pages are one Poisson process. Time at the total rate uses up a unit exponential,
and the remainder is kept when rates change. Random numbers are a stream of their own: one uniform
for an exponential, one for a page, one for a signal with a chance. A token bucket starts full.
"""

from __future__ import annotations

import math

import numpy as np

from tests.naive import pages as naive

SLACK = 1e-9


class World(naive.World):
    """One lane that stands at time 0; its actions are rates and not pages."""

    def __init__(self, instance, events, *, seed, episode=0, epoch=1.0, bucket=math.inf, **more):
        self.rng = naive.Stream(naive.roots(seed)[2], episode)
        self.hazard = self.rng.exponential(1.0)
        self.total, self.due = 0.0, math.inf
        self.bucket = self.tokens = bucket
        self.filled_at, self.refill = 0.0, 0.0
        self.denied = 0
        super().__init__(instance, events, epoch=epoch, **more)

    def play_round(self):
        """Crawl at equal rates in as many epochs as one crawl of each page takes; the log.

        There is no bucket.
        """
        bucket, self.bucket = self.bucket, math.inf
        alive = np.array([float(page.alive) for page in self.pages])
        spend, bandwidth = float(alive @ np.array(self.cost)), self.instance.bandwidth
        self.lead = math.ceil(spend / bandwidth / self.epoch - SLACK)
        crawls, signals = [], []
        for number in range(self.lead):
            until = naive.slot_time(*self.clock, number + 1)
            self.play_until(until, alive * (bandwidth / spend), [0.0] * alive.size)
            crawls, signals = crawls + self.slot.crawls, signals + self.slot.signals
        self.bucket = self.tokens = bucket
        self.filled_at = self.time
        return crawls, signals

    def play_epoch(self, rates, chances, refill=0.0):
        """Crawl at these rates up to the next decision."""
        self.refill = refill
        self.play_until(self.next_decision(), rates, chances)

    def play_until(self, until, rates, chances):
        """Crawl at these rates from now on, and answer signals with these chances."""
        self.slot, self.denied = naive.Slot(), 0
        self.set_total(rates)
        table = naive.AliasTable([float(rate) for rate in rates])
        while True:
            event_time = self.next_event_time()
            if min(self.due, event_time) >= until:
                break
            if self.due <= event_time:
                self.pass_time(self.due)
                self.crawl_if_allowed(table.draw(self.rng))
                self.due += self.rng.exponential(1.0) / self.total
                continue
            number, kind = self.play_event()
            signalled = naive.SIGNAL <= kind < naive.BIRTH
            chance = float(chances[number]) if signalled and self.pages[number].alive else 0.0
            if chance > 0.0 and self.rng.uniform() <= chance:
                self.crawl_if_allowed(number)
        self.pass_time(until)
        self.enter()
        self.ledger["denied"] += self.denied

    def set_total(self, rates):
        total = 0.0
        for rate in rates:
            total += float(rate)
        if total == self.total:
            return
        if self.total > 0.0:
            self.hazard = (self.due - self.time) * self.total
        self.total = total
        self.due = self.time + self.hazard / total if total > 0.0 else math.inf

    def crawl_if_allowed(self, number):
        if self.bucket < math.inf:
            gained = (self.time - self.filled_at) * self.refill
            self.tokens, self.filled_at = min(self.tokens + gained, self.bucket), self.time
            if self.tokens < self.cost[number] - SLACK:
                self.denied += 1
                return
            self.tokens -= self.cost[number]
        self.crawl(number)
