"""Busa-Fekete et al., figure 5 (section 6.5): crawl rates by page, without false signals."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from crawl_envs.types import FloatArray
from scripts.experiments.measures import page_rates
from scripts.experiments.measures.over_pages import ID, sweep
from scripts.experiments.measures.page_rates import HIGH, LOW, MARGIN
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.correlations import correlation

TITLE = "Crawl rates page by page, signals without false ones (NCIS paper, figure 5)"
METRIC = "correlation with recall"
SOURCE = "section 6.5, figure 5"

SIGNALLED = f"rate change, recall > {HIGH}"
UNSIGNALLED = f"rate change, recall < {LOW}"
MORE, LESS = f"share crawled more, recall > {HIGH}", f"share crawled less, recall > {HIGH}"
BY_CHANGES = f"correlation with change rate, recall > {HIGH}"
LINE = f"correlation with BASELINE's rates, recall < {LOW}"

CLAIMS = (
    Claim(
        "With 100 pages, GREEDY-CIS crawls pages with many signals less than BASELINE does, and "
        "pages with few or none more.",
        SOURCE,
        (
            Range("GREEDY-CIS", -1.0, -0.5, ("m=100",), SOURCE, METRIC),
            Range("GREEDY-CIS", -1.0, -0.2, ("m=100",), SOURCE, SIGNALLED),
            Range("GREEDY-CIS", 0.2, np.inf, ("m=100",), SOURCE, UNSIGNALLED),
        ),
    ),
    Claim(
        "With 300 pages, some pages with many signals are crawled more and some less.",
        SOURCE,
        (
            Range("GREEDY-CIS", 0.2, 1.0, ("m=300",), SOURCE, MORE),
            Range("GREEDY-CIS", 0.2, 1.0, ("m=300",), SOURCE, LESS),
        ),
        note="A page is crawled more or less if its rate is off BASELINE's by a tenth.",
    ),
    Claim(
        "Those with high change rates are crawled more.",
        SOURCE,
        (Range("GREEDY-CIS", 0.3, 1.0, ("m=300",), SOURCE, BY_CHANGES),),
    ),
    Claim(
        "With 300 pages, pages with no or few signals are crawled about as often as BASELINE does.",
        SOURCE,
        (
            Range("GREEDY-CIS", 0.95, 1.0, ("m=300",), SOURCE, LINE),
            Range("GREEDY-CIS", -MARGIN, MARGIN, ("m=300",), SOURCE, UNSIGNALLED),
        ),
        note="About: on the whole by less than a tenth, as above. They keep close to a line a "
        "little below the diagonal: the crawls that pages with signals gain are theirs.",
    ),
)


def statistics(
    rates: FloatArray, optimal: FloatArray, pages: Mapping[str, FloatArray]
) -> dict[str, float]:
    """Return statistics of a policy's crawl rates by page against the optimal ones, for claims."""
    many, few = pages["recall"] > HIGH, pages["recall"] < LOW
    gain = rates - optimal
    return {
        METRIC: correlation(pages["recall"], gain, ranked=True),
        SIGNALLED: page_rates.rate_change(rates, optimal, many),
        UNSIGNALLED: page_rates.rate_change(rates, optimal, few),
        MORE: page_rates.share_above(rates, optimal, many),
        LESS: page_rates.share_below(rates, optimal, many),
        BY_CHANGES: correlation(pages["change_rate"][many], gain[many], ranked=True),
        LINE: float(np.corrcoef(rates[few], optimal[few])[0, 1]),
    }


EXPERIMENT = Experiment(
    name="ncis-fig5",
    title=TITLE,
    claim=(
        "With few pages GREEDY-CIS moves crawls from pages with many signals to the others. With "
        "more pages it crawls some pages with many signals more: those with high change rates."
    ),
    metric=METRIC,
    repetitions=20,
    settings=measure_settings(
        sweep("partial", (100, 300)),
        page_rates.measures({"GREEDY": "Greedy", "GREEDY-CIS": "GreedyCIS"}),
        ID,
        quick={"horizon": 100.0},
    ),
    derive=partial(page_rates.compared, statistics=statistics),
    claims=CLAIMS,
    expected=(
        Range("GREEDY", -0.02, 0.02, ("m=100", "m=300"), "section 6.4", SIGNALLED),
        Trend("GREEDY", "above", "GREEDY-CIS", ("m=100",), SOURCE, metric=METRIC),
    ),
    pictures={
        f"rates_by_{name}": page_rates.picture(TITLE, name, page_rates.NO_SIGNALS)
        for name in ("recall", "change_rate")
    },
)
