"""Crawl a site with Crawlee for ever: each page is fetched again when that pays.

``python docs/examples/crawlee_crawl.py https://a.example/ --folder state``
"""

import argparse
import asyncio
from datetime import timedelta
from pathlib import Path

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext

from policies.live import CrawlScheduler, DurableScheduler
from policies.live.adapters.crawlee import ScheduledRequests
from policies.live.adapters.messages import day_of

SECOND = 1.0 / 86_400.0  # the scheduler counts in days


def open_scheduler(folder, bandwidth, gap):
    """Return the scheduler of a folder: a new one, or the one of the last run."""
    new = None
    if not DurableScheduler.holds(folder):
        new = CrawlScheduler(
            "GreedyNCIS",
            bandwidth,  # fetches per day
            start=day_of(None),  # now, in days since 1970
            learn=True,  # how often each page changes
            burst=1.0 * SECOND,  # timers are late by less
            timeout=300.0 * SECOND,  # longer than a fetch and its handler may take
            retry=3_600.0 * SECOND,  # the first wait after a failure
            keep_gone=30.0,
        )
    scheduler = DurableScheduler(folder, new)
    scheduler.configure(day_of(None), bandwidth=bandwidth, audit_share=0.01)  # may differ
    scheduler.limit_hosts(gap=gap * SECOND)
    scheduler.warm()  # compiles, in the first run for a minute or two
    return scheduler


async def crawl(start, folder, bandwidth=20_000.0, gap=5.0, pages=None):
    """Crawl from an address on; ``pages`` ends it when so many were new, changed or failed."""
    with open_scheduler(folder / "scheduler", bandwidth, gap) as scheduler:
        manager = ScheduledRequests(scheduler, folder)
        crawler = ParselCrawler(
            request_manager=manager,
            keep_alive=True,
            max_requests_per_crawl=pages,
            respect_robots_txt_file=True,
            navigation_timeout=timedelta(seconds=30),
            concurrency_settings=ConcurrencySettings(min_concurrency=8, desired_concurrency=8),
        )
        crawler.post_navigation_hook(manager.observe)  # tells what fetches find

        @crawler.router.default_handler
        async def handle(context: ParselCrawlingContext) -> None:
            """See a page when it is new or has changed."""
            print("new or changed:", context.request.url, flush=True)
            await context.push_data({"url": context.request.url}, dataset_name="changes")
            await context.enqueue_links()  # links of this host; known ones cost nothing

        await crawler.run([start])
        print(f"{manager.handled} fetches of {len(scheduler)} pages")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("start")
    parser.add_argument("--folder", type=Path, default=Path("state"))
    parser.add_argument("--bandwidth", type=float, default=20_000.0, help="fetches per day")
    parser.add_argument("--gap", type=float, default=5.0, help="seconds between two of a host")
    options = parser.parse_args()
    asyncio.run(crawl(options.start, options.folder, options.bandwidth, options.gap))
