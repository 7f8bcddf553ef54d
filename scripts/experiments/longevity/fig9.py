"""Figure 9: online policies in the last 15 of 30 ticks, on the high-quality set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.setup.curves import cost_ratios, points_of, stalenesses
from scripts.experiments.longevity.setup.policies import (
    BOUNDS,
    FITTING,
    FS_D,
    OFFLINE,
    ONLINE,
    OURS,
    UNIFORM,
    UNIFORM_ALL,
    settings_at,
    staler,
    sweeps,
)
from scripts.experiments.longevity.setup.runs import STEADY
from scripts.present.verdicts import Claim
from scripts.study.settings import Measurement

TITLE = "Online policies that have warmed up"
CLAIM = (
    "In the last 30 days both online policies leave copies less stale than uniform "
    "refreshing at equal cost, curve fitting slightly less than the bound-based policy."
)
METRIC = "staleness"
REFERENCE = UNIFORM
FURTHER_REFERENCES = (FITTING,)
REPETITIONS, QUICK_REPETITIONS = 10, 2

SET = "quality"
AT = settings_at(SET)
CANDIDATES = {
    UNIFORM: OFFLINE[UNIFORM],
    **ONLINE,
    FS_D: OFFLINE[FS_D],
}
SECTION = "section 5.1, figure 9"

CLAIMS = (
    Claim(
        "In steady state both online policies perform significantly better than uniform "
        "refreshing.",
        SECTION,
        (staler(UNIFORM, FITTING, AT, SECTION), staler(UNIFORM, BOUNDS, AT, SECTION)),
        "Uniform refreshing knows which pages are static and spends nothing on them. Online "
        "policies keep checking static pages: curve fitting by its learning bound, the bound-based "
        "policy every 10 thresholds by its risk bound, which takes more than two fifths of its "
        "refreshes (seed 0, thresholds of 1, 2 and 4 days). The further label is uniform "
        "refreshing of all pages, which knows as little as they do.",
    ),
    Claim(
        "Curve fitting is slightly ahead of the bound-based policy.",
        SECTION,
        (staler(BOUNDS, FITTING, AT, SECTION),),
        "The test is for any lead, however slight.",
    ),
    Claim(
        "An online policy cannot approach the performance of the offline policy FS-D.",
        SECTION,
        (staler(FITTING, FS_D, AT, SECTION), staler(BOUNDS, FS_D, AT, SECTION)),
    ),
)
FROM = AT[1:]
"""At lower costs the first waits of ours, which are not staggered, all end with the warm-up."""
EXPECTED = (
    staler(FITTING, OURS, FROM, "ours"),
    staler(BOUNDS, OURS, FROM, "ours"),
    staler(UNIFORM, OURS, FROM, "ours"),
    *(
        staler(UNIFORM_ALL, label, FROM, "it does not know static pages either")
        for label in (FITTING, BOUNDS, OURS)
    ),
)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return all thresholds of all policies."""
    return [sweeps(CANDIDATES, SET, quick)]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return stalenesses at equal cost, and costs at the staleness of uniform refreshing."""
    curves = points_of(rows, STEADY)
    return [*stalenesses(curves), *cost_ratios(curves, UNIFORM)]


def _picture(rows: Sequence[Row], path: Path) -> None:
    """Draw the figure."""
    from scripts.experiments.longevity.setup.charts import curves_by_cost

    curves_by_cost(
        points_of(rows, STEADY),
        path,
        title=f"{TITLE}: {SET} set, days 32 to 62",
        labels=tuple(CANDIDATES),
        black=(UNIFORM, FS_D),
    )


PICTURES = {"staleness": _picture}
