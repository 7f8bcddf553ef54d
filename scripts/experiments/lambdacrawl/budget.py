"""Compare costs of LambdaCrawl, other policies and crawlers in use, over the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd

import policies as crawl_policies
from crawl_envs.evaluation import Row
from scripts.experiments.figures import Axis, Frame, Rule, Series, lines
from scripts.experiments.measures.costs import (
    BINARY_BOUND,
    BLC,
    BLC_EPS,
    BOUND,
    CC,
    COST_NAMES,
    J_B,
    J_H,
    LC,
    LCA,
    UC,
    both_costs,
    drawn,
)
from scripts.experiments.measures.derived import relative_to
from scripts.experiments.measures.long_run import (
    CRAWL_RATE,
    Counted,
    compiled_course,
    proportionality,
    stepped_costs,
)
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Expected, Range, Trend, trends
from scripts.study.means import means, paired, table
from scripts.study.settings import Measurement, spec

TITLE = "Cost over budget, LambdaCrawl and shipped crawlers"
ID = "CrawlHarmonic-v0"

BUDGETS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
SETTING_BUDGETS = {f"R={budget:g}m": budget for budget in BUDGETS}
"""Budgets by setting."""
NUM_PAGES, QUICK_PAGES = 1000, 100
EVEN, GREEDY, GREEDY_B = "LC, even", "GREEDY-HARMONIC", "GREEDY-NCIS"
NUTCH, STORM = "Nutch", "StormCrawler"
OWN_PACE = ", own pace"
"""Suffix of a shipped crawler that crawls all pages when they are due, without a budget."""
FORMULAS = (BOUND, BINARY_BOUND, LC, LCA, BLC, BLC_EPS, CC, UC)
Costs = Mapping[str, float]
COMPILED: dict[str, Callable[[], Any]] = {
    EVEN: partial(crawl_policies.make, "LambdaCrawl", action_form="page"),
    GREEDY: partial(crawl_policies.make, "GreedyHarmonic"),
    GREEDY_B: partial(crawl_policies.make, "GreedyNCIS"),
}
SHIPPED = {NUTCH: "NutchAdaptive", STORM: "StormCrawlerAdaptive"}
LABELS = (LC, LCA, BLC_EPS, CC, UC, EVEN, GREEDY, BLC, NUTCH, STORM, GREEDY_B)
BOUNDS = {J_H: BOUND, J_B: BINARY_BOUND}
ONLY = {BLC: J_B, GREEDY_B: J_B}
"""The only cost that is drawn of a label; its other cost is or may be infinite."""
START, LENGTH = (30.0, 100.0), (40.0, 150.0)
"""Start and length of the window, in crawls per page and in days; the longer time counts."""
QUICK_START, QUICK_LENGTH = (2.0, 5.0), (4.0, 10.0)
OWN_WINDOW, QUICK_OWN_WINDOW = {"start": 300.0, "end": 600.0}, {"start": 60.0, "end": 80.0}
"""Windows at own pace: Nutch starts at 30 days, and reaches 1 day after 15 changed crawls."""
HOURLY = 24.0
COSTS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Ticks of the axis of costs."""
SLOPE = "slope"
"""Slope of ln(crawls) over ln(change rate) over pages: 1 if crawls are proportional to changes."""
UNIT = {J_H: "J_h_share", J_B: "J_b_share"}
"""Costs per unit of importance: mean penalty of a page, weighted by importance."""

