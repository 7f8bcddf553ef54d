"""The informed reference: the crawl value on the filter of the true law, for each instance.

It knows the law and the true parameters, but sees only crawls and signals, as a tracker does.

Where changes are Poisson it is a formula with the true parameters. The probability of
GREEDY-NCIS that a page is fresh is exact, for one source of signals or several. The harmonic
penalty counts missed changes, which are Poisson, or known from signals.
:class:`policies.GreedyNCISDelayed` ignores the result of the last crawl, which tells of signals
under way, and that none are at time 0; an exact filter reached the same freshness in ``late``.
There is none for markets and recorded sites, whose laws are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import policies
from crawl_envs.instances.misspecified import change_laws, signal_laws
from crawl_envs.instances.misspecified.occurrences import Misspecified
from crawl_envs.types import FloatArray, Instance, IntArray, Policy, Problem
from crawl_envs.worlds.offers.law import Market
from policies.base.policy import RATE_FORMS
from policies.informed.chains import ChainFilter, hourly, modulated, regular
from policies.informed.deploys import DeployFilter
from policies.informed.policy import Informed
from policies.longevity.informed import InformedLongevity
from scripts.study.specs import spec

HABITS = 20
"""Number of values of a habit in its filter: the middles of equal parts of (0, 1)."""


def quality_of(pages: Instance) -> list[tuple[float, float]]:
    """Return the recall and the false-signal rate of each page."""
    return list(zip(pages.recall.tolist(), pages.false_signal_rate.tolist(), strict=True))


def bursty(instance: Misspecified, pages: Instance) -> Informed:
    """Return the reference for bursts: the exact filter of the two states of each page."""
    share = change_laws.BURST_SHARE
    end, begin = 1.0 / change_laws.BURST_LENGTH, 1.0 / change_laws.QUIET_LENGTH
    states = np.array([1.0 - share, share]), np.array([[-begin, begin], [end, -end]])
    factors = np.array([change_laws.QUIET_FACTOR, change_laws.BURST_FACTOR])
    columns = zip(pages.change_rate.tolist(), quality_of(pages), strict=True)
    chains = [modulated(states, rate * factors, rate, quality) for rate, quality in columns]
    return Informed(pages.problem(), ChainFilter(chains))


def shifting(instance: Misspecified, pages: Instance, *, habit: IntArray) -> Informed:
    """Return the reference for shifting habits, known at time 0, on a grid of HABITS values."""
    number, mean = np.arange(HABITS), np.full(habit.size, 0.5)
    moves = change_laws.SHIFT_RATE * (np.full((HABITS, HABITS), 1.0 / HABITS) - np.eye(HABITS))
    place = np.clip(instance.change_rate[:, None] * HABITS - 0.5, 0.0, HABITS - 1.0)
    first = np.maximum(1.0 - np.abs(number - place), 0.0)
    shared = np.bincount(habit, weights=pages.recall)[habit] - pages.recall
    columns = zip(first, mean, quality_of(pages), shared, strict=True)
    rates = (number + 0.5) / HABITS
    chains = [modulated((start, moves), rates, *rest) for start, *rest in columns]
    return Informed(replace(pages.problem(), change_rate=mean), ChainFilter(chains, habit))


def periodic(
    instance: Misspecified, pages: Instance, *, shape: FloatArray, opening: FloatArray
) -> Informed:
    """Return the reference for daily windows, and for regular gaps, of rounded shapes."""
    window = change_laws.WINDOW, change_laws.DAY
    columns = zip(pages.change_rate, shape, opening, quality_of(pages), strict=True)
    chains = [
        regular(rate, round(form), quality) if form else hourly(rate, start, *window, quality)
        for rate, form, start, quality in columns
    ]
    return Informed(pages.problem(), ChainFilter(chains))


def deploys(
    instance: Misspecified, *, host: IntArray, own_rate: FloatArray, deploy_rate: FloatArray
) -> Informed:
    """Return the reference for deploys: a particle filter of the shares that they change."""
    return Informed(instance.problem(), DeployFilter(own_rate, host, signal_laws.SHARE_BETA))


HIDDEN_LAWS: Mapping[Any, Callable[..., Informed]] = {
    change_laws.bursty: bursty,
    change_laws.shifting: shifting,
    change_laws.periodic: periodic,
    signal_laws.deploys: deploys,
}
"""References by hidden law: functions of an instance, and of the law's arguments."""


@spec("suite-informed")
def informed_policy(env: Any) -> Policy:
    """Return the informed reference for the instance of an environment that was reset.

    Raises:
        ValueError: there is none for the instance, or for its reward and form of action.
    """
    core = env.unwrapped
    reward, instance, rates = core.objective.reward, core.instance, core.action_form in RATE_FORMS
    policy: Any = None
    if not isinstance(instance, Market) and core.lanes.tape is None:
        if reward == "freshness" and not rates:
            policy = freshness_reference(instance)
        elif reward == "fragments" and not rates:
            policy = InformedLongevity(instance)
        elif reward == "penalty" and core.lanes.penalty == "harmonic":
            truth = partial(_truth, instance.problem())
            policy = policies.LambdaCrawl() if rates else policies.GreedyHarmonic(believed=truth)
    if policy is None:
        kind = f"{type(core).__name__} with the reward {reward} and actions {core.action_form}"
        raise ValueError(f"env must have a known law and an informed reference, got {kind}")
    return policies.bind(policy, env)


def _truth(truth: Problem, revealed: Problem) -> Problem:
    return replace(truth, cost=revealed.cost)


def freshness_reference(instance: Instance) -> policies.Policy:
    """Return the reference for the freshness of pages, not bound to an environment.

    Raises:
        ValueError: a hidden law without a filter, or with delays.
    """
    truth = instance.problem()
    if isinstance(instance, Misspecified):
        law: Any = instance.law
        if law.func is signal_laws.poisson:
            truth = replace(law.args[0].problem(), delay=instance.true_delay)
        elif law.func in HIDDEN_LAWS and instance.true_delay.mean == 0.0:
            return HIDDEN_LAWS[law.func](instance, *law.args, **law.keywords)
        else:
            raise ValueError(f"instance must have a law with a filter, no delay, got {law.func}")
    assert truth.delay is not None
    formula: Any = policies.GreedyNCISDelayed if truth.delay.mean > 0.0 else policies.GreedyNCIS
    policy: policies.Policy = formula(believed=partial(_truth, truth))
    return policy
