r"""What is believed of single pages: Gamma distributions of hazards, learned crawl by crawl.

A page is fresh with probability exp(-x), x = alpha tau + sum_c b_c n_c: the hazards of changes that
nothing tells of, over the elapsed time tau, and of the signals of each channel c, n_c in number
(Busa-Fekete et al., section 3), or in weight where they are broadcasts. Beliefs are of the kind of
:mod:`policies.ncis.priors`, in units of a scale that each page has of each hazard: what it is
told, where it is.
"""

from __future__ import annotations

import math

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from policies.ncis.belief.layout import MEMORY, Places, places


@compiled()
def renew_page(page: FloatArray, own_group: FloatArray, at: Places) -> None:
    """Bring what is believed of a page up to date: the mean of each of its numbers, and its rates.

    In rates of changes, which say what a crawl is worth beside others, hazards count
    exp(E ln theta), which is less than the mean, and the more so the less is known of a page:
    therefore it is looked at.
    """
    for kind in range(at.kinds):
        shape = own_group[kind] + page[kind]
        rate = own_group[at.kinds + kind] + page[at.kinds + kind]
        page[at.believed + kind] = shape / rate * page[at.scale + kind]
    rate = page[at.believed] * below_mean(own_group[0] + page[0])
    for channel in range(at.own):
        told = -math.expm1(-page[at.believed + 1 + channel])
        rate += page[at.believed + 1 + at.channels + channel] * told
    page[at.rate] = rate
    for source in range(at.channels - at.own):
        kind = 1 + at.own + source
        typical = page[at.believed + kind] * below_mean(own_group[kind] + page[kind])
        page[at.told + source] = -math.expm1(-typical)


@compiled()
def below_mean(shape: float) -> float:
    """Return about exp(E ln theta) / E theta of a Gamma distribution, of a shape >= 0.3.

    It is 1% too much at a shape of 4, 13% at 1 and 2.9 times as much at 0.3.
    """
    return math.exp(-0.5 / (shape + 0.1))


@compiled()
def evidence_of(page: FloatArray, at: Places, elapsed: float, heard: FloatArray) -> float:
    """Return x: what has gathered since a page's last crawl, in time and by signals (C,)."""
    total = page[at.believed] * elapsed
    for channel in range(at.channels):
        if heard[channel] > 0.0:
            total += page[at.believed + 1 + channel] * heard[channel]
    return float(total)


@compiled()
def expected_changes_of(
    page: FloatArray, at: Places, elapsed: float, heard: FloatArray, count: float
) -> float:
    """Return how many times a page was expected to change by what has gathered since its crawl.

    ``heard`` (C,) are signals, of broadcasts their weights; of these there were ``count``.
    """
    total = page[at.believed] * elapsed
    for channel in range(at.channels):
        if heard[channel] > 0.0:
            number = heard[channel] if channel < at.own else count
            each = page[at.believed + 1 + channel] * heard[channel] / number
            total += number * -math.expm1(-each)
    return float(total)


@compiled()
def learn_page(
    page: FloatArray,
    own_group: FloatArray,
    shared: FloatArray,
    elapsed: float,
    heard: FloatArray,
    changed: bool,
) -> None:
    """Take in a crawl of a page, as :func:`policies.ncis.priors.take_in` does.

    ``heard`` (C,) are the signals since the crawl before, broadcasts by their weights.
    """
    at = places(shared)
    fade = math.exp(-elapsed / shared[MEMORY])
    for kind in range(2 * at.kinds):
        page[kind] *= fade
    fresh = 0.0  # ln P(no change)
    for kind in range(1 + at.channels):
        exposure = (elapsed if kind == 0 else heard[kind - 1]) * page[at.scale + kind]
        shape = own_group[kind] + page[kind]
        fresh -= shape * math.log1p(exposure / (own_group[at.kinds + kind] + page[at.kinds + kind]))
    for kind in range(1 + at.channels):
        exposure = (elapsed if kind == 0 else heard[kind - 1]) * page[at.scale + kind]
        if not changed:
            page[at.kinds + kind] += exposure
        elif fresh < 0.0 and exposure > 0.0:
            match_moments(page, own_group, at.kinds, kind, exposure, fresh)
    for channel in range(at.own):
        kind = 1 + at.channels + channel
        page[kind] += heard[channel]
        page[at.kinds + kind] += elapsed * page[at.scale + kind]
    renew_page(page, own_group, at)


@compiled()
def match_moments(
    page: FloatArray, own_group: FloatArray, kinds: int, kind: int, exposure: float, fresh: float
) -> None:
    """Put the Gamma of the same mean and variance in the place of a belief after a change."""
    shape, rate = own_group[kind] + page[kind], own_group[kinds + kind] + page[kinds + kind]
    decay = math.log1p(exposure / rate)
    first = math.expm1(fresh - decay) / math.expm1(fresh)
    second = math.expm1(fresh - 2.0 * decay) / math.expm1(fresh)
    mean = shape / rate * first
    variance = mean * ((shape + 1.0) / rate * second / first - mean)
    matched = mean / variance if variance > 0.0 else 0.0
    page[kinds + kind] = max(0.0, matched - own_group[kinds + kind])
    page[kind] = max(0.0, mean * (own_group[kinds + kind] + page[kinds + kind]) - own_group[kind])
