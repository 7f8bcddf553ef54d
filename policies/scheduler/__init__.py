"""A live scheduler of fetches, for any number of pages."""

from __future__ import annotations

from policies.scheduler.durable import DurableScheduler
from policies.scheduler.scheduler import CrawlScheduler, Fetch

__all__ = ["CrawlScheduler", "DurableScheduler", "Fetch"]
