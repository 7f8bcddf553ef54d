"""A crawler of Crawlee that asks a scheduler, on a small site of this machine."""

from __future__ import annotations

import asyncio
import http.server
import json
import re
import socket
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from crawlee import ConcurrencySettings, Request, RequestState
from crawlee.crawlers import HttpCrawler

from policies.live.adapters.copies import Copy
from policies.live.adapters.crawlee import ScheduledRequests
from policies.live.adapters.fetches import Answer
from policies.live.adapters.messages import SECONDS_PER_DAY, day_of
from policies.live.scheduler import CrawlScheduler, DurableScheduler
from policies.live.scheduler.files import records_of

SECOND = 1.0 / SECONDS_PER_DAY
PATHS = ("news", "still", "gone", "broken", "odd")


class Site(http.server.BaseHTTPRequestHandler):
    """Its news change at each visit; a page has validators, one is gone, and one is broken."""

    timeout = 20.0  # of a connection on which nothing is asked
    visits: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        self.visits[self.path] += 1
        same = self.headers.get("If-None-Match") == '"1"'
        self.visits[f"{self.path} not modified"] += same
        self.send_response(304 if same else {"/gone": 410, "/broken": 500}.get(self.path, 200))
        if self.path == "/still":
            self.send_header("ETag", '"1"')
        body = f"{self.path} {self.visits[self.path] * (self.path == '/news')}".encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    Site.visits.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def scheduler_of(rate: float, **options: Any) -> CrawlScheduler:
    """Return a scheduler of so many fetches per second that learns."""
    settings = {"timeout": 60.0 * SECOND, "burst": 1.0 * SECOND, "learn": True, **options}
    settings = {"start": day_of(None) - SECOND / rate, **settings}
    return CrawlScheduler("Greedy", rate / SECOND, **settings)


async def fetched(manager: ScheduledRequests) -> Request:
    """Return the next request, where there is one."""
    request = await manager.fetch_next_request()
    assert request is not None
    return request


def crawler_of(manager: ScheduledRequests, **options: Any) -> HttpCrawler:
    crawler = HttpCrawler(
        request_manager=manager,
        keep_alive=True,
        concurrency_settings=ConcurrencySettings(max_concurrency=4, desired_concurrency=4),
        configure_logging=False,
        request_handler_timeout=timedelta(seconds=10),
        **options,
    )
    crawler.post_navigation_hook(manager.observe)
    return crawler


