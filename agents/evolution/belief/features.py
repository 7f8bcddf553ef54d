"""The inputs of the correction, computed page by page; :mod:`agents.evolution.belief.inputs` says what."""

from __future__ import annotations

import math
from typing import NamedTuple

from agents.evolution.belief.history import FULL_TURN, SOON, kind_of
from agents.evolution.belief.inputs import BELIEVED, HEARD, SHARED, TIMED
from agents.evolution.belief.layout import (
    CALIBRATION,
    CHANGE_AT,
    COS,
    COUNTED,
    CRAWL_COS,
    CRAWL_SIN,
    CRAWLS,
    CYCLE,
    DAY,
    FIRST,
    FOUND_AT,
    HOURS,
    IMPORTANCE,
    LAST_FOUND,
    NEWEST,
    PACE,
    PACED,
    SIN,
    SURPRISE,
    UNTOLD,
)
from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled
from policies.ncis.belief.layout import BASE, EXPECTED, WEIGHT

FROM_HEARD = len(BELIEVED)
FROM_SHARED = FROM_HEARD + len(HEARD)
FROM_TIMED = FROM_SHARED + len(SHARED)
FROM_TOLD = FROM_TIMED + len(TIMED)
EPISODE = 10.0
"""Cycles after which an episode is half as old as can be."""
FEW_CRAWLS = 3.0
SHORT_DELAY = 0.5
"""In cycles T."""
LEAST_VALUE = 0.02
"""Added to crawl values, in units of importance over rate, whose quotient is taken."""
LARGEST_RATIO = 2.5
"""The logarithm of a quotient of crawl values is cut here."""
FEW_HOURS = 2.0
REGULAR_WIDTH = 0.25
"""How far from 1 the time since the newest change, in mean gaps, is no longer near it."""


class Belief(NamedTuple):
    """What :func:`policies.ncis.belief.kernels.read_page` says of a page: x, B, and its rate."""

    x: float
    expected_changes: float
    rate: float


@compiled(inline="always")
def share(y: float) -> float:
    """Return y / (1 + y), y >= 0."""
    return y / (1.0 + y)


@compiled()
def write_believed(
    features: FloatArray,
    number: int,
    row: FloatArray,
    first: int,
    belief: Belief,
    now: float,
    elapsed: float,
    cycle: float,
) -> None:
    """Write the inputs BELIEVED of a page into its column of ``features``, (K, n)."""
    pace = 1.0 / cycle
    features[0, number] = math.exp(-belief.x)
    features[1, number] = share(belief.x)
    features[2, number] = share(belief.expected_changes)
    features[3, number] = share(belief.rate * cycle)
    features[4, number] = share(elapsed * pace)
    features[5, number] = row[first + IMPORTANCE]
    features[6, number] = row[first + LAST_FOUND]
    features[7, number] = row[first + SURPRISE]
    features[8, number] = share((now - row[first + FOUND_AT]) * pace)
    features[9, number] = row[first + CRAWLS] / (row[first + CRAWLS] + FEW_CRAWLS)
    features[10, number] = share(now * pace / EPISODE)
    gaps = (now - max(row[first + CHANGE_AT], row[first + NEWEST])) * belief.rate
    features[11, number] = share(gaps)
    near = (gaps - 1.0) / REGULAR_WIDTH
    features[12, number] = 1.0 / (1.0 + near * near)


