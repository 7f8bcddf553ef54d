"""Requests with Scrapy: kept whole, refused by name, rules of callbacks, tables of pages."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import pytest
import scrapy
from scrapy import FormRequest, Request
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import DropItem
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.settings import Settings
from scrapy.spiders import CrawlSpider, Rule
from twisted.python.failure import Failure

from policies.live.adapters.scrapy_requests import PAGE, SOURCE, read_request, write_request
from policies.live.adapters.scrapy_scheduler import Unchanged
from policies.live.adapters.scrapy_settings import read_options
from tests.policies.live.adapters.crawls import FORKS, SETTINGS
from tests.policies.live.adapters.test_scrapy import DAY, FEED, URL, Loop


class Shop(scrapy.Spider):
    name = "shop"

    def parse(self, response: Any) -> None: ...

    def product(self, response: Any, **more: Any) -> None: ...

    def failed(self, failure: Failure) -> str:
        return f"failed: {failure.value!r}"

    @staticmethod
    def of_class(response: Any) -> None: ...


WHOLE: dict[str, Any] = {
    "headers": {"Authorization": "Bearer t", "X-Odd": b"\xe9"},
    "cookies": {"c": "1"},
    "meta": {"depth": 2, "playwright": True, "cookiejar": 1, "handle_httpstatus_list": [404, 500]},
    "cb_kwargs": {"sku": [7, None]},
    "priority": -3,
    "flags": ["a"],
    "encoding": "latin-1",
    "dont_filter": True,
}


def test_a_request_is_kept_whole_through_fetches_and_restarts(tmp_path: Path) -> None:
    spider = Shop()
    loop = Loop(tmp_path, spider)
    loop.scheduler.enqueue_request(Request(URL, spider.product, errback=spider.failed, **WHOLE))
    loop.answer(loop.sent(), body="one", ETag='"1"')
    loop.scheduler.close("finished")
    request = Loop(tmp_path, spider).sent()
    assert request.callback == spider.product
    expected = Request(URL, **WHOLE)
    for name in WHOLE.keys() - {"headers", "meta"}:
        assert getattr(request, name) == getattr(expected, name), name
    assert request.meta.items() >= WHOLE["meta"].items()
    headers = dict(request.headers)
    assert headers.pop(b"If-None-Match") == [b'"1"']
    assert headers == dict(expected.headers)


def test_what_a_fetch_writes_is_not_kept() -> None:
    spider, written = Shop(), {PAGE: URL, SOURCE: URL, "dont_retry": True, "dont_cache": True}
    written |= {"download_latency": 0.1, "download_slot": "a.example", "download_timeout": 180.0}
    written |= {"redirect_times": 1, "redirect_urls": [URL], "retry_times": 2, "_dont_cache": True}
    copied = Request(URL, meta={**written, "item": {"a": 1}}, headers={"If-None-Match": "x"})
    text = write_request(copied, URL, spider, 180.0)
    assert text == '{"meta": {"item": {"a": 1}}}'
    assert write_request(Request(URL), URL, spider, 180.0) == "{}"
    given = {"download_slot": "slow", "download_timeout": 20, "proxy": "http://p.example"}
    request = read_request(write_request(Request(URL, meta=given), URL, spider, 180.0), URL, spider)
    assert request.meta == given
    proxied = {"proxy": "http://p.example", "_scheme_proxy": True}
    assert write_request(Request(URL, meta=proxied), URL, spider, 180.0) == "{}"
    form = FormRequest(URL, formdata={"q": "x y"}, method="GET")
    text = write_request(form, form.url, spider, 180.0)
    again = read_request(text, form.url, spider)
    assert (type(again), again.url) == (FormRequest, URL + "?q=x+y")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"callback": lambda response: None}, "callback must be a method of the spider, got .*<la"),
        ({"callback": Shop().product}, "callback must be a method of the spider, got Shop.product"),
        ({"errback": print}, "errback must be a method of the spider, got print"),
        ({"meta": {"page": object()}}, r"meta\['page'\] must be plain JSON"),
        ({"cb_kwargs": {"pair": (1, 2)}}, r"cb_kwargs\['pair'\] must be plain JSON .* \(1, 2\)"),
        ({"meta": {"download_timeout": 600}}, "at most DOWNLOAD_TIMEOUT, 180.0, got 600.0"),
        ({"meta": {"importance": "high"}}, "importance"),
    ],
)
def test_what_cannot_be_kept_is_an_error_of_its_callback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: dict[str, Any], said: str
) -> None:
    loop = Loop(tmp_path, Shop())
    loop.scheduler.enqueue_request(Request(URL))
    loop.answer(loop.sent(), body="one")
    for _ in range(150):
        bad = Request(URL + "/2", **given)
        bad.meta[SOURCE] = URL
        assert not loop.scheduler.enqueue_request(bad)
    assert loop.scheduler.enqueue_request(Request(URL + "/3"))
    [line] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert pytest.approx(150) == loop.count("bad_requests")
    assert line.getMessage().startswith(f"{URL} yields a request that is left out: ")
    with pytest.raises(ValueError, match=said):
        raise ValueError(line.getMessage())
    requests = [loop.sent(), loop.sent()]
    [again] = [each for each in requests if each.url == URL]
    assert {each.url for each in requests} == {URL, URL + "/3"}
    assert loop.answer(again, body="one") is not None  # its callback sees the page again
    assert not loop.scheduler.enqueue_request(Request(URL + "/4", **given))
    assert "start() yields a request" in caplog.text


def test_errbacks_see_failures_and_not_unchanged_pages(tmp_path: Path) -> None:
    spider = Shop()
    loop = Loop(tmp_path, spider)
    loop.scheduler.enqueue_request(Request(URL, spider.of_class, errback=spider.failed))

    def fail(error: Exception) -> Any:
        request = loop.sent(200.0)
        assert request.callback == spider.of_class
        failure = Failure(error)
        failure.request = request  # type: ignore[attr-defined]  # as Scrapy adds it
        assert request.errback is not None
        return failure, request.errback(failure)

    assert fail(TimeoutError("late"))[1] == "failed: TimeoutError('late')"
    assert loop.count("failed") == 1
    failure, seen = fail(Unchanged("it is"))
    assert seen is failure
    loop.scheduler.fetches.sent.clear()
    copied = failure.request.replace(url=URL + "/2")
    assert loop.scheduler.enqueue_request(copied)  # with the errback of the spider
    assert '"errback": "failed"' in loop.scheduler.new_pages[URL + "/2"][0]


def test_spiders_have_folders_and_need_their_callbacks(tmp_path: Path) -> None:
    names = ["shop", "News/../x", "..", "ä b"]
    spiders = [type("Other", (Shop,), {"name": name})() for name in names]
    loops = [Loop(tmp_path, spider) for spider in spiders]
    assert len([*tmp_path.iterdir()]) == len(names)
    for loop in loops:
        loop.scheduler.enqueue_request(Request(f"{URL}/{len(loop.scheduler.spider.name)}"))
        assert loop.next() is not None
        assert len(loop.scheduler.pages) == 1
    loops[0].scheduler.enqueue_request(Request(URL, spiders[0].product))
    loops[0].next()
    loops[0].scheduler.close("finished")

    class Renamed(scrapy.Spider):
        name = "shop"

    with pytest.raises(ValueError, match="Method 'product' not found"):
        Loop(tmp_path, Renamed())


def test_a_crawl_spider_keeps_its_rules(tmp_path: Path) -> None:
    class Ruled(CrawlSpider):
        name = "ruled"
        rules = (
            Rule(LinkExtractor("/item"), "item", cb_kwargs={"kind": 3}),
            Rule(LinkExtractor("/list"), follow=True),
        )

        def item(self, response: Any, kind: int) -> Iterator[Any]:
            yield {"kind": kind, "url": response.url}

    spider = Ruled()
    loop = Loop(tmp_path, spider)
    page = b'<a href="/item/1">x</a><a href="/list/1">x</a>'
    response = HtmlResponse(URL, body=page, request=Request(URL))
    for request in spider._requests_to_follow(response):
        assert request is not None
        assert loop.scheduler.enqueue_request(request)
    sent = {each.url[-6:]: each for each in (loop.sent(), loop.sent())}
    assert sent["item/1"].meta["rule"] == 0
    assert sent["list/1"].meta["rule"] == 1
    assert {each.callback for each in sent.values()} == {spider._callback}


def test_rules_give_listed_pages_a_callback(tmp_path: Path) -> None:
    class Listed(Shop):
        parse = scrapy.Spider.parse

    feeds = {"RECRAWL_FEEDS": {FEED: 0}}
    with pytest.raises(ValueError, match="RECRAWL_RULES must have a rule for every page of RECRAW"):
        Loop(tmp_path, Listed(), **feeds, RECRAWL_RULES=[("/product/", "product")])
    with pytest.raises(ValueError, match="RECRAWL_RULES must name methods of the spider, got 'no'"):
        Loop(tmp_path, Shop(), RECRAWL_RULES=[("", "no")])
    rules = '[["/product/", "product"], ["^https?:", "of_class"]]'
    loop = Loop(tmp_path, Listed(), **feeds, RECRAWL_RULES=rules, RECRAWL_LEAST_INTERVAL=3600)
    rows = "".join(f"<url><loc>https://a.example/{k}</loc></url>" for k in ("product/1", "about"))
    loop.answer(loop.sent(), body=f"<urlset>{rows}</urlset>")
    spider: Any = loop.scheduler.spider
    sent = {each.url[18:]: each for each in (loop.sent(), loop.sent())}
    assert sent["product/1"].callback == spider.product
    assert sent["about"].callback == spider.of_class
    for request in sent.values():
        loop.answer(request, body="x")
    link = Request("https://a.example/product/1", spider.of_class)
    assert loop.scheduler.enqueue_request(link)  # the rule of a page that is known stays
    assert loop.next(3590.0) is None
    again = {each.url[18:]: each for each in (loop.sent(12.0), loop.sent(), loop.sent())}
    assert again["product/1"].callback == spider.product
    assert again["about"].callback == spider.of_class


def test_validators_may_be_left_out(tmp_path: Path) -> None:
    feeds = {FEED.replace("://", "://me:cret@"): 0}
    loop = Loop(tmp_path, Shop(), RECRAWL_VALIDATORS="False", RECRAWL_FEEDS=feeds)
    loop.scheduler.enqueue_request(Request(URL))
    for _ in range(2):
        feed, page = loop.sent(3601.0), loop.sent(0.0)
        assert (feed.url, page.url) == (FEED, URL)
        assert feed.headers["Authorization"] == b"Basic bWU6Y3JldA=="  # me:cret
        for request in (feed, page):
            assert "If-None-Match" not in request.headers
        loop.answer(feed, body="<urlset></urlset>", ETag='"1"')
        loop.answer(page, body="one", ETag='"1"')


TABLE = """url,change_rate,recall:feed,false_signal_rate:feed,signals:feed,last_crawl,gone
https://a.example/1#top,2.0,0.5,0.1,2,2024-10-04T00:00:00Z,0
https://a.example/2,0.25,0.25,0.3,0,,0
https://a.example/3,1.0,0.5,0.1,0,2024-10-01T00:00:00Z,1
"""


def test_a_table_of_pages_is_where_a_crawl_starts(tmp_path: Path) -> None:
    path = tmp_path / "pages.csv"
    path.write_text(TABLE)
    more: dict[str, Any] = {"RECRAWL_PAGES": str(path), "RECRAWL_LEAST_INTERVAL": 60}
    loop = Loop(tmp_path, Shop(), start=20_001.0, **more)
    pages = loop.scheduler.pages
    first, second = pages.describe(URL), pages.describe("https://a.example/2")
    assert (first["change_rate"], first["recall"], first["signals"]) == pytest.approx((2.0, 0.5, 2))
    assert first["copy"] == 20_000.0  # 2024-10-04
    assert (second["change_rate"], second["copy"]) == (0.25, None)
    assert "https://a.example/3" not in pages
    asked = {each.url: each for each in (loop.sent(), loop.sent())}
    assert asked.keys() == {URL, "https://a.example/2"}
    loop.answer(asked["https://a.example/2"], body="two")
    loop.scheduler.close("finished")
    path.write_text(TABLE + "https://a.example/4,3.0,0.5,0.1,0,,0\n")
    more["RECRAWL_LEAST_INTERVAL"] = 90
    pages = Loop(tmp_path, Shop(), start=20_002.0, **more).scheduler.pages
    assert pages.describe("https://a.example/4")["change_rate"] == 3.0
    assert pages.describe("https://a.example/2")["copy"] == pytest.approx(20_001.0, abs=1e-3)
    assert "https://a.example/3" not in pages
    assert (pages.pages.choices.least[pages.pages.living()] == 90.0 / DAY).all()
    pages.close()
    for text, message in {
        TABLE.replace("a.example/2", "a.example/1"): "a page must stand there once, got https://a",
        "url\nnone.html\n": r"RECRAWL_PAGES: .*none\.html",
        "url,last_crawl\nhttps://a.example/,3.5\n": "last_crawl must be dates",
    }.items():
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            Loop(tmp_path / "other", Shop(), RECRAWL_PAGES=str(path))
    path.write_text(TABLE)
    feeds = {FEED.replace("://", "://me:cret@"): 1}
    with pytest.raises(ValueError, match=f"RECRAWL_FEEDS must have a source of .* for {FEED}"):
        Loop(tmp_path / "other", Shop(), RECRAWL_PAGES=path, RECRAWL_FEEDS=feeds)
    with pytest.raises(ValueError, match=r"RECRAWL_PAGES: .*missing\.csv"):
        Loop(tmp_path / "other", Shop(), RECRAWL_PAGES=str(tmp_path / "missing.csv"))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("RULES", [("(", "parse")], "must be .*regular expression"),
        ("RULES", "all", "must be .*regular expression"),
        ("RULES", ["parse"], "must be .*regular expression"),
        ("LEAST_INTERVAL", -1, "must be a number >= 0, got -1"),
        ("NEW_SHARE", 0, r"must be in \(0, 1\], got 0"),
        ("NEW_SHARE", "1.5", r"must be in \(0, 1\], got '1.5'"),
        ("VALIDATORS", "perhaps", "must be a bool, got 'perhaps'"),
        ("FEEDS", ["https://a.example/feed"], "must be {URL"),
    ],
)
def test_bad_settings_of_requests_are_refused(name: str, value: Any, expected: str) -> None:
    sound = {"RECRAWL_FOLDER": "state", "RECRAWL_BANDWIDTH": 100, "RECRAWL_PAGES": None}
    assert read_options(Settings(sound)).validators
    with pytest.raises(ValueError, match=f"RECRAWL_{name} {expected}"):
        read_options(Settings({**sound, f"RECRAWL_{name}": value}))


class Down:
    """A pipeline that fails once, and drops other items."""

    failed = 0

    def process_item(self, item: Any) -> Any:
        if item["url"].endswith("/dropped"):
            raise DropItem("unwanted")
        Down.failed += 1
        if Down.failed == 1:
            raise OSError("the database is down")
        return item


class Whole(scrapy.Spider):
    """Yields bad requests among good ones in each form of callback, and counts what it sees."""

    name = "whole"
    custom_settings: ClassVar[Any] = {"ITEM_PIPELINES": {Down: 300}, "DEPTH_LIMIT": 2}

    def count(self, name: str) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(name)

    def parse(self, response: Any) -> Iterator[Any]:
        for k in range(120):
            yield response.follow(f"/bad/{k}", lambda response: None)
        yield response.follow("/listed", self.listed)
        yield response.follow("/awaited", self.awaited)
        yield response.follow("/streamed", self.streamed, meta=response.meta)
        yield response.follow("/deep/1", self.deep)
        yield response.follow("/500", errback=self.failed)
        meta = {"handle_httpstatus_list": [404]}
        yield response.follow("/missing", self.missing, meta=meta, headers={"X-Key": "k"})
        yield {"url": response.url}

    def listed(self, response: Any) -> list[Any]:
        self.count("listed")
        return [Request(response.url + "/1", print), {"url": response.url + "/dropped"}]

    async def awaited(self, response: Any) -> list[Any]:
        self.count("awaited")
        return [Request(response.url + "/1", print), response.follow("/end", self.end)]

    async def streamed(self, response: Any) -> Any:
        self.count("streamed")
        yield Request(response.url + "/1", print)
        yield {"url": response.url}

    def deep(self, response: Any) -> Iterator[Any]:
        yield response.follow(f"/deep/{int(response.url[-1]) + 1}", self.deep)

    def missing(self, response: Any) -> None:
        self.count(f"missing/{response.status}")

    def end(self, response: Any) -> None:
        self.count("end")

    def failed(self, failure: Any) -> Iterator[Any]:
        self.count("errback")
        yield {"url": failure.value.response.url}


def crawl(settings: dict[str, Any], url: str, pipe: Connection) -> None:
    process = CrawlerProcess(SETTINGS | settings)
    crawler = process.create_crawler(Whole)
    process.crawl(crawler, start_urls=[url])
    lines: list[str] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    process.start()
    assert crawler.stats is not None
    pipe.send((crawler.stats.get_stats(), lines))


def test_a_crawl_does_what_scrapy_does_and_sees_faults_again(tmp_path: Path) -> None:
    asked: dict[str, list[Any]] = defaultdict(list)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked[self.path].append(self.headers)
            self.send_response({"/500": 500, "/missing": 404}.get(self.path, 200))
            self.end_headers()
            self.wfile.write(b"the same")

        def log_message(self, *arguments: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = {
        "RECRAWL_FOLDER": str(tmp_path),
        "RECRAWL_BANDWIDTH": 10.0 * DAY,
        "RECRAWL_RETRY": 0.5,
        "ROBOTSTXT_OBEY": False,
        "CLOSESPIDER_TIMEOUT": 6,
        "LOG_LEVEL": "DEBUG",
    }
    ours, theirs = FORKS.Pipe()
    url = f"http://127.0.0.1:{server.server_port}/"
    process = FORKS.Process(target=crawl, args=(settings, url, theirs))
    process.start()
    assert ours.poll(60)
    stats, lines = ours.recv()
    process.join(30)
    server.shutdown()
    server.server_close()
    assert len(asked["/"]) > 1
    assert stats["item_scraped_count"] >= len(asked["/"]) - 1  # each is seen: it has bad requests
    assert not any("never retrieved" in line for line in lines)
    assert not logging.getLogger("numba.core.ssa").isEnabledFor(logging.INFO)
    [start] = {line for line in lines if line.startswith(f"{url} yields")}
    assert "got Whole.parse.<locals>.<lambda>" in start
    for form in ("listed", "awaited", "streamed"):
        assert f"{url}{form} yields a request that is left out" in "\n".join(lines)
        assert stats[form] == len(asked[f"/{form}"]) > 1, form
    assert stats["end"] == 1 < len(asked["/end"])
    assert "/deep/2" in asked
    assert "/deep/3" not in asked
    assert stats["errback"] == len(asked["/500"]) > 1
    assert stats["missing/404"] == len(asked["/missing"]) == 2  # it is gone then
    assert asked["/missing"][1]["X-Key"] == "k"
    assert stats["item_dropped_count"] >= 1


def test_a_page_is_seen_again_when_a_request_with_a_body_that_it_made_fails(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    loop.scheduler.enqueue_request(Request(URL))
    assert loop.answer(loop.sent(), body="same") is not None
    post = Request("https://a.example/api", method="POST", body=b"{}", meta={SOURCE: URL})
    loop.scheduler.enqueue_request(post)
    made = loop.next()
    assert made.method == "POST"
    loop.scheduler._unprocessed(Response(made.url, request=made))  # its callback raised an error
    assert loop.answer(loop.sent(), body="same") is not None
    assert loop.answer(loop.sent(), body="same") is None


def test_none_is_compared_by_the_text(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_COMPARE=f"{__name__}.main_part")
    loop.scheduler.enqueue_request(Request(URL))
    for body, is_news in (("<p>a</p>", True), ("<p>a</p>", False), ("<p>b</p>", True)):
        assert (loop.answer(loop.sent(), body=body) is not None) == is_news


def main_part(response: Response) -> None:
    return None
