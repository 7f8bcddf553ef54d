"""Compute costs of LambdaCrawl policies: harmonic J_h and binary J_b (eqs. 4, 8, 12, 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crawl_envs import instances
from crawl_envs.instances.urls.lambdacrawl import (
    CRAWLS_PER_PAGE,
    PUBLISHED_IMPORTANCE,
    complete_or_not,
)
from crawl_envs.types import BoolArray, FloatArray, Instance
from policies import solvers
from policies.solvers import Allocation
from scripts.experiments import figures
from scripts.experiments.figures import Axis, Frame, Series
from scripts.present.experiment import Picture

LC, LCA, BLC, BLC_EPS, CC, UC = "LC", "LCA", "BLC", "BLC-eps", "CC", "UC"
POISSON = (LC, LCA, BLC, BLC_EPS, CC, UC)
"""Policies that crawl at random instants, by the paper's labels."""

BOUND = "bound"
"""The minimum of J_h over all policies that meet the budget on average."""

BINARY_OPT = "BINARY-OPT"
"""The minimum of J_b over LC's class: crawls at random instants, and on a share of signals."""

BINARY_BOUND = "binary bound"
"""The minimum of J_b over all policies that meet the budget on average."""

AT_PAR = 0.05
"""Largest relative difference of costs that are at par; ours, since the paper has none."""

FLOOR = 0.4
"""The eps of BLC-eps: smallest rate of a page over R / m, as in the paper's public code."""

J_H, J_B = "J_h", "J_b"
COST_NAMES = {J_H: "harmonic cost J_h", J_B: "binary cost J_b"}
PER_URL = {J_H: "J_h_per_url", J_B: "J_b_per_url"}
"""Costs per page, in the unit of importance of the paper's figure 1."""
INFINITE, STARVED = "J_h_infinite", "starved"
SAVED = {J_H: "J_h_saved", J_B: "J_b_saved"}
ENDLESS = "infinite (starves pages)"


MIXED, UNOBSERVED, COMPLETE = "mixed", "unobserved", "complete"
"""Kinds of pages: as drawn, all without signals, and all with complete observation."""


class Pages(NamedTuple):
    """Importance, change rate, and ``complete`` (whether all changes are signalled), (m,) each."""

    importance: FloatArray
    change_rate: FloatArray
    complete: BoolArray


def pages_of(instance: Instance) -> Pages:
    """Return importance, change rate and completeness of the pages of an instance."""
    return Pages(instance.importance, instance.change_rate, instance.complete)


def drawn(
    seed: int,
    num_pages: int,
    kind: str = MIXED,
    *,
    law: str = "lambdacrawl",
    budget: float = CRAWLS_PER_PAGE,
) -> Instance:
    """Return the instance of a seed, with mixed, unobserved or complete pages.

    Args:
        seed: seed of the instance.
        num_pages: number of pages m.
        kind: MIXED, UNOBSERVED or COMPLETE.
        law: name of a synthetic instance.
        budget: crawls per page and unit of time.
    """
    bandwidth = budget * num_pages
    instance = instances.make(law, num_pages=num_pages, bandwidth=bandwidth, seed=seed)
    if kind == MIXED:
        return instance
    complete = np.full(num_pages, kind == COMPLETE)
    return complete_or_not(instance.importance, instance.change_rate, complete, bandwidth=bandwidth)


USES_SIGNALS = (LC, LCA, BINARY_OPT)
"""Labels that use signals; all others ignore them."""


def allocated(label: str, pages: Pages, bandwidth: float) -> Allocation:
    """Return the crawl rates, and chances of a crawl on a signal, that a policy assigns to pages.

    Raises:
        ValueError: an unknown label.
    """
    importance, change_rate, complete = pages
    if label == LC:
        return solvers.harmonic(importance, change_rate, bandwidth, complete=complete)
    if label == LCA:
        return solvers.harmonic_approx(importance, change_rate, bandwidth, complete=complete)
    if label == BINARY_OPT:
        return best_binary(pages, bandwidth)
    if label in (BLC, BLC_EPS):
        floor = FLOOR if label == BLC_EPS else 0.0
        return solvers.binary_poisson(importance, change_rate, bandwidth, floor=floor)
    if label not in (CC, UC):
        raise ValueError(f"label must be one of {(*POISSON, BINARY_OPT)}, got {label!r}")
    weights = change_rate if label == CC else np.ones_like(change_rate)
    rates = bandwidth * (weights / weights.sum())
    return Allocation(rates, None, np.nan, np.nan, 0, True)


def best_binary(pages: Pages, bandwidth: float) -> Allocation:
    """Return the crawl rates that minimise J_b if signals of complete pages may start crawls.

    The marginal value of a crawl is ``importance / change_rate`` on a page that is never crawled.
    Without signals it decreases with the crawl rate: pages whose value exceeds the multiplier are
    crawled at ``sqrt(importance change_rate / multiplier) - change_rate`` (Azar et al. 2018). With
    complete observation it is constant: such a page answers all its signals or none, except one
    page. Change rates and importance must be > 0.

    Args:
        pages: (m,) each.
        bandwidth: crawls per unit of time, > 0 and less than needed to answer all signals.
    """
    importance, change_rate, complete = pages
    value = importance / change_rate
    order = np.argsort(-value, kind="stable")
    observed, paced = complete[order], np.sqrt(importance * change_rate)[order]
    roots = np.cumsum(np.where(observed, 0.0, paced))
    signs = np.where(observed, 1.0, -1.0)
    fixed = np.cumsum(signs * change_rate[order])
    # Crawl rate of the first k pages when the multiplier is the value of the k-th.
    taken = roots / np.sqrt(value[order]) + fixed
    count = int(np.searchsorted(taken, bandwidth, side="right"))
    root = roots[count - 1] / (bandwidth - fixed[count - 1]) if count else np.inf
    multiplier = root * root
    rates = np.zeros_like(value)
    if count < value.size and (not count or multiplier < value[order[count]]):
        multiplier = float(value[order[count]])  # of a page with some signals answered
        rates[order[count]] = bandwidth - (
            roots[count - 1] / np.sqrt(multiplier) + fixed[count - 1] if count else 0.0
        )
    first = order[:count]
    slow = np.maximum(paced[:count] / np.sqrt(multiplier) - change_rate[first], 0.0)
    rates[first] = np.where(observed[:count], change_rate[first], slow)
    chances = np.where(complete, rates / change_rate, 0.0)
    fresh = np.where(complete, chances, rates / (rates + change_rate))
    objective = float(importance @ fresh / importance.sum())
    return Allocation(rates, chances, float(multiplier), objective, 0, True)


