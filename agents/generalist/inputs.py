"""The inputs of the networks: numbers without a unit that describe a page, mostly in [-3, 3].

Time is measured in cycles T = m / R. Many inputs are y / (1 + y), y >= 0. ``history`` is
:mod:`agents.generalist.history`. Calibrations are ln((c + changes) / (c + expected)) over the
episode's crawls so far.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from agents.generalist import history
from agents.generalist.history import FULL_TURN, SOON, kind_of, read_hypothesis
from crawl_envs.compiled.compiling import inlined
from crawl_envs.types import FloatArray, IntArray
from crawl_envs.types.compiled_policies import Memory
from policies.ncis.belief.layout import BASE, EVENTS, EXPECTED, FLOOR, RING, WEIGHT, Places, places


class Rows(NamedTuple):
    """The number of the row of each input that differs between pages."""

    # the belief, and the results of the page's crawls
    fresh: int  # the probability exp(-x) that the page is fresh
    evidence: int  # x
    expected_changes: int  # B
    change_rate: int
    elapsed: int  # time since the last crawl
    importance: int  # relative to the mean
    last_changed: int  # 1 if the last crawl saw a change, -1 if it did not, 0 before the first
    surprise: int  # recent mean of observed minus expected changes
    since_changed: int  # time since the last crawl that saw a change
    crawls: int  # their number
    episode: int  # time since the episode began
    renewed: int  # time since the estimated newest change, in mean gaps between changes
    regular: int  # how near ``renewed`` is to 1
    # signals since the page's crawl
    signals: int  # their number
    newest: int  # how new the newest is
    first: int  # time from the crawl to the first
    signal_evidence: int
    signal_pace: int  # recent number over the mean number
    signal_rate: int  # mean number per T
    echo: int  # with a signal: 1 if the crawl saw an unsignalled change, -1 if none, else 0
    kind: int  # calibration of crawls in the page's state
    soon: int  # calibration of crawls with a signal soon after the crawl before
    without_signals: int  # ln of the crawl value without signals over the corrected one
    doubt: int  # that times ``soon``: negative for late signals
    # the page's group
    group_surprise: int  # calibration of its crawls
    broadcast_evidence: int  # evidence of the broadcasts since the page's crawl
    tried: int  # expected changes tested after the newest broadcast
    weight: int  # weight of that broadcast against its class
    # the hours of a day, which is a unit of time
    hour: int  # excess of the page's density of changes now
    hour_slope: int  # how fast the excess rises
    hour_evidence: int  # the excess since the page's crawl
    # the likeliest delay of signals
    delay_hypothesis: int  # ln of the crawl value under this delay over the corrected one
    delay_hypothesis_trusted: int  # that times the trust in the delay, in (0, 1)
    # logarithms
    log_evidence: int  # x
    log_expected_changes: int  # B
    log_rate: int  # change rate
    log_elapsed: int  # time since the last crawl
    log_value: int  # crawl value over importance
    log_unsignalled_rate: int  # alpha
    log_signal_rate: int  # gamma
    signalled_share: int  # share of changes that are signalled
    log_signal_evidence: int  # evidence of the signals since the last crawl
    log_trust_in_signals: int  # evidence of one signal
    active: int  # probability that the page still changes
    log_exposure: int  # how much is known of alpha


ROW = Rows(*range(len(Rows._fields)))
CALIBRATIONS = len(ROW)
"""First row of the calibrations of the kinds of signals and intervals; all pages share them."""
INPUTS = (*Rows._fields, *(f"calibration_{kind}" for kind in range(history.KINDS)))
"""Names of the inputs of the staleness network, in the order of rows."""
LEVEL = ("log_level", "level", "level_evidence")
"""Further inputs of the value network: ln x, 1 - exp(-x) and x, for the evidence x at a crawl."""

HALF_EPISODE = 10.0
"""Cycles after which the input ``episode`` is 1/2."""
HALF_CRAWLS = 3.0
"""Crawls after which the input ``crawls`` is 1/2."""
SHORT_DELAY = 0.5
"""Cycles T after which the input ``first`` is 1/2."""
VALUE_OFFSET = 0.02
"""Constant added to both crawl values of a ratio, in units of importance over rate."""
MAX_LOG_RATIO = 2.5
"""Bound of the absolute logarithm of a ratio of crawl values."""
PRIOR_CHANGES = 2.0
"""Weight of an even density of changes over the hours, in changes."""
REGULAR_WIDTH = 0.25
"""Half-width of the input ``regular`` around 1, in mean gaps between changes."""
LOG_OFFSET = 1e-3
"""Constant added to the arguments of logarithms, which may be 0."""


class Now(NamedTuple):
    """The belief about a page, the time since its last crawl, the time now, and T.

    The belief is the evidence ``x``, the expected number of changes, and the change rate.
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
    return math.log(LOG_OFFSET + y)


