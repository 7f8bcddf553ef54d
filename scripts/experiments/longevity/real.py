"""Compare policies for fragment staleness on recorded histories of real sites.

The second half of each record is simulated; all copies are fresh at its start. Parameters are
fitted to the first half. At most 200 random pages per site are used. Traces have fragments of pages
with three changes or more; their hash is a multiple of 8 (64 for nyc-covid, 1 for the shipped one).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.measures import curves, plays, sites
from scripts.experiments.longevity.measures.entrants import (
    BOUNDS,
    CGM,
    COMPARED,
    FITTING,
    FS_D,
    OFFLINE,
    ONLINE,
    OURS,
    UNIFORM,
    WARMED,
    steps,
)
from scripts.experiments.longevity.measures.plays import PARAMETERS, Entrant
from scripts.experiments.measures import recorded
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Trend, trends
from scripts.study.means import table
from scripts.study.settings import Measurement, spec

TITLE = "Fragments of recorded pages"

BUDGETS = (3, 10, 30, 100)
"""Days per crawl of a page, under an even share."""
COSTS = (0.02, 0.0667, 0.2)
"""Refresh costs of thresholds: with ticks of two days, a refresh every 100, 30 and 10 days."""
DECISIONS = 4.0
"""Largest number of decisions per day."""
TOGETHER = recorded.ALL_SITES
THRESHOLDS = "thresholds"
RELATIVE = "relative staleness"
"""Staleness over that of uniform refreshing on the same days."""
LOGARITHM = "logarithm of relative staleness"
"""The tested metric, since sites differ by orders of magnitude."""
MAX_RELATIVE = 2.5
QUICK_STEP = 3
"""With ``--quick`` every third threshold is simulated."""
SAME_DAYS = "FS-S, curves of the days played"
EARLIER = "FS-S, curves of earlier days"
GREEDY, NCIS, OURS_SIGNALS = "GREEDY, fitted rates", "GREEDY-NCIS, fitted", f"{OURS}, with signals"

BUDGETED = {
    UNIFORM: Entrant("UniformRefresh"),
    FITTING: Entrant("CurveFitting"),
    BOUNDS: Entrant("DivergenceBounds"),
    CGM: Entrant("ChoGarciaMolina"),
    GREEDY: Entrant("HolisticStatic", shown=PARAMETERS),
    NCIS: Entrant("GreedyNCIS", shown=PARAMETERS | {"signals": "both"}),
    EARLIER: Entrant("FragmentStatic", curves="earlier days"),
    SAME_DAYS: Entrant("FragmentStatic", curves="days played"),
    FS_D: Entrant("FragmentDynamic"),
    OURS: Entrant("LearningLongevity", shown=COMPARED),
    OURS_SIGNALS: Entrant("LearningLongevity", shown=COMPARED | {"signals": "both"}),
}
"""Policies with a budget. Parameters are fitted to the first half of the record."""
SWEPT = {
    UNIFORM: replace(OFFLINE[UNIFORM], knobs=(2.0, 4.0, 8.0, 14.0, 25.0, 45.0, 80.0, 150.0)),
    FITTING: replace(ONLINE[FITTING], knobs=steps(0.005, 20.0, 8)),
    BOUNDS: replace(ONLINE[BOUNDS], knobs=steps(0.25, 60.0, 8)),
    CGM: replace(WARMED[CGM], knobs=steps(0.02, 150.0, 8)),
    EARLIER: replace(BUDGETED[EARLIER], knobs=steps(0.002, 60.0, 8)),
    SAME_DAYS: replace(BUDGETED[SAME_DAYS], knobs=steps(0.002, 60.0, 8)),
    FS_D: replace(BUDGETED[FS_D], knobs=steps(0.0005, 20.0, 8)),
}
"""Policies with thresholds, as in the paper, without signals."""
SIGNAL_DAYS = (3, 10)
"""Days per crawl at which ours has signals; directories have many, which are slow to process."""


@spec("longevity-budgeted-staleness-recorded")
def budgeted(seed: int, *, entrant: Entrant, site: str, days: float) -> dict[str, float]:
    """Simulate a policy with a hard budget on a record's second half; return its staleness."""
    alive = sites.second_half(site).alive
    bandwidth = alive / days
    batch = max(1, round(bandwidth / DECISIONS))
    env = sites.replayed(site, form="scores", bandwidth=bandwidth, batch=batch, **entrant.shown)
    return plays.of_budget(plays.ledgers(env, entrant.make, seed)[0], alive)


@spec("longevity-threshold-sweep-recorded")
def swept(seed: int, *, entrant: Entrant, site: str) -> dict[str, float]:
    """Return a policy's cost and staleness by threshold, after day 30 of a record's second half."""
    alive = sites.second_half(site).alive
    env = sites.replayed(site, form="refresh", bandwidth=1.0 / plays.TICK)

    return plays.sweep(env, entrant, seed, partial(plays.steady, num_pages=alive))


def name_of(site: str, days: int) -> str:
    """Return the name of the setting of a site with a crawl per page in so many days."""
    return f"{site}, {days} days"


AT_BUDGETS = tuple(name_of(TOGETHER, days) for days in BUDGETS)


SWEEP = f", {THRESHOLDS}"
"""Ending of the names of settings with thresholds."""


