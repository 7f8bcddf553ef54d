"""The compiled functions of a corrected belief: those of the belief, with a history beside it."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from agents.evolution.belief.delay_guesses import read_at_face_value, weigh_guesses
from agents.evolution.belief.features import (
    FROM_SHARED,
    Belief,
    hour_of,
    write_at_face_value,
    write_believed,
    write_heard,
    write_shared,
    write_timed,
    write_unheeding,
)
from agents.evolution.belief.history import (
    SOON,
    begin,
    calibrate,
    heard_one,
    kind_of,
    learn_group,
    learn_history,
)
from agents.evolution.belief.inputs import INPUTS
from agents.evolution.belief.layout import (
    BEST,
    CALIBRATION,
    COUNTED,
    CYCLE,
    DAY,
    GROUP_SURPRISE,
    HEARD_RATE,
    HIDDEN,
    LEAST,
    TRUST,
    WEIGHTS,
)
from agents.evolution.network import Weights, forward
from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.types.compiling import LEARN, ON_BIRTH_OR_DEATH, ON_SIGNAL, SCORE, compiled
from policies.ncis.belief import kernels as belief
from policies.ncis.belief.hazards import evidence_of
from policies.ncis.belief.layout import EVENTS, FLOOR, RING, Places, places

Arrays: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, IntArray]
"""Those of :class:`crawl_envs.types.compiled_policies.Memory`, in that order."""
NUM_INPUTS = len(INPUTS)
LARGEST_LOG_FACTOR = math.log(3.0)
"""L: factors are exp(L tanh(g / L)), in (1/3, 3), with g the network's output."""

belief_on_birth_or_death, belief_learn = belief.on_birth_or_death, belief.learn
belief_on_signal, read_page = belief.on_signal, belief.read_page
signals_since = belief.write_heard


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
    """A page is born, fresh, or dies."""
    belief_on_birth_or_death(pages, groups, events, shared, group, page, time, alive)
    begin(pages[page], places(shared).page_width, time, shared[DAY])


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
    """Take in a crawl."""
    at, row, own = places(shared), pages[page], groups[group[page]]
    heard = np.empty(at.channels)
    signals_since(row, own, at, heard)
    x = evidence_of(row, at, elapsed, heard)
    expected = -math.expm1(-x)
    weigh_guesses(row, at.page_width, shared, row[at.scale], elapsed, x, changed)
    kind = kind_of(row, at.page_width, shared[CYCLE], broadcast_since(row, own, at))
    calibrate(shared, kind, expected, changed)
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
    """Take in the signals of a step."""
    at = places(shared)
    belief_on_signal(pages, groups, events, shared, group, page, time, source)
    for k in range(page.shape[0]):
        row, alone = pages[page[k]], 0.0
        for channel in range(at.own):
            alone += row[at.heard + channel]
        if row[at.page_width + COUNTED] < alone:
            heard_one(row, at.page_width, time[k], shared[CYCLE], shared[DAY])


@compiled()
def broadcast_since(row: FloatArray, own: FloatArray, at: Places) -> bool:
    """Return whether a broadcast came to a page's group since its crawl."""
    return bool(at.channels > at.own and own[at.broadcasts] > row[at.before])


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
    """Write the crawl value of every page, times its factor where it is a candidate."""
    memory = pages, groups, events, shared, group
    believed = np.empty((3, elapsed.shape[0]))
    value_all(memory, now, elapsed, alive, scores, believed)
    chosen = candidates(scores, shared[LEAST])
    features = np.zeros((NUM_INPUTS, chosen.shape[0]))
    describe(memory, now, elapsed, chosen, believed, features)
    output = np.empty(chosen.shape[0])
    forward(weights_in(shared), features, output)
    for k in range(chosen.shape[0]):
        bent = LARGEST_LOG_FACTOR * math.tanh(output[k] / LARGEST_LOG_FACTOR)
        scores[chosen[k]] *= math.exp(bent)


@compiled()
def weights_in(shared: FloatArray) -> Weights:
    """Return the network that is kept in ``shared``."""
    hidden, first = int(shared[HIDDEN]), WEIGHTS
    inner = shared[first : first + hidden * NUM_INPUTS].reshape((hidden, NUM_INPUTS))
    first += hidden * NUM_INPUTS
    bias, outer = shared[first : first + hidden], shared[first + hidden : first + 2 * hidden]
    first += 2 * hidden
    return Weights(inner, bias, outer, shared[first : first + NUM_INPUTS])


