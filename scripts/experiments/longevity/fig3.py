"""Figure 3: how often pages change against how long their content lasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types.contents import Contents
from scripts.experiments.longevity.setup.fragment_records import lasting, sites, windows
from scripts.experiments.longevity.setup.fragment_snapshots import (
    INTERVAL,
    SNAPSHOTS,
    change_frequency,
    correlation,
    drawn_set,
    longevity,
    runs_of,
    snapshot_times,
)
from scripts.present.verdicts import Claim, Level, Range
from scripts.study.rows import indexed
from scripts.study.settings import Measurement

TITLE = "Change frequency and longevity of pages"
CLAIM = (
    "How long the content of a page lasts is not strongly correlated with how often it changes: "
    "of pages that change equally often, some replace everything and some keep most."
)
METRIC = "correlation"
"""Pearson's coefficient over pages, both measured as in section 3.2."""
STATIC, COUNTED = "unchanged_share", "counted_share"
"""Share of pages with equal snapshots; share of pages with known longevity."""
FREQUENCY, LONGEVITY = "frequency", "longevity"
"""Indexed metrics of seed 0, by page; longevity in days, snapshots times INTERVAL."""
SNAPSHOT = "snapshots"
REPETITIONS, QUICK_REPETITIONS = 20, 2
MOST_DRAWN = 10
SETS = ("quality", "random")
PAGES, QUICK_PAGES = 10_000, 500
LEAST_PAGES = 10
"""Pages of known longevity that a window of a record needs to have a correlation."""
PAPER = -0.67

SECTION = "section 3.2, Figure 3"
CLAIMS = (
    Claim(
        "Longevity is not strongly correlated with change frequency: the coefficient is .67.",
        SECTION,
        (Level("quality", SNAPSHOT, PAPER, 0.03, SECTION),),
        note="The paper's text lost the sign, and others. A lifetime is K updates, on average K "
        "over the rate, so a negative sign is expected. The constants of `quality` were chosen to "
        "give about this coefficient, so agreement is by construction. Margin ours. On recorded "
        "pages, which involve no such choice, the two are less correlated, or not at all.",
    ),
    Claim(
        "Points are substantially spread out.",
        SECTION,
        (Range(SNAPSHOT, -0.9, 0.9, SETS, SECTION),),
        note="A coefficient of .9 or more, of either sign, would be strong; margin ours.",
    ),
    Claim(
        "Roughly half of the pages are completely static.",
        "section 3.4",
        (Range(SNAPSHOT, 0.45, 0.55, ("quality",), "section 3.4", metric=STATIC),),
        note="Half by construction; the slowest of the others do not change in 58 days. "
        "Margin ours.",
    ),
)
EXPECTED = (
    Range(SNAPSHOT, 0.2, 0.45, ("random",), "more content moves than in quality", metric=STATIC),
)


def measured(contents: Contents, points: bool, least: int) -> dict[str, float]:
    """Measure contents by 30 snapshots; with ``points``, return the points of the figure too."""
    runs = runs_of(contents, snapshot_times(SNAPSHOTS, INTERVAL))
    frequency, lived = change_frequency(runs), longevity(runs)
    known = ~np.isnan(lived)
    result = {
        METRIC: correlation(frequency, lived) if known.sum() >= least else np.nan,
        STATIC: float(np.mean(frequency == 0.0)),
        COUNTED: float(known.mean()),
    }
    if points:
        result |= indexed(FREQUENCY, frequency[known]) | indexed(LONGEVITY, INTERVAL * lived[known])
    return result


def drawn(seed: int, *, name: str, num_pages: int) -> Mapping[str, float]:
    """Measure a drawn set."""
    _, contents = drawn_set(name, num_pages, SNAPSHOTS * INTERVAL, seed)
    return measured(contents, seed == 0, LEAST_PAGES)


def recorded(seed: int, *, site: str) -> Mapping[str, float]:
    """Measure the pages of a site that exist throughout a window of 60 days."""
    contents = lasting(site, windows(site, SNAPSHOTS * INTERVAL)[seed])
    return measured(contents, True, LEAST_PAGES)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return both sets, and every available site, a window of 60 days for each seed."""
    return [
        *(
            Measurement(
                name,
                {SNAPSHOT: partial(drawn, name=name)},
                {"num_pages": QUICK_PAGES if quick else PAGES},
                most=MOST_DRAWN,
            )
            for name in SETS
        ),
        *(
            Measurement(
                site,
                {SNAPSHOT: recorded},
                {"site": site},
                most=len(windows(site, SNAPSHOTS * INTERVAL)),
            )
            for site in sites(shipped=quick)
        ),
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw a dot per page, a panel per set and per shipped site."""
    from scripts.experiments.longevity.setup.fragment_charts import frequency_and_longevity

    frequency_and_longevity(
        rows,
        path,
        title=TITLE,
        axes=(FREQUENCY, LONGEVITY),
        metric=METRIC,
        settings=(*SETS, *sites(shipped=True)),
    )


def draw_sites(rows: Sequence[Row], path: Path) -> None:
    """Draw the correlations of all sites and sets."""
    from scripts.experiments.longevity.setup.fragment_charts import means_of_settings

    means_of_settings(
        rows,
        path,
        title=f"{TITLE}:\ncorrelation over pages, 30 snapshots in 60 days",
        metric=METRIC,
        label="correlation coefficient (bar: 95% interval over draws or stretches, cut at 1)",
        line=(PAPER, "the paper's, with its sign"),
        limits=(-1.05, 1.05),
    )


PICTURES = {"pages": draw, "correlations": draw_sites}
