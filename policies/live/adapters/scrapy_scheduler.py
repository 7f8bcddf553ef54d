"""The scheduler of a crawl with Scrapy: it takes requests and returns the next one."""

from __future__ import annotations

import json
import math
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
from policies.live.adapters.copies import SETTLED, Copies
from policies.live.adapters.feeds import Polls
from policies.live.adapters.fetches import Answer, Fetches
from policies.live.adapters.listings import MAX_BYTES
from policies.live.adapters.messages import SECONDS_PER_DAY, add_found, day_of
from policies.live.adapters.moves import Moves
from policies.live.adapters.outages import bring_back
from policies.live.adapters.scrapy_costs import Costs
from policies.live.adapters.scrapy_hosts import Hosts, Report, Turns, forget_robots
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
    spelled,
    timeout_of,
)
from policies.live.adapters.watching import Watch, listen

MIDDLEWARE = "policies.live.adapters.scrapy.RecrawlMiddleware"
MIDDLEWARES: WeakKeyDictionary[Crawler, Any] = WeakKeyDictionary()
"""The middleware of each crawl."""


class Unchanged(IgnoreRequest):
    """Skip the callback of an unchanged page."""


class RecrawlScheduler:
    """The scheduler of a crawl: ``SCHEDULER``; see :mod:`policies.live.adapters.scrapy`.

    Attributes:
        pages, copies, fetches: the scheduler of the pages, their copies and fetches.
        hosts, turns, polls: limits of hosts, the queue of requests made once, and feeds.
        clock: returns the time, in days since 1970.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler, self.options = crawler, read_options(crawler.settings)
        self.clock = partial(day_of, None)
        if crawler not in MIDDLEWARES:
            raise ValueError(f"DOWNLOADER_MIDDLEWARES must have {MIDDLEWARE}: 500")
        MIDDLEWARES[crawler].scheduler = self
        for signal in (signals.spider_error, signals.item_error):
            crawler.signals.connect(self._unprocessed, signal)
        self.new_pages: dict[str, tuple[str, float]] = {}
        self.longest = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
        self.fault = ""  # of the last request that was left out
        self.starts: list[str] = []
        self.timer = CallLaterOnce(self._wake)
        self.watch: Watch | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RecrawlScheduler:
        """Build the scheduler of a crawl, as Scrapy asks for it; ValueError for bad settings."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Resume the state in the spider's folder, or begin it; ValueError if settings differ."""
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
        self.fetches = Fetches(self.pages, copies, now, options.max_retry_after * SECOND)
        every = options.poll * SECOND
        self.polls = Polls(options.feeds, folder, every, now, options.intervals, spelled)
        max_cost = math.inf if options.cap is None else self.pages.pace.spending.max_cost
        self.costs = Costs(self.crawler, options.cost, max_cost, self.fetches.sent)
        self.robots_until = now + options.robots * SECOND
        self.hosts = Hosts(self.pages, settings, options.host_gap)
        self.turns = Turns(
            self.hosts,
            timeout_of(settings) / 2.0,
            lambda name: name in self.fetches.sent or name in self.polls.due,
        )
        if hasattr(signals, "robots_parsed"):
            self.crawler.signals.connect(self.hosts.set_crawl_delay, signals.robots_parsed)
        spider.logger.info(
            "RecrawlScheduler compiles before the first request: for half a minute or more at the "
            "first start after an installation, for a second at others"
        )
        self.pages.warm()
        self.copies = copies
        self.moves, self.report = Moves(self.pages, copies), Report(self.pages, self.crawler)
        if listening is not None:
            self.watch = Watch(self.pages, listening, self.polls, self.fetches.causes)
            self.watch.announce()

    def close(self, reason: str) -> None:
        """Write all state, and release the folder for the next run."""
        self.timer.cancel()
        if self.watch is not None:
            self.watch.close()
        if not hasattr(self, "copies"):  # open has failed
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
        """Accept a request: of a new page, the next step of a redirect, or one with a body."""
        source, page, now = request.meta.pop(SOURCE, ""), request.meta.get(PAGE), self.clock()
        if request.meta.get("is_start_request"):
            self.starts.append(urldefrag(request.url).url)
        redirected = page in self.fetches.sent or "redirect_times" in request.meta
        if not source and (request.meta.get(FEED) or (page is not None and redirected)):
            if page is not None and page not in self.fetches.sent:
                return False  # another fetch of the page was answered before
            name = str(page or request.meta[FEED])
            late = self.turns.redirect(name, request, now)
            if late is not None and page is not None:
                self.fail(page, late, "failed")
            return late is None
        if request.method != "GET" or request.body:
            if page is not None:  # of meta=response.meta
                request = request.replace(meta=users_meta(request.meta, self.longest))
            request.meta[SOURCE] = source  # it is seen again if the callback or an item fails
            self.turns.add(request, now)
            return True
        return self._find(request, source)

    def _find(self, request: Request, source: str) -> bool:
        """Keep the request of a new page until the next call; return whether it can be stored."""
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
            self.fetches.see_again(source)
            return False
        if page == source and (request.dont_filter or "retry_times" in request.meta):
            self.fetches.see_again(page)
        self.new_pages.setdefault(page, (text, importance))
        return True

    def next_request(self) -> Request | None:
        """Return a request that is due now; without one, schedule when the engine asks again."""
        now = self.clock()
        self._admit()
        self.copies.write(now * SECONDS_PER_DAY - SETTLED)
        self.moves.make(now - SETTLED * SECOND, self.fetches.sent)
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
        page, ask_again = self.pages.next(now)
        if page is not None:
            return self._request(str(page), now)
        ask_again = min([ask_again, self.turns.due, *self.polls.due.values()])
        self.wake_in(max(ask_again - now, 0.0) * SECONDS_PER_DAY)
        return None

    def _request(self, page: str, now: float) -> Request:
        """Build a page's request: like its first one, or by ``RECRAWL_RULES`` without one."""
        text = self.copies[page].parser or json.dumps({"callback": self._ruled(page)})
        request = read_request(text, page, self.spider)
        request.meta.update({PAGE: page, "dont_retry": True, "dont_cache": True})
        request.errback = partial(self._lost, request.errback)
        self.fetches.begin(page, now)
        return request

    def _ruled(self, page: str) -> str | None:
        """Return the name of the callback that RECRAWL_RULES gives a page, None for ``parse``."""
        return next((name for rule, name in self.options.rules if rule.search(page)), None)

    def _lost(self, errback: Callable[[Failure], Any] | None, failure: Failure) -> Any:
        """Call a page's errback after a failure; report the fetch if it is still under way."""
        if isinstance(failure.value, Unchanged):
            return failure
        page = failure.request.meta.get(PAGE)  # type: ignore[attr-defined]  # Scrapy adds it
        if page in self.fetches.sent:
            self.end(page)
        return failure if errback is None else errback(failure)

    def _admit(self) -> None:
        """Add the pages whose requests were accepted since the last call to the scheduler."""
        if not self.new_pages:
            return
        new_pages, self.new_pages = self.new_pages, {}
        ruled = {url for url in new_pages if self._ruled(url) and url in self.pages}  # old
        self.copies.adopt({url: text for url, (text, _) in new_pages.items() if url not in ruled})
        importance = [weight for _, weight in new_pages.values()]
        columns = {"importance": importance, **self.options.intervals}
        self.count("added", add_found(self.pages, [*new_pages], columns))
        bring_back(self.pages, self.starts)
        self.starts = []

    def wake_in(self, seconds: float) -> None:
        """Schedule that the engine asks for a request again after some seconds."""
        self.timer.cancel()
        if seconds < math.inf:
            self.timer = CallLaterOnce(self._wake)
            self.timer.schedule(seconds)

    def _wake(self) -> None:
        """Wake the engine by a private attribute; if Scrapy lacks it, the engine wakes in 5 s."""
        slot = getattr(self.crawler.engine, "_slot", None)
        nextcall = getattr(slot, "nextcall", None)
        if nextcall is not None:
            nextcall.schedule()

    # Ends of fetches

    def end(self, page: str, answer: Answer | None = None) -> str:
        """Report the end of a page's fetch; return its outcome, as of ``Fetches.end``."""
        now, before = self.clock(), self.copies[page]
        answer = (answer or Answer())._replace(**self.costs.end(page, now))
        outcome, copy = self.fetches.end(page, answer, now)
        if copy is not before:
            self.copies.note(page, copy, now * SECONDS_PER_DAY)
        self.count(outcome)
        return outcome

    def fail(self, page: str, until: float, outcome: str) -> None:
        """Report a fetch that failed; the page waits until a time."""
        now = self.clock()
        costs, sent = self.costs.end(page, now), self.fetches.sent.pop(page)
        self.pages.report([page], sent, "failed", retry_at=until, ended=now, **costs)
        self.count(outcome)

    def _unprocessed(self, response: Response | Failure | None) -> None:
        """Let the next fetch count as new after an error of a callback or an item pipeline."""
        request = getattr(response, "request", None)
        about = {} if request is None else request.meta
        self.fetches.see_again(about.get(PAGE) or about.get(SOURCE, ""))
