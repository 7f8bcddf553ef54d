"""The bound of each task, which scores 1: a formula, or a policy that knows hidden parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import policies
from crawl_envs.evaluation import PolicyFactory
from crawl_envs.instances.misspecified.occurrences import Misspecified
from crawl_envs.types import Instance
from policies import solvers
from scripts.study.clairvoyant import clairvoyant_policy
from scripts.study.settings import Setting
from scripts.study.specs import spec
from scripts.suite.informed import informed_policy
from scripts.suite.tasks import (
    AS_REWARD,
    CLAIRVOYANT,
    INFORMED,
    OPTIMUM,
    ORACLE,
    PERFECT,
    PERIODIC,
    POISSON,
    Task,
)

BOUND, BUDGET = "bound", "budget"
"""Label of a formula's bound in the rows; metric of the allowed crawls per unit time."""
POLICY_BOUNDS: Mapping[str, PolicyFactory] = {
    ORACLE: partial(policies.make, "FragmentDynamic"),
    CLAIRVOYANT: clairvoyant_policy,
    INFORMED: informed_policy,
}
"""Bounds that are simulated as policies, by label."""


@spec("suite-bound")
def bound_of(instance: Instance, *, kind: str, metric: str) -> dict[str, float]:
    """Return metrics of an instance: its budget and, if the bound is a formula, its bound."""
    budget = {BUDGET: float(instance.bandwidth)}
    weight = instance.importance
    if kind == OPTIMUM:
        pages = instance.pages if isinstance(instance, Misspecified) else instance
        return budget | {metric: solvers.ncis(pages, cost=instance.cost).objective}
    if kind in (PERIODIC, POISSON):
        solve = solvers.harmonic_periodic if kind == PERIODIC else solvers.harmonic
        columns = weight, instance.change_rate, instance.bandwidth
        plan = solve(*columns, complete=instance.complete, cost=instance.cost)
        return budget | {metric: plan.objective / float(weight.sum())}
    return budget | ({metric: 1.0} if kind == PERFECT else {})


def bound_label(task: Task) -> str:
    """Return the label under which the rows of a task's bound are stored."""
    return task.bound if task.bound in POLICY_BOUNDS else BOUND


def bound_reward(task: Task, setting: Setting, seed: int) -> float:
    """Return the mean reward per step that a task's bound reaches in repetition ``seed``."""
    rows = setting.play(bound_label(task), seed)
    [value] = [row.value for row in rows if row.metric == task.metric]
    return AS_REWARD[task.metric](value)