def _sites_and_ends(settings: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return, for each setting's name, the site that it begins with and its ending."""
    ends = *(name_of("", days) for days in BUDGETS), SWEEP, *curves.at_costs(SWEEP, COSTS)
    parts = product(recorded.places(), ends)
    return recorded.look_up(settings, {site + end: (site, end) for site, end in parts})


def _expected() -> Iterator[Trend]:
    """Yield the expected results: which policy of a pair is staler than the other."""
    pairs = {
        AT_BUDGETS: [
            *((UNIFORM, label) for label in (FITTING, BOUNDS, CGM, EARLIER, SAME_DAYS, OURS)),
            *((CGM, label) for label in (FITTING, BOUNDS, OURS)),
            (FITTING, OURS),
        ],
        tuple(name_of(TOGETHER, days) for days in SIGNAL_DAYS): [
            (OURS, OURS_SIGNALS),
            (NCIS, OURS_SIGNALS),
        ],
        curves.at_costs(TOGETHER + SWEEP, COSTS): [
            (UNIFORM, label) for label in (FITTING, BOUNDS, CGM, EARLIER, SAME_DAYS)
        ],
    }
    for where, compared in pairs.items():
        for staler, fresher in compared:
            yield Trend(staler, "above", fresher, where, "a seed is a site", metric=LOGARITHM)


CLAIMS = (
    Claim(
        "The online policies adapt to shifts of how pages change.",
        "section 1.1",
        trends(
            EARLIER, "above", (FITTING, BOUNDS), AT_BUDGETS, "a seed is a site", metric=LOGARITHM
        ),
        "On records, whose pages shift, compared with the offline policy with curves of earlier "
        "days. A shift on drawn pages was not simulated.",
    ),
)


def measurements(quick: bool) -> list[Measurement]:
    """Return measurements of every available site with fragments, by budget and by threshold."""
    settings = []
    for days in SIGNAL_DAYS[-1:] if quick else BUDGETS:
        measures = {
            label: partial(budgeted, entrant=entrant)
            for label, entrant in BUDGETED.items()
            if label != OURS_SIGNALS or days in SIGNAL_DAYS
        }
        for site in sites.available(shipped=quick):
            arguments = {"site": site, "days": days}
            settings.append(Measurement(name_of(site, days), measures, arguments, plays.ID, most=1))
    measures = {
        label: partial(swept, entrant=entrant.every(QUICK_STEP if quick else 1))
        for label, entrant in SWEPT.items()
    }
    for site in sites.available(shipped=quick):
        settings.append(Measurement(site + SWEEP, measures, {"site": site}, plays.ID, most=1))
    return settings


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of staleness relative to uniform refreshing, by site and over sites as seeds.

    Policies with thresholds are compared at equal cost.
    """
    parts = _sites_and_ends(row.setting for row in rows)
    thresholds = [row for row in rows if parts[row.setting][1] == SWEEP]
    derived = curves.compared(thresholds, stretch=plays.STEADY, costs=COSTS)
    stale = [row for row in [*rows, *derived] if row.metric == "staleness"]
    base = {row.setting: row.value for row in stale if row.policy == UNIFORM}
    derived += [
        row._replace(metric=metric, value=value)
        for row in stale
        if base.get(row.setting, 0.0) > 0.0 and row.value > 0.0
        for metric, value in (
            (RELATIVE, row.value / base[row.setting]),
            (LOGARITHM, math.log(row.value / base[row.setting])),
        )
    ]
    parts = _sites_and_ends(row.setting for row in [*rows, *derived])
    names = sorted({parts[row.setting][0] for row in stale})
    together = [
        row._replace(setting=f"{TOGETHER}{end}", seed=names.index(site))
        for row in [*rows, *derived]
        if row.metric in ("staleness", RELATIVE, LOGARITHM)
        for site, end in (parts[row.setting],)
    ]
    return derived + together


def draw(rows: Sequence[Row], path: Path, *, labels: Sequence[str], panels: dict[str, str]) -> None:
    """Draw staleness relative to uniform refreshing: a dot per site, a panel per kind of setting.

    Args:
        rows: rows of settings that are named by a site and an ending.
        path: file of the picture.
        labels: policies, from the top.
        panels: titles by ending.
    """
    values = table(rows, RELATIVE)
    parts = _sites_and_ends(values.setting)
    site, end = (values.setting.map(lambda name, k=k: parts[name][k]) for k in (0, 1))
    data = values.assign(site=site, end=end)[(site != TOGETHER) & end.isin(panels)]
    charts.points(
        data.assign(panel=data.end.map(panels)).rename(columns={"policy": "y", "value": "x"}),
        path,
        charts.Frame(
            f"{TITLE}: a dot per site, {data.site.nunique()} at most; diamond: their median with a "
            "95% interval\n"
            f"staleness over that of uniform refreshing (1: as stale; cut at {MAX_RELATIVE:g})",
            charts.Axis("relative staleness", limits=(0.0, MAX_RELATIVE)),
            columns=4,
            size=(2.6, 0.0),
            upright=[charts.Rule(1.0, dash="-")],
        ),
        names=labels,
    )


EXPERIMENT = Experiment(
    name="longevity-real",
    title=TITLE,
    claim=(
        "On recorded pages the paper's policies are often as stale as uniform refreshing. Bulk "
        "edits change pages that were static for long, and curves of earlier days or crawls do "
        "not refresh such pages. Curves of the simulated days would suffice."
    ),
    metric="staleness",
    references=(UNIFORM,),
    repetitions=1,
    quick_repetitions=1,
    settings=measurements,
    derive=derive,
    claims=CLAIMS,
    expected=tuple(_expected()),
    pictures={
        "budgets": partial(
            draw,
            labels=tuple(BUDGETED),
            panels={name_of("", days): f"a crawl per page in {days} days" for days in BUDGETS},
        ),
        "thresholds": partial(
            draw,
            labels=tuple(SWEPT),
            panels={curves.at_cost(SWEEP, cost): f"refresh cost {cost:g}" for cost in COSTS},
        ),
    },
)
