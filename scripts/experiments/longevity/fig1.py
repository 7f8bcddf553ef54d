"""Figure 1: when the fragments of two pages are present."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types.contents import Contents
from scripts.experiments.longevity.setup.fragment_pages import (
    MODEL,
    PAGE_A,
    PAGE_B,
    PAGES,
    SCROLL_SIZE,
    drawn_pages,
    panel_titles,
    recorded_pages,
)
from scripts.experiments.longevity.setup.fragment_records import sites
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import indexed
from scripts.study.settings import Measurement

TITLE = "Fragments of two pages over time"
CLAIM = (
    "Pages that are updated equally often differ in how long their content lasts: most of page A "
    "is replaced at once, while page B scrolls through recipes that stay for one to two months."
)
METRIC = "updates"
"""Per day."""
STATIC = "static_share"
"""Fragments that are always present, as a share of those present at the start."""
LIFETIME = "lifetime"
"""Mean days from birth to death of fragments born within BORN_BY days."""
SCROLLING = "scrolling_for_30_to_60_days"
"""Share of the drawn items of page B's scroll region that stay that long."""
REPETITIONS, QUICK_REPETITIONS = 100, 3
DAYS, BORN_BY = 120.0, 60.0
"""Days drawn, and the latest birth, in days, of fragments in the mean lifetime."""
MUCH_LATER = 400.0
STRIPES = ("first", "birth", "death", "size")
"""Indexed metrics of seed 0, by stripe in order of appearance: lowest row, start, end, and number
of fragments."""

SECTION = "section 1, Figure 1"
CLAIMS = (
    Claim(
        "Pages A and B both undergo frequent updates.",
        SECTION,
        tuple(Range(page, 0.3, np.inf, (MODEL,), SECTION) for page in PAGES),
        note="By construction, both 0.5 per day. Frequent: every three days or more; margin ours.",
    ),
    Claim(
        "Page A has a small amount of static content and a large amount of volatile content.",
        SECTION,
        (Range(PAGE_A, 0.0, 0.3, (MODEL,), SECTION, metric=STATIC),),
        note="By construction.",
    ),
    Claim(
        "Page B has static content, volatile advertisements, and recipes whose stripes are roughly "
        "30 to 60 days long.",
        SECTION,
        (
            Range(PAGE_B, 0.5, 1.0, (MODEL,), SECTION, metric=SCROLLING),
            Range(PAGE_B, 0.3, 1.0, (MODEL,), SECTION, metric=STATIC),
        ),
        note="By construction: ten items, an update every 4.5 days. Most: more than half.",
    ),
    Claim(
        "What B adds lasts longer than what A adds.",
        SECTION,
        (Trend(PAGE_B, "above", PAGE_A, (MODEL,), SECTION, metric=LIFETIME),),
        note="Two recorded pages of the shipped site are drawn beside them, chosen to be like A "
        "and like B.",
    ),
)


def stripes(contents: Contents, page: int, days: float) -> dict[str, float]:
    """Return the stripes of a page: one per key, from its first birth to its last death."""
    own = slice(contents.start[page], contents.start[page + 1])
    key, number = np.unique(contents.key[own], return_inverse=True)
    birth, death = np.full(key.size, np.inf), np.full(key.size, -np.inf)
    np.minimum.at(birth, number, contents.birth[own])
    np.maximum.at(death, number, contents.death[own])
    size = np.zeros(key.size)
    size[number] = contents.size[own]
    seen = (birth < days) & (death > 0.0)
    birth, death, size = birth[seen], death[seen], size[seen]
    order = np.lexsort((-death, birth))
    birth, death, size = birth[order], death[order], size[order]
    first = np.cumsum(size) - size
    columns = (first, np.maximum(birth, 0.0), np.minimum(death, days), size)
    return {
        metric: value
        for name, column in zip(STRIPES, columns, strict=True)
        for metric, value in indexed(name, column).items()
    }


def measures_of(contents: Contents, page: int, days: float, born_by: float) -> dict[str, float]:
    """Return the updates per day, the static share and the mean lifetime of a page."""
    own = slice(contents.start[page], contents.start[page + 1])
    birth, death, size = contents.birth[own], contents.death[own], contents.size[own]
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


def drawn(seed: int, *, label: str, days: float) -> Mapping[str, float]:
    """Measure a drawn page, MUCH_LATER days beyond those shown so that all deaths are included."""
    page = PAGES.index(label)
    contents = drawn_pages(seed, days + MUCH_LATER)
    result = measures_of(contents, page, days, min(BORN_BY, days))
    if label == PAGE_B:
        own = slice(contents.start[page], contents.start[page + 1])
        recipe = (contents.size[own] == SCROLL_SIZE) & (contents.birth[own] >= 0.0)
        recipe &= contents.birth[own] <= days
        lived = (contents.death[own] - contents.birth[own])[recipe]
        result[SCROLLING] = float(np.mean((lived >= 30.0) & (lived <= 60.0)))
    return result | (stripes(contents, page, days) if seed == 0 else {})


def recorded(seed: int, *, label: str, site: str) -> Mapping[str, float]:
    """Measure a recorded page; fragments present at the end of the record die there."""
    contents, days = recorded_pages(site)
    page = PAGES.index(label)
    return measures_of(contents, page, days, days) | stripes(contents, page, days)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return the drawn pages, and two of each shipped site."""
    model = Measurement(MODEL, {page: partial(drawn, label=page) for page in PAGES}, {"days": DAYS})
    return [
        model,
        *(
            Measurement(
                site,
                {page: partial(recorded, label=page) for page in PAGES},
                {"site": site},
                most=1,
            )
            for site in sites(shipped=True)
        ),
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the stripes of drawn pages and of pages of the shipped sites."""
    from scripts.experiments.longevity.setup.fragment_charts import stripes_over_time

    stripes_over_time(rows, path, title=TITLE, columns=STRIPES, titles=panel_titles())


PICTURES = {"stripes": draw}
