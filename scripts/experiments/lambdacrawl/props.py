"""Compare propositions 1 and 4 and eqs. 8, 12, 13 of LambdaCrawl with simulations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import policies as crawl_policies
from crawl_envs.evaluation import Row, simulate
from crawl_envs.types import FloatArray
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.experiments.measures.costs import (
    BLC,
    BLC_EPS,
    COMPLETE,
    COST_NAMES,
    FLOOR,
    J_B,
    J_H,
    LC,
    LCA,
    MIXED,
    UNOBSERVED,
    both_costs,
    drawn,
)
from scripts.experiments.measures.derived import in_standard_errors
from scripts.experiments.measures.long_run import compiled_course
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Claim, Level, Range
from scripts.study.settings import Measurement, spec

TITLE = "Formulas of LambdaCrawl, simulated"
ID = "CrawlHarmonic-v0"

KINDS = (UNOBSERVED, COMPLETE, MIXED)
SIZE, QUICK_SIZE = (
    {"num_pages": 1000, "start": 500.0, "end": 2500.0},
    {"num_pages": 100, "start": 50.0, "end": 250.0},
)
STARVING = "no page forgotten"
LONG, QUICK_LONG = {"num_pages": 300, "days": 10_000.0}, {"num_pages": 100, "days": 1000.0}

POLICIES: dict[str, Callable[[], Any]] = {
    LC: partial(crawl_policies.make, "LambdaCrawl", action_form="rates"),
    LCA: partial(crawl_policies.make, "LambdaCrawlApprox", action_form="rates"),
    BLC_EPS: partial(crawl_policies.make, "BinaryLambdaCrawl", action_form="rates", floor=FLOOR),
}
LASTING: dict[str, Callable[[], Any]] = {
    LC: POLICIES[LC],
    "LC, even": partial(crawl_policies.make, "LambdaCrawl", action_form="page"),
    "GREEDY-HARMONIC": partial(crawl_policies.make, "GreedyHarmonic"),
    BLC: partial(crawl_policies.make, "BinaryLambdaCrawl", action_form="rates"),
}
FORGOTTEN, LONGEST = "never_crawled", "longest_interval"
NONE = 1e-4
"""A share of pages below one page in 20 draws."""
GAPS = {J_H: "J_h_gap", J_B: "J_b_gap"}
"""Simulated cost over the formula's, minus 1."""
SCORES = {J_H: "J_h_errors", J_B: "J_b_errors"}
"""The mean gap in standard errors."""
WITHIN = 3.0


def _levels(metric: str, kinds: Sequence[str], labels: Sequence[str], what: str) -> tuple[Any, ...]:
    return tuple(
        Level(kind, label, 0.0, WITHIN, f"{what}, simulated", metric=SCORES[metric])
        for kind in kinds
        for label in labels
    )


@spec("lambdacrawl-formula-against-simulation")
def compared(
    seed: int, *, label: str, kind: str, num_pages: int, start: float, end: float
) -> Mapping[str, float]:
    """Return both simulated costs of a policy, and their relative differences to the formulas."""
    instance = drawn(seed, num_pages, kind)
    costs = compiled_course(instance, POLICIES[label](), seed, (start, end))[1]
    formula = both_costs(label, instance)
    gaps = {GAPS[metric]: costs[metric] / formula[metric] - 1.0 for metric in GAPS}
    return {**costs, **gaps}


@spec("lambdacrawl-longest-interval")
def lasting(seed: int, *, label: str, num_pages: int, days: float) -> Mapping[str, float]:
    """Simulate a long run; return the share of pages never crawled, and the longest crawl gap."""
    rollout = simulate(drawn(seed, num_pages), LASTING[label](), days, seed, requests=False)
    return {
        FORGOTTEN: float(np.mean(rollout.crawl_counts == 0)),
        LONGEST: longest(rollout.crawls, rollout.times, num_pages, days),
    }


def longest(pages: np.ndarray, times: FloatArray, num_pages: int, end: float) -> float:
    """Return the longest time that a page went without a crawl; start and end count as crawls."""
    everyone = np.arange(num_pages)
    page = np.concatenate([everyone, pages, everyone])
    time = np.concatenate([np.zeros(num_pages), times, np.full(num_pages, end)])
    order = np.lexsort((time, page))
    page, time = page[order], time[order]
    return float(np.diff(time)[page[1:] == page[:-1]].max())


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return a measurement of costs per kind of pages, and one of long runs."""
    size, long = (QUICK_SIZE, QUICK_LONG) if quick else (SIZE, LONG)
    compare = {label: partial(compared, label=label) for label in POLICIES}
    every = {UNOBSERVED: compare, COMPLETE: {LC: compare[LC]}, MIXED: compare}
    last = {label: partial(lasting, label=label) for label in LASTING}
    return [
        *(Measurement(kind, every[kind], {"kind": kind, **size}, ID) for kind in KINDS),
        Measurement(STARVING, last, long, ID),
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of the mean differences to the formulas, in standard errors."""
    return in_standard_errors(rows, {GAPS[metric]: SCORES[metric] for metric in GAPS})


EXPERIMENT = Experiment(
    name="lambdacrawl-props",
    title=TITLE,
    claim=(
        "Propositions 1 and 4 and eqs. 8, 12 and 13 give the costs of Poisson crawls and of crawls "
        "at a share of the signals; LC starves no source, BLC does."
    ),
    metric=J_H,
    repetitions=20,
    settings=measurements,
    derive=derive,
    claims=(
        Claim(
            "The harmonic cost of Poisson crawls is -sum mu ln(rho / (Delta + rho))",
            "proposition 1, eq. 4",
            _levels(J_H, (UNOBSERVED,), tuple(POLICIES), "prop. 1"),
            "the mean difference to the simulation in standard errors, at most three",
        ),
        Claim(
            "That of crawls at a share p of the signals is -sum mu ln p",
            "proposition 4",
            _levels(J_H, (COMPLETE,), (LC,), "prop. 4"),
        ),
        Claim(
            "Where both kinds of pages are mixed, it is the sum of both",
            "section 4.3, eq. 8",
            _levels(J_H, (MIXED,), tuple(POLICIES), "eq. 8"),
        ),
        Claim(
            "The binary costs are sum mu Delta / (Delta + rho), and sum mu (1 - p)",
            "supplement, eqs. 12 and 13",
            (
                *_levels(J_B, (UNOBSERVED, MIXED), tuple(POLICIES), "eq. 12"),
                *_levels(J_B, (COMPLETE,), (LC,), "eq. 13"),
            ),
        ),
        Claim(
            "LC crawls every source that changes, BLC starves some",
            "section 3, section 7",
            (
                Range(LC, 0.0, NONE, (STARVING,), "all are crawled", metric=FORGOTTEN),
                Range(BLC, 0.001, 1.0, (STARVING,), "margin ours", metric=FORGOTTEN),
            ),
            "the share of pages that are never crawled in 10,000 days",
        ),
    ),
    expected=tuple(
        Range(label, 0.0, NONE, (STARVING,), "not in the paper", metric=FORGOTTEN)
        for label in ("LC, even", "GREEDY-HARMONIC")
    ),
    pictures={
        "gaps": figures.dots(
            [Series(GAPS[metric], COST_NAMES[metric], "", factor=100.0) for metric in (J_B, J_H)],
            Frame(
                f"{TITLE}\n{{seeds}} draws of stand-in pages, R = 0.2 m per day; "
                "bars: 95% intervals",
                Axis("simulated minus formula, in %"),
                upright=[Rule(0.0)],
            ),
            y="{policy}, {setting}",
        )
    },
)
