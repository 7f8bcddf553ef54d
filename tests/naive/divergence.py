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

    def renew(self, number):
        pass


class Fragments:
    """The Jaccard distance of live and held sets of fragments."""

    def __init__(self, live):
        self.live, self.held = list(live), list(live)

    def weight(self, page):
        return page.importance

    def of(self, number, page):
        live, held = self.live[number], self.held[number]
        return 0.0 if live is held else distance(live, held)

    def renew(self, number):
        self.held[number] = self.live[number]

    def change(self, number, page, content):
        """Change the live content; return how many changes of the page that is."""
        self.live[number] = content
        return 0


class Prices(Fragments):
    """Whether the held price is wrong; a page is fresh while it is right."""

    def weight(self, page):
        return 1.0

    def of(self, number, page):
        return float(self.live[number] != self.held[number])

    def change(self, number, page, content):
        self.live[number] = content
        page.changes = page.changes + 1 if self.of(number, page) else 0
        return 1
