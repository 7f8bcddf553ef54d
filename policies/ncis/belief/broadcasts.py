r"""Signals that reach several pages of a group at once: a deploy, a commit to a directory.

Most pages of a group that are signalled at one instant share a cause, a broadcast. In the model of
independent signals (Busa-Fekete et al., section 3) it leaves a page fresh with probability
exp(-b), whatever became of the others. Here that is exp(-b z), with a weight z of the broadcast
that all its pages share: Gamma distributed around the weight of its class, and learned from every
crawl of one of them, (k + found) / (k + expected) in the place of its posterior mean, with found
the changes that are put down to it and expected those that its class lets one expect. Classes are
known at once: how many groups were touched at that instant, and whether a page was told of by
itself. What broadcasts of a class weigh is learned in the same way.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from policies.ncis.belief.layout import (
    BASE,
    CLASS,
    CLASS_EXPECTED,
    CLASS_FOUND,
    CLASS_PRIOR,
    EVENT,
    EVENT_PRIOR,
    EVENTS,
    EXPECTED,
    FOUND,
    PACE_MEMORY,
    RING,
    SOURCE,
    WEIGHT,
    Places,
    places,
)


@compiled()
def class_of(touched: int, accompanied: bool) -> int:
    """Return the class of a broadcast: by groups that it touched at once, and by company."""
    size = 0 if touched <= 1 else 1 if touched <= 3 else 2 if touched <= 9 else 3
    return 2 * size + accompanied


@compiled()
def broadcast(
    row: FloatArray, events: FloatArray, shared: FloatArray, source: int, kind: int, now: float
) -> float:
    """Enter a new broadcast into the ring of its group; returns its weight."""
    at, number = places(shared), int(shared[EVENT])
    shared[EVENT] += 1.0
    event = events[number % EVENTS]
    among = events[EVENTS + kind]
    base = (shared[CLASS_PRIOR] + among[CLASS_FOUND]) / (
        shared[CLASS_PRIOR] + among[CLASS_EXPECTED]
    )
    event[FOUND], event[EXPECTED] = 0.0, 0.0
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


@compiled()
def heard_since(row: FloatArray, at: Places, source: int, before: float) -> float:
    """Return the weights of a group's broadcasts from number ``before`` on, of one source."""
    last = int(row[at.broadcasts])
    count = last - int(before)
    if count <= 0:
        return 0.0
    first, kept = at.sums + source * RING, min(count, RING - 1)
    total = row[first + last % RING] - row[first + (last - kept) % RING]
    return float(max(total * count / kept, 0.0))


@compiled()
def judge(
    row: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    before: float,
    evidence: FloatArray,
    certain: float,
    changed: bool,
) -> None:
    """Tell a group's broadcasts from number ``before`` on what a crawl of one of its pages found.

    ``evidence`` (S,) is what a broadcast of weight 1 tells of the page, and ``certain`` the
    probability that it had changed for whatever reason.
    """
    at = places(shared)
    last = int(row[at.broadcasts])
    shift = np.zeros(at.sources)
    for place in range(last - min(last - int(before), RING - 1), last):
        number = int(row[at.listed + place % RING])
        if number > shared[EVENT] - EVENTS:
            event = events[number % EVENTS]
            source = int(event[SOURCE])
            shift[source] += judge_one(event, events, shared, evidence[source], certain, changed)
        for source in range(at.sources):
            row[at.sums + source * RING + (place + 1) % RING] += shift[source]


@compiled()
def judge_one(
    event: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    evidence: float,
    certain: float,
    changed: bool,
) -> float:
    """Tell one broadcast; returns by how much its weight changed."""
    before = event[WEIGHT]
    found = evidence * before / max(certain, 1e-9) if changed else 0.0
    among = events[EVENTS + int(event[CLASS])]
    among[CLASS_FOUND] += found
    among[CLASS_EXPECTED] += evidence * before / event[BASE]
    event[FOUND] += found
    event[EXPECTED] += evidence * event[BASE]
    prior = shared[EVENT_PRIOR]
    event[WEIGHT] = event[BASE] * (prior + event[FOUND]) / (prior + event[EXPECTED])
    return float(event[WEIGHT] - before)
