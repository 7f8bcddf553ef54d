"""Compare policies that learn while crawling: cost over time, and regret of explore-then-commit."""

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
from crawl_envs.types import FloatArray, Instance
from scripts.experiments.figures import Axis, Frame, Rule, Series, lines
from scripts.experiments.measures.costs import (
    BINARY_BOUND,
    BOUND,
    COST_NAMES,
    FLOOR,
    J_B,
    J_H,
    LC,
    MIXED,
    UNOBSERVED,
    both_costs,
    drawn,
)
from scripts.experiments.measures.derived import jackknifed
from scripts.experiments.measures.long_run import compiled_course, stepped_costs
from scripts.present import charts
from scripts.present.experiment import Experiment
from scripts.present.verdicts import Range, Trend
from scripts.study.means import entries, means, paired, table
from scripts.study.rows import gathered, indexed
from scripts.study.settings import Measurement, spec

TITLE = "Learning while crawling, one page per slot"
ID = "CrawlHarmonic-v0"

GREEDY = "GREEDY-HARMONIC, known rates"
EVEN = "LC even, known rates"
LLC, LLCA, BLLC, ETC = "LLC", "LLCA", "BLLC-eps", "ETC"
LC_POISSON = "LC, Poisson, known rates"
KNOWN_RATES: dict[str, Callable[[], Any]] = {
    GREEDY: partial(crawl_policies.make, "GreedyHarmonic"),
    EVEN: partial(crawl_policies.make, "LambdaCrawl", action_form="page"),
}
LEARNERS: dict[str, Callable[..., Any]] = {
    LLC: partial(crawl_policies.make, "LambdaLearnAndCrawl"),
    LLCA: partial(crawl_policies.make, "LambdaLearnAndCrawlApprox"),
    BLLC: partial(crawl_policies.make, "LambdaLearnAndCrawlBinary", floor=FLOOR),
    ETC: partial(crawl_policies.make, "ExploreThenCommit"),
}
FORMULAS = (LC, BOUND, BINARY_BOUND)
BOUNDS = {J_H: BOUND, J_B: BINARY_BOUND}
LIMITS = {J_H: "J_h_limit", J_B: "J_b_limit"}

