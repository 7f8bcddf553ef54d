"""Olston and Pandey, figure 1: when the fragments of two pages are present."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from crawl_envs.evaluation import Row
from crawl_envs.types.contents import Contents
from scripts.experiments.longevity.measures import sites, two_pages
from scripts.experiments.longevity.measures.divergence import spells
from scripts.experiments.longevity.measures.two_pages import MODEL, PAGE_A, PAGE_B, PAGES
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import indexed
from scripts.study.settings import Measurement, spec

TITLE = "Fragments of two pages over time"
METRIC = "updates"
"""Updates per day."""
STATIC = "static_share"
"""Share of the fragments present at the start that are always present."""
LIFETIME = "lifetime"
"""Mean days from birth to death of fragments born within BORN_BY days."""
SCROLLING = "scrolling_for_30_to_60_days"
"""Share of the drawn items of page B's scroll region that stay 30 to 60 days."""
DAYS, BORN_BY = 120.0, 60.0
"""Days drawn, and the latest birth, in days, of fragments in the mean lifetime."""
MUCH_LATER = 400.0
STRIPES = ("first", "birth", "death", "size")
"""Indexed metrics of seed 0, by stripe in order of appearance: first row, start, end, and number of
fragments."""

SECTION = "section 1, Figure 1"
CLAIMS = (
    Claim(
        "Pages A and B both undergo frequent updates.",
        SECTION,
        tuple(Range(page, 0.3, np.inf, (MODEL,), SECTION) for page in PAGES),
        note="Both are 0.5 per day. Frequent: every three days or more; margin ours.",
        fitted=True,
    ),
    Claim(
        "Page A has a small amount of static content and a large amount of volatile content.",
        SECTION,
        (Range(PAGE_A, 0.0, 0.3, (MODEL,), SECTION, metric=STATIC),),
        fitted=True,
    ),
    Claim(
        "Page B has static content, volatile advertisements, and recipes whose stripes are roughly "
        "30 to 60 days long.",
        SECTION,
        (
            Range(PAGE_B, 0.5, 1.0, (MODEL,), SECTION, metric=SCROLLING),
            Range(PAGE_B, 0.3, 1.0, (MODEL,), SECTION, metric=STATIC),
        ),
        note="Ten items, an update every 4.5 days. Most: more than half.",
        fitted=True,
    ),
    Claim(
        "What B adds lasts longer than what A adds.",
        SECTION,
        (Trend(PAGE_B, "above", PAGE_A, (MODEL,), SECTION, metric=LIFETIME),),
        note="The picture also shows two recorded pages of the shipped site, chosen to be like A "
        "and like B.",
        fitted=True,
    ),
)


def stripes(contents: Contents, page: int, days: float) -> dict[str, float]:
    """Return a page's stripes: for each fragment key, first birth, last death and size."""
    births, deaths, sizes, keys = spells(contents, page)
    key, number = np.unique(keys, return_inverse=True)
    birth, death = np.full(key.size, np.inf), np.full(key.size, -np.inf)
    np.minimum.at(birth, number, births)
    np.maximum.at(death, number, deaths)
    size = np.zeros(key.size)
    size[number] = sizes
    rows = np.flatnonzero((birth < days) & (death > 0.0))
    rows = rows[np.lexsort((-death[rows], birth[rows]))]
    first = np.cumsum(size[rows]) - size[rows]
    columns = (first, np.maximum(birth[rows], 0.0), np.minimum(death[rows], days), size[rows])
    return {
        metric: value
        for name, column in zip(STRIPES, columns, strict=True)
        for metric, value in indexed(name, column).items()
    }


def measures_of(contents: Contents, page: int, days: float, born_by: float) -> dict[str, float]:
    """Return the updates per day, the static share and the mean lifetime of a page."""
    birth, death, size, _ = spells(contents, page)
    moments = np.concatenate((birth, death))
    updates = np.unique(moments[(moments > 0.0) & (moments <= days)]).size
    there = birth < 0.0
    born = (birth >= 0.0) & (birth <= born_by)
    static = size[there & (death > days)].sum() / max(size[there].sum(), 1)
    lived = np.minimum(death, days if born_by == days else np.inf) - birth
    return {
        METRIC: updates / days,
        STATIC: float(static),
        LIFETIME: float(np.average(lived[born], weights=size[born])) if born.any() else np.nan,
    }


@spec("longevity-fragments-drawn")
def drawn(seed: int, *, label: str, days: float) -> dict[str, float]:
    """Measure a simulated page; MUCH_LATER days after ``days`` all its fragments are dead."""
    page = PAGES.index(label)
    contents = two_pages.drawn_pages(seed, days + MUCH_LATER)
    result = measures_of(contents, page, days, min(BORN_BY, days))
    if label == PAGE_B:
        birth, death, size, _ = spells(contents, page)
        recipe = (size == two_pages.SCROLL_SIZE) & (birth >= 0.0) & (birth <= days)
        lived = (death - birth)[recipe]
        result[SCROLLING] = float(np.mean((lived >= 30.0) & (lived <= 60.0)))
    return result | (stripes(contents, page, days) if seed == 0 else {})


@spec("longevity-fragments-recorded")
def recorded(seed: int, *, label: str, site: str) -> dict[str, float]:
    """Measure a recorded page; fragments that are present at the end of the record die there."""
    contents, days = two_pages.recorded_pages(site)
    page = PAGES.index(label)
    return measures_of(contents, page, days, days) | stripes(contents, page, days)


def measurements(quick: bool) -> list[Measurement]:
    """Return the measurement of the simulated pages, and one of two pages per shipped site."""
    model, record = ({page: partial(fn, label=page) for page in PAGES} for fn in (drawn, recorded))
    return [
        Measurement(MODEL, model, {"days": DAYS}),
        *(Measurement(site, record, {"site": site}, most=1) for site in sites.available(True)),
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw a stripe from birth to death for each set of fragments, in a panel per page."""
    columns = [two_pages.of_first_seed(rows, name) for name in STRIPES]
    titles = {key: name for key, name in two_pages.panel_titles().items() if key in columns[0]}
    frame = charts.Frame(
        f"{TITLE}\na stripe lasts from birth to death; grey: always present; "
        "blue and orange only separate neighbours",
        charts.Axis("time (days)"),
        charts.Axis("fragments, in order of first appearance"),
        shared="none",
    )
    with charts.panels(path, list(titles.values()), frame) as every:
        for key, title in titles.items():
            first, birth, death, size = (column[key] for column in columns)
            sides = zip(first, birth, death, size, strict=True)
            boxes = [Rectangle((start, low), end - start, tall) for low, start, end, tall in sides]
            end, top = float(death.max()), float((first + size).max())
            stays = (birth <= 0.0) & (death >= end)
            moved = (np.diff(birth) != 0.0) | (np.diff(death) != 0.0)
            number = np.concatenate(([0], np.cumsum(moved)))
            colours = np.where(stays, "#999999", np.where(number % 2, *charts.COLOURS[:2]))
            look = {"facecolor": colours.tolist(), "linewidth": 0.0, "rasterized": True}
            every[title].add_collection(PatchCollection(boxes, **look))
            every[title].set(xlim=(0.0, end), ylim=(0.0, top))


EXPERIMENT = Experiment(
    name="longevity-fig1",
    title=TITLE,
    claim=(
        "Pages that are updated equally often differ in how long their content lasts: most of "
        "page A is replaced at once, while page B scrolls through recipes that stay for one "
        "to two months."
    ),
    metric=METRIC,
    settings=measurements,
    claims=CLAIMS,
    pictures={"stripes": draw},
)
