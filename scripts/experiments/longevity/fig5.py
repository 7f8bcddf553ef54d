"""Olston and Pandey, figure 5: actual and modelled lifetimes, by how pages scroll."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types.contents import Regions
from scripts.experiments import figures
from scripts.experiments.figures import Series
from scripts.experiments.longevity.measures import pictures, sites
from scripts.experiments.longevity.measures.lifetimes import (
    GROUPS,
    MAX_LIFETIME,
    SCROLL,
    measured,
    pooled,
)
from scripts.experiments.longevity.measures.snapshots import (
    INTERVAL,
    SNAPSHOTS,
    Runs,
    runs_of,
    snapshot_times,
)
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Range
from scripts.study.settings import Measurement, spec

TITLE = "Lifetimes by estimated K, actual and modelled"
METRIC = "distance"
"""Largest difference of the actual and the modelled distribution, over lifetimes in snapshots."""
LATE, SHORT = "late", "short"
"""Actual minus modelled share of lifetimes of 15 to 28 snapshots; share of fragments of K = 1."""
CUT_OFF = "late_by_the_end_of_the_record"
"""LATE minus LATE with ten times as many snapshots."""
MIN_PAGES = 5
"""Smallest number of pages in a group of a site that is drawn."""
ACTUAL, MODEL = "actual", "model"
ALL = "all pages"
BORN, PRESENT = "churn_by_lifetimes", "churn_of_present_fragments"
"""Shares of the fragments that are not static: K = 1 among counted lifetimes, and churn regions
among fragments present at a time."""
MAX_LONG_RUNS = 10
"""Number of runs of the long record."""
PAGES, QUICK_PAGES = 10_000, 1_000
LONG = 10
QUALITY, LONGER, RANDOM = "quality", "quality, 300 snapshots", "random"
SETS: Mapping[str, tuple[str, int]] = {
    QUALITY: ("quality", SNAPSHOTS),
    LONGER: ("quality", LONG * SNAPSHOTS),
    RANDOM: ("random", SNAPSHOTS),
}

SECTION = "section 3.3, Figure 5"
CLAIMS = (
    Claim(
        "The actual lifetime curves closely match the modelled ones.",
        SECTION,
        tuple(Range(group, 0.0, 0.1, (QUALITY, LONGER), SECTION) for group in GROUPS),
        note="Largest difference, margin ours. The pages are drawn from the paper's model, so this "
        "tests its way to measure K, on pages of several regions. Some 55 pages have K = 2 or more "
        "in a run of 30 snapshots; their distance is partly chance. Also, several updates between "
        "two snapshots count as one (`distance_as_seen` is to a model that does the same). Whether "
        "the model is right is a question for recorded pages.",
    ),
    Claim(
        "The curve of K > 2 ends above the model, since the data is biased against long lifetimes "
        "by the short record.",
        SECTION,
        (
            Range(SCROLL, 0.0, np.inf, (QUALITY,), SECTION, metric=LATE),
            Range(SCROLL, 0.0, np.inf, (QUALITY,), SECTION, metric=CUT_OFF),
        ),
        note="Tested by a record of the same pages that is ten times as long.",
    ),
    Claim(
        "None of the curves is flat at the beginning: in each group there is some content of "
        "K = 1.",
        SECTION,
        tuple(Range(group, 0.01, 1.0, (QUALITY,), SECTION, metric=SHORT) for group in GROUPS),
        note="At least one fragment in a hundred; margin ours.",
    ),
    Claim(
        "Churn accounts for 67% of the fragments that are not static.",
        "section 3.4",
        (Range(ALL, 0.64, 0.7, (QUALITY,), "section 3.4", metric=PRESENT),),
        note="Among fragments present at a time. Counted by estimated K of fragments that appear "
        "and disappear within the record, as the paper seems to do, the same pages have far more "
        f"churn, which makes more fragments in the same time (`{BORN}`).",
        fitted=True,
    ),
)


def measures_of(parts: Sequence[Runs], group: str) -> dict[str, float]:
    """Measure lifetimes in snapshots of a group of pages, or the share of K = 1 in all pages."""
    sample, frequency, dominant = pooled(parts)
    if group != ALL:
        return measured(sample, frequency, dominant, group)
    share = sample.size[sample.items == 1].sum() / max(sample.size.sum(), 1)
    return {BORN: float(share) if sample.size.size else np.nan, "pages": float(frequency.size)}


@lru_cache(maxsize=1)
def _drawn(name: str, num_pages: int, snapshots: int, seed: int) -> tuple[Regions, Runs]:
    """Draw regions and snapshots of a set; cached, since all labels of a seed share the pages."""
    instance, contents = sites.drawn_set(name, num_pages, snapshots * INTERVAL, seed)
    return instance.regions, runs_of(contents, snapshot_times(snapshots))


@spec("longevity-lifetimes-drawn")
def drawn(seed: int, *, label: str, name: str, num_pages: int, snapshots: int) -> dict[str, float]:
    """Measure a group of pages of a simulated set."""
    regions, runs = _drawn(name, num_pages, snapshots, seed)
    result = measures_of([runs], label)
    if label == ALL:
        moving = (regions.items * regions.size * (regions.rate > 0.0)).sum()
        churn = (regions.size * (regions.rate > 0.0) * (regions.items == 1)).sum()
        result[PRESENT] = float(churn / moving)
    return result


@spec("longevity-lifetimes-recorded")
def recorded(seed: int, *, label: str, site: str) -> dict[str, float]:
    """Measure a group of a site's pages, over all windows of 60 days in which a page lasts."""
    windows = sites.windows(site, SNAPSHOTS * INTERVAL)
    parts = [runs_of(sites.lasting(site, window), snapshot_times()) for window in windows]
    return measures_of(parts, label)


