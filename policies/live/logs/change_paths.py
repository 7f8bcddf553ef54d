r"""Draw the changes of pages and their phases exactly, given the crawls and signals of a log.

A page is in phase 0 (quiet) or 1 (burst), where it changes at rate :math:`r_h`; a change moves it
from phase h to k with probability :math:`\phi_{hk}` (a Markovian arrival process, Neuts 1979, whose
phase moves with changes alone). A share :math:`s_0` of the changes has no signal. In a time t
without signals, no change happens with probability :math:`e^{-r_h t}`, and phases move from h to k
with probability :math:`(e^{Qt})_{hk}`, :math:`Q = -\mathrm{diag}(r) + s_0\,\mathrm{diag}(r)\,\phi`.

Phase, and whether there was a change since the last crawl, are a state of four values. Its
probabilities given the past are computed forward in time, and its values at signals and crawls are
drawn backward (forward filtering, backward sampling). The changes between them follow one by one:
the distribution function of the first one's time is a sum of exponentials, and is inverted.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import BoolArray, FloatArray, IntArray

TINY, MIN_CHANCE = 1e-300, 1e-250
"""Smallest value of a sum of probabilities, and of the probability of a phase at a crawl."""
STEPS, PRECISION = 60, 1e-12
"""Most steps when a change time is solved for, and its error relative to the interval."""
Four: TypeAlias = tuple[float, float, float, float]


class Gaps(NamedTuple):
    """Times from each crawl of a page to the next, or to the end; sorted by page and time.

    ``first`` is the first gap of each page, (m + 1,), and ``signal`` the first signal of each gap;
    both end with the number of all. ``has_evidence`` says whether the later crawl tells of changes,
    ``changed`` what it found. Signals are sorted by gap and time; ``signal_at`` is the time since
    the earlier crawl. False signals come at their rate over ``pace``, as where time runs faster.
    """

    first: IntArray
    start: FloatArray
    length: FloatArray
    has_evidence: BoolArray
    changed: BoolArray
    signal: IntArray
    signal_at: FloatArray
    source: IntArray
    pace: FloatArray


class Law(NamedTuple):
    """Parameters of m pages in G groups.

    Attributes:
        group: group of each page, (m,).
        rate: change rates in phases 0 and 1, (m, 2), > 0.
        burst: probabilities of phase 1 after a change in phase 0, after one in phase 1, and at the
            first crawl, (G, 3), within (0, 1).
        share: shares of changes without a signal, and with one of each source, (G, 1 + S).
        false: rates of false signals of each source, (m, S).
    """

    group: IntArray
    rate: FloatArray
    burst: FloatArray
    share: FloatArray
    false: FloatArray


class Drawn(NamedTuple):
    """Changes drawn for all pages, sorted by page and time, and the phases of the pages.

    Attributes:
        page: page of each change.
        time: time of each change.
        phase: phase of the page after each change.
        signal: index of each change's signal in the order of the gaps, -1 without one.
        in_gap: number of changes in each gap.
        true: whether each signal was emitted by a change, (k,).
        moves: changes of each page by the phases before and after, and phases at the first crawl
            (before: 2), (m, 3, 2).
        days: days of each page in each phase, (m, 2).
    """

    page: IntArray
    time: FloatArray
    phase: IntArray
    signal: IntArray
    in_gap: IntArray
    true: BoolArray
    moves: IntArray
    days: FloatArray


class _Page(NamedTuple):
    """A page's parameters as in Law, and the eigenvalues and coefficients that give exp(Qt)."""

    rate: FloatArray
    burst: FloatArray
    share: FloatArray
    false: FloatArray
    values: tuple[float, float]
    weights: Four