@compiled()
def write_heard(
    features: FloatArray,
    number: int,
    row: FloatArray,
    first: int,
    shared: FloatArray,
    now: float,
    evidence: float,
    usual: float,
    broadcasts: bool,
) -> None:
    """Write the inputs HEARD; signals have such ``evidence``, and ``usual`` ones come per T."""
    cycle, counted = shared[CYCLE], row[first + COUNTED]
    if counted > 0.0:
        features[FROM_HEARD, number] = share(counted)
        features[FROM_HEARD + 1, number] = cycle / (cycle + 4.0 * (now - row[first + NEWEST]))
        features[FROM_HEARD + 2, number] = row[first + FIRST] / (
            row[first + FIRST] + SHORT_DELAY * cycle
        )
        features[FROM_HEARD + 3, number] = share(evidence)
        features[FROM_HEARD + 6, number] = row[first + UNTOLD]
    late = row[first + PACE] * cycle / (cycle + now - row[first + PACED])
    features[FROM_HEARD + 4, number] = share(late / (0.5 + usual))
    features[FROM_HEARD + 5, number] = share(usual)
    kind = kind_of(row, first, cycle, broadcasts)
    features[FROM_HEARD + 7, number] = shared[CALIBRATION + kind]
    features[FROM_HEARD + 8, number] = shared[CALIBRATION + SOON]


@compiled()
def write_unheeding(
    features: FloatArray, number: int, belief: Belief, elapsed: float, soon: float
) -> None:
    """Write the last two inputs HEARD; ``soon`` is the calibration that the second goes by."""
    value = 1.0 - (1.0 + belief.expected_changes) * math.exp(-belief.x)
    changes = belief.rate * elapsed
    unheeding = 1.0 - (1.0 + changes) * math.exp(-changes)
    ratio = math.log((LEAST_VALUE + unheeding) / (LEAST_VALUE + value))
    features[FROM_HEARD + 9, number] = ratio
    features[FROM_HEARD + 10, number] = ratio * soon


@compiled()
def write_shared(features: FloatArray, number: int, broadcast: FloatArray, evidence: float) -> None:
    """Write the inputs SHARED after the first: of the newest broadcast, and of the evidence of all.

    Those since the page's crawl are meant.
    """
    features[FROM_SHARED + 1, number] = share(max(evidence, 0.0))
    features[FROM_SHARED + 2, number] = share(broadcast[EXPECTED])
    weight, usual = broadcast[WEIGHT], broadcast[BASE]
    features[FROM_SHARED + 3, number] = weight / (weight + usual) - 0.5


@compiled()
def write_timed(
    features: FloatArray,
    number: int,
    row: FloatArray,
    first: int,
    hour: tuple[float, float],
    elapsed: float,
    day: float,
) -> None:
    """Write the inputs TIMED; ``hour`` is the cosine and the sine of the hour as an angle."""
    scale = 2.0 / (FEW_HOURS + row[first + HOURS])
    cosine, sine = scale * row[first + COS], scale * row[first + SIN]
    features[FROM_TIMED, number] = cosine * hour[0] + sine * hour[1]
    features[FROM_TIMED + 1, number] = sine * hour[0] - cosine * hour[1]
    risen = cosine * (hour[1] - row[first + CRAWL_SIN]) + sine * (row[first + CRAWL_COS] - hour[0])
    features[FROM_TIMED + 2, number] = 2.0 * risen / (1.0 + elapsed / day)


@compiled()
def write_at_face_value(
    features: FloatArray, number: int, belief: Belief, told: Belief, trust: float
) -> None:
    """Write the inputs TOLD; ``told`` is what a page is by the best guess of the delay."""
    value = 1.0 - (1.0 + belief.expected_changes) * math.exp(-belief.x)
    other = 1.0 - (1.0 + told.expected_changes) * math.exp(-told.x)
    ratio = math.log((LEAST_VALUE + other) / (LEAST_VALUE + value) * belief.rate / told.rate)
    ratio = min(max(ratio, -LARGEST_RATIO), LARGEST_RATIO)
    features[FROM_TOLD, number] = ratio
    features[FROM_TOLD + 1, number] = ratio * trust


@compiled()
def hour_of(shared: FloatArray, now: float) -> tuple[float, float]:
    """Return the cosine and the sine of the hour as an angle; 1 and 0 where no day is told."""
    if shared[DAY] <= 0.0:
        return 1.0, 0.0
    angle = FULL_TURN * now / shared[DAY]
    return math.cos(angle), math.sin(angle)
