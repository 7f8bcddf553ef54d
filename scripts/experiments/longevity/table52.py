"""Section 5.2: bytes of state per page, and the staleness with less of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from crawl_envs.evaluation import Row, mean_and_half_width
from scripts.experiments.longevity.setup.policies import (
    BOUNDS,
    FITTING,
    MEMORIES,
    make_policy,
    remembering,
)
from scripts.experiments.longevity.setup.runs import (
    ID,
    PAGES,
    QUICK_PAGES,
    TICKS,
    between,
    ledgers,
    ticking,
)
from scripts.reporting.settings import Measurement
from scripts.reporting.verdicts import Claim, Range

TITLE = "Bytes per page of the online policies"
CLAIM = "With 8 hashes and one profile, 64 to 128 bytes per page suffice."
METRIC = "counted"
REPETITIONS, QUICK_REPETITIONS = 10, 2

SET = "quality"
THRESHOLDS = {FITTING: 0.15, BOUNDS: 2.0}
"""Thresholds with costs of 0.19 and 0.15 in the second 30 days, with full memory."""
LEAN = list(MEMORIES)[-1]
SECTION = "section 5.2"
PAGES_OF_WEB = 1e10
TERABYTES = "terabytes of 10 billion pages"

CLAIMS = (
    Claim(
        "8 hashes of one base version take 32 bytes.",
        SECTION,
        (
            Range(f"{FITTING}, {LEAN}", 31.0, 32.0, (SET,), SECTION, "hashes"),
            Range(f"{BOUNDS}, {LEAN}", 31.0, 32.0, (SET,), SECTION, "hashes"),
        ),
        "Every page here has at least 20 fragments.",
    ),
    Claim(
        "With profiles of 4 to 12 observations of 8 bytes it is 64 to 128 bytes per page.",
        SECTION,
        (
            Range(f"{FITTING}, {LEAN}", 64.0, 128.0, (SET,), SECTION),
            Range(f"{BOUNDS}, {LEAN}", 64.0, 128.0, (SET,), SECTION),
        ),
        "The mean over pages after 60 days: a new profile has fewer than 4 observations. At 12 "
        "observations a profile is full and is started again.",
    ),
    Claim(
        "For 10 billion pages the state is at most a little over a terabyte.",
        SECTION,
        (
            Range(f"{FITTING}, {LEAN}", 0.0, 1.28, (SET,), SECTION, TERABYTES),
            Range(f"{BOUNDS}, {LEAN}", 0.0, 1.28, (SET,), SECTION, TERABYTES),
        ),
        "As counted. `stored` is the size of this suite's arrays per page: they have capacity for "
        "all full profiles, with 8 bytes per number.",
    ),
)
EXPECTED = ()


def kept(
    seed: int, *, kind: str, memory: str, instance: str, num_pages: int
) -> Mapping[str, float]:
    """Return bytes per page at the end of a run, and cost and staleness of its second half."""
    env = ticking(instance, num_pages, reveal="importance", base_versions=0)
    kept_of = remembering(kind, memory)
    make = partial(make_policy, knob=THRESHOLDS[kind], kind=kept_of.kind, given=kept_of.given)
    records, policy = ledgers(env, make, seed)
    footprint = policy.footprint()
    profiles = policy.profiles.kept
    held = ~np.isnan(profiles.base)
    observations = profiles.filled[held]
    late = between(records, TICKS // 2, TICKS, num_pages)
    return {
        "counted": footprint.counted,
        "stored": footprint.stored,
        "hashes": 4.0 * profiles.size[held].sum() / num_pages,
        "observations": 8.0 * observations.sum() / num_pages,
        "observations of a profile": float(observations.mean()),
        TERABYTES: footprint.counted * PAGES_OF_WEB / 1e12,
        "staleness": late["staleness"],
        "cost": late["cost"],
    }


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return both policies with every memory."""
    measures = {
        f"{kind}, {memory}": partial(kept, kind=kind, memory=memory)
        for kind in THRESHOLDS
        for memory in MEMORIES
    }
    size = {"instance": SET, "num_pages": QUICK_PAGES if quick else PAGES}
    return [Measurement(SET, measures, size, ID)]


def _table(rows: Sequence[Row], path: Path) -> None:
    """Draw bytes by policy and memory."""
    from matplotlib.figure import Figure

    from scripts.reporting.charts import COLOURS, bare, save

    labels = [f"{kind}, {memory}" for kind in THRESHOLDS for memory in MEMORIES]
    names = ("hashes", "observations", "stored", "staleness")
    intervals = {
        name: np.nan_to_num(
            [
                mean_and_half_width(
                    [row.value for row in rows if row.policy == label and row.metric == name]
                )
                for label in labels
            ]
        )
        for name in names
    }
    height = np.arange(len(labels))[::-1]
    figure = Figure(figsize=(12.5, 4.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    counted = intervals["hashes"][:, 0] + intervals["observations"][:, 0]
    for axes, values, colour in zip(
        panels, (counted, intervals["stored"][:, 0]), (COLOURS[0], COLOURS[2]), strict=False
    ):
        axes.barh(height, values, color=colour, height=0.6)
        for place, level in enumerate(height):
            text = f"  {values[place]:,.0f}"
            if axes is panels[0]:
                text += " = " + " + ".join(
                    f"{intervals[name][place, 0]:,.0f}" for name in names[:2]
                )
            axes.text(values[place], level, text, va="center", fontsize=8)
        axes.set_xscale("log")
        axes.set_xlim(8.0, 20.0 * values.max())
    panels[2].errorbar(
        intervals["staleness"][:, 0],
        height,
        xerr=intervals["staleness"][:, 1],
        fmt="o",
        color=COLOURS[0],
        capsize=3,
    )
    panels[0].set_xlabel("bytes per page as the paper counts them (log):\nhashes + observations")
    panels[1].set_xlabel("bytes per page in this suite's arrays (log)")
    panels[2].set_xlabel("staleness, days 32 to 62")
    panels[0].set_yticks(height, labels, fontsize=9)
    for axes in panels:
        bare(axes)
    count = len({row.seed for row in rows})
    figure.suptitle(f"{TITLE}: {SET} set, {count} seeds; bars right: 95% intervals", fontsize=11)
    save(figure, path)


PICTURES = {"bytes": _table}
