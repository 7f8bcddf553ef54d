"""A slow twin of a correction's inputs: from the complete log, page by page."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from policies import bind
from policies.ncis.belief import BeliefNCIS, layout
from policies.ncis.belief.kernels import read_page
from policies.ncis.belief.policy import places_of

MEANS = (0.0, 0.1, 0.3, 0.8, 2.0)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)
STEPS, WEIGHTS = (1.0 + NODES) / 2.0, WEIGHTS / 2.0
"""Shares of a span of time and their weights: the quadrature of a mean over it."""


class Crawl(NamedTuple):
    """A crawl, with the believed probability of a change and the kind of state of its page."""

    page: int
    time: float
    elapsed: float
    changed: bool
    expected: float
    kind: int


class Twin:
    """Follows the steps of an environment of one source, and keeps all its logs."""

    def __init__(self, env) -> None:
        self.core = env.unwrapped
        self.belief = bind(BeliefNCIS(), env)
        self.problem = self.core.problem
        self.cycle = self.problem.num_pages / self.problem.bandwidth
        group = self.problem.group
        self.group = np.zeros(self.problem.num_pages, int) if group is None else group
        self.grouped = group is not None
        self.crawls: list[Crawl] = []
        self.signals: list[tuple[int, float]] = []
        self.broadcasts: list[tuple[int, float]] = []
        self.before: list[tuple[float, int]] = []
        self.hypotheses: list[list[float]] = []
        self.weighed: list[list[float]] = []

    def follow(self) -> None:
        """Add the last step; call it at every decision."""
        log, tracker = self.core.last_log(), self.core.tracker()
        for k in range(log.page.size):
            page = int(log.page[k])
            expected, kind = self.before[page]
            self.weighed.append([*self.hypotheses[page], expected])
            self.crawls.append(
                Crawl(page, log.time[k], log.elapsed[k], bool(log.changed[k]), expected, kind)
            )
        for time in sorted(set(log.signal_time.tolist())):
            pages = log.signal_page[log.signal_time == time]
            for group in sorted(set(self.group[pages].tolist())):
                reported = [int(page) for page in pages if self.group[page] == group]
                most = 2 * len(reported) > int(np.sum(self.group == group))
                if self.grouped and len(reported) > 1 and most:
                    self.broadcasts.append((group, time))
                else:
                    self.signals += [(page, time) for page in reported]
        self.belief.update()
        self.now = tracker.time
        self.elapsed = tracker.elapsed
        pages = range(self.problem.num_pages)
        self.before = [(1.0 - math.exp(-self.read(i)[0]), self.kind(i)) for i in pages]
        self.hypotheses = [
            [1.0 - math.exp(-self.read_hypothesis(page, mean)[0]) for mean in MEANS]
            for page in pages
        ]

    def read(self, page: int):
        memory = self.belief.of_lane().learner.memory
        at = places_of(self.problem)
        weights = np.empty(at.channels)
        row, own = memory.pages[page], memory.groups[memory.group[page]]
        read = read_page(row, own, memory.shared, at, self.now, self.elapsed[page], weights)
        return *read, weights, row, own, at

    def last(self, page: int) -> float:
        return max([crawl.time for crawl in self.crawls if crawl.page == page], default=0.0)

    def since(self, page: int) -> list[float]:
        start = self.last(page)
        return [time for number, time in self.signals if number == page and time > start]

    def has_broadcast(self, page: int) -> bool:
        start = self.last(page)
        return any(g == self.group[page] and time > start for g, time in self.broadcasts)

    def kind(self, page: int) -> int:
        signals = self.since(page)
        if not signals:
            return 5 if self.has_broadcast(page) else 0
        delay = (signals[0] - self.last(page)) / self.cycle
        return 1 + (delay > 0.15) + (delay > 0.5) + (delay > 1.2)

    def calibration(self, kind: int) -> float:
        crawls = [crawl for crawl in self.crawls if crawl.kind == kind]
        changes = sum(crawl.changed for crawl in crawls)
        return math.log((3.0 + changes) / (3.0 + sum(crawl.expected for crawl in crawls)))

    def inputs(self, page: int) -> list[float]:
        """Return the inputs of a page, in order."""
        x, expected_changes, rate, weights, row, own, at = self.read(page)
        mine = [crawl for crawl in self.crawls if crawl.page == page]
        return [
            *self._believed(page, mine, x, expected_changes, rate),
            *self._signals(page, mine, weights, row, at),
            *self._shared(page, x, weights, row, own, at),
            *self._timed(page, mine),
            *self._hypothesis(page, x, expected_changes, rate),
        ]

    def _believed(self, page, mine, x, expected_changes, rate):
        surprise = sum(
            0.35 * 0.65 ** (len(mine) - 1 - k) * (crawl.changed - crawl.expected)
            for k, crawl in enumerate(mine)
        )
        changed = [crawl for crawl in mine if crawl.changed]
        changed_at = -1e9
        if changed:
            middle = changed[-1].time - changed[-1].elapsed / 2.0
            changed_at = (self.between(page, changed[-1]) or [middle])[-1]
        gaps = (self.now - max([changed_at, *self.since(page)])) * rate
        weight = self.problem.importance[page] / self.problem.importance.mean()
        detected_at = changed[-1].time if changed else -1e9
        return [
            math.exp(-x),
            x / (1.0 + x),
            expected_changes / (1.0 + expected_changes),
            share(rate * self.cycle),
            share(self.elapsed[page] / self.cycle),
            share(weight),
            (1.0 if mine[-1].changed else -1.0) if mine else 0.0,
            surprise,
            share((self.now - detected_at) / self.cycle),
            len(mine) / (len(mine) + 3.0),
            share(self.now / self.cycle / 10.0),
            share(gaps),
            1.0 / (1.0 + ((gaps - 1.0) / 0.25) ** 2),
        ]

    def between(self, page: int, crawl: Crawl) -> list[float]:
        """Return the signals between a crawl of a page and the one before."""
        start = crawl.time - crawl.elapsed
        earlier = [c.time for c in self.crawls if c.page == page and c.time < crawl.time]
        start = max(earlier, default=0.0)
        return [t for number, t in self.signals if number == page and start < t <= crawl.time]

    def _signals(self, page, mine, weights, row, at):
        since, start = self.since(page), self.last(page)
        of_page = [time for number, time in self.signals if number == page]
        pace = sum(math.exp(-(of_page[-1] - time) / self.cycle) for time in of_page)
        late = pace / (1.0 + (self.now - of_page[-1]) / self.cycle) if of_page else 0.0
        usual = sum(row[at.believed + 1 + at.channels + c] for c in range(at.own)) * self.cycle
        evidence = sum(row[at.believed + 1 + c] * weights[c] for c in range(at.own))
        x, expected_changes, rate, *_ = self.read(page)
        changes = rate * self.elapsed[page]
        alone, value = (
            1.0 - (1.0 + count) * math.exp(-hazard)
            for count, hazard in ((changes, changes), (expected_changes, x))
        )
        without_signals = math.log((0.02 + alone) / (0.02 + value))
        echo = 0.0
        if mine:
            unsignalled = not self.between(page, mine[-1])
            echo = (1.0 if unsignalled else 0.0) if mine[-1].changed else -1.0
        own = [0.0, 0.0, 0.0, 0.0]
        if since:
            first = (since[0] - start) / self.cycle
            own = [
                share(len(since)),
                1.0 / (1.0 + 4.0 * (self.now - since[-1]) / self.cycle),
                first / (first + 0.5),
                share(evidence),
            ]
        return [
            *own,
            share(late / (0.5 + usual)),
            share(usual),
            echo if since else 0.0,
            self.calibration(self.kind(page)),
            self.calibration(1),
            without_signals,
            without_signals * self.calibration(1),
        ]

    def _shared(self, page, x, weights, row, own, at):
        group = self.group[page]
        crawls = [crawl for crawl in self.crawls if self.group[crawl.page] == group]
        fade = [0.95 ** (len(crawls) - 1 - k) for k in range(len(crawls))]
        changes = 1.0 + sum(w * crawl.changed for w, crawl in zip(fade, crawls, strict=True))
        expected = 1.0 + sum(w * crawl.expected for w, crawl in zip(fade, crawls, strict=True))
        broadcast = [0.0, 0.0, 0.0]
        if self.has_broadcast(page):
            number = int(own[at.listed + (int(own[at.broadcasts]) - 1) % layout.RING])
            event = self.belief.of_lane().learner.memory.events[number % layout.EVENTS]
            evidence = sum(
                row[at.believed + 1 + c] * weights[c] for c in range(at.own, at.channels)
            )
            broadcast = [
                share(evidence),
                share(event[layout.EXPECTED]),
                event[layout.WEIGHT] / (event[layout.WEIGHT] + event[layout.BASE]) - 0.5,
            ]
        return [math.log(changes / expected), *broadcast]

    def _timed(self, page, mine):
        cosine = sine = weight = 0.0
        for crawl in mine:
            signals = self.between(page, crawl)
            weight += 0.5 * (crawl.changed + crawl.expected)
            if signals:
                cosine += crawl.changed * float(np.mean(np.cos(self.angle(signals))))
                sine += crawl.changed * float(np.mean(np.sin(self.angle(signals))))
            else:  # the mean direction of the time since the crawl before, by quadrature
                angles = self.angle(crawl.time - crawl.elapsed * STEPS)
                cosine += (crawl.changed - crawl.expected) * float(WEIGHTS @ np.cos(angles))
                sine += (crawl.changed - crawl.expected) * float(WEIGHTS @ np.sin(angles))
        cosine, sine = (2.0 * each / (2.0 + weight) for each in (cosine, sine))
        now, start = self.angle(self.now), self.angle(self.now - self.elapsed[page])
        steps = start + (now - start) * STEPS
        usual = float(WEIGHTS @ (cosine * np.cos(steps) + sine * np.sin(steps)))
        days = self.elapsed[page]
        return [
            cosine * math.cos(now) + sine * math.sin(now),
            sine * math.cos(now) - cosine * math.sin(now),
            2.0 * usual * 2.0 * math.pi * days / (1.0 + days),
        ]

    def model(self, page: int):
        """Return alpha, lambda Delta, and the precision of a page, as given."""
        row, at = self.belief.of_lane().learner.memory.pages[page], places_of(self.problem)
        precision = 1.0 - math.exp(-row[at.scale + 1])
        return row[at.scale], row[at.scale + 1 + at.channels] * precision, precision

    def read_hypothesis(self, page: int, mean: float):
        """Return x and B of a page now under a mean delay of signals, in cycles."""
        alpha, signalled_rate, precision = self.model(page)
        ages = [(time - self.last(page)) / self.cycle for time in self.since(page)]
        elapsed, late = self.elapsed[page], 0.0
        shares = [precision * (1.0 - math.exp(-age / mean)) if mean else precision for age in ages]
        if mean:
            mean *= self.cycle
            late = signalled_rate * mean * (1.0 - math.exp(-elapsed / mean))
        x = sum(-math.log(1.0 - share) for share in shares)
        return alpha * elapsed + late + x, alpha * elapsed + late + sum(shares)

    def _hypothesis(self, page, x, expected_changes, rate):
        chances = []  # by hypothesis, the belief last
        for hypothesis in range(6):
            chance = [abs(1.0 - c.changed - p[hypothesis]) for c, p in self.outcomes()]
            chances.append(sum(math.log(0.001 + 0.999 * each) for each in chance))
        best = int(np.argmax(chances[:5]))
        alpha, signalled_rate, _ = self.model(page)
        other_x, other_expected_changes = self.read_hypothesis(page, MEANS[best])
        value = 1.0 - (1.0 + expected_changes) * math.exp(-x)
        other = 1.0 - (1.0 + other_expected_changes) * math.exp(-other_x)
        floor = 0.05 / self.cycle
        ratio = (0.02 + other) / (0.02 + value) * rate / (alpha + signalled_rate + floor)
        ratio = min(max(math.log(ratio), -2.5), 2.5)
        trust = 1.0 / (1.0 + math.exp((chances[5] - chances[best]) / 4.0)) if self.crawls else 0.0
        return [ratio, ratio * trust]

    def outcomes(self):
        """Return all crawls with the probabilities of a change by hypothesis and by the belief."""
        return list(zip(self.crawls, self.weighed, strict=True))

    def angle(self, time):
        return 2.0 * np.pi * np.asarray(time)


def share(y: float) -> float:
    return y / (1.0 + y)
