"""Runs of policies on pages of fragments: refresh cost and staleness.

The set-up of Olston and Pandey (2008), section 5: every two days a policy refreshes any set of
pages, for 60 days; all copies are fresh at the start. Refresh cost is refreshes per page and tick,
so that 1 is every page at every tick. Staleness is divergence, the mean over pages and over time
(eq. 2). Ticks 1 to 15 and the slots that follow them are the warm-up, 16 to 30 the steady state;
the two days before the first tick count for neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from crawl_envs.types.ledgers import FragmentLedger
from scripts.study.rows import indexed

ID = "CrawlLongevity-v0"
TICK, TICKS, WARM_TICKS = 2.0, 30, 15
"""Days between ticks, ticks of a run, and ticks of the warm-up."""
WARM_UP = TICK * WARM_TICKS
"""Days of the warm-up."""
PAGES, QUICK_PAGES = 1000, 60
"""Pages per seed; ten seeds have as many as the paper's sets."""

WARM, STEADY = "warm-up", "steady"
STRETCHES = {WARM: (0, WARM_TICKS), STEADY: (WARM_TICKS, TICKS)}
"""Stretches: first tick, and the one after the last."""
MEASURES = ("cost", "staleness", "holistic")
"""Measures of a stretch; ``holistic`` is the share of page time with a stale copy."""

Maker = Callable[[Any, float], Any]
"""Constructor of a policy from an environment and a knob: a threshold or an interval."""


def metric_of(stretch: str, measure: str) -> str:
    """Return the name of the indexed metric of a measure in a stretch."""
    return f"{measure}, {stretch}"


def ticking(instance: str, num_pages: int, **arguments: Any) -> gymnasium.Env[Any, Any]:
    """Return the environment of the paper's set-up."""
    return gymnasium.make(
        ID,
        instance=instance,
        num_pages=num_pages,
        bandwidth=1.0 / TICK,
        horizon=TICK * TICKS,
        action="refresh",
        **arguments,
    )


def ledgers(
    env: gymnasium.Env[Any, Any], make: Callable[[Any], Any], seed: int
) -> tuple[list[FragmentLedger], Any]:
    """Play an episode step by step; return ledgers at every decision and the end, and the policy.

    Policies with a compiled form are played step by step, too.
    """
    observation, _ = env.reset(seed=seed)
    core: Any = env.unwrapped
    policy = make(env)
    learn = getattr(policy, "observe", None)
    records: list[FragmentLedger] = [core.ledger()]
    state, start, over = None, np.ones(1, np.bool_), False
    while not over:
        if learn is not None:
            learn(core.last_log())
        action, state = policy.predict(observation, state, start, deterministic=True)
        observation, _, _, over, _ = env.step(action)
        start = np.zeros(1, np.bool_)
        records.append(core.ledger())
    return records, policy


def between(
    records: Sequence[FragmentLedger], first: int, last: int, num_pages: float
) -> dict[str, float]:
    """Return the measures of decisions ``first`` to ``last`` - 1 and their slots."""
    start, end = records[first], records[last]
    alive = end.alive_time - start.alive_time
    return {
        "cost": (end.crawls - start.crawls) / (num_pages * (last - first)),
        "staleness": (end.divergence_time - start.divergence_time) / alive,
        "holistic": 1.0 - (end.fresh_time - start.fresh_time) / alive,
    }


def in_stretches(records: Sequence[FragmentLedger], num_pages: float) -> dict[str, float]:
    """Return the measures of both stretches by :func:`metric_of`."""
    return {
        metric_of(stretch, measure): value
        for stretch, (first, last) in STRETCHES.items()
        for measure, value in between(records, first, last, num_pages).items()
    }


def steady(records: Sequence[FragmentLedger], num_pages: float) -> dict[str, float]:
    """Return the measures from the end of the warm-up to that of the episode."""
    found = between(records, WARM_TICKS, len(records) - 1, num_pages)
    return {metric_of(STEADY, measure): value for measure, value in found.items()}


def by_knob(
    knobs: Sequence[float], play: Callable[[float], Mapping[str, float]]
) -> dict[str, float]:
    """Return what ``play`` returns of each knob, as indexed metrics."""
    played = [play(knob) for knob in knobs]
    return {
        key: value
        for name in played[0]
        for key, value in indexed(name, [values[name] for values in played]).items()
    }


def swept(
    seed: int,
    *,
    instance: str,
    num_pages: int,
    make: Maker,
    knobs: Sequence[float],
    **arguments: Any,
) -> Mapping[str, float]:
    """Return cost and staleness of a policy in both stretches, for each of its knobs.

    All knobs of a seed share pages and events.
    """
    env = ticking(instance, num_pages, **arguments)

    def play(knob: float) -> Mapping[str, float]:
        return in_stretches(ledgers(env, lambda env: make(env, knob), seed)[0], num_pages)

    return by_knob(knobs, play)


def budgeted(
    seed: int,
    *,
    instance: str,
    signals: str,
    num_pages: int,
    budget: float,
    make: Callable[[Any], Any],
    decisions: float,
    days: float = TICK * TICKS,
    **arguments: Any,
) -> Mapping[str, float]:
    """Return the staleness of a policy with a hard budget, over an episode and its second half.

    Args:
        seed: of pages, events and signals.
        instance: the set of pages.
        signals: ``none``, ``partial`` or ``noisy``.
        num_pages: m.
        budget: crawls per page and day.
        make: constructor of the policy from an environment.
        decisions: per day; each crawls its share of the budget.
        days: of the episode.
        arguments: of the environment.
    """
    bandwidth = budget * num_pages
    env = gymnasium.make(
        ID,
        instance=instance,
        signals=signals,
        num_pages=num_pages,
        bandwidth=bandwidth,
        horizon=days,
        action="scores",
        batch=max(1, round(bandwidth / decisions)),
        **arguments,
    )
    records, _ = ledgers(env, make, seed)
    return of_budget(records, num_pages)


def of_budget(records: Sequence[FragmentLedger], num_pages: float) -> dict[str, float]:
    """Return staleness, also of the second half, and crawls per page and day of an episode."""
    whole = records[-1]
    half = next(ledger for ledger in records if ledger.time >= whole.time / 2.0)
    late = (whole.divergence_time - half.divergence_time) / (whole.alive_time - half.alive_time)
    return {
        "staleness": whole.divergence,
        "second half": late,
        "holistic": 1.0 - whole.freshness,
        "crawls": whole.crawls / (num_pages * whole.time),
    }
