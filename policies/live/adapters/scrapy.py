"""A scheduler for crawls with Scrapy that never end: pages are fetched again when it pays.

In the settings of a project (Scrapy >= 2.13, the extra ``scrapy``)::

    SCHEDULER = "policies.live.adapters.scrapy.RecrawlScheduler"
    DOWNLOADER_MIDDLEWARES = {"policies.live.adapters.scrapy.RecrawlMiddleware": 500}
    RECRAWL_FOLDER = "state"  # of this crawl
    RECRAWL_BANDWIDTH = 20_000  # fetches of pages per day

===========================  =======================================================================
setting                      meaning
===========================  =======================================================================
``RECRAWL_FOLDER``           folder of the state; each spider has its own one in it, by its name,
                             and resumes from there after any end
``RECRAWL_BANDWIDTH``        fetches of pages per day; feeds, robots.txt and redirects come on top
``RECRAWL_POLICY``           an index policy, ``GreedyNCIS``
``RECRAWL_HOST_GAP``         seconds from a fetch of a host to the next, ``DOWNLOAD_DELAY``; more if
                             its robots.txt has a longer Crawl-delay (Scrapy >= 2.18)
``RECRAWL_LEAST_INTERVAL``   least seconds from a copy of a page to its next fetch, 0
``RECRAWL_NEW_SHARE``        share of the fetches for new pages while there are some, 0.5
``RECRAWL_RETRY``            seconds from a first failure to the next fetch, 3600; they double
``RECRAWL_MAX_RETRY_AFTER``  longest wait for a server that asks to wait, in seconds, 86400
``RECRAWL_KEEP_GONE``        days for which pages that are gone are remembered, 30
``RECRAWL_FEEDS``            feeds and sitemaps: ``{url: number of its source of signals}``, from 0
``RECRAWL_POLL``             seconds between two fetches of a feed, 3600
``RECRAWL_SKEW``             seconds by which the clocks of feeds may differ, 5
``RECRAWL_PAGES``            path of a table of pages, as ``scripts.estimate`` writes; or of URLs,
                             one per line, below the line ``url``
``RECRAWL_RULES``            callbacks of pages that feeds and tables list: ``[(regular expression,
                             name of a method), ..]``; the first that matches, or ``parse``
``RECRAWL_ROBOTS``           seconds after which a robots.txt is fetched again, 86400
``RECRAWL_VALIDATORS``       whether ``ETag`` and ``Last-Modified`` are sent back, True; False for
                             servers that answer 304 although a page has changed
``RECRAWL_OVERVIEW_PORT``    port of this machine for a page to watch (extra ``live``), none
``RECRAWL_COMPARE``          function of a response, by name, that returns what is compared with the
                             copy before, str or bytes; None, and by default, the text without
                             scripts and styles
===========================  =======================================================================

Every GET request without a body becomes a page, by its URL without the fragment. It is fetched
again and again with the first request that was found: its callback, errback, headers, cookies,
``cb_kwargs``, ``meta``, flags and class are kept as JSON. ``meta["importance"]`` is the page's
weight, 1. The callback is called when a page is new or has changed, not for 304 or the same
content. It is called again at the next fetch after it or an item pipeline raised an error, or when
it asks for its own page with ``dont_filter``. The errback is called after each failed fetch.

Callbacks and errbacks must be methods of the spider, and the rest plain JSON. A request that cannot
be kept is left out with an error in the log (``recrawl/bad_requests`` counts them); the callback
sees its page again at the next fetch, and its other requests are taken.

The table of ``RECRAWL_PAGES`` is read at each start. The first start takes all of it: rates,
signals, copies (``last_crawl``) and which pages are gone. Later ones take pages that are new in it.
Its first source of signals is number 0 of ``RECRAWL_FEEDS``, and so on.

A page is gone after a second 404 or 410 while its host answers other pages well
(:mod:`policies.live.adapters.outages`). It comes back at a start if it is a start URL, when a feed
or sitemap lists it with a new date, and by a link when ``RECRAWL_KEEP_GONE`` has passed. A page
that robots.txt or another middleware refuses, as one that is offsite, waits for ``RECRAWL_ROBOTS``.
Every other error is a failure. Requests with a body, or of another method than GET, are made once,
at once.
"""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from policies.live.adapters.listings import Listing
from policies.live.adapters.scrapy_requests import FEED, PAGE
from policies.live.adapters.scrapy_scheduler import MIDDLEWARES, RecrawlScheduler, Unchanged

MARKS = "policies.live.adapters.scrapy_requests.RecrawlSpiderMiddleware"


class RecrawlMiddleware:
    """Sends validators, and tells the scheduler what fetches find: ``DOWNLOADER_MIDDLEWARES``."""

    def __init__(self, crawler: Crawler) -> None:
        self.scheduler: RecrawlScheduler | None = None
        MIDDLEWARES[crawler] = self
        # it is outside of all others, as its order is below theirs
        crawler.settings["SPIDER_MIDDLEWARES"].set(MARKS, -1, priority="project")

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
            if self.scheduler.options.validators:
                request.headers.update(self.scheduler.copies[page].conditions)

    async def process_response(
        self, request: Request, response: Response, spider: Any = None
    ) -> Response:
        """Read a feed beside the crawl, as long ones take seconds; then :meth:`receive`."""
        listing, feed = None, request.meta.get(FEED)
        if feed is not None and response.status == 200 and self.scheduler is not None:
            reading = deferToThread(self.scheduler.polls.read, feed, response.body, response.url)
            listing = await maybe_deferred_to_future(reading)
        return self.receive(request, response, listing)

    def receive(self, request: Request, response: Response, listing: Listing | None) -> Response:
        """Tell what was found; IgnoreRequest for what the callback shall not see.

        ``listing`` is what a feed lists that has changed, None for other answers.
        """
        assert self.scheduler is not None
        page, feed = self._page(request), request.meta.get(FEED)
        if page is not None and not self.scheduler.observe(page, response, request):
            raise Unchanged(f"{page} is unchanged")
        if feed is not None:
            self.scheduler.take(feed, response, listing)
            raise IgnoreRequest(f"{feed} is a feed")
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> None:
        """Tell that a fetch failed, or was refused by another middleware."""
        page = self._page(request)
        if page is not None and self.scheduler is not None:
            self.scheduler.lose(page, exception)
        elif FEED in request.meta and self.scheduler is not None:
            fault = f"{request.url} cannot be read: {exception!r}"
            feed, now = request.meta[FEED], self.scheduler.clock()
            self.scheduler.spider.logger.warning(*self.scheduler.polls.note(feed, now, fault))
            self.scheduler.count("bad_feeds")
