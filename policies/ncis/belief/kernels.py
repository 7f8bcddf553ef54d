"""The compiled functions of a belief about staleness: births, crawls, signals and scores.

A page is fresh with probability exp(-x), x = alpha tau + sum_c b_c n_c: the hazards of unsignalled
changes, over the elapsed time tau, and of the signals of each channel c, with n_c their number
(Busa-Fekete et al., section 3), or their total weight for broadcasts. Beliefs are those of
:mod:`policies.estimators.gamma_beliefs`, in units of a scale per page and hazard: the revealed
parameter, where there is one.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiled_policies import LEARN, ON_BIRTH_OR_DEATH, ON_SIGNAL, SCORE, Memory
from policies.estimators.gamma_beliefs import below_mean, learn_crawl, log_fresh, pool_beliefs
from policies.ncis.belief.activity import (
    RETURN,
    active_if_signalled,
    learn_activity,
    log_survival,
    own_evidence,
    value_if_stopped,
)
from policies.ncis.belief.broadcasts import (
    broadcast_weight_since,
    on_signals_together,
    update_weights,
)
from policies.ncis.belief.layout import (
    CRAWLS,
    DUE,
    FLOOR,
    MEMORY,
    PACE_MEMORY,
    POOL_STEPS,
    Places,
    places,
)

ROUNDING = 1e-9
"""A smaller share of the weight of broadcasts counts as 0: sums in a ring are rounded."""
SMALLEST = 1e-4
"""Least mean of a shared distribution, in units of the scales."""


@inlined()
def forget(page: FloatArray, own_group: FloatArray, at: Places) -> None:
    """Reset a page's signals since its last crawl."""
    for column in range(at.signals, at.before):
        page[column] = 0.0
    page[at.before] = own_group[at.broadcasts]


@inlined()
def write_signal_weights(
    page: FloatArray, own_group: FloatArray, at: Places, weights: FloatArray
) -> None:
    """Write the weights of the signals since a page's last crawl into ``weights``, (C,)."""
    for channel in range(at.own):
        weights[channel] = page[at.signals + channel]
    if at.channels > at.own:
        for source in range(at.sources):
            total = broadcast_weight_since(own_group, at, source, page[at.before])
            left = total - page[at.excluded + source]
            weights[at.own + source] = left if left > ROUNDING * total else 0.0


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
    signals, reported = 0.0, 0.0
    for channel in range(at.own):
        each = page[at.believed + 1 + at.channels + channel]
        signals += each
        reported += each * -math.expm1(-page[at.believed + 1 + channel])
    page[at.signal_rate], page[at.signalled_rate] = signals, reported
    page[at.rate] = page[at.believed] * below_mean(own_group[0] + page[0]) + reported
    for source in range(at.channels - at.own):
        kind = 1 + at.own + source
        typical = page[at.believed + kind] * below_mean(own_group[kind] + page[kind])
        page[at.change_chance + source] = -math.expm1(-typical)


@inlined()
def renew(pages: FloatArray, groups: FloatArray, shared: FloatArray, group: IntArray) -> None:
    """Update the estimates of all pages."""
    for number in range(group.shape[0]):
        renew_page(pages[number], groups[group[number]], places(shared))


@inlined()
def learn_page(
    page: FloatArray,
    own_group: FloatArray,
    shared: FloatArray,
    elapsed: float,
    weights: FloatArray,
    changed: bool,
) -> None:
    """Update the belief about a page after a crawl.

    ``weights`` (C,) are numbers of signals since the crawl before, or weights of broadcasts.
    """
    at = places(shared)
    counts, exposures = page[: at.kinds], page[at.kinds : 2 * at.kinds]
    shape, rate = own_group[: at.kinds], own_group[at.kinds : 2 * at.kinds]
    x = np.empty(1 + at.channels)
    x[0], x[1:] = elapsed, weights
    x *= page[at.scale : at.scale + x.size]
    fresh = log_fresh(counts, exposures, shape, rate, x)  # of the data before they fade
    learn_activity(page, own_group, shared, at, elapsed, fresh, changed)
    if not changed:
        x *= page[at.active]  # a page that stopped tells nothing of its rate before
    fading = math.exp(-elapsed / shared[MEMORY])
    learn_crawl(counts, exposures, shape, rate, x, changed, fading)
    for channel in range(at.own):
        kind = 1 + at.channels + channel
        counts[kind] += weights[channel]
        exposures[kind] += elapsed * page[at.scale + kind]
    renew_page(page, own_group, at)


