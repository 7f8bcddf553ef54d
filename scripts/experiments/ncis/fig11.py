"""Busa-Fekete et al., figure 11 (appendix C): signals that arrive late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium

import policies as crawl_policies
from crawl_envs.evaluation import Row, evaluate
from policies import solvers
from policies.ncis.delayed import GreedyNCISDelayed
from scripts.experiments.ncis.setup import sweep as ncis_sweep
from scripts.present.verdicts import Claim, Expected, Trend
from scripts.study.bounds import BASELINE, baseline
from scripts.study.settings import Measurement

TITLE = "Signals that arrive late (NCIS paper, figure 11)"
CLAIM = (
    "A delay of the signals costs GREEDY-NCIS accuracy, unless the bandwidth is tight. "
    "Discarding signals that arrive within 5 slots of a crawl almost recovers the loss at m=100."
)
METRIC = "accuracy"
REPETITIONS = 30
MEAN_DELAY = 6.0
WINDOW_SLOTS = 5.0
OPTIMUM, PROMPT = "OPTIMUM, no delay", "GREEDY-NCIS, no delay"
REFERENCE = PROMPT
IGNORE, DISCARD, AWARE = "GREEDY-NCIS", "GREEDY-NCIS-D", "GREEDY-NCIS-DELAYED"
UNITS = {"slots": "delay Poisson(6) in slots of 1/R", "time": "delay Poisson(6) in units of time"}
"""The paper does not give the unit of its delays."""
EXPONENTIAL = "exponential"
DELAYS: Mapping[str, Mapping[str, Any]] = {
    **{unit: {"kind": "poisson", "mean": MEAN_DELAY, "unit": unit} for unit in UNITS},
    EXPONENTIAL: {"kind": EXPONENTIAL, "mean": MEAN_DELAY, "unit": "slots"},
}
TITLES = {**UNITS, EXPONENTIAL: "delay exponential, mean 6 slots of 1/R"}


def of_unit(label: str, unit: str) -> str:
    """Return the label of a policy under delays in a unit."""
    return f"{label}, {unit}"


IGNORING, DISCARDING, AWARENESS = (
    {unit: of_unit(label, unit) for unit in DELAYS} for label in (IGNORE, DISCARD, AWARE)
)
EVERYWHERE = tuple(f"m={num_pages}" for num_pages in ncis_sweep.NUM_PAGES)
PLENTY, TIGHT = EVERYWHERE[:3], EVERYWHERE[-2:]
PAPER = "appendix C, figure 11"
ABOUT = 0.005
MARGINAL = (0.005, 0.0006)
SAME_INSTANCES = (
    "Instances are the same with and without delay, events are not: delays are drawn from the "
    "stream of the events."
)

CLAIMS = (
    Claim(
        "Delayed signals deteriorate GREEDY-NCIS where the bandwidth is not so tight",
        PAPER,
        tuple(Trend(PROMPT, "above", IGNORING[unit], PLENTY, PAPER) for unit in UNITS),
        SAME_INSTANCES,
    ),
    Claim(
        "Where the bandwidth is tighter, their impact is marginal",
        PAPER,
        tuple(
            Trend(PROMPT, "about", IGNORING[unit], (setting,), "margin ours", margin=margin)
            for unit in UNITS
            for setting, margin in zip(TIGHT, MARGINAL, strict=True)
        ),
        "Marginal is a quarter of what signals bring there without delay: .02 and .0025. A delay "
        "in units of time lasts for 600 crawls, and costs all that signals bring, and more.",
    ),
    Claim(
        "At m=100 GREEDY-NCIS-D is on par with GREEDY-NCIS without delay",
        PAPER,
        tuple(
            Trend(PROMPT, "about", DISCARDING[unit], EVERYWHERE[:1], "margin ours", margin=ABOUT)
            for unit in UNITS
        ),
        "No policy can use signals that have not arrived: by 6 slots, a change with a signal is "
        "seen .06 later, and recall times change rate is .25 on average, so that up to .015 of the "
        "time fresh is out of reach.",
    ),
    Claim(
        "At m=100 discarding early signals recovers some of the loss to the delay",
        PAPER,
        tuple(
            Trend(DISCARDING[unit], "above", IGNORING[unit], EVERYWHERE[:1], PAPER)
            for unit in UNITS
        ),
        "The text says that it can almost recover the drop: that is the claim above.",
    ),
    Claim(
        "Signals can be utilized even if they are delayed",
        "section 6, claim 2",
        tuple(Trend(DISCARDING[unit], "above", BASELINE, EVERYWHERE, PAPER) for unit in UNITS),
        "With delays in units of time both ways of counting signals are far worse than using none.",
    ),
    Claim(
        "The discarding of early signals handles delays that follow an exponential distribution",
        "section 7",
        (
            Trend(DISCARDING[EXPONENTIAL], "above", IGNORING[EXPONENTIAL], EVERYWHERE, "section 7"),
            Trend(DISCARDING[EXPONENTIAL], "above", BASELINE, EVERYWHERE, "section 7"),
        ),
        "The paper shows Poisson delays only.",
    ),
)
EXPECTED: tuple[Expected, ...] = (
    Trend(AWARENESS["slots"], "about", DISCARDING["slots"], EVERYWHERE, "ours", margin=0.002),
    *(
        Trend(AWARENESS["time"], "above", item["time"], EVERYWHERE, "ours")
        for item in (
            IGNORING,
            DISCARDING,
        )
    ),
    Trend(AWARENESS["slots"], "above", IGNORING["slots"], EVERYWHERE[:4], "ours"),
    Trend(AWARENESS["slots"], "above", BASELINE, EVERYWHERE, "ours"),
    Trend(AWARENESS["time"], "not below", BASELINE, EVERYWHERE, "ours"),
)


def crawled(
    seed: int,
    *,
    policy: str,
    unit: str | None,
    window_slots: float | None,
    num_pages: int,
    bandwidth: float,
    horizon: float,
) -> Mapping[str, float]:
    """Play an episode with noisy signals, delayed in the unit, or not at all."""
    delay = None if unit is None else dict(DELAYS[unit])
    window = {} if window_slots is None else {"delay_window": window_slots / bandwidth}
    make: Any = GreedyNCISDelayed
    if policy != AWARE:
        make = partial(crawl_policies.make, "GreedyNCIS", **window)
    rows = evaluate(
        ncis_sweep.ID,
        {policy: make},
        [seed],
        instance="noisy",
        num_pages=num_pages,
        bandwidth=bandwidth,
        horizon=horizon,
        delay=delay,
    )
    return {row.metric: row.value for row in rows}


def bounded(
    seed: int, *, signals: bool, num_pages: int, bandwidth: float, horizon: float
) -> Mapping[str, float]:
    """Return the optimum of the continuous class for signals without delay, or no signals."""
    env = gymnasium.make(
        ncis_sweep.ID, instance="noisy", num_pages=num_pages, bandwidth=bandwidth, horizon=horizon
    )
    env.reset(seed=seed)
    instance = env.unwrapped.instance  # type: ignore[attr-defined]  # a CrawlEnv
    value = solvers.ncis(instance, bandwidth).objective if signals else baseline(instance)
    return {"accuracy": value, "freshness": value}


def _measures() -> dict[str, Any]:
    """Return the function that measures each label."""
    prompt = partial(crawled, policy=IGNORE, unit=None, window_slots=None)
    measures: dict[str, Any] = {
        BASELINE: partial(bounded, signals=False),
        OPTIMUM: partial(bounded, signals=True),
        PROMPT: prompt,
    }
    for unit in DELAYS:
        for label, window in ((IGNORE, None), (DISCARD, WINDOW_SLOTS), (AWARE, None)):
            measures[of_unit(label, unit)] = partial(
                crawled, policy=label, unit=unit, window_slots=window
            )
    return measures


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return the measurements with and without delay, for each number of pages."""
    named = list(ncis_sweep.sweep("noisy").items())[: 2 if quick else None]
    return [
        Measurement(
            name,
            _measures(),
            {
                "num_pages": arguments["num_pages"],
                "bandwidth": arguments["bandwidth"],
                "horizon": 20.0 if quick else arguments["horizon"],
            },
            ncis_sweep.ID,
        )
        for name, arguments in named
    ]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw accuracy against the number of pages, and the loss to the delay, for each delay."""
    import pandas as pd

    from scripts.present import charts
    from scripts.study.means import means, numbered, paired, table

    values = table(rows, METRIC)
    lost = paired(values, values[values.policy == PROMPT])
    axes: dict[str, charts.Axis] = {}
    parts = []
    for name, kept, limits in (("accuracy", values, (0.0, None)), ("difference", lost, None)):
        for unit, title in TITLES.items():
            labels = {of_unit(label, unit): label for label in (IGNORE, DISCARD, AWARE)}
            if name == "accuracy":
                labels |= {label: label for label in (OPTIMUM, PROMPT, BASELINE)}
            panel = title if name == "accuracy" else f"{title}: minus {PROMPT}"
            part = means(kept[kept.policy.isin(list(labels))])
            parts.append(part.assign(label=part.policy.map(labels), panel=panel))
            axes[panel] = charts.Axis("share of requests served fresh", limits=limits)
    charts.lines(
        numbered(pd.concat(parts), "m=").rename(columns={"mean": "y"}),
        path,
        charts.Frame(
            f"{TITLE}\n95% intervals over {values.seed.nunique()} repetitions",
            charts.Axis(
                "pages m (logarithmic scale), R = 100 crawls per unit of time",
                "log",
                ticks=ncis_sweep.NUM_PAGES,
            ),
            axes,
            columns=len(TITLES),
            shared="x",
            across=[charts.Rule(0.0, panel=panel) for panel in list(axes)[len(TITLES) :]],
        ),
        labels=(OPTIMUM, BASELINE, PROMPT, AWARE, DISCARD, IGNORE),
        black=(OPTIMUM, BASELINE),
    )
