"""Figure 11: comparison with previous work, on the high-quality set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.setup.curves import (
    COSTS,
    RATIO,
    Curves,
    as_stale,
    cost_ratios,
    points_of,
    staleness_at,
    stalenesses,
)
from scripts.experiments.longevity.setup.policies import (
    CGM,
    CGM_LIKELIHOOD,
    FITTING,
    OFFLINE,
    UNIFORM,
    WARMED,
    settings_at,
    staler,
    sweeps,
)
from scripts.experiments.longevity.setup.runs import ID, STEADY
from scripts.present.verdicts import Claim, Range
from scripts.study.settings import Measurement

TITLE = "Comparison with the policy for holistic staleness, high-quality set"
CLAIM = (
    "After the same warm-up, curve fitting leaves copies less stale than Cho and Garcia-Molina's "
    "policy (CGM) at equal cost, and needs half its cost for the same moderate staleness."
)
METRIC = "staleness"
REFERENCE = CGM
FURTHER_REFERENCES = (UNIFORM,)
REPETITIONS, QUICK_REPETITIONS = 10, 2

SET = "quality"
AT = settings_at(SET)
MODERATE = tuple(as_stale(SET, CGM, cost) for cost in COSTS[1:])
CANDIDATES = {UNIFORM: OFFLINE[UNIFORM], **WARMED}
LABELS = tuple(CANDIDATES)
SECTION = "section 5.3, figure 11"
LOW, MODERATE_COST = COSTS[0], COSTS[2]
GROWTH = f"lead over CGM at {MODERATE_COST:g} less that at {LOW:g}"

CLAIMS = (
    Claim(
        "Curve fitting outperforms CGM in fragment staleness per refresh cost.",
        SECTION,
        (staler(CGM, FITTING, AT, SECTION), staler(CGM_LIKELIHOOD, FITTING, AT, SECTION)),
        "Rates of CGM by its authors' improved estimator for even intervals, and by maximum "
        "likelihood. The latter is infinite for pages that changed before every crawl: CGM then "
        "never crawls those again. Both policies have the warm-up: for 30 days a page is refreshed "
        "at most 2 n days after its n-th copy.",
    ),
    Claim(
        "The difference is small at low cost and substantial at moderate cost and beyond.",
        SECTION,
        (Range(FITTING, 0.0, math.inf, (SET,), SECTION, metric=GROWTH),),
        "Here it is as large at low costs, and vanishes at 0.4.",
    ),
    Claim(
        "Curve fitting reaches the same moderate staleness at half the refresh cost.",
        SECTION,
        (Range(FITTING, 0.4, 0.6, MODERATE, "0.2 instead of 0.4; range ours", RATIO),),
        "CGM costs 0.1, 0.2 or 0.4 there. Seeds on which curve fitting never gets as fresh are "
        "excluded. A page with no change at all five crawls of the warm-up is never refreshed "
        "again by either policy, so neither gets as fresh as uniform refreshing at the highest "
        "cost.",
    ),
    Claim(
        "Staleness lies between 0.03, as 3% of the content changes too fast even for a refresh "
        "every two days, and 0.1, as 90% of the content is static.",
        SECTION,
        (
            Range(CGM, 0.03, 0.1, AT, SECTION),
            Range(FITTING, 0.03, 0.1, AT, SECTION),
        ),
    ),
)
EXPECTED = ()


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return all thresholds of all policies."""
    return [sweeps(CANDIDATES, SET, quick)]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return stalenesses at equal cost, growth of the lead, and costs at the staleness of CGM."""
    curves = points_of(rows, STEADY)
    return [
        *stalenesses(curves),
        *growth(curves),
        *cost_ratios(curves, CGM, COSTS),
    ]


def growth(curves: Curves) -> Iterator[Row]:
    """Yield curve fitting's lead over CGM at the moderate cost minus that at the low one."""
    for seed, ours in curves.get(SET, {}).get(FITTING, {}).items():
        theirs = curves[SET].get(CGM, {}).get(seed)
        if theirs is not None:
            low, moderate = (
                staleness_at(theirs, cost) - staleness_at(ours, cost)
                for cost in (LOW, MODERATE_COST)
            )
            if low == low:
                yield Row(ID, SET, FITTING, seed, GROWTH, moderate - low)


def _picture(rows: Sequence[Row], path: Path) -> None:
    """Draw the figure."""
    from scripts.experiments.longevity.setup.charts import curves_by_cost

    curves_by_cost(
        points_of(rows, STEADY),
        path,
        title=f"{TITLE}\nafter the warm-up, days 32 to 62",
        labels=LABELS,
        black=(UNIFORM,),
    )


def _ratios(rows: Sequence[Row], path: Path) -> None:
    """Draw the cost of other policies at the staleness of CGM."""
    from scripts.experiments.longevity.setup.charts import ratios

    labels = (FITTING, UNIFORM)
    ratios(rows, path, title="Refresh cost to be as stale as CGM", labels=labels)


PICTURES = {"staleness": _picture, "ratios": _ratios}
