"""Kolobov et al., figure 3: costs of policies that learn change rates while crawling, by day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from crawl_envs.instances.urls.lambdacrawl import CRAWLS_PER_PAGE
from crawl_envs.types import FloatArray, Instance
from policies import Policy, bind
from policies import lambdacrawl as learning
from policies.solvers import Allocation
from scripts.experiments.measures.costs import (
    AT_PAR,
    BLC_EPS,
    COST_NAMES,
    FLOOR,
    J_B,
    J_H,
    LC,
    LCA,
    MIXED,
    UNOBSERVED,
    Pages,
    allocated,
    drawn,
    formula_costs,
    pages_of,
    poisson_costs,
)
from scripts.present import charts
from scripts.present.experiment import Experiment, measure_settings
from scripts.present.verdicts import Claim, Range, Trend
from scripts.study.means import entries, means, paired, table
from scripts.study.rows import gathered, indexed
from scripts.study.specs import spec

TITLE = "Learning change rates while crawling (LambdaCrawl paper, figure 3)"
ID = "CrawlHarmonic-v0"

LLC, LLCA, BLLC = "LLC", "LLCA", "BLLC-eps"
MORE = "LLC, 2.6x the crawls"
EXTENDED = 2.6
"""Observed over budgeted crawls in the public code: 0.51 instead of 0.2 a day."""
LIMIT = {LLC: LC, LLCA: LCA, BLLC: BLC_EPS, MORE: LC}
"""The policy with known change rates that each learner approaches."""

LEARNERS: dict[str, Policy] = {
    LLC: learning.LambdaLearnAndCrawl(),
    LLCA: learning.LambdaLearnAndCrawlApprox(),
    BLLC: learning.LambdaLearnAndCrawlBinary(floor=FLOOR),
    MORE: learning.LambdaLearnAndCrawl(),
}
PAPERS, LONG = "m=100000, 21 days", "m=10000, 240 days"
SIZES = {PAPERS: {"num_pages": 100_000, "days": 21}, LONG: {"num_pages": 10_000, "days": 240}}
EVERYWHERE = tuple(SIZES)
PAPER = "section 7, figure 3"
TOLERANCES = (0.05, 0.02)
SETTLED = tuple(f"days_to_{100 * near:g}%" for near in TOLERANCES)
"""First day after which J_h stays within this share of its limit, if it does in all runs."""
NEVER = tuple(f"never_within_{100 * near:g}%" for near in TOLERANCES)
"""Whether a run has no such day; if any run has none, the learner's days are AT_LEAST."""
AT_LEAST = "_at_least"
"""Suffix of days that are a lower bound: runs without such a day count all days and one more."""
LATER = tuple(f"later_to_{100 * near:g}%_than_LLC" for near in TOLERANCES)
"""Whether BLLC-eps comes this close to its limit later than LLC, or never."""
START, FIRST, MIDDLE, LAST = "day_0", "day_1", "day_7", "final"
EXCESS, EXCESS_B, LIMIT_H, LIMIT_B = "excess", "excess_b", "limit", "limit_b"
DISTANCE = "rates_distance"
"""Sum over pages of |crawl rate - crawl rate of the limit| / R, by day."""
DISTANCES = {0: f"{DISTANCE}_day_0", 21: f"{DISTANCE}_day_21", 240: f"{DISTANCE}_day_240"}
FALLS = f"{DISTANCE}_falls"
"""Whether DISTANCE falls from each of these days to the next."""
ALL_DAYS = "above_LLC_on_all_days"
"""Whether J_h is above LLC's on every day, including day 0."""
AT_DEFAULT_SPREAD = "at the chosen spread of importance"


@spec("lambdacrawl-daily-learning")
def learned(seed: int, *, label: str, num_pages: int, days: int) -> Mapping[str, float]:
    """Simulate a learner; return costs and distances of its crawl rates on days 0 to ``days``.

    Costs and rates are computed with the true change rates.
    """
    kind, more = UNOBSERVED if label == BLLC else MIXED, EXTENDED if label == MORE else 1.0
    instance = drawn(seed, num_pages, kind, budget=CRAWLS_PER_PAGE * more)
    env = gymnasium.make(
        ID,
        num_pages=num_pages,
        bandwidth=instance.bandwidth,
        horizon=float(days),
        instance="lambdacrawl",
        reveal="importance",
    )
    observation, _ = env.reset(seed=seed, options={"instance": instance})
    core: Any = env.unwrapped
    learner = bind(LEARNERS[label], env)
    pages = pages_of(instance)
    bandwidth = CRAWLS_PER_PAGE * num_pages
    best = true_rates(pages, allocated(LIMIT[label], pages, bandwidth), label)
    plans = []
    for day in range(days + 1):
        plans.append(_plan(label, instance, learner.update()))
        if day < days:
            observation, *_ = env.step(learner.predict(observation)[0])
    costs = [
        poisson_costs(pages, plan.rates, None if label == BLLC else plan.probabilities)
        for plan in plans
    ]
    gaps = [np.abs(true_rates(pages, plan, label) - best).sum() / bandwidth for plan in plans]
    limit = formula_costs(LIMIT[label], pages, bandwidth)
    return {
        **indexed(J_H, [cost[J_H] for cost in costs]),
        **indexed(J_B, [cost[J_B] for cost in costs]),
        **indexed(DISTANCE, gaps),
        LIMIT_H: limit[J_H],
        LIMIT_B: limit[J_B],
        "crawl_rate": core.ledger().crawls / days / num_pages,
    }


