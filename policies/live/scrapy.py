"""A scheduler for crawls with Scrapy that never end: pages are fetched again when it pays.

In the settings of a project (Scrapy >= 2.13, the extra ``scrapy``)::

    SCHEDULER = "policies.live.scrapy.RecrawlScheduler"
    DOWNLOADER_MIDDLEWARES = {"policies.live.scrapy.RecrawlMiddleware": 500}
    RECRAWL_FOLDER = "state"  # of this crawl
    RECRAWL_BANDWIDTH = 20_000  # fetches of pages per day

========================  ==========================================================================
setting                   meaning
========================  ==========================================================================
``RECRAWL_FOLDER``        the crawl's own folder, from which it goes on after any end
``RECRAWL_BANDWIDTH``     fetches of pages per day; feeds, robots.txt and redirects come on top
``RECRAWL_POLICY``        an index policy, ``GreedyNCIS``
``RECRAWL_HOST_GAP``      seconds from a fetch of a host to the next, ``DOWNLOAD_DELAY``; more if
                          its robots.txt has a longer Crawl-delay (Scrapy >= 2.18)
``RECRAWL_RETRY``         seconds from a first failure to the next fetch, 3600; they double
``RECRAWL_KEEP_GONE``     days for which pages that are gone are remembered, 30
``RECRAWL_FEEDS``         feeds and sitemaps: ``{url: number of the source of signals, from 0 on}``
``RECRAWL_POLL``          seconds between two fetches of a feed, 3600
``RECRAWL_SKEW``          seconds by which the clocks of feeds may differ, 5
``RECRAWL_ROBOTS``        seconds after which a robots.txt is fetched again, 86400
``RECRAWL_COMPARE``       function of a response, by name, that returns what is compared with the
                          copy before, str or bytes; the text without scripts and styles
========================  ==========================================================================

Every request without a body becomes a page, those of ``start`` and those that callbacks yield; it
is fetched again and again with the same callback (a method of the spider) and ``cb_kwargs`` (JSON),
with all else of the request lost but ``meta["importance"]``, a number. The callback is called when
a page is new or has changed, not for 304 or the same content, and again after it raised an error.

A page is gone after 410, or 404 right after another failure: it is not fetched again, unless a
link or a feed names it anew when ``RECRAWL_KEEP_GONE`` has passed. A page that robots.txt or
another middleware refuses, as one that is offsite, waits for ``RECRAWL_ROBOTS``. Every other error
is a failure.
Requests with a body, or of another method than GET, are made once, at once. The rules of a
CrawlSpider would be lost: it is refused.
"""

from __future__ import annotations

import heapq
import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.spiders import CrawlSpider
from scrapy.utils.reactor import CallLaterOnce
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from crawl_envs.types.arguments import quantity
from policies.live.copies import SETTLED, Copies, Copy
from policies.live.feeds import Polls
from policies.live.fetches import HEADERS, Answer, leave_alone, note_fetch, respect
from policies.live.messages import SECONDS_PER_DAY, day_of
from policies.live.scrapy_settings import read_options
from policies.scheduler import CrawlScheduler, DurableScheduler

SECOND = 1.0 / SECONDS_PER_DAY
PAGE, FEED = "recrawl_page", "recrawl_feed"
"""What a request fetches, in its ``meta``."""
NONE = Answer()
MIDDLEWARES: WeakKeyDictionary[Crawler, RecrawlMiddleware] = WeakKeyDictionary()


class Unchanged(IgnoreRequest):
    """The callback shall not see a page."""


def steady() -> Callable[[], float]:
    """Return a clock, in days since 1970, that no change of the machine's clock moves."""
    start = day_of(None) - time.monotonic() * SECOND
    return lambda: start + time.monotonic() * SECOND


