"""Scrapy's settings for a crawl that never ends and fetches pages again when it pays.

In the settings of a project (Scrapy >= 2.13, the extra ``scrapy``)::

    SCHEDULER = "policies.live.adapters.scrapy.RecrawlScheduler"
    DOWNLOADER_MIDDLEWARES = {"policies.live.adapters.scrapy.RecrawlMiddleware": 500}
    RECRAWL_FOLDER = "state"  # of this crawl
    RECRAWL_BANDWIDTH = 20_000  # fetches of pages per day

===========================  =======================================================================
setting                      meaning and default
===========================  =======================================================================
``RECRAWL_FOLDER``           folder of the state; each spider has a folder of its name in it
``RECRAWL_BANDWIDTH``        fetches of pages per day, or their cost per day with ``RECRAWL_COST``;
                             feeds, robots.txt and redirects come on top
``RECRAWL_COST``             ``"bytes"``, as received, or ``"seconds"``, until an answer begins, for
                             a bandwidth of bytes or seconds per day; else each fetch costs 1
``RECRAWL_CAP``              hard limit of the spend in each period, none
``RECRAWL_CAP_PERIOD``       seconds of a period, 86400: the days of UTC
``RECRAWL_MAX_COST``         largest cost of a fetch, reserved until the cost is known, for a cap;
                             with bytes ``DOWNLOAD_MAXSIZE`` if it is > 0, where downloads stop;
                             with seconds ``DOWNLOAD_TIMEOUT``
``RECRAWL_POLICY``           an index policy, ``GreedyNCIS``
``RECRAWL_HOST_GAP``         seconds between two fetches of a host, ``DOWNLOAD_DELAY``; a longer
                             Crawl-delay of its robots.txt replaces it (Scrapy >= 2.18)
``RECRAWL_LEAST_INTERVAL``   least seconds from a copy of a page to its next fetch, 0
``RECRAWL_MOST_INTERVAL``    longest seconds from a copy of a page to its next fetch, none
``RECRAWL_AUDIT_SHARE``      share of the fetches that are audits, 0.01; 0 for none. An audit is a
                             fetch of a page drawn at random by importance: it measures freshness
``RECRAWL_NEW_SHARE``        share of the fetches for new pages while there are some, 0.5
``RECRAWL_RETRY``            seconds from a first failure to the next fetch, 3600; they double
``RECRAWL_MAX_RETRY_AFTER``  longest wait for a ``Retry-After``, in seconds, 86400
``RECRAWL_KEEP_GONE``        days for which pages that are gone are remembered, 30
``RECRAWL_FEEDS``            feeds and sitemaps: ``{url: number of its source of signals}``, from 0
``RECRAWL_POLL``             seconds between two fetches of a feed, 3600
``RECRAWL_SKEW``             seconds by which the clocks of feeds may differ, 5
``RECRAWL_PAGES``            path of a table of pages, as ``scripts.estimate`` writes; or a file of
                             URLs, one per line, below the line ``url``
``RECRAWL_RULES``            callbacks of pages from feeds and tables: ``[(regular expression, name
                             of a method), ..]``; the first that matches, else ``parse``
``RECRAWL_ROBOTS``           seconds after which a robots.txt is fetched again, 86400
``RECRAWL_VALIDATORS``       whether ``ETag`` and ``Last-Modified`` are sent back, True; False for
                             servers that answer 304 although a page has changed
``RECRAWL_OVERVIEW_PORT``    port of this machine for a page to watch (extra ``live``), none
``RECRAWL_COMPARE``          name of a function of a response that returns what is compared, str or
                             bytes; for None, and by default, the text without scripts and styles
===========================  =======================================================================

Each GET request without a body becomes a page; its id is the URL without the fragment. Other
requests are made once, at once. ``meta["importance"]`` is the weight of the page, 1. The callback
sees a page when it is new or has changed, and again at the next fetch if it or an item pipeline
raised an error, or if it yields its own page with ``dont_filter``. The errback is called after each
failed fetch. A request that cannot be stored is left out with an error in the log
(``recrawl/bad_requests`` counts them), and its callback sees the page again.

Each start reads the table of ``RECRAWL_PAGES``. The first takes all of it: rates, signals, copies
(``last_crawl``) and which pages are gone; later ones take pages that are new in it. Its first
source of signals is number 0 of ``RECRAWL_FEEDS``, and so on. A page that is gone also returns by a
link after ``RECRAWL_KEEP_GONE``.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urldefrag

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from policies.live.adapters.copies import Copy
from policies.live.adapters.fetches import HEADERS, Answer
from policies.live.adapters.listings import Listing
from policies.live.adapters.scrapy_requests import FEED, PAGE
from policies.live.adapters.scrapy_scheduler import MIDDLEWARES, RecrawlScheduler, Unchanged
from policies.live.adapters.scrapy_settings import SECOND, response_text

MARKS = "policies.live.adapters.scrapy_requests.RecrawlSpiderMiddleware"


class RecrawlMiddleware:
    """The downloader middleware of a crawl: sends validators and reports what fetches find."""

    scheduler: RecrawlScheduler

    def __init__(self, crawler: Crawler) -> None:
        MIDDLEWARES[crawler] = self
        # the outermost: its order is below all others
        crawler.settings["SPIDER_MIDDLEWARES"].set(MARKS, -1, priority="project")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RecrawlMiddleware:
        """Build the middleware of a crawl, as Scrapy asks for it."""
        return cls(crawler)

    def _page(self, request: Request) -> str | None:
        """Return the page that a request fetches, None if no fetch of it is under way."""
        page = request.meta.get(PAGE)
        return page if page is not None and page in self.scheduler.fetches.sent else None

    def process_request(self, request: Request, spider: Any = None) -> None:
        """Add the validators of the page's copy to a request, and record the time."""
        page, scheduler = self._page(request), self.scheduler
        if page is not None and "redirect_times" not in request.meta:
            scheduler.fetches.sent[page] = scheduler.clock()
            if scheduler.options.validators:
                request.headers.update(scheduler.copies[page].conditions)

    async def process_response(
        self, request: Request, response: Response, spider: Any = None
    ) -> Response:
        """Process a response by :meth:`receive`; a feed is read in a thread before."""
        listing, feed = None, request.meta.get(FEED)
        if feed is not None and response.status == 200:
            reading = deferToThread(self.scheduler.polls.read, feed, response.body, response.url)
            listing = await maybe_deferred_to_future(reading)
        return self.receive(request, response, listing)

    def receive(self, request: Request, response: Response, listing: Listing | None) -> Response:
        """Report an answer; raise IgnoreRequest for a feed and an unchanged page.

        ``listing`` has the entries of a feed that has changed; None for other answers.
        """
        page, feed = self._page(request), request.meta.get(FEED)
        if page is not None and not self.observe(page, response, request):
            raise Unchanged(f"{page} is unchanged")
        if feed is not None:
            self.take(feed, response, listing)
            raise IgnoreRequest(f"{feed} is a feed")
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Report a fetch that failed, or that another middleware refused."""
        page, feed = self._page(request), request.meta.get(FEED)
        if page is not None:
            self.lose(page, exception)
        elif feed is not None:
            fault = f"{request.url} cannot be read: {exception!r}"
            self._count_feed(self.scheduler.polls.note(feed, self.scheduler.clock(), fault))

    def observe(self, page: str, response: Response, request: Request) -> bool:
        """Report a page's answer to the scheduler; return whether the page's callback sees it."""
        scheduler = self.scheduler
        scheduler.hosts.answered(page)
        scheduler.costs.note(page, request, response)
        scheduler.fetches.causes.append((page, f"answered {response.status}"))
        content = scheduler.options.compare(response) if 200 <= response.status < 300 else ""
        content = response_text(response) if content is None else content
        outcome = scheduler.end(page, answer_of(response, content))
        reasons = set(request.meta.get("redirect_reasons", ()))
        moved = outcome not in ("failed", "gone") and reasons and reasons <= {301, 308}
        scheduler.moves.note(page, urldefrag(response.url).url if moved else "", scheduler.clock())
        return outcome not in ("not_modified", "unchanged")

    def lose(self, page: str, error: Exception) -> None:
        """Report a fetch without an answer; a refused page waits until robots.txt is read again."""
        scheduler = self.scheduler
        scheduler.fetches.causes.append((page, f"{type(error).__name__} {error}"))
        if isinstance(error, IgnoreRequest):
            until = scheduler.clock() + scheduler.options.robots * SECOND
            scheduler.fail(page, until, "refused")
        else:
            scheduler.end(page)

    def take(self, feed: str, response: Response, listing: Listing | None) -> None:
        """Report what is new in a feed to the scheduler; ``listing`` as for :meth:`receive`."""
        scheduler, now, answer = self.scheduler, self.scheduler.clock(), answer_of(response)
        if response.status in (200, 304):
            copy = Copy(answer.etag, answer.modified)
            faults = scheduler.polls.take(scheduler.pages, feed, listing, response.url, now, copy)
        else:
            fault = f"{feed} must be a feed or a sitemap, got {response.status}"
            faults = scheduler.polls.note(feed, now, fault)
            scheduler.fetches.respect(feed, answer, now)
        self._count_feed(faults)

    def _count_feed(self, faults: list[str]) -> None:
        for fault in faults:
            self.scheduler.spider.logger.warning(fault)
        self.scheduler.count("bad_feeds" if faults else "feeds")


def answer_of(response: Response, content: str | bytes = b"") -> Answer:
    """Convert a Scrapy response to an answer; header bytes are read as Latin-1."""
    values = {name: response.headers.get(name) for name in HEADERS}
    headers = {name: value.decode("latin-1") for name, value in values.items() if value}
    return Answer.of(response.status, headers, content, response.url)
