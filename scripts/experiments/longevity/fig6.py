"""Olston and Pandey, figure 6: policies that know how pages change, on the high-quality set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.measures import curves, pictures, plays
from scripts.experiments.longevity.measures.entrants import (
    FS_D,
    FS_S,
    FS_S_MEASURED,
    HS_D,
    HS_S,
    HS_S_MEASURED,
    NAIVE_DYNAMIC,
    NAIVE_STATIC,
    OFFLINE,
    UNIFORM,
)
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Range, Trend

TITLE = "Policies that know how pages change"
TWICE = "saved beyond twice what HS-S saves"
"""Staleness saved over uniform refreshing at equal cost, minus twice what HS-S saves."""
FRAGMENT_BASED = {FS_S: HS_S, FS_S_MEASURED: HS_S_MEASURED}
"""Fragment-based policies, each with its holistic counterpart."""

SET = "quality"
HOLISTIC = "holistic staleness"
ALL_MOVING, LOWEST = "cost of all that is not static", "staleness at that cost"
ALL = curves.at_costs(SET)
SECTION_34, SECTION_23 = "section 3.4, figure 6", "section 2.3"


def _staler(first: str, second: str, source: str = SECTION_34, metric: str = "") -> Trend:
    return Trend(first, "above", second, ALL, source, metric=metric)


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of staleness at equal cost, costs if as stale, and uniform's last point."""
    all_points = curves.points_of(rows, curves.EPISODE)
    holistic = curves.points_of(rows, curves.EPISODE, "holistic")
    derived = [
        *curves.stalenesses(all_points),
        *curves.stalenesses(holistic, HOLISTIC),
        *curves.cost_ratios(all_points, UNIFORM),
    ]
    derived += twice_saved(derived)
    for (setting, label, seed), points in all_points.items():
        if label == UNIFORM:
            for name, column in ((ALL_MOVING, points.cost), (LOWEST, points.staleness)):
                derived.append(Row(plays.ID, setting, label, seed, name, float(column[0])))
    return derived


def twice_saved(rows: Sequence[Row]) -> list[Row]:
    """Return rows of what FRAGMENT_BASED policies save, minus twice their counterparts' savings."""
    stale = {row[1:4]: row.value for row in rows if row.metric == "staleness"}
    saved = []
    for (setting, label, seed), value in stale.items():
        if label in FRAGMENT_BASED:
            base = stale.get((setting, UNIFORM, seed), np.nan)
            counterpart = stale.get((setting, FRAGMENT_BASED[label], seed), np.nan)
            more = (base - value) - 2.0 * (base - counterpart)
            saved.append(Row(plays.ID, setting, label, seed, TWICE, more))
    return curves.without_nan(saved)


EXPERIMENT = Experiment(
    name="longevity-fig6",
    title=TITLE,
    claim=(
        "At equal refresh cost, policies for fragment staleness leave copies less stale than "
        "policies for holistic staleness, and dynamic ones less stale than static ones."
    ),
    metric="staleness",
    references=(UNIFORM,),
    repetitions=10,
    settings=partial(plays.sweeps, entrants=OFFLINE, instance=SET),
    derive=derive,
    claims=(
        Claim(
            "The fragment-based static policy, FS-S, performs significantly better than HS-S.",
            SECTION_34,
            (_staler(HS_S, FS_S), _staler(HS_S_MEASURED, FS_S_MEASURED)),
            "`measured`: with divergence curves and change frequencies from the snapshots that are "
            "then played, as in the paper; the others know the regions of the pages and their "
            "rates. Snapshots miss changes of fast pages, so HS-S, measured, underestimates their "
            "rates.",
        ),
        Claim(
            "FS-S performs significantly better especially if uniform refreshing is the baseline.",
            SECTION_34,
            tuple(Range(label, 0.0, np.inf, ALL, "twice: ours", TWICE) for label in FRAGMENT_BASED),
            "Read as: FS-S reduces the staleness of uniform refreshing by more than twice as much "
            "as HS-S does at equal cost. HS-S itself is no better than uniform refreshing at 0.2.",
        ),
        Claim(
            "The fragment-based dynamic policy, FS-D, performs better than HS-D.",
            SECTION_34,
            (_staler(HS_D, FS_D),),
        ),
        Claim(
            "Dynamic policies vastly outperform their static counterparts.",
            SECTION_34,
            (_staler(FS_S, FS_D), _staler(HS_S, HS_D)),
            "At 0.4 FS-D is ahead of FS-S by 0.0002 only: there all are as fresh as possible. "
            "Dynamic policies know which pages have not changed, and need no more than a cost of "
            "about 0.27. HS-D never again refreshes a page that changed right after a refresh, as "
            "eq. 4 assumes that the next cycle equals this one.",
        ),
        Claim(
            "Half of the pages are static, so the largest interesting refresh cost is 0.5.",
            SECTION_34,
            (Range(UNIFORM, 0.45, 0.55, (SET,), "margin ours", ALL_MOVING),),
            fitted=True,
        ),
        Claim(
            "Staleness does not go to zero even if every page that is not static is refreshed at "
            "every opportunity.",
            SECTION_34,
            (Range(UNIFORM, 0.02, 0.06, (SET,), "range ours", LOWEST),),
            "The paper gives 0.03 for figure 11: the share of content that changes too fast.",
            fitted=True,
        ),
        Claim(
            "Refreshing by U = D, the current divergence, is significantly worse than by eq. 4.",
            SECTION_23,
            (_staler(NAIVE_STATIC, FS_S, SECTION_23), _staler(NAIVE_DYNAMIC, FS_D, SECTION_23)),
        ),
        Claim(
            "It is even worse than uniform refreshing.",
            SECTION_23,
            (
                _staler(NAIVE_STATIC, UNIFORM, SECTION_23),
                _staler(NAIVE_DYNAMIC, UNIFORM, SECTION_23),
            ),
            "One of the eight comparisons holds, barely, at the least cost; the other seven are "
            "reversed. Ticks of two days limit how often a page is refreshed, so U = D cannot "
            "spend its crawls on pages that change by the hour. It never refreshes pages with "
            "little moving content, which most pages of this set are. Without ticks the sentence "
            "holds for the static form at seven of eight budgets; one is undecided: see `beyond`.",
        ),
        Claim(
            "Under holistic staleness the HS policies outperform the FS policies.",
            "footnote 5",
            (
                _staler(FS_S, HS_S, "footnote 5", HOLISTIC),
                _staler(FS_D, HS_D, "footnote 5", HOLISTIC),
            ),
        ),
    ),
    pictures={
        "staleness": partial(
            pictures.curves_by_cost,
            stretch=curves.EPISODE,
            title=f"{TITLE}: {SET} set, 60 days",
            labels=tuple(OFFLINE),
            black=(UNIFORM,),
            measures={
                "staleness": pictures.STALENESS,
                "holistic": "holistic staleness:\nshare of page time with a changed page",
            },
        )
    },
)
