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
a page is new or has changed, not for 304 or the same content. 404 and 410 are pages that are gone,
as are pages that robots.txt or another middleware refuses; every other error is a failure, errors
of callbacks are none. Requests with a body are made once, at once.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urlsplit
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import CallLaterOnce
from twisted.internet.defer import Deferred
from w3lib.html import remove_comments, remove_tags, remove_tags_with_content

from crawl_envs.types.arguments import one_of, quantity, whole
from policies.live.copies import SETTLED, Copies, Copy, digest
from policies.live.feeds import Memory, read_listing, tell
from policies.live.messages import SECONDS_PER_DAY, day_of
from policies.scheduler import CrawlScheduler, DurableScheduler

SECOND = 1.0 / SECONDS_PER_DAY
PAGE, FEED = "recrawl_page", "recrawl_feed"
"""What a request fetches, in its ``meta``."""
LONGEST_WAIT = 30.0
"""Days that a server may ask to wait."""
POSITIVE = ("RECRAWL_BANDWIDTH", "RECRAWL_RETRY", "RECRAWL_POLL", "RECRAWL_ROBOTS")
NUMBERS = (*POSITIVE, "RECRAWL_HOST_GAP", "RECRAWL_KEEP_GONE", "RECRAWL_SKEW")
"""The settings that are numbers > 0, and those >= 0."""
MIDDLEWARES: WeakKeyDictionary[Crawler, RecrawlMiddleware] = WeakKeyDictionary()


class Options(NamedTuple):
    """The settings of a crawl; see the module."""

    folder: str
    bandwidth: float
    policy: str = "GreedyNCIS"
    host_gap: float = 0.0
    retry: float = 3600.0
    keep_gone: float = 30.0
    feeds: Mapping[str, int] = {}
    poll: float = 3600.0
    skew: float = 5.0
    robots: float = 86_400.0
    compare: Any = __name__ + ".text_of"


def read_options(settings: BaseSettings) -> Options:
    """Return the settings of a crawl; ValueError if one is unknown, missing or out of range."""
    names = {f"RECRAWL_{name.upper()}": name for name in Options._fields}
    given = {name: settings[name] for name in settings if name.startswith("RECRAWL_")}
    for name in given:
        one_of("setting", name, list(names))
    for name in ("RECRAWL_FOLDER", "RECRAWL_BANDWIDTH"):
        if given.get(name) in (None, ""):
            raise ValueError(f"{name} must be set, for a crawl with RecrawlScheduler")
    given.setdefault("RECRAWL_HOST_GAP", settings.getfloat("DOWNLOAD_DELAY"))
    for name in given.keys() & set(NUMBERS):
        limits = {"above": 0.0} if name in POSITIVE else {}
        try:
            given[name] = quantity(name, float(given[name]), **limits)
        except (TypeError, ValueError):
            more = ">" if limits else ">="
            raise ValueError(f"{name} must be a number {more} 0, got {given[name]!r}") from None
    feeds = given["RECRAWL_FEEDS"] = settings.getdict("RECRAWL_FEEDS")
    for url, source in feeds.items():
        whole(f"RECRAWL_FEEDS[{url!r}]", source, 0)
    options = Options(**{names[name]: value for name, value in given.items()})
    return options._replace(compare=load_object(options.compare))


def text_of(response: Response) -> str | bytes:
    """Return the text of a page without tags, scripts, styles and comments; of others the body."""
    if not isinstance(response, TextResponse):
        return response.body
    bare = remove_tags_with_content(remove_comments(response.text), ("script", "style"))
    return remove_tags(bare)


