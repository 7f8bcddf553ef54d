"""Olston and Pandey, section 4.5: effect and cost of the risk bound on refresh periods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments.longevity.measures import curves, pictures, plays, sites
from scripts.experiments.longevity.measures.entrants import BOUNDS, FITTING, ONLINE, RISK, steps
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import gathered, indexed
from scripts.study.settings import Measurement, spec

TITLE = "The risk bound of section 4.5"

DRAWN, SITE = "quality", "garden-handbook"
"""A drawn set with stationary pages, and the shipped record, whose pages are not stationary."""
PAGES, QUICK_PAGES = 500, 60
RISKS = (RISK, 30.0, 100.0)
BOUNDED = {f"{FITTING}, risk {risk:g}": risk for risk in RISKS}
LABELS = (FITTING, *BOUNDED, BOUNDS)
FIRST = next(iter(BOUNDED))
RISK_OF = BOUNDED | {BOUNDS: RISK}
"""rho of the labels with a bound."""
FITTED = replace(ONLINE[FITTING], knobs=steps(0.007, 8.0, 9))
ENTRANTS = {
    FITTING: FITTED,
    **{
        label: replace(FITTED, given={**FITTED.given, "risk": risk})
        for label, risk in BOUNDED.items()
    },
    BOUNDS: replace(ONLINE[BOUNDS], knobs=steps(0.25, 20.0, 9)),
}
ALL = curves.at_costs(DRAWN, (0.1, 0.2))
THRESHOLD, LOSS = "threshold", "largest loss"
"""T, and the largest utility of a page at a decision, before its refresh; in days, per knob."""
SHARE, SHARE_OF_FIRST = "loss over its bound", f"loss over the bound of risk {RISK:g}"
"""LOSS over rho T plus a tick, the largest of all knobs. Decisions are two days apart, so a period
of rho T ends up to a tick late."""


def losses(core: Any) -> FloatArray:
    """Return the utility (eq. 4) of refreshing each page now, by its true divergence, (m,)."""
    truth, tracker = core.true_divergence(0), core.tracker(0)
    lost = tracker.problem.importance * (tracker.elapsed * truth.divergence - truth.area)
    return np.where(tracker.alive, lost, 0.0)


def read(core: Any) -> tuple[Any, float]:
    """Return the episode's ledger, and the largest utility of refreshing one page now."""
    return core.ledger(), float(losses(core).max())


@spec("longevity-risk-bound")
def swept(seed: int, *, entrant: plays.Entrant, pages: str, num_pages: int) -> dict[str, float]:
    """Return cost and staleness after the first month, and the largest loss, by threshold."""
    if pages == SITE:
        alive = sites.second_half(SITE).alive
        env: Any = sites.replayed(SITE, form="refresh", bandwidth=1.0 / plays.TICK)
    else:
        alive, env = num_pages, plays.ticking(pages, num_pages, **entrant.shown)

    def measure(readings: list[tuple[Any, float]]) -> dict[str, float]:
        largest = max(loss for _, loss in readings[:-1])
        return {LOSS: largest, **plays.steady([ledger for ledger, _ in readings], alive)}

    metrics = plays.sweep(env, entrant, seed, measure, read)
    return metrics | indexed(THRESHOLD, entrant.knobs)


def _within(labels: Sequence[str], metric: str) -> tuple[Range, ...]:
    return tuple(Range(label, 0.0, 1.0, (DRAWN,), "section 4.5", metric) for label in labels)


CLAIMS = (
    Claim(
        "In the worst case the utility lost without a refresh is at most rho T.",
        "section 4.5",
        _within((*BOUNDED, BOUNDS), SHARE),
        "The largest loss of any page at any decision, over rho T and the two days between "
        "decisions, the largest of all thresholds. Curve fitting without a bound is judged below "
        f"by the bound of risk {RISK:g}. The record has one history, and so no intervals.",
    ),
)


def measurements(quick: bool) -> list[Measurement]:
    """Return the measurements of the drawn set and of the shipped record, by threshold."""
    size, step = (QUICK_PAGES, 4) if quick else (PAGES, 1)
    measures = {
        label: partial(swept, entrant=entrant.every(step)) for label, entrant in ENTRANTS.items()
    }
    return [
        Measurement(name, measures, {"pages": name, "num_pages": size}, plays.ID, most=limit)
        for name, limit in ((DRAWN, None), (SITE, 1))
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of staleness at equal cost, and of the largest losses over their bounds."""
    derived = curves.compared(rows, stretch=plays.STEADY)
    thresholds = gathered(rows, THRESHOLD)
    for (setting, label, seed), lost in gathered(rows, LOSS).items():
        for metric, risk in ((SHARE, RISK_OF.get(label)), (SHARE_OF_FIRST, RISK)):
            if risk is not None:
                longest = risk * thresholds[setting, label, seed] + plays.TICK
                share = float((lost / longest).max())
                derived.append(Row(plays.ID, setting, label, seed, metric, share))
    return derived


def _losses(rows: Sequence[Row], path: Path) -> None:
    """Draw the largest loss by threshold T, and its bound: risk rho times T, plus a tick."""
    parts, thresholds = [], gathered(rows, THRESHOLD)
    for key, lost in gathered(rows, LOSS).items():
        columns = {"x": thresholds[key], "y": lost, "panel": key[0], "label": key[1]}
        parts.append(pd.DataFrame(columns))
    data = pd.concat(parts).groupby(["panel", "label", "x"], as_index=False).y.max()
    looks, bounds = charts.styles(LABELS, (BOUNDS,)), {}
    for label, risk in BOUNDED.items():
        bound = data[data.label == label]
        name = f"bound of risk {risk:g}"
        data = pd.concat([data, bound.assign(label=name, y=risk * bound.x + plays.TICK)])
        bounds[name] = {"color": looks[label]["color"], "linestyle": ":", "marker": ""}
    charts.lines(
        data,
        path,
        charts.Frame(
            f"{TITLE}: the largest loss of a page at a decision\nthe largest of all seeds",
            charts.Axis("threshold T (days)", "log"),
            charts.Axis("utility lost (divergence x days)", "log"),
        ),
        labels=(*LABELS, *bounds),
        black=(BOUNDS,),
        looks=bounds,
    )


EXPERIMENT = Experiment(
    name="longevity-risk",
    title=TITLE,
    claim=(
        "A refresh period of at most rho T / Dmax keeps the utility lost between refreshes of "
        "a page below rho T, whatever the page does."
    ),
    metric="staleness",
    references=(FITTING,),
    repetitions=5,
    settings=measurements,
    derive=derive,
    claims=CLAIMS,
    expected=(
        Range(FITTING, 1.0, np.inf, (DRAWN,), "without a bound", SHARE_OF_FIRST),
        Trend(FIRST, "above", FITTING, ALL, "static pages are refreshed, too"),
    ),
    pictures={
        "staleness": partial(
            pictures.curves_by_cost,
            stretch=plays.STEADY,
            title=f"{TITLE}: what it costs, from day 32 on; {SITE} has one history",
            labels=LABELS,
            black=(BOUNDS,),
        ),
        "losses": _losses,
    },
)