EVERYWHERE = tuple(f"R={budget:g}m" for budget in BUDGETS)
PACE = "own pace"
NO_PAPER = "not in the paper"
EXPECTED: tuple[Expected, ...] = (
    Trend(GREEDY, "not below", BOUND, EVERYWHERE, "a bound in the long run"),
    Range(GREEDY, -0.01, 0.05, EVERYWHERE, "margin ours", metric="J_h_over_bound"),
    Trend(EVEN, "above", GREEDY, EVERYWHERE, NO_PAPER),
    Trend(LC, "above", EVEN, EVERYWHERE, NO_PAPER),
    Trend(GREEDY_B, "not below", BINARY_BOUND, EVERYWHERE, "a bound in the long run", metric=J_B),
    Trend(GREEDY, "above", GREEDY_B, EVERYWHERE, NO_PAPER, metric=J_B),
    Trend(LCA, "above", LC, EVERYWHERE, "LC is optimal among Poisson policies"),
    Trend(BLC_EPS, "above", LC, EVERYWHERE, "LC is optimal among Poisson policies"),
    *trends(SHIPPED, "above", (LC, GREEDY), EVERYWHERE, NO_PAPER, metric=(J_H, J_B)),
    *(
        Trend(shipped + OWN_PACE, "above", GREEDY + f" at {shipped}'s pace", (PACE,), NO_PAPER)
        for shipped in SHIPPED
    ),
    *(
        Range(label + OWN_PACE, 0.8, 1.2, (PACE,), "proportional crawling; margin ours", SLOPE)
        for label in SHIPPED
    ),
)


def window(budget: float, quick: bool) -> dict[str, float]:
    """Return the start and end of the measured time, for a budget in crawls per page and day."""
    first, length = (QUICK_START, QUICK_LENGTH) if quick else (START, LENGTH)
    start = max(first[0] / budget, first[1])
    return {"start": start, "end": start + max(length[0] / budget, length[1])}


@spec("lambdacrawl-budget-formula")
def by_formula(seed: int, *, label: str, num_pages: int, budget: float, **window: float) -> Costs:
    """Return both costs of a policy by formula, or the one cost of a binary bound."""
    instance = drawn(seed, num_pages, budget=budget)
    costs = both_costs(label, instance)
    rate = {} if label == BINARY_BOUND else {CRAWL_RATE: budget}
    return costs | rate | shares(costs, instance)


@spec("lambdacrawl-budget-simulated")
def crawled(seed: int, *, label: str, num_pages: int, budget: float, **window: float) -> Costs:
    """Return the costs of a policy between two times, simulated in compiled code."""
    instance = drawn(seed, num_pages, budget=budget)
    costs = compiled_course(instance, COMPILED[label](), seed, (window["start"], window["end"]))[1]
    return {**costs, **shares(costs, instance)}


@spec("lambdacrawl-budget-shipped-crawler")
def shipped(seed: int, *, label: str, num_pages: int, budget: float, **window: float) -> Costs:
    """Return costs of a shipped crawler that crawls the page that is due first in each slot."""
    return _stepped(seed, label, "page", num_pages, budget * num_pages, **window)


@spec("lambdacrawl-budget-own-pace")
def at_own_pace(seed: int, *, label: str, num_pages: int, **window: float) -> Costs:
    """Return the costs of a shipped crawler that once an hour crawls all pages that are due."""
    return _stepped(seed, label, "refresh", num_pages, HOURLY, **window)


@spec("lambdacrawl-budget-harmonic-at-pace")
def at_pace_of(seed: int, *, label: str, num_pages: int, **window: float) -> Costs:
    """Return the costs of GREEDY-HARMONIC with as many crawls as a crawler at its own pace."""
    pace = at_own_pace(seed, label=label, num_pages=num_pages, **window)[CRAWL_RATE]
    return crawled(seed, label=GREEDY, num_pages=num_pages, budget=pace, **window)


def _stepped(
    seed: int, label: str, form: str, num_pages: int, bandwidth: float, start: float, end: float
) -> Costs:
    options: Any = {"num_pages": num_pages, "bandwidth": bandwidth, "horizon": end}
    env = gymnasium.make(ID, instance="lambdacrawl", action=form, **options)
    env.reset(seed=seed)
    policy = Counted(env, crawl_policies.make(SHIPPED[label], env), start)
    [costs] = stepped_costs(env, policy, seed, np.array([start, end]))
    instance: Any = policy.core.instance
    slope = {SLOPE: proportionality(policy.counts, instance.change_rate)}
    return {**costs, **shares(costs, instance), **slope}


