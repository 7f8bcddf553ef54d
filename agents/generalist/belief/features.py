"""The inputs of the correction, page by page; :mod:`agents.generalist.belief.inputs` lists them."""

from __future__ import annotations

import math
from typing import NamedTuple

from agents.generalist.belief.history import FULL_TURN, SOON, kind_of
from agents.generalist.belief.inputs import BELIEVED, SHARED, SIGNALS, TIMED
from agents.generalist.belief.layout import (
    CALIBRATION,
    CHANGE_AT,
    COS,
    COUNTED,
    CRAWL_COS,
    CRAWL_SIN,
    CRAWLS,
    CYCLE,
    DETECTED_AT,
    ECHO,
    FIRST,
    HOURS,
    IMPORTANCE,
    LAST_CHANGED,
    NEWEST,
    PACE,
    PACED,
    SIN,
    SURPRISE,
)
from crawl_envs.types import FloatArray
from crawl_envs.types.compiling import compiled, inlined
from policies.ncis.belief.layout import BASE, EXPECTED, WEIGHT

FROM_SIGNALS = len(BELIEVED)
FROM_SHARED = FROM_SIGNALS + len(SIGNALS)
FROM_TIMED = FROM_SHARED + len(SHARED)
FROM_HYPOTHESIS = FROM_TIMED + len(TIMED)
EPISODE = 10.0
"""Cycles after which the input ``episode`` is 1/2."""
FEW_CRAWLS = 3.0
SHORT_DELAY = 0.5
"""In cycles T."""
LEAST_VALUE = 0.02
"""Added to both crawl values of a ratio, in units of importance over rate."""
LARGEST_RATIO = 2.5
"""The logarithm of a ratio of crawl values is clipped here."""
FEW_HOURS = 2.0
REGULAR_WIDTH = 0.25
"""Half-width of the input ``regular`` around 1, in mean gaps between changes."""


class Belief(NamedTuple):
    """Result of :func:`policies.ncis.belief.kernels.read_page`: x, B, and the change rate."""

    x: float
    expected_changes: float
    rate: float


@compiled(inline="always")
def share(y: float) -> float:
    """Return y / (1 + y), y >= 0."""
    return y / (1.0 + y)


@inlined()
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
    features[6, number] = row[first + LAST_CHANGED]
    features[7, number] = row[first + SURPRISE]
    features[8, number] = share((now - row[first + DETECTED_AT]) * pace)
    features[9, number] = row[first + CRAWLS] / (row[first + CRAWLS] + FEW_CRAWLS)
    features[10, number] = share(now * pace / EPISODE)
    gaps = (now - max(row[first + CHANGE_AT], row[first + NEWEST])) * belief.rate
    features[11, number] = share(gaps)
    near = (gaps - 1.0) / REGULAR_WIDTH
    features[12, number] = 1.0 / (1.0 + near * near)


@inlined()
def write_signals(
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
    """Write the inputs SIGNALS; ``evidence`` is that of the signals, ``usual`` its mean per T."""
    cycle, counted = shared[CYCLE], row[first + COUNTED]
    if counted > 0.0:
        features[FROM_SIGNALS, number] = share(counted)
        features[FROM_SIGNALS + 1, number] = cycle / (cycle + 4.0 * (now - row[first + NEWEST]))
        features[FROM_SIGNALS + 2, number] = row[first + FIRST] / (
            row[first + FIRST] + SHORT_DELAY * cycle
        )
        features[FROM_SIGNALS + 3, number] = share(evidence)
        features[FROM_SIGNALS + 6, number] = row[first + ECHO]
    late = row[first + PACE] * cycle / (cycle + now - row[first + PACED])
    features[FROM_SIGNALS + 4, number] = share(late / (0.5 + usual))
    features[FROM_SIGNALS + 5, number] = share(usual)
    kind = kind_of(row, first, cycle, broadcasts)
    features[FROM_SIGNALS + 7, number] = shared[CALIBRATION + kind]
    features[FROM_SIGNALS + 8, number] = shared[CALIBRATION + SOON]


@inlined()
def write_without_signals(
    features: FloatArray, number: int, belief: Belief, elapsed: float, soon: float
) -> None:
    """Write the last two inputs SIGNALS; ``soon`` is the calibration in the second."""
    value = 1.0 - (1.0 + belief.expected_changes) * math.exp(-belief.x)
    changes = belief.rate * elapsed
    without_signals = 1.0 - (1.0 + changes) * math.exp(-changes)
    ratio = math.log((LEAST_VALUE + without_signals) / (LEAST_VALUE + value))
    features[FROM_SIGNALS + 9, number] = ratio
    features[FROM_SIGNALS + 10, number] = ratio * soon


@inlined()
def write_shared(features: FloatArray, number: int, broadcast: FloatArray, evidence: float) -> None:
    """Write the inputs SHARED after the first.

    ``broadcast`` is the newest one, ``evidence`` that of all broadcasts since the page's crawl.
    """
    features[FROM_SHARED + 1, number] = share(max(evidence, 0.0))
    features[FROM_SHARED + 2, number] = share(broadcast[EXPECTED])
    weight, usual = broadcast[WEIGHT], broadcast[BASE]
    features[FROM_SHARED + 3, number] = weight / (weight + usual) - 0.5


@inlined()
def write_timed(
    features: FloatArray,
    number: int,
    row: FloatArray,
    first: int,
    hour: tuple[float, float],
    elapsed: float,
) -> None:
    """Write the inputs TIMED; ``hour`` is the cosine and the sine of the hour as an angle."""
    scale = 2.0 / (FEW_HOURS + row[first + HOURS])
    cosine, sine = scale * row[first + COS], scale * row[first + SIN]
    features[FROM_TIMED, number] = cosine * hour[0] + sine * hour[1]
    features[FROM_TIMED + 1, number] = sine * hour[0] - cosine * hour[1]
    risen = cosine * (hour[1] - row[first + CRAWL_SIN]) + sine * (row[first + CRAWL_COS] - hour[0])
    features[FROM_TIMED + 2, number] = 2.0 * risen / (1.0 + elapsed)


@inlined()
def write_hypothesis(
    features: FloatArray, number: int, belief: Belief, delayed: Belief, trust: float
) -> None:
    """Write the inputs HYPOTHESIS; ``delayed`` is the belief under the likeliest hypothesis."""
    value = 1.0 - (1.0 + belief.expected_changes) * math.exp(-belief.x)
    other = 1.0 - (1.0 + delayed.expected_changes) * math.exp(-delayed.x)
    ratio = math.log((LEAST_VALUE + other) / (LEAST_VALUE + value) * belief.rate / delayed.rate)
    ratio = min(max(ratio, -LARGEST_RATIO), LARGEST_RATIO)
    features[FROM_HYPOTHESIS, number] = ratio
    features[FROM_HYPOTHESIS + 1, number] = ratio * trust


@inlined()
def hour_of(now: float) -> tuple[float, float]:
    """Return the cosine and the sine of the hour as an angle; a unit of time is a day."""
    angle = FULL_TURN * now
    return math.cos(angle), math.sin(angle)
