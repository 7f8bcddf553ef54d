r"""Divergence and utility of a page with one changing region, whose other fragments are static.

The region has K items, a share s of the page's fragments; updates occur at the rate l, and each
replaces the oldest item (Olston and Pandey 2008, section 3.3). So K = 1 is churn, K > 1 scroll.
With i = min(N, K) items lost, N ~ Poisson(y), y = l t, the fragment staleness (eq. 3) is
d(i) = 2 s i / (K + s i). With the differences

    e_j = d(j + 1) - d(j) = 2 s K / ((K + s j) (K + s (j + 1))),   Q_k = P(N >= k),

divergence and utility (eq. 4, U = int x dD(x)) are sums of positive terms,

    D = sum_{j<K} e_j Q_{j+1},      U = (1 / l) sum_{j<K} (j + 1) e_j Q_{j+2}.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray, IntArray

SHORT = 1.0
"""Below this number of expected updates, tail probabilities are summed, not subtracted from 1."""
HALVINGS = 200
"""Maximum number of bisections, more than doubles need."""


@inlined()
def poisson_tail(count: int, mean: float, chance: float) -> float:
    """Return P(N >= count), N ~ Poisson(mean), mean < SHORT, given ``chance`` = P(N = count)."""
    total, term, k = chance, chance, count
    while term > 1e-17 * total:
        k += 1
        term *= mean / k
        total += term
    return total


@inlined()
def step_sizes(items: int, share: float, steps: FloatArray, slopes: FloatArray) -> None:
    """Write e_j, the staleness that each further lost item adds, and de_j / d(share), (K,) each."""
    before = float(items)
    for j in range(items):
        after = items + share * (j + 1.0)
        both = 1.0 / (before * after)
        steps[j] = 2.0 * share * items * both
        slopes[j] = 2.0 * items * (items * items - share * share * j * (j + 1.0)) * both * both
        before = after


@inlined()
def divergence_and_slopes(
    steps: FloatArray, slopes: FloatArray, updates: float
) -> tuple[float, float, float]:
    """Return the divergence D after ``updates`` = l t expected updates, dD / d(l t) and dD / d(s).

    ``steps`` and ``slopes`` are results of :func:`step_sizes`, and s is the share of the region. D
    is a difference of probabilities, with an absolute, not relative, error of 1e-16.
    """
    chance = math.exp(-updates)  # of j updates
    tail = -math.expm1(-updates)  # of j + 1 or more
    value = slope = by_share = 0.0
    for j in range(steps.size):
        value += steps[j] * tail
        slope += steps[j] * chance
        by_share += slopes[j] * tail
        chance *= updates / (j + 1.0)
        tail -= chance
    return value, slope, by_share


@compiled()
def region_divergence(items: int, share: float, updates: float) -> float:
    """Return the divergence D of a page after ``updates`` = l t expected updates of its region."""
    steps, slopes = np.empty(items), np.empty(items)
    step_sizes(items, share, steps, slopes)
    return divergence_and_slopes(steps, slopes, updates)[0]


@inlined()
def region_utility(items: int, share: float, rate: float, elapsed: float) -> float:
    """Return the utility U of a crawl after ``elapsed`` >= 0, possibly infinite, since the last."""
    if share <= 0.0 or rate <= 0.0:
        return 0.0
    updates = rate * elapsed
    chance = updates * math.exp(-updates) if updates < math.inf else 0.0  # of j + 1 updates
    tail = -math.expm1(-updates) - chance  # of j + 2 or more
    total = 0.0
    before = float(items)
    for j in range(items):
        if updates < SHORT:
            tail = poisson_tail(j + 2, updates, chance * updates / (j + 2.0))
        after = items + share * (j + 1.0)
        total += (j + 1.0) * 2.0 * share * items / (before * after) * tail
        if updates < math.inf:
            chance *= updates / (j + 2.0)
        tail = max(tail - chance, 0.0)
        before = after
    return total / rate


@inlined()
def region_period(items: int, share: float, rate: float, threshold: float) -> float:
    """Return the time at which the utility U reaches ``threshold`` > 0; inf if it never does."""
    if region_utility(items, share, rate, math.inf) <= threshold:
        return math.inf
    low, high = 0.0, items / rate
    while region_utility(items, share, rate, high) < threshold:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if high - low <= 1e-12 * high:
            break
        if region_utility(items, share, rate, middle) < threshold:
            low = middle
        else:
            high = middle
    return high


@compiled()
def region_utilities(
    items: IntArray, share: FloatArray, rate: FloatArray, elapsed: FloatArray, out: FloatArray
) -> None:
    """Write the utility U of a crawl of every page to ``out``; all arrays have shape (m,)."""
    for page in range(out.size):
        out[page] = region_utility(items[page], share[page], rate[page], elapsed[page])