@inlined()
def value_at(x: float, expected_changes: float) -> float:
    """Return a page's crawl value at evidence ``x``, times its change rate over importance."""
    return 1.0 - (1.0 + expected_changes) * math.exp(-x)


@inlined()
def broadcast_since(row: FloatArray, group_row: FloatArray, columns: Places) -> bool:
    """Return whether a broadcast came to a page's group since its crawl."""
    return bool(
        columns.channels > columns.own and group_row[columns.broadcasts] > row[columns.before]
    )


@inlined()
def write_outcomes(page: Now, past: FloatArray, out: FloatArray) -> None:
    """Write a page's inputs that tell of the belief and of the results of its crawls to ``out``."""
    pace = 1.0 / page.cycle
    out[ROW.fresh] = math.exp(-page.x)
    out[ROW.evidence] = share(page.x)
    out[ROW.expected_changes] = share(page.expected_changes)
    out[ROW.change_rate] = share(page.rate * page.cycle)
    out[ROW.elapsed] = share(page.elapsed * pace)
    out[ROW.importance] = past[history.IMPORTANCE]
    out[ROW.last_changed] = past[history.LAST_CHANGED]
    out[ROW.surprise] = past[history.SURPRISE]
    out[ROW.since_changed] = share((page.time - past[history.DETECTED_AT]) * pace)
    out[ROW.crawls] = past[history.CRAWLS] / (past[history.CRAWLS] + HALF_CRAWLS)
    out[ROW.episode] = share(page.time * pace / HALF_EPISODE)
    gaps = (page.time - max(past[history.CHANGE_AT], past[history.NEWEST])) * page.rate
    out[ROW.renewed] = share(gaps)
    near = (gaps - 1.0) / REGULAR_WIDTH
    out[ROW.regular] = 1.0 / (1.0 + near * near)


@inlined()
def write_signals(
    page: Now, past: FloatArray, evidence: float, signal_rate: float, soon: float, out: FloatArray
) -> None:
    """Write a page's inputs of signals, by their evidence, number per T and calibration SOON."""
    cycle = page.cycle
    if past[history.COUNTED] > 0.0:
        out[ROW.signals] = share(past[history.COUNTED])
        out[ROW.newest] = cycle / (cycle + 4.0 * (page.time - past[history.NEWEST]))
        out[ROW.first] = past[history.FIRST] / (past[history.FIRST] + SHORT_DELAY * cycle)
        out[ROW.signal_evidence] = share(evidence)
        out[ROW.echo] = past[history.ECHO]
    late = past[history.PACE] * cycle / (cycle + page.time - past[history.PACED])
    out[ROW.signal_pace] = share(late / (0.5 + signal_rate))
    out[ROW.signal_rate] = share(signal_rate)
    out[ROW.soon] = soon
    value, changes = value_at(page.x, page.expected_changes), page.rate * page.elapsed
    without_signals = value_at(changes, changes)
    out[ROW.without_signals] = math.log((VALUE_OFFSET + without_signals) / (VALUE_OFFSET + value))
    out[ROW.doubt] = out[ROW.without_signals] * soon


@inlined()
def write_hours(
    page: Now, past: FloatArray, cosine_now: float, sine_now: float, out: FloatArray
) -> None:
    """Write a page's inputs of the hour of the day; the present hour is given as an angle."""
    scale = 2.0 / (PRIOR_CHANGES + past[history.HOURS])
    cosine, sine = scale * past[history.COS], scale * past[history.SIN]
    out[ROW.hour] = cosine * cosine_now + sine * sine_now
    out[ROW.hour_slope] = sine * cosine_now - cosine * sine_now
    risen = cosine * (sine_now - past[history.CRAWL_SIN]) + sine * (
        past[history.CRAWL_COS] - cosine_now
    )
    out[ROW.hour_evidence] = 2.0 * risen / (1.0 + page.elapsed)