KINDS = (MIXED, UNOBSERVED)
TIMES = (0.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
"""Bounds of the windows of costs."""
NUM_PAGES, QUICK_PAGES, QUICK_TIMES = 100, 30, TIMES[:6]

REGRET, SLOPE, ROOT = "regret", "slope", "proportional to sqrt(T)"
REGRET_SETTING = "regret"
HORIZONS = (50.0, 100.0, 200.0, 400.0, 800.0, 1600.0)
QUICK_HORIZONS = HORIZONS[:3]
LAST, EARLY = {J_H: "last_J_h", J_B: "last_J_b"}, "early_J_h"
"""Costs in the last window, and from 10 to 20."""
ABOVE = {J_H: "J_h_above", J_B: "J_b_above"}
"""Cost in the last window over that of LC, even, with known change rates, minus 1."""
EXCESS = {J_H: "J_h_over_bound", J_B: "J_b_over_bound"}
"""Cost in the last window over the bound of all policies, minus 1."""
NO_PAPER = "not in the paper"


@spec("lambdacrawl-learners-simulated")
def simulated(
    seed: int, *, label: str, kind: str, num_pages: int, times: Sequence[float]
) -> Mapping[str, float]:
    """Simulate a policy; return both costs in each interval between ``times``, which start at 0."""
    instance = drawn(seed, num_pages, kind, law="mixed")
    if label in KNOWN_RATES:
        costs = compiled_course(instance, KNOWN_RATES[label](), seed, times[1:])
    else:
        env = learning_env(seed, instance, times[-1])
        costs = stepped_costs(env, LEARNERS[label](env), seed, np.array(times))
    return {
        **indexed(J_H, [cost[J_H] for cost in costs]),
        **indexed(J_B, [cost[J_B] for cost in costs]),
    }


@spec("lambdacrawl-learners-formula")
def by_formula(
    seed: int, *, label: str, kind: str, num_pages: int, times: Sequence[float]
) -> Mapping[str, float]:
    """Return both costs of a policy by formula, or the one cost of a binary bound."""
    costs = both_costs(label, drawn(seed, num_pages, kind, law="mixed"))
    return {LIMITS[metric]: cost for metric, cost in costs.items()}


def learning_env(seed: int, instance: Instance, horizon: float) -> Any:
    """Return an environment, after a reset, of an instance of which only importance is known."""
    env = gymnasium.make(
        ID,
        num_pages=instance.num_pages,
        bandwidth=instance.bandwidth,
        horizon=horizon,
        action="page",
        reveal="importance",
    )
    env.reset(seed=seed, options={"instance": instance})
    return env


@spec("lambdacrawl-learners-regret")
def regrets(seed: int, *, num_pages: int, horizons: Sequence[float]) -> Mapping[str, float]:
    """Return the regret of explore-then-commit against a policy that knows rates, by horizon.

    Regret is in units of total importance times time. Both policies have the same events.
    """
    instance = drawn(seed, num_pages, UNOBSERVED, law="mixed")
    differences = []
    for horizon in horizons:
        env = learning_env(seed, instance, horizon)
        [cost] = stepped_costs(env, LEARNERS[ETC](env), seed, np.array([0.0, horizon]))
        [best] = compiled_course(instance, KNOWN_RATES[EVEN](), seed, [horizon])
        differences.append(horizon * (cost[J_H] - best[J_H]) / instance.importance.sum())
    return indexed(REGRET, differences)


def measurements(quick: bool) -> Sequence[Measurement]:
    """Return measurements of costs over time by kind of pages, and of regrets by horizon."""
    measures = {
        **{label: partial(by_formula, label=label) for label in FORMULAS},
        **{label: partial(simulated, label=label) for label in (*KNOWN_RATES, *LEARNERS)},
    }
    pages = {"num_pages": QUICK_PAGES if quick else NUM_PAGES}
    times = {"times": list(QUICK_TIMES if quick else TIMES)}
    horizons = {"horizons": list(QUICK_HORIZONS if quick else HORIZONS)}
    return [
        *(Measurement(kind, measures, {"kind": kind, **pages, **times}, ID) for kind in KINDS),
        Measurement(REGRET_SETTING, {ETC: regrets}, pages | horizons, ID),
    ]


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of costs late in the episode, also over references, and of regret's growth."""
    return [*_lasts(rows), *_slopes(gathered(rows, REGRET))]


def _lasts(rows: Sequence[Row]) -> Iterator[Row]:
    for metric in LAST:
        courses = gathered(rows, metric)
        limits = {row[1:4]: row.value for row in rows if row.metric == LIMITS[metric]}
        for (setting, label, seed), course in courses.items():
            metrics = {LAST[metric]: course[-1]}
            if metric == J_H:
                metrics[EARLY] = course[2]
            even = courses.get((setting, EVEN, seed))
            if even is not None and label != EVEN:
                metrics[ABOVE[metric]] = course[-1] / even[-1] - 1.0
            bound = limits.get((setting, BOUNDS[metric], seed))
            if bound is not None:
                metrics[EXCESS[metric]] = course[-1] / bound - 1.0
            for name, value in metrics.items():
                yield Row(ID, setting, label, seed, name, float(value))


def _slopes(courses: Mapping[tuple[str, str, int], FloatArray]) -> Iterator[Row]:
    """Yield jackknife pseudo-values of the slope of ln(mean regret) over ln(horizon)."""
    values = np.array(list(courses.values()))
    if len(values) > 1:
        pseudo = jackknifed(values, lambda kept: growth(kept.mean(axis=0)))
        for (setting, label, seed), value in zip(courses, pseudo, strict=True):
            if np.isfinite(value):
                yield Row(ID, setting, label, seed, SLOPE, value)


def growth(regret: FloatArray) -> float:
    """Return the slope of ln(regret) over ln(horizon); NaN unless all regrets are positive."""
    if np.any(regret <= 0.0):
        return np.nan
    return float(np.polyfit(np.log(HORIZONS[: regret.size]), np.log(regret), 1)[0])


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw both costs over time, divided by LambdaCrawl's by formula, a panel per kind of pages."""
    panels = {metric: {kind: f"{metric}, {kind}" for kind in KINDS} for metric in (J_H, J_B)}
    rules = []
    for metric, by_kind in panels.items():
        limits = table(rows, LIMITS[metric])
        best = limits[limits.policy == BOUNDS[metric]]
        ratios = means(paired(best, limits[limits.policy == LC], ratio=True)).set_index("setting")
        for kind, panel in by_kind.items():
            rules.append(Rule(float(ratios["mean"][kind]), BOUNDS[metric], ":", panel))
    edges = np.array(TIMES)
    lines(
        [Series(name, by_kind, over=LC, base=LIMITS[name]) for name, by_kind in panels.items()],
        Frame(
            f"{TITLE}\nmean of stretches of time; the start is all fresh; bands: 95% intervals",
            Axis("time (logarithmic scale; 0.2 crawls per page and unit)", "log"),
            {
                panel: Axis(f"{COST_NAMES[metric]} over LC's formula")
                for metric, by_kind in panels.items()
                for panel in by_kind.values()
            },
            shared="x",
            across=[Rule(1.0, LC_POISSON, "-"), *rules],
        ),
        along=np.sqrt(np.maximum(edges[:-1], 0.5 * edges[1]) * edges[1:]),
        labels=(*KNOWN_RATES, *LEARNERS),
        black=tuple(KNOWN_RATES),
        bands=True,
    )(rows, path)


def draw_regret(rows: Sequence[Row], path: Path) -> None:
    """Draw the regret of explore-then-commit by horizon, with a line that grows as sqrt(T)."""
    values = entries(rows, REGRET)
    data = means(values, ("policy", "index")).rename(columns={"policy": "label", "mean": "y"})
    data = data.assign(x=np.array(HORIZONS)[data["index"]])
    last = data.iloc[-1]
    root = data.assign(y=last.y * np.sqrt(data.x / last.x), half=0.0, label=ROOT)
    charts.lines(
        pd.concat([data, root]),
        path,
        charts.Frame(
            f"Explore, then commit: regret, {values.seed.nunique()} draws; bars: 95% intervals",
            charts.Axis("horizon T; sqrt(T) of it is spent exploring", "log", ticks=HORIZONS),
            charts.Axis(f"regret to {EVEN}", "log", ticks=(1, 2, 5, 10, 20)),
        ),
        black=(ROOT,),
        looks={ROOT: {"marker": ""}},
    )


EXPERIMENT = Experiment(
    name="lambdacrawl-learners",
    title=TITLE,
    claim="Ours: LLC comes near LC with known rates.",
    metric="last_J_h",
    references=(GREEDY,),
    repetitions=6,
    settings=measurements,
    derive=derive,
    expected=(
        Range(LLC, -0.03, 0.03, KINDS, "margin ours", metric=ABOVE[J_H]),
        Trend(ETC, "above", LLC, KINDS, NO_PAPER, metric=LAST[J_H]),
        Trend(LLCA, "above", LLC, KINDS, NO_PAPER, metric=LAST[J_H]),
        Trend(LLC, "above", GREEDY, KINDS, NO_PAPER, metric=LAST[J_H]),
        Range(
            ETC,
            -np.inf,
            0.5,
            (REGRET_SETTING,),
            "Upadhyay et al., AAAI 2020: O(sqrt T) in a setting of theirs",
            metric=SLOPE,
        ),
    ),
    pictures={"costs": draw, "regret": draw_regret},
)
