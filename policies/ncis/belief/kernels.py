"""The compiled functions of a belief about staleness: births, crawls, signals and scores."""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import LEARN, ON_BIRTH_OR_DEATH, ON_SIGNAL, SCORE, compiled, inlined
from policies.ncis.belief.broadcasts import (
    broadcast,
    broadcast_weight_since,
    class_of,
    update_weights,
)
from policies.ncis.belief.hazards import evidence_of, expected_changes_of, learn_page
from policies.ncis.belief.layout import CRAWLS, DUE, FLOOR, INSTANT, PACE_MEMORY, Places, places
from policies.ncis.belief.pooling import pool, renew_all

EVIDENCE, EXPECTED_CHANGES, RATE = range(3)


@inlined()
def read_pages(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    now: float,
    elapsed: FloatArray,
    alive: BoolArray,
) -> FloatArray:
    """Return evidence, expected changes and change rates of all pages, (3, m); 0 if not alive.

    :func:`read_page` defines them.
    """
    at = places(shared)
    weights, values = np.empty(at.channels), np.zeros((3, elapsed.shape[0]))
    for number in range(elapsed.shape[0]):
        if alive[number]:
            page, own = pages[number], groups[group[number]]
            x, expected_changes, rate = read_page(
                page, own, shared, at, now, elapsed[number], weights
            )
            values[EVIDENCE, number] = x
            values[EXPECTED_CHANGES, number] = expected_changes
            values[RATE, number] = rate
    return values


ROUNDING = 1e-9
"""A smaller share of the weight of broadcasts counts as 0: sums in a ring are rounded."""


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
def renew(pages: FloatArray, groups: FloatArray, shared: FloatArray, group: IntArray) -> None:
    """Update the estimates of all pages."""
    renew_all(pages, groups, group, places(shared))


@compiled(ON_BIRTH_OR_DEATH.signature)
def on_birth_or_death(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    page: int,
    time: float,
    alive: bool,
) -> None:
    """Update the belief on a page's birth, fresh, or death."""
    at, row, own = places(shared), pages[page], groups[group[page]]
    forget(row, own, at)
    own[at.size] += alive - row[at.exists]
    row[at.exists] = alive


@compiled(LEARN.signature)
def learn(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    page: int,
    time: float,
    elapsed: float,
    signals: FloatArray,
    changed: bool,
) -> None:
    """Update the belief after a crawl."""
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
        pool(pages, groups, group, at)


@compiled(ON_SIGNAL.signature)
def on_signal(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    page: IntArray,
    time: FloatArray,
    source: IntArray,
) -> None:
    """Update the belief on the signals of a step, instant by instant."""
    at, start = places(shared), 0
    while start < page.shape[0]:
        end = start
        while end < page.shape[0] and time[end] == time[start]:
            end += 1
        if end == start + 1 or at.channels == at.own:
            for k in range(start, end):
                pages[page[k], at.signals + source[k]] += 1.0
        else:
            on_signals_together(
                pages, groups, events, shared, group,
                page[start:end], source[start:end], time[start],
            )  # fmt: skip
        start = end


@inlined()
def count_together(
    groups: FloatArray, shared: FloatArray, group: IntArray, page: IntArray, source: IntArray
) -> int:
    """Count the signals of one instant by group and source, and return the number of groups."""
    at, touched = places(shared), 0
    shared[INSTANT] += 1.0
    for k in range(page.shape[0]):
        own = groups[group[page[k]]]
        if own[at.instant] != shared[INSTANT]:
            own[at.instant] = shared[INSTANT]
            own[at.counted : at.counted + at.sources] = 0.0
            touched += 1
        own[at.counted + source[k]] += 1.0
    return touched


@compiled()
def together(own: FloatArray, at: Places, source: int) -> bool:
    """Return whether the counted signals of a source reach most pages of a group."""
    count = own[at.counted + source]
    return bool(count > 1.0 and 2.0 * count > own[at.size])


@inlined()
def on_signals_together(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    page: IntArray,
    source: IntArray,
    now: float,
) -> None:
    """Update the belief on the signals of one instant.

    Signals to most pages of a group are one broadcast. It is not counted for a page with a signal
    of its own at that instant: the own signal is the better explanation.
    """
    at = places(shared)
    touched = count_together(groups, shared, group, page, source)
    singles = 0
    for k in range(page.shape[0]):
        own = groups[group[page[k]]]
        singles += not together(own, at, source[k])
    kind = class_of(touched, singles > 0)
    for k in range(page.shape[0]):
        own = groups[group[page[k]]]
        if together(own, at, source[k]):
            weight = broadcast(own, events, shared, source[k], kind, now)
            own[at.counted + source[k]] = -weight - 1.0  # negative: a broadcast, by its weight
    for k in range(page.shape[0]):
        own, row = groups[group[page[k]]], pages[page[k]]
        if own[at.counted + source[k]] < 0.0:
            continue
        accompanied = False
        for other in range(at.sources):
            if own[at.counted + other] < 0.0:
                accompanied = True
                row[at.excluded + other] += -own[at.counted + other] - 1.0
        row[at.signals + source[k] + accompanied * at.sources] += 1.0


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


@compiled(SCORE.signature)
def score(
    pages: FloatArray,
    groups: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    group: IntArray,
    now: float,
    elapsed: FloatArray,
    alive: BoolArray,
    scores: FloatArray,
) -> None:
    r"""Write the crawl value of every page, mu / Delta (1 - (1 + B) exp(-x)).

    B is the expected number of changes of the page since its last crawl. The value is V_GREEDY
    without signals, B = x = Delta tau; and V_GREEDY_NCIS where every change is signalled, with
    B = n p and exp(-x) = (1 - p)^n for n signals of precision p.
    """
    at = places(shared)
    weights = np.empty(at.channels)
    for number in range(elapsed.shape[0]):
        scores[number] = 0.0
        if alive[number]:
            page, own = pages[number], groups[group[number]]
            x, expected_changes, rate = read_page(
                page, own, shared, at, now, elapsed[number], weights
            )
            value = 1.0 - (1.0 + expected_changes) * math.exp(-x)
            scores[number] = page[at.importance] / rate * value
