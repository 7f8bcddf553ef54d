"""Olston and Pandey, section 5.2: bytes of state per page, and staleness with fewer bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from scripts.experiments.longevity.measures import plays
from scripts.experiments.longevity.measures.entrants import BOUNDS, FITTING, MEMORIES, remembering
from scripts.present import charts
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range
from scripts.study.means import means, table
from scripts.study.specs import spec

TITLE = "Bytes per page of the online policies"

SET = "quality"
THRESHOLDS = {FITTING: 0.15, BOUNDS: 2.0}
"""Thresholds with costs of 0.19 and 0.15 in the second 30 days, with full memory."""
KINDS = {f"{kind}, {memory}": (kind, memory) for kind in THRESHOLDS for memory in MEMORIES}
LEAN = tuple(f"{kind}, {list(MEMORIES)[-1]}" for kind in THRESHOLDS)
SECTION = "section 5.2"
PAGES_OF_WEB = 1e10
TERABYTES = "terabytes of 10 billion pages"


@spec("longevity-bytes-per-page")
def size(seed: int, *, kind: str, memory: str, instance: str, num_pages: int) -> dict[str, float]:
    """Return the bytes of state per page after an episode, and late cost and staleness."""
    entrant = remembering(kind, memory)
    env = plays.ticking(instance, num_pages, **entrant.shown)
    records, policy = plays.ledgers(env, partial(entrant.make, knob=THRESHOLDS[kind]), seed)
    footprint = policy.footprint()
    profiles = policy.profiles.arrays
    used = ~np.isnan(profiles.base)
    observations = profiles.filled[used]
    late = plays.between(records, *plays.STRETCHES[plays.STEADY], num_pages)
    return {
        "counted": footprint.counted,
        "stored": footprint.stored,
        "hashes": 4.0 * profiles.size[used].sum() / num_pages,
        "observations": 8.0 * observations.sum() / num_pages,
        "observations of a profile": float(observations.mean()),
        TERABYTES: footprint.counted * PAGES_OF_WEB / 1e12,
        "staleness": late["staleness"],
        "cost": late["cost"],
    }


def _table(rows: Sequence[Row], path: Path) -> None:
    """Draw the bytes of state per page as bars, by policy and memory."""
    data = means(table(rows, "hashes", "observations", "stored", "staleness"), ("policy", "metric"))
    mean = data.pivot(index="policy", columns="metric", values="mean")
    half = data.pivot(index="policy", columns="metric", values="half")
    stale = mean.staleness.map("{:.4f}".format) + half.staleness.map(" ± {:.4f}".format)
    counted = pd.DataFrame({"x": mean.hashes + mean.observations})
    parts = mean.hashes.map("{:,.0f}".format) + " + " + mean.observations.map("{:,.0f}".format)
    counted["text"] = counted.x.map("{:,.0f} = ".format) + parts
    stored = pd.DataFrame({"x": mean.stored, "text": mean.stored.map("{:,.0f}".format)})
    names = mean.index + "\nstaleness " + stale
    panels = {
        "as the paper counts them: hashes + observations": counted,
        "in this suite's arrays": stored,
    }
    charts.bars(
        pd.concat(part.assign(y=names, panel=name) for name, part in panels.items()),
        path,
        charts.Frame(
            f"{TITLE}: {SET} set, {len({row.seed for row in rows})} seeds; "
            "staleness of days 32 to 62, with 95% intervals",
            charts.Axis("bytes per page (logarithmic scale)", "log", limits=(8.0, 3e5)),
            shared="all",
        ),
        names=[dict(zip(mean.index, names, strict=True))[label] for label in KINDS],
    )


EXPERIMENT = Experiment(
    name="longevity-table52",
    title=TITLE,
    claim="With 8 hashes and one profile, 64 to 128 bytes per page suffice.",
    metric="counted",
    repetitions=10,
    settings=measure_settings(
        {SET: {"instance": SET, "num_pages": plays.PAGES}},
        {label: partial(size, kind=kind, memory=memory) for label, (kind, memory) in KINDS.items()},
        plays.ID,
        quick={"num_pages": plays.QUICK_PAGES},
    ),
    claims=(
        Claim(
            "8 hashes of one base version take 32 bytes.",
            SECTION,
            tuple(Range(label, 31.0, 32.0, (SET,), SECTION, "hashes") for label in LEAN),
            "Every page here has at least 20 fragments.",
        ),
        Claim(
            "With profiles of 4 to 12 observations of 8 bytes it is 64 to 128 bytes per page.",
            SECTION,
            tuple(Range(label, 64.0, 128.0, (SET,), SECTION) for label in LEAN),
            "The mean over pages after 60 days: a new profile has fewer than 4 observations. At 12 "
            "observations a profile is full and is started again.",
        ),
        Claim(
            "For 10 billion pages the state is at most a little over a terabyte.",
            SECTION,
            tuple(Range(label, 0.0, 1.28, (SET,), SECTION, TERABYTES) for label in LEAN),
            "As counted. `stored` is the size of this suite's arrays per page: they have capacity "
            "for all full profiles, with 8 bytes per number.",
        ),
    ),
    pictures={"bytes": _table},
)
