"""A live scheduler of fetches, for any number of pages.

Public modules: none.
"""

from __future__ import annotations

from policies.scheduler.scheduler import CrawlScheduler, Fetch

__all__ = ["CrawlScheduler", "Fetch"]
