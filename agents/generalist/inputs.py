"""Inputs of the correction of a belief, by page: numbers without a unit, mostly in [-3, 3].

Time is measured in cycles T = m / R. Many inputs are of the form y / (1 + y), y >= 0.
"""

from __future__ import annotations

import math
from itertools import accumulate, chain
from typing import NamedTuple

from agents.generalist import history
from agents.generalist.history import FULL_TURN, SOON, kind_of, read_hypothesis
from crawl_envs.compiled.compiling import inlined
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import Memory
from policies.ncis.belief.layout import BASE, EVENTS, EXPECTED, FLOOR, RING, WEIGHT, Places, places

OUTCOMES = (
    *("fresh", "evidence", "expected_changes", "change_rate", "elapsed", "importance"),
    *("last_changed", "surprise", "since_changed", "crawls", "episode", "renewed", "regular"),
)
"""The belief about the page, and the results of its crawls.

In order: the probability exp(-x) that the page is fresh; x; the expected number of changes B; the
change rate; the time since the last crawl; the importance relative to the mean; whether the last
crawl saw a change, 1 or -1, 0 before the first; the recent mean of observed minus expected changes;
the time since the last crawl that saw one; the number of crawls; the time since the episode began;
the time since the estimated newest change, in mean gaps between changes; how near that is to 1.
"""
SIGNALS = (
    *("signals", "newest", "first", "signal_evidence", "signal_pace", "signal_rate"),
    *("echo", "kind", "soon", "without_signals", "doubt"),
)
"""Signals of the page since its crawl.

In order: their number; how new the newest is; the time from the crawl to the first; their evidence;
the recent number over the usual one; the usual number. ``echo``: whether a signal may belong to a
change that was crawled before it, 1 where the last crawl saw an unsignalled change, -1 where it saw
none, else 0, also without a signal. Then two calibrations ln((c + changes) / (c + expected)) over
the episode's crawls so far: those in this page's state (no signal, or the range of the time to the
first one), and those with a signal soon after the crawl. Then the logarithm of the crawl value
without signals over the corrected one; and that times the second calibration, < 0 for late signals.
"""
SHARED = ("group_surprise", "broadcast_evidence", "tried", "weight")
"""The page's group: the calibration of its crawls; the evidence of broadcasts since the page's
crawl; the expected changes tested after the newest one, and its weight against its class's."""
TIMED = ("hour", "hour_slope", "hour_evidence")
"""Density of the page's changes over the hours of a day, a unit of time: its excess now; how fast
that rises; and the excess since the page's crawl."""
HYPOTHESIS = ("delay_hypothesis", "delay_hypothesis_trusted")
"""The logarithm of the crawl value under the given parameters and the likeliest delay of signals
(:mod:`agents.generalist.history`) over the corrected value; and that times the trust in this
hypothesis rather than the belief, in (0, 1), by the results of crawls."""
LOGARITHMS = (
    *("log_evidence", "log_expected_changes", "log_rate", "log_elapsed", "log_value"),
    *("log_unsignalled_rate", "log_signal_rate", "signalled_share", "log_signal_evidence"),
    *("log_trust_in_signals", "active", "log_exposure"),
)
"""x; B; the change rate; the time since the last crawl; the crawl value over the importance; alpha;
gamma; the share of changes that are signalled; the evidence of the signals since the last crawl;
that of one signal; the probability that the page still changes; how much is known of alpha."""
LAW = tuple(f"calibration_{kind}" for kind in range(history.KINDS))
"""How well the belief predicted the episode's crawls so far, ln((c + changes) / (c + expected)), by
kinds of signals and of intervals (:mod:`agents.generalist.history`); the same for all pages."""
PARTS = OUTCOMES, SIGNALS, SHARED, TIMED, HYPOTHESIS, LOGARITHMS, LAW
INPUTS = tuple(chain(*PARTS))
"""Inputs of staleness, in the order of rows."""
LEVEL = ("log_level", "level", "level_evidence")
"""Further inputs of the value of a crawl: ln x, 1 - exp(-x) and x at the level of the crawl."""

FROM_SIGNALS, FROM_SHARED, FROM_TIMED, FROM_HYPOTHESIS, FROM_LOGARITHMS, FROM_LAW = accumulate(
    map(len, PARTS[:-1])
)
"""Rows at which the parts after the first begin."""
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
SMALLEST = 1e-3
"""Added to arguments of logarithms."""


class Now(NamedTuple):
    """The belief about a page, the time since its last crawl, the time now, and T.

    The belief is x, the expected number of changes B, and the change rate.
    """

    x: float
    expected_changes: float
    rate: float
    elapsed: float
    time: float
    cycle: float


