"""Simulate policies on pages of fragments, and measure refresh cost and staleness.

The set-up is that of Olston and Pandey (2008), section 5. Every two days for 60 days, at ticks, a
policy refreshes any set of pages; all copies are fresh at the start. Refresh cost is refreshes per
page and tick: 1 is every page at every tick. Staleness is the mean divergence over pages and time
(eq. 2). Ticks 1 to 15 and the slots after them are the warm-up, 16 to 30 the steady state; the two
days before the first tick count for neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np

import policies
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.types.ledgers import FragmentLedger
from policies.values.divergence.curves import DivergenceCurves, HolisticCurves
from policies.values.divergence.tabulated import TabulatedCurves
from scripts.experiments.longevity.measures import sites
from scripts.experiments.longevity.measures.snapshots import changed, runs_of
from scripts.experiments.measures.courses import decisions
from scripts.study.rows import indexed_columns
from scripts.study.settings import Measurement, spec

ID = "CrawlLongevity-v0"
TICK, TICKS, WARM_TICKS = 2.0, 30, 15
"""Days between ticks, ticks of a run, and ticks of the warm-up."""
WARM_UP = TICK * WARM_TICKS
"""Days of the warm-up."""
PAGES, QUICK_PAGES = 1000, 60
"""Pages per seed; ten seeds have as many as the paper's sets."""
QUICK_STEP = 5
"""With ``--quick`` every fifth knob of an entrant is simulated."""

WARM, STEADY = "warm-up", "steady"
STRETCHES = {WARM: (0, WARM_TICKS), STEADY: (WARM_TICKS, TICKS)}
"""First tick of each stretch, and the tick after its last."""

Ledgers = list[FragmentLedger]


def _of_snapshots(env: Any) -> TabulatedCurves:
    """Return average divergence curves, as simulated snapshots show them (section 3.4)."""
    return TabulatedCurves.of_contents(env.contents(), TICK, TICK * TICKS)


def _of_changes(env: Any) -> HolisticCurves:
    """Return divergence curves by the change frequencies of simulated snapshots (section 3.4)."""
    times = TICK * np.arange(1.0, TICKS + 1.0, dtype=np.float64)
    changes = changed(runs_of(env.contents(), times)).sum(axis=1)
    return HolisticCurves(changes / (times[-1] - times[0]))


CURVES: dict[str, Callable[[Any], DivergenceCurves]] = {
    "snapshots": _of_snapshots,
    "changes of snapshots": _of_changes,
    "earlier days": lambda env: sites.curves(env.site),
    "days played": lambda env: sites.curves(env.site, of_played=True),
}
"""Functions that measure curves on the contents of an environment or a recorded site."""

HIDDEN = {"reveal": "importance", "base_versions": 0}
PARAMETERS = {"reveal": "parameters", "base_versions": 0}


