r"""Signals that reach several pages of a group at once: a deploy, a commit to a directory.

Signals to most pages of a group at one instant share a cause, a broadcast. In the model of
independent signals (Busa-Fekete et al., section 3) each leaves its page fresh with probability
exp(-b), independently of the others. Here that is exp(-b z), with a weight z of the broadcast that
all its pages share: Gamma distributed around the weight of its class, and learned from every crawl
of one of them. The estimate is (k + observed) / (k + expected), which replaces the posterior mean,
with the changes attributed to the broadcast and those expected from its class. Classes are known at
once: by the number of groups touched at that instant, and whether there were signals to single
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
    """Return the class of a broadcast: by the number of groups, and by single signals beside it."""
    size = 0 if touched <= 1 else 1 if touched <= 3 else 2 if touched <= 9 else 3
    return 2 * size + accompanied


@inlined()
def broadcast(
    row: FloatArray, events: FloatArray, shared: FloatArray, source: int, kind: int, now: float
) -> float:
    """Add a new broadcast to the ring of its group, and return its weight."""
    at, number = places(shared), int(shared[EVENT])
    shared[EVENT] += 1.0
    event = events[number % EVENTS]
    among = events[EVENTS + kind]
    base = (shared[CLASS_PRIOR] + among[CLASS_OBSERVED]) / (
        shared[CLASS_PRIOR] + among[CLASS_EXPECTED]
    )
    event[OBSERVED], event[EXPECTED] = 0.0, 0.0
    event[BASE], event[WEIGHT] = base, base
    event[SOURCE], event[CLASS] = source, kind
    place = int(row[at.broadcasts])
    row[at.listed + place % RING] = number
    fade = math.exp(-(now - row[at.paced]) / shared[PACE_MEMORY])
    row[at.paced] = now
    for other in range(at.sources):
        first = at.sums + other * RING
        added = event[WEIGHT] if other == source else 0.0
        row[first + (place + 1) % RING] = row[first + place % RING] + added
        row[at.pace + other] = fade * row[at.pace + other] + added
    row[at.broadcasts] = place + 1
    return float(base)


@inlined()
def broadcast_weight_since(row: FloatArray, at: Places, source: int, before: float) -> float:
    """Return the total weight of a group's broadcasts from number ``before`` on, of one source."""
    last = int(row[at.broadcasts])
    count = last - int(before)
    if count <= 0:
        return 0.0
    first, kept = at.sums + source * RING, min(count, RING - 1)
    total = row[first + last % RING] - row[first + (last - kept) % RING]
    return float(max(total * count / kept, 0.0))


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
    """Update a group's broadcasts from number ``before`` on after a crawl of one of its pages.

    ``evidence`` (S,) is the evidence of a broadcast of weight 1 about the page, and ``certain`` the
    probability that the page had changed for any reason.
    """
    at = places(shared)
    last = int(row[at.broadcasts])
    shift = np.zeros(at.sources)
    for place in range(last - min(last - int(before), RING - 1), last):
        number = int(row[at.listed + place % RING])
        if number > shared[EVENT] - EVENTS:
            event = events[number % EVENTS]
            source = int(event[SOURCE])
            own = evidence[source]
            shift[source] += update_weight(event, events, shared, own, certain, changed)
        for source in range(at.sources):
            row[at.sums + source * RING + (place + 1) % RING] += shift[source]


@inlined()
def update_weight(
    event: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    evidence: float,
    certain: float,
    changed: bool,
) -> float:
    """Update one broadcast, and return the change of its weight."""
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
def on_signals_together(memory: Memory, page: IntArray, source: IntArray, now: float) -> None:
    """Update the belief on the signals of one instant.

    Signals to most pages of a group are one broadcast. It is not counted for a page with a signal
    of its own at that instant: the own signal is the better explanation.
    """
    pages, groups, events, shared, group = memory
    at, singles = places(shared), 0
    touched = count_together(groups, shared, group, page, source)
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
