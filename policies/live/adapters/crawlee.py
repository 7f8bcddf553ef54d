"""A request manager of Crawlee for Python that asks a scheduler which page is due.

It is used as in::

    manager = ScheduledRequests(scheduler, folder)
    crawler = HttpCrawler(request_manager=manager, keep_alive=True)
    crawler.post_navigation_hook(manager.observe)
    await crawler.run(["https://a.example/"])

Each page is requested when it is due, with its first request and the validators of its copy. A URL
with and without a fragment is one page. Handlers see pages that are new or have changed. A handler
that raised an error sees its page at the next fetch; the fetch has not failed. A handler that calls
:meth:`~ScheduledRequests.found` sees every page that was answered in full. A fetch without any
answer has failed.

The scheduler chooses the order and the time of retries, and each fetch counts for the bandwidth.
Pages that are gone stay away while the scheduler remembers them (``keep_gone``), except URLs of
``run``.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

from crawlee import HttpHeaders, Request, RequestState
from crawlee.crawlers import HttpCrawlingContext
from crawlee.errors import ContextPipelineInterruptedError
from crawlee.http_clients import HttpResponse
from crawlee.request_loaders import RequestManager
from crawlee.storage_clients.models import ProcessedRequest

from crawl_envs.types.arguments import quantity
from policies.live.adapters.copies import Copies, text_of
from policies.live.adapters.fetches import Answer, Fetches
from policies.live.adapters.messages import SECONDS_PER_DAY, Scheduler, add_found, day_of
from policies.live.adapters.outages import bring_back
from policies.live.adapters.watching import Watch, listen

WAIT = 1.0 / SECONDS_PER_DAY
"""The longest wait for a page in one call, in days."""


class ScheduledRequests(RequestManager):
    """A request manager that gives Crawlee the request of each page when the page is due.

    Args:
        scheduler: the scheduler, as for :class:`policies.live.adapters.fetches.Fetches`.
        folder: a folder for the requests and the copies.
        columns: columns of new pages, as for ``add``; none if rates are learned.
        compare: a function of a body and its ``Content-Type`` that returns the content to compare.
        cost: a function of a response and its body that returns what the fetch cost, >= 0, such as
            ``lambda response, body: len(body)``; a fetch without an answer has an unknown cost.
        validators: whether to send validators, so that a server may answer 304.
        max_retry_after: the longest wait for a ``Retry-After``, in days.
        overview_port: a port of this machine for a page to watch and /metrics, served until
            :meth:`close` or the end of the process; None for none.

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
        cost: Callable[[HttpResponse, bytes], float] | None = None,
        validators: bool = True,
        max_retry_after: float = 1.0,
        overview_port: int | None = None,
    ) -> None:
        listening = None if overview_port is None else listen(overview_port, "overview_port")
        self.scheduler, self.columns = scheduler, dict(columns or {})
        self.compare, self.cost, self.validators = compare, cost, validators
        longest = quantity("max_retry_after", max_retry_after)
        folder.mkdir(parents=True, exist_ok=True)
        self.copies = Copies(folder / "copies")
        self.fetches = Fetches(scheduler, self.copies, day_of(None), longest)
        self.pages: dict[str, str] = {}  # of the fetches under way, by the URL requested
        self.answers: dict[str, Answer] = {}
        self.retries: dict[str, tuple[int, int]] = {}  # counts of Crawlee, by page
        self.ask_again, self.handled = -math.inf, 0
        self.watch: Watch | None = None
        if listening is not None:
            self.watch = Watch(scheduler, listening, None, self.fetches.causes)

    def close(self) -> None:
        """Stop serving the page to watch, and close the file of the copies."""
        if self.watch is not None:
            self.watch.close()
        self.copies.close()

    async def fetch_next_request(self) -> Request | None:
        """Return the request of a page that is due; None if no page is due within a second."""
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
                if url in self.fetches.sent:
                    why = "the scheduler's timeout must be longer than a fetch may take"
                    logging.getLogger(__name__).warning(f"{url} is fetched twice at once: {why}")
                self.pages[request.url] = str(url)
                self.fetches.begin(str(url), now)
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
        """Record the answer to a request; skip the request's handler if the page is unchanged."""
        request, response = context.request, context.http_response
        url, body = request.loaded_url or request.url, await response.read()
        content = self.compare(body, response.headers.get("content-type", ""))
        answer = Answer.of(response.status_code, response.headers, content, url)
        if self.cost is not None:
            answer = answer._replace(cost=quantity(f"cost of {url}", self.cost(response, body)))
        self.answers[request.url] = answer
        page = self.pages.get(request.url, _page(request))
        if answer.is_ok and not answer.is_news(self.copies[page]):
            raise ContextPipelineInterruptedError(f"{page} is unchanged")

    def found(
        self, request: Request, status: int, text: bytes | str | None = None, cost: Any = None
    ) -> None:
        """Record a fetch by hand: its status, the text to compare, if it is known, and its cost."""
        answer = self.answers.get(request.url, Answer())
        cost = answer.cost if cost is None else quantity("cost", cost)
        self.answers[request.url] = answer._replace(status=status, content=text, cost=cost)

    async def mark_request_as_handled(self, request: Request) -> ProcessedRequest:
        """Report a fetch to the scheduler; after a failed handler the next fetch counts as new."""
        if request.state == RequestState.DONE and request.url not in self.answers:
            hook = "crawler.post_navigation_hook(manager.observe)"
            raise ValueError(f"{hook} must be called before the crawl: {request.url} was not seen")
        self.retries.pop(_page(request), None)
        return self._end(request, handled=request.state != RequestState.ERROR)

    async def reclaim_request(
        self, request: Request, *, forefront: bool = False
    ) -> ProcessedRequest:
        """Report a fetch that failed or whose handler failed; the handler sees the page again."""
        self.retries[_page(request)] = request.retry_count, request.session_rotation_count or 0
        return self._end(request, handled=False)

    def _end(self, request: Request, *, handled: bool) -> ProcessedRequest:
        now = day_of(None)
        page = self.pages.pop(request.url, _page(request))
        answer, before = self.answers.pop(request.url, Answer()), self.copies[page]
        self.ask_again, self.handled = -math.inf, self.handled + 1
        _, copy = self.fetches.end(page, answer, now)
        self.fetches.causes.append((page, f"answered {answer.status or 'nothing'}"))
        if copy is not before:
            self.copies.put({page: copy if handled else copy.unprocessed})
        return _processed(request, True)

    async def add_request(
        self, request: str | Request, *, forefront: bool = False
    ) -> ProcessedRequest:
        """Add the page of a request, if it is not known."""
        [added] = self._transform_requests([request])
        is_known = _page(added) in self.scheduler
        await self.add_requests([added])
        return _processed(added, is_known)

    async def add_requests(self, requests: Sequence[str | Request], **options: Any) -> None:
        """Add the pages of requests that are not known; ValueError for a POST, payload or key."""
        added = self._transform_requests(requests)
        parsers = {_page(request): _parser(request) for request in reversed(added)}
        self.copies.adopt(parsers)
        urls = list(reversed(parsers))
        add_found(self.scheduler, urls, self.columns)
        starts = {_page(request) for request in added if request.crawl_depth == 0}
        bring_back(self.scheduler, [*starts])
        self.ask_again = -math.inf

    async def get_handled_count(self) -> int:
        """Return the number of fetches since the start."""
        return self.handled

    async def get_total_count(self) -> int:
        """Return the number of fetches since the start plus the number of known pages."""
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
    """Return a request as JSON; ValueError if it is no GET, or has a payload or own key."""
    if request.method != "GET":
        raise ValueError(f"request must be a GET, got {request.method} of {request.url}")
    plain = Request.from_url(request.url)
    for name in ("payload", "unique_key"):
        if (got := getattr(request, name)) != (default := getattr(plain, name)):
            raise ValueError(f"{name} must be {default!r} for {request.url}, got {got!r}")
    return request.model_dump_json()


def _processed(request: Request, is_known: bool) -> ProcessedRequest:
    return ProcessedRequest(
        unique_key=request.unique_key, was_already_present=is_known, was_already_handled=False
    )