class RecrawlScheduler:
    """The scheduler of a crawl: ``SCHEDULER``; see the module.

    Attributes:
        pages: the scheduler of the pages, from ``open`` on.
        copies: what is known of their copies, likewise.
        sent: the time at which the pages' fetches began that are under way, in days.
        clock: returns the time, in days since 1970.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler, self.options, self.clock = crawler, read_options(crawler.settings), steady()
        if crawler not in MIDDLEWARES:
            raise ValueError(f"DOWNLOADER_MIDDLEWARES must have {__name__}.RecrawlMiddleware: 500")
        MIDDLEWARES[crawler].scheduler = self
        if hasattr(signals, "robots_parsed"):
            crawler.signals.connect(self._heed, signals.robots_parsed)
        crawler.signals.connect(self._unprocessed, signals.spider_error)
        self.sent: dict[str, float] = {}
        self.found: dict[str, tuple[str | None, float]] = {}
        self.passed: list[tuple[float, int, Request]] = []
        self.steps: dict[str, int] = {}  # by page or feed, the redirect that goes on
        self.turns: dict[str, float] = {}  # by host, when it may be asked after the last one
        self.gaps: dict[str, float] = {}
        self.number, self.timer = 0, CallLaterOnce(self._wake)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RecrawlScheduler:
        """Return the scheduler of a crawl; ValueError for bad settings."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Go on with the folder's pages, or begin; ValueError if it is of other settings."""
        options, settings, now = self.options, self.crawler.settings, self.clock()
        if isinstance(spider, CrawlSpider):
            raise ValueError(f"spider must not be a CrawlSpider, got {type(spider).__name__}")
        self.spider, folder = spider, Path(options.folder)
        every, spelled = options.poll * SECOND, lambda url: str(Request(url).url)
        self.polls = Polls(options.feeds, folder, every, now, {}, spelled)
        self.robots_until = now + options.robots * SECOND
        self.timeout = max(2.0 * settings.getfloat("DOWNLOAD_TIMEOUT"), 1.0) * SECOND
        folder.mkdir(parents=True, exist_ok=True)
        pace: dict[str, Any] = {
            "burst": settings.getint("CONCURRENT_REQUESTS") / options.bandwidth,
            "timeout": self.timeout,
            "retry": options.retry * SECOND,
        }
        fixed: dict[str, Any] = {
            "num_sources": max(options.feeds.values(), default=0) + 1,
            "skew": options.skew * SECOND,
            "keep_gone": options.keep_gone,
        }
        new = None
        if not DurableScheduler.holds(folder / "scheduler"):
            fixed |= {"start": now, "learn": True, "resolution": SECOND}
            new = CrawlScheduler(options.policy, options.bandwidth, **fixed, **pace)
        self.pages = DurableScheduler(folder / "scheduler", new)
        self._check_held(fixed)
        self.pages.configure(now, bandwidth=options.bandwidth, **pace)
        self.pages.report(self.pages.under_way, now, "interrupted")  # by a kill
        self._limit(None, options.host_gap)
        spider.logger.info("RecrawlScheduler compiles, in its first run for some minutes")
        self.pages.warm()
        self.copies = Copies(folder / "copies.sqlite")

    def _check_held(self, given: Mapping[str, Any]) -> None:
        """Raise ValueError if a setting that cannot change is another one than the folder's."""
        [lines] = self.pages.pages.choices.lines
        held = {
            "RECRAWL_POLICY": (self.pages.pages.values.name, self.options.policy),
            "sources of RECRAWL_FEEDS": (self.pages.num_sources, given["num_sources"]),
            "RECRAWL_SKEW": [f"{x['skew'] / SECOND:g}" for x in (lines, given)],
            "RECRAWL_KEEP_GONE": [f"{x['keep_gone']:g}" for x in (lines, given)],
        }
        for name, (before, now) in held.items():
            if before != now:
                self.pages.close()
                folder = self.options.folder
                raise ValueError(f"{name} must be {before} as in {folder}, got {now}")

    def close(self, reason: str) -> None:
        """Leave the folder to the next run."""
        self.timer.cancel()
        if not hasattr(self, "copies"):  # it could not be opened
            return
        self._admit()
        self.copies.close()
        self._count("pages", len(self.pages))
        self.pages.close()

    def _count(self, name: str, value: int = 1) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(f"recrawl/{name}", value)

    # Requests

    def has_pending_requests(self) -> bool:
        """Return True: the crawl never ends."""
        return True

    def enqueue_request(self, request: Request) -> bool:
        """Take a page, the next step of a redirect, or a request with a body."""
        page = request.meta.get(PAGE)
        if request.meta.get(FEED) or page in self.sent:  # redirected
            return self._redirect(request)
        if request.method != "GET" or request.body:
            self._pass(request, self.clock())
        elif page is not None and "retry_times" in request.meta:
            return False  # of a callback; the page comes again
        else:
            importance = quantity('meta["importance"]', request.meta.get("importance", 1.0))
            parser = parser_of(request, self.spider)
            self.found.setdefault(urldefrag(request.url).url, (parser, importance))
        return True

    def _pass(self, request: Request, time: float) -> None:
        """Let a request be made once, at a time."""
        self.number += 1
        heapq.heappush(self.passed, (time, self.number, request))

    def _redirect(self, request: Request) -> bool:
        """Take the next step of a redirect, unless its turn would come when its page is lost."""
        now, gap, page = self.clock(), self._gap(request.url), request.meta.get(PAGE)
        host = host_of(request.url)
        before = sum(host_of(each.url) == host for _, _, each in self.passed)
        turn = now + gap * (1 + 2 * before)
        if turn - now > self.timeout / 2.0:
            if page is not None:
                self.pages.report([page], self.sent.pop(page), "failed", retry_at=turn, ended=now)
                self._count("failed")
            return False
        self._pass(request, now + gap)
        self.steps[redirected(request)] = self.number
        return True

    def _passed(self, now: float) -> Request | None:
        """Return a request that is made once, if its time has come.

        A redirect waits until its host may be asked; after one, the host's own pages have a turn.
        """
        while self.passed and self.passed[0][0] <= now:
            _, number, request = heapq.heappop(self.passed)
            name, host = redirected(request), host_of(request.url)
            if name not in self.steps:
                return request
            if self.steps[name] != number:
                continue  # asked for anew
            del self.steps[name]
            if name not in self.sent and name not in self.polls.due:
                continue  # lost, or a feed no longer
            opens = self.pages.opens(host)
            if opens > now:
                after = 0.5 * self._gap(request.url) * (opens == self.turns.get(host))
                self._pass(request, opens + after)
                self.steps[name] = self.number
                continue
            self._ask_alone(request.url, now)
            self.turns[host] = self.pages.opens(host)
            return request
        return None

    def _gap(self, url: str) -> float:
        return self.gaps.get(host_of(url), self.options.host_gap) * SECOND

    def _ask_alone(self, url: str, now: float) -> None:
        """Let a host's pages wait for its gap after a request that is none of them."""
        if self._gap(url) > 0.0:
            leave_alone(self.pages, url, now + self._gap(url))

    def next_request(self) -> Request | None:
        """Return the request that is due now; without one, wake the engine when it will be."""
        now = self.clock()
        self._admit()
        self.copies.write(now * SECONDS_PER_DAY - SETTLED)
        if now >= self.robots_until:
            self.robots_until = now + self.options.robots * SECOND
            self._forget_robots()
        if (request := self._passed(now)) is not None:
            return request
        while (feed := self.polls.next(now)) is not None:
            opens = self.pages.opens(host_of(feed))
            if opens > now:
                self.polls.due[feed] = opens
                continue
            self._ask_alone(feed, now)
            headers, about = self.polls.conditions(feed), {FEED: feed, "dont_cache": True}
            return Request(feed, headers=headers, meta=about, dont_filter=True, priority=1)
        page, again = self.pages.next(now)
        if page is not None:
            return self._request(str(page), now)
        again = min([again, *self.polls.due.values(), *(due for due, _, _ in self.passed[:1])])
        self.wake_in(max(again - now, 0.0) * SECONDS_PER_DAY)
        return None

    def _request(self, page: str, now: float) -> Request:
        """Return the request of a page, as it was found but for its validators."""
        self.sent[page] = now
        name, arguments = json.loads(self.copies[page].parser or "[null, {}]")
        callback = None if name is None else getattr(self.spider, name, None)
        about: dict[str, Any] = {PAGE: page, "dont_retry": True, "dont_cache": True}
        return Request(page, callback, meta=about, cb_kwargs=arguments, errback=self._lost)

    def _lost(self, failure: Failure) -> Failure:
        """Take note of a fetch that ended behind the middleware, as in another one."""
        page = failure.request.meta.get(PAGE)  # type: ignore[attr-defined]  # Scrapy adds it
        if page in self.sent and not isinstance(failure.value, Unchanged):
            self.note(page)
        return failure

    def _admit(self) -> None:
        """Add the pages that were found since."""
        if not self.found:
            return
        found, self.found = self.found, {}
        self.copies.adopt({url: text for url, (text, _) in found.items() if text is not None})
        hosts, importance = [host_of(url) for url in found], [each for _, each in found.values()]
        added = self.pages.add([*found], known="skip", importance=importance, host=hosts)
        self._count("added", added)

    def wake_in(self, seconds: float) -> None:
        """Let the engine ask again in some seconds, if not before."""
        self.timer.cancel()
        if seconds < math.inf:
            self.timer = CallLaterOnce(self._wake)
            self.timer.schedule(seconds)

    def _wake(self) -> None:
        """Let the engine ask again, by what Scrapy keeps to itself; else it does within 5 s."""
        slot = getattr(self.crawler.engine, "_slot", None)
        nextcall = getattr(slot, "nextcall", None)
        if nextcall is not None:
            nextcall.schedule()

    # What fetches find

    def observe(self, page: str, response: Response) -> bool:
        """Take note of a page's answer; return whether its callback shall see it."""
        if host_of(page) not in self.gaps:
            self._limit(host_of(page), self.options.host_gap)
        content = self.options.compare(response) if 200 <= response.status < 300 else ""
        outcome = self.note(page, answer_of(response, content))
        return outcome not in ("not_modified", "unchanged")

    def note(self, page: str, answer: Answer = NONE) -> str:
        """Take note of the end of a page's fetch; return its outcome, as of ``note_fetch``."""
        now, before, sent = self.clock(), self.copies[page], self.sent.pop(page)
        outcome, copy = note_fetch(self.pages, page, before, answer, sent, now)
        if outcome == "gone":
            self.copies.remove(page)
        elif copy is not before:
            self.copies.note(page, copy, now * SECONDS_PER_DAY)
        self._count(outcome)
        return outcome

    def lose(self, page: str, error: Exception) -> None:
        """Take note of a fetch without an answer; a page that is refused waits for robots.txt."""
        if not isinstance(error, IgnoreRequest):
            self.note(page)
            return
        now = self.clock()
        until = now + self.options.robots * SECOND
        self.pages.report([page], self.sent.pop(page), "failed", retry_at=until, ended=now)
        self._count("refused")

    def _unprocessed(self, response: Response) -> None:
        """Let a callback that raised an error see the page again at its next fetch."""
        page = None if response.request is None else response.request.meta.get(PAGE)
        if page is not None and page in self.pages:
            self.copies.put({page: Copy(parser=self.copies[page].parser)})

    def read(self, feed: str, response: Response) -> None:
        """Tell the scheduler what is new in a feed."""
        now, answer = self.clock(), answer_of(response)
        if response.status in (200, 304):
            body = response.body if response.status == 200 else None
            told = response.url, now, Copy(answer.etag, answer.modified)
            faults = self.polls.read(self.pages, feed, body, *told)
        else:
            faults = [f"{feed} must be a feed or a sitemap, got {response.status}"]
            respect(self.pages, feed, answer, now)
        for fault in faults:
            self.spider.logger.warning(fault)
        self._count("bad_feeds" if faults else "feeds")

    # Hosts

    def _limit(self, host: str | None, gap: float) -> None:
        """Limit a host, or all; one whose robots.txt is not known yet has one fetch at a time."""
        settings, hosts = self.crawler.settings, None if host is None else [host]
        most = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN") or math.inf
        alone = gap > 0.0 or (hosts is None and settings.getbool("ROBOTSTXT_OBEY"))
        self.pages.limit_hosts(hosts, gap=gap * SECOND, most=1 if alone else most)
        if host is not None:
            self.gaps[host] = gap

    def _heed(self, robotparser: Any, request: Request) -> None:
        """Keep the Crawl-delay of a host's robots.txt, where it is longer than the gap."""
        settings = self.crawler.settings
        agent = settings.get("ROBOTSTXT_USER_AGENT") or settings.get("USER_AGENT")
        delay = float(robotparser.crawl_delay(agent) or 0.0)
        self._limit(host_of(request.url), max(delay, self.options.host_gap))

    def _forget_robots(self) -> None:
        """Let each robots.txt be fetched again, which Scrapy keeps to itself for ever."""
        robots = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        parsers = getattr(robots, "_parsers", {})
        for host in [host for host, known in parsers.items() if not isinstance(known, Deferred)]:
            del parsers[host]


