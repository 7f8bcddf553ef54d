"""Histories of pages, groups and the episode: what the networks read besides the belief.

They include hypotheses: each assumes exponential delays of signals with one of the means MEANS.
Under mean d, a signal at age a after the last crawl has the evidence -ln(1 - p (1 - exp(-a / d)))
of a change since then, with p the precision. A time t after the crawl, the signals of
lambda Delta d (1 - exp(-t / d)) changes are still under way (as in :mod:`policies.ncis.delayed`).
The results of crawls weigh the hypotheses and the belief, which assumes no delays.

Histories extend the arrays of a belief (:class:`crawl_envs.types.compiled_policies.Memory`): a
page's from ``Places.page_width`` on, a group's from ``Places.group_width`` on, and the episode's in
``shared`` from NUM_SHARED on, the weights of the networks last.
"""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.compiled.compiling import compiled, inlined
from crawl_envs.types import FloatArray, Problem
from crawl_envs.types.compiled_policies import Memory
from policies.ncis.belief.layout import NUM_SHARED
from policies.ncis.belief.policy import places_of

MEANS = (0.0, 0.1, 0.3, 0.8, 2.0)
"""The mean delay from a change to its signal under each hypothesis, in cycles T."""
HYPOTHESES = len(MEANS)

# columns of a page; the first STATIC do not change in an episode
IMPORTANCE, SIGNALLED_RATE, PRECISION = range(3)
STATIC = 3
LAST_CHANGED, SURPRISE, DETECTED_AT, CRAWLED_AT, CRAWLS, ECHO, CHANGE_AT = range(3, 10)
COUNTED, FIRST, NEWEST, PACE, PACED = range(10, 15)
PENDING_COS, PENDING_SIN, COS, SIN, HOURS, CRAWL_COS, CRAWL_SIN = range(15, 22)
EVIDENCE = 22
COUNTS = EVIDENCE + HYPOTHESES
PAGE_WIDTH = COUNTS + HYPOTHESES
# columns of a group
GROUP_CHANGES, GROUP_EXPECTED, GROUP_SURPRISE = range(3)
GROUP_WIDTH = 3
# episode; for each kind of signals and then of intervals: changes, expected changes, and the
# logarithm of their ratio
SIGNAL_KINDS, INTERVAL_KINDS = 6, 6
KINDS = SIGNAL_KINDS + INTERVAL_KINDS
CYCLE, HIDDEN, BEST, TRUST, MIN_SHARE = range(NUM_SHARED, NUM_SHARED + 5)
CHANGES = NUM_SHARED + 5
EXPECTED, CALIBRATION = CHANGES + KINDS, CHANGES + 2 * KINDS
LOG_LIKELIHOODS = CHANGES + 3 * KINDS
WEIGHTS = LOG_LIKELIHOODS + HYPOTHESES + 1

NEVER = -1e9
"""Time of an event that never happened."""
UNSIGNALLED, SOON, BROADCAST = 0, 1, 5
"""Numbers of a page's kind by its signals since its last crawl: none; own signals, by the range of
DELAY_LIMITS in which the first one came (from SOON on); only broadcasts."""
DELAY_LIMITS = (0.15, 0.5, 1.2)
"""Limits between the ranges of the delay of the first signal after a crawl, in cycles T."""
INTERVAL_LIMITS = (0.4045, 1.2045)
"""Limits between short, medium and long crawl intervals, in cycles T; they avoid round numbers of
slots, since elapsed times are rounded."""
PRIOR_CRAWLS = 3.0
"""The constant c in an episode's calibrations ln((c + changes) / (c + expected)); groups use 1."""
SURPRISE_WEIGHT = 0.35
"""Weight of a page's last crawl in the moving average of its surprises."""
GROUP_FADE = 0.95
"""Factor by which each crawl reduces the weight of earlier crawls of the page's group."""
FULL_TURN = 2.0 * math.pi
"""Angle of the hours of a day, which is a unit of time."""
MIN_LIKELIHOOD = 1e-3
"""Lower bound of the likelihood of one crawl's result, so that no single crawl decides."""
TRUST_SCALE = 4.0
"""Difference of log-likelihoods at which the trust is 1 / (1 + 1/e); at 0 it is 1/2."""