class RecrawlScheduler:
    """The scheduler of a crawl: ``SCHEDULER``; see the module.

    Attributes:
        pages: the scheduler of the pages, from ``open`` on.
        copies: what is known of their copies, likewise.
        sent: the time at which the pages' fetches began that are under way, in days.
        clock: returns the time, in days since 1970.
    """

    clock: Callable[[], float] = staticmethod(lambda: day_of(None))

    def __init__(self, crawler: Crawler) -> None:
        self.crawler, self.options = crawler, read_options(crawler.settings)
        if crawler not in MIDDLEWARES:
            raise ValueError(f"DOWNLOADER_MIDDLEWARES must have {__name__}.RecrawlMiddleware: 500")
        MIDDLEWARES[crawler].scheduler = self
        if hasattr(signals, "robots_parsed"):
            crawler.signals.connect(self._heed, signals.robots_parsed)
        self.sent: dict[str, float] = {}
        self.found: dict[str, tuple[str | None, float]] = {}
        self.passed: list[tuple[float, int, Request]] = []
        self.gaps: dict[str, float] = {}
        self.number, self.timer = 0, CallLaterOnce(self._wake)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RecrawlScheduler:
        """Return the scheduler of a crawl; ValueError for bad settings."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Go on with the folder's pages, or begin; ValueError if it is of other settings."""
        options, settings, now = self.options, self.crawler.settings, self.clock()
        self.spider, folder = spider, Path(options.folder)
        self.sources, self.polls = dict(options.feeds), dict.fromkeys(options.feeds, now)
        self.robots_until = now + options.robots * SECOND
        folder.mkdir(parents=True, exist_ok=True)
        pace: dict[str, Any] = {
            "burst": settings.getint("CONCURRENT_REQUESTS") / options.bandwidth,
            "timeout": max(2.0 * settings.getfloat("DOWNLOAD_TIMEOUT"), 1.0) * SECOND,
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
        held, sources = self.pages.pages.values.name, self.pages.num_sources
        if (held, sources) != (options.policy, fixed["num_sources"]):
            self.pages.close()
            raise ValueError(
                f"RECRAWL_POLICY must be {held} and RECRAWL_FEEDS have {sources} sources, as in "
                f"{folder}, got {options.policy} and {fixed['num_sources']}"
            )
        self.pages.configure(now, bandwidth=options.bandwidth, **pace)
        self.pages.report(self.pages.under_way, now, "failed")  # of a run that was killed
        self._limit(None, options.host_gap)
        self.pages.warm()
        self.copies = Copies(folder / "copies.sqlite")

    def close(self, reason: str) -> None:
        """Leave the folder to the next run."""
        self.timer.cancel()
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
            self._pass(request, self.gaps.get(host_of(request.url), self.options.host_gap) * SECOND)
        elif request.method != "GET" or request.body:
            self._pass(request, 0.0)
        elif page is not None and "retry_times" in request.meta:
            return False  # of a callback; the page comes again
        else:
            importance = quantity('meta["importance"]', request.meta.get("importance", 1.0))
            parser = parser_of(request, self.spider)
            self.found.setdefault(urldefrag(request.url).url, (parser, importance))
        return True

    def _pass(self, request: Request, wait: float) -> None:
        """Let a request be made once, after a wait."""
        self.number += 1
        heapq.heappush(self.passed, (self.clock() + wait, self.number, request))

    def next_request(self) -> Request | None:
        """Return the request that is due now; without one, wake the engine when it will be."""
        now = self.clock()
        self._admit()
        self.copies.write(now * SECONDS_PER_DAY - SETTLED)
        if now >= self.robots_until:
            self.robots_until = now + self.options.robots * SECOND
            self._forget_robots()
        if self.passed and self.passed[0][0] <= now:
            return heapq.heappop(self.passed)[-1]
        for url, due in self.polls.items():
            if due <= now:
                self.polls[url] = now + self.options.poll * SECOND
                return Request(url, meta={FEED: url}, dont_filter=True, priority=1)
        page, again = self.pages.next(now)
        if page is not None:
            return self._request(str(page), now)
        again = min([again, *self.polls.values(), *(due for due, _, _ in self.passed[:1])])
        self._set_timer(max(again - now, 0.0) * SECONDS_PER_DAY)
        return None

    def _request(self, page: str, now: float) -> Request:
        """Return the request of a page, as it was found but for its validators."""
        self.sent[page] = now
        name, arguments = json.loads(self.copies[page].parser or '["parse", {}]')
        callback = getattr(self.spider, name, None)
        meta = {PAGE: page, "dont_retry": True, "dont_cache": True}
        return Request(page, callback, meta=meta, cb_kwargs=arguments, dont_filter=True)

    def _admit(self) -> None:
        """Add the pages that were found since."""
        if not self.found:
            return
        found, self.found = self.found, {}
        parsers = {url: parser for url, (parser, _) in found.items() if parser is not None}
        new = {url: Copy(parser=text) for url, text in parsers.items() if not any(self.copies[url])}
        self.copies.put(new)
        hosts, importance = [host_of(url) for url in found], [each for _, each in found.values()]
        added = self.pages.add([*found], known="skip", importance=importance, host=hosts)
        self._count("added", added)

    def _set_timer(self, seconds: float) -> None:
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
        now, sent, status = self.clock(), self.sent.pop(page), response.status
        if host_of(page) not in self.gaps:
            self._limit(host_of(page), self.options.host_gap)
        if status in (404, 410):
            self.bury(page, sent)
            return True
        if status != 304 and not 200 <= status < 300:
            self.fail(page, sent, response)
            return True
        before = self.copies[page]
        mark = before.digest if status == 304 else digest(self.options.compare(response))
        changed = None if before.digest is None else [mark != before.digest]
        self.pages.report([page], sent, changed=changed, ended=now)
        if status != 304:
            told = (response.headers.get(name) for name in ("ETag", "Last-Modified"))
            etag, modified = (None if value is None else value.decode("latin-1") for value in told)
            copy = Copy(etag, modified, mark, before.parser)
            self.copies.note(page, copy, now * SECONDS_PER_DAY)
        same = changed == [False]
        outcome = "not_modified" if status == 304 else "unchanged" if same else "changed"
        self._count("new" if changed is None else outcome)
        return not same

    def bury(self, page: str, sent: float) -> None:
        """Take note of a page that is gone or refused."""
        self.pages.report([page], sent, "gone", ended=self.clock())
        self.copies.remove(page)
        self._count("gone")

    def fail(self, page: str, sent: float, response: Response | None = None) -> None:
        """Take note of a failure; a host that says Retry-After is left alone until then."""
        now = self.clock()
        wait = None if response is None else retry_after(response, now)
        until = None if wait is None else now + wait
        self.pages.report([page], sent, "failed", retry_at=until, ended=now)
        if until is not None and response is not None and response.status in (429, 503):
            self.pages.hold(host_of(page), until)
        self._count("failed")

    def read(self, feed: str, response: Response) -> None:
        """Tell the scheduler what is new in a feed; sitemaps of an index are feeds from now on."""
        source, now, faults = self.sources[feed], self.clock(), list[str]()
        try:
            listing = read_listing(response.body, response.url)
            faults += listing.faults
            if listing.kind == "index":
                for entry in listing.entries:
                    self.sources.setdefault(entry.url, source)
                    self.polls.setdefault(entry.url, now)
            else:
                memory = Memory(Path(self.options.folder) / f"feed-{digest(feed)}.json")
                tell(self.pages, memory, listing, now, source, {})
        except ValueError as error:
            faults.append(str(error))
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
            raise IgnoreRequest(f"{page} is unchanged")
        if feed is not None:
            if response.status == 200:
                self.scheduler.read(feed, response)
            raise IgnoreRequest(f"{feed} is a feed")
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Tell that a fetch failed, or was refused by another middleware."""
        page = self._page(request)
        if page is not None and self.scheduler is not None:
            sent, refused = self.scheduler.sent.pop(page), isinstance(exception, IgnoreRequest)
            (self.scheduler.bury if refused else self.scheduler.fail)(page, sent)


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


def retry_after(response: Response, now: float) -> float | None:
    """Return the days for which a server asks to wait, at most 30; None if it does not."""
    told = (response.headers.get("Retry-After") or b"").decode("latin-1").strip()
    if told.isdecimal():
        return min(float(told) * SECOND, LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(told).timestamp() * SECOND
    except (ValueError, OverflowError):
        return None
    return min(max(until - now, 0.0), LONGEST_WAIT)
