"""Compare LambdaCrawl's crawls at random instants with deterministic crawls, in the long run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import policies as crawl_policies
from crawl_envs.evaluation import Row
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.experiments.measures.costs import (
    BINARY_BOUND,
    BLC,
    BOUND,
    COST_NAMES,
    J_B,
    J_H,
    LC,
    MIXED,
    UNOBSERVED,
    both_costs,
    drawn,
)
from scripts.experiments.measures.derived import below, relative_to
from scripts.experiments.measures.long_run import compiled_course
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Expected, Range, Trend
from scripts.study.specs import spec

TITLE = "Deterministic crawls beside LambdaCrawl's Poisson crawls"

POISSON, EVEN = ", Poisson", ", even"
FORMULA = LC + ", formula"
BLC_FORMULA = BLC + ", formula"
NAMED = {FORMULA: LC, BLC_FORMULA: BLC}
"""Labels of formulas, as :func:`both_costs` names them; bounds keep their labels."""
GREEDY_H, GREEDY_B = "GREEDY-HARMONIC", "GREEDY-NCIS"
SIMULATED: dict[str, Callable[[], Any]] = {
    LC + POISSON: partial(crawl_policies.make, "LambdaCrawl", action_form="rates"),
    LC + EVEN: partial(crawl_policies.make, "LambdaCrawl", action_form="page"),
    GREEDY_H: partial(crawl_policies.make, "GreedyHarmonic"),
    BLC + POISSON: partial(crawl_policies.make, "BinaryLambdaCrawl", action_form="rates"),
    BLC + EVEN: partial(crawl_policies.make, "BinaryLambdaCrawl", action_form="page"),
    GREEDY_B: partial(crawl_policies.make, "GreedyNCIS"),
}
HARMONIC = (FORMULA, LC + POISSON, LC + EVEN, GREEDY_H, BOUND)
BINARY = (BLC_FORMULA, BLC + POISSON, BLC + EVEN, GREEDY_B, BINARY_BOUND)

KINDS = (UNOBSERVED, MIXED)
LARGER, SMALLER = (tuple(f"{kind}, m={size}" for kind in KINDS) for size in (100_000, 1000))
EVERYWHERE = (*LARGER, *SMALLER)
ALONE = (LARGER[0], SMALLER[0])
BELOW = {J_H: "J_h_below", J_B: "J_b_below"}
"""Relative reduction of a cost against the formula of the Poisson policy, LC or BLC."""
NO_PAPER = "not in the paper"

EXPECTED: tuple[Expected, ...] = (
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


@spec("lambdacrawl-deterministic-simulated")
def crawled(
    seed: int, *, label: str, kind: str, num_pages: int, start: float, end: float
) -> Mapping[str, float]:
    """Return both costs of a policy, simulated from time ``start`` to ``end``."""
    instance = drawn(seed, num_pages, kind)
    return compiled_course(instance, SIMULATED[label](), seed, (start, end))[1]


@spec("lambdacrawl-deterministic-formula")
def by_formula(
    seed: int, *, label: str, kind: str, num_pages: int, start: float, end: float
) -> Mapping[str, float]:
    """Return both long-run costs of a policy or a bound, by formula."""
    return both_costs(NAMED.get(label, label), drawn(seed, num_pages, kind))


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of costs relative to policies with random instants, and to the bound."""
    compared = [
        row
        for labels, base in ((HARMONIC, FORMULA), (BINARY, BLC_FORMULA))
        for row in relative_to(rows, base, BELOW, below, labels)
        if row.policy not in (FORMULA, BLC_FORMULA)
    ]
    return compared + relative_to(rows, BOUND, {J_H: "J_h_over_bound"}, labels=(GREEDY_H,))


EXPERIMENT = Experiment(
    name="lambdacrawl-deterministic",
    title=TITLE,
    claim=(
        "We expected crawls that are spaced evenly, or greedily, to cost about a third less "
        "than Poisson crawls, and to come within half a percent of the least possible cost. "
        "All other margins were set after the simulation."
    ),
    metric=J_H,
    references=(FORMULA, BOUND),
    repetitions=20,
    settings=measure_settings(
        {
            name: {"kind": kind, "num_pages": num_pages, "start": start, "end": end}
            for names, num_pages, start, end in (
                (LARGER, 100_000, 60.0, 120.0),
                (SMALLER, 1000, 200.0, 1200.0),
            )
            for name, kind in zip(names, KINDS, strict=True)
        },
        {
            label: partial(crawled if label in SIMULATED else by_formula, label=label)
            for label in (*HARMONIC, *BINARY)
        },
        "CrawlHarmonic-v0",
        limits=dict.fromkeys(LARGER, 6),
        quick={"num_pages": 200, "start": 20.0, "end": 60.0},
        quick_settings=SMALLER,
    ),
    derive=derive,
    expected=EXPECTED,
    pictures={
        "costs": figures.dots(
            [
                Series(
                    BELOW[metric],
                    f"{COST_NAMES[metric]},\nin % of that of {base}",
                    "{setting}",
                    labels,
                    factor=-100.0,
                    plus=100.0,
                )
                for metric, labels, base in ((J_H, HARMONIC, FORMULA), (J_B, BINARY, BLC_FORMULA))
            ],
            Frame(
                f"{TITLE}\nstand-in pages, R = 0.2 m per day, after the start; bars: 95% intervals",
                Axis("% of the Poisson policy's cost"),
                shared="none",
                upright=[Rule(100.0)],
            ),
        )
    },
)
