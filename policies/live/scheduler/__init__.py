"""A live scheduler of fetches, for any number of pages.

Public modules: describing, files, ids, states.
"""

from __future__ import annotations

from policies.live.scheduler.durable import DurableScheduler
from policies.live.scheduler.pacing import Fetch
from policies.live.scheduler.scheduler import CrawlScheduler
from policies.live.scheduler.shards import ShardedScheduler

__all__ = ["CrawlScheduler", "DurableScheduler", "Fetch", "ShardedScheduler"]
