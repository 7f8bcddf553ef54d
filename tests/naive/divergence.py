"""The divergence of copies in the twin, computed again from scratch whenever it is needed."""

from __future__ import annotations

import math

from tests.naive.fragments import distance


def penalty(name):
    """C(n) of a name or a table, as a function."""
    if isinstance(name, str):
        named = {
            "harmonic": lambda changes: math.fsum(1.0 / n for n in range(1, changes + 1)),
            "binary": lambda changes: float(changes > 0),
        }
        return named[name]
    return lambda changes: float(name[min(changes, len(name) - 1)])


class Penalty:
    """C(n) of n undetected changes; ``name`` is that of a penalty, or a table."""

    is_penalty = True

    def __init__(self, name):
        self.penalty = penalty(name)

    def weight(self, page):
        return page.importance

    def of(self, number, page):
        return self.penalty(page.changes)

    def renew(self, number, page):
        pass


class Fragments:
    """The Jaccard distance of live and held sets of fragments, and of held sets and older ones.

    ``copies`` are the crawled versions of each page as (time, content), the latest first: the held
    copy and up to ``bases`` base versions.
    """

    def __init__(self, live, bases=0):
        self.live, self.bases = list(live), bases
        self.copies = [[(0.0, content)] for content in live]

    @property
    def held(self):
        return [copies[0][1] for copies in self.copies]

    def weight(self, page):
        return page.importance

    def of(self, number, page):
        live, held = self.live[number], self.copies[number][0][1]
        return 0.0 if live is held else distance(live, held)

    def renew(self, number, page):
        """Hold the live content, and keep the older copies unless the page is born or dies."""
        older = self.copies[number][: self.bases] if page.changed >= 0 else []
        self.copies[number] = [(page.since, self.live[number]), *older]

    def change(self, number, page, content):
        """Change the live content; return how many changes of the page that is."""
        self.live[number] = content
        return 0

    def from_bases(self, number, measure=distance):
        """The distances of the held copy from its base versions, and their ages."""
        (made, held), *older = self.copies[number]
        none = [math.nan] * (self.bases - len(older))
        distances = [measure(content, held) for _, content in older]
        return distances + none, [made - time for time, _ in older] + none


class Prices(Fragments):
    """Whether the held price is wrong; a page is fresh while it is right."""

    def weight(self, page):
        return 1.0

    def of(self, number, page):
        return float(self.live[number] != self.copies[number][0][1])

    def change(self, number, page, content):
        self.live[number] = content
        page.changes = page.changes + 1 if self.of(number, page) else 0
        return 1
