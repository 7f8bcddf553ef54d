"""Olston and Pandey, figure 12: comparison with previous work, on the random set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from crawl_envs.evaluation import Row
from scripts.experiments.longevity import fig11
from scripts.experiments.longevity.measures import curves, plays
from scripts.experiments.longevity.measures.entrants import (
    CGM,
    CGM_LIKELIHOOD,
    FITTING,
    OFFLINE,
    UNIFORM,
)
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.settings import Measurement

TITLE = "Comparison with the policy for holistic staleness, random set"

SET, BASE_SET = "random", fig11.SET
ALL = curves.at_costs(SET)
SECTION = "section 5.3, figure 12"
STALENESS_GAP = "least staleness less that of quality"
MARGIN = 0.03


def measurements(quick: bool) -> list[Measurement]:
    """Return measurements of all policies by threshold, and of uniform on the high-quality set."""
    uniform = {UNIFORM: replace(OFFLINE[UNIFORM], knobs=OFFLINE[UNIFORM].knobs[:1])}
    return [
        *plays.sweeps(quick, entrants=fig11.ENTRANTS, instance=SET),
        *plays.sweeps(quick, entrants=uniform, instance=BASE_SET),
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of staleness at equal cost, costs at CGM's staleness, and uniform's least gap."""
    lowest: dict[str, dict[int, float]] = {SET: {}, BASE_SET: {}}
    for (setting, label, seed), points in curves.points_of(rows, plays.STEADY).items():
        if label == UNIFORM:
            lowest[setting][seed] = float(curves.frontier(points).staleness[-1])
    return [
        *curves.compared(rows, stretch=plays.STEADY, reference=CGM, settings=(SET,)),
        *(
            Row(plays.ID, SET, UNIFORM, seed, STALENESS_GAP, value - lowest[BASE_SET][seed])
            for seed, value in lowest[SET].items()
            if seed in lowest[BASE_SET]
        ),
    ]


EXPERIMENT = Experiment(
    name="longevity-fig12",
    title=TITLE,
    claim=(
        "On random pages too, curve fitting leaves copies less stale than CGM at equal cost; no "
        "policy gets as fresh there as on high-quality pages."
    ),
    metric="staleness",
    references=(CGM, UNIFORM),
    repetitions=10,
    settings=measurements,
    derive=derive,
    claims=(
        Claim(
            "Curve fitting outperforms CGM in fragment staleness per refresh cost on this set too.",
            SECTION,
            tuple(Trend(one, "above", FITTING, ALL, SECTION) for one in (CGM, CGM_LIKELIHOOD)),
            "The set has more moving content, as the paper says; the amount is our choice.",
        ),
        Claim(
            "The least staleness that can be had is much higher than on the high-quality set.",
            SECTION,
            (Range(UNIFORM, MARGIN, math.inf, (SET,), "margin ours", STALENESS_GAP),),
            "With every page that is not static refreshed at every tick; higher by 0.03 is much. "
            "The set was given more moving content, as the paper says of it.",
            fitted=True,
        ),
    ),
    pictures={
        "staleness": partial(
            fig11.drawn, title=f"{TITLE}\nafter the warm-up, days 32 to 62", settings=(SET,)
        ),
        "ratios": fig11.EXPERIMENT.pictures["ratios"],
    },
)
