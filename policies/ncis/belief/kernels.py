"""Compiled updates of a belief about staleness at births, crawls and signals, and its scores.

A page is fresh with probability exp(-x), x = alpha tau + sum_c b_c n_c: the hazards of unsignalled
changes, over the elapsed time tau, and of the signals of each channel c, with n_c their number
(Busa-Fekete et al., section 3), or their total weight for broadcasts. Beliefs are those of
:mod:`policies.estimators.gamma_beliefs`, in units of a scale per page and hazard: the revealed
parameter, if there is one.
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
    page_evidence,
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
def forget(page: FloatArray, group: FloatArray, columns: Places) -> None:
    """Set the signals of a page since its last crawl to none."""
    for column in range(columns.signals, columns.before):
        page[column] = 0.0
    page[columns.before] = group[columns.broadcasts]


@inlined()
def write_signal_weights(
    page: FloatArray, group: FloatArray, columns: Places, weights: FloatArray
) -> None:
    """Write the weights of a page's signals since its last crawl, by channel, to ``weights``."""
    for channel in range(columns.own):
        weights[channel] = page[columns.signals + channel]
    if columns.channels > columns.own:
        for source in range(columns.sources):
            total = broadcast_weight_since(group, columns, source, page[columns.before])
            remaining = total - page[columns.excluded + source]
            weights[columns.own + source] = remaining if remaining > ROUNDING * total else 0.0


@inlined()
def renew_page(page: FloatArray, group: FloatArray, columns: Places) -> None:
    """Update a page's estimates in its row: posterior means, and rates of changes and signals.

    Rates of changes, which determine the order of crawls, use exp(E ln theta) of the hazards. It is
    below the mean, and lower with less data, which makes the policy explore.
    """
    for kind in range(columns.kinds):
        shape = group[kind] + page[kind]
        rate = group[columns.kinds + kind] + page[columns.kinds + kind]
        page[columns.believed + kind] = shape / rate * page[columns.scale + kind]
    signals, reported = 0.0, 0.0
    for channel in range(columns.own):
        signal_rate = page[columns.believed + 1 + columns.channels + channel]
        signals += signal_rate
        reported += signal_rate * -math.expm1(-page[columns.believed + 1 + channel])
    page[columns.signal_rate], page[columns.signalled_rate] = signals, reported
    page[columns.rate] = page[columns.believed] * below_mean(group[0] + page[0]) + reported
    for source in range(columns.channels - columns.own):
        kind = 1 + columns.own + source
        typical = page[columns.believed + kind] * below_mean(group[kind] + page[kind])
        page[columns.change_chance + source] = -math.expm1(-typical)


@inlined()
def renew(pages: FloatArray, groups: FloatArray, shared: FloatArray, group: IntArray) -> None:
    """Update the estimates in the rows of all pages, after changes of shared distributions."""
    for number in range(group.shape[0]):
        renew_page(pages[number], groups[group[number]], places(shared))


@inlined()
def learn_page(
    page: FloatArray,
    group: FloatArray,
    shared: FloatArray,
    elapsed: float,
    weights: FloatArray,
    changed: bool,
) -> None:
    """Update the belief about a page by the result of a crawl.

    ``weights`` (C,) are, by channel, the numbers of signals since the crawl before, or weights of
    broadcasts.
    """
    columns = places(shared)
    counts, exposures = page[: columns.kinds], page[columns.kinds : 2 * columns.kinds]
    shape, rate = group[: columns.kinds], group[columns.kinds : 2 * columns.kinds]
    x = np.empty(1 + columns.channels)
    x[0], x[1:] = elapsed, weights
    x *= page[columns.scale : columns.scale + x.size]
    fresh = log_fresh(counts, exposures, shape, rate, x)  # of the data before they fade
    learn_activity(page, group, shared, columns, elapsed, fresh, changed)
    if not changed:
        x *= page[columns.active]  # a page that stopped has no information on its earlier rate
    fading = math.exp(-elapsed / shared[MEMORY])
    learn_crawl(counts, exposures, shape, rate, x, changed, fading)
    for channel in range(columns.own):
        kind = 1 + columns.channels + channel
        counts[kind] += weights[channel]
        exposures[kind] += elapsed * page[columns.scale + kind]
    renew_page(page, group, columns)