@inlined()
def _page_of(law: Law, i: int) -> _Page:
    """Compute the parameters of page ``i`` in a form without loss of digits by cancellation."""
    rate, burst, share = law.rate[i], law.burst[law.group[i]], law.share[law.group[i]]
    a = -rate[0] * (1.0 - share[0] * (1.0 - burst[0]))
    d = -rate[1] * (1.0 - share[0] * burst[1])
    up, down = share[0] * rate[0] * burst[0], share[0] * rate[1] * (1.0 - burst[1])
    half = 0.5 * (a - d)
    root = max(math.sqrt(half * half + up * down), TINY)  # small is at most 1/2
    small = min(0.5 * (up / root) * (down / root) / (1.0 + abs(half) / root), 0.5)
    slow, fast = (1.0 - small, small) if half >= 0.0 else (small, 1.0 - small)
    values, weights = (0.5 * (a + d) + root, 0.5 * (a + d) - root), (slow, fast, up, down)
    scaled = (weights[0], weights[1], 0.5 * weights[2] / root, 0.5 * weights[3] / root)
    return _Page(rate, burst, share, law.false[i], values, scaled)


@inlined()
def _moved(page: _Page, t: float) -> Four:
    """Return the 2 x 2 matrix exp(Qt), row by row: how phases move in a time without signals."""
    slow, fast = math.exp(page.values[0] * t), math.exp(page.values[1] * t)
    first, second, up, down = page.weights
    return (first * slow + second * fast, up * (slow - fast), down * (slow - fast),
            second * slow + first * fast)  # fmt: skip


@inlined()
def _draw_index(uniform: float, weights: tuple[float, float, float, float, float]) -> int:
    """Return an index from 0 to 4, drawn by a uniform number in proportion to five weights."""
    target, last = uniform * sum(weights), 0
    for k in range(5):
        if weights[k] > 0.0:
            if target < weights[k]:
                return k
            target, last = target - weights[k], k
    return last


@inlined()
def _mass(value: float, rate: float, u: float, t: float) -> float:
    """Return the integral of exp(-rate v) exp(value (t - v)) over v from 0 to u."""
    x = (rate + value) * u
    if abs(x) < 1e-9:
        return u * math.exp(value * t)
    if x > -1.0:
        return -math.expm1(-x) / (rate + value) * math.exp(value * t)
    return (math.exp(value * t) - math.exp(value * (t - u) - rate * u)) / (rate + value)


@inlined()
def _first_change(uniform: float, page: _Page, phase: int, last: int, t: float) -> float:
    """Draw the time of a page's first change in (0, t], given its phases at 0 and at t.

    At least one change is given. The density at u is in proportion to exp(-rate u) times the
    probability to reach phase ``last`` in the rest of the time. The distribution function is
    inverted at ``uniform`` by Newton's method within bounds.
    """
    first, second, up, down = page.weights
    stays, rate = page.burst[phase], page.rate[phase]
    slow, fast = (1.0 - stays) * first + stays * down, (1.0 - stays) * second - stays * down
    if last == 1:
        slow, fast = (1.0 - stays) * up + stays * second, stays * first - (1.0 - stays) * up
    a, b = page.values
    target = uniform * (slow * _mass(a, rate, t, t) + fast * _mass(b, rate, t, t))
    low, high, u = 0.0, t, uniform * t
    for _ in range(STEPS):
        off = slow * _mass(a, rate, u, t) + fast * _mass(b, rate, u, t) - target
        low, high = (low, u) if off > 0.0 else (u, high)
        slope = math.exp(-rate * u) * (slow * math.exp(a * (t - u)) + fast * math.exp(b * (t - u)))
        step = u - off / slope if slope > 0.0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - u) <= PRECISION * t:
            break
        u = step
    return u


@inlined()
def _pass_time(page: _Page, before: FloatArray, after: FloatArray, t: float) -> None:
    """Write probabilities after a time without signals: phases 0, 1 unchanged; 0, 1 changed."""
    m = _moved(page, t)
    for k in range(2):
        after[k] = before[k] * math.exp(-page.rate[k] * t)
        moved = (before[0] + before[2]) * m[k] + (before[1] + before[3]) * m[2 + k]
        after[2 + k] = max(moved - after[k], 0.0)


