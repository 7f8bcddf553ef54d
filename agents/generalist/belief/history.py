"""Histories of pages, groups and the episode, which a correction keeps beside the belief."""

from __future__ import annotations

import math

from agents.generalist.belief.delay_hypotheses import add_to_hypotheses
from agents.generalist.belief.layout import (
    CALIBRATION,
    CHANGE_AT,
    CHANGES,
    COS,
    COUNTED,
    COUNTS,
    CRAWL_COS,
    CRAWL_SIN,
    CRAWLED_AT,
    CRAWLS,
    DETECTED_AT,
    ECHO,
    EVIDENCE,
    EXPECTED,
    FIRST,
    GROUP_CHANGES,
    GROUP_EXPECTED,
    GROUP_SURPRISE,
    HOURS,
    HYPOTHESES,
    LAST_CHANGED,
    NEWEST,
    PACE,
    PACED,
    PAGE_WIDTH,
    PENDING_COS,
    PENDING_SIN,
    SIGNAL_KINDS,
    SIN,
    STATIC,
    SURPRISE,
)
from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled, inlined
from policies.ncis.belief.layout import Places

NEVER = -1e9
"""Time of an event that never happened."""
UNSIGNALLED, SOON, BROADCAST = 0, 1, 5
"""Kinds of states of a page: no signal since its crawl; a first signal after a time in one of the
ranges between DELAYS (SOON and the kinds after it); only broadcasts."""
DELAYS = (0.15, 0.5, 1.2)
"""In cycles T."""
LENGTHS = (0.4045, 1.2045)
"""In cycles T, between the slots of round numbers of pages: elapsed times are rounded."""
CALIBRATED = 3.0
"""The c of an episode's calibrations ln((c + changes) / (c + expected)); a group has c = 1."""
RECENT = 0.35
"""Weight of a page's last crawl in the moving average of its surprises."""
GROUP_FADE = 0.95
"""Factor by which each crawl reduces the weight of earlier crawls of its group."""
FULL_TURN = 2.0 * math.pi
"""Angle of the hours of a day, which is a unit of time."""


@compiled()
def begin(row: FloatArray, first: int, time: float) -> None:
    """Clear a page's history: it is fresh at ``time``."""
    row[first + STATIC : first + PAGE_WIDTH] = 0.0
    row[first + DETECTED_AT] = row[first + PACED] = row[first + CHANGE_AT] = NEVER
    crawled(row, first, time)


@compiled()
def crawled(row: FloatArray, first: int, time: float) -> None:
    """Reset what is counted since a page's last crawl."""
    row[first + CRAWLED_AT] = time
    row[first + COUNTED] = row[first + FIRST] = 0.0
    row[first + NEWEST] = NEVER
    row[first + EVIDENCE : first + EVIDENCE + HYPOTHESES] = 0.0
    row[first + COUNTS : first + COUNTS + HYPOTHESES] = 0.0
    row[first + PENDING_COS] = row[first + PENDING_SIN] = 0.0
    row[first + CRAWL_COS] = math.cos(FULL_TURN * time)
    row[first + CRAWL_SIN] = math.sin(FULL_TURN * time)


@inlined()
def add_signal(row: FloatArray, first: int, time: float, cycle: float) -> None:
    """Add a signal of a single page, not a broadcast."""
    age = max(time - row[first + CRAWLED_AT], 0.0)
    add_to_hypotheses(row, first, age, cycle)
    if row[first + COUNTED] == 0.0:
        row[first + FIRST] = age
    row[first + COUNTED] += 1.0
    row[first + NEWEST] = time
    row[first + PACE] = 1.0 + row[first + PACE] * math.exp((row[first + PACED] - time) / cycle)
    row[first + PACED] = time
    row[first + PENDING_COS] += math.cos(FULL_TURN * time)
    row[first + PENDING_SIN] += math.sin(FULL_TURN * time)


@inlined()
def kind_of(row: FloatArray, first: int, cycle: float, broadcasts: bool) -> int:
    """Return the kind of a page's state, by the signals since its crawl."""
    if row[first + COUNTED] == 0.0:
        return BROADCAST if broadcasts else UNSIGNALLED
    delay, kind = row[first + FIRST], SOON
    for limit in DELAYS:
        kind += delay > limit * cycle
    return kind


@inlined()
def interval_kind_of(row: FloatArray, first: int, elapsed: float, cycle: float) -> int:
    """Return the kind of an interval between crawls: by its length, and what the first one saw."""
    kind = SIGNAL_KINDS + (len(LENGTHS) + 1 if row[first + LAST_CHANGED] > 0.0 else 0)
    for limit in LENGTHS:
        kind += elapsed > limit * cycle
    return kind


@compiled()
def calibrate(shared: FloatArray, kind: int, expected: float, changed: bool) -> None:
    """Count a crawl of a page in a state; ``expected`` is the believed probability of a change."""
    shared[CHANGES + kind] += changed
    shared[EXPECTED + kind] += expected
    changes = CALIBRATED + shared[CHANGES + kind]
    shared[CALIBRATION + kind] = math.log(changes / (CALIBRATED + shared[EXPECTED + kind]))


@inlined()
def learn_group(own: FloatArray, at: Places, expected: float, changed: bool) -> None:
    """Count a crawl of a page of a group; ``expected`` as for :func:`calibrate`."""
    last = at.group_width
    own[last + GROUP_CHANGES] = GROUP_FADE * own[last + GROUP_CHANGES] + changed
    own[last + GROUP_EXPECTED] = GROUP_FADE * own[last + GROUP_EXPECTED] + expected
    changes = 1.0 + own[last + GROUP_CHANGES]
    own[last + GROUP_SURPRISE] = math.log(changes / (1.0 + own[last + GROUP_EXPECTED]))


@inlined()
def learn_history(
    row: FloatArray,
    first: int,
    shared: FloatArray,
    time: float,
    elapsed: float,
    expected: float,
    changed: bool,
) -> None:
    """Add a crawl to a page's history; ``expected`` as for :func:`calibrate`."""
    row[first + LAST_CHANGED] = 1.0 if changed else -1.0
    signalled = row[first + COUNTED] > 0.0
    row[first + ECHO] = (0.0 if signalled else 1.0) if changed else -1.0
    row[first + SURPRISE] += RECENT * (changed - expected - row[first + SURPRISE])
    row[first + CRAWLS] += 1.0
    learn_hours(row, first, time, elapsed, expected, changed)
    if changed:
        row[first + DETECTED_AT] = time
        row[first + CHANGE_AT] = row[first + NEWEST] if signalled else time - 0.5 * elapsed
    crawled(row, first, time)


@inlined()
def learn_hours(
    row: FloatArray,
    first: int,
    time: float,
    elapsed: float,
    expected: float,
    changed: bool,
) -> None:
    """Learn the hours of a page's changes, the first harmonic of their density over the day.

    A signalled change is counted at the hours of its signals, an unsignalled one evenly over the
    time since the last crawl. Fewer changes than expected lower the density at these hours.
    """
    signals = row[first + COUNTED]
    if signals > 0.0:
        weight = 1.0 if changed else 0.0
        row[first + COS] += weight * row[first + PENDING_COS] / signals
        row[first + SIN] += weight * row[first + PENDING_SIN] / signals
    elif elapsed > 0.0:
        angle, turn = FULL_TURN * time, FULL_TURN * elapsed
        weight = (changed - expected) / turn
        row[first + COS] += weight * (math.sin(angle) - row[first + CRAWL_SIN])
        row[first + SIN] += weight * (row[first + CRAWL_COS] - math.cos(angle))
    row[first + HOURS] += 0.5 * (changed + expected)