@compiled()
def pool(pages: FloatArray, groups: FloatArray, shared: FloatArray, group: IntArray) -> None:
    """Update the distributions of all groups, then the estimates of all pages.

    It takes POOL_STEPS steps, and uses the beliefs with any data.
    """
    count = places(shared).kinds
    counts, exposures = pages[:, :count], pages[:, count : 2 * count]
    used = counts + exposures > 0.0
    shape, rate = groups[:, :count], groups[:, count : 2 * count]
    for _ in range(int(shared[POOL_STEPS])):
        pool_beliefs(counts, exposures, used, group, shape, rate, np.full(count, SMALLEST))
    renew(pages, groups, shared, group)


@compiled(ON_BIRTH_OR_DEATH.signature)
def on_birth_or_death(memory: Memory, page: int, time: float, alive: bool) -> None:
    """Update the belief at the birth of a page, which is then fresh, or at its death."""
    pages, groups, _, shared, group = memory
    columns, row, group_row = places(shared), pages[page], groups[group[page]]
    forget(row, group_row, columns)
    group_row[columns.size] += alive - row[columns.exists]
    row[columns.exists], row[columns.active] = alive, 1.0


@compiled(LEARN.signature)
def learn(
    memory: Memory, page: int, time: float, elapsed: float, signals: FloatArray, changed: bool
) -> None:
    """Update the belief after a crawl of a page, and shared distributions when they are due."""
    pages, groups, events, shared, group = memory
    columns = places(shared)
    group_row, row = groups[group[page]], pages[page]
    weights = np.empty(columns.channels)
    write_signal_weights(row, group_row, columns, weights)
    certain = -math.expm1(-evidence_of(row, columns, elapsed, weights))
    if columns.channels > columns.own:
        first = columns.believed + 1 + columns.own
        evidence = row[first : first + columns.sources].copy()
        update_weights(group_row, events, shared, row[columns.before], evidence, certain, changed)
    learn_page(row, group_row, shared, elapsed, weights, changed)
    forget(row, group_row, columns)
    shared[CRAWLS] += 1.0
    if shared[CRAWLS] >= shared[DUE]:
        shared[DUE] = shared[CRAWLS] + group.shape[0]
        pool(pages, groups, shared, group)


@compiled(ON_SIGNAL.signature)
def on_signal(memory: Memory, page: IntArray, time: FloatArray, source: IntArray) -> None:
    """Update the belief by the signals of a step, one instant after the other."""
    columns, start = places(memory.shared), 0
    while start < page.shape[0]:
        end = start
        while end < page.shape[0] and time[end] == time[start]:
            end += 1
        if end == start + 1 or columns.channels == columns.own:
            for k in range(start, end):
                memory.pages[page[k], columns.signals + source[k]] += 1.0
        else:
            on_signals_together(memory, page[start:end], source[start:end], time[start])
        start = end


@inlined()
def evidence_of(page: FloatArray, columns: Places, elapsed: float, weights: FloatArray) -> float:
    """Return the evidence x that a page changed since its last crawl; weights have shape (C,)."""
    total = page[columns.believed] * elapsed
    for channel in range(columns.channels):
        if weights[channel] > 0.0:
            total += page[columns.believed + 1 + channel] * weights[channel]
    return float(total)


@inlined()
def expected_changes_of(
    page: FloatArray, columns: Places, elapsed: float, weights: FloatArray, count: float
) -> float:
    """Return how many times a page is expected to have changed since its last crawl.

    ``weights`` (C,) are numbers of signals by channel, or total weights of the ``count``
    broadcasts.
    """
    total = page[columns.believed] * elapsed
    for channel in range(columns.channels):
        if weights[channel] > 0.0:
            number = weights[channel] if channel < columns.own else count
            evidence = page[columns.believed + 1 + channel] * weights[channel] / number
            total += number * -math.expm1(-evidence)
    return float(total)


