"""The scheduler of Scrapy: crawls over HTTP, kills, faults, settings, and what is found."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scrapy
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse
from scrapy.settings import Settings
from scrapy.statscollectors import StatsCollector
from twisted.python.failure import Failure

from policies.live.adapters.copies import SETTLED, Copy
from policies.live.adapters.listings import listed
from policies.live.adapters.scrapy import RecrawlMiddleware, RecrawlScheduler
from policies.live.adapters.scrapy_requests import SOURCE
from policies.live.adapters.scrapy_scheduler import FEED as FETCHED_FEED
from policies.live.adapters.scrapy_settings import read_options, response_text
from policies.live.scheduler import DurableScheduler
from scripts.live.replayed_web import FAULTS, SITEMAPS, LoggedRequest, Quality, ReplayedWeb
from tests.policies.live.adapters.crawls import begin, served

DAY = 86_400.0
LATE = 0.02
"""Seconds by which requests may come closer on their way."""


def of_pages(web: ReplayedWeb) -> list[LoggedRequest]:
    return [asked for asked in web.log if asked.page >= 0]


def least_gap(web: ReplayedWeb, until: float = np.inf) -> float:
    """Return the least time between two requests of pages to a host, in seconds."""
    times = defaultdict(list)
    for asked in of_pages(web):
        if asked.day < until:
            times[asked.host].append(asked.day / web.speed)
    return min(float(np.diff(each).min()) for each in times.values() if len(each) > 1)


def excess(web: ReplayedWeb, rate: float) -> float:
    """Return by how many fetches any span of time has more than a rate allows, in seconds."""
    times = np.array([asked.day for asked in of_pages(web)]) / web.speed
    ahead = np.arange(1, times.size + 1) - rate * times
    return float((ahead - np.minimum.accumulate(ahead - 1.0)).max())


def kill_often(folder: Path, kills: int, seed: int) -> tuple[float, float, int]:
    """Crawl, kill the crawler at random instants, and check what the web has seen.

    Returns the least gap of a host in seconds, the excess, and the number of fetches.
    """
    rate, gap, draw = 40.0, 0.05, random.Random(seed)
    settings = {
        "RECRAWL_FOLDER": str(folder),
        "RECRAWL_BANDWIDTH": rate * DAY,
        "RECRAWL_HOST_GAP": gap,
        "RECRAWL_RETRY": 0.5,
    }
    with served(0.2, 4, Quality()) as web:
        url = web.base.format("127.0.0.1") + "/"
        for _ in range(kills):
            before = len(web.log)
            process, _ = begin(settings, url)
            while len(web.log) == before:
                assert process.is_alive()
                time.sleep(0.01)
            time.sleep(draw.expovariate(2.0))
            process.kill()
            process.join()
        process, ours = begin(settings | {"CLOSESPIDER_TIMEOUT": 4}, url)
        process.join(30)
        assert ours.poll(30)
        stats = ours.recv()
        known = web.living(0.0)
        seen = least_gap(web), excess(web, rate), len(of_pages(web))
        assert {asked.page for asked in of_pages(web)} >= set(known.tolist())
    with DurableScheduler(folder / "follower" / "scheduler") as pages:
        assert all(web.url(page) in pages for page in web.living(web.log[-1].day) if page in known)
        assert stats["recrawl/pages"] == len(pages)
    return seen


def test_a_crawler_that_is_killed_loses_no_page_and_keeps_gaps_and_budget(tmp_path: Path) -> None:
    gap, more, fetches = kill_often(tmp_path, 3, seed=1)
    assert gap > 0.05 - LATE
    assert more <= 17.0 + 16.0  # what is saved, and what was on its way
    assert fetches > 100


ROBOTS = "User-agent: *\nCrawl-delay: 0.3\n", "User-agent: *\nDisallow: /p/1\n"


def test_faults_and_new_robots_are_bounded_and_reported(tmp_path: Path) -> None:
    quality = Quality(faults=dict.fromkeys(FAULTS, 0.12), robots={0.0: ROBOTS[0], 6.0: ROBOTS[1]})
    settings = {
        "RECRAWL_FOLDER": str(tmp_path),
        "RECRAWL_BANDWIDTH": 60.0 * DAY,
        "RECRAWL_RETRY": 1.0,
        "RECRAWL_ROBOTS": 1.0,
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_TIMEOUT": 1.5,
        "DOWNLOAD_MAXSIZE": 20_000,
        "CLOSESPIDER_TIMEOUT": 10,
        "LOG_LEVEL": "CRITICAL",
    }
    with served(1.0, 12, quality) as web:
        process, ours = begin(settings, web.base.format("127.0.0.1") + "/")
        process.join(30)
        assert ours.poll(30)
        stats, asked = ours.recv(), of_pages(web)
        kinds = [(*FAULTS, "")[web.fault[each.page]] for each in asked]
        hits = np.zeros((len(FAULTS) + 1, web.trace.num_pages), int)
        for each in asked:
            hits[web.fault[each.page], each.page] += 1
        refused = [each for each in asked if each.path.startswith("/p/1") and each.day > 8.5]
    assert set(kinds) == {*FAULTS, ""}
    for fault in ("hanging", "failing", "endless"):  # at 0, 1, 3 and 7 seconds
        assert 1 <= hits[FAULTS.index(fault)].max() <= 4, fault
    assert hits[FAULTS.index("moved")].max() >= 2
    assert hits[-1].max() > 4
    assert len(refused) <= 3  # Scrapy allows all where robots.txt itself is not answered
    assert least_gap(web, until=5.9) > 0.3 - LATE
    broken = [kind in ("hanging", "failing", "endless") for kind in kinds]
    failed = sum(each.status != 404 for each, bad in zip(asked, broken, strict=True) if bad)
    failed += sum(each.status == 404 for each in asked) - stats["recrawl/gone"]
    assert abs(stats["recrawl/failed"] - failed) <= 2
    assert stats["recrawl/refused"] >= 1
    assert stats["recrawl/gone"] >= 1
    assert "retry/count" not in stats
    with DurableScheduler(tmp_path / "follower" / "scheduler") as pages:
        ids = [(url, url.replace("/p/", "/moved/")) for url in map(web.url, range(65))]
        assert not any(old in pages and new in pages for old, new in ids)
        assert any(url in pages for url in ids[1])  # refused for now


class Spider(scrapy.Spider):
    name = "own"

    def parse(self, response: Any) -> None: ...

    def parse_item(self, response: Any, told: int) -> None: ...


class Loop:
    """The scheduler and the middleware of Scrapy, with a clock and an engine of the test."""

    def __init__(
        self,
        folder: Path,
        spider: scrapy.Spider | None = None,
        *,
        start: float = 20_000.0,
        **more: Any,
    ) -> None:
        given = {"RECRAWL_FOLDER": str(folder), "RECRAWL_BANDWIDTH": 1e6, "RECRAWL_RETRY": 60.0}
        crawler = Crawler(scrapy.Spider, given | more)
        crawler.stats = self.stats = StatsCollector(crawler)
        self.middleware, self.now = RecrawlMiddleware(crawler), start
        self.scheduler = RecrawlScheduler(crawler)
        self.scheduler.clock = lambda: self.now
        self.timers: list[float] = []
        self.scheduler.wake_in = self.timers.append  # type: ignore[method-assign]
        self.scheduler.open(spider or Spider())

    def next(self, wait: float = 1.0) -> Request | None:
        """Return the next request, as it is sent, some seconds later."""
        self.now += wait / DAY
        request = self.scheduler.next_request()
        if request is not None:
            self.middleware.process_request(request)
        return request

    def sent(self, wait: float = 1.0) -> Request:
        """Return the next request, where there is one."""
        request = self.next(wait)
        assert request is not None
        return request

    def answer(
        self, request: Request, status: int = 200, body: str = "", **headers: str | bytes
    ) -> Any:
        """Return what the callback sees of an answer, None for nothing."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        arguments = {"status": status, "body": body.encode(), "headers": named}
        response = HtmlResponse(request.url, encoding="utf-8", request=request, **arguments)
        polled = status == 200 and FETCHED_FEED in request.meta
        listing = listed(response.body, request.url) if polled else None
        try:
            return self.middleware.receive(request, response, listing)
        except IgnoreRequest:
            return None

    def count(self, name: str) -> int:
        return int(self.stats.get_value(f"recrawl/{name}", 0))