@inlined()
def _pass_signal(
    page: _Page, source: int, false: float, before: FloatArray, after: FloatArray
) -> None:
    """Write to ``after`` the probabilities of the four states right after a signal of a source."""
    true, total = page.share[1 + source], 0.0
    quiet = (before[0] + before[2]) * page.rate[0] * true
    busy = (before[1] + before[3]) * page.rate[1] * true
    moved = quiet * page.burst[0] + busy * page.burst[1]
    for k in range(4):
        after[k] = false * before[k] + (
            moved if k == 3 else quiet + busy - moved if k == 2 else 0.0
        )
        total += after[k]
    for k in range(4):
        after[k] /= max(total, TINY)


@inlined()
def _forward(gaps: Gaps, page: _Page, i: int, past: FloatArray) -> int:
    """Compute a page's state probabilities around each piece of time; return how many pieces.

    Signals split a gap into pieces, unless the gap is known to have no change. The last entry is
    for the end, where only phases count.
    """
    past[0, 0] = (1.0 - page.burst[2], page.burst[2], 0.0, 0.0)
    j = 0
    for gap in range(gaps.first[i], gaps.first[i + 1]):
        some, none, begin = gaps.changed[gap], gaps.has_evidence[gap] and not gaps.changed[gap], 0.0
        for k in range(gaps.signal[gap], gaps.signal[gap] if none else gaps.signal[gap + 1]):
            _pass_time(page, past[j, 0], past[j, 1], gaps.signal_at[k] - begin)
            false = page.false[gaps.source[k]] / gaps.pace[k]
            _pass_signal(page, gaps.source[k], false, past[j, 1], past[j + 1, 0])
            j, begin = j + 1, gaps.signal_at[k]
        _pass_time(page, past[j, 0], past[j, 1], gaps.length[gap] - begin)
        end, start = past[j, 1], past[j + 1, 0]
        for h in range(2):
            start[h] = (0.0 if some else end[h]) + (0.0 if none else end[2 + h])
            start[2 + h] = 0.0
        total = max(start[0] + start[1], TINY)
        start[0], start[1] = max(start[0] / total, MIN_CHANCE), max(start[1] / total, MIN_CHANCE)
        j += 1
    return j


@inlined()
def _fill(
    rng: np.random.Generator, page: _Page, i: int, ends: tuple[int, int, float, float],
    drawn: Drawn, times: list[tuple[float, int, int]],
) -> None:  # fmt: skip
    """Draw the changes in one piece of time, given the states and times at its two ends."""
    phase, last, some, start, end = ends[0] & 1, ends[1] & 1, ends[0] < 2, ends[2], ends[3]
    while True:
        m = _moved(page, end - start)
        stayed = math.exp(-page.rate[last] * (end - start))
        if phase == last and not some and rng.random() * m[3 * last] < stayed:
            drawn.days[i, last] += end - start
            return
        u = _first_change(rng.random(), page, phase, last, end - start)
        start += u
        m = _moved(page, end - start)
        quiet, busy = (1.0 - page.burst[phase]) * m[last], page.burst[phase] * m[2 + last]
        following = int(rng.random() * (quiet + busy) >= quiet)
        drawn.days[i, phase] += u
        drawn.moves[i, phase, following] += 1
        times.append((start, following, -1))
        phase, some = following, False


@inlined()
def _state_before(uniform: float, page: _Page, before: FloatArray, state: int, t: float) -> int:
    """Draw the state before a time ``t`` without signals, given the changed state at its end."""
    k, m = state - 2, _moved(page, t)
    w = (before[0] * m[k], before[1] * m[2 + k])
    stayed = before[k] * math.exp(-page.rate[k] * t)
    first, second = (w[0] - stayed, w[1]) if k == 0 else (w[0], w[1] - stayed)
    return _draw_index(uniform, (first, second, before[2] * m[k], before[3] * m[2 + k], 0.0))


