"""Busa-Fekete et al., figure 7 (section 6.6): crawl rates by page with noisy signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import BoolArray, FloatArray
from scripts.experiments.measures import page_rates
from scripts.experiments.measures.over_pages import ID, sweep
from scripts.experiments.measures.page_rates import HIGH, LOW
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend

TITLE = "Crawl rates page by page, noisy signals (NCIS paper, figure 7)"
SOURCE = "section 6.6, figure 7"
EVERYWHERE = ("m=100", "m=300")

MISLEADING_SIGNALS = "rate change, recall > 0.5, precision < 0.5"
UNSIGNALLED = f"rate change, recall < {LOW}"
LINE = f"correlation with BASELINE's rates, recall < {LOW}"
LARGEST = {
    name: f"largest excess over {name}, recall > {HIGH}" for name in ("GREEDY", "GREEDY-NCIS")
}
TWICE = {
    name: f"share crawled over twice as often as by {name}, recall > {HIGH}" for name in LARGEST
}
FAR, SOME = 0.25, 0.01
"""Far more: this number of crawls per unit of time. Some pages: this share of those considered."""
MOSTLY_FALSE = {
    name: f"share of precision < 0.5, of pages crawled {FAR:g} more than by {name}, recall > {HIGH}"
    for name in LARGEST
}

CLAIMS = (
    Claim(
        "Some pages of high recall get far more crawls from GREEDY-CIS than from the others "
        "(red arrows).",
        SOURCE,
        (
            *(
                Range("GREEDY-CIS", FAR, np.inf, EVERYWHERE, SOURCE, metric)
                for metric in LARGEST.values()
            ),
            *(
                Range("GREEDY-CIS", SOME, 1.0, EVERYWHERE, SOURCE, metric)
                for metric in TWICE.values()
            ),
        ),
        note="The excess is that of GREEDY-CIS's rate over the other policy's on the same page, in "
        "crawls per unit of time; the largest on a page of recall above 0.9, by instance. Far more "
        "is a quarter of a crawl: the mean page gets 1 (m=100) and 0.33 (m=300), change rates are "
        "at most 1, and GREEDY, which uses no signals, is nowhere that far from BASELINE. Some "
        "are one in a hundred of the pages of that recall that the other policy crawls. The "
        "paper's text does not say how many pages its panels show; 100 and 300 are figure 5's.",
    ),
    Claim(
        "False signals raise its rates needlessly; GREEDY-NCIS handles them.",
        SOURCE,
        (
            Trend(
                "GREEDY-CIS", "above", "GREEDY-NCIS", EVERYWHERE, SOURCE, metric=MISLEADING_SIGNALS
            ),
            Range("GREEDY-CIS", 0.1, np.inf, EVERYWHERE, SOURCE, MISLEADING_SIGNALS),
        ),
        note="Measured on pages of recall above 0.5 with more false signals than true ones. With "
        "100 pages crawls are plenty, so that false signals cost other pages little.",
    ),
)


def mostly_false(pages: Mapping[str, FloatArray]) -> BoolArray:
    """Return which pages have false signals more often than true ones, (m,)."""
    return np.asarray(pages["recall"] * pages["change_rate"] < pages["false_signal_rate"])


def statistics(
    rates: FloatArray, optimal: FloatArray, pages: Mapping[str, FloatArray]
) -> dict[str, float]:
    """Return statistics of a policy's crawl rates by page against the optimal ones, for claims."""
    few = pages["recall"] < LOW
    misleading = (pages["recall"] > 0.5) & mostly_false(pages)
    return {
        MISLEADING_SIGNALS: page_rates.rate_change(rates, optimal, misleading),
        UNSIGNALLED: page_rates.rate_change(rates, optimal, few),
        LINE: float(np.corrcoef(rates[few], optimal[few])[0, 1]),
    }


def excess(
    rates: FloatArray, base_rates: FloatArray, pages: Mapping[str, FloatArray], *, reference: str
) -> dict[str, float]:
    """Return how many more crawls than by a reference policy pages of high recall get."""
    many, more = pages["recall"] > HIGH, rates - base_rates
    far = many & (more >= FAR)
    return {
        LARGEST[reference]: float(more[many].max()) if many.any() else np.nan,
        TWICE[reference]: page_rates.share_above(rates, base_rates, many, margin=1.0),
        MOSTLY_FALSE[reference]: float(mostly_false(pages)[far].mean()) if far.any() else np.nan,
    }


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows that compare crawl rates by page with those of BASELINE and of two policies."""
    derived = page_rates.compared(rows, statistics)
    for reference in LARGEST:
        derived += page_rates.compared(rows, partial(excess, reference=reference), reference)
    return derived


EXPERIMENT = Experiment(
    name="ncis-fig7",
    title=TITLE,
    claim=(
        "False signals make GREEDY-CIS crawl some pages of high recall far too often. "
        "GREEDY-NCIS does not."
    ),
    metric=LARGEST["GREEDY-NCIS"],
    repetitions=20,
    settings=measure_settings(
        sweep("noisy", (100, 300)),
        page_rates.measures(
            {"GREEDY": "Greedy", "GREEDY-CIS": "GreedyCIS", "GREEDY-NCIS": "GreedyNCIS"}
        ),
        ID,
        quick={"horizon": 100.0},
    ),
    derive=derive,
    claims=CLAIMS,
    expected=(
        Trend("GREEDY-NCIS", "above", "GREEDY-CIS", EVERYWHERE, "not in the paper", metric=LINE),
    ),
    pictures={
        f"rates_by_{name}": page_rates.picture(TITLE, name, page_rates.NO_SIGNALS)
        for name in ("recall", "false_signal_rate")
    },
)
