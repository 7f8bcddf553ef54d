"""Busa-Fekete et al., figure 11 (appendix C): signals that arrive late."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from crawl_envs.evaluation import evaluate
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.experiments.measures import over_pages
from scripts.experiments.measures.over_pages import ID
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Trend
from scripts.study.bounds import BASELINE, baseline, optimum
from scripts.study.entrants import candidate_of
from scripts.study.specs import spec

TITLE = "Signals that arrive late (NCIS paper, figure 11)"
MEAN_DELAY = 6.0
OPTIMUM, PROMPT = "OPTIMUM, no delay", "GREEDY-NCIS, no delay"
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
    """Return the label of a policy with the unit in which delays are counted."""
    return f"{label}, {unit}"


IGNORING, DISCARDING, AWARENESS = (
    {unit: of_unit(label, unit) for unit in DELAYS} for label in (IGNORE, DISCARD, AWARE)
)
EVERYWHERE = tuple(over_pages.PAGES)
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


@spec("ncis-delay-episode")
def episode_metrics(
    seed: int, *, policy: str, delay: Mapping[str, Any] | None, **arguments: Any
) -> Mapping[str, float]:
    """Simulate a policy with noisy signals, delayed or not, and return the episode's metrics."""
    delay = dict(delay) if delay else None
    rows = evaluate(ID, {policy: candidate_of(policy).factory}, [seed], delay=delay, **arguments)
    return {row.metric: row.value for row in rows}


@spec("ncis-delay-optimum")
def bounded(seed: int, *, signals: bool, **arguments: Any) -> Mapping[str, float]:
    """Return the optimum of the continuous class, with or without signals, for prompt signals."""
    bounds = {"": optimum if signals else baseline}
    rows = evaluate(ID, {}, [seed], bounds=bounds, **arguments)
    return {row.metric: row.value for row in rows}


DELAYED = {
    IGNORE: "GreedyNCIS",
    DISCARD: "GreedyNCIS:delay_window=0.05",
    AWARE: "GreedyNCISDelayed",
}
"""GREEDY-NCIS-D discards signals within 5 slots, of 1/100 each, after a crawl."""
SERVED = Axis("share of requests served fresh")
LOST = f"{{}}: minus {PROMPT}"


def _labels(unit: str) -> dict[str, str]:
    return {of_unit(label, unit): label for label in DELAYED}


PROMPT_LABELS = {label: label for label in (OPTIMUM, PROMPT, BASELINE)}

EXPERIMENT = Experiment(
    name="ncis-fig11",
    title=TITLE,
    claim=(
        "A delay of the signals costs GREEDY-NCIS accuracy, unless the bandwidth is tight. "
        "Discarding signals that arrive within 5 slots of a crawl almost recovers the loss at "
        "m=100."
    ),
    metric="accuracy",
    references=(PROMPT,),
    repetitions=30,
    settings=measure_settings(
        over_pages.sweep("noisy"),
        {
            BASELINE: partial(bounded, signals=False),
            OPTIMUM: partial(bounded, signals=True),
            PROMPT: partial(episode_metrics, policy="GreedyNCIS", delay=None),
            **{
                of_unit(label, unit): partial(episode_metrics, policy=policy, delay=delay)
                for unit, delay in DELAYS.items()
                for label, policy in DELAYED.items()
            },
        },
        ID,
        quick=over_pages.QUICK,
        quick_settings=EVERYWHERE[:2],
    ),
    claims=CLAIMS,
    expected=(
        Trend(AWARENESS["slots"], "about", DISCARDING["slots"], EVERYWHERE, "ours", margin=0.002),
        *(
            Trend(AWARENESS["time"], "above", item["time"], EVERYWHERE, "ours")
            for item in (IGNORING, DISCARDING)
        ),
        Trend(AWARENESS["slots"], "above", IGNORING["slots"], EVERYWHERE[:4], "ours"),
        Trend(AWARENESS["slots"], "above", BASELINE, EVERYWHERE, "ours"),
        Trend(AWARENESS["time"], "not below", BASELINE, EVERYWHERE, "ours"),
    ),
    pictures={
        "accuracy": figures.lines(
            [
                *(
                    Series("accuracy", title, labels=_labels(unit) | PROMPT_LABELS)
                    for unit, title in TITLES.items()
                ),
                *(
                    Series("accuracy", LOST.format(title), labels=_labels(unit), minus=PROMPT)
                    for unit, title in TITLES.items()
                ),
            ],
            Frame(
                f"{TITLE}\n95% intervals over {{seeds}} repetitions",
                Axis(
                    "pages m (logarithmic scale), R = 100 crawls per unit of time",
                    "log",
                    ticks=over_pages.NUM_PAGES,
                ),
                {title: SERVED._replace(limits=(0.0, None)) for title in TITLES.values()}
                | {LOST.format(title): SERVED for title in TITLES.values()},
                columns=len(TITLES),
                shared="x",
                across=[Rule(0.0, panel=LOST.format(title)) for title in TITLES.values()],
            ),
            positions=over_pages.PAGES,
            labels=(OPTIMUM, BASELINE, PROMPT, AWARE, DISCARD, IGNORE),
            black=(OPTIMUM, BASELINE),
        )
    },
)