@dataclass(frozen=True)
class Entrant:
    """A policy that experiments compare, and the values of its knob.

    Attributes:
        policy: its name in :mod:`policies`.
        knobs: thresholds in days (in divergence for the naive form), or intervals in days of
            uniform refreshing; none with a hard budget.
        given: other arguments of the policy.
        sets: arguments that the knob sets, with their ratio to the knob.
        curves: name in CURVES of the policy's curves; empty: the policy's default.
        shown: arguments of the environment: what it reveals, and the number of base versions that
            it compares copies with.
    """

    policy: str
    knobs: tuple[float, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    sets: Mapping[str, float] = field(default_factory=lambda: {"threshold": 1.0})
    curves: str = ""
    shown: Mapping[str, Any] = field(default_factory=HIDDEN.copy)

    def make(self, env: Any, knob: float | None = None) -> Any:
        """Return the policy for an environment after a reset, with a knob or a hard budget."""
        given = dict(self.given)
        if knob is not None:
            given |= {name: ratio * knob for name, ratio in self.sets.items()}
        if self.curves:
            given["curves"] = CURVES[self.curves](env.unwrapped)
        return policies.make(self.policy, env, **given)

    def every(self, step: int) -> Entrant:
        """Return the same policy with every ``step``-th of its knobs."""
        return replace(self, knobs=self.knobs[::step])


def ticking(
    instance: str, num_pages: int, *, tick: float = TICK, days: float = TICK * TICKS, **shown: Any
) -> gymnasium.Env[Any, Any]:
    """Return the environment of the paper's set-up; ``shown`` are its other arguments."""
    return gymnasium.make(
        ID,
        instance=instance,
        num_pages=num_pages,
        bandwidth=1.0 / tick,
        horizon=days,
        action="refresh",
        **shown,
    )


def ledgers(
    env: gymnasium.Env[Any, Any],
    make: Callable[[Any], Any],
    seed: int,
    read: Callable[[Any], Any] = CrawlEnv.ledger,
) -> tuple[list[Any], Any]:
    """Run an episode step by step; return readings at each decision and the end, and the policy.

    The policy is in its state after the last decision.

    Args:
        env: a single environment.
        make: function that returns the policy for the environment after its reset.
        seed: seed of the episode.
        read: function of the unwrapped environment; by default it returns the ledger.
    """
    observation, _ = env.reset(seed=seed)
    policy = make(env)
    return [read(core) for core in decisions(env, policy, observation)], policy.of_lane()


def between(records: Ledgers, first: int, last: int, num_pages: float) -> dict[str, float]:
    """Return the measures of the time from decision ``first`` to decision ``last``.

    They are the refresh ``cost``, ``staleness``, and ``holistic``: the share of page time with a
    stale copy.
    """
    start, end = records[first], records[last]
    alive = end.alive_time - start.alive_time
    return {
        "cost": (end.crawls - start.crawls) / (num_pages * (last - first)),
        "staleness": (end.divergence_time - start.divergence_time) / alive,
        "holistic": 1.0 - (end.fresh_time - start.fresh_time) / alive,
    }


def in_stretches(
    records: Ledgers, num_pages: float, stretches: Mapping[str, tuple[int, int]] = STRETCHES
) -> dict[str, float]:
    """Return the measures of each stretch of decisions, named ``<measure>, <stretch>``."""
    return {
        f"{measure}, {stretch}": value
        for stretch, decisions in stretches.items()
        for measure, value in between(records, *decisions, num_pages).items()
    }


def steady(records: Ledgers, num_pages: float) -> dict[str, float]:
    """Return the measures of the time from the end of the warm-up to the end of the episode."""
    return in_stretches(records, num_pages, {STEADY: (WARM_TICKS, len(records) - 1)})


def sweep(
    env: gymnasium.Env[Any, Any],
    entrant: Entrant,
    seed: int,
    measure: Callable[[list[Any]], Mapping[str, float]],
    read: Callable[[Any], Any] = CrawlEnv.ledger,
) -> dict[str, float]:
    """Run an episode with each knob on the same pages and events; return its measures by knob.

    Args:
        env: a single environment.
        entrant: the policy and its knobs.
        seed: seed of the episodes.
        measure: function of the readings of an episode that returns numbers by metric.
        read: as in :func:`ledgers`.
    """
    measured = [
        measure(ledgers(env, partial(entrant.make, knob=knob), seed, read)[0])
        for knob in entrant.knobs
    ]
    return indexed_columns({name: [values[name] for values in measured] for name in measured[0]})


@spec("longevity-threshold-sweep")
def swept(seed: int, *, entrant: Entrant, instance: str, num_pages: int) -> dict[str, float]:
    """Return a policy's cost and staleness in both stretches of time, for each of its knobs."""
    env = ticking(instance, num_pages, **entrant.shown)
    return sweep(env, entrant, seed, partial(in_stretches, num_pages=num_pages))


def sweeps(quick: bool, *, entrants: Mapping[str, Entrant], instance: str) -> list[Measurement]:
    """Return the measurement of all policies over their knobs, on a set of pages of this name."""
    measures = {
        label: partial(swept, entrant=entrant.every(QUICK_STEP if quick else 1))
        for label, entrant in entrants.items()
    }
    size = {"instance": instance, "num_pages": QUICK_PAGES if quick else PAGES}
    return [Measurement(instance, measures, size, ID)]


def of_budget(records: Ledgers, num_pages: float) -> dict[str, float]:
    """Return the staleness of an episode and of its second half, and crawls per page and day."""
    end = records[-1]
    half = next(ledger for ledger in records if ledger.time >= end.time / 2.0)
    late = (end.divergence_time - half.divergence_time) / (end.alive_time - half.alive_time)
    return {
        "staleness": end.divergence,
        "second half": late,
        "holistic": 1.0 - end.freshness,
        "crawls": end.crawls / (num_pages * end.time),
    }