@compiled()
def value_all(
    memory: Arrays,
    now: float,
    elapsed: FloatArray,
    alive: BoolArray,
    scores: FloatArray,
    believed: FloatArray,
) -> None:
    """Write the crawl values, 0 of pages that do not exist, and x, B and rates, (3, m)."""
    pages, groups, _, shared, group = memory
    at = places(shared)
    heard = np.empty(at.channels)
    columns = at.channels, at.believed, at.heard, at.rate
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
                    row, own, shared, at, now, elapsed[number], heard
                )
            value = 1.0 - (1.0 + expected_changes) * math.exp(-x)
            scores[number] = row[at.importance] / rate * value
            believed[0, number], believed[1, number], believed[2, number] = (
                x,
                expected_changes,
                rate,
            )


@compiled()
def read_alone(
    row: FloatArray,
    elapsed: float,
    channels: int,
    believed: int,
    heard: int,
    rate: int,
    floor: float,
) -> tuple[float, float, float]:
    """Return what :func:`policies.ncis.belief.kernels.read_page` does, quickly, without groups."""
    x = row[believed] * elapsed
    expected_changes = x
    for channel in range(channels):
        number = row[heard + channel]
        if number > 0.0:
            evidence = row[believed + 1 + channel] * number
            x += evidence
            expected_changes += number * -math.expm1(-evidence / number)
    return x, expected_changes, row[rate] + floor


@compiled()
def candidates(values: FloatArray, share: float) -> IntArray:
    """Return the pages of at least so large a share of the largest value, but none of value 0.

    With factors in [1 / L, L], no page below 1 / L^2 of the largest value can come to be first.
    """
    least = share * values.max()
    chosen, count = np.empty(values.shape[0], np.int64), 0
    for number in range(values.shape[0]):
        if values[number] > 0.0 and values[number] >= least:
            chosen[count] = number
            count += 1
    return chosen[:count]


@compiled()
def describe(
    memory: Arrays,
    now: float,
    elapsed: FloatArray,
    chosen: IntArray,
    believed: FloatArray,
    features: FloatArray,
) -> None:
    """Write the network's inputs of ``chosen`` pages, (n,), into ``features``, (K, n), zeros."""
    pages, groups, events, shared, group = memory
    at, hour = places(shared), hour_of(shared, now)
    first, heard = at.page_width, np.empty(at.channels)
    for k in range(chosen.shape[0]):
        number = chosen[k]
        row, own, since = pages[number], groups[group[number]], elapsed[number]
        told = Belief(believed[0, number], believed[1, number], believed[2, number])
        write_believed(features, k, row, first, told, now, since, shared[CYCLE])
        signals_since(row, own, at, heard)
        alone, usual = 0.0, 0.0
        for channel in range(at.own):
            alone += row[at.believed + 1 + channel] * heard[channel]
            usual += row[at.believed + 1 + at.channels + channel] * shared[CYCLE]
        together = broadcast_since(row, own, at)
        write_heard(features, k, row, first, shared, now, alone, usual, together)
        write_unheeding(features, k, told, since, shared[CALIBRATION + SOON])
        as_told = belief_at_face_value(row, at, shared, since)
        write_at_face_value(features, k, told, as_told, shared[TRUST])
        features[FROM_SHARED, k] = own[at.group_width + GROUP_SURPRISE]
        if together:
            event = newest_broadcast(own, events, at)
            evidence = told.x - alone - row[at.believed] * since
            write_shared(features, k, event, evidence)
        if shared[DAY] > 0.0:
            write_timed(features, k, row, first, hour, since, shared[DAY])


@compiled()
def belief_at_face_value(row: FloatArray, at: Places, shared: FloatArray, elapsed: float) -> Belief:
    """Return what a page is if what is told is true, by the likeliest guess of the delay."""
    first, alpha, guess = at.page_width, row[at.scale], int(shared[BEST])
    x, expected_changes = read_at_face_value(row, first, alpha, elapsed, shared[CYCLE], guess)
    return Belief(x, expected_changes, alpha + row[first + HEARD_RATE] + shared[FLOOR])


@compiled()
def newest_broadcast(own: FloatArray, events: FloatArray, at: Places) -> FloatArray:
    """Return the newest broadcast of a group that had one, (EVENT_WIDTH,)."""
    place = int(own[at.broadcasts]) - 1
    newest: FloatArray = events[int(own[at.listed + place % RING]) % EVENTS]
    return newest
