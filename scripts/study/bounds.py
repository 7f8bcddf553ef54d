"""Analytic freshness to compare policies with: optima with signals and without signals."""

from __future__ import annotations

import functools

from crawl_envs.instances import traces
from crawl_envs.types import Instance
from policies import solvers
from scripts.study.settings import Window
from scripts.study.specs import spec

BASELINE = "BASELINE"
"""The papers' name for the optimal continuous policy without signals."""

OPTIMUM = "OPTIMUM"
"""The optimal continuous policy with signals: an upper bound in the long run."""

LINES = {BASELINE: f"{BASELINE} (eq. 5, no signals)", OPTIMUM: f"{OPTIMUM} (Theorem 1)"}
"""Descriptions of the bounds, for legends."""


@spec("optimum-without-signals")
def baseline(instance: Instance) -> float:
    """Return the freshness of crawls at optimal even intervals that ignore signals (eq. 5)."""
    return solvers.binary_periodic(
        instance.importance, instance.change_rate, instance.bandwidth, cost=instance.cost
    ).objective


@spec("optimum-with-signals")
def optimum(instance: Instance) -> float:
    """Return the freshness of crawls at optimal thresholds of effective time (Theorem 1).

    Delays of signals are ignored: the value is for immediate signals.
    """
    return solvers.ncis(instance).objective


@spec("optimum-without-signals-fitted")
def fitted_baseline(instance: Instance, *, trace: str, window: Window) -> float:
    """Return ``baseline`` for pages alive half of the window or longer; budget per page kept."""
    record = _record(trace)
    shares = record.alive_days(*window) / (window[1] - window[0])
    living = shares >= 0.5
    budget = instance.bandwidth * living.sum() / shares.sum()
    return solvers.binary_periodic(
        instance.importance[living], instance.change_rate[living], budget
    ).objective


@functools.cache
def _record(trace: str) -> traces.Trace:
    return traces.load(traces.find(trace))
