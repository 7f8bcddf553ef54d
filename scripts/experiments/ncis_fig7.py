"""Busa-Fekete et al., figure 7 (section 6.6): whom noisy signals give crawls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.comparing import page_rates, panels
from scripts.comparing.page_rates import HIGH, LOW
from scripts.comparing.settings import Measurement
from scripts.comparing.verdicts import Claim, Range, Trend

TITLE = "Crawl rates page by page, noisy signals (NCIS paper, figure 7)"
CLAIM = (
    "False signals make GREEDY-CIS crawl some pages of high recall far too often. "
    "GREEDY-NCIS does not let them."
)
METRIC = f"largest gain, recall > {HIGH}"
REPETITIONS = 20
LABELS = {"GREEDY": "Greedy", "GREEDY-CIS": "GreedyCIS", "GREEDY-NCIS": "GreedyNCIS"}
SOURCE = "section 6.6, figure 7"
EVERYWHERE = ("m=100", "m=300")

MISLED = "rate change, recall > 0.5, precision < 0.5"
UNSIGNALLED = f"rate change, recall < {LOW}"
LINE = f"correlation with optimal rates, recall < {LOW}"
TWICE = f"share crawled twice as often, recall > {HIGH}"

CLAIMS = (
    Claim(
        "Some pages of high recall get far more crawls from GREEDY-CIS than from the others "
        "(red arrows).",
        SOURCE,
        (
            Trend("GREEDY-CIS", "above", "GREEDY", EVERYWHERE, SOURCE, metric=METRIC),
            Trend("GREEDY-CIS", "above", "GREEDY-NCIS", EVERYWHERE, SOURCE, metric=METRIC),
            Trend("GREEDY-CIS", "above", "GREEDY", EVERYWHERE, SOURCE, metric=TWICE),
            Trend("GREEDY-CIS", "above", "GREEDY-NCIS", EVERYWHERE, SOURCE, metric=TWICE),
        ),
        note="The gain of a page is its rate less BASELINE's, in crawls per unit of time. The "
        "paper's text does not say how many pages its panels show; 100 and 300 are figure 5's.",
    ),
    Claim(
        "False signals boost its rates without need; GREEDY-NCIS handles them.",
        SOURCE,
        (
            Trend("GREEDY-CIS", "above", "GREEDY-NCIS", EVERYWHERE, SOURCE, metric=MISLED),
            Range("GREEDY-CIS", 0.1, np.inf, EVERYWHERE, SOURCE, MISLED),
        ),
        note="Told by pages of recall above 0.5 most of whose signals are false. With 100 pages "
        "there are crawls enough that false signals cost other pages little.",
    ),
)
EXPECTED = (
    Trend("GREEDY-NCIS", "above", "GREEDY-CIS", EVERYWHERE, "not in the paper", metric=LINE),
)


def measurements(quick: bool) -> list[Measurement]:
    """Rates with 100 and 300 pages."""
    horizon = 100.0 if quick else 1000.0
    return page_rates.measurements("noisy", (100, 300), LABELS, horizon=horizon)


def statistics(
    rates: FloatArray, optimal: FloatArray, pages: Mapping[str, FloatArray]
) -> dict[str, float]:
    """Return what the claims speak of."""
    recall, true = pages["recall"], pages["recall"] * pages["change_rate"]
    many, few = recall > HIGH, recall < LOW
    misled = (recall > 0.5) & (true < pages["false_signal_rate"])
    crawled = many & (optimal > 0.0)
    return {
        METRIC: float((rates - optimal)[many].max()),
        TWICE: float(np.mean(rates[crawled] > 2.0 * optimal[crawled])),
        MISLED: page_rates.rate_change(rates, optimal, misled),
        UNSIGNALLED: page_rates.rate_change(rates, optimal, few),
        LINE: float(np.corrcoef(rates[few], optimal[few])[0, 1]),
    }


def derive(rows: Sequence[Row]) -> list[Row]:
    """Compare the rates with those of BASELINE."""
    return list(page_rates.compared(rows, statistics))


PICTURES = {
    f"rates_by_{name}": partial(panels.rates_against_optimal, title=TITLE, colour=name)
    for name in ("recall", "false_signal_rate")
}
