"""Olston and Pandey, figure 10: online policies with less memory, on the high-quality set."""

from __future__ import annotations

from functools import partial

from scripts.experiments.figures import Axis, Frame, Rule, Series, dots
from scripts.experiments.longevity.measures import curves, plays
from scripts.experiments.longevity.measures.entrants import (
    BOUNDS,
    FITTING,
    MEMORIES,
    OFFLINE,
    UNIFORM,
    remembering,
)
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Trend

TITLE = "Online policies with less memory"

SET = "quality"
ALL = curves.at_costs(SET, curves.COSTS[1:])
"""Costs from 0.1 on: some policies have no threshold with a cost as low as 0.05."""
SECTION = "section 5.2, figure 10"
MARGIN = 0.005
"""Margin of staleness for "little degradation", a tenth of the possible gain; ours."""
VARIANTS = {
    kind: {memory: f"{kind}, {memory}" for memory in MEMORIES} for kind in (FITTING, BOUNDS)
}
ENTRANTS = {UNIFORM: OFFLINE[UNIFORM]} | {
    label: remembering(kind, memory)
    for kind, labels in VARIANTS.items()
    for memory, label in labels.items()
}


EXPERIMENT = Experiment(
    name="longevity-fig10",
    title=TITLE,
    claim=(
        "Shorter histories and summaries of few hashes do not make the online policies much worse."
    ),
    metric="staleness",
    references=(UNIFORM,),
    repetitions=5,
    settings=partial(plays.sweeps, entrants=ENTRANTS, instance=SET),
    derive=partial(curves.compared, stretch=plays.STEADY),
    claims=(
        Claim(
            "There is little degradation in performance due to truncating history and using "
            "compact summaries of fragments to estimate divergence.",
            SECTION,
            tuple(
                Trend(full, "about", label, ALL, SECTION, MARGIN)
                for full, *reduced in map(dict.values, VARIANTS.values())
                for label in reduced
            ),
            "m: hashes of a summary; h: profiles of a page.",
        ),
    ),
    pictures={
        "staleness": dots(
            [
                Series(
                    "staleness",
                    f"{kind}: staleness less that of {next(iter(labels))}",
                    labels={label: memory for memory, label in labels.items()},
                    settings=ALL,
                    minus=next(iter(labels.values())),
                )
                for kind, labels in VARIANTS.items()
            ],
            Frame(
                f"{TITLE}: {SET} set, days 32 to 62\nat equal refresh cost; bars: 95% intervals; "
                f"dotted: little degradation, {MARGIN:g} (ours)",
                Axis("difference in staleness"),
                upright=[Rule(0.0, dash="-"), Rule(MARGIN, dash=":")],
            ),
            y="{setting}",
        )
    },
)