URL = "https://a.example/1"


def test_a_callback_sees_a_page_when_it_is_new_or_has_changed(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    loop.scheduler.enqueue_request(Request(URL + "#top"))
    steps = [
        (
            200,
            "<p>one</p>",
            "new",
            {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"},
        ),
        (304, "", "not_modified", {}),
        (200, "<p>one </p><script>2</script><!-- 3 -->", "unchanged", {"ETag": b'"\xe9"'}),
        (200, "<p>two</p>", "changed", {}),
        (200, "<p>one</p>", "changed", {}),
    ]
    sent = []
    for status, body, outcome, headers in steps:
        request = loop.sent()
        assert request.url == URL
        sent.append(
            {name: request.headers.get(name) for name in ("If-None-Match", "If-Modified-Since")}
        )
        seen = loop.answer(request, status, body, **headers)
        assert (seen is not None) == (outcome in ("new", "changed")), outcome
        assert loop.count(outcome) >= 1, outcome
    first = {"If-None-Match": b'"1"', "If-Modified-Since": b"Mon, 01 Jan 2024 00:00:00 GMT"}
    second, none = {"If-None-Match": b'"\xe9"', "If-Modified-Since": None}, dict.fromkeys(first)
    assert sent == [none, first, first, second, none]
    assert loop.scheduler.pages.describe(URL)["copy"] == pytest.approx(loop.now)
    for outcome in ("failed", "gone"):
        request = loop.sent()
        assert request.url == URL
        assert loop.answer(request, 410) is not None
        assert loop.count(outcome) == 1
        loop.scheduler.enqueue_request(Request("https://a.example/other"))
        if outcome == "failed":
            loop.answer(loop.sent(), 200)
            loop.now += 4_000.0 / DAY  # the other page is not due as soon
    assert URL not in loop.scheduler.pages
    loop.scheduler.enqueue_request(Request(URL))
    loop.sent()
    assert loop.scheduler.pages.describe(URL)["state"] == "gone"  # it is remembered


def test_failures_wait_and_a_host_that_says_so_is_left_alone(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    for url in (URL, "https://a.example/2"):
        loop.scheduler.enqueue_request(Request(url))
    request = loop.sent()
    assert loop.answer(request, 503, Retry_After="600") is not None
    assert loop.next() is None
    assert loop.timers[-1] == pytest.approx(599.0, abs=0.1)
    late = loop.sent(600.0)
    loop.middleware.process_exception(late, TimeoutError())
    other = loop.sent()
    loop.middleware.process_exception(other, IgnoreRequest("refused"))
    assert (loop.count("failed"), loop.count("refused")) == (2, 1)
    assert loop.next(30.0) is None
    again = loop.sent(100.0)
    assert again.url == late.url
    loop.answer(again, body="a")
    loop.scheduler.robots_until = np.inf  # there is no engine that has them
    came = [loop.next(DAY), loop.next()]
    assert other.url in {each.url for each in came if each is not None}  # a refusal is for a day


def test_redirects_retries_and_forms_are_no_pages(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_HOST_GAP=5.0)
    loop.scheduler.enqueue_request(Request(URL))
    request = loop.sent()
    moved = request.replace(
        url="https://a.example/moved", meta=request.meta | {"redirect_times": 1}
    )
    assert loop.scheduler.enqueue_request(moved)
    assert loop.next() is None  # within the gap
    assert loop.next(5.0) is moved
    assert loop.answer(moved, body="here") is not None
    assert list(loop.scheduler.pages.under_way) == []
    assert loop.scheduler.pages.describe(URL)["copy"] == pytest.approx(loop.now)
    retry = request.replace(meta=request.meta | {"retry_times": 1})
    assert loop.scheduler.enqueue_request(retry)  # of a callback: the page is known
    link = moved.replace(url="https://a.example/link", meta=moved.meta | {SOURCE: URL})
    assert loop.scheduler.enqueue_request(link)
    form = Request("https://a.example/form", method="POST", body=b"x")
    assert loop.scheduler.enqueue_request(form)
    assert loop.next() is form
    assert len(loop.scheduler.pages) == 2
    assert "https://a.example/link" in loop.scheduler.pages


def test_a_redirect_after_the_end_of_its_fetch_is_no_page(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    loop.scheduler.enqueue_request(Request(URL))
    request = loop.sent()
    loop.next(1_000.0)  # it counts as lost, and is sent again
    loop.answer(request, body="here")  # one of the two is answered, then the other is redirected
    assert not redirected(loop, request)
    loop.next()
    assert len(loop.scheduler.pages) == 1


def redirected(loop: Loop, page: Request, to: str = "https://d.example/moved") -> bool:
    """Redirect a request of a page or a feed; return whether it is taken."""
    meta = page.meta | {"redirect_times": 1}
    return bool(loop.scheduler.enqueue_request(page.replace(url=to, meta=meta)))


def test_redirects_and_pages_of_a_host_take_turns(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_HOST_GAP=5.0, DOWNLOAD_TIMEOUT=40.0)
    for host in "abcdefghd":
        loop.scheduler.enqueue_request(Request(f"https://{host}.example/{host == 'd'}"))
    pages = [loop.sent(0.2) for _ in range(8)]
    [own] = [page for page in pages if "d.example" in page.url]
    others = [page for page in pages if page is not own]
    loop.answer(own, body="here")
    loop.scheduler.enqueue_request(Request("https://d.example/2"))
    began, taken = loop.now, [redirected(loop, page) for page in others]
    assert taken == [True] * 4 + [False] * 3  # their turns are after half of the timeout
    assert loop.count("failed") == 3
    asked = []
    while loop.now < began + 60.0 / DAY:
        if (request := loop.next(0.1)) is not None and "d.example" in request.url:
            asked.append(((loop.now - began) * DAY, request.url[18:]))
            loop.answer(request, body="here")
    times = [time for time, _ in asked]
    assert np.diff(times).min() > 4.8
    assert [name for _, name in asked[:4]].count("moved") == 2
    assert [name for _, name in asked].count("moved") == 4
    assert loop.scheduler.turns.waiting == []
    assert loop.scheduler.turns.steps == {}


def test_a_redirect_that_was_asked_for_anew_is_not_made_later(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_HOST_GAP=5.0)
    loop.scheduler.enqueue_request(Request(URL))
    page = loop.sent()
    loop.scheduler.hosts.gaps["d.example"] = 20.0
    assert redirected(loop, page)
    assert redirected(loop, page, "https://e.example/moved")
    made = [loop.next(5.1) for _ in range(5)]
    assert [each.url for each in made if each is not None] == ["https://e.example/moved"]
    assert redirected(loop, page, "https://e.example/again")
    loop.middleware.lose(URL, TimeoutError())
    assert loop.next(5.1) is None


def test_the_host_that_answers_is_left_alone_as_long_as_any_answer_says(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_HOST_GAP=1.0)
    for host in "abd":
        loop.scheduler.enqueue_request(Request(f"https://{host}.example/"))
    first, second, own = (loop.sent(0.5) for _ in range(3))
    assert redirected(loop, first)
    moved = loop.sent(3.0)
    loop.answer(moved, 429, Retry_After="600")
    loop.answer(own, 429, Retry_After="0")
    assert loop.scheduler.pages.opens("d.example") == pytest.approx(loop.now + 600.0 / DAY)
    assert loop.scheduler.pages.opens("a.example") <= loop.now + 1.01 / DAY  # its gap
    assert redirected(loop, second)
    loop.scheduler.enqueue_request(Request("https://d.example/2"))
    until = loop.now + 595.0 / DAY
    while loop.now < until:
        request = loop.next(5.0)
        assert request is None or "d.example" not in request.url


def test_what_was_lost_comes_back_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A start URL is gone, the clock was 30 days ahead, and a host asked to wait for a year."""
    loop = Loop(tmp_path, start=20_030.0, RECRAWL_MAX_RETRY_AFTER=600.0)
    start, other = f"{URL}#top", "https://b.example/1"
    for url in (start, other):
        loop.scheduler.enqueue_request(Request(url, meta={"is_start_request": url == start}))
    loop.scheduler.fetches.outages.is_gone = lambda *about: about[2] == 410  # type: ignore[method-assign]
    for request in (loop.sent(), loop.sent()):
        status = 410 if request.url == URL else 503
        loop.answer(request, status, Retry_After=str(365 * 86_400))
    assert loop.scheduler.pages.describe(URL)["state"] == "gone"
    assert loop.scheduler.pages.opens("b.example") == pytest.approx(loop.now + 600.0 / DAY)
    loop.scheduler.close("finished")
    assert (loop.count("gone_pages"), loop.count("pages")) == (1, 1)
    words = ["Retry-After of https://b.example/1 is too long", "pages that need attention: 1 gone"]
    for word in words:
        assert [word in text for text in caplog.messages].count(True) == 1, word
    again = Loop(tmp_path, start=20_000.0)
    assert "clock was ahead of this machine's" in caplog.text
    assert "by 30 days" in caplog.text
    again.scheduler.enqueue_request(Request(URL))  # a link
    assert again.next() is None
    again.scheduler.enqueue_request(Request(start, meta={"is_start_request": True}))
    assert again.sent().url == URL
    assert other in {again.sent(600.0).url, again.sent().url}


def test_a_page_that_moved_for_good_gets_its_new_id(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_BANDWIDTH=DAY / 10.0)
    loop.scheduler.enqueue_request(Request(URL, meta={"importance": 3.0}))
    to = "https://d.example/moved"
    for status in (301, 302, 308, 301):
        request = loop.sent(30.0)
        assert request.url == URL
        meta = {"redirect_times": 1, "redirect_reasons": [status], "redirect_urls": [URL]}
        assert loop.scheduler.enqueue_request(request.replace(url=to, meta=request.meta | meta))
        loop.answer(loop.sent(0.1), body="here", ETag='"1"')
    request = loop.sent(30.0)
    assert URL not in loop.scheduler.pages
    assert loop.scheduler.pages.describe(to)["importance"] == 3.0
    assert (request.url, request.headers["If-None-Match"]) == (to, b'"1"')


def test_a_host_that_is_down_is_asked_for_one_page_at_a_time(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    for number in range(6):
        loop.scheduler.enqueue_request(Request(f"https://a.example/{number}"))
    loop.answer(loop.sent(), body="a")
    for request in [loop.sent() for _ in range(5)]:
        loop.middleware.process_exception(request, OSError("no route"))
    assert [loop.next(59.0), loop.sent(2.0).meta != {}, loop.next(30.0)] == [None, True, None]
    assert loop.count("failed") == 5


def test_polls_keep_the_gap_of_their_host(tmp_path: Path) -> None:
    feeds = {f"https://a.example/{k}.xml": 0 for k in range(4)}
    loop = Loop(tmp_path, RECRAWL_FEEDS=feeds, RECRAWL_HOST_GAP=10.0)
    times = []
    for _ in range(80):
        if (poll := loop.next(0.5)) is not None:
            times.append(loop.now * DAY)
            status = 503 if len(times) == 3 else 200
            loop.answer(poll, status, body="<urlset></urlset>", Retry_After="15")
    assert np.diff(times) == pytest.approx([10.0, 10.0, 15.0], abs=0.6)
    poll = loop.sent(3600.0)
    loop.scheduler.pages.hold("d.example", loop.now + 60.0 / DAY)
    assert redirected(loop, poll)
    asked = [loop.next(5.0) for _ in range(13)]
    moved = ["d.example" in each.url for each in asked if each is not None]
    assert moved.index(True) == len(moved) - 1


def test_a_crawl_goes_on_with_callbacks_arguments_and_copies(tmp_path: Path) -> None:
    spider = Spider()
    loop = Loop(tmp_path, spider)
    found = Request(URL, spider.parse_item, cb_kwargs={"told": 7}, meta={"importance": 2.0})
    loop.scheduler.enqueue_request(found)
    request = loop.sent()
    loop.answer(request, body="one", ETag='"1"')
    loop.scheduler.enqueue_request(Request("https://a.example/2"))
    lost = loop.sent()
    loop.scheduler.close("finished")
    again = Loop(tmp_path, spider)
    assert again.scheduler.pages.describe(URL)["importance"] == 2.0
    assert again.scheduler.pages.describe(lost.url)["state"] == "new"
    request = again.sent()
    if request.url == lost.url:
        request = again.sent()
    assert (request.callback, request.cb_kwargs) == (spider.parse_item, {"told": 7})
    assert request.headers["If-None-Match"] == b'"1"'
    again.scheduler.close("finished")
    for message, changed in {
        "RECRAWL_POLICY must be GreedyNCIS": {"RECRAWL_POLICY": "RoundRobin"},
        "sources of RECRAWL_FEEDS must be 1": {"RECRAWL_FEEDS": {"https://a.example/feed": 1}},
        "RECRAWL_SKEW must be 5 as in .*, got 6": {"RECRAWL_SKEW": 6},
        "RECRAWL_KEEP_GONE must be 30 as in .*, got 3": {"RECRAWL_KEEP_GONE": 3},
    }.items():
        with pytest.raises(ValueError, match=message):
            Loop(tmp_path, **changed)


def test_a_fetch_under_way_at_a_kill_says_nothing_of_its_page(tmp_path: Path) -> None:
    settings: Any = {"RECRAWL_HOST_GAP": 5.0}
    loop = Loop(tmp_path, **settings)
    loop.scheduler.enqueue_request(Request(URL))
    assert loop.next(2.0) is not None
    loop.scheduler.pages.close()
    began, loop = loop.now, Loop(tmp_path, start=loop.now, **settings)
    assert loop.next(4.9) is None
    assert loop.now < began + 5.0 / DAY < loop.now + 0.2 / DAY  # its host's gap
    request = loop.sent(0.2)
    loop.answer(request, 404)
    assert (loop.count("failed"), loop.count("gone")) == (1, 0)
    assert loop.next(60.1) is not None  # the first wait


FEED = "https://a.example/feed.xml"
ENTRY = "<url><loc>https://a.example/{}</loc><lastmod>{}</lastmod></url>"


def test_feeds_are_polled_before_pages_and_outside_the_budget(tmp_path: Path) -> None:
    feeds = {FEED.replace("://", "://me:s%40cret@"): 0}
    loop = Loop(tmp_path, RECRAWL_FEEDS=feeds, RECRAWL_POLL=100.0, RECRAWL_BANDWIDTH=DAY / 50.0)
    loop.scheduler.enqueue_request(Request(URL))
    poll, page = loop.sent(51.0), loop.sent(0.0)
    assert (poll.url, page.url) == (FEED, URL)
    assert poll.meta["download_maxsize"] == 50 * 2**20
    assert poll.headers["Authorization"] == b"Basic bWU6c0BjcmV0"  # me:s@cret
    loop.answer(page, body="one")
    rows = [ENTRY.format(number, f"2024-10-05T00:0{number}:30Z") for number in (1, 2)]
    assert loop.answer(poll, body=f"<urlset>{''.join(rows)}</urlset>") is None
    assert "https://a.example/2" in loop.scheduler.pages
    assert loop.next(1.0) is None
    assert loop.timers[-1] == pytest.approx(48.0, abs=0.1)  # the next page
    index = "<sitemapindex><sitemap><loc>https://a.example/more.xml</loc></sitemap></sitemapindex>"
    again = loop.sent(100.0)
    assert again.url == FEED
    loop.answer(again, body=index, ETag=b'"\xe9"')
    assert loop.scheduler.polls.headers(FEED)["If-None-Match"] == b'"\xe9"'
    more = loop.sent(0.0)
    assert more.url == "https://a.example/more.xml"
    loop.answer(more, body="neither")
    assert (loop.count("feeds"), loop.count("bad_feeds")) == (2, 1)
    last = loop.sent(100.0)
    assert (last.url, last.headers["If-None-Match"]) == (FEED, b'"\xe9"')
    loop.answer(last, 304)
    assert more.url in loop.scheduler.polls.due
    assert (loop.count("feeds"), loop.count("bad_feeds")) == (3, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"RECRAWL_FOLDER": ""}, "RECRAWL_FOLDER must be set"),
        ({"RECRAWL_BANDWIDTH": "many"}, "RECRAWL_BANDWIDTH must be a number > 0, got 'many'"),
        ({"RECRAWL_BANDWIDTH": 0}, "RECRAWL_BANDWIDTH must be a number > 0, got 0"),
        ({"RECRAWL_HOST_GAP": -1}, "RECRAWL_HOST_GAP must be a number >= 0, got -1"),
        ({"RECRAWL_BANDWITH": 5}, "unknown; did you mean RECRAWL_BANDWIDTH"),
        ({"RECRAWL_FEEDS": {"https://me:pw@a.example/": -1}}, "got {'https://a.example/': -1}"),
        ({"RECRAWL_FEEDS": {"a.example/feed": 0}}, "'a.example/feed' does not begin with http"),
        ({"RECRAWL_COMPARE": "os.sep"}, "RECRAWL_COMPARE must be the name of a function"),
        ({"recrawl_bandwidth": 5}, "setting 'recrawl_bandwidth' is unknown"),
    ],
)
def test_bad_settings_are_refused(given: dict[str, Any], said: str) -> None:
    sound = {"RECRAWL_FOLDER": "state", "RECRAWL_BANDWIDTH": "100", "DOWNLOAD_DELAY": 2}
    assert read_options(Settings(sound)).bandwidth == 100.0
    assert read_options(Settings(sound)).host_gap == 2.0
    with pytest.raises(ValueError, match=said):
        read_options(Settings(sound | given))


def test_the_middleware_is_needed(tmp_path: Path) -> None:
    crawler = Crawler(Spider, {"RECRAWL_FOLDER": str(tmp_path), "RECRAWL_BANDWIDTH": 1.0})
    with pytest.raises(ValueError, match="DOWNLOADER_MIDDLEWARES must have"):
        RecrawlScheduler(crawler)


def test_hostile_markup_is_read_in_linear_time(tmp_path: Path) -> None:
    started = time.process_time()
    for part in ("<script>", "<!--", "<a", "<style x", "</script "):
        response_text(HtmlResponse(URL, body=(part * 200_000).encode(), encoding="utf-8"))
    assert time.process_time() - started < 20.0  # quadratic: hours
    page = "<p>a</p><SCRIPT src='x'>b</script ><!-- c --><style>d</style>e<br/>f <script>g"
    assert response_text(HtmlResponse(URL, body=page.encode(), encoding="utf-8")) == "aef "


def test_a_page_missing_once_or_listed_first_by_a_feed_is_not_lost(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    loop.scheduler.pages.add([URL])  # of a feed: by no callback
    request = loop.sent()
    assert request.callback is None  # as Scrapy would: CrawlSpider and others have their own
    assert loop.answer(request, 404) is not None
    assert (loop.count("failed"), loop.count("gone")) == (1, 0)
    request = loop.sent(61.0)
    assert loop.answer(request, body="a") is not None
    found = Request(URL, loop.scheduler.spider.parse_item, cb_kwargs={"told": 1})
    loop.scheduler.enqueue_request(found)
    request = loop.sent()
    assert (request.callback, request.cb_kwargs) == (found.callback, {"told": 1})
    assert loop.answer(request, body="a") is not None  # the callback has not seen it
    request = loop.sent()
    assert loop.answer(request, body="a") is None
    loop.scheduler._unprocessed(HtmlResponse(URL, request=request))  # it raised an error
    request = loop.sent()
    assert loop.answer(request, body="a") is not None


def test_fetches_that_end_behind_the_middleware_are_failures(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_COMPARE=f"{__name__}.broken")
    loop.scheduler.enqueue_request(Request(URL))
    request = loop.sent()
    with pytest.raises(ZeroDivisionError) as raised:
        loop.answer(request)
    failure = Failure(raised.value)
    failure.request = request  # type: ignore[attr-defined]  # as Scrapy adds it
    assert request.errback(failure) is failure
    assert loop.count("failed") == 1
    assert loop.scheduler.fetches.sent == {}


def title(response: Any) -> str:
    return str(response.css("title::text").get())


def test_contents_are_compared_as_told_and_kept_when_processed(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_COMPARE=f"{__name__}.title")
    loop.scheduler.enqueue_request(Request(URL))
    page = "<title>{}</title>{}"
    first = loop.sent()
    began = loop.now
    assert loop.scheduler.fetches.sent == {URL: began}
    loop.now += 3.0 / DAY
    loop.middleware.process_request(first)  # it has waited for its turn
    sent = loop.now
    loop.now += 2.0 / DAY
    assert loop.answer(first, body=page.format("one", 1)) is not None
    assert loop.scheduler.pages.describe(URL)["copy"] == sent > began
    assert URL in loop.scheduler.copies.fresh  # its callback may still be at work
    second = loop.sent(SETTLED - 1.0)
    assert URL in loop.scheduler.copies.fresh
    loop.next(1.5)
    assert URL not in loop.scheduler.copies.fresh
    assert loop.answer(second, body=page.format("one", 2)) is None
    third = loop.sent()
    assert loop.answer(third, body=page.format("two", 2)) is not None
    found = loop.sent()
    loop.scheduler.fetches.outages.is_gone = lambda *about: True  # type: ignore[method-assign]
    assert loop.answer(found, 410) is not None
    assert loop.scheduler.copies[URL] == Copy(parser="{}")


def broken(response: Any) -> str:
    return str(1 / 0)


def test_an_index_of_sitemaps_has_bounds(tmp_path: Path) -> None:
    feed = "https://a.example/index.xml"
    loop = Loop(tmp_path, RECRAWL_FEEDS={feed: 0}, RECRAWL_POLL=600)

    def answer(*sitemaps: str) -> None:
        rows = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in sitemaps)
        body = f'<sitemapindex xmlns="{SITEMAPS}">{rows}</sitemapindex>'
        loop.middleware.take(feed, HtmlResponse(feed), listed(body.encode(), feed))

    answer("https://a.example/1.xml", "https://a.example/2.xml", "https://b.example/3.xml")
    assert loop.count("bad_feeds") == 1  # it lists one of another host
    polled = loop.scheduler.polls.due
    assert polled.keys() == {feed, "https://a.example/1.xml", "https://a.example/2.xml"}
    first = HtmlResponse("https://a.example/1.xml")
    loop.middleware.take(first.url, first, listed(b"<sitemapindex></sitemapindex>", first.url))
    answer("https://a.example/2.xml")
    assert polled.keys() == {feed, "https://a.example/2.xml"}
    loop.middleware.take(first.url, first, listed(b"neither", first.url))  # it was on its way
    assert loop.count("bad_feeds") == 1
    loop.middleware.take(feed, HtmlResponse(feed, status=404), None)
    assert loop.count("bad_feeds") == 2
