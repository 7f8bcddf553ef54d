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

from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.threads import deferToThread

from policies.live.listings import Listing
from policies.live.scrapy_scheduler import FEED, MIDDLEWARES, PAGE, RecrawlScheduler, Unchanged


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

    async def process_response(
        self, request: Request, response: Response, spider: Any = None
    ) -> Response:
        """Read a feed beside the crawl, as long ones take seconds; then :meth:`receive`."""
        listing, feed = None, request.meta.get(FEED)
        if feed is not None and response.status == 200 and self.scheduler is not None:
            content_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
            answer = feed, response.body, response.url, content_type
            reading = deferToThread(self.scheduler.polls.read, *answer)
            listing = await maybe_deferred_to_future(reading)
        return self.receive(request, response, listing)

    def receive(self, request: Request, response: Response, listing: Listing | None) -> Response:
        """Tell what was found; IgnoreRequest for what the callback shall not see.

        ``listing`` is what a feed lists that has changed, None for other answers.
        """
        assert self.scheduler is not None
        page, feed = self._page(request), request.meta.get(FEED)
        if page is not None and not self.scheduler.observe(page, response):
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
            self.scheduler.spider.logger.warning(f"{request.url} cannot be read: {exception!r}")
            self.scheduler.count("bad_feeds")