def test_pages_are_fetched_again_when_they_are_due(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # Crawlee writes its own counts there
    urls = [f"{site}/{path}" for path in PATHS]
    with DurableScheduler(tmp_path / "state", scheduler_of(10.0, keep_gone=1.0)) as scheduler:
        scheduler.warm()
        manager = ScheduledRequests(scheduler, tmp_path / "requests")
        crawler, labels, seen = crawler_of(manager), Counter[Any](), Counter[Any]()

        @crawler.router.default_handler
        async def handle(context: Any) -> None:
            seen[context.request.url] += 1
            if context.request.url.endswith("odd"):
                raise RuntimeError("the handler fails, not the fetch")

        @crawler.router.handler("told")
        async def handle_label(context: Any) -> None:
            labels[context.request.url] += 1

        async def crawl() -> None:
            labelled = Request.from_url(urls[0], label="told")
            run = asyncio.create_task(crawler.run([labelled, *urls[1:]]))
            await asyncio.sleep(5.0)
            crawler.stop()
            await asyncio.wait_for(run, 20.0)

        before = day_of(None)
        asyncio.run(crawl())
        told = [scheduler.describe(url) for url in urls]
        most = 1.0 + 10.0 * (day_of(None) - before) / SECOND + 10.0
        assert Site.visits["/gone"] == 1
        assert Site.visits["/broken"] == 1  # it waits for the minute of the timeout
        assert told[2]["state"] == "waiting"  # gone, if it is so once more
        assert [page["failures"] for page in told] == [0, 0, 1, 1, 0]
        assert told[3]["copy"] is None
        visits = {path: Site.visits[f"/{path}"] for path in PATHS}
        assert 4 < visits["news"] <= sum(visits.values()) <= most
        assert Site.visits["/still not modified"] == visits["still"] - 1 > 0
        assert [seen[urls[1]], seen[urls[4]]] == [1, visits["odd"]]
        assert labels[urls[0]] == visits["news"]
        assert told[0]["change_rate"] > 3.0 * told[1]["change_rate"]
        assert told[4]["copy"] is not None


def test_requests_outlive_the_process_and_cancelled_calls(tmp_path: Path) -> None:
    scheduler = scheduler_of(1e-3, burst=0.0)

    async def steps() -> None:
        manager = ScheduledRequests(scheduler, tmp_path)
        assert await manager.fetch_next_request() is None
        assert await manager.is_empty()
        first = await manager.add_request(Request.from_url("https://a.example/", label="front"))
        again = await manager.add_request("https://a.example/")
        assert [first.was_already_present, again.was_already_present] == [False, True]
        assert not await manager.is_empty()
        with pytest.raises(ValueError, match="must be a GET, got POST"):
            await manager.add_request(Request.from_url("https://a.example/1", method="POST"))
        manager = ScheduledRequests(scheduler, tmp_path)
        request = await fetched(manager)
        assert request.label == "front"
        waiting = asyncio.create_task(manager.fetch_next_request())
        await asyncio.sleep(0.05)
        waiting.cancel()
        manager.found(request, 200, "text")
        await manager.mark_request_as_handled(request)
        assert scheduler.describe(request.url)["copy"] is not None
        assert [await manager.get_handled_count(), await manager.get_total_count()] == [1, 2]
        assert not await manager.is_finished()

    asyncio.run(steps())


def test_a_fetch_under_way_at_a_kill_says_nothing_of_its_page(tmp_path: Path) -> None:
    scheduler = scheduler_of(100.0, retry=3600.0 * SECOND)

    async def steps() -> None:
        for _ in range(2):
            manager = ScheduledRequests(scheduler, tmp_path)  # of a process that began again
            await manager.add_requests(["https://a.example/"])
            request = await fetched(manager)
        manager.found(request, 404)
        await manager.mark_request_as_handled(request)
        assert scheduler.describe(request.url)["failures"] == 1

    asyncio.run(steps())


def test_urls_of_a_run_come_back_and_links_do_not(tmp_path: Path) -> None:
    scheduler = scheduler_of(100.0, keep_gone=9.0, start=day_of(None) + 30.0)
    urls = ["https://a.example/", "https://a.example/link"]

    async def steps() -> None:
        for status in (410, 200):
            manager = ScheduledRequests(scheduler, tmp_path, max_retry_after=0.5)
            manager.fetches.outages.is_gone = lambda *about: True  # type: ignore[method-assign]
            assert abs(scheduler.time - day_of(None)) < 1.0  # it is taken back
            link = Request.from_url(urls[1])
            link.crawl_depth = 1
            await manager.add_requests([urls[0], link])
            while (request := await manager.fetch_next_request()) is not None:
                if status == 200:
                    assert request.url == urls[0]
                manager.found(request, status)
                await manager.mark_request_as_handled(request)
                if status == 200:
                    break

    asyncio.run(steps())
    assert [scheduler.describe(url)["state"] for url in urls] == ["ready", "gone"]


def test_validators_are_sent_as_they_came_or_not_at_all(tmp_path: Path) -> None:
    async def steps() -> None:
        manager, page = ScheduledRequests(scheduler_of(100.0), tmp_path), "https://a.example/"
        await manager.add_requests([page])
        manager.copies.put({page: Copy('"\xe9"', "yesterday")})
        request = await fetched(manager)
        assert dict(request.headers) == {"if-modified-since": "yesterday"}

    asyncio.run(steps())


def test_links_of_a_call_are_one_record(tmp_path: Path) -> None:
    manager = ScheduledRequests(scheduler_of(1.0), tmp_path)
    asyncio.run(manager.add_requests([f"https://a.example/{k}" for k in range(50)]))
    [(record, _)] = records_of(tmp_path / "copies")
    assert len(record.values["copies"]) == 50


def test_a_url_with_a_fragment_is_its_page(tmp_path: Path) -> None:
    scheduler = scheduler_of(100.0)
    bare, urls = "https://a.example/p", [f"https://a.example/p{end}" for end in ("#one", "", "#2")]

    async def steps() -> None:
        manager = ScheduledRequests(scheduler, tmp_path)
        known = [(await manager.add_request(url)).was_already_present for url in urls]
        assert known == [False, True, True]
        await manager.add_requests(urls)
        assert len(scheduler) == 1
        request = await fetched(manager)
        assert request.url == urls[0]
        manager.found(request, 200, "text")
        await manager.mark_request_as_handled(request)
        assert scheduler.describe(bare)["copy"] is not None

    asyncio.run(steps())


@pytest.mark.parametrize(
    ("status", "text", "state", "change"),
    [
        (200, "same", "ready", False),
        (200, "other", "ready", True),
        (304, "", "ready", False),
        (404, "", "waiting", None),
        (410, "", "waiting", None),
        (403, "", "waiting", None),
        (503, "", "waiting", None),
        (None, "", "waiting", None),
    ],
)
def test_outcomes_are_reported(
    status: int | None, text: str, state: str, change: bool | None, tmp_path: Path
) -> None:
    scheduler = scheduler_of(100.0, keep_gone=1.0)
    reports: list[Any] = []
    report = scheduler.report

    def noting(*arguments: Any, **named: Any) -> int:
        reports.append(named.get("changed"))
        return report(*arguments, **named)

    scheduler.report = noting  # type: ignore[method-assign]

    async def steps() -> None:
        manager = ScheduledRequests(scheduler, tmp_path)
        await manager.add_requests(["https://a.example/"])
        for found in ((200, "same"), (status, text)):
            request = None
            async with asyncio.timeout(20.0):
                while request is None:
                    request = await manager.fetch_next_request()
            if found[0] is not None:
                manager.found(request, *found)  # type: ignore[arg-type]
            await manager.mark_request_as_handled(request)
        assert manager.copies[request.url].digest is not None

    asyncio.run(steps())
    assert reports == [None, None if change is None else [change]]
    assert scheduler.describe("https://a.example/")["state"] == state


def test_audits_are_answered_also_after_a_handler_failed(tmp_path: Path) -> None:
    scheduler = scheduler_of(100.0, audit_share=0.99)  # each fetch from the third on

    async def steps() -> None:
        manager = ScheduledRequests(scheduler, tmp_path)
        await manager.add_requests(["https://a.example/"])
        failed, done = RequestState.ERROR, RequestState.DONE
        before = ("a", done), ("a", failed)
        for text, state in (*before, ("a", done), ("b", done), (None, done), ("b", done)):
            request = None
            while request is None:
                request = await manager.fetch_next_request()
            manager.found(request, 200, text)
            request.state = state
            await manager.mark_request_as_handled(request)

    asyncio.run(asyncio.wait_for(steps(), 20.0))
    assert scheduler.audits is not None
    # after the failure: the same, another text, an unknown one, and one after an unknown one
    assert scheduler.audits.records()["answer"].tolist()[:4] == [0, 1, 2, 2]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_handler_that_failed_sees_the_page_again(
    retries: int, site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crawlee's own options hold: the failed handler after the retries, and the number of pages."""
    monkeypatch.chdir(tmp_path)
    scheduler, seen, failed = scheduler_of(20.0), Counter[str](), Counter[str]()
    manager = ScheduledRequests(scheduler, tmp_path / "requests")
    limit = 6 // (retries + 1)  # Crawlee counts pages that it has done with
    crawler = crawler_of(manager, max_request_retries=retries, max_requests_per_crawl=limit)

    @crawler.router.default_handler
    async def handle(context: Any) -> None:
        seen[context.request.url] += 1
        raise RuntimeError("the handler fails, not the fetch")

    @crawler.failed_request_handler
    async def fail(context: Any, error: Exception) -> None:
        failed[context.request.url] += 1

    asyncio.run(asyncio.wait_for(crawler.run([f"{site}/odd"]), 60.0))
    count = seen[f"{site}/odd"]
    assert count == Site.visits["/odd"] >= 6  # Crawlee may begin more before it ends
    assert failed[f"{site}/odd"] == count // (retries + 1)


def test_all_of_a_request_is_kept_but_what_was_noted_of_a_fetch(tmp_path: Path) -> None:
    scheduler = scheduler_of(100.0)
    about: dict[str, Any] = {"label": "front", "user_data": {"shop": 7}, "max_retries": 9}
    first = Request.from_url("https://a.example/", headers={"Accept-Language": "de"}, **about)
    first.crawl_depth, first.retry_count, first.state = 3, 4, RequestState.ERROR

    async def steps() -> None:
        manager = ScheduledRequests(scheduler, tmp_path)
        await manager.add_requests([first])
        for fetch, retries in enumerate((0, 1, 0)):
            if fetch == 2:
                manager = ScheduledRequests(scheduler, tmp_path)  # of another process
            request = await fetched(manager)
            assert dict(request.headers)["accept-language"] == "de"
            assert (request.label, request.user_data["shop"], request.max_retries) == (
                "front",
                7,
                9,
            )
            assert (request.crawl_depth, request.retry_count) == (3, retries)
            assert (request.state, request.handled_at) == (RequestState.UNPROCESSED, None)
            assert request.loaded_url is None
            request.user_data["shop"], request.loaded_url = 8, "https://a.example/moved"
            request.retry_count, request.handled_at = retries + 1, datetime.now(UTC)
            manager.found(request, 200, str(fetch))
            await manager.reclaim_request(request)

    asyncio.run(steps())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "POST"}, "must be a GET, got POST"),
        ({"payload": "a=1"}, "payload must be None for https://a.example/, got b'a=1'"),
        ({"unique_key": "mine"}, "unique_key must be 'https://a.example', got 'mine'"),
        ({"always_enqueue": True}, "unique_key must be"),
        ({"use_extended_unique_key": True}, "unique_key must be"),
    ],
)
def test_requests_that_cannot_be_kept_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    manager = ScheduledRequests(scheduler_of(1.0), tmp_path)
    request = Request.from_url("https://a.example/", **options)
    with pytest.raises(ValueError, match=re.escape(message).replace("example',", "example.*,")):
        asyncio.run(manager.add_requests(["https://a.example/2", request]))
    assert len(manager.scheduler) == 0