class RecrawlMiddleware:
    """Sends validators, and tells the scheduler what fetches find: ``DOWNLOADER_MIDDLEWARES``."""

    def __init__(self, crawler: Crawler) -> None:
        self.scheduler: RecrawlScheduler | None = None
        MIDDLEWARES[crawler] = self

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RecrawlMiddleware:
        """Return the middleware of a crawl."""
        return cls(crawler)

    def _page(self, request: Request) -> str | None:
        """Return the page that a request fetches, of those under way."""
        page = request.meta.get(PAGE)
        return page if self.scheduler is not None and page in self.scheduler.sent else None

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Add the validators of the page's copy, and stamp the time."""
        page = self._page(request)
        if page is not None and self.scheduler is not None and "redirect_times" not in request.meta:
            self.scheduler.sent[page] = self.scheduler.clock()
            for name, value in self.scheduler.copies[page].conditions.items():
                request.headers.setdefault(name, value)

    def process_response(
        self, request: Request, response: Response, spider: Any = None
    ) -> Response:
        """Tell what was found; IgnoreRequest for what the callback shall not see."""
        assert self.scheduler is not None
        page, feed = self._page(request), request.meta.get(FEED)
        if page is not None and not self.scheduler.observe(page, response):
            raise Unchanged(f"{page} is unchanged")
        if feed is not None:
            self.scheduler.read(feed, response)
            raise IgnoreRequest(f"{feed} is a feed")
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Tell that a fetch failed, or was refused by another middleware."""
        page = self._page(request)
        if page is not None and self.scheduler is not None:
            self.scheduler.lose(page, exception)
        elif FEED in request.meta and self.scheduler is not None:
            self.scheduler.spider.logger.warning(f"{request.url} cannot be read: {exception!r}")
            self.scheduler._count("bad_feeds")


def redirected(request: Request) -> str:
    """Return the page or feed that a request fetches, "" for neither."""
    return str(request.meta.get(PAGE) or request.meta.get(FEED) or "")


def answer_of(response: Response, content: str | bytes = b"") -> Answer:
    """Return an answer; its headers are bytes, of which each is a character of Latin-1."""
    told = {name: response.headers.get(name) for name in HEADERS}
    headers = {name: text.decode("latin-1") for name, text in told.items() if text}
    return Answer.of(response.status, headers, content, response.url)


def host_of(url: str) -> str:
    """Return the host of an address, without its port."""
    return urlsplit(url).hostname or ""


def parser_of(request: Request, spider: Spider) -> str | None:
    """Return who parses a page, as JSON; None for ``parse`` without arguments.

    Raises:
        ValueError: the callback is no method of the spider, or the arguments are no JSON.
    """
    callback, name = request.callback, getattr(request.callback, "__name__", "parse")
    if callback is not None and getattr(spider, name, None) != callback:
        raise ValueError(f"callback must be a method of the spider, got {callback!r}")
    if name == "parse" and not request.cb_kwargs:
        return None
    try:
        return json.dumps([name, request.cb_kwargs])
    except TypeError:
        raise ValueError(f"cb_kwargs must be JSON, got {request.cb_kwargs!r}") from None