def binary_bound(instance: Instance) -> float:
    """Return the smallest J_b, a sum over pages, of policies that meet the budget on average."""
    importance, change_rate = instance.importance, instance.change_rate
    if instance.complete.any():
        plan = solvers.ncis(instance)
    else:
        plan = solvers.binary_periodic(importance, change_rate, instance.bandwidth)
    return float((1.0 - plan.objective) * importance.sum())


def poisson_costs(pages: Pages, rates: FloatArray, chances: FloatArray | None) -> dict[str, float]:
    """Return J_h and J_b, sums over pages, of a policy that crawls at random instants.

    Args:
        pages: the true parameters.
        rates: crawls per unit of time, (m,).
        chances: P(a crawl on a signal) if observation is complete, (m,); None: signals start no
            crawls, and all pages are crawled at their rates.
    """
    importance, change_rate, complete = pages
    signals = {} if chances is None else {"probabilities": chances, "complete": complete}
    return {
        J_H: float(solvers.harmonic_cost(importance, change_rate, rates, **signals)),
        J_B: float(solvers.binary_cost(importance, change_rate, rates, **signals)),
    }


def bound_costs(pages: Pages, bandwidth: float) -> dict[str, float]:
    """Return the smallest J_h of all policies, and the J_b of the policy that attains it.

    A page without signals is crawled at even intervals; it is fresh for a share
    (1 - exp(-x)) / x of the time, with x expected changes between crawls. A page with complete
    observation is crawled at every n-th signal, and fresh for 1 / n of the time. This is its crawl
    rate over its change rate, also for mixtures of two values of n.
    """
    importance, change_rate, complete = pages
    plan = solvers.harmonic_periodic(importance, change_rate, bandwidth, complete=complete)
    x = np.divide(
        change_rate, plan.rates, out=np.full_like(plan.rates, np.inf), where=plan.rates > 0.0
    )
    fresh = np.where(complete, 1.0 / x, np.where(x > 0.0, -np.expm1(-x) / np.maximum(x, 1e-300), 1))
    return {J_H: float(plan.objective), J_B: float(importance @ (1.0 - fresh))}


def formula_costs(label: str, pages: Pages, bandwidth: float) -> dict[str, float]:
    """Return a policy's costs by formula, in total and per page, and the share of starved pages.

    Costs per page are in the paper's unit. An infinite J_h is NaN, with ``J_h_infinite`` = 1.
    """
    if label == BOUND:
        costs, starved = bound_costs(pages, bandwidth), 0.0
    else:
        plan = allocated(label, pages, bandwidth)
        chances = plan.probabilities if label in USES_SIGNALS else None
        costs = poisson_costs(pages, plan.rates, chances)
        needed = (pages.importance > 0.0) & (pages.change_rate > 0.0)
        starved = float(np.mean(plan.rates[needed] <= 0.0))
    infinite = bool(np.isinf(costs[J_H]))
    if infinite:
        costs[J_H] = np.nan
    unit = PUBLISHED_IMPORTANCE / pages.importance.size
    return {
        **costs,
        **{PER_URL[name]: unit * value for name, value in costs.items()},
        INFINITE: float(infinite),
        STARVED: starved,
    }


def saved(cost: float, cheaper: float) -> float:
    """Return the share of ``cost`` that a policy with cost ``cheaper`` saves."""
    return 1.0 - cheaper / cost


def both_costs(label: str, instance: Instance) -> dict[str, float]:
    """Return J_h and J_b of a policy by formula; for the binary bound, J_b only."""
    if label == BINARY_BOUND:
        return {J_B: binary_bound(instance)}
    costs = formula_costs(label, pages_of(instance), instance.bandwidth)
    return {metric: costs[metric] for metric in (J_H, J_B)}


def cost_bars(
    title: str, settings: Sequence[str], labels: Sequence[str], instead: Mapping[str, str]
) -> Picture:
    """Return a function that draws both costs of every policy as bars, in the paper's unit.

    Args:
        title: title of the picture.
        settings: names; the first with rows is drawn.
        labels: the policies, from top to bottom.
        instead: texts by label that replace the harmonic cost; for BOUND, the binary cost.
    """
    return figures.bars(
        [Series(PER_URL[metric], COST_NAMES[metric]) for metric in (J_H, J_B)],
        Frame(
            f"{title}\n{{setting}}, {{seeds}} draws; bars: 95% intervals; lower is better",
            Axis("per page, in the paper's unit"),
            shared="y",
        ),
        settings=settings,
        names=labels,
        replacements={
            (COST_NAMES[J_B if label == BOUND else J_H], label): text
            for label, text in instead.items()
        },
    )