def test_a_crawler_without_the_hook_is_told_so(tmp_path: Path) -> None:
    async def steps() -> None:
        manager = ScheduledRequests(scheduler_of(100.0), tmp_path)
        await manager.add_requests(["https://a.example/"])
        request = await fetched(manager)
        request.state = RequestState.DONE
        with pytest.raises(ValueError, match=r"post_navigation_hook\(manager.observe\) must be"):
            await manager.mark_request_as_handled(request)

    asyncio.run(steps())


def test_settings_of_pages_and_of_fetches(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The least interval, requests without validators, and a timeout that is too short."""
    scheduler, page = scheduler_of(100.0, timeout=0.2 * SECOND), "https://a.example/"

    async def steps() -> None:
        columns = {"least_interval": 1.5 * SECOND}
        manager = ScheduledRequests(scheduler, tmp_path, columns, validators=False)
        await manager.add_requests([page])
        await fetched(manager)
        request = await fetched(manager)
        assert "timeout must be longer than a fetch may take" in caplog.text
        manager.answers[request.url] = Answer.of(200, {"etag": '"1"'}, "text", page)
        await manager.mark_request_as_handled(request)
        assert await manager.fetch_next_request() is None
        assert dict((await fetched(manager)).headers) == {}
        assert manager.copies[page].etag == '"1"'

    asyncio.run(steps())


def test_the_page_to_watch_is_served_beside_a_crawl(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        with pytest.raises(ValueError, match=f"overview_port must be free, got {port}"):
            ScheduledRequests(scheduler_of(10.0), tmp_path, overview_port=port)
    scheduler = scheduler_of(20.0, keep_gone=1.0)
    scheduler.warm()
    manager = ScheduledRequests(scheduler, tmp_path / "requests", overview_port=port)

    def look() -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/overview", timeout=10) as answer:
            return json.load(answer)

    async def crawl() -> Any:
        crawler = crawler_of(manager)

        @crawler.router.default_handler
        async def handle(context: Any) -> None: ...

        run = asyncio.create_task(crawler.run([f"{site}/{path}" for path in PATHS[:4]]))
        while sum(Site.visits.values()) < 12:
            await asyncio.sleep(0.05)
        seen = await asyncio.to_thread(look)
        crawler.stop()
        await asyncio.wait_for(run, 20.0)
        return seen

    seen = asyncio.run(crawl())
    causes = sorted(each["cause"] for each in seen["first"]["failing"])
    assert causes == ["answered 410", "answered 500"]
    assert seen["sent"] >= 4
    manager.close()
    with pytest.raises(OSError, match="refused"):
        look()
