"""The suites of tasks by name.

The tasks of crawl-v1 never change. Those of crawl-v2 may, until its leaderboard is played.
"""

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
