"""Busa-Fekete et al., figure 10 (appendix B): rates of discrete policies, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from crawl_envs.types import FloatArray
from scripts.experiments.measures import page_rates
from scripts.experiments.measures.over_pages import ID, sweep
from scripts.experiments.measures.page_rates import MARGIN
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend

TITLE = "Crawl rates page by page, without signals (NCIS paper, figure 10)"
METRIC = "rms deviation"
LABELS = ("GREEDY", "LDS")
SOURCE = "appendix B, figure 10"
EVERYWHERE = ("m=100", "m=500")
LINE = "correlation with optimal rates"
SHARE = "rms deviation / mean rate"

CLAIMS = (
    Claim(
        "The rates of LDS are very close to the optimal ones: its dots lie on the diagonal.",
        SOURCE,
        (
            Range("LDS", 0.0, 0.005, EVERYWHERE, SOURCE, SHARE),
            Range("LDS", 0.9999, 1.0, EVERYWHERE, SOURCE, LINE),
        ),
    ),
    Claim(
        "The rates of GREEDY and of LDS for the same pages differ, GREEDY's being farther from "
        "the diagonal.",
        SOURCE,
        (
            Trend("GREEDY", "above", "LDS", EVERYWHERE, SOURCE, metric=METRIC),
            Range("GREEDY", 0.005, np.inf, EVERYWHERE, SOURCE, METRIC),
        ),
    ),
    Claim(
        "The rates of GREEDY and LDS are close to those of the optimal policy.",
        "section 6.4",
        tuple(Range(label, 0.0, MARGIN, EVERYWHERE, "section 6.4", SHARE) for label in LABELS),
        note="Close: the root mean square of the deviations is below a tenth of the mean rate; by "
        "a tenth a page counts as crawled more or less often in figure 5.",
    ),
)


def statistics(
    rates: FloatArray, optimal: FloatArray, pages: Mapping[str, FloatArray]
) -> dict[str, float]:
    """Return how far a policy's crawl rates by page are from the optimal ones."""
    deviation = page_rates.rms(rates - optimal)
    return {
        METRIC: deviation,
        SHARE: deviation / float(optimal.mean()),
        LINE: float(np.corrcoef(rates, optimal)[0, 1]),
        "largest deviation": float(np.abs(rates - optimal).max()),
    }


EXPERIMENT = Experiment(
    name="ncis-fig10",
    title=TITLE,
    claim=(
        "LDS crawls every page at its optimal rate. GREEDY, as accurate, does not quite: its "
        "choices depend on how stale pages are."
    ),
    metric=METRIC,
    repetitions=10,
    settings=measure_settings(
        sweep("uniform", (100, 500)),
        page_rates.measures({"GREEDY": "Greedy", "LDS": "LowDiscrepancy"}),
        ID,
        quick={"horizon": 100.0},
    ),
    derive=partial(page_rates.compared, statistics=statistics),
    claims=CLAIMS,
    pictures={"rates": page_rates.picture(TITLE)},
)
