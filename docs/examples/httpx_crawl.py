"""Fetch the pages of a list again when that pays: a loop of httpx around the live scheduler.

``python docs/examples/httpx_crawl.py urls.txt --folder state``
"""

import argparse
import asyncio
import contextlib
from pathlib import Path

import httpx

from policies.live import CrawlScheduler, DurableScheduler
from policies.live.adapters.copies import Copies, text_of
from policies.live.adapters.fetches import Answer, Fetches, host_of
from policies.live.adapters.messages import day_of

SECOND = 1.0 / 86_400.0  # the scheduler counts in days
AGENT = "my-crawler (+https://my.example/crawler)"  # tell sites who you are


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
            timeout=120.0 * SECOND,  # longer than a fetch may take
            retry=3_600.0 * SECOND,  # the first wait after a failure
            keep_gone=30.0,
        )
    scheduler = DurableScheduler(folder, new)
    scheduler.configure(day_of(None), bandwidth=bandwidth, audit_share=0.01)  # may differ
    scheduler.limit_hosts(gap=gap * SECOND)
    scheduler.warm()  # compiles, in the first run for a minute or two
    return scheduler


async def fetch(client, url, conditions):
    """Return the answer to a request, with what is compared of it; none at all after an error."""
    try:
        async with asyncio.timeout(60.0):  # pages may never end
            response = await client.get(url, headers=conditions)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
        return Answer(), b""
    content = text_of(response.content, response.headers.get("content-type", ""))
    answer = Answer.of(response.status_code, response.headers, content, str(response.url))
    return answer, response.content


async def worker(client, fetches, copies, see):
    """Fetch the page that is due, report what was found, and so on for ever."""
    while True:
        sent = day_of(None)
        url, ask_again = fetches.scheduler.next(sent)
        if url is None:  # no page is due, or no host may be asked
            await asyncio.sleep(min((ask_again - sent) / SECOND, 1.0))
            continue
        fetches.begin(url, sent)
        answer, body = await fetch(client, url, copies[url].conditions)
        outcome, copy = fetches.end(url, answer, day_of(None))
        if outcome in ("new", "changed"):
            see(url, body)  # this is where your work on a page goes
        if outcome == "gone":
            copies.remove(url)
        else:
            copies.put({url: copy})  # after the work: what a crash has cost is seen again


async def crawl(urls, folder, see, bandwidth=20_000.0, gap=5.0, workers=8):
    """Fetch pages for ever; ``see`` is called with the pages that are new or have changed."""
    with open_scheduler(folder / "scheduler", bandwidth, gap) as scheduler:
        copies = Copies(folder / "copies")
        fetches = Fetches(scheduler, copies, day_of(None))
        scheduler.add(urls, known="skip", host=[host_of(url) for url in urls])
        client = httpx.AsyncClient(
            headers={"User-Agent": AGENT}, follow_redirects=True, timeout=30.0
        )
        try:
            async with client, asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(worker(client, fetches, copies, see))
        finally:
            copies.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("urls", type=Path, help="a file with a URL in each line")
    parser.add_argument("--folder", type=Path, default=Path("state"))
    parser.add_argument("--bandwidth", type=float, default=20_000.0, help="fetches per day")
    parser.add_argument("--gap", type=float, default=5.0, help="seconds between two of a host")
    options = parser.parse_args()

    def see(url, body):
        """Print a page that is new or has changed."""
        print("new or changed:", url, f"({len(body)} bytes)", flush=True)

    lines = options.urls.read_text("utf-8").split()
    with contextlib.suppress(KeyboardInterrupt):  # the same command goes on
        asyncio.run(crawl(lines, options.folder, see, options.bandwidth, options.gap))