@inlined()
def write_hypothesis(
    page: Now, past: FloatArray, alpha: float, shared: FloatArray, out: FloatArray
) -> None:
    """Write a page's inputs under the likeliest delay; ``alpha``: rate of unsignalled changes."""
    hypothesis = int(shared[history.BEST])
    x, changes = read_hypothesis(past, alpha, page.elapsed, page.cycle, hypothesis)
    rate = alpha + past[history.SIGNALLED_RATE] + shared[FLOOR]
    value, delayed_value = value_at(page.x, page.expected_changes), value_at(x, changes)
    ratio = math.log((VALUE_OFFSET + delayed_value) / (VALUE_OFFSET + value) * page.rate / rate)
    out[ROW.delay_hypothesis] = min(max(ratio, -MAX_LOG_RATIO), MAX_LOG_RATIO)
    out[ROW.delay_hypothesis_trusted] = out[ROW.delay_hypothesis] * shared[history.TRUST]


@inlined()
def write_logarithms(
    page: Now, row: FloatArray, shared: FloatArray, value: float, out: FloatArray
) -> None:
    """Write a page's inputs that are logarithms; ``value`` is its crawl value."""
    columns, cycle = places(shared), page.cycle
    alpha = row[columns.believed]
    importance = row[columns.importance]
    relative = value / importance if importance > 0.0 else 0.0
    out[ROW.log_evidence] = log_of(page.x)
    out[ROW.log_expected_changes] = log_of(page.expected_changes)
    out[ROW.log_rate] = log_of(page.rate * cycle)
    out[ROW.log_elapsed] = log_of(page.elapsed / cycle)
    out[ROW.log_value] = log_of(relative / cycle)
    out[ROW.log_unsignalled_rate] = log_of(alpha * cycle)
    out[ROW.log_signal_rate] = log_of(row[columns.signal_rate] * cycle)
    out[ROW.signalled_share] = row[columns.signalled_rate] / page.rate
    out[ROW.log_signal_evidence] = log_of(max(page.x - alpha * page.elapsed, 0.0))
    out[ROW.log_trust_in_signals] = log_of(row[columns.believed + 1])
    out[ROW.active] = row[columns.active]
    out[ROW.log_exposure] = math.log1p(row[columns.kinds])


@inlined()
def write_page(
    page: Now,
    row: FloatArray,
    group_row: FloatArray,
    events: FloatArray,
    shared: FloatArray,
    out: FloatArray,
) -> None:
    """Write all inputs of a page except the hours and the logarithms."""
    columns = places(shared)
    past = row[columns.page_width :]
    signal_evidence, signal_rate = 0.0, 0.0
    for channel in range(columns.own):
        signal_evidence += row[columns.believed + 1 + channel] * row[columns.signals + channel]
        signal_rate += row[columns.believed + 1 + columns.channels + channel] * page.cycle
    broadcast = broadcast_since(row, group_row, columns)
    write_outcomes(page, past, out)
    soon = shared[history.CALIBRATION + SOON]
    write_signals(page, past, signal_evidence, signal_rate, soon, out)
    out[ROW.kind] = shared[history.CALIBRATION + kind_of(past, page.cycle, broadcast)]
    out[ROW.group_surprise] = group_row[columns.group_width + history.GROUP_SURPRISE]
    if broadcast:
        number = int(group_row[columns.listed + (int(group_row[columns.broadcasts]) - 1) % RING])
        newest = events[number % EVENTS]
        evidence = page.x - signal_evidence - row[columns.believed] * page.elapsed
        out[ROW.broadcast_evidence] = share(max(evidence, 0.0))
        out[ROW.tried] = share(newest[EXPECTED])
        out[ROW.weight] = newest[WEIGHT] / (newest[WEIGHT] + newest[BASE]) - 0.5
    write_hypothesis(page, past, row[columns.scale], shared, out)
    first = history.CALIBRATION
    out[CALIBRATIONS : CALIBRATIONS + history.KINDS] = shared[first : first + history.KINDS]


@inlined()
def write_inputs(
    memory: Memory,
    now: float,
    elapsed: FloatArray,
    page_numbers: IntArray,
    believed: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """Write the inputs of pages ``page_numbers``, (n,), into zeros ``out``, (>= K, n).

    ``believed`` (3, m) has all pages' evidence x, expected changes and change rates; ``values``
    (m,) are their crawl values.
    """
    pages, groups, events, shared, group = memory
    columns, cycle, angle = places(shared), shared[history.CYCLE], FULL_TURN * now
    cosine, sine = math.cos(angle), math.sin(angle)
    for k in range(page_numbers.shape[0]):
        number, inputs = page_numbers[k], out[:, k]
        x, changes, rate = believed[0, number], believed[1, number], believed[2, number]
        page = Now(x, changes, rate, elapsed[number], now, cycle)
        row, group_row = pages[number], groups[group[number]]
        write_page(page, row, group_row, events, shared, inputs)
        write_hours(page, row[columns.page_width :], cosine, sine, inputs)
        write_logarithms(page, row, shared, values[number], inputs)
