"""The compiled functions of a described belief: the belief's, extended by a history."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from agents.generalist.belief.delay_hypotheses import read_hypothesis, weigh_hypotheses
from agents.generalist.belief.features import (
    FROM_SHARED,
    Belief,
    hour_of,
    write_believed,
    write_hypothesis,
    write_shared,
    write_signals,
    write_timed,
    write_without_signals,
)
from agents.generalist.belief.history import (
    SOON,
    add_signal,
    begin,
    calibrate,
    interval_kind_of,
    kind_of,
    learn_group,
    learn_history,
)
from agents.generalist.belief.layout import (
    BEST,
    CALIBRATION,
    COUNTED,
    CYCLE,
    GROUP_SURPRISE,
    SIGNALLED_RATE,
    TRUST,
)
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import LEARN, ON_BIRTH_OR_DEATH, ON_SIGNAL, compiled, inlined
from policies.ncis.belief import kernels as belief
from policies.ncis.belief.layout import EVENTS, FLOOR, RING, Places, places

Arrays: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, IntArray]
"""The fields of :class:`crawl_envs.types.compiled_policies.Memory`, in order."""

belief_on_birth_or_death, belief_learn = belief.on_birth_or_death, belief.learn
belief_on_signal, read_page = belief.on_signal, belief.read_page
evidence_of, value_of = belief.evidence_of, belief.value_of
signals_since = belief.write_signal_weights


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
    """Reset a page that is born, fresh, or dies."""
    belief_on_birth_or_death(pages, groups, events, shared, group, page, time, alive)
    begin(pages[page], places(shared).page_width, time)


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
    """Update the belief and the history by a crawl."""
    at, row, own = places(shared), pages[page], groups[group[page]]
    weights = np.empty(at.channels)
    signals_since(row, own, at, weights)
    x = evidence_of(row, at, elapsed, weights)
    expected = -math.expm1(-x)
    weigh_hypotheses(row, at.page_width, shared, row[at.scale], elapsed, x, changed)
    kind = kind_of(row, at.page_width, shared[CYCLE], broadcast_since(row, own, at))
    calibrate(shared, kind, expected, changed)
    interval = interval_kind_of(row, at.page_width, elapsed, shared[CYCLE])
    calibrate(shared, interval, expected, changed)
    learn_group(own, at, expected, changed)
    learn_history(row, at.page_width, shared, time, elapsed, expected, changed)
    belief_learn(
        pages, groups, events, shared, group, page, time, elapsed, signals, changed
    )  # fmt: skip


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
    """Update the belief and the history by the signals of a step."""
    at = places(shared)
    belief_on_signal(pages, groups, events, shared, group, page, time, source)
    for k in range(page.shape[0]):
        row, alone = pages[page[k]], 0.0
        for channel in range(at.own):
            alone += row[at.signals + channel]
        if row[at.page_width + COUNTED] < alone:
            add_signal(row, at.page_width, time[k], shared[CYCLE])


@inlined()
def broadcast_since(row: FloatArray, own: FloatArray, at: Places) -> bool:
    """Return whether a broadcast came to a page's group since its crawl."""
    return bool(at.channels > at.own and own[at.broadcasts] > row[at.before])


@inlined()
def value_all(
    memory: Arrays,
    now: float,
    elapsed: FloatArray,
    alive: BoolArray,
    scores: FloatArray,
    believed: FloatArray,
) -> None:
    """Write crawl values, 0 where a page does not exist, and x, B and rates, (3, m)."""
    pages, groups, _, shared, group = memory
    at = places(shared)
    weights = np.empty(at.channels)
    columns = at.channels, at.believed, at.signals, at.rate
    for number in range(elapsed.shape[0]):
        scores[number] = 0.0
        if alive[number]:
            row = pages[number]
            if at.channels == at.own:
                x, expected_changes, rate = read_alone(
                    row, elapsed[number], *columns, shared[FLOOR]
                )
            else:
                own = groups[group[number]]
                x, expected_changes, rate = read_page(
                    row, own, shared, at, now, elapsed[number], weights
                )
            scores[number] = value_of(
                row, groups[group[number]], shared, at, elapsed[number], x, expected_changes, rate
            )
            believed[0, number], believed[1, number], believed[2, number] = (
                x,
                expected_changes,
                rate,
            )


