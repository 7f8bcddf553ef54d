"""Figure 10: online policies with less memory, on the high-quality set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.setup.curves import COSTS, points_of, stalenesses
from scripts.experiments.longevity.setup.policies import (
    BOUNDS,
    FITTING,
    MEMORIES,
    OFFLINE,
    UNIFORM,
    remembering,
    settings_at,
    sweeps,
    within,
)
from scripts.experiments.longevity.setup.runs import STEADY
from scripts.present.verdicts import Claim
from scripts.study.settings import Measurement

TITLE = "Online policies with less memory"
CLAIM = "Shorter histories and summaries of few hashes do not make the online policies much worse."
METRIC = "staleness"
REFERENCE = UNIFORM
REPETITIONS, QUICK_REPETITIONS = 5, 2

SET = "quality"
AT = settings_at(SET, COSTS[1:])
"""Costs from 0.1 on: some policies have no threshold with a cost as low as 0.05."""
SECTION = "section 5.2, figure 10"
MARGIN = 0.005
"""Margin of staleness for "little degradation", a tenth of the possible gain; the paper gives
none."""
VARIANTS = {
    kind: {memory: f"{kind}, {memory}" for memory in MEMORIES} for kind in (FITTING, BOUNDS)
}
CANDIDATES = {UNIFORM: OFFLINE[UNIFORM]} | {
    label: remembering(kind, memory)
    for kind, labels in VARIANTS.items()
    for memory, label in labels.items()
}

CLAIMS = (
    Claim(
        "There is little degradation in performance due to truncating history and using compact "
        "summaries of fragments to estimate divergence.",
        SECTION,
        tuple(
            test
            for labels in VARIANTS.values()
            for label in list(labels.values())[1:]
            for test in within(next(iter(labels.values())), label, AT, SECTION, MARGIN)
        ),
        "m: hashes of a summary; h: profiles of a page.",
    ),
)
EXPECTED = ()


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return all thresholds of all policies."""
    return [sweeps(CANDIDATES, SET, quick)]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return stalenesses at equal cost."""
    return list(stalenesses(points_of(rows, STEADY)))


def _picture(rows: Sequence[Row], path: Path) -> None:
    """Draw the loss against the full memory at equal cost, a panel per policy."""
    import pandas as pd

    from scripts.present import charts
    from scripts.study.means import means, paired, table

    values, parts = table(rows, METRIC), []
    values = values[values.setting.isin(AT)]
    for kind, labels in VARIANTS.items():
        full, *others = labels.items()
        lost = means(paired(values, values[values.policy == full[1]]))
        for memory, label in others:
            part = lost[lost.policy == label].assign(label=memory)
            parts.append(part.assign(panel=f"{kind}: staleness less that of {full[0]}"))
    charts.dots(
        pd.concat(parts).rename(columns={"setting": "y", "mean": "x"}),
        path,
        charts.Frame(
            f"{TITLE}: {SET} set, days 32 to 62\nat equal refresh cost; bars: 95% intervals; "
            f"dotted: little degradation, {MARGIN:g} (ours)",
            charts.Axis("difference in staleness"),
            upright=[charts.Rule(0.0, dash="-"), charts.Rule(MARGIN, dash=":")],
        ),
    )


PICTURES = {"staleness": _picture}
