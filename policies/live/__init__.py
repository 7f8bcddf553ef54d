"""The crawl engineer's room: logs of crawls, a live scheduler, and adapters for crawlers.

Public modules: urls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies.live.scheduler import CrawlScheduler, DurableScheduler, ShardedScheduler

if TYPE_CHECKING:
    from policies.live.logs import read_crawl_log

__all__ = ["CrawlScheduler", "DurableScheduler", "ShardedScheduler", "read_crawl_log"]


def __getattr__(name: str) -> Any:
    """Import the reader of crawl logs on its first use, so that crawlers run without PyArrow."""
    if name == "read_crawl_log":
        from policies.live.logs import read_crawl_log

        return read_crawl_log
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
