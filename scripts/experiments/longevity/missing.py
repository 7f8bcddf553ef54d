"""Olston and Pandey, section 3.1: effect of missing snapshots that repeat the previous one."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike

from crawl_envs.types import BoolArray, FloatArray
from crawl_envs.types.contents import Contents, Regions
from scripts.experiments.figures import Axis, Frame, Rule, Series, lines
from scripts.experiments.longevity.measures import sites
from scripts.experiments.longevity.measures.snapshots import (
    INTERVAL,
    SNAPSHOTS,
    change_frequency,
    changed,
    longevity,
    runs_of,
    snapshot_times,
    substitutes,
)
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Range, Trend
from scripts.study.correlations import correlation
from scripts.study.specs import spec

TITLE = "Missing snapshots"
METRIC = "frequency error"
"""Relative error of the mean change frequency, against complete snapshots."""
FAST, SLOW = "frequency error, fast pages", "frequency error, slow pages"
"""The same for pages with at least two updates per snapshot, and at most a tenth, on average."""
PREDICTED = "less the prediction"
"""METRIC minus the value that :func:`frequency` predicts for single misses."""
CORRELATION, LIVED, STATIC = "correlation", "longevity error", "unchanged_share"
COMPLETE, SUBSTITUTED, LEFT_OUT = "complete", "substituted", "left out"
LABELS = (COMPLETE, SUBSTITUTED, LEFT_OUT)
"""``left out``: share of existing snapshots that differ from the previous existing one."""
SHARES = (0.01, 0.05, 0.1, 0.2, 0.4)
"""Shares of missing snapshots; the paper has a few, without a number."""
OUTAGE = 4.0
"""Mean number of snapshots in an outage of a server."""


def name_of(share: float, outages: bool) -> str:
    """Return the name of the setting with this share of missing snapshots, in outages or not."""
    return f"{share:.0%} missing{', in outages' if outages else ''}"


SINGLE, OUTAGES = (
    {name_of(share, outages): share for share in SHARES} for outages in (False, True)
)
NAMES = (*SINGLE, *OUTAGES)
RARE = tuple(name_of(share, outages) for share in SHARES[:2] for outages in (False, True))


def frequency(
    rate: ArrayLike, missing: float, interval: float = INTERVAL, snapshots: int = SNAPSHOTS
) -> FloatArray:
    """Return the expected share of snapshots that differ from the one before, if some are missing.

    Each snapshot except the first is missing with probability q, independently, and then repeats
    the one before. With s = exp(-rate interval), snapshot n equals the last existing one with
    probability E_1 = s, E_{n+1} = s (1 - q + q E_n). So it differs from the one before with
    probability (1 - q) (1 - E_n), which tends to (1 - q) (1 - s) / (1 - q s). For small rates this
    is the rate times the interval, whatever q is. Content must not return.

    Args:
        rate: updates per unit time, >= 0.
        missing: q, in [0, 1).
        interval: between snapshots, > 0.
        snapshots: S >= 2.
    """
    stays = np.exp(-np.asarray(rate, np.float64) * interval)
    equal, total = stays, np.zeros_like(stays)
    for _ in range(snapshots - 1):
        total += (1.0 - missing) * (1.0 - equal)
        equal = stays * (1.0 - missing + missing * equal)
    return total / (snapshots - 1)


def missed(
    rng: np.random.Generator, num_pages: int, snapshots: int, share: float, length: float
) -> BoolArray:
    """Draw which snapshots are missing, (m, S), except the first; outage lengths are geometric.

    Args:
        rng: random generator.
        num_pages: m.
        snapshots: S.
        share: long-run share of missing snapshots, in (0, 1).
        length: mean length of an outage, >= 1; 1 / (1 - share) makes misses independent.
    """
    ends, starts = 1.0 / length, share / (1.0 - share) / length
    result = np.zeros((num_pages, snapshots), np.bool_)
    down = rng.random(num_pages) < share
    for number in range(1, snapshots):
        draw = rng.random(num_pages)
        down = np.where(down, draw >= ends, draw < starts)
        result[:, number] = down
    return result


@lru_cache(maxsize=2)
def drawn(num_pages: int, seed: int) -> tuple[Regions, Contents]:
    """Return the regions of the pages of a simulated high-quality set, and their contents."""
    instance, contents = sites.drawn_set("quality", num_pages, SNAPSHOTS * INTERVAL, seed)
    return instance.regions, contents


@spec("longevity-missing-snapshots")
def measured(
    seed: int, *, label: str, num_pages: int, share: float, outages: bool
) -> dict[str, float]:
    """Measure pages by snapshots of which some are missing, and compare with complete snapshots."""
    regions, contents = drawn(num_pages, seed)
    complete = runs = runs_of(contents, snapshot_times())
    rng = np.random.default_rng([seed, round(1000 * share), outages])
    length = OUTAGE if outages else 1.0 / (1.0 - share)
    missing = missed(rng, num_pages, SNAPSHOTS, share, length)
    if label != COMPLETE:
        runs = runs_of(contents, snapshot_times(), substitutes(missing))
    count = change_frequency(runs)
    if label == LEFT_OUT:
        count = changed(runs).sum(axis=1) / np.maximum((~missing[:, 1:]).sum(axis=1), 1)
    base, rate = change_frequency(complete), regions.rate.sum(axis=1)
    slow = (rate > 0.0) & (rate * INTERVAL <= 0.1)
    error, fast_error, slow_error = (
        float(count[pages].mean() / base[pages].mean()) - 1.0
        for pages in (slice(None), rate * INTERVAL >= 2.0, slow)
    )
    result = {
        METRIC: error,
        FAST: fast_error,
        SLOW: slow_error,
        CORRELATION: correlation(count, longevity(runs)),
        LIVED: float(np.nanmean(longevity(runs)) / np.nanmean(longevity(complete))) - 1.0,
        STATIC: float(np.mean(count == 0.0)),
    }
    if label == SUBSTITUTED:
        expected = frequency(rate, share).mean() / frequency(rate, 0.0).mean() - 1.0
        result[PREDICTED] = error - float(expected)
    return result


EXPERIMENT = Experiment(
    name="longevity-missing",
    title=TITLE,
    claim=(
        "Missing snapshots that repeat the previous one hide many changes of pages that change "
        "fast, and few changes of pages that change slowly."
    ),
    metric=METRIC,
    references=(COMPLETE,),
    repetitions=10,
    settings=measure_settings(
        {
            name: {"num_pages": 2000, "share": share, "outages": shares is OUTAGES}
            for shares in (SINGLE, OUTAGES)
            for name, share in shares.items()
        },
        {label: partial(measured, label=label) for label in LABELS},
        quick={"num_pages": 300},
    ),
    expected=(
        Range(SUBSTITUTED, -0.005, 0.005, tuple(SINGLE), "the formula is exact", PREDICTED),
        Trend(SUBSTITUTED, "about", COMPLETE, RARE, "rare cases", 0.02, CORRELATION),
        Trend(SUBSTITUTED, "about", COMPLETE, RARE, "rare cases", 0.005, STATIC),
        Range(SUBSTITUTED, -np.inf, 0.0, NAMES, "a change is seen later, or with another", METRIC),
        Range(LEFT_OUT, 0.0, np.inf, NAMES, "intervals are longer", METRIC),
    ),
    pictures={
        "frequency": lines(
            [
                Series(metric, dict.fromkeys(shares, f"{which}, {misses}"))
                for shares, misses in ((SINGLE, "single misses"), (OUTAGES, "outages"))
                for metric, which in (
                    (METRIC, "all pages"),
                    (FAST, "fast pages"),
                    (SLOW, "slow pages"),
                )
            ],
            Frame(
                f"{TITLE}: error of the change frequency, quality set, 30 snapshots\n"
                "fast: 2 updates per interval or more; slow: 0.1 or less; bars: 95% intervals",
                Axis("share of missing snapshots"),
                Axis("relative error"),
                columns=3,
                size=(3.6, 3.2),
                across=[Rule(0.0, dash="-")],
            ),
            positions=SINGLE | OUTAGES,
            labels=(SUBSTITUTED, LEFT_OUT),
        )
    },
)
