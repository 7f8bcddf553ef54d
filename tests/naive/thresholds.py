"""The slow, obvious twin of crawling at thresholds: at every step it looks at every page."""

from __future__ import annotations

import math

from tests.naive import pages as naive


class World(naive.World):
    """Plays rules of (start, threshold, later_threshold, later_share, signal_weight, timed)."""

    def __init__(self, instance, events, rules, *, rng=0, **more):
        super().__init__(instance, events, epoch=1.0, **more)
        self.rules, self.rng = list(rules), naive.Stream(rng, 0)
        self.rule, self.targets = rules[0], [math.inf] * len(self.pages)

    def play(self, horizon):
        ends = [rule.start for rule in self.rules[1:]] + [horizon]
        for rule, end in zip(self.rules, ends, strict=True):
            self.rule = rule
            for number in range(len(self.pages)):
                self.choose_target(number)
            while self.step(min(end, horizon)):
                pass
        self.enter()
        return self

    def choose_target(self, number):
        self.targets[number] = float(self.rule.threshold[number])
        share = float(self.rule.later_share[number])
        if share > 0.0 and self.rng.uniform() <= share:
            self.targets[number] = float(self.rule.later_threshold[number])

    def due(self, number):
        page, target = self.pages[number], self.targets[number]
        if not page.alive or target == math.inf:
            return math.inf
        counted = 0.0
        for source, weights in enumerate(self.rule.signal_weight):
            received = page.signals.count(source)
            if received:
                counted += float(weights[number]) * received
        if self.rule.timed[number]:
            return max(page.since + (target - counted), self.time)
        return self.time if counted >= target else math.inf

    def step(self, end):
        """Play the next crawl or event, whichever is first; False if it is not before the end."""
        due, number = min((self.due(number), number) for number in range(len(self.pages)))
        if min(due, self.next_event_time()) >= end:
            self.pass_time(end)
            return False
        if due <= self.next_event_time():
            self.pass_time(due)
            self.crawl(number)
        else:
            self.play_event()
        return True

    def renew(self, number, changed):
        """Start a new cycle with a current copy."""
        super().renew(number, changed)
        if self.pages[number].alive:
            self.choose_target(number)
