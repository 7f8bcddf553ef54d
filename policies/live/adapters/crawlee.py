"""A scheduler as the request manager of Crawlee for Python, for crawlers that go on.

It is used as in::

    manager = ScheduledRequests(scheduler, folder)
    crawler = HttpCrawler(request_manager=manager, keep_alive=True)
    crawler.post_navigation_hook(manager.observe)
    await crawler.run(["https://a.example/"])

Each page is requested when it is due, with the validators of its copy and all that it was added
with: headers, label, user data, depth. A URL with and without a fragment is one page. A handler
sees the pages that are new or have changed, by :meth:`~ScheduledRequests.observe`, and a page again
after it raised an error, which is no failure of the fetch. What only a handler can tell, it tells
by :meth:`~ScheduledRequests.found`; then it sees all pages that are answered in full. A fetch of
which nothing is known has failed. Pages that are gone
(:func:`policies.live.adapters.fetches.note_fetch`) stay away as long as the scheduler remembers
them (``keep_gone``), except urls of ``run``. The kind of a redirect is not known, so redirected
pages keep their urls. The scheduler chooses the order and when a page is tried again, and each
fetch counts for the bandwidth. Crawlee counts failures in a row as retries: after
``max_request_retries`` its ``failed_request_handler`` is called.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

from crawlee import HttpHeaders, Request, RequestState
from crawlee.crawlers import HttpCrawlingContext
from crawlee.errors import ContextPipelineInterruptedError
from crawlee.request_loaders import RequestManager
from crawlee.storage_clients.models import ProcessedRequest

from crawl_envs.types.arguments import quantity
from policies.live.adapters.copies import Copies, Copy, digest, text_of
from policies.live.adapters.fetches import Answer, host_of, note_fetch
from policies.live.adapters.messages import SECONDS_PER_DAY, Scheduler, day_of, take_back
from policies.live.adapters.outages import Outages, bring_back
from policies.live.adapters.watching import CAUSES, Watch, listen

WAIT = 1.0 / SECONDS_PER_DAY
"""The longest wait for a page in one call, in days."""


class ScheduledRequests(RequestManager):
    """Requests of the pages of a scheduler, when they are due.

    Args:
        scheduler: a scheduler whose ids are URLs, and whose times are days since 1970. Fetches that
            are under way there were interrupted, so nothing else fetches its pages.
        folder: a folder for the requests and what is known of the copies.
        columns: columns of pages that are added, as for ``add``; none if rates are learned.
        compare: returns what is compared with the copy before, of a body and its ``Content-Type``.
        validators: whether requests are conditional, so that a server may answer 304.
        max_retry_after: days for which a Retry-After is respected at most.
        overview_port: a port of this machine, on which a thread serves a page to watch and
            /metrics until :meth:`close` or the end of the process; None for none.

    Raises:
        ValueError: the port is in use, or the extra ``live`` is not installed.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        folder: Path,
        columns: Mapping[str, Any] | None = None,
        *,
        compare: Callable[[bytes, str], str | bytes] = text_of,
        validators: bool = True,
        max_retry_after: float = 1.0,
        overview_port: int | None = None,
    ) -> None:
        port = overview_port
        listening = None if port is None else listen(port, "overview_port")
        self.scheduler, self.columns = scheduler, dict(columns or {})
        self.compare, self.validators = compare, validators
        take_back(scheduler, day_of(None))
        longest = quantity("max_retry_after", max_retry_after)
        self.outages = Outages(scheduler, longest)
        folder.mkdir(parents=True, exist_ok=True)
        self.copies = Copies(folder / "copies")
        if (lost := scheduler.under_way).size:  # of a process before
            scheduler.report(lost, day_of(None), "interrupted")
        self.sent: dict[str, tuple[str, float]] = {}  # page and time, by the URL requested
        self.told: dict[str, Answer] = {}
        self.retries: dict[str, tuple[int, int]] = {}  # counts of Crawlee, by page
        self.ask_again, self.handled = -math.inf, 0
        self.causes = deque[tuple[str, str]](maxlen=CAUSES)
        self.watch: Watch | None = None
        if listening is not None:
            self.watch = Watch(scheduler, listening, None, self.causes)

    def close(self) -> None:
        """Serve the page to watch no longer, and close the file of the copies."""
        if self.watch is not None:
            self.watch.close()
        self.copies.close()

    async def fetch_next_request(self) -> Request | None:
        """Return the request of the page that is due; None if there is none within a second."""
        if self.watch is not None:
            self.watch.announce()  # now, as Crawlee has set up its log
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
                if request.url in self.sent:
                    why = "the scheduler's timeout must be longer than a fetch may take"
                    logging.getLogger(__name__).warning(f"{url} is fetched twice at once: {why}")
                self.sent[request.url] = str(url), now
                self.outages.ask(host_of(str(url)), now)
                return request
            if min(self.ask_again, end) <= now:
                return None
            await asyncio.sleep((min(self.ask_again, end) - now) * SECONDS_PER_DAY)
            now = day_of(None)

    def _request(self, url: str) -> Request:
        copy = self.copies[url]
        stored = copy.parser and Request.model_validate_json(copy.parser)
        request = stored or Request.from_url(url)
        request.retry_count, request.session_rotation_count = self.retries.get(url, (0, 0))
        request.handled_at, request.loaded_url, request.state = None, None, RequestState.UNPROCESSED
        conditions = copy.conditions.items() if self.validators else ()
        headers = {name: text.decode() for name, text in conditions if text.isascii()}
        request.headers = HttpHeaders({**request.headers, **headers})  # it sends others as UTF-8
        return request

    async def observe(self, context: HttpCrawlingContext) -> None:
        """Take note of an answer, and pass by the handler if it is no news: after navigation."""
        request, response = context.request, context.http_response
        url = request.loaded_url or request.url
        content = self.compare(await response.read(), response.headers.get("content-type", ""))
        answer = Answer.of(response.status_code, response.headers, content, url)
        self.told[request.url] = answer
        page, _ = self.sent.get(request.url, (_page(request), 0.0))
        same = answer.is_ok and self.copies[page].digest == digest(answer.content)
        if same or answer.status == 304:
            raise ContextPipelineInterruptedError(f"{page} is unchanged")

    def found(self, request: Request, status: int, text: bytes | str = b"") -> None:
        """Take note of what a fetch found: its status, and the text that tells copies apart."""
        told = self.told.get(request.url, Answer())
        self.told[request.url] = told._replace(status=status, content=text)

    async def mark_request_as_handled(self, request: Request) -> ProcessedRequest:
        """Report a fetch; the page is seen again if its handler failed for good."""
        if request.state == RequestState.DONE and request.url not in self.told:
            hook = "crawler.post_navigation_hook(manager.observe)"
            raise ValueError(f"{hook} must be called before the crawl: {request.url} was not seen")
        self.retries.pop(_page(request), None)
        return self._end(request, handled=request.state != RequestState.ERROR)

    async def reclaim_request(
        self, request: Request, *, forefront: bool = False
    ) -> ProcessedRequest:
        """Report a fetch that failed, or whose handler did, which shall see the page again."""
        self.retries[_page(request)] = request.retry_count, request.session_rotation_count or 0
        return self._end(request, handled=False)

    def _end(self, request: Request, *, handled: bool) -> ProcessedRequest:
        now = day_of(None)
        page, sent = self.sent.pop(request.url, (_page(request), now))
        answer, before = self.told.pop(request.url, Answer()), self.copies[page]
        self.ask_again, self.handled = -math.inf, self.handled + 1
        _, copy = note_fetch(self.scheduler, page, before, answer, sent, now, self.outages)
        self.causes.append((page, f"answered {answer.status or 'nothing'}"))
        if copy is not before:
            self.copies.put({page: copy if handled else Copy(parser=copy.parser)})
        return _processed(request, True)

    async def add_request(
        self, request: str | Request, *, forefront: bool = False
    ) -> ProcessedRequest:
        """Add the page of a request, if it is not known."""
        [added] = self._transform_requests([request])
        known = _page(added) in self.scheduler
        await self.add_requests([added])
        return _processed(added, known)

    async def add_requests(self, requests: Sequence[str | Request], **options: Any) -> None:
        """Add the pages of requests that are not known; ValueError for a POST, payload or key."""
        added = self._transform_requests(requests)
        parsers = {_page(request): _parser(request) for request in reversed(added)}
        self.copies.adopt(parsers)
        urls = list(reversed(parsers))
        hosts = [host_of(url) for url in urls]
        self.scheduler.add(urls, known="skip", host=hosts, **self.columns)
        starts = {_page(request) for request in added if request.crawl_depth == 0}
        bring_back(self.scheduler, [*starts])
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


def _parser(request: Request) -> str:
    """Return what requests a page, as JSON; ValueError for a request that is more than its URL."""
    if request.method != "GET":
        raise ValueError(f"request must be a GET, got {request.method} of {request.url}")
    plain = Request.from_url(request.url)
    for name in ("payload", "unique_key"):
        if (got := getattr(request, name)) != (default := getattr(plain, name)):
            raise ValueError(f"{name} must be {default!r} for {request.url}, got {got!r}")
    return request.model_dump_json()


def _processed(request: Request, known: bool) -> ProcessedRequest:
    return ProcessedRequest(
        unique_key=request.unique_key, was_already_present=known, was_already_handled=False
    )
