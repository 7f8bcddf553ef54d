"""LambdaCrawl's crawls at random instants beside crawls that are not random, in the long run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import policies as crawl_policies
from crawl_envs import instances
from crawl_envs.evaluation import Row
from crawl_envs.instances.urls.lambdacrawl import CRAWLS_PER_PAGE, complete_or_not
from crawl_envs.types import Instance
from scripts.experiments.lambdacrawl.setup.costs import (
    BINARY_BOUND,
    BLC,
    BOUND,
    COST_NAMES,
    J_B,
    J_H,
    LC,
    Pages,
    binary_bound,
    formula_costs,
)
from scripts.experiments.lambdacrawl.setup.long_run import compiled_costs
from scripts.present.verdicts import Range, Trend
from scripts.study.settings import Measurement

TITLE = "Deterministic crawls beside LambdaCrawl's Poisson crawls"
CLAIM = (
    "We expected crawls that are spaced evenly, or greedily, to cost about a third less than "
    "Poisson crawls, and to come within half a percent of the least possible cost. All other "
    "margins were set after the simulation."
)
CLAIMS = ()
METRIC = J_H
REPETITIONS, QUICK_REPETITIONS = 20, 2
ID = "CrawlHarmonic-v0"

POISSON, EVEN = ", Poisson", ", even"
FORMULA = LC + ", formula"
BLC_FORMULA = BLC + ", formula"
GREEDY_H, GREEDY_B = "GREEDY-HARMONIC", "GREEDY-NCIS"
REFERENCE = FORMULA
FURTHER_REFERENCES = (BOUND,)
COLUMNS = ("elapsed", "signals", "importance", "change_rate", "recall", "false_signal_rate")
SIMULATED: dict[str, Callable[[], Any]] = {
    LC + POISSON: partial(crawl_policies.make, "LambdaCrawl", action_form="rates"),
    LC + EVEN: partial(crawl_policies.make, "LambdaCrawl", action_form="page"),
    GREEDY_H: partial(crawl_policies.make, "GreedyHarmonic", features=(*COLUMNS, "complete")),
    BLC + POISSON: partial(crawl_policies.make, "BinaryLambdaCrawl", action_form="rates"),
    BLC + EVEN: partial(crawl_policies.make, "BinaryLambdaCrawl", action_form="page"),
    GREEDY_B: partial(crawl_policies.make, "GreedyNCIS", features=COLUMNS),
}
HARMONIC = (FORMULA, LC + POISSON, LC + EVEN, GREEDY_H, BOUND)
BINARY = (BLC_FORMULA, BLC + POISSON, BLC + EVEN, GREEDY_B, BINARY_BOUND)

MIXED, UNOBSERVED = "mixed", "unobserved"
LARGE = {"num_pages": 100_000, "start": 60.0, "end": 120.0}
SMALL = {"num_pages": 1000, "start": 200.0, "end": 1200.0}
QUICK = {"num_pages": 200, "start": 20.0, "end": 60.0}
LARGE_DRAWS = 6
KINDS = (UNOBSERVED, MIXED)
LARGER = tuple(f"{kind}, m=100000" for kind in KINDS)
SMALLER = tuple(f"{kind}, m=1000" for kind in KINDS)
EVERYWHERE = (*LARGER, *SMALLER)
ALONE = (LARGER[0], SMALLER[0])
BELOW = {J_H: "J_h_below", J_B: "J_b_below"}
"""Relative reduction of a cost against the formula of the Poisson policy, LC or BLC."""
NO_PAPER = "not in the paper"

EXPECTED = (
    *(
        Range(label, 0.30, 0.37, EVERYWHERE, "expected: about a third", metric=BELOW[J_H])
        for label in (LC + EVEN, GREEDY_H, BOUND)
    ),
    *(Range(LC + POISSON, -0.02, 0.02, EVERYWHERE, "props. 1, 4", metric=BELOW[J_H]),),
    *(Range(BLC + POISSON, -0.02, 0.02, ALONE, "eq. 12", metric=BELOW[J_B]),),
    Trend(FORMULA, "above", LC + EVEN, EVERYWHERE, NO_PAPER),
    Trend(LC + EVEN, "above", GREEDY_H, EVERYWHERE, NO_PAPER),
    Trend(GREEDY_H, "not below", BOUND, EVERYWHERE, "a bound in the long run"),
    Range(GREEDY_H, -0.005, 0.005, EVERYWHERE, "margin ours", metric="J_h_over_bound"),
    Trend(GREEDY_B, "not below", BINARY_BOUND, EVERYWHERE, "a bound in the long run", metric=J_B),
    Range(GREEDY_B, 0.15, 0.35, ALONE, "margin set afterwards", metric=BELOW[J_B]),
)


def drawn(seed: int, kind: str, num_pages: int) -> Instance:
    """Return the instance of a seed, with or without signals."""
    bandwidth = CRAWLS_PER_PAGE * num_pages
    instance = instances.make("lambdacrawl", num_pages=num_pages, bandwidth=bandwidth, seed=seed)
    if kind == MIXED:
        return instance
    none = np.zeros(num_pages, np.bool_)
    return complete_or_not(instance.importance, instance.change_rate, none, bandwidth=bandwidth)


def crawled(
    seed: int, *, label: str, kind: str, num_pages: int, start: float, end: float
) -> Mapping[str, float]:
    """Return costs of a policy, simulated from ``start`` to ``end``."""
    return compiled_costs(drawn(seed, kind, num_pages), SIMULATED[label](), seed, start, end)


def by_formula(
    seed: int, *, label: str, kind: str, num_pages: int, start: float, end: float
) -> Mapping[str, float]:
    """Return costs by formula, or those of a bound."""
    instance = drawn(seed, kind, num_pages)
    pages = Pages(instance.importance, instance.change_rate, instance.complete)
    if label == BINARY_BOUND:
        return {J_B: binary_bound(instance)}
    name = label.partition(",")[0]
    costs = formula_costs(name, pages, instance.bandwidth)
    return {metric: costs[metric] for metric in (J_H, J_B)}


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return measurements of all labels, with and without signals, at both sizes."""
    measures = {
        label: partial(crawled if label in SIMULATED else by_formula, label=label)
        for label in (*HARMONIC, *BINARY)
    }
    sizes = (
        {SMALLER: (QUICK, None)}
        if quick
        else {LARGER: (LARGE, LARGE_DRAWS), SMALLER: (SMALL, None)}
    )
    return [
        Measurement(name, measures, {"kind": kind, **size}, ID, most=most)
        for names, (size, most) in sizes.items()
        for name, kind in zip(names, KINDS, strict=True)
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return costs relative to the Poisson policies', and harmonic ones relative to the bound."""
    return list(_derived(rows))


def _derived(rows: Sequence[Row]) -> Iterator[Row]:
    values = {(row.setting, row.policy, row.seed, row.metric): row.value for row in rows}
    for (setting, label, seed, metric), value in values.items():
        if metric not in BELOW:
            continue
        base = values.get((setting, FORMULA if label in HARMONIC else BLC_FORMULA, seed, metric))
        if base is not None and label not in (FORMULA, BLC_FORMULA):
            yield Row(ID, setting, label, seed, BELOW[metric], 1.0 - value / base)
        bound = values.get((setting, BOUND, seed, metric))
        if metric == J_H and label == GREEDY_H and bound is not None:
            yield Row(ID, setting, label, seed, "J_h_over_bound", value / bound - 1.0)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw costs over those of the Poisson policies' formulas, a panel per cost."""
    import pandas as pd

    from scripts.present import charts
    from scripts.study.means import means, table

    parts = []
    for metric, labels, base in ((J_H, HARMONIC, FORMULA), (J_B, BINARY, BLC_FORMULA)):
        panel = f"{COST_NAMES[metric]},\nin % of that of {base}"
        values = table([row for row in rows if row.policy in labels], BELOW[metric])
        parts.append(means(values).assign(panel=panel))
    data = pd.concat(parts)
    data = data.assign(x=100.0 * (1.0 - data["mean"]), half=100.0 * data["half"])
    data = data.rename(columns={"setting": "label", "policy": "y"})
    charts.dots(
        data,
        path,
        charts.Frame(
            f"{TITLE}\nstand-in pages, R = 0.2 m per day, after the start; bars: 95% intervals",
            charts.Axis("% of the Poisson policy's cost"),
            shared="none",
            upright=[charts.Rule(100.0)],
        ),
    )


PICTURES = {"costs": plot}
