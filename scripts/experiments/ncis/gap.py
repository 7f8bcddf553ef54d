"""Measure how far policies are in the long run from the optimum with signals (Theorem 1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import policies as crawl_policies
from crawl_envs import instances
from crawl_envs.evaluation import simulate
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.bounds import BASELINE, OPTIMUM, baseline, optimum
from scripts.study.specs import spec

TITLE = "Long-run distance to the optimum with noisy signals"

NUM_PAGES = (100, 200, 300, 500, 750, 1000)
BANDWIDTH = 100.0

THRESHOLDS = "thresholds"
LABELS: dict[str, tuple[str, dict[str, Any]]] = {
    THRESHOLDS: ("ThresholdNCIS", {}),
    "GREEDY-NCIS": ("GreedyNCIS", {}),
    "G-NCIS-APPROX-1": ("GreedyNCISApprox", {"terms": 1}),
    "G-NCIS-APPROX-2": ("GreedyNCISApprox", {"terms": 2}),
    "GREEDY-CIS": ("GreedyCIS", {}),
    "GREEDY": ("Greedy", {}),
}
PAGES = {f"m={num_pages}": num_pages for num_pages in NUM_PAGES}
EVERYWHERE = tuple(PAGES)
MARGIN = 0.005


def drawn(seed: int, num_pages: int) -> Any:
    """Return the instance of a seed with the pages of figure 6."""
    return instances.make("noisy", num_pages=num_pages, bandwidth=BANDWIDTH, seed=seed)


@spec("ncis-long-run-freshness")
def crawled(
    seed: int, *, policy: str, num_pages: int, start: float, end: float, **arguments: Any
) -> Mapping[str, float]:
    """Return a policy's freshness, accuracy and crawl rate from time ``start`` to ``end``."""
    acting: Any = crawl_policies.make(policy, **arguments)
    instance = drawn(seed, num_pages)
    early, late = (simulate(instance, acting, time, seed).ledger for time in (start, end))
    return {
        "freshness": (late.fresh_time - early.fresh_time) / (late.alive_time - early.alive_time),
        "accuracy": (late.hits - early.hits) / (late.requests - early.requests),
        "crawl_rate": (late.crawls - early.crawls) / (late.time - early.time),
    }


@spec("ncis-long-run-optimum")
def bounded(
    seed: int, *, signals: bool, num_pages: int, start: float, end: float
) -> Mapping[str, float]:
    """Return the optimum of the continuous class, as freshness and accuracy, and its crawl rate."""
    value = (optimum if signals else baseline)(drawn(seed, num_pages))
    return {"freshness": value, "accuracy": value, "crawl_rate": BANDWIDTH}


EXPERIMENT = Experiment(
    name="ncis-gap",
    title=TITLE,
    claim=(
        "The discrete policy is always close to the optimal continuous one. Measured: freshness "
        "from time 1000 to 3000, which leaves out the start with all pages fresh."
    ),
    metric="freshness",
    references=(OPTIMUM,),
    repetitions=20,
    settings=measure_settings(
        {
            name: {"num_pages": num_pages, "start": 1000.0, "end": 3000.0}
            for name, num_pages in PAGES.items()
        },
        {
            OPTIMUM: partial(bounded, signals=True),
            BASELINE: partial(bounded, signals=False),
            **{
                label: partial(crawled, policy=policy, **arguments)
                for label, (policy, arguments) in LABELS.items()
            },
        },
        "CrawlNCIS-v0",
        quick={"start": 10.0, "end": 30.0},
        quick_settings=EVERYWHERE[:2],
    ),
    claims=(
        Claim(
            "The discrete policy is close to the optimal continuous one",
            "section 6, claim 1",
            (Trend("GREEDY-NCIS", "about", OPTIMUM, EVERYWHERE, "margin ours", margin=MARGIN),),
            "The paper shows it without signals only (figure 3).",
        ),
    ),
    expected=(
        Trend(THRESHOLDS, "about", OPTIMUM, EVERYWHERE, "Theorem 1, simulated", margin=0.001),
        Trend(OPTIMUM, "above", "GREEDY-NCIS", EVERYWHERE, "it is a bound"),
        Range(THRESHOLDS, 99.5, 100.5, EVERYWHERE, "the budget is spent", metric="crawl_rate"),
    ),
    pictures={
        "freshness": figures.lines(
            [Series("freshness", labels=tuple(LABELS), minus=OPTIMUM, factor=-1.0)],
            Frame(
                f"{TITLE}\nbars: 95% intervals over {{seeds}} repetitions",
                Axis(
                    "pages m (logarithmic scale), bandwidth 100 crawls per unit of time",
                    "log",
                    ticks=NUM_PAGES,
                ),
                Axis("OPTIMUM minus freshness\n(linear below .001, logarithmic above)", "symlog"),
                across=[Rule(0.0, dash="-")],
            ),
            positions=PAGES,
            labels=tuple(LABELS),
        )
    },
)
