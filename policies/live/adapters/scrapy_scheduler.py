"""The scheduler of a crawl with Scrapy: which request is next, and what fetches find."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.reactor import CallLaterOnce
from twisted.python.failure import Failure

from crawl_envs.types.arguments import quantity
from policies.live.adapters.copies import SETTLED, Copies, Copy
from policies.live.adapters.feeds import Polls
from policies.live.adapters.fetches import HEADERS, Answer, host_of, note_fetch, respect
from policies.live.adapters.listings import MAX_BYTES, Listing
from policies.live.adapters.messages import SECONDS_PER_DAY, day_of, take_back
from policies.live.adapters.moves import Moves
from policies.live.adapters.outages import Outages, bring_back
from policies.live.adapters.scrapy_hosts import Hosts, Report, forget_robots
from policies.live.adapters.scrapy_requests import (
    FEED,
    PAGE,
    SOURCE,
    check_methods,
    read_request,
    users_meta,
    write_request,
)
from policies.live.adapters.scrapy_settings import (
    SECOND,
    open_pages,
    options_of,
    read_options,
    response_text,
    spelled,
    timeout_of,
)
from policies.live.adapters.scrapy_turns import Turns
from policies.live.adapters.watching import CAUSES, Watch, listen

NONE = Answer()
MIDDLEWARE = "policies.live.adapters.scrapy.RecrawlMiddleware"
MIDDLEWARES: WeakKeyDictionary[Crawler, Any] = WeakKeyDictionary()
"""The middleware of each crawl, which is told of its scheduler."""


class Unchanged(IgnoreRequest):
    """The callback shall not see a page."""


def steady() -> Callable[[], float]:
    """Return a clock, in days since 1970, that no change of the machine's clock moves.

    Where the system has such a clock, it goes on while the machine sleeps.
    """
    running = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    start = day_of(None) - time.clock_gettime(running) * SECOND
    return lambda: start + time.clock_gettime(running) * SECOND


class RecrawlScheduler:
    """The scheduler of a crawl: ``SCHEDULER``; see :mod:`policies.live.adapters.scrapy`.

    Attributes:
        pages: the scheduler of the pages, from ``open`` on.
        hosts, turns, copies, polls: of their hosts, of redirects, of their copies and of feeds,
            likewise.
        sent: the time at which the pages' fetches began that are under way, in days.
        clock: returns the time, in days since 1970.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler, self.options, self.clock = crawler, read_options(crawler.settings), steady()
        if crawler not in MIDDLEWARES:
            raise ValueError(f"DOWNLOADER_MIDDLEWARES must have {MIDDLEWARE}: 500")
        MIDDLEWARES[crawler].scheduler = self
        for signal in (signals.spider_error, signals.item_error):
            crawler.signals.connect(self._unprocessed, signal)
        self.sent: dict[str, float] = {}
        self.found: dict[str, tuple[str, float]] = {}
        self.longest = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
        self.fault = ""  # of a request that was left out last
        self.starts: list[str] = []
        self.timer = CallLaterOnce(self._wake)
        self.watch: Watch | None = None
        self.causes = deque[tuple[str, str]](maxlen=CAUSES)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RecrawlScheduler:
        """Return the scheduler of a crawl; ValueError for bad settings."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Resume the pages of the spider's folder, or begin; ValueError for what does not fit."""
        settings, now = self.crawler.settings, self.clock()
        options = self.options = options_of(spider, self.options)
        self.spider, folder = spider, Path(options.folder)
        port = options.overview_port
        listening = None if port is None else listen(port, "RECRAWL_OVERVIEW_PORT")
        folder.mkdir(parents=True, exist_ok=True)
        self.pages = open_pages(options, settings, now)
        try:  # now that no other process has the folder
            copies = Copies(folder / "copies")
            check_methods(copies, spider)
        except ValueError:
            self.pages.close()
            raise
        take_back(self.pages, now)
        self.outages = Outages(self.pages, options.max_retry_after * SECOND)
        every = options.poll * SECOND
        columns = {"least_interval": options.least_interval * SECOND}
        self.polls = Polls(options.feeds, folder, every, now, columns, spelled)
        self.robots_until = now + options.robots * SECOND
        self.pages.report(self.pages.under_way, now, "interrupted")  # by a kill
        self.hosts = Hosts(self.pages, settings, options.host_gap)
        self.turns = Turns(
            self.hosts,
            timeout_of(settings) / 2.0,
            lambda name: name in self.sent or name in self.polls.due,
        )
        if hasattr(signals, "robots_parsed"):
            self.crawler.signals.connect(self.hosts.heed, signals.robots_parsed)
        spider.logger.info(
            "RecrawlScheduler compiles before the first request: for half a minute or more at the "
            "first start after an installation, for a second at others"
        )
        self.pages.warm()
        self.copies = copies
        self.moves, self.report = Moves(self.pages, copies), Report(self.pages, self.crawler)
        if listening is not None:
            self.watch = Watch(self.pages, listening, self.polls, self.causes)
            self.watch.announce()

    def close(self, reason: str) -> None:
        """Leave the folder to the next run."""
        self.timer.cancel()
        if self.watch is not None:
            self.watch.close()
        if not hasattr(self, "copies"):  # it could not be opened
            return
        self._admit()
        self.report.write(math.inf)
        self.copies.close()
        self.count("pages", len(self.pages))
        self.pages.close()

    def count(self, name: str, value: int = 1) -> None:
        """Add to a number among Scrapy's stats."""
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(f"recrawl/{name}", value)

    # Requests

    def has_pending_requests(self) -> bool:
        """Return True: the crawl never ends."""
        return True

    def enqueue_request(self, request: Request) -> bool:
        """Take a page, the next step of a redirect, or a request with a body."""
        source, page, now = request.meta.pop(SOURCE, ""), request.meta.get(PAGE), self.clock()
        if request.meta.get("is_start_request"):
            self.starts.append(urldefrag(request.url).url)
        if not source and (request.meta.get(FEED) or page in self.sent):  # redirected
            name = str(page or request.meta[FEED])
            late = self.turns.redirect(name, request, now)
            if late is not None and page is not None:
                self._fail(page, late, "failed")
            return late is None
        if request.method != "GET" or request.body:
            if page is not None:  # of meta=response.meta
                request = request.replace(meta=users_meta(request.meta, self.longest))
            request.meta[SOURCE] = source  # to be seen again, if the callback or an item fails
            self.turns.add(request, now)
            return True
        return self._find(request, source)

    def _find(self, request: Request, source: str) -> bool:
        """Take a page that a callback of a page yields; return whether its request can be kept."""
        page = urldefrag(request.url).url
        try:
            importance = quantity('meta["importance"]', request.meta.get("importance", 1.0))
            if isinstance(request.errback, partial) and request.errback.func == self._lost:
                request.errback = request.errback.args[0]  # of a copied request
            text = write_request(request, page, self.spider, self.longest)
        except ValueError as error:
            fault = f"{source or 'start()'} yields a request that is left out: {error}"
            if fault != self.fault:  # else one of many in a row
                self.spider.logger.error(fault)
            self.fault = fault
            self.count("bad_requests")
            self._see_again(source)
            return False
        if page == source and (request.dont_filter or "retry_times" in request.meta):
            self._see_again(page)
        self.found.setdefault(page, (text, importance))
        return True

    def next_request(self) -> Request | None:
        """Return the request that is due now; without one, wake the engine when it will be."""
        now = self.clock()
        self._admit()
        self.copies.write(now * SECONDS_PER_DAY - SETTLED)
        self.moves.make(now - SETTLED * SECOND, self.sent)
        self.report.write(now)
        if now >= self.robots_until:
            self.robots_until = now + self.options.robots * SECOND
            forget_robots(self.crawler)
        if (request := self.turns.next(now)) is not None:
            return request
        while (feed := self.polls.next(now)) is not None:
            opens = self.hosts.opens(feed)
            if opens > now:
                self.polls.due[feed] = opens
                continue
            self.hosts.ask_alone(feed, now)
            headers = self.polls.headers(feed, self.options.validators)
            about = {FEED: feed, "dont_cache": True, "download_maxsize": MAX_BYTES}
            return Request(feed, headers=headers, meta=about, dont_filter=True, priority=1)
        page, again = self.pages.next(now)
        if page is not None:
            return self._request(str(page), now)
        again = min([again, self.turns.due, *self.polls.due.values()])
        self.wake_in(max(again - now, 0.0) * SECONDS_PER_DAY)
        return None

    def _request(self, page: str, now: float) -> Request:
        """Return the request of a page, as it was found or as a rule says."""
        text = self.copies[page].parser or json.dumps({"callback": self._ruled(page)})
        request = read_request(text, page, self.spider)
        request.meta.update({PAGE: page, "dont_retry": True, "dont_cache": True})
        request.errback = partial(self._lost, request.errback)
        self.sent[page] = now
        self.outages.ask(host_of(page), now)
        return request

    def _ruled(self, page: str) -> str | None:
        """Return the callback of a page that no callback has found, None for ``parse``."""
        return next((name for rule, name in self.options.rules if rule.search(page)), None)

    def _lost(self, errback: Callable[[Failure], Any] | None, failure: Failure) -> Any:
        """Call the errback of a page; report a failure that another middleware has raised."""
        if isinstance(failure.value, Unchanged):
            return failure
        page = failure.request.meta.get(PAGE)  # type: ignore[attr-defined]  # Scrapy adds it
        if page in self.sent:
            self.note(page)
        return failure if errback is None else errback(failure)

    def _admit(self) -> None:
        """Add the pages that were found since."""
        if not self.found:
            return
        found, self.found = self.found, {}
        ruled = {url for url in found if self._ruled(url) and url in self.pages}  # listed before
        self.copies.adopt({url: text for url, (text, _) in found.items() if url not in ruled})
        hosts, importance = [host_of(url) for url in found], [each for _, each in found.values()]
        least = self.options.least_interval * SECOND
        columns: Any = {"importance": importance, "host": hosts, "least_interval": least}
        added = self.pages.add([*found], known="skip", **columns)
        self.count("added", added)
        bring_back(self.pages, self.starts)
        self.starts = []

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

    def observe(self, page: str, response: Response, request: Request) -> bool:
        """Take note of a page's answer; return whether its callback shall see it."""
        self.hosts.answered(page)
        self.causes.append((page, f"answered {response.status}"))
        content = self.options.compare(response) if 200 <= response.status < 300 else ""
        content = response_text(response) if content is None else content
        outcome = self.note(page, answer_of(response, content))
        reasons = set(request.meta.get("redirect_reasons", ()))
        moved = outcome not in ("failed", "gone") and reasons and reasons <= {301, 308}
        self.moves.note(page, urldefrag(response.url).url if moved else "", self.clock())
        return outcome not in ("not_modified", "unchanged")

    def note(self, page: str, answer: Answer = NONE) -> str:
        """Take note of the end of a page's fetch; return its outcome, as of ``note_fetch``."""
        now, before, sent = self.clock(), self.copies[page], self.sent.pop(page)
        outcome, copy = note_fetch(self.pages, page, before, answer, sent, now, self.outages)
        if copy is not before:
            self.copies.note(page, copy, now * SECONDS_PER_DAY)
        self.count(outcome)
        return outcome

    def lose(self, page: str, error: Exception) -> None:
        """Take note of a fetch without an answer; a page that is refused waits for robots.txt."""
        self.causes.append((page, f"{type(error).__name__} {error}"))
        if not isinstance(error, IgnoreRequest):
            self.note(page)
            return
        self._fail(page, self.clock() + self.options.robots * SECOND, "refused")

    def _fail(self, page: str, until: float, outcome: str) -> None:
        """Take note of a fetch that is not to be made again before a time."""
        now, sent = self.clock(), self.sent.pop(page)
        self.pages.report([page], sent, "failed", retry_at=until, ended=now)
        self.count(outcome)

    def _unprocessed(self, response: Response | Failure | None) -> None:
        """Let a callback see a page again after its error, or one of a pipeline of its items."""
        request = getattr(response, "request", None)
        about = {} if request is None else request.meta
        self._see_again(about.get(PAGE) or about.get(SOURCE, ""))

    def _see_again(self, page: str) -> None:
        """Let the callback of a page see its next fetch, whether it has changed or not."""
        if page and page in self.pages:
            self.copies.put({page: Copy(parser=self.copies[page].parser)})

    def take(self, feed: str, response: Response, listing: Listing | None) -> None:
        """Tell the scheduler what is new in a feed, by what an answer of 200 lists, if changed."""
        now, answer = self.clock(), answer_of(response)
        if response.status in (200, 304):
            told = response.url, now, Copy(answer.etag, answer.modified)
            faults = self.polls.take(self.pages, feed, listing, *told)
        else:
            fault = f"{feed} must be a feed or a sitemap, got {response.status}"
            faults = self.polls.note(feed, now, fault)
            respect(self.pages, feed, answer, now, self.outages.max_retry_after)
        for fault in faults:
            self.spider.logger.warning(fault)
        self.count("bad_feeds" if faults else "feeds")


def answer_of(response: Response, content: str | bytes = b"") -> Answer:
    """Return an answer; its headers are bytes, of which each is a character of Latin-1."""
    told = {name: response.headers.get(name) for name in HEADERS}
    headers = {name: text.decode("latin-1") for name, text in told.items() if text}
    return Answer.of(response.status, headers, content, response.url)
