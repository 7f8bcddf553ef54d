"""Costs of fetches in the adapters: bytes and seconds of Scrapy, Crawlee, loops and messages."""

from __future__ import annotations

import asyncio
import gzip
import http.server
import json
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from crawlee.crawlers import HttpCrawler
from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Headers

from policies.live.adapters.copies import Copies
from policies.live.adapters.crawlee import ScheduledRequests
from policies.live.adapters.endpoint import Metrics
from policies.live.adapters.fetches import Answer, Fetches
from policies.live.adapters.messages import day_of
from policies.live.scheduler import CrawlScheduler, DurableScheduler
from scripts.live.live_answers import serve_requests
from tests.policies.live.adapters.crawls import begin
from tests.policies.live.adapters.test_crawlee import crawler_of, scheduler_of
from tests.policies.live.adapters.test_messages import asked
from tests.policies.live.adapters.test_scrapy import DAY, URL, Loop

SIZES = {"/": 700, "/a": 9_000, "/b": 3_000, "/zip": 8_000, "/moved": 400, "/huge": 90_000}
"""Bytes of the bodies on the wire; of /zip that is random, after ten times as many equal ones."""


class Site(http.server.BaseHTTPRequestHandler):
    """Counts the bytes that it sends, headers included, by request."""

    protocol_version = "HTTP/1.1"
    timeout = 20.0
    sent: ClassVar[list[tuple[float, str, int]]] = []

    def do_GET(self) -> None:
        if self.path == "/broken":
            self.close_connection = True  # without a byte of an answer
            return
        size, moved = SIZES.get(self.path, 0), self.path == "/moved"
        noise = np.random.default_rng(0).integers(33, 126, size, dtype=np.uint8).tobytes()
        body, headers = b"x" * size, {"Content-Type": "text/plain"}
        if self.path == "/zip":
            headers["Content-Encoding"] = "gzip"
            body = gzip.compress(b"z" * 9 * size + noise)
        if self.path == "/":
            links = "".join(f'<a href="{path}">x</a>' for path in (*SIZES, "/broken"))
            body, headers["Content-Type"] = links.encode().ljust(size), "text/html"
        if moved:
            headers["Location"] = "/b"
        lines = [f"HTTP/1.1 {302 if moved else 200} OK", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {text}" for name, text in headers.items()]
        answer = "\r\n".join([*lines, "\r\n"]).encode() + body
        self.sent.append((time.time(), self.path, len(answer)))
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    Site.sent.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_scrapy_learns_bytes_and_never_exceeds_the_cap(site: str, tmp_path: Path) -> None:
    """A period of two seconds pays some fourteen fetches, at forty fetches per second."""
    cap, period, max_cost = 60_000, 2, 12_000
    settings = {
        "RECRAWL_FOLDER": str(tmp_path),
        "RECRAWL_BANDWIDTH": 40 * 5_000 * DAY,
        "RECRAWL_COST": "bytes",
        "RECRAWL_CAP": cap,
        "RECRAWL_CAP_PERIOD": period,
        "RECRAWL_MAX_COST": max_cost,
        "RECRAWL_RETRY": 0.5,
        "CLOSESPIDER_TIMEOUT": 8,
    }
    process, ours = begin(settings, site + "/")
    process.join(60)
    assert ours.poll(30)
    stats = ours.recv()
    sent = [entry for entry in Site.sent if entry[1] != "/huge"]  # is not downloaded
    spend: dict[int, int] = defaultdict(int)
    for moment, _, size in sent:
        spend[int(moment // period)] += size
    assert max(spend.values()) <= cap
    assert sorted(spend.values())[len(spend) // 2] > cap - 2 * max_cost  # it is used
    total, huge = sum(spend.values()), len(Site.sent) - len(sent)
    # the status lines and the names of headers are counted a little otherwise
    assert stats["recrawl/spend"] == pytest.approx(total + 90 * huge, abs=60 * len(Site.sent))
    assert abs(stats["recrawl/spend"] - total) < 0.05 * total
    kinds = Counter(path for _, path, _ in Site.sent)
    assert kinds["/moved"] > 0
    with DurableScheduler(tmp_path / "follower" / "scheduler") as pages:
        found = {path: pages.describe(site + path)["cost"] for path in (*SIZES, "/broken")}
        assert pages.overview()["spend"] == pytest.approx(stats["recrawl/spend"], abs=max_cost)
    wire = {path: size for _, path, size in Site.sent}
    for path in ("/", "/a", "/b", "/zip"):
        assert wire[path] - 60 < found[path] <= wire[path], path
    assert wire["/zip"] < 8_000  # of 80,000
    assert found["/moved"] == pytest.approx(wire["/moved"] + wire["/b"], abs=120)
    assert found["/huge"] < 200
    assert found["/broken"] < 1.0


def cost_of(loop: Loop, url: str = URL) -> float:
    return float(loop.scheduler.pages.describe(url)["cost"])


def test_seconds_of_scrapy_are_latencies_or_those_until_the_failure(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_COST="seconds", DOWNLOAD_TIMEOUT=20.0, RECRAWL_RETRY=1.0)
    loop.scheduler.enqueue_request(Request(URL))
    request = loop.sent()
    request.meta["download_latency"] = 0.25
    loop.answer(request, body="a")
    assert cost_of(loop) == 0.25
    for seconds, spend in ((3.0, 3.25), (50.0, 23.25)):  # at most the timeout
        request = loop.sent(100.0)
        loop.now += seconds / DAY
        loop.middleware.process_exception(request, TimeoutError())
        assert loop.stats.get_value("recrawl/spend") == pytest.approx(spend)
    assert cost_of(loop) == pytest.approx(23.25 / 3.0)
    request = loop.sent(100.0)
    loop.middleware.process_exception(request, IgnoreRequest("refused"))
    assert cost_of(loop) == pytest.approx(23.251 / 4.0)


def test_bytes_of_scrapy_count_redirects_and_stop_at_the_largest_cost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits: Any = {"RECRAWL_CAP": 1e4, "DOWNLOAD_MAXSIZE": 2_000, "RECRAWL_BANDWIDTH": 1e9}
    loop = Loop(tmp_path, RECRAWL_COST="bytes", RECRAWL_RETRY=1.0, **limits)
    costs, send = loop.scheduler.costs, loop.scheduler.crawler.signals.send_catch_log
    loop.scheduler.enqueue_request(Request(URL))
    request, about = loop.sent(), {"Server": "s"}  # "Server: s" has 9 bytes
    for _ in range(2):  # a redirect, then the page
        send(signals.headers_received, headers=Headers(about), body_length=30, request=request)
        send(signals.bytes_received, data=b"x" * 30, request=request)
    robots = Request("https://a.example/robots.txt")
    send(signals.bytes_received, data=b"x" * 500, request=robots)  # is no page
    loop.answer(request, body="y" * 700)  # decompressed
    header = len(Headers(about).to_string())
    assert header >= 9
    assert cost_of(loop) == 2 * (header + 30)
    request = loop.sent(5.0)
    loop.answer(request, body="y" * 700, Server="s")  # of a handler without signals
    assert cost_of(loop) == ((2 * (header + 30)) + header + 700) / 2.0
    request = loop.sent(5.0)
    costs.add(request, headers=Headers(about), body_length="unknown")
    costs.add(request, b"x" * (2_000 - header))
    with pytest.raises(StopDownload):
        costs.add(request, b"x")
    assert f"{URL} is not downloaded in full: 2001 bytes are above" in caplog.text
    loop.middleware.process_exception(request, StopDownload())
    request = loop.sent(5.0)
    with pytest.raises(StopDownload):
        costs.add(request, headers=Headers(about), body_length=2_000)
    assert loop.stats.get_value("recrawl/spend") == 3 * header + 60 + 700 + 2_001
    loop.middleware.process_exception(request, StopDownload())
    costs.add(request, b"x" * 500)  # came late
    assert costs.costs == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"RECRAWL_COST": "kilobytes"}, "RECRAWL_COST must be bytes or seconds, got 'kilobytes'"),
        ({"RECRAWL_CAP": -1}, "RECRAWL_CAP must be a number > 0, got -1"),
        ({"RECRAWL_MAX_COST": 5}, "RECRAWL_CAP must be set with"),
        ({"RECRAWL_CAP_PERIOD": 5}, "RECRAWL_CAP must be set with"),
        ({"RECRAWL_CAP": 5, "RECRAWL_MAX_COST": 6}, "up to 5, got 6"),
        (
            {"RECRAWL_COST": "bytes", "RECRAWL_CAP": 1e6},
            "RECRAWL_MAX_COST must be in .*, up to 1e.06, got 1.07.*by default it is DOWNLOAD_MAXS",
        ),
        (
            {"RECRAWL_COST": "bytes", "RECRAWL_CAP": 1e6, "DOWNLOAD_MAXSIZE": 0},
            "got 0; by default it is DOWNLOAD_MAXSIZE",
        ),
        ({"RECRAWL_COST": "seconds", "RECRAWL_CAP": 9}, "got 180; by default it is DOWNLOAD_TIMEO"),
    ],
)
def test_bad_settings_of_costs_are_refused(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        Loop(tmp_path, **settings)


def test_a_folder_fixes_the_unit_and_the_period_and_the_cap_may_change(tmp_path: Path) -> None:
    sound: dict[str, Any] = {"RECRAWL_COST": "seconds", "RECRAWL_CAP": 1_000, "DOWNLOAD_TIMEOUT": 9}
    Loop(tmp_path, **sound).scheduler.close("finished")
    others: list[tuple[str, dict[str, Any]]] = [
        ("bytes, 1.0 days, 900.0", {"RECRAWL_COST": "bytes"}),
        ("none, 1.0 days, 1.0", {"RECRAWL_COST": None}),
        ("seconds, None days, None", {"RECRAWL_CAP": None}),
        ("seconds, 0.5 days, 9.0", {"RECRAWL_CAP_PERIOD": 43_200}),
        ("seconds, 1.0 days, 20.0", {"RECRAWL_MAX_COST": 20}),
    ]
    for got, changed in others:
        with pytest.raises(ValueError, match=f"must be seconds, 1.0 days, 9.0 as in .*, got {got}"):
            Loop(tmp_path, **sound | {"DOWNLOAD_MAXSIZE": 900} | changed)
    loop = Loop(tmp_path, **sound | {"RECRAWL_CAP": 2_000})
    assert loop.scheduler.pages.pace.spending.cap == 2_000
    table = tmp_path / "pages.csv"
    table.write_text(f"url,cost\n{URL},3\n")
    with pytest.raises(
        ValueError, match="RECRAWL_COST must be set where RECRAWL_PAGES has a column"
    ):
        Loop(tmp_path / "new", RECRAWL_PAGES=str(table))
    new = Loop(tmp_path / "new", RECRAWL_PAGES=str(table), RECRAWL_COST="seconds")
    assert cost_of(new) == 3.0


def test_a_cap_without_costs_is_a_number_of_fetches(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_CAP=3)
    for number in range(9):
        loop.scheduler.enqueue_request(Request(f"https://{number}.example/"))
    for _ in range(3):
        loop.answer(loop.sent(), body="a")
    assert loop.next() is None
    assert loop.timers[-1] == pytest.approx(DAY - 4.0)  # until the next day
    loop.scheduler.robots_until = np.inf  # there is no engine that has them
    assert loop.next(DAY) is not None


def test_a_loop_reports_costs_of_fetches_and_failures(tmp_path: Path) -> None:
    scheduler = CrawlScheduler("Greedy", 1e6, start=DAY, learn=True, burst=1.0)
    scheduler.add(["https://a.example/1", "https://b.example/2"], host=["a.example", "b.example"])
    fetches = Fetches(scheduler, Copies(tmp_path / "copies"), DAY)
    answers = {"https://a.example/1": (200, 300.0), "https://b.example/2": (500, 0)}
    for second in (100.0, 200.0):  # a cost of 1157 each
        url = scheduler.next(DAY + second / DAY).id
        fetches.begin(url, DAY + second / DAY)
        status, cost = answers[url]
        fetches.end(url, Answer(status, content="a", cost=cost), DAY + (second + 0.5) / DAY)
    assert [scheduler.describe(url)["cost"] for url in answers] == [300.0, 0.001]
    assert scheduler.overview()["spend"] == pytest.approx(300.001)


def test_crawlee_learns_costs_of_a_function_and_of_handlers(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scheduler = scheduler_of(1e5)
    manager = ScheduledRequests(
        scheduler, tmp_path / "requests", cost=lambda response, body: 50 + len(body)
    )
    crawler: HttpCrawler = crawler_of(manager)

    @crawler.router.default_handler
    async def handle(context: Any) -> None:
        if context.request.url.endswith("/b"):
            manager.found(context.request, 200, "text", cost=7.0)

    async def crawl() -> None:
        run = asyncio.create_task(crawler.run([site + "/a", site + "/b"]))
        while not {"/a", "/b"} <= {path for _, path, _ in Site.sent} or scheduler.under_way.size:
            await asyncio.sleep(0.05)
        crawler.stop()
        await asyncio.wait_for(run, 20.0)

    asyncio.run(crawl())
    assert scheduler.describe(site + "/a")["cost"] == 9_050.0
    low = scheduler.describe(site + "/b")["cost"]  # 7, and 3050 where the handler was skipped
    assert 7.0 <= low < 3_050.0


def test_costs_in_messages_are_learned_and_bad_ones_change_nothing() -> None:
    scheduler = CrawlScheduler(
        "GreedyNCIS", 100.0, learn=True, cap=1_000.0, cap_period=1.0, max_cost=400.0
    )
    pages = [{"url": url, "cost": cost} for url, cost in (("a", 100), ("b", 300))]
    replies = asked(
        scheduler,
        {"add": pages},
        {"next": 1, "time": 9.0},
        {"report": ["a"], "time": 9.0, "cost": 200},
        {"update": [{"url": "b", "cost": 50}]},
        {"describe": "a"},
        {"describe": "b"},
        *({"report": ["a"], "time": 9.5, "cost": cost} for cost in (0, -3, "x", [1, 2], True)),
        {"add": [{"url": "c", "cost": 0}]},
        {"bandwidth": 5.0, "cost": 3.0},
        {"next": 1, "time": 9.2},
    )
    assert replies[1]["fetch"] == ["a"]  # 100 a day: the next one is a day later
    assert replies[2] == {"ignored": 0}
    assert [reply["cost"] for reply in replies[4:6]] == [150.0, 50.0]
    errors = [reply["error"] for reply in replies[6:13]]
    assert all(error.startswith("cost must be") for error in errors[:6])
    assert "name beside bandwidth" in errors[6]
    assert len(scheduler) == 2
    assert scheduler.overview()["spend"] == 200.0
    assert "the bandwidth is used up" in replies[13]["why"]


def test_metrics_and_the_page_to_watch_show_the_spend() -> None:
    now = day_of(None)
    scheduler = CrawlScheduler(
        *("Greedy", 1e4), start=now - 0.5, burst=1.0, cap=5_000.0, cap_period=1.0, max_cost=2_000.0
    )
    metrics = Metrics(scheduler)
    plain = Metrics(CrawlScheduler("Greedy", 10.0))
    assert b"crawl_spend" not in plain.text()
    assert "spend" not in plain.overview()
    scheduler.add(["a", "b", "c"], cost=[1_000.0, 1_500.0, 900.0], change_rate=1.0)
    taken = [scheduler.next(now).id for _ in range(2)]
    assert scheduler.next(now).id is None  # 1000 of the cap are not reserved
    costs = {"a": 1_200.0, "b": 1_100.0, "c": 700.0}
    scheduler.report([taken[0]], now, cost=costs[taken[0]])
    expected = {"a": 1_000.0, "b": 1_500.0, "c": 900.0}[taken[1]]
    spend = costs[taken[0]] + expected
    gauges = {"spend": spend, "mean_cost": spend / 2.0, "cap": 5_000.0}
    gauges["period_spend"] = costs[taken[0]] + 2_000.0
    lines = dict(line.rsplit(" ", 1) for line in metrics.text().decode().splitlines())
    for name, value in gauges.items():
        assert float(lines[f"crawl_{name}"]) == pytest.approx(value), name
    data = json.loads(json.dumps(metrics.overview()))
    assert (data["sent"], data["used"], data["spend"]) == (2, spend, spend)
    assert data["allowed"] == pytest.approx(5_000.0, rel=0.01)  # of half a day
    assert data["cap_left"] == 5_000.0 - gauges["period_spend"]
    assert data["interval"] == pytest.approx(3 * spend / 2.0 / 1e4)
    assert any("cost 900" in page["why"] or page["copy"] is None for page in data["next"])


def test_requests_over_http_save_fetches_of_the_mean_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policies.live.adapters.endpoint.serve", lambda *_: None)
    scheduler = CrawlScheduler("Greedy", 1e6, burst=0.0)
    with socket.socket() as listening:
        serve_requests(scheduler, listening, None)
    assert scheduler.burst == 20.0 / 1e6
    scheduler.add(["a"], change_rate=1.0)
    scheduler.report(["a"], 0.0, cost=500.0)
    assert scheduler.burst == 20.0 * 500.0 / 1e6
    assert scheduler.ask(1.0, "a").id == "a"
