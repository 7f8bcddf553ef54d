"""Olston and Pandey, figure 2: divergence curves of two pages, and the utility of a refresh."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs.evaluation import Row
from policies.values.divergence.regions import RegionCurves
from scripts.experiments.longevity.measures import sites, two_pages
from scripts.experiments.longevity.measures.divergence import occurred, step_values, utility
from scripts.experiments.longevity.measures.two_pages import MODEL, PAGE_A, PAGE_B, PAGES, REGIONS
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import indexed
from scripts.study.settings import Measurement, spec

TITLE = "Divergence of two pages since a crawl"
METRIC = "utility"
"""t D(t) - int_0^t D of the curve that occurred, at the present time, in days."""
EXPECTED_UTILITY = "expected_utility"
"""The utility by D*, which is exact if the regions are known."""
HOLISTIC_UTILITY = "holistic_utility"
"""The utility by the probability of at least one update."""
PRESENT = 60.0
"""Days since the refresh of both pages."""
STEP = 0.5
ALL = "all pages"
FALLING, LARGEST_FALL = "falling_share", "largest_fall"
"""Share of pages whose divergence falls at some time, and the largest fall."""
OCCURRED, MEAN = "divergence", "expected_divergence"
"""Indexed metrics: divergence every half day, from day 0."""

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
        (Trend(PAGE_B, "about", PAGE_A, (MODEL,), SECTION, margin=1e-9, metric=HOLISTIC_UTILITY),),
        note="Expected utility by the rate of updates, which is one half per day for both.",
        fitted=True,
    ),
    Claim(
        "Divergence occasionally decreases by a little, where fragments reappear.",
        "section 2.3, footnote 3",
        tuple(
            Range(ALL, 1e-9, 1.0, (site,), "section 2.3, footnote 3", metric=FALLING)
            for site in sites.available(shipped=True)
        ),
        note="Share of recorded pages whose divergence falls within 60 days. It never falls in the "
        "model, where no fragment reappears.",
    ),
)
LESS = "occurred_minus_expected"


@spec("longevity-divergence-drawn")
def drawn(seed: int, *, label: str, present: float) -> dict[str, float]:
    """Return the utility of refreshing a simulated page, and its divergence from its first copy."""
    page = PAGES.index(label)
    times, steps = occurred(two_pages.drawn_pages(seed, present), page, present)
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
    return result | indexed(OCCURRED, step_values(times, steps, moments)) | indexed(MEAN, mean)


@spec("longevity-divergence-recorded")
def recorded(seed: int, *, label: str, site: str) -> dict[str, float]:
    """Return the utility and divergence of a recorded page, from its copy at the record's start.

    The result is the same for all seeds.
    """
    contents, present = two_pages.recorded_pages(site)
    times, steps = occurred(contents, PAGES.index(label), present)
    moments = np.arange(0.0, present + STEP / 2.0, STEP)
    return {METRIC: utility(times, steps)} | indexed(OCCURRED, step_values(times, steps, moments))


@spec("longevity-divergence-falls")
def falling(seed: int, *, site: str) -> dict[str, float]:
    """Return how often and how far divergence falls, over pages that exist all through a window."""
    contents = sites.lasting(site, sites.windows(site, PRESENT)[seed])
    falls = [
        max(0.0, -np.diff(occurred(contents, page, PRESENT)[1], prepend=0.0).min())
        for page in range(contents.num_pages)
    ]
    return {FALLING: float(np.mean(np.array(falls) > 0.0)), LARGEST_FALL: max(falls)}


def measurements(quick: bool) -> list[Measurement]:
    """Return the measurement of the simulated pages, and one of two pages per shipped site."""
    model, record = ({page: partial(fn, label=page) for page in PAGES} for fn in (drawn, recorded))
    settings = [Measurement(MODEL, model, {"present": PRESENT})]
    for site in sites.available(shipped=True):
        count = len(sites.windows(site, PRESENT))
        settings.append(Measurement(site, {**record, ALL: falling}, {"site": site}, most=count))
    return settings


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw divergence curves of seed 0 and shipped sites; the refresh's utility is an area."""
    curves, means = (two_pages.of_first_seed(rows, name) for name in (OCCURRED, MEAN))
    number = {(row.metric, *row[1:3]): row.value for row in rows if row.seed == 0}
    titles = {key: name for key, name in two_pages.panel_titles().items() if key in curves}
    frame = charts.Frame(
        f"{TITLE}\nshaded: the utility of a refresh now, at the right end, by what occurred",
        charts.Axis("days since the crawl", limits=(0.0, None)),
        charts.Axis("divergence (fragment staleness)", limits=(0.0, None)),
        shared="y",
        legend="each",
    )
    with charts.panels(path, list(titles.values()), frame) as every:
        for key, title in titles.items():
            axes, curve = every[title], curves[key]
            time = STEP * np.arange(curve.size)
            area: Any = {"color": charts.COLOURS[5], "alpha": 0.4, "linewidth": 0, "step": "pre"}
            axes.fill_between(time, curve, curve[-1], **area)
            text = f"occurred, utility {number[METRIC, *key]:.2f} days"
            axes.plot(time, curve, color=charts.COLOURS[0], drawstyle="steps-pre", label=text)
            if key in means:
                text = f"expected (D*), utility {number[EXPECTED_UTILITY, *key]:.2f} days"
                axes.plot(time, means[key], "--", color=charts.COLOURS[1], label=text)


EXPERIMENT = Experiment(
    name="longevity-fig2",
    title=TITLE,
    claim=(
        "With equally frequent updates, the utility of a refresh, which is the area between "
        "the final divergence and the curve, is higher for page B, whose content lasts."
    ),
    metric=METRIC,
    repetitions=1000,
    settings=measurements,
    claims=CLAIMS,
    expected=tuple(
        Range(page, -0.5, 0.5, (MODEL,), "D* is the mean of the curves", metric=LESS)
        for page in PAGES
    ),
    pictures={"curves": draw},
)
