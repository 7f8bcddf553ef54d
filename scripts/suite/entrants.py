"""The policies and agents that enter a task, and its bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import agents
import policies
from crawl_envs.evaluation import PolicyFactory, Row
from crawl_envs.instances.misspecified.occurrences import Misspecified
from crawl_envs.types import Instance, IntArray, Policy
from policies import solvers
from scripts.study.bounds import optimum
from scripts.study.clairvoyant import clairvoyant
from scripts.study.entrants import Candidate, applicable, candidates_of, entered
from scripts.study.settings import Setting, spec
from scripts.suite.episodes import least_served
from scripts.suite.tasks import (
    AS_REWARD,
    CLAIRVOYANT,
    FIRST_DAY,
    FIRST_SEED,
    MEASURED,
    OPTIMUM,
    ORACLE,
    PERFECT,
    PERIODIC,
    POISSON,
    WINDOW,
    WINDOWS,
    Task,
)

BOUND, BUDGET = "bound", "budget"
"""Label of the bound in the rows, and the metric of crawls per unit time that are allowed."""
LEAST_SERVED = "least_served"
"""Metric of the mean freshness of the tenth of pages that are least fresh in an episode."""


class Replay:
    """A policy that crawls given pages in turn."""

    def __init__(self, pages: IntArray) -> None:
        self.pages, self.slot = pages, 0

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """Return the page of the next slot."""
        self.slot += 1
        return self.pages[self.slot - 1], state


@spec("suite-clairvoyant")
def foreseeing(env: Any) -> Policy:
    """Return the clairvoyant policy of a recorded window."""
    core: Any = env.unwrapped
    pages = clairvoyant(
        core.lanes.tape, core.instance.importance, core.instance.bandwidth, core.lanes.horizon
    )
    replay: Any = Replay(pages)
    return replay


@spec("suite-bound")
def bound_of(instance: Instance, *, kind: str, metric: str) -> dict[str, float]:
    """Return the value of a bound that is a formula, if it is one, and the budget."""
    budget = {BUDGET: float(instance.bandwidth)}
    weight = instance.importance
    given = weight, instance.change_rate, instance.bandwidth
    if kind == OPTIMUM:
        true = instance.pages if isinstance(instance, Misspecified) else instance
        return budget | {metric: optimum(true)}
    if kind in (PERIODIC, POISSON):
        solve = solvers.harmonic_periodic if kind == PERIODIC else solvers.harmonic
        plan = solve(*given, complete=instance.complete)
        return budget | {metric: plan.objective / float(weight.sum())}
    return budget | ({metric: 1.0} if kind == PERFECT else {})


PLAYED: Mapping[str, PolicyFactory] = {
    ORACLE: partial(policies.make, "FragmentDynamic"),
    CLAIRVOYANT: foreseeing,
}
"""Bounds that are played."""


@dataclass(frozen=True)
class TaskSetting(Setting):
    """A task with its entrants; repetitions of recorded tasks go through the windows in turn.

    Attributes:
        refused: why others cannot act, by label.
    """

    first_seed: int = FIRST_SEED
    refused: Mapping[str, str] = field(default_factory=dict)

    def seeds(self, count: int) -> Sequence[int]:
        """Return the seeds of ``count`` repetitions."""
        return range(count)

    def arguments_of(self, seed: int) -> dict[str, Any]:
        """Return the arguments of ``gymnasium.make`` for a repetition."""
        window = {"window": list(self.windows[seed % WINDOWS])} if self.windows else {}
        return {**self.arguments, **window}

    def play(self, label: str, seed: int) -> list[Row]:
        """Return the rows of an entrant or of the bound in one repetition."""
        plain = replace(self, arguments=self.arguments_of(seed), windows=(), budget_share=False)
        rows = Setting.play(plain, label, seed)
        if self.name == MEASURED and label in self.policies:
            with self.threads(label):
                fresh = least_served(
                    self.id, plain.arguments, self.policies[label], self.first_seed + seed
                )
            rows.append(Row(self.id, self.name, label, seed, LEAST_SERVED, fresh))
        return [row for row in rows if row.value == row.value]


def bound_reward(task: Task, setting: TaskSetting, seed: int) -> float:
    """Return the mean reward per step of the bound of a task in a repetition of its setting."""
    label = task.bound if task.bound in PLAYED else BOUND
    [value] = [row.value for row in setting.play(label, seed) if row.metric == task.metric]
    return AS_REWARD[task.metric](value)


def entrants(given: Sequence[str]) -> dict[str, Candidate]:
    """Return all shipped policies but oracles, the shipped agents, and those of one's own.

    Args:
        given: names as of :func:`scripts.study.entrants.candidate_of`.

    Raises:
        ValueError: an unknown name, two agents of the same name, or a damaged file of an agent.
    """
    shipped = *policies.names(fragments=True, oracle=False), *agents.names()
    return candidates_of((*shipped, *given))


def setting_of(task: Task, candidates: Mapping[str, Candidate]) -> TaskSetting:
    """Return a task with those candidates that can act in it; for errors see ``applicable``."""
    windows = tuple(
        (FIRST_DAY + WINDOW * place, FIRST_DAY + WINDOW * (place + 1)) for place in range(WINDOWS)
    )
    recorded = windows if task.bound == CLAIRVOYANT else ()
    first = {"window": list(windows[0])} if recorded else {}
    where, arguments = f"task {task.name}, first choice: ", {**task.arguments, **first}
    able, refused = applicable(candidates, task.id, arguments, where)
    if task.bound in PLAYED:
        able[task.bound] = Candidate(task.bound, PLAYED[task.bound])
    return TaskSetting(
        task.name,
        task.id,
        task.arguments,
        **entered(able),
        bounds={BOUND: partial(bound_of, kind=task.bound, metric=task.metric)},
        windows=recorded,
        refused=refused,
    )
