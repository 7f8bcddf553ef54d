"""Figure 2: divergence curves of two pages, and the utility of a refresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from crawl_envs.evaluation import Row
from policies.values.divergence.regions import RegionCurves
from scripts.experiments.longevity.setup.fragment_curves import at, occurred, utility
from scripts.experiments.longevity.setup.fragment_pages import (
    MODEL,
    PAGE_A,
    PAGE_B,
    PAGES,
    REGIONS,
    drawn_pages,
    panel_titles,
    recorded_pages,
)
from scripts.experiments.longevity.setup.fragment_records import lasting, sites, windows
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import indexed
from scripts.study.settings import Measurement

TITLE = "Divergence of two pages since a crawl"
CLAIM = (
    "With equally frequent updates, the utility of a refresh, which is the area between the final "
    "divergence and the curve, is higher for page B, whose content lasts."
)
METRIC = "utility"
"""t D(t) - int_0^t D at the present time, in days, of the curve that occurred."""
EXPECTED_UTILITY = "expected_utility"
"""The utility by D*, which is exact where the regions are known."""
HOLISTIC_UTILITY = "holistic_utility"
"""The utility by the probability of at least one update."""
REPETITIONS, QUICK_REPETITIONS = 1000, 5
PRESENT = 60.0
"""Days since the refresh of both pages."""
STEP = 0.5
ALL = "all pages"
FALLING, LARGEST_FALL = "falling_share", "largest_fall"
"""Share of pages whose divergence falls at some time, and the largest fall."""
OCCURRED, MEAN = "divergence", "expected_divergence"
"""Indexed metrics: divergence every half day, from 0 on."""

SECTION = "section 2.3, Figure 2"
CLAIMS = (
    Claim(
        "Page B has higher utility than page A.",
        SECTION,
        (
            Trend(PAGE_B, "above", PAGE_A, (MODEL,), SECTION),
            Trend(PAGE_B, "above", PAGE_A, (MODEL,), SECTION, metric=EXPECTED_UTILITY),
        ),
        note="Sixty days after the refresh of both. A was replaced within days; after that its "
        "curve is flat.",
    ),
    Claim(
        "A policy for holistic staleness treats both alike.",
        SECTION,
        (
            Trend(
                PAGE_B,
                "about",
                PAGE_A,
                (MODEL,),
                SECTION,
                margin=1e-9,
                metric=HOLISTIC_UTILITY,
            ),
        ),
        note="Expected utility by the rate of updates, which is one half per day for both.",
    ),
    Claim(
        "Divergence occasionally decreases by a little, where fragments reappear.",
        "section 2.3, footnote 3",
        tuple(
            Range(ALL, 1e-9, 1.0, (site,), "section 2.3, footnote 3", metric=FALLING)
            for site in sites(shipped=True)
        ),
        note="Share of recorded pages whose divergence falls within 60 days. It never falls in the "
        "model, where no fragment reappears.",
    ),
)
LESS = "occurred_minus_expected"
EXPECTED = tuple(
    Range(page, -0.5, 0.5, (MODEL,), "D* is the mean of the curves", metric=LESS) for page in PAGES
)


def drawn(seed: int, *, label: str, present: float) -> Mapping[str, float]:
    """Measure the divergence of a drawn page from its copy at time 0."""
    page = PAGES.index(label)
    times, steps = occurred(drawn_pages(seed, present), page, present)
    curves = RegionCurves(REGIONS)
    expected = float(curves.utility(present)[page])
    rate = float(REGIONS.change_rate[page])
    realised = utility(times, steps)
    result = {
        METRIC: realised,
        EXPECTED_UTILITY: expected,
        LESS: realised - expected,
        HOLISTIC_UTILITY: (1.0 - (1.0 + rate * present) * np.exp(-rate * present)) / rate,
    }
    if seed > 0:
        return result
    moments = np.arange(0.0, present + STEP / 2.0, STEP)
    mean = [float(curves.divergence(moment)[page]) for moment in moments]
    return result | indexed(OCCURRED, at(times, steps, moments)) | indexed(MEAN, mean)


def recorded(seed: int, *, label: str, site: str) -> Mapping[str, float]:
    """Measure the divergence of a recorded page from its copy at the start, to the end.

    The same for all seeds.
    """
    contents, present = recorded_pages(site)
    times, steps = occurred(contents, PAGES.index(label), present)
    moments = np.arange(0.0, present + STEP / 2.0, STEP)
    return {METRIC: utility(times, steps)} | indexed(OCCURRED, at(times, steps, moments))


def falling(seed: int, *, site: str) -> Mapping[str, float]:
    """Measure how often divergence falls, on pages that exist throughout a window of a record."""
    contents = lasting(site, windows(site, PRESENT)[seed])
    falls = [
        max(0.0, -np.diff(occurred(contents, page, PRESENT)[1], prepend=0.0).min())
        for page in range(contents.num_pages)
    ]
    return {FALLING: float(np.mean(np.array(falls) > 0.0)), LARGEST_FALL: max(falls)}


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return the drawn pages, and two of each shipped site."""
    return [
        Measurement(
            MODEL, {page: partial(drawn, label=page) for page in PAGES}, {"present": PRESENT}
        ),
        *(
            Measurement(
                site,
                {page: partial(recorded, label=page) for page in PAGES} | {ALL: falling},
                {"site": site},
                most=len(windows(site, PRESENT)),
            )
            for site in sites(shipped=True)
        ),
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the curves of seed 0 and of the shipped sites, with the utility as an area."""
    from scripts.experiments.longevity.setup.fragment_charts import divergence_curves

    divergence_curves(
        rows,
        path,
        title=TITLE,
        step=STEP,
        curves=(OCCURRED, MEAN),
        utilities=(METRIC, EXPECTED_UTILITY),
        titles=panel_titles(),
    )


PICTURES = {"curves": draw}
