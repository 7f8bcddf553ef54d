"""Crawls with Scrapy in processes of their own, of a web that a thread serves."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import scrapy
import uvicorn
from scrapy.crawler import CrawlerProcess

from crawl_envs.instances.traces import find, load
from scripts.live.replayed_web import Quality, ReplayedWeb, application, listening

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [__name__, "policies.live.adapters.scrapy", "tests.policies.live.adapters.warm"]
)
SETTINGS: dict[str, Any] = {
    "SCHEDULER": "policies.live.adapters.scrapy.RecrawlScheduler",
    "DOWNLOADER_MIDDLEWARES": {"policies.live.adapters.scrapy.RecrawlMiddleware": 500},
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "CRITICAL",
}


class Follower(scrapy.Spider):
    """Follows all links; the pages of one number by another method."""

    name = "follower"

    def parse(self, response: Any) -> Iterator[Any]:
        for link in response.css("a::attr(href)").getall():
            other = {"callback": self.other, "cb_kwargs": {"told": 7}} if link[-1] == "7" else {}
            yield response.follow(link, **other)

    def other(self, response: Any, told: int) -> Iterator[Any]:
        self.crawler.stats.inc_value(f"other/{told}")
        yield from self.parse(response)


def crawl(settings: dict[str, Any], url: str, pipe: Connection) -> None:
    """Crawl, and send the counters at the end."""
    process = CrawlerProcess(SETTINGS | settings)
    crawler = process.create_crawler(Follower)
    process.crawl(crawler, start_urls=[url])
    process.start()
    assert crawler.stats is not None
    pipe.send(crawler.stats.get_stats())


def begin(settings: dict[str, Any], url: str) -> tuple[Any, Connection]:
    """Begin a crawl in a process."""
    ours, theirs = FORKS.Pipe()
    process = FORKS.Process(target=crawl, args=(settings, url, theirs))
    process.start()
    return process, ours


@contextmanager
def served(speed: float, hosts: int, quality: Quality) -> Iterator[ReplayedWeb]:
    """Serve the included site."""
    sockets = listening(hosts)
    base = f"http://{{}}:{sockets[0].getsockname()[1]}"
    trace = load(find("garden-handbook"))
    web = ReplayedWeb(trace, speed, base, hosts=hosts, quality=quality)
    server = uvicorn.Server(uvicorn.Config(application(web), log_level="critical"))
    server.config.timeout_graceful_shutdown = 0
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield web
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
        for each in sockets:
            each.close()