@inlined()
def read_page(
    page: FloatArray,
    group: FloatArray,
    shared: FloatArray,
    columns: Places,
    now: float,
    elapsed: float,
    weights: FloatArray,
) -> tuple[float, float, float]:
    """Return what is believed about a page now: evidence, expected changes and change rate.

    The page is fresh with probability exp(-evidence). Both first numbers count from its last crawl,
    and the rate is > 0. The array ``weights``, (C,), is overwritten.
    """
    write_signal_weights(page, group, columns, weights)
    x = evidence_of(page, columns, elapsed, weights)
    expected_changes = expected_changes_of(
        page, columns, elapsed, weights, group[columns.broadcasts] - page[columns.before]
    )
    rate = page[columns.rate] + shared[FLOOR]
    if columns.channels > columns.own:
        fade = math.exp(-(now - group[columns.paced]) / shared[PACE_MEMORY]) / shared[PACE_MEMORY]
        for source in range(columns.sources):
            rate += group[columns.pace + source] * fade * page[columns.change_chance + source]
    return x, expected_changes, rate


@inlined()
def value_of(
    page: FloatArray,
    group: FloatArray,
    shared: FloatArray,
    columns: Places,
    elapsed: float,
    x: float,
    expected_changes: float,
    rate: float,
) -> float:
    """Return the crawl value of a page from its estimates, results of :func:`read_page`.

    mu (A (S V + (1 - S) max(V, g tau)) + (1 - A) V_GREEDY(r Delta)), with A the probability that
    the page was active at its last crawl or was signalled since, S that it is still active, V the
    value of an active page, and r Delta the rate at which a page that stopped starts again. g tau
    is the value of a page that stopped since: it is stale with probability g, and one crawl makes
    it fresh for good. The time of the stop is uniform, and the value of the crawl grows with the
    time that the page has been stale: g(x) = 2 / x^2 (x^2 / 2 - x + 1 - exp(-x)).
    """
    alone = page_evidence(page, columns)
    value = active_value(page, columns, elapsed, x, expected_changes, rate, alone)
    active = active_if_signalled(page, columns, alone)
    if min(1.0, x / 3.0) * elapsed > value:
        waited = (1.0 - 2.0 * (x + math.expm1(-x)) / (x * x) if x > 1e-3 else x / 3.0) * elapsed
        stopped = -math.expm1(log_survival(group, shared, elapsed, columns))
        value += stopped * max(waited - value, 0.0)
    if active < 1.0:
        value = active * value + (1.0 - active) * value_if_stopped(RETURN * rate, elapsed)
    return float(page[columns.importance] * value)


@inlined()
def active_value(
    page: FloatArray,
    columns: Places,
    elapsed: float,
    x: float,
    expected_changes: float,
    rate: float,
    alone: float,
) -> float:
    """Return the crawl value of a page that is still active, for an importance of 1.

    It is 1 / Delta (1 - (1 + B) exp(-x)), with B the expected number of changes since the last
    crawl. It equals V_GREEDY without signals, B = x = Delta tau. It equals V_GREEDY_NCIS where
    every change is signalled, with B = n p and exp(-x) = (1 - p)^n for n signals of precision p.
    Without a single signal to the page it is at least the first summand of V_GREEDY_NCIS (Theorem
    1). No other summand exists before a signal if every signal makes the page less fresh than it is
    now.
    """
    fresh = math.exp(-x)
    value = (1.0 - (1.0 + expected_changes) * fresh) / rate
    gamma = page[columns.signal_rate]
    if alone == 0.0 and gamma * elapsed > 1e-6:
        both = rate - page[columns.signalled_rate] + gamma
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
    """Write the crawl value of every page to ``values``, (m,); 0 if it is not alive.

    ``estimates``, (3, m), receives evidence, expected changes and change rate by :func:`read_page`.
    """
    pages, groups, _, shared, group = memory
    columns = places(shared)
    weights = np.empty(columns.channels)
    for number in range(elapsed.shape[0]):
        x = expected_changes = rate = values[number] = 0.0
        if alive[number]:
            state = pages[number], groups[group[number]], shared, columns
            x, expected_changes, rate = read_page(*state, now, elapsed[number], weights)
            values[number] = value_of(*state, elapsed[number], x, expected_changes, rate)
        estimates[0, number], estimates[1, number], estimates[2, number] = x, expected_changes, rate


@compiled(SCORE.signature)
def score(
    memory: Memory, now: float, elapsed: FloatArray, alive: BoolArray, scores: FloatArray
) -> None:
    """Write the crawl value of every page to ``scores``, (m,); 0 if it is not alive."""
    write_values(memory, now, elapsed, alive, scores, np.empty((3, elapsed.shape[0])))
