"""Busa-Fekete et al., figure 1: precision and recall of signals, under laws that stand for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from crawl_envs.instances import make
from crawl_envs.instances.urls.bing import PRECISION_EDGES, RECALL_EDGES
from crawl_envs.types import FloatArray
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Series
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Level, Range
from scripts.study.rows import indexed
from scripts.study.specs import spec

TITLE = "Precision and recall of signals (NCIS paper, figure 1)"
METRIC = "both above 0.8"
"""Share of the importance of pages with signals whose precision and recall exceed 0.8."""
BINS, HIGH = 10, 0.8
SET = "pages with signals"
BING, NOISY = "bing-like", "noisy"
"""A law that we fitted to the paper's statements, and its synthetic law (section 6, figure 6)."""
LABELS = (BING, NOISY)
MEASURED = ("precision", "recall")
DECLARED, WEIGHT = "share declared", "importance declared"
SECTION = "section 2, figure 1"
TAIL = PRECISION_EDGES[7], RECALL_EDGES[6]
"""Smallest precision and recall of declared pages of BING: the upper tail of both."""


def histogram(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the share of the weight whose values are in each of BINS equal parts of [0, 1]."""
    place = np.minimum((values * BINS).astype(np.int64), BINS - 1)
    total = np.bincount(place, weights, BINS)
    shares: FloatArray = total / total.sum()
    return shares


@spec("ncis-signal-quality-of-law")
def measured(seed: int, *, law: str, num_pages: int) -> Mapping[str, float]:
    """Return statistics of precision and recall of a law's pages with signals, by importance."""
    pages = make(law, num_pages=num_pages, seed=seed)
    there = pages.signal_rate > 0.0
    weights, precision, recall = (
        column[there] for column in (pages.importance, pages.precision, pages.recall)
    )
    high = (precision > HIGH) & (recall > HIGH)
    result = {METRIC: float(weights[high].sum() / weights.sum())}
    for name, values in zip(MEASURED, (precision, recall), strict=True):
        result |= indexed(name, histogram(values, weights))
        result[f"mean {name}"] = float(np.average(values, weights=weights))
    if law == BING:
        declared = (precision >= TAIL[0] - 1e-9) & (recall >= TAIL[1] - 1e-9)
        result[DECLARED] = float(declared.sum()) / num_pages
        result[WEIGHT] = float(weights[declared].sum() / pages.importance.sum())
    return result


EXPERIMENT = Experiment(
    name="ncis-fig1",
    title=TITLE,
    claim=(
        "Signals are noisy: very few pages, by importance, have a precision and a recall above "
        "0.8. The measured histogram is not public; the picture shows laws that stand for it."
    ),
    metric=METRIC,
    repetitions=10,
    settings=measure_settings(
        {SET: {"num_pages": 100_000}},
        {label: partial(measured, law=label) for label in LABELS},
        quick={"num_pages": 2_000},
    ),
    claims=(
        Claim(
            "Very few pages have a precision and a recall higher than 0.8.",
            SECTION,
            tuple(Range(label, 0.0, 0.05, (SET,), "margin ours", METRIC) for label in LABELS),
            "The histogram and the importance in it are not public. `bing-like` was chosen so that "
            "this holds. `noisy` is the law of the paper's experiments: its recall is "
            "often close to 1, but with false signals at a rate of 0.1 or more few pages are "
            "precise.",
            fitted=True,
        ),
        Claim(
            "4% of the URLs have side information, and 26.4% of the importance.",
            "section 2",
            (
                Level(SET, BING, 0.04, 0.005, "section 2", DECLARED),
                Level(SET, BING, 0.264, 0.03, "section 2", WEIGHT),
            ),
            "These are numbers of the data set of Kolobov et al., which is public; margins ours.",
            fitted=True,
        ),
        Claim(
            "Pages that were thought to have perfect sitemap signals have a precision below 0.2 "
            "and a recall below 0.5; the signals of figure 1 are in general better.",
            SECTION,
            (),
            "The measurements are not public.",
        ),
    ),
    pictures={
        "histograms": figures.lines(
            [Series(name, name) for name in MEASURED],
            Frame(
                f"{TITLE}\nlaws of this suite, weighted by importance; the paper's is not public\n"
                "means over seeds; bars: 95% intervals",
                Axis("precision or recall of a page, parts of 0.1", limits=(0.0, 1.0)),
                Axis("share of importance", limits=(0.0, None)),
            ),
            along=(np.arange(BINS) + 0.5) / BINS,
            labels=LABELS,
        )
    },
)