def shares(costs: Costs, instance: Any) -> dict[str, float]:
    """Return the costs divided by the total importance of the pages."""
    total = instance.importance.sum()
    return {UNIT[metric]: costs[metric] / total for metric in UNIT if metric in costs}


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return measurements at all budgets, and one of the shipped crawlers at their own pace."""
    measures = {
        **{label: partial(by_formula, label=label) for label in FORMULAS},
        **{label: partial(crawled, label=label) for label in COMPILED},
        **{label: partial(shipped, label=label) for label in SHIPPED},
    }
    pages = {"num_pages": QUICK_PAGES if quick else NUM_PAGES}
    budgets = (0.1, 1.0) if quick else BUDGETS
    paced: dict[str, Any] = {}
    for label in SHIPPED:
        paced[label + OWN_PACE] = partial(at_own_pace, label=label)
        paced[f"{GREEDY} at {label}'s pace"] = partial(at_pace_of, label=label)
    return [
        *(
            Measurement(name, measures, {**pages, "budget": budget, **window(budget, quick)}, ID)
            for name, budget in SETTING_BUDGETS.items()
            if budget in budgets
        ),
        Measurement(PACE, paced, pages | (QUICK_OWN_WINDOW if quick else OWN_WINDOW), ID),
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of GREEDY-HARMONIC's cost J_h relative to that of the bound, minus 1."""
    return relative_to(rows, BOUND, {J_H: "J_h_over_bound"}, labels=(GREEDY,))


def _own_pace(rows: Sequence[Row], metric: str, panel: str) -> Iterator[pd.DataFrame]:
    """Yield the costs of crawlers at their own pace, over GREEDY-HARMONIC's with as many crawls."""
    values = table(rows, UNIT[metric])
    pace = means(table(rows, CRAWL_RATE)).set_index(["setting", "policy"])["mean"]
    for label in SHIPPED:
        base = values[values.policy == f"{GREEDY} at {label}'s pace"]
        ratio = means(paired(values[values.policy == label + OWN_PACE], base, ratio=True))
        ratio = ratio.rename(columns={"policy": "label", "mean": "y"})
        yield ratio.assign(x=pace[PACE, label + OWN_PACE], panel=panel)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw both costs, divided by the cost of their bounds, against the budget.

    Costs of shipped crawlers at their own pace are over GREEDY-HARMONIC's with as many crawls.
    """
    looks, hollow = charts.styles(LABELS), {"linestyle": "none", "fillstyle": "none"}
    marks = {label + OWN_PACE: {**looks[label], **hollow, "markersize": 11.0} for label in SHIPPED}
    panels = {metric: f"{COST_NAMES[metric]} over that of the bound" for metric in (J_H, J_B)}
    lines(
        [
            Series(
                UNIT[metric],
                panel,
                labels=[label for label in LABELS if ONLY.get(label, metric) == metric],
                settings=tuple(SETTING_BUDGETS),
                over=BOUNDS[metric],
            )
            for metric, panel in panels.items()
        ],
        Frame(
            f"{TITLE}\n{{seeds}} draws of stand-in pages, after the start; "
            "95% intervals; own pace: over GREEDY-HARMONIC with as many crawls",
            Axis("budget R / m, crawls per page and day", "log", ticks=BUDGETS),
            Axis("cost over that of the bound", "log", ticks=(1, 1.5, 2, 3, 4, 6, 8)),
            across=[Rule(1.0, "bound")],
            size=(5.4, 4.6),
        ),
        positions=SETTING_BUDGETS,
        labels=(*LABELS, *marks),
        looks=marks,
        more=pd.concat(part for item in panels.items() for part in _own_pace(rows, *item)),
    )(rows, path)


EXPERIMENT = Experiment(
    name="lambdacrawl-budget",
    title=TITLE,
    claim=(
        "Ours: at every budget the order of harmonic costs is bound, greedy, even, Poisson; "
        "the shipped crawlers, which use neither importance nor a budget, cost more than LC."
    ),
    metric=J_H,
    references=(LC, BOUND),
    repetitions=6,
    settings=measurements,
    derive=derive,
    expected=EXPECTED,
    pictures={"costs": draw},
)
