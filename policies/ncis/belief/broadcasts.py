r"""Signals that reach several pages of a group at once: a deploy, a commit to a directory.

Signals to most pages of a group at one instant share a cause, a broadcast. In the model of
independent signals (Busa-Fekete et al., section 3) each leaves its page fresh with probability
exp(-b), independently of the others. Here that is exp(-b z), with a weight z of the broadcast that
all its pages share: Gamma distributed around the weight of its class, and learned from every crawl
of these pages. The estimate is (k + observed) / (k + expected), which replaces the posterior mean,
with the changes attributed to the broadcast and those expected from its class. The class follows
from the number of groups touched at that instant, and from whether there were signals to single
pages too. The weights of classes are learned in the same way.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import Memory
from policies.ncis.belief.layout import (
    BASE,
    CLASS,
    CLASS_EXPECTED,
    CLASS_OBSERVED,
    CLASS_PRIOR,
    EVENT,
    EVENT_PRIOR,
    EVENTS,
    EXPECTED,
    INSTANT,
    OBSERVED,
    PACE_MEMORY,
    RING,
    SOURCE,
    WEIGHT,
    Places,
    places,
)


@inlined()
def class_of(touched: int, accompanied: bool) -> int:
    """Return the class of a broadcast that ``touched`` groups, with or without single signals."""
    size = 0 if touched <= 1 else 1 if touched <= 3 else 2 if touched <= 9 else 3
    return 2 * size + accompanied


@inlined()
def broadcast(
    row: FloatArray, events: FloatArray, shared: FloatArray, source: int, kind: int, now: float
) -> float:
    """Add a new broadcast to the ring of its group, and return its initial weight."""
    columns, number = places(shared), int(shared[EVENT])
    shared[EVENT] += 1.0
    event = events[number % EVENTS]
    among = events[EVENTS + kind]
    base = (shared[CLASS_PRIOR] + among[CLASS_OBSERVED]) / (
        shared[CLASS_PRIOR] + among[CLASS_EXPECTED]
    )
    event[OBSERVED], event[EXPECTED] = 0.0, 0.0
    event[BASE], event[WEIGHT] = base, base
    event[SOURCE], event[CLASS] = source, kind
    place = int(row[columns.broadcasts])
    row[columns.listed + place % RING] = number
    fade = math.exp(-(now - row[columns.paced]) / shared[PACE_MEMORY])
    row[columns.paced] = now
    for s in range(columns.sources):
        first = columns.sums + s * RING
        added = event[WEIGHT] if s == source else 0.0
        row[first + (place + 1) % RING] = row[first + place % RING] + added
        row[columns.pace + s] = fade * row[columns.pace + s] + added
    row[columns.broadcasts] = place + 1
    return float(base)


@inlined()
def broadcast_weight_since(row: FloatArray, columns: Places, source: int, before: float) -> float:
    """Return the total weight of a group's broadcasts of one source from number ``before`` on."""
    last = int(row[columns.broadcasts])
    count = last - int(before)
    if count <= 0:
        return 0.0
    first, stored = columns.sums + source * RING, min(count, RING - 1)
    total = row[first + last % RING] - row[first + (last - stored) % RING]
    return float(max(total * count / stored, 0.0))


@inlined()
def update_weights(
    row: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    before: float,
    evidence: FloatArray,
    certain: float,
    changed: bool,
) -> None:
    """Update the weights of a group's broadcasts by the result of a crawl of one of its pages.

    Broadcasts from number ``before`` on came since the page's last crawl. ``evidence`` (S,) is the
    evidence of a broadcast of weight 1 about the page, and ``certain`` the probability that the
    page had changed for any reason.
    """
    columns = places(shared)
    last = int(row[columns.broadcasts])
    shift = np.zeros(columns.sources)
    for place in range(last - min(last - int(before), RING - 1), last):
        number = int(row[columns.listed + place % RING])
        if number > shared[EVENT] - EVENTS:
            event = events[number % EVENTS]
            source = int(event[SOURCE])
            source_evidence = evidence[source]
            shift[source] += update_weight(event, events, shared, source_evidence, certain, changed)
        for source in range(columns.sources):
            row[columns.sums + source * RING + (place + 1) % RING] += shift[source]


@inlined()
def update_weight(
    event: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    evidence: float,
    certain: float,
    changed: bool,
) -> float:
    """Update the weight of one broadcast by the result of a crawl; return the weight's change."""
    before = event[WEIGHT]
    observed = evidence * before / max(certain, 1e-9) if changed else 0.0
    among = events[EVENTS + int(event[CLASS])]
    among[CLASS_OBSERVED] += observed
    among[CLASS_EXPECTED] += evidence * before / event[BASE]
    event[OBSERVED] += observed
    event[EXPECTED] += evidence * event[BASE]
    prior = shared[EVENT_PRIOR]
    event[WEIGHT] = event[BASE] * (prior + event[OBSERVED]) / (prior + event[EXPECTED])
    return float(event[WEIGHT] - before)


@inlined()
def count_signals(
    groups: FloatArray, shared: FloatArray, group: IntArray, page: IntArray, source: IntArray
) -> int:
    """Count the signals of one instant by group and source; return how many groups they reach."""
    columns, touched = places(shared), 0
    shared[INSTANT] += 1.0
    for k in range(page.shape[0]):
        group_row = groups[group[page[k]]]
        if group_row[columns.instant] != shared[INSTANT]:
            group_row[columns.instant] = shared[INSTANT]
            group_row[columns.counted : columns.counted + columns.sources] = 0.0
            touched += 1
        group_row[columns.counted + source[k]] += 1.0
    return touched


@compiled()
def is_broadcast(group: FloatArray, columns: Places, source: int) -> bool:
    """Return whether the signals counted for a source reach most pages of a group."""
    count = group[columns.counted + source]
    return bool(count > 1.0 and 2.0 * count > group[columns.size])


@inlined()
def on_signals_together(memory: Memory, page: IntArray, source: IntArray, now: float) -> None:
    """Update the belief by the signals that came at one instant.

    Signals to most pages of a group are one broadcast. It does not count for a page with a single
    signal at that instant, which is the better explanation.
    """
    pages, groups, events, shared, group = memory
    columns, singles = places(shared), 0
    touched = count_signals(groups, shared, group, page, source)
    for k in range(page.shape[0]):
        group_row = groups[group[page[k]]]
        singles += not is_broadcast(group_row, columns, source[k])
    kind = class_of(touched, singles > 0)
    for k in range(page.shape[0]):
        group_row = groups[group[page[k]]]
        if is_broadcast(group_row, columns, source[k]):
            weight = broadcast(group_row, events, shared, source[k], kind, now)
            group_row[columns.counted + source[k]] = -weight - 1.0  # negative: a broadcast
    for k in range(page.shape[0]):
        group_row, row = groups[group[page[k]]], pages[page[k]]
        if group_row[columns.counted + source[k]] < 0.0:
            continue
        accompanied = False
        for s in range(columns.sources):
            if group_row[columns.counted + s] < 0.0:
                accompanied = True
                row[columns.excluded + s] += -group_row[columns.counted + s] - 1.0
        row[columns.signals + source[k] + accompanied * columns.sources] += 1.0