def with_history(
    memory: Memory, problem: Problem, weights: FloatArray, *, hidden: int = 0, cutoff: float = 0.0
) -> Memory:
    """Return the arrays of a belief, extended by the empty history of a new episode.

    ``weights`` are those of networks of ``hidden`` units in one array, or empty. Pages below the
    share ``cutoff`` of the largest value are not corrected.
    """
    columns, num_pages = places_of(problem), problem.num_pages
    past = np.zeros((num_pages, PAGE_WIDTH))
    mean = float(problem.importance.mean())
    relative = problem.importance / mean if mean > 0.0 else np.ones(num_pages)
    past[:, IMPORTANCE] = relative / (1.0 + relative)
    evidence, signal_rate = (
        memory.pages[:, first : first + columns.sources]
        for first in (columns.scale + 1, columns.scale + 1 + columns.channels)
    )
    signalled_rate = (signal_rate * -np.expm1(-evidence)).sum(axis=1)
    past[:, SIGNALLED_RATE] = signalled_rate
    past[:, PRECISION] = signalled_rate / signal_rate.sum(axis=1)
    for row in past:
        begin(row, 0.0)
    group_past = np.zeros((len(memory.groups), GROUP_WIDTH))
    shared = np.concatenate([memory.shared, np.zeros(WEIGHTS - NUM_SHARED), weights])
    shared[CYCLE] = num_pages / problem.bandwidth
    shared[HIDDEN], shared[MIN_SHARE] = hidden, cutoff
    pages, groups = np.hstack([memory.pages, past]), np.hstack([memory.groups, group_past])
    return Memory(pages, groups, memory.events, shared, memory.group)


@compiled()
def begin(past: FloatArray, time: float) -> None:
    """Clear the history of a page that is born, with a fresh copy, at ``time``."""
    past[STATIC:PAGE_WIDTH] = 0.0
    past[DETECTED_AT] = past[PACED] = past[CHANGE_AT] = NEVER
    crawled(past, time)


@compiled()
def crawled(past: FloatArray, time: float) -> None:
    """Reset the parts of a page's history that count from its last crawl, which was at ``time``."""
    past[CRAWLED_AT], past[NEWEST] = time, NEVER
    past[COUNTED] = past[FIRST] = 0.0
    past[EVIDENCE:PAGE_WIDTH] = 0.0
    past[PENDING_COS] = past[PENDING_SIN] = 0.0
    past[CRAWL_COS] = math.cos(FULL_TURN * time)
    past[CRAWL_SIN] = math.sin(FULL_TURN * time)


@inlined()
def add_signal(past: FloatArray, time: float, cycle: float) -> None:
    """Add a signal of a single page, one that is no broadcast, to the page's history."""
    age = max(time - past[CRAWLED_AT], 0.0)
    for hypothesis in range(HYPOTHESES):
        share = past[PRECISION]
        if MEANS[hypothesis] > 0.0:
            share *= -math.expm1(-age / (MEANS[hypothesis] * cycle))
        past[EVIDENCE + hypothesis] -= math.log1p(-min(share, 1.0 - 1e-6))
        past[COUNTS + hypothesis] += share
    if past[COUNTED] == 0.0:
        past[FIRST] = age
    past[COUNTED] += 1.0
    past[NEWEST] = time
    fade = math.exp((past[PACED] - time) / cycle)
    past[PACE] = 1.0 + past[PACE] * fade
    past[PACED] = time
    past[PENDING_COS] += math.cos(FULL_TURN * time)
    past[PENDING_SIN] += math.sin(FULL_TURN * time)


@inlined()
def kind_of(past: FloatArray, cycle: float, broadcasts: bool) -> int:
    """Return a page's kind by its signals since the last crawl, from UNSIGNALLED to BROADCAST."""
    if past[COUNTED] == 0.0:
        return BROADCAST if broadcasts else UNSIGNALLED
    delay, kind = past[FIRST], SOON
    for limit in DELAY_LIMITS:
        kind += delay > limit * cycle
    return kind


@inlined()
def interval_kind_of(past: FloatArray, elapsed: float, cycle: float) -> int:
    """Return a crawl interval's kind, by its length and whether the earlier crawl saw a change."""
    kind = SIGNAL_KINDS + (len(INTERVAL_LIMITS) + 1 if past[LAST_CHANGED] > 0.0 else 0)
    for limit in INTERVAL_LIMITS:
        kind += elapsed > limit * cycle
    return kind


@compiled()
def calibrate(shared: FloatArray, kind: int, expected: float, changed: bool) -> None:
    """Update a kind's calibration by a crawl; ``expected`` is the believed chance of a change."""
    shared[CHANGES + kind] += changed
    shared[EXPECTED + kind] += expected
    ratio = (PRIOR_CRAWLS + shared[CHANGES + kind]) / (PRIOR_CRAWLS + shared[EXPECTED + kind])
    shared[CALIBRATION + kind] = math.log(ratio)


