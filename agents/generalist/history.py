"""Histories of pages, groups and the episode, which a correction keeps beside the belief.

Among them are hypotheses about the delay of signals, one for each of MEANS, the mean of exponential
delays. If it is d, a signal that arrives at age a after the last crawl has the evidence
-ln(1 - p (1 - exp(-a / d))) of a change since then, with p the precision. A time t after the crawl,
the signals of lambda Delta d (1 - exp(-t / d)) changes are still under way (as in
:mod:`policies.ncis.delayed`). The results of crawls weigh the hypotheses against each other and
against the belief, which has no delays.

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
"""Mean delays of the hypotheses, in cycles T."""
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
# of the episode; calibrations by kind, of signals and then of intervals: changes, expected changes,
# and the ln of their ratio
SIGNAL_KINDS, INTERVAL_KINDS = 6, 6
KINDS = SIGNAL_KINDS + INTERVAL_KINDS
CYCLE, HIDDEN, BEST, TRUST, LEAST = range(NUM_SHARED, NUM_SHARED + 5)
CHANGES = NUM_SHARED + 5
EXPECTED, CALIBRATION = CHANGES + KINDS, CHANGES + 2 * KINDS
LIKELY = CHANGES + 3 * KINDS
WEIGHTS = LIKELY + HYPOTHESES + 1

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
LEAST_LIKELIHOOD = 1e-3
"""Lower bound of the likelihood of one crawl's result, so that no single crawl decides."""
TRUSTED = 4.0
"""Difference of log-likelihoods at which the trust is 1 / (1 + 1/e); at 0 it is 1/2."""


def with_history(
    memory: Memory, problem: Problem, weights: FloatArray, *, hidden: int = 0, least: float = 0.0
) -> Memory:
    """Return the arrays of a belief at the start of an episode, extended by an empty history.

    Args:
        memory: of the belief, which may have learned from earlier events.
        problem: the pages.
        weights: the networks in a row, or none.
        hidden: units of each of their hidden layers.
        least: share of the largest value from which a page is corrected.
    """
    at, num_pages = places_of(problem), problem.num_pages
    past = np.zeros((num_pages, PAGE_WIDTH))
    mean = float(problem.importance.mean())
    relative = problem.importance / mean if mean > 0.0 else np.ones(num_pages)
    past[:, IMPORTANCE] = relative / (1.0 + relative)
    evidence, signal_rate = (
        memory.pages[:, at.scale + kind : at.scale + kind + at.sources]
        for kind in (1, 1 + at.channels)
    )
    signalled_rate = (signal_rate * -np.expm1(-evidence)).sum(axis=1)
    past[:, SIGNALLED_RATE] = signalled_rate
    past[:, PRECISION] = signalled_rate / signal_rate.sum(axis=1)
    for row in past:
        begin(row, 0.0)
    of_groups = np.zeros((len(memory.groups), GROUP_WIDTH))
    episode = np.zeros(WEIGHTS - memory.shared.size)
    shared = np.concatenate([memory.shared, episode, weights])
    shared[CYCLE] = num_pages / problem.bandwidth
    shared[HIDDEN], shared[LEAST] = hidden, least
    pages, groups = np.hstack([memory.pages, past]), np.hstack([memory.groups, of_groups])
    return Memory(pages, groups, memory.events, shared, memory.group)


@compiled()
def begin(past: FloatArray, time: float) -> None:
    """Clear a page's history: it is fresh at ``time``."""
    past[STATIC:PAGE_WIDTH] = 0.0
    past[DETECTED_AT] = past[PACED] = past[CHANGE_AT] = NEVER
    crawled(past, time)


@compiled()
def crawled(past: FloatArray, time: float) -> None:
    """Reset what is counted since a page's last crawl."""
    past[CRAWLED_AT], past[NEWEST] = time, NEVER
    past[COUNTED] = past[FIRST] = 0.0
    past[EVIDENCE:PAGE_WIDTH] = 0.0
    past[PENDING_COS] = past[PENDING_SIN] = 0.0
    past[CRAWL_COS] = math.cos(FULL_TURN * time)
    past[CRAWL_SIN] = math.sin(FULL_TURN * time)


