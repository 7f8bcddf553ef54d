"""The suites of tasks by name.

The tasks of crawl-v1 and crawl-v2 never change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawl_envs.types.arguments import one_of
from scripts.suite import crawl_v1, crawl_v2
from scripts.suite.tasks import Task

SUITES: Mapping[str, tuple[Task, ...]] = {
    "crawl-v2": crawl_v2.TASKS,
    "crawl-v1": crawl_v1.TASKS,
    "mini": crawl_v1.MINI,
    "recorded-dev": crawl_v2.RECORDED_DEV,
}


def tasks_of(suite: str, names: Sequence[str]) -> list[Task]:
    """Return the named tasks of a suite in its order, or all; ValueError for an unknown name."""
    tasks = {task.name: task for task in SUITES[suite]}
    for name in names:
        one_of(f"task of {suite}", name, tasks)
    return [task for name, task in tasks.items() if name in names or not names]


def holds_out(suite: str) -> bool:
    """Return whether a suite has worlds that are for tests alone, and refuses to train on them."""
    return any(task.arguments.get("pages") == "test" for task in SUITES[suite])
