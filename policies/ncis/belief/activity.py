"""Whether a page still changes: pages stop for good, after a time that their group has learned.

News, events and pages of a season change often for a while, and then no more. Here a page is active
or has stopped. An active page stops at a hazard h, Gamma distributed with the stops and the active
time of its group, which are shrunk towards those of all pages: it is active for at least a time t
with probability (1 + t / active time)^-stops. The belief that a page is active is updated at every
crawl by Bayes' rule: it falls when a page is silent for longer than its rate of changes explains,
and rises to nearly 1 at a change. What it falls by counts as stops of its group, and is given back
if the page changes after all.

A page that stopped starts again at RETURN times its rate of changes. So the value of every page
with importance grows with time, and none is left uncrawled for ever.
"""

from __future__ import annotations

import math

from crawl_envs.compiled.compiling import inlined
from crawl_envs.types import FloatArray
from policies.ncis.belief.layout import ACTIVE_TIME, FLOOR, PRIOR_ACTIVE, STOPS, Places

RETURN = 1e-3
"""Rate at which a page that stopped starts again, per rate of its changes."""


@inlined()
def log_survival(own: FloatArray, shared: FloatArray, elapsed: float, at: Places) -> float:
    """Return the logarithm of the probability that an active page stays active for a time.

    All pages are given one stop in PRIOR_ACTIVE, and each group one stop in the mean time of all.
    """
    mean = (shared[PRIOR_ACTIVE] + shared[ACTIVE_TIME]) / (1.0 + shared[STOPS])
    stops = 1.0 + max(own[at.stops], 0.0)
    return float(-stops * math.log1p(elapsed / (mean + own[at.active_time])))


@inlined()
def own_evidence(page: FloatArray, at: Places) -> float:
    """Return the evidence of the signals to a page alone since its last crawl."""
    evidence = 0.0
    for channel in range(at.own):
        evidence += page[at.believed + 1 + channel] * page[at.signals + channel]
    return evidence


@inlined()
def active_if_signalled(page: FloatArray, at: Places, evidence: float) -> float:
    """Return the probability that a page was active at its last crawl, or is by its own signals.

    A signal that reports a change is one of an active page; ``evidence`` is :func:`own_evidence`.
    """
    active = float(page[at.active])
    return 1.0 - (1.0 - active) * math.exp(-evidence) if evidence > 0.0 else active


@inlined()
def learn_activity(
    page: FloatArray,
    own: FloatArray,
    shared: FloatArray,
    at: Places,
    elapsed: float,
    fresh: float,
    changed: bool,
) -> None:
    """Update the belief that a page is active, and what its group knows of stops, at a crawl.

    The time of a stop within the interval is taken as exponential, and the evidence of a change as
    proportional to the time before it.

    Args:
        page: the page's row, with the signals since its last crawl.
        own: the row of its group.
        shared: what all pages share.
        at: the columns.
        elapsed: time since its last crawl, >= 0.
        fresh: logarithm of the predicted probability of no change of an active page, <= 0.
        changed: whether the page had changed.
    """
    last = page[at.active]
    before = active_if_signalled(page, at, own_evidence(page, at))
    back = RETURN * (page[at.rate] + shared[FLOOR]) * elapsed
    before += (1.0 - before) * -math.expm1(-back)
    stopping = -log_survival(own, shared, elapsed, at)
    both = stopping - fresh
    silent = math.exp(-both)  # active all the time, and no change
    stopped = stopping * -math.expm1(-both) / both if both > 0.0 else 0.0  # and no change before
    time_before = stopping * mean_share(both)
    if changed:
        likely = -math.expm1(-both) * -fresh / both if fresh < 0.0 else 0.0
        stayed = math.exp(-stopping) * -math.expm1(fresh)
        time = stayed + stopping * mean_share(stopping) - time_before
    else:
        likely = before * (silent + stopped) + 1.0 - before
        stayed, time = before * silent, before * (silent + time_before)
    after, share = (stayed / likely, time / likely) if likely > 0.0 else (1.0, 1.0)
    own[at.stops] += last - after
    own[at.active_time] += share * elapsed
    shared[STOPS] += last - after
    shared[ACTIVE_TIME] += share * elapsed
    page[at.active] = after


@inlined()
def value_if_stopped(rate: float, elapsed: float) -> float:
    """Return V_GREEDY, (1 - (1 + y) exp(-y)) / rate with y = rate * elapsed, of a small y too."""
    y = rate * elapsed
    if y < 1e-2:  # a relative error of 2e-10
        return y * elapsed * (0.5 - y * (1.0 / 3.0 - y * (0.125 - y / 30.0)))
    return (1.0 - (1.0 + y) * math.exp(-y)) / rate


@inlined()
def mean_share(rate: float) -> float:
    """Return the integral of u exp(-rate u) over [0, 1]."""
    if rate < 1e-3:
        return 0.5 - rate / 3.0
    return (1.0 - (1.0 + rate) * math.exp(-rate)) / (rate * rate)


@inlined()
def found_active(page: FloatArray, own: FloatArray, shared: FloatArray, at: Places) -> None:
    """Update the belief at a change at a known instant: the page is active."""
    own[at.stops] -= 1.0 - page[at.active]
    shared[STOPS] -= 1.0 - page[at.active]
    page[at.active] = 1.0
