"""The policies and agents that enter a suite, and its tasks with those that can act there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rich.console import Console

import agents
import policies
from agents.progress import tracked
from crawl_envs.evaluation import Row
from scripts.study.entrants import Candidate, applicable, candidates_of, entered
from scripts.study.settings import Setting
from scripts.suite.bounds import BOUND, PLAYED, bound_of
from scripts.suite.episodes import least_served
from scripts.suite.tasks import CLAIRVOYANT, FIRST_DAY, FIRST_SEED, MEASURED, WINDOW, WINDOWS, Task

LEAST_SERVED = "least_served"
"""Metric of the mean freshness of the tenth of pages that are least fresh in an episode."""


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


def entrants(names: Sequence[str]) -> dict[str, Candidate]:
    """Return all shipped policies but oracles, the shipped agents, and those named.

    Args:
        names: names as of :func:`scripts.study.entrants.candidate_of`.

    Raises:
        ValueError: an unknown name, two agents of the same name, or a damaged file of an agent.
    """
    return candidates_of((*policies.names(fragments=True, oracle=False), *agents.names(), *names))


def settings_of(
    tasks: Sequence[Task],
    candidates: Mapping[str, Candidate],
    yours: Sequence[str],
    console: Console,
) -> list[TaskSetting]:
    """Return the tasks with those that can act there; print where the reader's cannot, and why.

    Raises:
        ValueError: one of the labels ``yours`` can act nowhere.
    """
    shown = tracked(tasks, "tasks: which entrants can act", console)
    settings = [setting_of(task, candidates) for task in shown]
    for label in yours:
        refused: dict[str, list[str]] = {}
        for setting in settings:
            if label in setting.refused:
                refused.setdefault(setting.refused[label], []).append(setting.name)
        if sum(map(len, refused.values())) == len(settings):
            reason = next(iter(refused))
            raise ValueError(f"entrant {label} cannot act in any task of the suite: {reason}")
        for reason, names in refused.items():
            text = f"{label} cannot act in {', '.join(names)}: {reason}"
            console.print(text, soft_wrap=True, markup=False)
    return settings


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