@inlined()
def _signal_before(
    uniform: float, page: _Page, source: int, false: float, before: FloatArray, k: int
) -> int:
    """Draw the state before a signal, given phase ``k`` after it; 4 means a false signal."""
    true = page.share[1 + source]
    quiet = true * page.rate[0] * (page.burst[0] if k == 1 else 1.0 - page.burst[0])
    busy = true * page.rate[1] * (page.burst[1] if k == 1 else 1.0 - page.burst[1])
    w = (before[0] * quiet, before[1] * busy, before[2] * quiet, before[3] * busy)
    return _draw_index(uniform, (w[0], w[1], w[2], w[3], false * before[2 + k]))


@inlined()
def _draw_gap(
    rng: np.random.Generator, gaps: Gaps, page: _Page, where: tuple[int, int, int, int],
    past: FloatArray, drawn: Drawn, times: list[tuple[float, int, int]],
) -> tuple[int, int]:  # fmt: skip
    """Draw the changes in a gap, from its last piece and phase backward; return the ones before."""
    i, gap, j, state = where
    none = gaps.has_evidence[gap] and not gaps.changed[gap]
    end, k = gaps.length[gap], gaps.signal[gap + 1]
    chances = past[j, 1, state], past[j, 1, 2 + state]
    if gaps.changed[gap] or not (none or rng.random() * (chances[0] + chances[1]) < chances[0]):
        state += 2
    while True:
        signal = k > gaps.signal[gap] and not none
        begin = gaps.signal_at[k - 1] if signal else 0.0
        if state < 2:
            drawn.days[i, state] += end - begin
        else:
            earlier = _state_before(rng.random(), page, past[j, 0], state, end - begin)
            ends = (earlier, state, gaps.start[gap] + begin, gaps.start[gap] + end)
            _fill(rng, page, i, ends, drawn, times)
            state = earlier
        if not signal:
            return j - 1, state
        j, k, end = j - 1, k - 1, begin
        if state >= 2:
            source = gaps.source[k]
            false = page.false[source] / gaps.pace[k]
            earlier = _signal_before(rng.random(), page, source, false, past[j, 1], state - 2)
            if earlier < 4:
                drawn.true[k] = True
                drawn.moves[i, earlier & 1, state & 1] += 1
                times.append((gaps.start[gap] + begin, state & 1, k))
                state = earlier


@compiled()
def draw_changes(gaps: Gaps, law: Law, rng: np.random.Generator) -> Drawn:
    """Draw the changes and phases of all pages, given the results of crawls and the signals."""
    m, room = law.group.size, 0
    for i in range(m):
        first, last = gaps.first[i], gaps.first[i + 1]
        room = max(room, last - first + gaps.signal[last] - gaps.signal[first])
    past, times, number = np.empty((room + 1, 2, 4)), [(0.0, 0, 0)], np.zeros(m, np.int64)
    drawn = Drawn(
        number, past[0, 0], number, number, np.zeros(gaps.start.size, np.int64),
        np.zeros(gaps.source.size, np.bool_), np.zeros((m, 3, 2), np.int64), np.zeros((m, 2)),
    )  # fmt: skip
    for i in range(m):
        if gaps.first[i + 1] == gaps.first[i]:
            continue
        page, begun = _page_of(law, i), len(times)
        j = _forward(gaps, page, i, past)
        phase = int(rng.random() * (past[j, 0, 0] + past[j, 0, 1]) >= past[j, 0, 0])
        j -= 1
        for gap in range(gaps.first[i + 1] - 1, gaps.first[i] - 1, -1):
            drawn.in_gap[gap] -= len(times)
            j, phase = _draw_gap(rng, gaps, page, (i, gap, j, phase), past, drawn, times)
            drawn.in_gap[gap] += len(times)
        drawn.moves[i, 2, phase] += 1
        number[i] = len(times) - begun
    time, after = np.empty(len(times) - 1), np.empty(len(times) - 1, np.int64)
    signal = np.empty_like(after)
    for k in range(time.size):
        time[k], after[k], signal[k] = times[k + 1]
    page_of = np.repeat(np.arange(m), number)
    of_signals = drawn.in_gap, drawn.true, drawn.moves, drawn.days
    return Drawn(page_of, time, after, signal, *of_signals)
