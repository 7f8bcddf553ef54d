"""Section 4.5: the risk bound on the refresh periods of curve fitting, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crawl_envs.evaluation import Row
from crawl_envs.types import FloatArray
from scripts.experiments.longevity.setup import sites
from scripts.experiments.longevity.setup.curves import points_of, stalenesses
from scripts.experiments.longevity.setup.policies import (
    BOUNDS,
    FITTING,
    HISTORIES,
    RISK,
    make_policy,
    settings_at,
)
from scripts.experiments.longevity.setup.runs import (
    ID,
    STEADY,
    TICK,
    by_knob,
    ledgers,
    steady,
    ticking,
)
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.rows import gathered
from scripts.study.settings import Measurement

TITLE = "The risk bound of section 4.5"
CLAIM = (
    "A refresh period of at most rho T / Dmax keeps the utility lost between refreshes of a page "
    "below rho T, whatever the page does."
)
METRIC = "staleness"
REFERENCE = FITTING
REPETITIONS, QUICK_REPETITIONS = 5, 2

DRAWN, SITE = "quality", "garden-handbook"
"""A drawn set, whose pages are stationary, and the shipped record, whose pages are not."""
PAGES, QUICK_PAGES = 500, 60
RISKS = (RISK, 30.0, 100.0)
BOUNDED = {f"{FITTING}, risk {risk:g}": risk for risk in RISKS}
LABELS = (FITTING, *BOUNDED, BOUNDS)
FIRST = next(iter(BOUNDED))
KNOBS = {
    FITTING: tuple(float(f"{knob:.4g}") for knob in np.geomspace(0.007, 8.0, 9)),
    BOUNDS: tuple(float(f"{knob:.4g}") for knob in np.geomspace(0.25, 20.0, 9)),
}
"""Thresholds in days, by the policy without its risk."""
COSTS = (0.1, 0.2)
AT = settings_at(DRAWN, COSTS)
THRESHOLD, LOSS = "threshold", "largest loss"
"""T, and the largest utility of a page at a decision, before it is refreshed; in days, an entry per
knob."""
SHARE, SHARE_OF_FIRST = "loss over its bound", f"loss over the bound of risk {RISK:g}"
"""LOSS over rho T and a tick, the largest of all knobs: decisions are two days apart, so that a
period of rho T ends up to a tick later."""


def risk_of(label: str) -> float | None:
    """Return rho of a label, None without a bound."""
    return RISK if label == BOUNDS else BOUNDED.get(label)


class WithLosses:
    """A policy, and the largest utility that a refresh of any page ever had at its decisions."""

    def __init__(self, env: Any, make: Any) -> None:
        self.policy, self.core, self.largest = make(env), env.unwrapped, 0.0
        self.observe = self.policy.observe

    def predict(self, *arguments: Any, **more: Any) -> Any:
        """Return the policy's action."""
        self.largest = max(self.largest, float(losses(self.core).max()))
        return self.policy.predict(*arguments, **more)


def losses(core: Any) -> FloatArray:
    """Return the utility of a refresh of each page now, eq. 4 with its true divergence, (m,)."""
    truth, tracker = core.true_divergence(0), core.tracker(0)
    lost = tracker.problem.importance * (tracker.elapsed * truth.divergence - truth.area)
    return np.where(tracker.alive, lost, 0.0)


def played(
    seed: int, *, label: str, pages: str, num_pages: int, knobs: Sequence[float]
) -> Mapping[str, float]:
    """Return cost and staleness from the second month on, and the largest loss, by threshold."""
    given: dict[str, Any] = {"histories": HISTORIES}
    if risk_of(label) is not None:
        given["risk"] = risk_of(label)
    kind = "DivergenceBounds" if label == BOUNDS else "CurveFitting"
    alive: float = num_pages
    if pages == SITE:
        alive = sites.alive_pages(sites.record(SITE))
        env: Any = sites.replayed(SITE, signals="none", form="refresh", bandwidth=1.0 / TICK)
    else:
        env = ticking(pages, num_pages)

    def play(knob: float) -> Mapping[str, float]:
        make = partial(make_policy, knob=knob, kind=kind, given=given)
        records, policy = ledgers(env, partial(WithLosses, make=make), seed)
        return {THRESHOLD: knob, LOSS: policy.largest, **steady(records, alive)}

    return by_knob(knobs, play)


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
EXPECTED = (
    Range(FITTING, 1.0, np.inf, (DRAWN,), "without a bound", SHARE_OF_FIRST),
    Trend(FIRST, "above", FITTING, AT, "static pages are refreshed, too"),
)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return all thresholds on the drawn set and on the shipped record."""
    size, step = (QUICK_PAGES, 4) if quick else (PAGES, 1)
    measures = {
        label: partial(played, label=label, knobs=KNOBS.get(label, KNOBS[FITTING])[::step])
        for label in LABELS
    }
    return [
        Measurement(DRAWN, measures, {"pages": DRAWN, "num_pages": size}, ID),
        Measurement(SITE, measures, {"pages": SITE, "num_pages": size}, ID, most=1),
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return stalenesses at equal cost, and losses over the bounds."""
    derived = list(stalenesses(points_of(rows, STEADY)))
    thresholds = gathered(rows, THRESHOLD)
    for (setting, label, seed), lost in gathered(rows, LOSS).items():
        for metric, risk in ((SHARE, risk_of(label)), (SHARE_OF_FIRST, RISK)):
            if risk is not None:
                longest = risk * thresholds[setting, label, seed] + TICK
                share = float((lost / longest).max())
                derived.append(Row(ID, setting, label, seed, metric, share))
    return derived


def _staleness(rows: Sequence[Row], path: Path) -> None:
    """Draw staleness against cost."""
    from scripts.experiments.longevity.setup.charts import curves_by_cost

    title = f"{TITLE}: what it costs, from day 32 on; {SITE} has one history"
    curves_by_cost(points_of(rows, STEADY), path, title=title, labels=LABELS, black=(BOUNDS,))


def _losses(rows: Sequence[Row], path: Path) -> None:
    """Draw the largest loss and its bounds, rho T and a tick, against the threshold."""
    import pandas as pd

    from scripts.present import charts

    parts, thresholds = [], gathered(rows, THRESHOLD)
    for key, lost in gathered(rows, LOSS).items():
        each = {"x": thresholds[key], "y": lost, "panel": key[0], "label": key[1]}
        parts.append(pd.DataFrame(each))
    data = pd.concat(parts).groupby(["panel", "label", "x"], as_index=False).y.max()
    looks, own = charts.styles(LABELS, (BOUNDS,)), {}
    for label, risk in BOUNDED.items():
        bound = data[data.label == label]
        name = f"bound of risk {risk:g}"
        data = pd.concat([data, bound.assign(label=name, y=risk * bound.x + TICK)])
        own[name] = {"color": looks[label]["color"], "linestyle": ":", "marker": ""}
    charts.lines(
        data,
        path,
        charts.Frame(
            f"{TITLE}: the largest loss of a page at a decision\nthe largest of all seeds",
            charts.Axis("threshold T (days)", "log"),
            charts.Axis("utility lost (divergence x days)", "log"),
        ),
        labels=(*LABELS, *own),
        black=(BOUNDS,),
        own=own,
    )


PICTURES = {"staleness": _staleness, "losses": _losses}