@inlined()
def share(y: float) -> float:
    """Return y / (1 + y), y >= 0."""
    return y / (1.0 + y)


@inlined()
def log_of(y: float) -> float:
    """Return the logarithm of a number >= 0, bounded below."""
    return math.log(SMALLEST + y)


@inlined()
def value_at(x: float, expected_changes: float) -> float:
    """Return the crawl value of an active page, times its rate over its importance."""
    return 1.0 - (1.0 + expected_changes) * math.exp(-x)


@inlined()
def broadcast_since(row: FloatArray, own: FloatArray, at: Places) -> bool:
    """Return whether a broadcast came to a page's group since its crawl."""
    return bool(at.channels > at.own and own[at.broadcasts] > row[at.before])


@inlined()
def write_outcomes(page: Now, past: FloatArray, out: FloatArray) -> None:
    """Write the inputs OUTCOMES of a page."""
    pace = 1.0 / page.cycle
    out[0] = math.exp(-page.x)
    out[1] = share(page.x)
    out[2] = share(page.expected_changes)
    out[3] = share(page.rate * page.cycle)
    out[4] = share(page.elapsed * pace)
    out[5] = past[history.IMPORTANCE]
    out[6] = past[history.LAST_CHANGED]
    out[7] = past[history.SURPRISE]
    out[8] = share((page.time - past[history.DETECTED_AT]) * pace)
    out[9] = past[history.CRAWLS] / (past[history.CRAWLS] + FEW_CRAWLS)
    out[10] = share(page.time * pace / EPISODE)
    gaps = (page.time - max(past[history.CHANGE_AT], past[history.NEWEST])) * page.rate
    out[11] = share(gaps)
    near = (gaps - 1.0) / REGULAR_WIDTH
    out[12] = 1.0 / (1.0 + near * near)


@inlined()
def write_signals(
    page: Now,
    past: FloatArray,
    evidence: float,
    usual: float,
    kind: float,
    soon: float,
    out: FloatArray,
) -> None:
    """Write the inputs SIGNALS.

    ``evidence`` is that of the signals, ``usual`` their mean number per T, ``kind`` and ``soon``
    are the calibrations.
    """
    cycle = page.cycle
    if past[history.COUNTED] > 0.0:
        out[FROM_SIGNALS] = share(past[history.COUNTED])
        out[FROM_SIGNALS + 1] = cycle / (cycle + 4.0 * (page.time - past[history.NEWEST]))
        out[FROM_SIGNALS + 2] = past[history.FIRST] / (past[history.FIRST] + SHORT_DELAY * cycle)
        out[FROM_SIGNALS + 3] = share(evidence)
        out[FROM_SIGNALS + 6] = past[history.ECHO]
    late = past[history.PACE] * cycle / (cycle + page.time - past[history.PACED])
    out[FROM_SIGNALS + 4] = share(late / (0.5 + usual))
    out[FROM_SIGNALS + 5] = share(usual)
    out[FROM_SIGNALS + 7], out[FROM_SIGNALS + 8] = kind, soon
    value, changes = value_at(page.x, page.expected_changes), page.rate * page.elapsed
    without_signals = value_at(changes, changes)
    out[FROM_SIGNALS + 9] = math.log((LEAST_VALUE + without_signals) / (LEAST_VALUE + value))
    out[FROM_SIGNALS + 10] = out[FROM_SIGNALS + 9] * soon


@inlined()
def write_timed(
    page: Now, past: FloatArray, cosine_now: float, sine_now: float, out: FloatArray
) -> None:
    """Write the inputs TIMED; the hour as an angle is given by its cosine and sine."""
    scale = 2.0 / (FEW_HOURS + past[history.HOURS])
    cosine, sine = scale * past[history.COS], scale * past[history.SIN]
    out[FROM_TIMED] = cosine * cosine_now + sine * sine_now
    out[FROM_TIMED + 1] = sine * cosine_now - cosine * sine_now
    risen = cosine * (sine_now - past[history.CRAWL_SIN]) + sine * (
        past[history.CRAWL_COS] - cosine_now
    )
    out[FROM_TIMED + 2] = 2.0 * risen / (1.0 + page.elapsed)