def measurements(quick: bool) -> list[Measurement]:
    """Return the measurements of the simulated sets and of every available site."""
    model, record = (
        {label: partial(fn, label=label) for label in (*GROUPS, ALL)} for fn in (drawn, recorded)
    )
    settings = []
    for setting, (name, snapshots) in SETS.items():
        size = {"name": name, "num_pages": QUICK_PAGES if quick else PAGES, "snapshots": snapshots}
        limit = MAX_LONG_RUNS if snapshots > SNAPSHOTS else None
        settings.append(Measurement(setting, model, size, most=limit))
    return settings + [
        Measurement(site, record, {"site": site}, most=1) for site in sites.available(shipped=quick)
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of CUT_OFF, the part of LATE that the short length of the record explains."""
    late = {row[1:4]: row for row in rows if row.metric == LATE}
    return [
        row._replace(metric=CUT_OFF, value=row.value - late[LONGER, group, seed].value)
        for (setting, group, seed), row in late.items()
        if setting == QUALITY and (LONGER, group, seed) in late
    ]


def draw_sites(rows: Sequence[Row], path: Path) -> None:
    """Draw how far lifetimes are from the model, for each set and site with MIN_PAGES pages."""
    enough = {row[1:3] for row in rows if row.metric == "pages" and row.value >= MIN_PAGES}
    figures.dots(
        [Series(METRIC)],
        charts.Frame(
            "How far lifetimes are from the modelled ones",
            charts.Axis(
                "largest difference of the distributions (0: the same); bars: 95% intervals"
            ),
        ),
        y="{setting}",
        labels=GROUPS,
    )([row for row in rows if row[1:3] in enough], path)


TITLES = {QUALITY: "quality, 30 snapshots", LONGER: LONGER}

EXPERIMENT = Experiment(
    name="longevity-fig5",
    title=TITLE,
    claim=(
        "On pages that change equally often, lifetimes agree with the generative model with "
        "the number of page updates that fragments survive. The end of the record cuts off the "
        "longest lifetimes."
    ),
    metric=METRIC,
    repetitions=20,
    settings=measurements,
    derive=derive,
    claims=CLAIMS,
    pictures={
        "lifetimes": partial(
            pictures.distributions,
            title=f"{TITLE}\npages of which .20 to .30 of snapshots differ from the one before",
            settings={**TITLES, **{site: site for site in sites.available(shipped=True)}},
            labels=GROUPS,
            curves=(ACTUAL, MODEL),
            grid=np.arange(MAX_LIFETIME + 1.0),
            unit="lifetime (snapshots, every two days)",
        ),
        "distances": draw_sites,
    },
)
