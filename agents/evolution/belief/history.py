"""What a correction remembers of pages, groups and the episode, beyond what is believed of them."""

from __future__ import annotations

import math

from agents.evolution.belief.delay_guesses import weight_at_face_value
from agents.evolution.belief.layout import (
    CALIBRATION,
    CHANGE_AT,
    COS,
    COUNTED,
    COUNTS,
    CRAWL_COS,
    CRAWL_SIN,
    CRAWLED_AT,
    CRAWLS,
    DAY,
    EVIDENCE,
    EXPECTED,
    FIRST,
    FOUND,
    FOUND_AT,
    GROUP_EXPECTED,
    GROUP_FOUND,
    GROUP_SURPRISE,
    GUESSES,
    HOURS,
    LAST_FOUND,
    NEWEST,
    PACE,
    PACED,
    PAGE_WIDTH,
    PENDING_COS,
    PENDING_SIN,
    SIN,
    STANDING,
    SURPRISE,
    UNTOLD,
)
from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from policies.ncis.belief.layout import Places

NEVER = -1e9
"""The time of what never happened."""
UNHEARD, SOON, BROADCAST = 0, 1, 5
"""Kinds of states of a page: without a signal since its crawl; by the time from the crawl to the
first one, in the ranges that DELAYS part (SOON and the kinds after it); and broadcasts alone."""
DELAYS = (0.15, 0.5, 1.2)
"""In cycles T."""
CALIBRATED = 3.0
"""The c of calibrations ln((c + found) / (c + expected)) of an episode; of a group it is 1."""
RECENT = 0.35
"""Share of a page's last crawl in the mean of its surprises."""
GROUP_FADE = 0.95
"""What a crawl leaves of the weight of those of its group before."""
FULL_TURN = 2.0 * math.pi


@compiled()
def begin(row: FloatArray, first: int, time: float, day: float) -> None:
    """Begin a page's history: it is fresh at ``time``, and nothing is known of it."""
    row[first + STANDING : first + PAGE_WIDTH] = 0.0
    row[first + FOUND_AT] = row[first + PACED] = row[first + CHANGE_AT] = NEVER
    crawled(row, first, time, day)


@compiled()
def crawled(row: FloatArray, first: int, time: float, day: float) -> None:
    """Begin a page's time since its last crawl."""
    row[first + CRAWLED_AT] = time
    row[first + COUNTED] = row[first + FIRST] = 0.0
    row[first + NEWEST] = NEVER
    row[first + EVIDENCE : first + EVIDENCE + GUESSES] = 0.0
    row[first + COUNTS : first + COUNTS + GUESSES] = 0.0
    row[first + PENDING_COS] = row[first + PENDING_SIN] = 0.0
    if day > 0.0:
        row[first + CRAWL_COS] = math.cos(FULL_TURN * time / day)
        row[first + CRAWL_SIN] = math.sin(FULL_TURN * time / day)


@compiled()
def heard_one(row: FloatArray, first: int, time: float, cycle: float, day: float) -> None:
    """Take note of a signal of a page alone."""
    age = max(time - row[first + CRAWLED_AT], 0.0)
    weight_at_face_value(row, first, age, cycle)
    if row[first + COUNTED] == 0.0:
        row[first + FIRST] = age
    row[first + COUNTED] += 1.0
    row[first + NEWEST] = time
    row[first + PACE] = 1.0 + row[first + PACE] * math.exp((row[first + PACED] - time) / cycle)
    row[first + PACED] = time
    if day > 0.0:
        row[first + PENDING_COS] += math.cos(FULL_TURN * time / day)
        row[first + PENDING_SIN] += math.sin(FULL_TURN * time / day)


@compiled()
def kind_of(row: FloatArray, first: int, cycle: float, broadcasts: bool) -> int:
    """Return the kind of a page's state, by what was heard since its crawl."""
    if row[first + COUNTED] == 0.0:
        return BROADCAST if broadcasts else UNHEARD
    delay, kind = row[first + FIRST], SOON
    for limit in DELAYS:
        kind += delay > limit * cycle
    return kind


@compiled()
def calibrate(shared: FloatArray, kind: int, expected: float, changed: bool) -> None:
    """Count a crawl of a page of a kind, which was expected to find a change so surely."""
    shared[FOUND + kind] += changed
    shared[EXPECTED + kind] += expected
    found = CALIBRATED + shared[FOUND + kind]
    shared[CALIBRATION + kind] = math.log(found / (CALIBRATED + shared[EXPECTED + kind]))


@compiled()
def learn_group(own: FloatArray, at: Places, expected: float, changed: bool) -> None:
    """Count a crawl of a page of a group."""
    last = at.group_width
    own[last + GROUP_FOUND] = GROUP_FADE * own[last + GROUP_FOUND] + changed
    own[last + GROUP_EXPECTED] = GROUP_FADE * own[last + GROUP_EXPECTED] + expected
    found = 1.0 + own[last + GROUP_FOUND]
    own[last + GROUP_SURPRISE] = math.log(found / (1.0 + own[last + GROUP_EXPECTED]))


@compiled()
def learn_history(
    row: FloatArray,
    first: int,
    shared: FloatArray,
    time: float,
    elapsed: float,
    expected: float,
    changed: bool,
) -> None:
    """Take note of a crawl of a page, which was expected to find a change so surely."""
    row[first + LAST_FOUND] = 1.0 if changed else -1.0
    told = row[first + COUNTED] > 0.0
    row[first + UNTOLD] = (0.0 if told else 1.0) if changed else -1.0
    row[first + SURPRISE] += RECENT * (changed - expected - row[first + SURPRISE])
    row[first + CRAWLS] += 1.0
    if shared[DAY] > 0.0:
        learn_hours(row, first, time, elapsed, expected, changed, shared[DAY])
    if changed:
        row[first + FOUND_AT] = time
        row[first + CHANGE_AT] = row[first + NEWEST] if told else time - 0.5 * elapsed
    crawled(row, first, time, shared[DAY])


@compiled()
def learn_hours(
    row: FloatArray,
    first: int,
    time: float,
    elapsed: float,
    expected: float,
    changed: bool,
    day: float,
) -> None:
    """Learn the hours of a page's changes, the first harmonic of their density over the day.

    A change that was signalled came at the hours of its signals, one that was not anywhere in the
    time since the crawl before; and where less was found than expected, these hours are rarer.
    """
    signals = row[first + COUNTED]
    if signals > 0.0:
        weight = 1.0 if changed else 0.0
        row[first + COS] += weight * row[first + PENDING_COS] / signals
        row[first + SIN] += weight * row[first + PENDING_SIN] / signals
    elif elapsed > 0.0:
        angle, turn = FULL_TURN * time / day, FULL_TURN * elapsed / day
        weight = (changed - expected) / turn
        row[first + COS] += weight * (math.sin(angle) - row[first + CRAWL_SIN])
        row[first + SIN] += weight * (row[first + CRAWL_COS] - math.cos(angle))
    row[first + HOURS] += 0.5 * (changed + expected)
