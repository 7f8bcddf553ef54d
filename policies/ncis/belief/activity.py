"""The belief that a page still changes: pages stop changing after a time learned by their group.

News, events and pages of a season change often for a while, and then no more. Here a page is active
or has stopped. An active page stops at a hazard h, Gamma distributed with the stops and the active
time of its group, which are shrunk towards those of all pages: it is active for at least a time t
with probability (1 + t / active time)^-stops. The belief that a page is active is updated at every
crawl by Bayes' rule: it falls when a page is silent for longer than its rate of changes explains,
and rises to nearly 1 at a change. A fall of the belief counts as stops of the group, which are
subtracted again if the page changes after all.

A page that stopped starts again at RETURN times its rate of changes. So the value of every page
with importance grows with time, and every such page is crawled again.
"""

from __future__ import annotations

import math

from crawl_envs.compiled.compiling import inlined
from crawl_envs.types import FloatArray
from policies.ncis.belief.layout import ACTIVE_TIME, FLOOR, PRIOR_ACTIVE, STOPS, Places

RETURN = 1e-3
"""Rate at which a page that stopped starts again, per rate of its changes."""


@inlined()
def log_survival(group: FloatArray, shared: FloatArray, elapsed: float, columns: Places) -> float:
    """Return the log-probability that an active page does not stop for the time ``elapsed``.

    The priors are one stop in PRIOR_ACTIVE for all pages, and one in their mean time for a group.
    """
    mean = (shared[PRIOR_ACTIVE] + shared[ACTIVE_TIME]) / (1.0 + shared[STOPS])
    stops = 1.0 + max(group[columns.stops], 0.0)
    return float(-stops * math.log1p(elapsed / (mean + group[columns.active_time])))


@inlined()
def page_evidence(page: FloatArray, columns: Places) -> float:
    """Return the evidence of a change from single signals (no broadcasts) since the last crawl."""
    evidence = 0.0
    for channel in range(columns.own):
        evidence += page[columns.believed + 1 + channel] * page[columns.signals + channel]
    return evidence


@inlined()
def active_if_signalled(page: FloatArray, columns: Places, evidence: float) -> float:
    """Return the probability that a page was active at its last crawl, or since then at a signal.

    Only active pages have signals that report changes; ``evidence`` is :func:`page_evidence`.
    """
    active = float(page[columns.active])
    return 1.0 - (1.0 - active) * math.exp(-evidence) if evidence > 0.0 else active


@inlined()
def learn_activity(
    page: FloatArray,
    group: FloatArray,
    shared: FloatArray,
    columns: Places,
    elapsed: float,
    fresh: float,
    changed: bool,
) -> None:
    """Update the belief that a page is active, and the stops of its group, after a crawl.

    The time of a stop within the interval counts as exponential. The evidence of a change counts as
    proportional to the time before the stop.

    Args:
        page: the page's row, with the signals since its last crawl.
        group: the row of its group.
        shared: the numbers that all pages share.
        columns: columns of the rows.
        elapsed: time since the page's last crawl, >= 0.
        fresh: logarithm of the predicted probability of no change of an active page, <= 0.
        changed: whether the page had changed.
    """
    last = page[columns.active]
    before = active_if_signalled(page, columns, page_evidence(page, columns))
    back = RETURN * (page[columns.rate] + shared[FLOOR]) * elapsed
    before += (1.0 - before) * -math.expm1(-back)
    stopping = -log_survival(group, shared, elapsed, columns)
    both = stopping - fresh
    silent = math.exp(-both)  # active all the time, and no change
    stopped = stopping * -math.expm1(-both) / both if both > 0.0 else 0.0  # and no change before
    time_before = stopping * mean_share(both)
    if changed:
        likelihood = -math.expm1(-both) * -fresh / both if fresh < 0.0 else 0.0
        stayed = math.exp(-stopping) * -math.expm1(fresh)
        time = stayed + stopping * mean_share(stopping) - time_before
    else:
        likelihood = before * (silent + stopped) + 1.0 - before
        stayed, time = before * silent, before * (silent + time_before)
    after, share = (stayed / likelihood, time / likelihood) if likelihood > 0.0 else (1.0, 1.0)
    group[columns.stops] += last - after
    group[columns.active_time] += share * elapsed
    shared[STOPS] += last - after
    shared[ACTIVE_TIME] += share * elapsed
    page[columns.active] = after


@inlined()
def value_if_stopped(rate: float, elapsed: float) -> float:
    """Return V_GREEDY = (1 - (1 + y) exp(-y)) / rate with y = rate * elapsed, also for small y."""
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
def found_active(page: FloatArray, group: FloatArray, shared: FloatArray, columns: Places) -> None:
    """Update the belief at a change whose time is known: the page is active for certain."""
    group[columns.stops] -= 1.0 - page[columns.active]
    shared[STOPS] -= 1.0 - page[columns.active]
    page[columns.active] = 1.0