@compiled()
def pool(pages: FloatArray, groups: FloatArray, shared: FloatArray, group: IntArray) -> None:
    """Update the distributions of all groups and the estimates of all pages.

    Of each kind it uses the beliefs about pages with any data, in POOL_STEPS steps.
    """
    count = places(shared).kinds
    counts, exposures = pages[:, :count], pages[:, count : 2 * count]
    known = counts + exposures > 0.0
    shape, rate = groups[:, :count], groups[:, count : 2 * count]
    for _ in range(int(shared[POOL_STEPS])):
        pool_beliefs(counts, exposures, known, group, shape, rate, np.full(count, SMALLEST))
    renew(pages, groups, shared, group)


@compiled(ON_BIRTH_OR_DEATH.signature)
def on_birth_or_death(memory: Memory, page: int, time: float, alive: bool) -> None:
    """Update the belief on a page's birth, fresh, or death."""
    pages, groups, _, shared, group = memory
    at, row, own = places(shared), pages[page], groups[group[page]]
    forget(row, own, at)
    own[at.size] += alive - row[at.exists]
    row[at.exists], row[at.active] = alive, 1.0


@compiled(LEARN.signature)
def learn(
    memory: Memory, page: int, time: float, elapsed: float, signals: FloatArray, changed: bool
) -> None:
    """Update the belief after a crawl."""
    pages, groups, events, shared, group = memory
    at = places(shared)
    own, row = groups[group[page]], pages[page]
    weights = np.empty(at.channels)
    write_signal_weights(row, own, at, weights)
    certain = -math.expm1(-evidence_of(row, at, elapsed, weights))
    if at.channels > at.own:
        first = at.believed + 1 + at.own
        evidence = row[first : first + at.sources].copy()
        update_weights(own, events, shared, row[at.before], evidence, certain, changed)
    learn_page(row, own, shared, elapsed, weights, changed)
    forget(row, own, at)
    shared[CRAWLS] += 1.0
    if shared[CRAWLS] >= shared[DUE]:
        shared[DUE] = shared[CRAWLS] + group.shape[0]
        pool(pages, groups, shared, group)


@compiled(ON_SIGNAL.signature)
def on_signal(memory: Memory, page: IntArray, time: FloatArray, source: IntArray) -> None:
    """Update the belief on the signals of a step, instant by instant."""
    at, start = places(memory.shared), 0
    while start < page.shape[0]:
        end = start
        while end < page.shape[0] and time[end] == time[start]:
            end += 1
        if end == start + 1 or at.channels == at.own:
            for k in range(start, end):
                memory.pages[page[k], at.signals + source[k]] += 1.0
        else:
            on_signals_together(memory, page[start:end], source[start:end], time[start])
        start = end


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
def read_page(
    page: FloatArray,
    own: FloatArray,
    shared: FloatArray,
    at: Places,
    now: float,
    elapsed: float,
    weights: FloatArray,
) -> tuple[float, float, float]:
    """Return the estimates of a page now; ``weights`` (C,) is overwritten.

    Returns:
        The evidence x: the page is fresh with probability exp(-x); the expected number of changes
        since its last crawl; and its rate of changes, > 0.
    """
    write_signal_weights(page, own, at, weights)
    x = evidence_of(page, at, elapsed, weights)
    expected_changes = expected_changes_of(
        page, at, elapsed, weights, own[at.broadcasts] - page[at.before]
    )
    rate = page[at.rate] + shared[FLOOR]
    if at.channels > at.own:
        fade = math.exp(-(now - own[at.paced]) / shared[PACE_MEMORY]) / shared[PACE_MEMORY]
        for source in range(at.sources):
            rate += own[at.pace + source] * fade * page[at.change_chance + source]
    return x, expected_changes, rate


