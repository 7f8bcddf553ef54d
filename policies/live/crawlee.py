"""A scheduler as the request manager of Crawlee for Python, for crawlers that go on.

It is used as in::

    manager = ScheduledRequests(scheduler, folder)
    crawler = HttpCrawler(request_manager=manager, keep_alive=True)
    crawler.post_navigation_hook(manager.observe)
    await crawler.run(["https://a.example/"])

Each page is requested when it is due; a URL with and without a fragment is one page. What a fetch
found is known from :meth:`observe`, or from :meth:`found` for what only a handler can tell, such as
the text without advertisements: copies of another hash have changed. A fetch of which nothing was
told has failed, and what a handler raises after that is no failure of the fetch. Pages answered by
404 or 410 are gone, for as long as the scheduler remembers them (``keep_gone``). Failed pages wait
by the scheduler's rules, not by Crawlee's retries, so each fetch counts for the bandwidth.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

from crawlee import Request
from crawlee.crawlers import HttpCrawlingContext
from crawlee.request_loaders import RequestManager
from crawlee.storage_clients.models import ProcessedRequest

from policies.live.messages import SECONDS_PER_DAY, Scheduler, day_of

WAIT = 1.0 / SECONDS_PER_DAY
"""The longest wait for a page in one call, in days."""
GONE = (404, 410)
NOT_MODIFIED = 304
KEEP_HASH = (
    "INSERT INTO pages VALUES (?, NULL, ?) ON CONFLICT (url) DO UPDATE SET hash = excluded.hash"
)


class ScheduledRequests(RequestManager):
    """Requests of the pages of a scheduler, when they are due.

    Args:
        scheduler: a scheduler whose ids are URLs, and whose times are days since 1970.
        folder: a folder for the requests and the hashes of copies.
        columns: columns of pages that are added, as for ``add``; none if rates are learned.
    """

    def __init__(
        self, scheduler: Scheduler, folder: Path, columns: Mapping[str, Any] | None = None
    ) -> None:
        self.scheduler, self.columns = scheduler, dict(columns or {})
        folder.mkdir(parents=True, exist_ok=True)
        self.kept = sqlite3.connect(folder / "requests.sqlite")
        self.kept.execute("PRAGMA journal_mode = WAL")
        self.kept.execute("PRAGMA synchronous = NORMAL")  # a crash of the machine may lose the last
        self.kept.execute("CREATE TABLE IF NOT EXISTS pages (url PRIMARY KEY, request, hash)")
        self.sent: dict[str, tuple[str, float]] = {}  # page and time, by the URL requested
        self.told: dict[str, tuple[int, str]] = {}
        self.ask_again, self.handled = -math.inf, 0

    async def fetch_next_request(self) -> Request | None:
        """Return the request of the page that is due; None if there is none within a second."""
        now = day_of(None)
        end = now + WAIT
        while True:
            url, self.ask_again = self.scheduler.next(now)
            if url is not None:  # nothing is awaited from here on, as the call may be cancelled
                try:
                    request = self._request(str(url))
                except ValueError:  # it is no URL for Crawlee
                    self.scheduler.report([url], now, "failed")
                    continue
                self.sent[request.url] = str(url), now
                return request
            if min(self.ask_again, end) <= now:
                return None
            await asyncio.sleep((min(self.ask_again, end) - now) * SECONDS_PER_DAY)
            now = day_of(None)

    def _request(self, url: str) -> Request:
        text = self._kept("request", url)
        return Request.model_validate_json(text) if text else Request.from_url(url)

    def _kept(self, column: str, url: str) -> Any:
        row = self.kept.execute(f"SELECT {column} FROM pages WHERE url = ?", (url,)).fetchone()
        return None if row is None else row[0]

    async def observe(self, context: HttpCrawlingContext) -> None:
        """Take note of an answer: its status, and its body. A hook after navigation."""
        answer = context.http_response
        self.found(context.request, answer.status_code, await answer.read())

    def found(self, request: Request, status: int, text: bytes | str = b"") -> None:
        """Take note of what a fetch found: its status, and the text that tells copies apart."""
        body = text.encode("utf-8", "replace") if isinstance(text, str) else text
        self.told[request.url] = status, hashlib.sha256(body).hexdigest()[:16]

    async def mark_request_as_handled(self, request: Request) -> ProcessedRequest:
        """Report a fetch, or that it failed."""
        now = day_of(None)
        url, sent = self.sent.pop(request.url, (_page(request), now))
        status, digest = self.told.pop(request.url, (0, ""))
        self.ask_again, self.handled = -math.inf, self.handled + 1
        if status in GONE:
            self.scheduler.report([url], sent, "gone", ended=now)
        elif status == NOT_MODIFIED:
            self.scheduler.report([url], sent, changed=[False], ended=now)
        elif not 200 <= status < 300:
            self.scheduler.report([url], sent, "failed", ended=now)
        else:
            known = self._kept("hash", url)
            changed = None if known is None else [digest != known]
            self.scheduler.report([url], sent, changed=changed, ended=now)
            with self.kept:
                self.kept.execute(KEEP_HASH, (url, digest))
        return _processed(request, True)

    async def reclaim_request(
        self, request: Request, *, forefront: bool = False
    ) -> ProcessedRequest:
        """Report a fetch that failed, or whose handler did; the page comes again when it is due."""
        return await self.mark_request_as_handled(request)

    async def add_request(
        self, request: str | Request, *, forefront: bool = False
    ) -> ProcessedRequest:
        """Add the page of a request, if it is not known."""
        [added] = self._transform_requests([request])
        known = _page(added) in self.scheduler
        await self.add_requests([added])
        return _processed(added, known)

    async def add_requests(self, requests: Sequence[str | Request], **options: Any) -> None:
        """Add the pages of requests that are not known; ValueError for other methods than GET."""
        added = self._transform_requests(requests)
        if other := [request.method for request in added if request.method != "GET"]:
            raise ValueError(f"request must be a GET, got {other[0]}")
        rows = [(_page(request), request.model_dump_json()) for request in added]
        with self.kept:  # one transaction
            self.kept.executemany("INSERT OR IGNORE INTO pages VALUES (?, ?, NULL)", rows)
        urls = list(dict.fromkeys(url for url, _ in rows))
        hosts = [urlsplit(url).hostname or "" for url in urls]
        self.scheduler.add(urls, known="skip", host=hosts, **self.columns)
        self.ask_again = -math.inf

    async def get_handled_count(self) -> int:
        """Return the number of fetches since the start."""
        return self.handled

    async def get_total_count(self) -> int:
        """Return the number of fetches, and of pages that are there."""
        return self.handled + len(self.scheduler)

    async def is_empty(self) -> bool:
        """Return whether no page is due within a second."""
        return day_of(None) + WAIT < self.ask_again

    async def is_finished(self) -> bool:
        """Return False: pages are always fetched again."""
        return False

    async def drop(self) -> None:
        """Refuse to remove what was learned; delete the folders instead."""
        raise NotImplementedError("the folders of the scheduler must be deleted by hand")


def _page(request: Request) -> str:
    """Return the id of the page of a request: its URL without the fragment."""
    return urldefrag(request.url).url


def _processed(request: Request, known: bool) -> ProcessedRequest:
    return ProcessedRequest(
        unique_key=request.unique_key, was_already_present=known, was_already_handled=False
    )