@inlined()
def learn_group(group_past: FloatArray, expected: float, changed: bool) -> None:
    """Update a group's surprise by a crawl; ``expected`` is the believed chance of a change."""
    group_past[GROUP_CHANGES] = GROUP_FADE * group_past[GROUP_CHANGES] + changed
    group_past[GROUP_EXPECTED] = GROUP_FADE * group_past[GROUP_EXPECTED] + expected
    ratio = (1.0 + group_past[GROUP_CHANGES]) / (1.0 + group_past[GROUP_EXPECTED])
    group_past[GROUP_SURPRISE] = math.log(ratio)


@inlined()
def learn_history(
    past: FloatArray, time: float, elapsed: float, expected: float, changed: bool
) -> None:
    """Add a crawl's result to a page's history; ``expected`` is the believed chance of a change."""
    past[LAST_CHANGED] = 1.0 if changed else -1.0
    signalled = past[COUNTED] > 0.0
    past[ECHO] = (0.0 if signalled else 1.0) if changed else -1.0
    past[SURPRISE] += SURPRISE_WEIGHT * (changed - expected - past[SURPRISE])
    past[CRAWLS] += 1.0
    learn_hours(past, time, elapsed, expected, changed)
    if changed:
        past[DETECTED_AT] = time
        past[CHANGE_AT] = past[NEWEST] if signalled else time - 0.5 * elapsed
    crawled(past, time)


@inlined()
def learn_hours(
    past: FloatArray, time: float, elapsed: float, expected: float, changed: bool
) -> None:
    """Learn the hours of a page's changes, the first harmonic of their density over the day.

    A signalled change counts at the hours of its signals, an unsignalled one evenly over the time
    since the last crawl. Fewer changes than expected lower the density at these hours.
    """
    signals = past[COUNTED]
    if signals > 0.0:
        weight = 1.0 if changed else 0.0
        past[COS] += weight * past[PENDING_COS] / signals
        past[SIN] += weight * past[PENDING_SIN] / signals
    elif elapsed > 0.0:
        angle, turn = FULL_TURN * time, FULL_TURN * elapsed
        weight = (changed - expected) / turn
        past[COS] += weight * (math.sin(angle) - past[CRAWL_SIN])
        past[SIN] += weight * (past[CRAWL_COS] - math.cos(angle))
    past[HOURS] += 0.5 * (changed + expected)


@inlined()
def read_hypothesis(
    past: FloatArray, alpha: float, elapsed: float, cycle: float, hypothesis: int
) -> tuple[float, float]:
    """Return x, the page is unchanged with probability exp(-x), and its expected changes.

    Both count from the last crawl, for the delay of ``hypothesis``. ``past`` is the page's row of
    sums, ``alpha`` its rate of unsignalled changes, ``cycle`` the mean time between its crawls.
    """
    pending = alpha * elapsed
    if MEANS[hypothesis] > 0.0:
        mean = MEANS[hypothesis] * cycle
        pending += past[SIGNALLED_RATE] * mean * -math.expm1(-elapsed / mean)
    x = pending + past[EVIDENCE + hypothesis]
    return x, pending + past[COUNTS + hypothesis]


@inlined()
def log_likelihood(x: float, changed: bool) -> float:
    """Return the log-likelihood of a crawl's result, given the evidence ``x`` of a change."""
    chance = -math.expm1(-x) if changed else math.exp(-x)
    return math.log(MIN_LIKELIHOOD + (1.0 - MIN_LIKELIHOOD) * chance)


@inlined()
def weigh_hypotheses(
    past: FloatArray, shared: FloatArray, alpha: float, elapsed: float, x: float, changed: bool
) -> None:
    """Add a crawl's result to the log-likelihoods of the delays and of the belief at ``x``."""
    totals, best = shared[LOG_LIKELIHOODS:], 0
    for hypothesis in range(HYPOTHESES):
        delayed_x, _ = read_hypothesis(past, alpha, elapsed, shared[CYCLE], hypothesis)
        totals[hypothesis] += log_likelihood(delayed_x, changed)
        if totals[hypothesis] > totals[best]:
            best = hypothesis
    totals[HYPOTHESES] += log_likelihood(x, changed)
    shared[BEST] = best
    shared[TRUST] = 1.0 / (1.0 + math.exp((totals[HYPOTHESES] - totals[best]) / TRUST_SCALE))