@inlined()
def write_hypothesis(
    page: Now, past: FloatArray, alpha: float, shared: FloatArray, out: FloatArray
) -> None:
    """Write the inputs HYPOTHESIS, under the likeliest one; ``alpha`` is that of the parameters."""
    hypothesis = int(shared[history.BEST])
    x, changes = read_hypothesis(past, alpha, page.elapsed, page.cycle, hypothesis)
    rate = alpha + past[history.SIGNALLED_RATE] + shared[FLOOR]
    value, other = value_at(page.x, page.expected_changes), value_at(x, changes)
    ratio = math.log((LEAST_VALUE + other) / (LEAST_VALUE + value) * page.rate / rate)
    out[FROM_HYPOTHESIS] = min(max(ratio, -LARGEST_RATIO), LARGEST_RATIO)
    out[FROM_HYPOTHESIS + 1] = out[FROM_HYPOTHESIS] * shared[history.TRUST]


@inlined()
def write_logarithms(
    page: Now, row: FloatArray, shared: FloatArray, value: float, out: FloatArray
) -> None:
    """Write the inputs LOGARITHMS; ``value`` is the crawl value."""
    at, cycle = places(shared), page.cycle
    alpha = row[at.believed]
    importance = row[at.importance]
    relative = value / importance if importance > 0.0 else 0.0
    out[FROM_LOGARITHMS] = log_of(page.x)
    out[FROM_LOGARITHMS + 1] = log_of(page.expected_changes)
    out[FROM_LOGARITHMS + 2] = log_of(page.rate * cycle)
    out[FROM_LOGARITHMS + 3] = log_of(page.elapsed / cycle)
    out[FROM_LOGARITHMS + 4] = log_of(relative / cycle)
    out[FROM_LOGARITHMS + 5] = log_of(alpha * cycle)
    out[FROM_LOGARITHMS + 6] = log_of(row[at.signal_rate] * cycle)
    out[FROM_LOGARITHMS + 7] = row[at.signalled_rate] / page.rate
    out[FROM_LOGARITHMS + 8] = log_of(max(page.x - alpha * page.elapsed, 0.0))
    out[FROM_LOGARITHMS + 9] = log_of(row[at.believed + 1])
    out[FROM_LOGARITHMS + 10] = row[at.active]
    out[FROM_LOGARITHMS + 11] = math.log1p(row[at.kinds])


@inlined()
def write_page(
    page: Now,
    row: FloatArray,
    own: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    out: FloatArray,
) -> None:
    """Write all inputs of a page but LOGARITHMS and TIMED."""
    at = places(shared)
    past = row[at.page_width :]
    alone, usual = 0.0, 0.0
    for channel in range(at.own):
        alone += row[at.believed + 1 + channel] * row[at.signals + channel]
        usual += row[at.believed + 1 + at.channels + channel] * page.cycle
    together = broadcast_since(row, own, at)
    kind = shared[history.CALIBRATION + kind_of(past, page.cycle, together)]
    soon = shared[history.CALIBRATION + SOON]
    write_outcomes(page, past, out)
    write_signals(page, past, alone, usual, kind, soon, out)
    out[FROM_SHARED] = own[at.group_width + history.GROUP_SURPRISE]
    if together:
        number = int(own[at.listed + (int(own[at.broadcasts]) - 1) % RING])
        newest = events[number % EVENTS]
        evidence = page.x - alone - row[at.believed] * page.elapsed
        out[FROM_SHARED + 1] = share(max(evidence, 0.0))
        out[FROM_SHARED + 2] = share(newest[EXPECTED])
        out[FROM_SHARED + 3] = newest[WEIGHT] / (newest[WEIGHT] + newest[BASE]) - 0.5
    write_hypothesis(page, past, row[at.scale], shared, out)
    for each in range(history.KINDS):
        out[FROM_LAW + each] = shared[history.CALIBRATION + each]


@inlined()
def write_inputs(
    memory: Memory,
    now: float,
    elapsed: FloatArray,
    chosen: IntArray,
    believed: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """Write the inputs of ``chosen`` pages, (n,), into zeros ``out``, (>= K, n).

    ``believed`` (3, m) are x, B and rates of all pages, ``values`` (m,) their crawl values.
    """
    pages, groups, events, shared, group = memory
    at, cycle, angle = places(shared), shared[history.CYCLE], FULL_TURN * now
    cosine, sine = math.cos(angle), math.sin(angle)
    for k in range(chosen.shape[0]):
        number, column = chosen[k], out[:, k]
        x, changes, rate = believed[0, number], believed[1, number], believed[2, number]
        page = Now(x, changes, rate, elapsed[number], now, cycle)
        row, own = pages[number], groups[group[number]]
        write_page(page, row, own, events, shared, column)
        write_timed(page, row[at.page_width :], cosine, sine, column)
        write_logarithms(page, row, shared, values[number], column)
