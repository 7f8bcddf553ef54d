"""A live scheduler of fetches, for any number of pages.

Public modules: describing, files, ids, states.
"""

from __future__ import annotations

from policies.scheduler.durable import DurableScheduler
from policies.scheduler.pacing import Fetch
from policies.scheduler.scheduler import CrawlScheduler
from policies.scheduler.shards import ShardedScheduler

__all__ = ["CrawlScheduler", "DurableScheduler", "Fetch", "ShardedScheduler"]
