"""The suites of tasks by name; they are fixed, so any change makes a new version."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.suite import crawl_v1, crawl_v2
from scripts.suite.tasks import Task

SUITES: Mapping[str, tuple[Task, ...]] = {
    "crawl-v2": crawl_v2.TASKS,
    "crawl-v1": crawl_v1.TASKS,
    "mini": crawl_v1.MINI,
    "recorded-dev": crawl_v2.RECORDED_DEV,
}
