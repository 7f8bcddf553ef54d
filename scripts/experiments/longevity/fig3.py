"""Olston and Pandey, figure 3: how often pages change, and how long their content lasts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from crawl_envs.types.contents import Contents
from scripts.experiments import figures
from scripts.experiments.figures import Series
from scripts.experiments.longevity.measures import sites
from scripts.experiments.longevity.measures.snapshots import (
    INTERVAL,
    SNAPSHOTS,
    change_frequency,
    longevity,
    runs_of,
    snapshot_times,
)
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Level, Range
from scripts.study.correlations import correlation
from scripts.study.means import entries, means, table
from scripts.study.rows import indexed
from scripts.study.settings import Measurement, spec

TITLE = "Change frequency and longevity of pages"
METRIC = "correlation"
"""Pearson's coefficient over pages of change frequency and longevity, as in section 3.2."""
STATIC, COUNTED = "unchanged_share", "counted_share"
"""Share of pages with equal snapshots; share of pages with known longevity."""
FREQUENCY, LONGEVITY = "frequency", "longevity"
"""Indexed metrics of seed 0, by page; longevity in days, snapshots times INTERVAL."""
SNAPSHOT = "snapshots"
MAX_DRAWN = 10
SETS = ("quality", "random")
PAGES, QUICK_PAGES = 10_000, 500
MIN_PAGES = 10
"""Smallest number of pages of known longevity in a window of a record for a correlation."""
PAPER = -0.67
DAYS = SNAPSHOTS * INTERVAL

SECTION = "section 3.2, Figure 3"
CLAIMS = (
    Claim(
        "Longevity is not strongly correlated with change frequency: the coefficient is .67.",
        SECTION,
        (Level("quality", SNAPSHOT, PAPER, 0.03, SECTION),),
        note="The paper's text lost the sign, and others. A lifetime is K updates, on average K "
        "over the rate, so a negative sign is expected. The constants of `quality` were chosen to "
        "give about this coefficient. Margin ours. On recorded pages, which involve no choice, the "
        "two are less correlated, or not at all.",
        fitted=True,
    ),
    Claim(
        "Points are substantially spread out.",
        SECTION,
        (Range(SNAPSHOT, -0.9, 0.9, SETS, SECTION),),
        note="A coefficient of .9 or more, of either sign, would be strong; margin ours.",
        fitted=True,
    ),
    Claim(
        "Roughly half of the pages are completely static.",
        "section 3.4",
        (Range(SNAPSHOT, 0.45, 0.55, ("quality",), "section 3.4", metric=STATIC),),
        note="The slowest of the others do not change in 58 days. Margin ours.",
        fitted=True,
    ),
)


def measured(contents: Contents, points: bool) -> dict[str, float]:
    """Measure how often pages change and how long their content lasts, by 30 snapshots.

    With ``points``, the result also has each page's point in the figure.
    """
    runs = runs_of(contents, snapshot_times())
    frequency, lived = change_frequency(runs), longevity(runs)
    valid = ~np.isnan(lived)
    result = {
        METRIC: correlation(frequency, lived) if valid.sum() >= MIN_PAGES else np.nan,
        STATIC: float(np.mean(frequency == 0.0)),
        COUNTED: float(valid.mean()),
    }
    if points:
        result |= indexed(FREQUENCY, frequency[valid]) | indexed(LONGEVITY, INTERVAL * lived[valid])
    return result


@spec("longevity-change-frequency-drawn")
def drawn(seed: int, *, name: str, num_pages: int) -> dict[str, float]:
    """Measure change frequency and longevity of the pages of a simulated set."""
    return measured(sites.drawn_set(name, num_pages, DAYS, seed)[1], seed == 0)


@spec("longevity-change-frequency-recorded")
def recorded(seed: int, *, site: str) -> dict[str, float]:
    """Measure change frequency and longevity of pages that last for a site's window of 60 days."""
    return measured(sites.lasting(site, sites.windows(site, DAYS)[seed]), True)


def measurements(quick: bool) -> list[Measurement]:
    """Return measurements of both simulated sets, and of each site, with a window per seed."""
    size = {"num_pages": QUICK_PAGES if quick else PAGES}
    settings = [
        Measurement(name, {SNAPSHOT: partial(drawn, name=name)}, size, most=MAX_DRAWN)
        for name in SETS
    ]
    for site in sites.available(shipped=quick):
        count = len(sites.windows(site, DAYS))
        settings.append(Measurement(site, {SNAPSHOT: recorded}, {"site": site}, most=count))
    return settings


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw a dot per page of seed 0, in a panel per set or shipped site, with mean correlations.

    Frequencies are multiples of 1/29, so jitter separates the dots.
    """
    page = ["setting", "policy", "seed", "index"]
    across, upwards = (entries(rows, name).set_index(page).value for name in (FREQUENCY, LONGEVITY))
    data = pd.DataFrame({"x": across, "y": upwards}).reset_index()
    data = data[(data.seed == 0) & data.setting.isin([*SETS, *sites.available(shipped=True)])]
    about = means(table(rows, METRIC), ("setting",)).set_index("setting")
    titles = {
        name: f"{name}, {count:,} pages: {about['mean'][name]:.3f} ± {about.half[name]:.3f}"
        for name, count in data.setting.value_counts(sort=False).items()
    }
    aside = np.random.default_rng(0).uniform(-0.012, 0.012, len(data))
    charts.scatter(
        data.assign(x=data.x + aside, panel=data.setting.map(titles)),
        path,
        charts.Frame(
            f"{TITLE}, and their correlation over runs\na dot per page of one run, with jitter; "
            "pages without a lifetime from birth to death are excluded",
            charts.Axis("change frequency\n(share of snapshots that differ)", limits=(-0.03, 1.03)),
            charts.Axis("longevity: mean lifetime of fragments (days)", limits=(0.0, None)),
            columns=3,
            size=(3.6, 3.6),
            legend="none",
        ),
        size=8.0,
    )


EXPERIMENT = Experiment(
    name="longevity-fig3",
    title=TITLE,
    claim=(
        "How long the content of a page lasts is not strongly correlated with how often it "
        "changes: of pages that change equally often, some replace everything and some keep most."
    ),
    metric=METRIC,
    repetitions=20,
    settings=measurements,
    claims=CLAIMS,
    expected=(
        Range(
            SNAPSHOT, 0.2, 0.45, ("random",), "more content moves than in quality", metric=STATIC
        ),
    ),
    pictures={
        "pages": draw,
        "correlations": figures.dots(
            [Series(METRIC, label="")],
            charts.Frame(
                f"{TITLE}:\ncorrelation over pages, 30 snapshots in 60 days",
                charts.Axis(
                    "correlation coefficient (bar: 95% interval over draws or stretches, cut at 1)",
                    limits=(-1.05, 1.05),
                ),
                upright=[charts.Rule(PAPER, "the paper's, with its sign", ":")],
            ),
            y="{setting}",
        ),
    },
)
