r"""Beliefs about single pages: Gamma distributions of hazards, updated crawl by crawl.

A page is fresh with probability exp(-x), x = alpha tau + sum_c b_c n_c: the hazards of unsignalled
changes, over the elapsed time tau, and of the signals of each channel c, with n_c their number
(Busa-Fekete et al., section 3), or their total weight for broadcasts. Beliefs are as in
:mod:`policies.ncis.priors`, in units of a scale per page and hazard: the revealed parameter, where
there is one.
"""

from __future__ import annotations

import math

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import inlined
from policies.ncis.belief.layout import MEMORY, Places, places


@inlined()
def renew_page(page: FloatArray, own_group: FloatArray, at: Places) -> None:
    """Update the estimates of a page: the mean of each of its numbers, and its rates.

    Rates of changes, which determine the order of crawls, use exp(E ln theta) of the hazards. It is
    below the mean, the more so the less data a page has, and this makes the policy explore.
    """
    for kind in range(at.kinds):
        shape = own_group[kind] + page[kind]
        rate = own_group[at.kinds + kind] + page[at.kinds + kind]
        page[at.believed + kind] = shape / rate * page[at.scale + kind]
    rate = page[at.believed] * below_mean(own_group[0] + page[0])
    for channel in range(at.own):
        chance = -math.expm1(-page[at.believed + 1 + channel])
        rate += page[at.believed + 1 + at.channels + channel] * chance
    page[at.rate] = rate
    for source in range(at.channels - at.own):
        kind = 1 + at.own + source
        typical = page[at.believed + kind] * below_mean(own_group[kind] + page[kind])
        page[at.change_chance + source] = -math.expm1(-typical)


@inlined()
def below_mean(shape: float) -> float:
    """Return about exp(E ln theta) / E theta of a Gamma distribution, of a shape >= 0.3.

    It is too large by 1% at a shape of 4, by 13% at 1, and by a factor of 2.9 at 0.3.
    """
    return math.exp(-0.5 / (shape + 0.1))


@inlined()
def evidence_of(page: FloatArray, at: Places, elapsed: float, weights: FloatArray) -> float:
    """Return the evidence x since a page's last crawl, of elapsed time and weights (C,)."""
    total = page[at.believed] * elapsed
    for channel in range(at.channels):
        if weights[channel] > 0.0:
            total += page[at.believed + 1 + channel] * weights[channel]
    return float(total)


@inlined()
def expected_changes_of(
    page: FloatArray, at: Places, elapsed: float, weights: FloatArray, count: float
) -> float:
    """Return the expected number of changes of a page since its last crawl.

    ``weights`` (C,) are numbers of signals, or total weights of the ``count`` broadcasts.
    """
    total = page[at.believed] * elapsed
    for channel in range(at.channels):
        if weights[channel] > 0.0:
            number = weights[channel] if channel < at.own else count
            each = page[at.believed + 1 + channel] * weights[channel] / number
            total += number * -math.expm1(-each)
    return float(total)


@inlined()
def learn_page(
    page: FloatArray,
    own_group: FloatArray,
    shared: FloatArray,
    elapsed: float,
    weights: FloatArray,
    changed: bool,
) -> None:
    """Update the belief about a page after a crawl, as in :mod:`policies.ncis.priors`.

    ``weights`` (C,) are numbers of signals since the crawl before, or weights of broadcasts.
    """
    at = places(shared)
    fade = math.exp(-elapsed / shared[MEMORY])
    for kind in range(2 * at.kinds):
        page[kind] *= fade
    fresh = 0.0  # ln P(no change)
    for kind in range(1 + at.channels):
        exposure = (elapsed if kind == 0 else weights[kind - 1]) * page[at.scale + kind]
        shape = own_group[kind] + page[kind]
        fresh -= shape * math.log1p(exposure / (own_group[at.kinds + kind] + page[at.kinds + kind]))
    for kind in range(1 + at.channels):
        exposure = (elapsed if kind == 0 else weights[kind - 1]) * page[at.scale + kind]
        if not changed:
            page[at.kinds + kind] += exposure
        elif fresh < 0.0 and exposure > 0.0:
            match_moments(page, own_group, at.kinds, kind, exposure, fresh)
    for channel in range(at.own):
        kind = 1 + at.channels + channel
        page[kind] += weights[channel]
        page[at.kinds + kind] += elapsed * page[at.scale + kind]
    renew_page(page, own_group, at)


@inlined()
def match_moments(
    page: FloatArray, own_group: FloatArray, kinds: int, kind: int, exposure: float, fresh: float
) -> None:
    """Replace the posterior after a change by the Gamma of the same mean and variance."""
    shape, rate = own_group[kind] + page[kind], own_group[kinds + kind] + page[kinds + kind]
    decay = math.log1p(exposure / rate)
    first = math.expm1(fresh - decay) / math.expm1(fresh)
    second = math.expm1(fresh - 2.0 * decay) / math.expm1(fresh)
    mean = shape / rate * first
    variance = mean * ((shape + 1.0) / rate * second / first - mean)
    matched = mean / variance if variance > 0.0 else 0.0
    page[kinds + kind] = max(0.0, matched - own_group[kinds + kind])
    page[kind] = max(0.0, mean * (own_group[kinds + kind] + page[kinds + kind]) - own_group[kind])
