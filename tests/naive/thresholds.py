"""The slow, obvious twin of crawling at thresholds: at every step it looks at every page.

Events are (time, page, what), with ``what`` the name of a kind, or ("signal", source), or
("change", source) for a change that is signalled.
"""

from __future__ import annotations

import math

from tests.naive import pages as naive


class Page:
    def __init__(self, alive, sources):
        self.alive, self.sources = alive, sources
        self.begin(0.0)

    def begin(self, time):
        """Start a new cycle with a fresh copy."""
        self.since, self.fresh, self.signals = time, True, [0] * self.sources


class World:
    """Plays rules of (start, threshold, later_threshold, later_share, signal_weight, timed)."""

    def __init__(self, instance, events, rules, *, rng=0, alive=None):
        self.weights = [float(weight) for weight in instance.importance]
        alive = alive or [True] * len(self.weights)
        self.pages = [Page(there, len(rules[0].signal_weight)) for there in alive]
        self.targets = [math.inf] * len(self.pages)
        self.events, self.rules = list(events), list(rules)
        self.rng = naive.Stream(rng, 0)
        self.time = self.fresh_time = self.alive_time = 0.0
        self.crawls = []  # (page, time, elapsed, changed)
        self.requests = self.hits = self.changes = self.signals = 0

    def play(self, horizon):
        ends = [rule.start for rule in self.rules[1:]] + [horizon]
        for rule, end in zip(self.rules, ends, strict=True):
            for number in range(len(self.pages)):
                self.choose_target(rule, number)
            while self.step(rule, min(end, horizon)):
                pass
        return self

    def choose_target(self, rule, number):
        self.targets[number] = float(rule.threshold[number])
        share = float(rule.later_share[number])
        if share > 0.0 and self.rng.uniform() <= share:
            self.targets[number] = float(rule.later_threshold[number])

    def due(self, rule, number):
        page, target = self.pages[number], self.targets[number]
        if not page.alive or target == math.inf:
            return math.inf
        counted = 0.0
        for source, received in enumerate(page.signals):
            if received:
                counted += float(rule.signal_weight[source][number]) * received
        if rule.timed[number]:
            return max(page.since + (target - counted), self.time)
        return self.time if counted >= target else math.inf

    def step(self, rule, end):
        """Play the next crawl or event, whichever is first; False if it is not before the end."""
        due, number = min((self.due(rule, number), number) for number in range(len(self.pages)))
        event_time = self.events[0][0] if self.events else math.inf
        if min(due, event_time) >= end:
            self.pass_time(end)
            return False
        if due <= event_time:
            self.pass_time(due)
            page = self.pages[number]
            self.crawls.append((number, due, due - page.since, not page.fresh))
            page.begin(due)
            self.choose_target(rule, number)
        else:
            self.pass_time(event_time)
            self.happen(rule, *self.events.pop(0)[1:])
        return True

    def happen(self, rule, number, what):
        page = self.pages[number]
        if what in ("birth", "death"):
            if page.alive == (what == "birth"):
                return
            page.alive = what == "birth"
            page.begin(self.time)
            if page.alive:
                self.choose_target(rule, number)
        if not page.alive:
            return
        if what == "request":
            self.requests += 1
            self.hits += page.fresh
        if what == "change" or what[0] == "change":
            self.changes += 1
            page.fresh = False
        if isinstance(what, tuple):
            self.signals += 1
            page.signals[what[1]] += 1

    def pass_time(self, until):
        there = [
            (weight, page)
            for weight, page in zip(self.weights, self.pages, strict=True)
            if page.alive
        ]
        passed = until - self.time
        self.alive_time += passed * math.fsum(weight for weight, _ in there)
        self.fresh_time += passed * math.fsum(weight for weight, page in there if page.fresh)
        self.time = until