@inlined()
def add_signal(past: FloatArray, time: float, cycle: float) -> None:
    """Add a signal of a single page, not a broadcast."""
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
    """Return the kind of a page's state, by the signals since its crawl."""
    if past[COUNTED] == 0.0:
        return BROADCAST if broadcasts else UNSIGNALLED
    delay, kind = past[FIRST], SOON
    for limit in DELAYS:
        kind += delay > limit * cycle
    return kind


@inlined()
def interval_kind_of(past: FloatArray, elapsed: float, cycle: float) -> int:
    """Return the kind of an interval between crawls: by its length, and what the first one saw."""
    kind = SIGNAL_KINDS + (len(LENGTHS) + 1 if past[LAST_CHANGED] > 0.0 else 0)
    for limit in LENGTHS:
        kind += elapsed > limit * cycle
    return kind


@compiled()
def calibrate(shared: FloatArray, kind: int, expected: float, changed: bool) -> None:
    """Count a crawl of a page in a state; ``expected`` is the believed probability of a change."""
    shared[CHANGES + kind] += changed
    shared[EXPECTED + kind] += expected
    ratio = (CALIBRATED + shared[CHANGES + kind]) / (CALIBRATED + shared[EXPECTED + kind])
    shared[CALIBRATION + kind] = math.log(ratio)


@inlined()
def learn_group(own: FloatArray, expected: float, changed: bool) -> None:
    """Count a crawl of a page of a group; ``expected`` as for :func:`calibrate`."""
    own[GROUP_CHANGES] = GROUP_FADE * own[GROUP_CHANGES] + changed
    own[GROUP_EXPECTED] = GROUP_FADE * own[GROUP_EXPECTED] + expected
    ratio = (1.0 + own[GROUP_CHANGES]) / (1.0 + own[GROUP_EXPECTED])
    own[GROUP_SURPRISE] = math.log(ratio)


@inlined()
def learn_history(
    past: FloatArray, time: float, elapsed: float, expected: float, changed: bool
) -> None:
    """Add a crawl to a page's history; ``expected`` as for :func:`calibrate`."""
    past[LAST_CHANGED] = 1.0 if changed else -1.0
    signalled = past[COUNTED] > 0.0
    past[ECHO] = (0.0 if signalled else 1.0) if changed else -1.0
    past[SURPRISE] += RECENT * (changed - expected - past[SURPRISE])
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

    A signalled change is counted at the hours of its signals, an unsignalled one evenly over the
    time since the last crawl. Fewer changes than expected lower the density at these hours.
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
    """Return x and B of a page under a hypothesis; ``alpha`` is (1 - lambda) Delta as given."""
    pending = alpha * elapsed
    if MEANS[hypothesis] > 0.0:
        mean = MEANS[hypothesis] * cycle
        pending += past[SIGNALLED_RATE] * mean * -math.expm1(-elapsed / mean)
    x = pending + past[EVIDENCE + hypothesis]
    return x, pending + past[COUNTS + hypothesis]


@inlined()
def log_likelihood(x: float, changed: bool) -> float:
    """Return the log-likelihood of a crawl's result, at evidence x."""
    chance = -math.expm1(-x) if changed else math.exp(-x)
    return math.log(LEAST_LIKELIHOOD + (1.0 - LEAST_LIKELIHOOD) * chance)


@inlined()
def weigh_hypotheses(
    past: FloatArray, shared: FloatArray, alpha: float, elapsed: float, x: float, changed: bool
) -> None:
    """Weigh the hypotheses by a crawl's result; ``x`` is the belief's."""
    likely = shared[LIKELY:]
    best, own = 0, HYPOTHESES
    for hypothesis in range(HYPOTHESES):
        other, _ = read_hypothesis(past, alpha, elapsed, shared[CYCLE], hypothesis)
        likely[hypothesis] += log_likelihood(other, changed)
        if likely[hypothesis] > likely[best]:
            best = hypothesis
    likely[own] += log_likelihood(x, changed)
    shared[BEST] = best
    shared[TRUST] = 1.0 / (1.0 + math.exp((likely[own] - likely[best]) / TRUSTED))
