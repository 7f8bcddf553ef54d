"""Policies for fragment staleness on recorded histories of real sites.

The second half of each record is played; all copies are fresh at its start. Parameters are fitted
to the first half. Traces keep fragments of pages with three changes or more: those whose hash is a
multiple of 8 (64 of nyc-covid, all of the shipped trace). At most 200 random pages per site.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import policies
from crawl_envs.evaluation import Row
from crawl_envs.instances.traces.windows import Signals
from policies.longevity.bounds import DivergenceBounds
from policies.longevity.cgm import ChoGarciaMolina
from policies.longevity.curve_fitting import CurveFitting
from policies.longevity.learning import LearningLongevity
from policies.longevity.offline import (
    FragmentDynamic,
    FragmentStatic,
    HolisticStatic,
    UniformRefresh,
)
from scripts.experiments.longevity.setup import fragment_records
from scripts.experiments.longevity.setup import sites as longevity_sites
from scripts.experiments.longevity.setup.curves import at_cost, points_of, stalenesses
from scripts.experiments.longevity.setup.policies import (
    BOUNDS,
    CGM,
    FITTING,
    FS_D,
    HISTORIES,
    OFFLINE,
    ONLINE,
    OURS,
    UNIFORM,
    WARMED,
    Candidate,
    make_policy,
)
from scripts.experiments.longevity.setup.runs import (
    ID,
    STEADY,
    TICK,
    by_knob,
    ledgers,
    of_budget,
    steady,
)
from scripts.present.verdicts import Trend
from scripts.study.settings import Measurement

TITLE = "Fragments of recorded pages"
CLAIM = (
    "On recorded pages the paper's policies are not less stale than uniform refreshing as a rule: "
    "bulk edits change pages that were static for long, and such pages are not refreshed by curves "
    "of earlier days or of the crawls so far. Curves of the days that are played would suffice."
)
METRIC = "staleness"
REFERENCE = UNIFORM
REPETITIONS, QUICK_REPETITIONS = 1, 1

BUDGETS = (3, 10, 30, 100)
"""Days per crawl of a page, under an even share."""
COSTS = (0.02, 0.0667, 0.2)
"""Refresh costs of thresholds: a refresh every 100, 30 and 10 days, as there are ticks of two."""
DECISIONS = 4.0
"""Per day, at most."""
TOGETHER = "all sites"
THRESHOLDS = "thresholds"
RELATIVE = "relative staleness"
"""Staleness over that of uniform refreshing on the same days."""
LOGARITHM = "logarithm of relative staleness"
"""The judged metric: sites differ by orders of magnitude."""
PLAYED = "FS-S, curves of the days played"
EARLIER = "FS-S, curves of earlier days"
GREEDY, NCIS, OURS_SIGNALS = "GREEDY, fitted rates", "GREEDY-NCIS, fitted", f"{OURS}, with signals"


def named(env: Any, site: str, name: str) -> Any:
    """Return a policy by its name."""
    return policies.make(name, env)


def plain(env: Any, site: str, kind: Any, **arguments: Any) -> Any:
    """Return a policy that needs no data of the site."""
    return kind(env, **arguments)


def tabulated(env: Any, site: str, of_played: bool, **arguments: Any) -> FragmentStatic:
    """Return FS-S with curves measured on recorded content."""
    curves = longevity_sites.curves(site, of_played=of_played)
    return FragmentStatic(env, curves=curves, **arguments)


def budgeted(
    seed: int,
    *,
    site: str,
    days: float,
    policy: str,
    signals: Signals = "none",
    **arguments: Any,
) -> Mapping[str, float]:
    """Return the staleness of a policy on the second half of a record, with a hard budget."""
    alive = longevity_sites.alive_pages(longevity_sites.record(site))
    bandwidth = alive / days
    env = longevity_sites.replayed(
        site,
        signals=signals,
        form="scores",
        bandwidth=bandwidth,
        batch=max(1, round(bandwidth / DECISIONS)),
        **arguments,
    )
    records, _ = ledgers(env, partial(BUDGETED[policy], site=site), seed)
    return of_budget(records, alive)


def swept(
    seed: int,
    *,
    site: str,
    kind: str,
    knobs: Sequence[float],
    given: Mapping[str, Any] = MappingProxyType({}),
    base_versions: int = 0,
) -> Mapping[str, float]:
    """Return cost and staleness of a policy with thresholds, from day 30 of the second half on."""
    alive = longevity_sites.alive_pages(longevity_sites.record(site))
    env = longevity_sites.replayed(
        site, signals="none", form="refresh", bandwidth=1.0 / TICK, base_versions=base_versions
    )

    def play(knob: float) -> Mapping[str, float]:
        make = partial(thresholded, site=site, knob=knob, kind=kind, given=given)
        return steady(ledgers(env, make, seed)[0], alive)

    return by_knob(knobs, play)


def thresholded(env: Any, site: str, knob: float, kind: str, given: Mapping[str, Any]) -> Any:
    """Return a policy of KINDS with a threshold, or FS-S on recorded curves."""
    if kind in (EARLIER, PLAYED):
        return tabulated(env, site, kind == PLAYED, threshold=knob)
    return make_policy(env, knob, kind, given)


BUDGETED: dict[str, Any] = {
    UNIFORM: partial(plain, kind=UniformRefresh),
    FITTING: partial(plain, kind=CurveFitting),
    BOUNDS: partial(plain, kind=DivergenceBounds),
    CGM: partial(plain, kind=ChoGarciaMolina),
    GREEDY: partial(plain, kind=HolisticStatic),
    NCIS: partial(named, name="GreedyNCIS"),
    EARLIER: partial(tabulated, of_played=False),
    PLAYED: partial(tabulated, of_played=True),
    FS_D: partial(plain, kind=FragmentDynamic),
    OURS: partial(plain, kind=LearningLongevity),
    OURS_SIGNALS: partial(plain, kind=LearningLongevity),
}
"""Policies with a budget: functions of an environment and a site, by label."""
WITH_PARAMETERS = {"reveal": "parameters"}
WITH_SIGNALS = {"signals": "both"}
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    GREEDY: WITH_PARAMETERS,
    NCIS: WITH_PARAMETERS | WITH_SIGNALS,
    OURS: {"base_versions": HISTORIES},
    OURS_SIGNALS: WITH_SIGNALS | {"base_versions": HISTORIES},
}
"""Further arguments of environments. Parameters are fitted to the first half of the record."""
MEASURES: dict[str, Any] = {
    label: partial(budgeted, policy=label, **ENVIRONMENTS.get(label, {})) for label in BUDGETED
}
"""Measures with a budget, by label."""
CYCLES = (2.0, 4.0, 8.0, 14.0, 25.0, 45.0, 80.0, 150.0)
T_COUNT = 8


def _knobs(low: float, high: float) -> tuple[float, ...]:
    ratio = (high / low) ** (1.0 / (T_COUNT - 1))
    return tuple(float(f"{low * ratio**place:.4g}") for place in range(T_COUNT))


def _swept(candidate: Candidate, knobs: Sequence[float]) -> Any:
    given = dict(candidate.given)
    return partial(
        swept, kind=candidate.kind, given=given, knobs=knobs, base_versions=candidate.base_versions
    )


SWEPT: dict[str, Any] = {
    UNIFORM: _swept(OFFLINE[UNIFORM], CYCLES),
    FITTING: _swept(ONLINE[FITTING], _knobs(0.005, 20.0)),
    BOUNDS: _swept(ONLINE[BOUNDS], _knobs(0.25, 60.0)),
    CGM: _swept(WARMED[CGM], _knobs(0.02, 150.0)),
    EARLIER: partial(swept, kind=EARLIER, knobs=_knobs(0.002, 60.0)),
    PLAYED: partial(swept, kind=PLAYED, knobs=_knobs(0.002, 60.0)),
    FS_D: _swept(OFFLINE[FS_D], _knobs(0.0005, 20.0)),
}
"""Measures with thresholds, as in the paper, without signals, by label."""
SIGNAL_DAYS = (3, 10)
"""Days per crawl at which ours has signals; a directory has many, and they are slow to process."""


def name_of(site: str, days: int) -> str:
    """Return the name of a setting with a budget."""
    return f"{site}, {days} days"


def _expected() -> tuple[Trend, ...]:
    where = tuple(name_of(TOGETHER, days) for days in BUDGETS)
    with_signals = tuple(name_of(TOGETHER, days) for days in SIGNAL_DAYS)
    pairs = [
        *((UNIFORM, label) for label in (FITTING, BOUNDS, CGM, EARLIER, PLAYED, OURS)),
        *((CGM, label) for label in (FITTING, BOUNDS, OURS)),
        (FITTING, OURS),
    ]
    signal_pairs = [(OURS, OURS_SIGNALS), (NCIS, OURS_SIGNALS)]
    swept_pairs = [(UNIFORM, label) for label in (FITTING, BOUNDS, CGM, EARLIER, PLAYED)]
    by_cost = tuple(at_cost(f"{TOGETHER}, {THRESHOLDS}", cost) for cost in COSTS)
    source = "a seed is a site"
    return tuple(
        Trend(staler, "above", other, settings, source, metric=LOGARITHM)
        for settings, compared in (
            (where, pairs),
            (with_signals, signal_pairs),
            (by_cost, swept_pairs),
        )
        for staler, other in compared
    )


CLAIMS = ()
EXPECTED = _expected()


def measures(days: int) -> dict[str, Any]:
    """Return the measures at a budget, in days per crawl."""
    return {
        label: play
        for label, play in MEASURES.items()
        if label != OURS_SIGNALS or days in SIGNAL_DAYS
    }


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return every available site with fragments, at every budget, and with thresholds."""
    sites = fragment_records.sites(shipped=quick)
    settings = [
        Measurement(name_of(site, days), measures(days), {"site": site, "days": days}, ID, most=1)
        for days in (SIGNAL_DAYS[-1:] if quick else BUDGETS)
        for site in sites
    ]
    if quick:
        return settings
    return settings + [
        Measurement(f"{site}, {THRESHOLDS}", SWEPT, {"site": site}, ID, most=1) for site in sites
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return stalenesses relative to uniform refreshing, also of all sites, a seed per site.

    Policies with thresholds are compared at equal cost.
    """
    curves = {
        setting: by_label
        for setting, by_label in points_of(rows, STEADY).items()
        if setting.endswith(THRESHOLDS)
    }
    derived = list(stalenesses(curves, costs=COSTS))
    kept = [row for row in [*rows, *derived] if row.metric == METRIC]
    base = {row.setting: row.value for row in kept if row.policy == UNIFORM}
    derived += [
        row._replace(metric=metric, value=value)
        for row in kept
        if base.get(row.setting, 0.0) > 0.0 and row.value > 0.0
        for metric, value in (
            (RELATIVE, row.value / base[row.setting]),
            (LOGARITHM, math.log(row.value / base[row.setting])),
        )
    ]
    sites = sorted({_site(row) for row in kept})
    together = [
        row._replace(
            setting=row.setting.replace(_site(row), TOGETHER, 1), seed=sites.index(_site(row))
        )
        for row in [*rows, *derived]
        if row.metric in (METRIC, RELATIVE, LOGARITHM)
    ]
    return derived + together


def _site(row: Row) -> str:
    return row.setting.partition(",")[0]


def _budgets(rows: Sequence[Row], path: Path) -> None:
    """Draw relative stalenesses by budget, a dot per site."""
    from scripts.experiments.longevity.setup.charts import sites

    names = {f"a crawl per page in {days} days": f", {days} days" for days in BUDGETS}
    sites(rows, path, title=TITLE, labels=tuple(MEASURES), panels=names, metric=RELATIVE)


def _thresholds(rows: Sequence[Row], path: Path) -> None:
    """Draw relative stalenesses of policies with thresholds, at equal cost."""
    from scripts.experiments.longevity.setup.charts import sites

    names = {f"refresh cost {cost:g}": at_cost(f", {THRESHOLDS}", cost) for cost in COSTS}
    kept = [row for row in rows if THRESHOLDS in row.setting] or list(rows)
    sites(kept, path, title=TITLE, labels=tuple(SWEPT), panels=names, metric=RELATIVE)


PICTURES = {"budgets": _budgets, "thresholds": _thresholds}
