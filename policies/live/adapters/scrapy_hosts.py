"""When the hosts of a crawl with Scrapy may be asked: gaps, robots.txt, and turns of redirects."""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Callable
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import BaseSettings
from twisted.internet.defer import Deferred

from policies.live.adapters.fetches import host_of, leave_alone
from policies.live.adapters.messages import AUDITED, PROMISED, measured
from policies.live.adapters.scrapy_settings import SECOND
from policies.live.scheduler import DurableScheduler

logger = logging.getLogger(__name__)
STATS = {"freshness": "estimate"} | AUDITED


class Hosts:
    """The limits of hosts; ``min_gap`` is the shortest gap of a host, in seconds."""

    def __init__(self, pages: DurableScheduler, settings: BaseSettings, min_gap: float) -> None:
        self.pages, self.settings, self.min_gap = pages, settings, min_gap
        self.gaps: dict[str, float] = {}  # in seconds, of hosts that are known
        self._limit(None, min_gap)

    def _limit(self, host: str | None, gap: float) -> None:
        """Limit a host, or all hosts, which have one fetch at a time until robots.txt is known."""
        settings, hosts = self.settings, None if host is None else [host]
        at_once = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN") or math.inf
        alone = gap > 0.0 or (hosts is None and settings.getbool("ROBOTSTXT_OBEY"))
        self.pages.limit_hosts(hosts, gap=gap * SECOND, most=1 if alone else at_once)
        if host is not None:
            self.gaps[host] = gap

    def answered(self, url: str) -> None:
        """Limit the host of a page that was answered, unless it is limited already."""
        if host_of(url) not in self.gaps:
            self._limit(host_of(url), self.min_gap)

    def set_crawl_delay(self, robotparser: Any, request: Request) -> None:
        """Use the Crawl-delay of a host's robots.txt if it is longer than the gap."""
        agent = self.settings.get("ROBOTSTXT_USER_AGENT") or self.settings.get("USER_AGENT")
        delay = float(robotparser.crawl_delay(agent) or 0.0)
        self._limit(host_of(request.url), max(delay, self.min_gap))

    def gap(self, url: str) -> float:
        """Return the least days between two fetches of a URL's host."""
        return self.gaps.get(host_of(url), self.min_gap) * SECOND

    def opens(self, url: str) -> float:
        """Return the time from which a URL's host may be fetched from."""
        return float(self.pages.opens(host_of(url)))

    def ask_alone(self, url: str, now: float) -> None:
        """Let a host's pages wait for the host's gap after a feed or redirect was fetched there."""
        if self.gap(url) > 0.0:
            leave_alone(self.pages, url, now + self.gap(url))


class Turns:
    """A queue of requests that are made once: requests with a body, and steps of redirects.

    A step of a redirect waits until its host is open. After it the pages of the host have a turn.

    Args:
        hosts: the limits of hosts.
        longest: days that a redirect may wait; later its page counts as lost.
        is_wanted: whether the fetch of a page or feed is still under way.
    """

    def __init__(self, hosts: Hosts, longest: float, is_wanted: Callable[[str], bool]) -> None:
        self.hosts, self.longest, self.is_wanted = hosts, longest, is_wanted
        self.waiting: list[tuple[float, int, str, Request]] = []  # a heap
        self.number = 0
        self.steps: dict[str, int] = {}  # the number of the last step, by page or feed
        self.ends: dict[str, float] = {}  # when a host may be asked after its last redirect

    @property
    def due(self) -> float:
        """The time of the first request in the queue; inf if the queue is empty."""
        return self.waiting[0][0] if self.waiting else math.inf

    def add(self, request: Request, time: float, name: str = "") -> None:
        """Queue a request for a time; ``name`` is the page or feed of a redirect, else ""."""
        self.number += 1
        heapq.heappush(self.waiting, (time, self.number, name, request))
        if name:
            self.steps[name] = self.number

    def redirect(self, name: str, request: Request, now: float) -> float | None:
        """Queue the next step of a redirect; return its time if that is too late, else None.

        The step replaces a waiting step of the same page or feed (``name``).
        """
        gap, host = self.hosts.gap(request.url), host_of(request.url)
        before = sum(host_of(waiting.url) == host for *_, waiting in self.waiting)
        turn = now + gap * (1 + 2 * before)
        if turn - now > self.longest:
            return turn
        self.add(request, now + gap, name)
        return None

    def next(self, now: float) -> Request | None:
        """Return a queued request that is due now, None without one."""
        while self.due <= now:
            _, number, name, request = heapq.heappop(self.waiting)
            if not name:
                return request
            if self.steps.get(name) != number:
                continue  # a later step replaces it
            del self.steps[name]
            if not self.is_wanted(name):
                continue
            host, opens = host_of(request.url), self.hosts.opens(request.url)
            if opens > now:
                if opens <= self.ends.get(host, -math.inf):  # no page was asked since
                    opens += 0.5 * self.hosts.gap(request.url)
                self.add(request, opens, name)
                continue
            self.hosts.ask_alone(request.url, now)
            self.ends[host] = self.hosts.opens(request.url)
            return request
        return None


class Report:
    """Warns of pages that need attention, and counts them in stats: ``recrawl/gone_pages``, .."""

    def __init__(self, pages: DurableScheduler, crawler: Crawler) -> None:
        self.pages, self.crawler, self.counts = pages, crawler, dict[str, int]()
        self.since, self.due = pages.time, pages.time + 600.0 * SECOND

    def write(self, now: float) -> None:
        """Update the stats at most once in ten minutes, and warn if counts of troubles changed."""
        if now < self.due:
            return
        self.due, overview = now + 600.0 * SECOND, self.pages.overview()
        names = "failing", "starved", "likely_stale", "held"
        counts = {"gone": overview["states"]["gone"], **{name: overview[name] for name in names}}
        for name, count in counts.items():
            what = "hosts" if name == "held" else "pages"
            self.crawler.stats.set_value(f"recrawl/{name}_{what}", count)
        values = {name: overview[name] for name in PROMISED if name in overview}
        if self.pages.audits is not None:
            facts = measured(self.pages, since=self.since)
            values |= {name: facts[key] for name, key in STATS.items()}
        for name, value in values.items():
            self.crawler.stats.set_value(f"recrawl/{name}", value)
        if any(counts.values()) and counts != self.counts:
            words = ", ".join(f"{count} {name}" for name, count in counts.items()).replace("_", " ")
            logger.warning(f"pages that need attention: {words}")
        self.counts = counts


def forget_robots(crawler: Crawler) -> None:
    """Remove all stored robots.txt, so that Scrapy fetches them again."""
    robots = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    parsers = getattr(robots, "_parsers", {})
    for host in [host for host, parser in parsers.items() if not isinstance(parser, Deferred)]:
        del parsers[host]