@inlined()
def value_of(
    page: FloatArray,
    own: FloatArray,
    shared: FloatArray,
    at: Places,
    elapsed: float,
    x: float,
    expected_changes: float,
    rate: float,
) -> float:
    """Return the crawl value of a page from its estimates, those of :func:`read_page`.

    mu (A (S V + (1 - S) max(V, g tau)) + (1 - A) V_GREEDY(r Delta)), with A the probability that
    the page was active at its last crawl or was signalled since, S that it is still, V the value of
    an active page, and r Delta the rate at which a page that stopped starts again. g tau is that of
    a page that stopped since: it is stale with probability g, and one crawl makes it fresh for
    good. For an active page, the time of the stop is uniform, and the crawl is worth more the
    longer a page has been stale: g(x) = 2 / x^2 (x^2 / 2 - x + 1 - exp(-x)).
    """
    alone = own_evidence(page, at)
    value = active_value(page, at, elapsed, x, expected_changes, rate, alone)
    active = active_if_signalled(page, at, alone)
    if min(1.0, x / 3.0) * elapsed > value:
        waited = (1.0 - 2.0 * (x + math.expm1(-x)) / (x * x) if x > 1e-3 else x / 3.0) * elapsed
        stopped = -math.expm1(log_survival(own, shared, elapsed, at))
        value += stopped * max(waited - value, 0.0)
    if active < 1.0:
        value = active * value + (1.0 - active) * value_if_stopped(RETURN * rate, elapsed)
    return float(page[at.importance] * value)


@inlined()
def active_value(
    page: FloatArray,
    at: Places,
    elapsed: float,
    x: float,
    expected_changes: float,
    rate: float,
    alone: float,
) -> float:
    """Return the value of a page that is active, of importance 1.

    It is 1 / Delta (1 - (1 + B) exp(-x)), with B the expected number of changes since the last
    crawl: V_GREEDY without signals, B = x = Delta tau; and V_GREEDY_NCIS where every change is
    signalled, with B = n p and exp(-x) = (1 - p)^n for n signals of precision p. Without a signal
    to the page alone it is at least the first summand of V_GREEDY_NCIS (Theorem 1), the only one
    before a signal if none leaves the page as fresh as it is now.
    """
    fresh = math.exp(-x)
    value = (1.0 - (1.0 + expected_changes) * fresh) / rate
    gamma = page[at.signal_rate]
    if alone == 0.0 and gamma * elapsed > 1e-6:
        both = rate - page[at.signalled_rate] + gamma
        first = (1.0 - math.exp(-both * elapsed)) / both
        value = max(value, first - fresh * (1.0 - math.exp(-gamma * elapsed)) / gamma)
    return value


@inlined()
def write_values(
    memory: Memory,
    now: float,
    elapsed: FloatArray,
    alive: BoolArray,
    values: FloatArray,
    estimates: FloatArray,
) -> None:
    """Write the crawl value of every page, and the estimates behind it, (3, m); 0 if not alive.

    They are those of :func:`value_of` and :func:`read_page`.
    """
    pages, groups, _, shared, group = memory
    at = places(shared)
    weights = np.empty(at.channels)
    for number in range(elapsed.shape[0]):
        x = expected_changes = rate = values[number] = 0.0
        if alive[number]:
            page, own, since = pages[number], groups[group[number]], elapsed[number]
            x, expected_changes, rate = read_page(page, own, shared, at, now, since, weights)
            values[number] = value_of(page, own, shared, at, since, x, expected_changes, rate)
        estimates[0, number], estimates[1, number], estimates[2, number] = x, expected_changes, rate


@compiled(SCORE.signature)
def score(
    memory: Memory, now: float, elapsed: FloatArray, alive: BoolArray, scores: FloatArray
) -> None:
    """Write the crawl value of every page, of :func:`value_of`."""
    write_values(memory, now, elapsed, alive, scores, np.empty((3, elapsed.shape[0])))