@inlined()
def read_alone(
    row: FloatArray,
    elapsed: float,
    channels: int,
    believed: int,
    signals: int,
    rate: int,
    floor: float,
) -> tuple[float, float, float]:
    """Return :func:`policies.ncis.belief.kernels.read_page` of a page without groups, faster."""
    x = row[believed] * elapsed
    expected_changes = x
    for channel in range(channels):
        number = row[signals + channel]
        if number > 0.0:
            evidence = row[believed + 1 + channel] * number
            x += evidence
            expected_changes += number * -math.expm1(-evidence / number)
    return x, expected_changes, row[rate] + floor


@compiled()
def candidates(values: FloatArray, share: float) -> IntArray:
    """Return the pages of values > 0 and at least ``share`` of the largest."""
    least = share * values.max()
    chosen, count = np.empty(values.shape[0], np.int64), 0
    for number in range(values.shape[0]):
        if values[number] > 0.0 and values[number] >= least:
            chosen[count] = number
            count += 1
    return chosen[:count]


@inlined()
def describe(
    memory: Arrays,
    now: float,
    elapsed: FloatArray,
    chosen: IntArray,
    believed: FloatArray,
    features: FloatArray,
) -> None:
    """Write the inputs INPUTS for ``chosen`` pages, (n,), into zeros ``features``, (K, n)."""
    pages, groups, events, shared, group = memory
    at, hour = places(shared), hour_of(now)
    first, weights = at.page_width, np.empty(at.channels)
    for k in range(chosen.shape[0]):
        number = chosen[k]
        row, own, since = pages[number], groups[group[number]], elapsed[number]
        current = Belief(believed[0, number], believed[1, number], believed[2, number])
        write_believed(features, k, row, first, current, now, since, shared[CYCLE])
        signals_since(row, own, at, weights)
        alone, usual = 0.0, 0.0
        for channel in range(at.own):
            alone += row[at.believed + 1 + channel] * weights[channel]
            usual += row[at.believed + 1 + at.channels + channel] * shared[CYCLE]
        together = broadcast_since(row, own, at)
        write_signals(features, k, row, first, shared, now, alone, usual, together)
        write_without_signals(features, k, current, since, shared[CALIBRATION + SOON])
        by_hypothesis = belief_by_hypothesis(row, at, shared, since)
        write_hypothesis(features, k, current, by_hypothesis, shared[TRUST])
        features[FROM_SHARED, k] = own[at.group_width + GROUP_SURPRISE]
        if together:
            event = newest_broadcast(own, events, at)
            evidence = current.x - alone - row[at.believed] * since
            write_shared(features, k, event, evidence)
        write_timed(features, k, row, first, hour, since)


@inlined()
def belief_by_hypothesis(row: FloatArray, at: Places, shared: FloatArray, elapsed: float) -> Belief:
    """Return a page's belief under the given parameters and the likeliest delay."""
    first, alpha, hypothesis = at.page_width, row[at.scale], int(shared[BEST])
    x, expected_changes = read_hypothesis(row, first, alpha, elapsed, shared[CYCLE], hypothesis)
    return Belief(x, expected_changes, alpha + row[first + SIGNALLED_RATE] + shared[FLOOR])


@inlined()
def newest_broadcast(own: FloatArray, events: FloatArray, at: Places) -> FloatArray:
    """Return the newest broadcast of a group that had one, (EVENT_WIDTH,)."""
    place = int(own[at.broadcasts]) - 1
    newest: FloatArray = events[int(own[at.listed + place % RING]) % EVENTS]
    return newest
