"""Compare LambdaLearnAndCrawl with full and with recent history, when change rates shift."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

import policies
from crawl_envs.instances.misspecified.occurrences import (
    Misspecified,
    Occurrences,
    in_pieces,
    signalled,
)
from crawl_envs.types import Instance
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Rule, Series
from scripts.experiments.lambdacrawl.learners import learning_env
from scripts.experiments.measures.costs import J_H, UNOBSERVED, drawn
from scripts.experiments.measures.long_run import stepped_costs
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Trend
from scripts.study.rows import indexed
from scripts.study.specs import spec

TITLE = "Learning change rates that shift"
METRIC = "J_h_after"
ID = "CrawlHarmonic-v0"

ALL = "LLC, all of the history"
SHORT, LONG = "LLC, last 20", "LLC, last 100"
WINDOWS = {ALL: None, LONG: 100.0, SHORT: 20.0}
BEFORE = "J_h_before"
"""The harmonic cost in the last quarter before the shift; METRIC: in the quarter after it."""
SHIFTING = "a shift at half time"
END, STRETCHES = 800.0, 16


def shifted(seed: int, num_pages: int) -> Instance:
    """Return an instance without signals whose change rates swap pages at random at half time."""
    pages = drawn(seed, num_pages, UNOBSERVED, law="mixed")
    order = np.random.default_rng([seed, 22]).permutation(num_pages)
    rates = np.concatenate([pages.change_rate, pages.change_rate[order]])

    def law(rng: np.random.Generator, horizon: float) -> Occurrences:
        start = np.repeat([0.0, 0.5 * horizon], num_pages)
        time, piece = in_pieces(rng, start, start + 0.5 * horizon, rates)
        return signalled(rng, (time, piece % num_pages), pages, horizon)

    return Misspecified(pages, law)


@spec("lambdacrawl-shift-cost")
def learned(seed: int, *, label: str, num_pages: int, horizon: float) -> Mapping[str, float]:
    """Return a learner's cost in each stretch of time, and its means before and after the shift."""
    instance = shifted(seed, num_pages)
    env = learning_env(seed, instance, horizon)
    learner = policies.make("LambdaLearnAndCrawl", env, window=WINDOWS[label])
    times = np.linspace(0.0, horizon, STRETCHES + 1)
    costs = np.array([cost[J_H] for cost in stepped_costs(env, learner, seed, times)])
    quarters = costs.reshape(4, -1).mean(axis=1)
    return {BEFORE: quarters[1], METRIC: quarters[2], **indexed(J_H, costs)}


EXPERIMENT = Experiment(
    name="lambdacrawl-shift",
    title=TITLE,
    claim="Estimates from a suffix of the history follow change rates that vary with time.",
    metric=METRIC,
    references=(ALL,),
    repetitions=20,
    settings=measure_settings(
        {SHIFTING: {"num_pages": 100, "horizon": END}},
        {label: partial(learned, label=label) for label in WINDOWS},
        ID,
        quick={"num_pages": 20, "horizon": 80.0},
    ),
    claims=(
        Claim(
            "Change rates may vary with time, and estimates from a suffix of the history that is "
            "shorter than all of it follow them",
            "section 5, algorithm 4",
            tuple(Trend(ALL, "above", label, (SHIFTING,), "S(n)") for label in (LONG, SHORT)),
            "At half time the pages exchange their change rates. While the rates are constant a "
            "short suffix costs more, since it estimates from fewer crawls.",
        ),
    ),
    expected=(
        Trend(SHORT, "above", ALL, (SHIFTING,), "fewer observations", metric=BEFORE),
        Trend(SHORT, "above", LONG, (SHIFTING,), "fewer observations", metric=BEFORE),
    ),
    pictures={
        "over_all": figures.lines(
            [Series(J_H, over=ALL)],
            Frame(
                f"{TITLE}\npages exchange their change rates at half time; {{seeds}} draws; "
                "bands: 95% intervals",
                Axis("time (0.2 crawls per page and unit)"),
                Axis(f"J_h over that of {ALL}"),
                across=[Rule(1.0, ALL)],
                upright=[Rule(0.5 * END, "shift", ":")],
            ),
            along=END / STRETCHES * (np.arange(STRETCHES) + 0.5),
            labels=(LONG, SHORT),
            bands=True,
        )
    },
)