def true_rates(pages: Pages, plan: Allocation, label: str) -> FloatArray:
    """Return the crawl rates that an allocation has in truth, (m,).

    A page with signals is crawled at its true signal rate times the probability of a crawl.
    """
    if label == BLLC or plan.probabilities is None:
        return plan.rates
    return np.where(pages.complete, plan.probabilities * pages.change_rate, plan.rates)


def _plan(label: str, instance: Instance, learner: Any) -> Allocation:
    plan: Allocation = learner.allocation()
    if label == MORE:  # more observations, the same budget
        pages = Pages(instance.importance, learner.estimate(), instance.complete)
        plan = allocated(LC, pages, CRAWLS_PER_PAGE * instance.num_pages)
    return plan


def days_until(excess: FloatArray, near: float) -> float:
    """Return the first day from which all excesses are at most ``near``, or the number of days."""
    far = np.flatnonzero(excess > near)
    return float(far[-1] + 1) if far.size else 0.0


def derive(rows: Sequence[Row]) -> list[Row]:
    """Return rows of costs on some days, distances to the limit, and days until it is near."""
    return [*_derived(rows), *_settling(rows), *_falling(rows)]


def _derived(rows: Sequence[Row]) -> Iterator[Row]:
    limits = {row[1:4]: row.value for row in rows if row.metric == LIMIT_H}
    binary = {row[1:4]: row.value for row in rows if row.metric == LIMIT_B}
    courses, binary_courses = gathered(rows, J_H), gathered(rows, J_B)
    for key, course in courses.items():
        excess = course / limits[key] - 1.0
        metrics = {
            START: course[0],
            FIRST: course[1],
            MIDDLE: course[min(7, course.size - 1)],
            LAST: course[-1],
            EXCESS: excess[-1],
            EXCESS_B: binary_courses[key][-1] / binary[key] - 1.0,
        }
        llc_course = courses.get((key[0], LLC, key[2]))
        if key[1] == LLCA and llc_course is not None:
            metrics[ALL_DAYS] = float(np.all(course > llc_course))
        for metric, value in metrics.items():
            yield Row(ID, *key, metric, float(value))


