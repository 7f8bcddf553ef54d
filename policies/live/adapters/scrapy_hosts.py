"""How soon the hosts of a crawl with Scrapy may be asked again, by settings and robots.txt."""

from __future__ import annotations

import logging
import math
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import BaseSettings
from twisted.internet.defer import Deferred

from policies.live.adapters.fetches import host_of, leave_alone
from policies.live.adapters.scrapy_settings import SECOND
from policies.live.scheduler import DurableScheduler

logger = logging.getLogger(__name__)


class Hosts:
    """The limits of hosts, which the scheduler of the pages keeps.

    Args:
        pages: that scheduler.
        settings: the settings of Scrapy.
        least: seconds from a fetch of a host to the next, at least.
    """

    def __init__(self, pages: DurableScheduler, settings: BaseSettings, least: float) -> None:
        self.pages, self.settings, self.least = pages, settings, least
        self.gaps: dict[str, float] = {}  # in seconds, of hosts that are known
        self._limit(None, least)

    def _limit(self, host: str | None, gap: float) -> None:
        """Limit a host, or all; one whose robots.txt is not known yet has one fetch at a time."""
        settings, hosts = self.settings, None if host is None else [host]
        most = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN") or math.inf
        alone = gap > 0.0 or (hosts is None and settings.getbool("ROBOTSTXT_OBEY"))
        self.pages.limit_hosts(hosts, gap=gap * SECOND, most=1 if alone else most)
        if host is not None:
            self.gaps[host] = gap

    def answered(self, url: str) -> None:
        """Limit the host of a page that was answered, if nothing is known of it."""
        if host_of(url) not in self.gaps:
            self._limit(host_of(url), self.least)

    def heed(self, robotparser: Any, request: Request) -> None:
        """Keep the Crawl-delay of a host's robots.txt, where it is longer than the gap."""
        agent = self.settings.get("ROBOTSTXT_USER_AGENT") or self.settings.get("USER_AGENT")
        delay = float(robotparser.crawl_delay(agent) or 0.0)
        self._limit(host_of(request.url), max(delay, self.least))

    def gap(self, url: str) -> float:
        """Return the days from a fetch of a URL's host to the next."""
        return self.gaps.get(host_of(url), self.least) * SECOND

    def opens(self, url: str) -> float:
        """Return the time from which a URL's host may be asked."""
        return float(self.pages.opens(host_of(url)))

    def ask_alone(self, url: str, now: float) -> None:
        """Let a host's pages wait for its gap after a request that is none of them."""
        if self.gap(url) > 0.0:
            leave_alone(self.pages, url, now + self.gap(url))


class Report:
    """Warns of pages that need attention, and counts them in stats: ``recrawl/gone_pages``, .."""

    def __init__(self, pages: DurableScheduler, crawler: Crawler) -> None:
        self.pages, self.crawler, self.counts = pages, crawler, dict[str, int]()
        self.due = pages.time + 600.0 * SECOND

    def write(self, now: float) -> None:
        """Set the stats, once in ten minutes, and warn if they have changed."""
        if now < self.due:
            return
        self.due, known = now + 600.0 * SECOND, self.pages.overview()
        names = "failing", "starved", "late", "held"
        counts = {"gone": known["states"]["gone"]} | {k: known[k] for k in names if k in known}
        for name, count in counts.items():
            what = "hosts" if name == "held" else "pages"
            self.crawler.stats.set_value(f"recrawl/{name}_{what}", count)
        if any(counts.values()) and counts != self.counts:
            words = ", ".join(f"{count} {name}" for name, count in counts.items())
            logger.warning(f"pages that need attention: {words}")
        self.counts = counts


def forget_robots(crawler: Crawler) -> None:
    """Let each robots.txt be fetched again, which Scrapy keeps to itself for ever."""
    robots = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    parsers = getattr(robots, "_parsers", {})
    for host in [host for host, known in parsers.items() if not isinstance(known, Deferred)]:
        del parsers[host]
