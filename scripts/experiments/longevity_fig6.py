"""Figure 6: policies that know how pages change, on the high-quality set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crawl_envs.evaluation import Row
from scripts.comparing.longevity_curves import WHOLE, cost_ratios, points_of, stalenesses
from scripts.comparing.longevity_experiments import settings_at, staler, sweeps
from scripts.comparing.longevity_policies import (
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
from scripts.comparing.longevity_runs import ID
from scripts.comparing.settings import Measurement
from scripts.comparing.verdicts import Claim, Range, Trend

TITLE = "Policies that know how pages change"
CLAIM = (
    "At equal refresh cost, policies for fragment staleness leave copies less stale than policies "
    "for holistic staleness, and dynamic ones less stale than static ones."
)
METRIC = "staleness"
REFERENCE = UNIFORM
REPETITIONS, QUICK_REPETITIONS = 10, 2

SET = "quality"
HOLISTIC = "holistic staleness"
LABELS = tuple(OFFLINE)
AT = settings_at(SET)
SECTION_34, SECTION_23 = "section 3.4, figure 6", "section 2.3"


def _staler(first: str, second: str, source: str = SECTION_34, metric: str = "") -> Trend:
    return staler(first, second, AT, source, metric)


CLAIMS = (
    Claim(
        "The fragment-based static policy, FS-S, performs significantly better than HS-S.",
        SECTION_34,
        (_staler(HS_S, FS_S), _staler(HS_S_MEASURED, FS_S_MEASURED)),
        "`measured`: with divergence curves and change frequencies from the snapshots that are "
        "then played, as in the paper; the others are told the regions of the pages and their "
        "rates. Snapshots miss changes of fast pages, and so HS-S, measured, takes them for "
        "slower than they are.",
    ),
    Claim(
        "With uniform refreshing as the baseline the difference is larger still.",
        SECTION_34,
        (_staler(UNIFORM, FS_S), _staler(UNIFORM, FS_S_MEASURED)),
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
        "Dynamic policies know which pages have not changed, and find no use for a cost of more "
        "than about 0.27. HS-D never refreshes a page again that changed right after a "
        "refresh, as eq. 4 takes it that the next cycle would go as this one.",
    ),
    Claim(
        "Half of the pages are static, so the largest interesting refresh cost is 0.5.",
        SECTION_34,
        (Range(UNIFORM, 0.45, 0.55, (SET,), "margin ours", "cost of all that is not static"),),
    ),
    Claim(
        "Staleness does not go to zero even if every page that is not static is refreshed at "
        "every opportunity.",
        SECTION_34,
        (Range(UNIFORM, 0.02, 0.06, (SET,), "range ours", "staleness at that cost"),),
        "The paper says 0.03 of figure 11: the share of content that changes too fast.",
    ),
    Claim(
        "Refreshing by U = D, the current divergence, is significantly worse than by eq. 4.",
        SECTION_23,
        (
            _staler(NAIVE_STATIC, FS_S, SECTION_23),
            _staler(NAIVE_DYNAMIC, FS_D, SECTION_23),
        ),
    ),
    Claim(
        "It is even worse than uniform refreshing.",
        SECTION_23,
        (
            _staler(NAIVE_STATIC, UNIFORM, SECTION_23),
            _staler(NAIVE_DYNAMIC, UNIFORM, SECTION_23),
        ),
        "Here it is so only where refreshes are scarce and the form is static. By U = D pages that "
        "are all advertisements are refreshed at every tick, but pages of which little can change "
        "never; uniform refreshing spends as much on each of these, and they are most of the pages "
        "that change in this set. What the paper's pages had instead is not known.",
    ),
    Claim(
        "Under holistic staleness the HS policies outperform the FS policies.",
        "footnote 5",
        (
            _staler(FS_S, HS_S, "footnote 5", HOLISTIC),
            _staler(FS_D, HS_D, "footnote 5", HOLISTIC),
        ),
    ),
)
EXPECTED = ()


def measurements(quick: bool) -> Sequence[Measurement]:
    """All policies on the high-quality set."""
    return [sweeps(OFFLINE, SET, quick)]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Stalenesses at equal cost, costs at equal staleness, and the end of uniform refreshing."""
    curves = points_of(rows, WHOLE)
    derived = [
        *stalenesses(curves),
        *stalenesses(points_of(rows, WHOLE, "holistic"), HOLISTIC),
        *cost_ratios(curves, UNIFORM),
    ]
    for seed, points in curves.get(SET, {}).get(UNIFORM, {}).items():
        for name, value in (
            ("cost of all that is not static", points.cost[0]),
            ("staleness at that cost", points.staleness[0]),
        ):
            derived.append(Row(ID, SET, UNIFORM, seed, name, float(value)))
    return derived


def _fragments(rows: Sequence[Row], path: Path) -> None:
    """Draw the figure."""
    from scripts.comparing.longevity_charts import curves_by_cost

    curves_by_cost(
        {"": points_of(rows, WHOLE)},
        path,
        title=f"{TITLE}: {SET} set, 60 days",
        labels=LABELS,
        black=(UNIFORM,),
    )


def _holistic(rows: Sequence[Row], path: Path) -> None:
    """Draw it with holistic staleness."""
    from scripts.comparing.longevity_charts import curves_by_cost

    curves_by_cost(
        {"": points_of(rows, WHOLE, "holistic")},
        path,
        title=f"{TITLE}: {SET} set, 60 days, holistic staleness",
        labels=LABELS,
        black=(UNIFORM,),
        y_label="holistic staleness: share of page time with a changed page",
    )


PICTURES = {"staleness": _fragments, "holistic": _holistic}