def _settling(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows of the days until costs stay near their limit, and of whether they never do."""
    limits, courses = _by_key(rows, LIMIT_H), gathered(rows, J_H)
    for near, settled, never, later in zip(TOLERANCES, SETTLED, NEVER, LATER, strict=True):
        days = {
            key: days_until(course / limits[key] - 1.0, near) for key, course in courses.items()
        }
        missed = {key for key, course in courses.items() if days[key] >= course.size}
        bounded = {key[:2] for key in missed}
        for key, value in days.items():
            name = settled + AT_LEAST if key[:2] in bounded else settled
            yield Row(ID, *key, name, value)
            yield Row(ID, *key, never, float(key in missed))
            llc_key = key[0], LLC, key[2]
            if key[1] == BLLC and llc_key in days:
                yield Row(ID, *key, later, float(value > days[llc_key]))


def _falling(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows of the distances of crawl rates on some days, and of whether they fall."""
    for key, course in gathered(rows, DISTANCE).items():
        distances = {day: float(course[day]) for day in DISTANCES if day < course.size}
        for day, value in distances.items():
            yield Row(ID, *key, DISTANCES[day], value)
        falls = all(late < early for early, late in pairwise(distances.values()))
        yield Row(ID, *key, FALLS, float(falls))


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw both costs of each day's policy relative to LC's, with their limits as dashed lines."""
    parts, limit_looks = [], dict[str, dict[str, str]]()
    for metric, limit in ((J_H, LIMIT_H), (J_B, LIMIT_B)):
        limits = table(rows, limit)
        base = limits[limits.policy == LLC]
        courses = means(paired(entries(rows, metric), base, ratio=True), (*GROUP, "index"))
        ends = means(paired(limits[limits.policy != MORE], base, ratio=True), GROUP)
        ends = courses.drop(columns=["mean", "half"]).merge(ends[[*GROUP, "mean"]])
        ends = ends.assign(policy=ends.policy.map(lambda label: f"limit: {LIMIT[label]}"))
        both = pd.concat([courses, ends])
        parts.append(both.assign(panel=both.setting + f"\n{COST_NAMES[metric]} over LC's"))
    for place, label in enumerate(LEARNERS):
        if label != MORE:
            look = {"color": charts.COLOURS[place], "linestyle": "--"}
            limit_looks[f"limit: {LIMIT[label]}"] = look
    charts.lines(
        pd.concat(parts).rename(columns={"policy": "label", "mean": "y", "index": "x"}),
        path,
        charts.Frame(
            f"{TITLE}\nlong-run cost of each day's policy under the true rates; bands: 95% "
            "intervals",
            charts.Axis("days of observations before the policy was made"),
            charts.Axis("cost over LC's"),
            shared="none",
        ),
        labels=(*LEARNERS, *limit_looks),
        bands=True,
        looks=limit_looks,
    )


def _by_key(rows: Sequence[Row], metric: str) -> dict[tuple[str, str, int], float]:
    return {(row.setting, row.policy, row.seed): row.value for row in rows if row.metric == metric}


GROUP = ("setting", "policy")

EXPERIMENT = Experiment(
    name="lambdacrawl-fig3",
    title=TITLE,
    claim=(
        "LLC converges to LC, notably faster than BLLC-eps to BLC-eps. LLCA is even faster. It "
        "ends above LLC and below BLLC-eps, especially in the binary cost."
    ),
    metric="final",
    repetitions=20,
    settings=measure_settings(
        SIZES,
        {label: partial(learned, label=label) for label in LEARNERS},
        ID,
        only={LONG: (LLC, LLCA, BLLC)},
        quick={"num_pages": 1000, "days": 6},
        quick_settings=(PAPERS,),
    ),
    derive=derive,
    claims=(
        Claim(
            "LLC converges to LC",
            "proposition 8, figure 3",
            (
                Range(LLC, -0.01, AT_PAR, EVERYWHERE, "margin ours", metric=EXCESS),
                Range(LLC, 0.99, 1.0, EVERYWHERE, "proposition 8", metric=FALLS),
            ),
            "excess is J_h of the last day's policy over J_h of LC, minus 1; proposition 8 is "
            "about rates and probabilities: whether their distance to LC's falls in every run. The "
            "public code's curves are not reliable: README.md",
        ),
        Claim(
            "LLC converges notably faster than BLLC-eps",
            PAPER,
            (
                Trend(BLLC, "above", LLC, EVERYWHERE, "measure ours", metric=SETTLED[0]),
                Range(BLLC, 0.9, 1.0, EVERYWHERE, "measure and margin ours", metric=LATER[1]),
            ),
            "days until J_h stays within 5% of the learner's own limit, and the share of runs in "
            "which it stays within 2% from a later day on than LLC's, or never",
        ),
        Claim(
            "LLCA converges even faster than LLC, as it learns fewer parameters",
            PAPER,
            (
                Trend(LLC, "above", LLCA, EVERYWHERE, "measure ours", metric=SETTLED[1]),
                Trend(LLC, "above", LLCA, EVERYWHERE, "measure ours", metric=FIRST),
            ),
            "days until J_h stays within 2% of the learner's own limit (LLCA is within 5% before "
            "any observation), and J_h after one day of observations. How far LLCA is above LLC "
            "depends on the chosen spread of importance: with 1 or less it starts 1% above, and "
            "its limit is well below LLC's start (`spread`)",
        ),
        Claim(
            "LLCA's asymptotic policy is worse than LLC's",
            PAPER,
            (Trend(LLCA, "above", LLC, EVERYWHERE, PAPER, metric=LIMIT_H),),
        ),
        Claim(
            "It is better than BLLC-eps's, especially in the binary cost",
            PAPER,
            (
                Trend(BLLC, "above", LLCA, EVERYWHERE, PAPER, metric=LIMIT_H),
                Trend(BLLC, "above", LLCA, EVERYWHERE, PAPER, metric=LIMIT_B),
            ),
        ),
    ),
    expected=(
        Trend(LLC, "above", MORE, EVERYWHERE[:1], "the public code's extra data", metric=MIDDLE),
        Trend(LLCA, "above", LLC, EVERYWHERE, "what the limits say", metric=LAST),
        Trend(LLCA, "above", LLC, EVERYWHERE, AT_DEFAULT_SPREAD, metric=START),
        Range(LLCA, 0.99, 1.0, EVERYWHERE, AT_DEFAULT_SPREAD, metric=ALL_DAYS),
    ),
    pictures={"learning": plot},
)
