"""Figure 11: comparison with previous work, on the high-quality set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crawl_envs.evaluation import Row
from scripts.comparing.longevity_curves import (
    COSTS,
    RATIO,
    as_stale,
    cost_ratios,
    points_of,
    stalenesses,
)
from scripts.comparing.longevity_experiments import gaps, settings_at, staler, sweeps
from scripts.comparing.longevity_policies import (
    CGM,
    CGM_LIKELIHOOD,
    FITTING,
    OFFLINE,
    ONLINE,
    OURS,
    UNIFORM,
    WARMED,
)
from scripts.comparing.longevity_runs import STEADY
from scripts.comparing.settings import Measurement
from scripts.comparing.verdicts import Claim, Range, Trend

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
CONTESTANTS = {UNIFORM: OFFLINE[UNIFORM], **WARMED, OURS: ONLINE[OURS]}
LABELS = tuple(CONTESTANTS)
SECTION = "section 5.3, figure 11"
GAP = "less stale than CGM"

CLAIMS = (
    Claim(
        "Curve fitting outperforms CGM in fragment staleness per refresh cost.",
        SECTION,
        (staler(CGM, FITTING, AT, SECTION), staler(CGM_LIKELIHOOD, FITTING, AT, SECTION)),
        "Rates of CGM by its authors' improved estimator for even intervals, and by the maximum of "
        "the likelihood, which is infinite for pages that were always found changed: CGM then "
        "never crawls those again. Both policies have the warm-up: for 30 days a page is refreshed "
        "at most 2 n days after its n-th copy.",
    ),
    Claim(
        "The difference is small at low cost and substantial at moderate cost and beyond.",
        SECTION,
        (Trend("at 0.2", "above", "at 0.05", (SET,), SECTION, metric=GAP),),
        "Here it is as large at low costs, and goes to nothing at 0.4.",
    ),
    Claim(
        "Curve fitting reaches the same moderate staleness at half the refresh cost.",
        SECTION,
        (Range(FITTING, 0.4, 0.6, MODERATE, "0.2 instead of 0.4; range ours", RATIO),),
        "CGM costs 0.1, 0.2 or 0.4 there. Seeds on which curve fitting never gets as fresh are "
        "left "
        "out. After the warm-up both never refresh a page again that it found unchanged five "
        "times, "
        "which keeps either from the staleness that uniform refreshing reaches at the highest "
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
EXPECTED = (staler(CGM, OURS, AT, "ours"), staler(FITTING, OURS, AT, "ours"))


def measurements(quick: bool) -> Sequence[Measurement]:
    """All thresholds of all policies."""
    return [sweeps(CONTESTANTS, SET, quick)]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Stalenesses at equal cost, their gaps, and costs at the staleness of CGM."""
    curves = points_of(rows, STEADY)
    return [
        *stalenesses(curves),
        *gaps(curves, CGM, FITTING, GAP),
        *cost_ratios(curves, CGM, COSTS),
    ]


def _picture(rows: Sequence[Row], path: Path) -> None:
    """Draw the figure."""
    from scripts.comparing.longevity_charts import curves_by_cost

    curves_by_cost(
        {"": points_of(rows, STEADY)},
        path,
        title=f"{TITLE}\nafter the warm-up, days 32 to 62; ours has a warm-up of its own",
        labels=LABELS,
        black=(UNIFORM,),
    )


def _ratios(rows: Sequence[Row], path: Path) -> None:
    """Draw what others cost to be as stale as CGM."""
    from scripts.comparing.longevity_charts import ratios

    labels = (FITTING, OURS, UNIFORM)
    ratios(rows, path, title="Refresh cost to be as stale as CGM", labels=labels)


PICTURES = {"staleness": _picture, "ratios": _ratios}
