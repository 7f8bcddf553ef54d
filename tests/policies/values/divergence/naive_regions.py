"""Regions the slow, obvious way: every state with its probability, or every fragment by hand."""

from __future__ import annotations

import itertools
from collections import deque

import mpmath
import numpy as np
from scipy.integrate import quad


def divergence(items, size, rate, elapsed):
    """D* of a page, over all states of its regions, in the precision of mpmath."""
    total = sum(k * c for k, c in zip(items, size, strict=True))
    laws = []
    for k, pace in zip(items, rate, strict=True):
        x = mpmath.mpf(pace) * mpmath.mpf(elapsed)
        law = [mpmath.exp(-x) * x**j / mpmath.factorial(j) for j in range(k)]
        laws.append([*law, 1 - mpmath.fsum(law)])
    expected = mpmath.mpf(0)
    for state in itertools.product(*(range(k + 1) for k in items)):
        lost = sum(c * j for c, j in zip(size, state, strict=True))
        chance = mpmath.fprod(law[j] for law, j in zip(laws, state, strict=True))
        expected += chance * mpmath.mpf(2 * lost) / (total + lost)
    return expected


def utility(items, size, rate, elapsed):
    """U of a page by numerical integration of D*."""
    top = divergence(items, size, rate, elapsed)
    fast = max(rate)
    cuts = sorted({0.0, *(c for c in (0.3 / fast, 3 / fast, 12 / fast) if c < elapsed), elapsed})
    return mpmath.quad(lambda x: top - divergence(items, size, rate, x), cuts)


def random_page(rng, regions=3, most=4):
    """Items, sizes and rates of a page, rates 10 to 1 apart or so, the first region static."""
    items = rng.integers(1, most + 1, regions).tolist()
    size = rng.integers(1, 12, regions).tolist()
    rate = [0.0, *(10.0 ** rng.uniform(-1.0, 1.0, regions - 1))]
    return items, size, rate


class Page:
    """A page that is updated region by region, with a name for every fragment."""

    def __init__(self, items, size, rate, rng):
        self.size, self.rate, self.rng = size, np.asarray(rate), rng
        self.names = itertools.count()
        self.regions = [
            deque([self._item(c) for _ in range(k)], maxlen=k)
            for k, c in zip(items, size, strict=True)
        ]

    def _item(self, size):
        return [next(self.names) for _ in range(size)]

    def fragments(self):
        """The set of fragments that are there."""
        return {name for region in self.regions for item in region for name in item}

    def pass_by(self, duration):
        """Make the updates of a time."""
        for region in np.repeat(
            np.arange(len(self.regions)), self.rng.poisson(self.rate * duration)
        ):
            self.regions[region].append(self._item(self.size[region]))


def jaccard_distance(one, other):
    """1 - |A & B| / |A | B|; 0 for two empty sets."""
    return 1.0 - len(one & other) / len(one | other) if one | other else 0.0


def utility_of(curve, elapsed):
    """U of any divergence curve, eq. 4 of Olston and Pandey, by adaptive quadrature."""
    top = curve(elapsed)
    gained, _ = quad(lambda x: top - curve(x), 0.0, elapsed, epsabs=0.0, epsrel=1e-10, limit=500)
    return gained
