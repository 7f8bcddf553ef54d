"""Test LambdaCrawl with concave penalties of missed changes other than the harmonic numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import policies as crawl_policies
from crawl_envs.evaluation import Row, simulate
from crawl_envs.types import FloatArray
from policies import solvers
from policies.base.allocated import PageRates
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.experiments.measures.costs import BLC_EPS, FLOOR, LC, UC, drawn
from scripts.experiments.measures.derived import in_standard_errors, relative_to
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Level, Range, Trend
from scripts.study.specs import spec

TITLE = "LambdaCrawl for other concave penalties"
METRIC = "J_C"
"""The mean over time of sum mu C(n), simulated."""

LC_OF_C = "LC of C"
PENALTIES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "square root": np.sqrt,
    "logarithm": np.log1p,
}
POLICIES: dict[str, Callable[..., Any]] = {
    LC_OF_C: partial(crawl_policies.make, "LambdaCrawl", action_form="rates"),
    LC: partial(crawl_policies.make, "LambdaCrawl", action_form="rates"),
    BLC_EPS: partial(crawl_policies.make, "BinaryLambdaCrawl", action_form="rates", floor=FLOOR),
    UC: partial(crawl_policies.make, "UniformCrawl", action_form="rates"),
}
MOST_CHANGES = 100_000
"""Number of changes up to which a simulated penalty rises; no page misses more."""
GAP, SCORE, ABOVE, STARVED = "J_C_gap", "J_C_errors", "J_C_above", "starved"
"""Cost simulated over that by formula, minus 1; its mean in standard errors; cost over that of
LC_OF_C, minus 1; share of pages that are never crawled."""
WITHIN = 3.0
EVERYWHERE = tuple(PENALTIES)


@spec("lambdacrawl-concave-cost")
def measure(
    seed: int, *, label: str, penalty: str, num_pages: int, start: float, end: float
) -> Mapping[str, float]:
    """Return a policy's simulated cost from ``start`` to ``end``, and the gap to the formula."""
    instance = drawn(seed, num_pages)
    function = PENALTIES[penalty]
    table = function(np.arange(MOST_CHANGES + 1.0))
    policy = POLICIES[label](**({"penalty": function} if label == LC_OF_C else {}))
    early, late = (
        simulate(instance, policy, time, seed, penalty=table, requests=False).ledger
        for time in (start, end)
    )
    assert early.penalty_time is not None
    assert late.penalty_time is not None
    cost = (late.penalty_time - early.penalty_time) / (end - start)
    plan: PageRates = policy.allocate(instance.problem(), instance.bandwidth)
    answered = plan.probabilities > 0.0
    formula = solvers.concave_penalty_cost(
        instance.importance, instance.change_rate, plan.rates, function, answered
    )
    starved = float(np.mean(plan.rates[instance.importance > 0.0] == 0.0))
    return {METRIC: cost, GAP: cost / formula - 1.0, STARVED: starved}


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of mean gaps to the formula in standard errors, and costs over the optimum."""
    return in_standard_errors(rows, {GAP: SCORE}) + relative_to(rows, LC_OF_C, {METRIC: ABOVE})


EXPERIMENT = Experiment(
    name="lambdacrawl-concave",
    title=TITLE,
    claim=("The approach is valid for any concave penalty without a bound, as n^d and log(1 + n)."),
    metric=METRIC,
    references=(LC_OF_C,),
    repetitions=20,
    settings=measure_settings(
        {
            name: {"penalty": name, "num_pages": 1000, "start": 500.0, "end": 2500.0}
            for name in PENALTIES
        },
        {label: partial(measure, label=label) for label in POLICIES},
        "CrawlHarmonic-v0",
        quick={"num_pages": 100, "start": 50.0, "end": 250.0},
    ),
    derive=derive,
    claims=(
        Claim(
            "The approach is valid for any concave penalty without a bound, as n^d and log(1 + n)",
            "section 3",
            (
                *(
                    Level(name, label, 0.0, WITHIN, "the series of C, simulated", SCORE)
                    for name in EVERYWHERE
                    for label in POLICIES
                ),
                Trend(LC, "above", LC_OF_C, EVERYWHERE, "an optimum"),
                Trend(BLC_EPS, "above", LC_OF_C, EVERYWHERE, "an optimum"),
                Trend(UC, "above", LC_OF_C, EVERYWHERE, "an optimum"),
                Range(LC_OF_C, 0.0, 0.0, EVERYWHERE, "no source is starved", STARVED),
            ),
            "C is the square root of n, and ln(1 + n); LC of C is LambdaCrawl for it "
            "(`solvers.concave_penalty`). J_C_errors is the mean difference of the formula to the "
            "simulation in standard errors, at most three. That no rates cost less is tested "
            "against a general optimiser.",
        ),
    ),
    pictures={
        "above": figures.dots(
            [Series(ABOVE, "C(n): {setting}", label="", factor=100.0)],
            Frame(
                f"{TITLE}\n{{seeds}} draws of stand-in pages, R = 0.2 m per day; "
                "bars: 95% intervals",
                Axis(f"simulated cost above that of {LC_OF_C}, in %"),
                upright=[Rule(0.0)],
            ),
        )
    },
)
