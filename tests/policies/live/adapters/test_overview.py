"""The page to watch: its data, and that it is served by a crawl and leaves the crawl alone."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from policies.live.adapters import endpoint, watching
from policies.live.adapters.endpoint import Metrics
from policies.live.adapters.feeds import Polls
from policies.live.adapters.messages import date_of
from policies.live.adapters.overview import without_login
from policies.live.adapters.watching import Watch, listen
from policies.live.scheduler import CrawlScheduler, DurableScheduler
from scripts.live.replayed_web import Quality
from tests.browser import emulate, wait
from tests.policies.live.adapters.crawls import begin, served
from tests.policies.live.adapters.test_scrapy import Loop

DAY = 20_000.0
"""The day on which the pages of these tests are watched."""
RATES: dict[str, Any] = {"recall": 0.5, "false_signal_rate": 0.1}


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let looks take no time, however slow the machine is, so that each one is made."""
    monkeypatch.setattr(endpoint, "clock", lambda: 0.0)


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


def get(port: int, path: str = "/overview", data: bytes | None = None) -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data)
    with urllib.request.urlopen(request, timeout=20) as answer:
        text = answer.read().decode()
    return json.loads(text) if path == "/overview" else text


def crawled(**settings: Any) -> tuple[CrawlScheduler, Metrics]:
    """Return pages of which two are gone, three failed, one host is held and one held for ever."""
    scheduler = CrawlScheduler(
        "GreedyNCIS", 20.0, start=DAY - 3.0, burst=1.0, timeout=0.01, keep_gone=30.0, **settings
    )
    causes = [("https://u:pw@b.example/1", "answered 503"), ("https://a.example/9", "answered 410")]
    metrics = Metrics(scheduler, None, causes)
    metrics.now = DAY
    ages = {
        "a": [0.01 * k for k in range(1, 11)],
        "b": [0.5, 1.0, 2.0],
        "c": [0.1] * 20,
        "d": [6.0],
    }
    for host, each in ages.items():
        login = "u:pw@" if host == "b" else ""
        urls = [f"https://{login}{host}.example/{k}" for k in range(len(each))]
        copies = [DAY - age for age in each]
        scheduler.add(urls, host=host, last_crawl=copies, change_rate=1.5, **RATES)
    signalled = ["https://a.example/3", "https://a.example/3", "https://a.example/4"]
    scheduler.signal(signalled, [DAY - 0.01, DAY, DAY])
    scheduler.configure(DAY)
    scheduler.hold("b", DAY + 0.25)
    scheduler.hold("c", math.inf)
    scheduler.report(["https://a.example/8", "https://a.example/9"], DAY, "gone")
    for day in (DAY - 0.1, DAY):
        scheduler.report(["https://u:pw@b.example/1"], day, "failed")
    scheduler.report(["https://a.example/0"], DAY, "failed", retry_at=DAY + 3.0)
    return scheduler, metrics


def test_held_hosts_come_first_and_troubled_pages_are_counted() -> None:
    scheduler, metrics = crawled()
    told = metrics.overview()
    assert [(each["host"], each["pages"], each["held_until"]) for each in told["hosts"]] == [
        ("c", 20, "further notice"),
        ("b", 3, date_of(DAY + 0.25)),
        ("a", 8, None),
        ("d", 1, None),
    ]
    # 32 pages at 20 fetches a day: a page in 1.6 days, and none is 16 days old
    assert told["interval"] == pytest.approx(1.6)
    assert (told["held"], told["failing"], told["starved"]) == (2, 2, 0)
    assert told["states"]["gone"] == 2
    # 1 - exp(-level) > 95% where (1 - recall) 1.5 age + 2.14 signals > 3
    assert told["likely_stale"] == 2
    late = [each["url"] for each in told["first"]["likely_stale"]]
    assert late == ["https://d.example/0", "https://a.example/3"]
    gone = {each["url"]: (each["cause"], each["until"]) for each in told["first"]["gone"]}
    until = date_of(DAY + 30.0)
    assert gone == {
        "https://a.example/8": (None, until),
        "https://a.example/9": ("answered 410", until),
    }
    first, second = told["first"]["failing"]
    assert (first["url"], first["cause"]) == ("https://b.example/1", "answered 503")
    assert (second["url"], second["failures"]) == ("https://a.example/0", 1)
    assert second["until"] == date_of(DAY + 3.0)
    scheduler.configure(DAY + 11.0)
    metrics.now = DAY + 11.0
    assert metrics.overview()["starved"] == 1  # 17 days
    assert "crawl_starved 1.0" in metrics.text().decode()


def test_each_page_that_is_next_has_its_own_reason() -> None:
    _, metrics = crawled()
    told = metrics.overview()["next"]
    hosts = {each["url"].split("/")[2] for each in told}
    assert hosts == {"a.example", "d.example"}  # the others are held
    assert len({each["why"] for each in told}) == len(told)
    [four] = [each["why"] for each in told if each["url"] == "https://a.example/4"]
    # its age is .05 days, the evidence of a signal ln(1 + .75 / .1)
    level = 0.05 * 1.5 * 0.5 + math.log(8.5)
    assert "its copy is 1.2 hours old" not in four  # 72 minutes are less than two hours
    assert four.startswith("its copy is 72 minutes old, 0.075 changes expected since, 1 signal,")
    assert f"stale with {-math.expm1(-level):.1%}" in four
    assert [each["url"] for each in told if "2 signals" in each["why"]] == ["https://a.example/3"]


def test_new_pages_are_told_apart_and_a_value_is_compared_with_the_last() -> None:
    scheduler = CrawlScheduler("Greedy", 10.0, start=DAY, burst=1.0)
    metrics = Metrics(scheduler)
    metrics.now = DAY + 1.0
    scheduler.add(["x", "y", "z"], change_rate=[1.0, 1.0, 2.0], last_crawl=DAY)
    assert list(scheduler.next_batch(DAY + 1.0, 1)) == ["z"]
    scheduler.add(["new", "newer"], change_rate=1.0)
    whys = {each["url"]: each["why"] for each in metrics.overview()["next"]}
    assert whys["new"] == "1 of 2 pages without a copy"
    assert whys["newer"] == "2 of 2 pages without a copy"
    [value] = [scheduler.describe("x")["value"] / scheduler.pages.choices.lines["level"][0]]
    assert whys["x"].endswith(f"value {value:.3g} of that fetched last")
    assert value < 1.0


def test_pages_that_are_due_by_promises_come_before_new_ones() -> None:
    scheduler = CrawlScheduler("Greedy", 10.0, start=DAY, burst=1.0)
    metrics = Metrics(scheduler)
    metrics.now = DAY + 2.0
    intervals = [math.inf, 9.0, 2.0, 1.5]
    scheduler.add(list("abcd"), change_rate=1.0, last_crawl=DAY, most_interval=intervals)
    scheduler.add(["new", "newer"], change_rate=1.0)
    told = metrics.overview()["next"]
    assert [each["url"] for each in told[:4]] == ["d", "c", "new", "newer"]
    assert told[2]["why"] == "1 of 2 pages without a copy"
    until = ["promised until " + str(date_of(DAY + days)) for days in (1.5, 2.0, 9.0)]
    whys = {each["url"]: each["why"] for each in told}
    assert [until[k] in whys[page] for k, page in enumerate("dcb")] == [True] * 3
    assert "promised" not in whys["a"]
    more = [f"more{k}" for k in range(14)]
    scheduler.add(more, change_rate=1.0, last_crawl=DAY, most_interval=2.0)
    told = metrics.overview()["next"]
    assert len(told) == 12
    assert all("promised until" in each["why"] for each in told)


def test_compiling_does_not_delay_later_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, look = [0.0], endpoint.overview_of

    def slow_at_first(*arguments: Any) -> dict[str, Any]:
        seconds[0] = max(seconds[0], 10.0)  # the first one takes ten seconds
        return look(*arguments)

    monkeypatch.setattr(endpoint, "clock", lambda: seconds[0])
    monkeypatch.setattr(endpoint, "overview_of", slow_at_first)
    scheduler = CrawlScheduler("Greedy", 10.0, start=DAY)
    metrics = Metrics(scheduler)
    assert sum(metrics.overview()["states"].values()) == 0
    scheduler.add(["x"], change_rate=1.0)
    assert sum(metrics.overview()["states"].values()) == 1


def test_the_budget_is_what_was_handed_out_of_what_was_allowed() -> None:
    scheduler = CrawlScheduler("RoundRobin", 10.0, start=DAY, burst=0.2)
    metrics = Metrics(scheduler)
    scheduler.add([f"u{k}" for k in range(50)], host="a")
    assert len(scheduler.next_batch(DAY + 5.0, 2)) == 2  # of 3 that are saved
    scheduler.next(DAY + 5.5)
    scheduler.configure(DAY + 5.5, bandwidth=20.0)
    scheduler.next(DAY + 6.0)
    metrics.now = DAY + 6.5
    told = metrics.overview()
    assert told["sent"] == 4
    assert told["begun"] == DAY + 5.0
    # of the rate at the end of each span
    assert told["allowed"] == pytest.approx(3.0 + 0.5 * 10.0 + 1.0 * 20.0)


def test_trust_is_prior_until_signals_were_followed_by_fetches() -> None:
    scheduler = CrawlScheduler("GreedyNCIS", 10.0, start=DAY, learn=True, num_sources=2)
    metrics = Metrics(scheduler)
    metrics.now = DAY + 2.0
    scheduler.add(["u", "v"], last_crawl=DAY)
    basis = [(each["basis"], each["crawls"]) for each in metrics.overview()["sources"]]
    assert basis == [("prior", 0), ("prior", 0)]
    scheduler.signal(["u", "u", "v"], [DAY + 0.5, DAY + 0.6, DAY + 0.7], [0, 0, 0])
    assert metrics.overview()["sources"][0]["signals"] == 3
    assert metrics.overview()["sources"][0]["basis"] == "prior"
    scheduler.report(["u", "v"], DAY + 1.0, changed=[True, False])
    sources = metrics.overview()["sources"]
    assert [(each["basis"], each["crawls"], each["compared"]) for each in sources] == [
        ("fetches", 2, 3.0),
        ("prior", 2, 0.0),
    ]
    _, fixed = crawled()
    assert [each["basis"] for each in fixed.overview()["sources"]] == ["given"]


def test_bad_feeds_come_first_without_passwords(tmp_path: Path) -> None:
    good, html = tmp_path / "good.xml", tmp_path / "bad.xml"
    good.write_text("<rss version='2.0'><channel><title>t</title></channel></rss>")
    html.write_text("<html>log in</html>")
    dead = f"http://me:secret@127.0.0.1:{free_port()}/feed"
    polls = Polls({str(good): 0, str(html): 0, dead: 0}, tmp_path / "feeds", 0.5, DAY)
    scheduler = CrawlScheduler("GreedyNCIS", 10.0, start=DAY, learn=True)
    metrics = Metrics(scheduler, polls)
    metrics.now = DAY
    assert [each["polled"] for each in metrics.overview()["feeds"]] == [None] * 3
    while (feed := polls.next(DAY)) is not None:
        polls.fetch(scheduler, feed, DAY)
    feeds = metrics.overview()["feeds"]
    assert [bool(each["fault"]) for each in feeds] == [True, True, False]
    assert {each["feed"] for each in feeds} == {
        str(good),
        str(html),
        dead.replace("me:secret@", ""),
    }
    assert feeds[2]["feed"] == str(good)
    assert all(
        (each["polled"], each["next"]) == (date_of(DAY), date_of(DAY + 0.5)) for each in feeds
    )
    assert "secret" not in json.dumps(feeds)
    html.write_text(good.read_text())
    polls.fetch(scheduler, str(html), DAY + 0.1)
    assert [bool(each["fault"]) for each in metrics.overview()["feeds"]] == [True, False, False]


def test_logins_are_left_out_of_addresses_alone() -> None:
    kept = "https://a.example/@user:x@y?mail=me@b.example"
    assert without_login(kept) == kept
    assert without_login("see https://u:p@ss@a.example/x, http://u@b.example") == (
        "see https://a.example/x, http://b.example"
    )
    assert without_login("invalid hostname: me:pw@a", "http://me:pw@a/f") == "invalid hostname: a"


@pytest.mark.parametrize("policy", ["RoundRobin", "LambdaCrawl", "GreedyNCIS"])
def test_the_data_is_valid_json(policy: str) -> None:
    scheduler = CrawlScheduler(policy, 10.0, start=DAY, keep_gone=1.0)
    metrics = Metrics(scheduler)
    json.dumps(metrics.overview(), allow_nan=False)
    rates = {} if policy == "RoundRobin" else {"change_rate": [0.0, 5.0, 1.0]} | RATES
    scheduler.add(["u", "v", "w"], host=["a", "b", "b"], last_crawl=[DAY, math.nan, DAY], **rates)
    scheduler.hold("b", math.inf)
    scheduler.report(["w"], DAY + 0.1, "gone")
    metrics.now = DAY + 0.2
    told = json.dumps(metrics.overview(), allow_nan=False)
    assert json.loads(told)["hosts"][0]["host"] == "b"


def test_looks_take_a_twentieth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    _, metrics = crawled()
    now = [0.0]
    monkeypatch.setattr(endpoint, "clock", lambda: now[0])

    def slow() -> dict[str, Any]:
        now[0] += 0.5
        return {"at": now[0]}

    monkeypatch.setattr(metrics, "_look", slow)
    assert metrics.overview() == {"at": 0.5}
    now[0] = 5.4  # 0.5 + 20 * 0.5 - 5
    assert metrics.overview() == {"at": 0.5}
    now[0] = 5.6
    assert metrics.overview() == {"at": 6.1}


def choices(scheduler: Any) -> Iterator[Any]:
    """Yield what a scheduler chooses while its pages change."""
    for turn in range(400):
        time = DAY + turn / 400.0
        page, _ = scheduler.next(time)
        yield page
        if page is not None:
            scheduler.report([page], time, changed=[turn % 3 == 0])
        scheduler.signal([f"u{turn % 40}"], time)


def test_looks_change_nothing_of_a_crawl(tmp_path: Path) -> None:
    def made(folder: str) -> DurableScheduler:
        scheduler = CrawlScheduler("GreedyNCIS", 300.0, start=DAY, burst=0.1, learn=True)
        scheduler.add([f"u{k}" for k in range(40)], host=["a", "b"] * 20, last_crawl=DAY - 1.0)
        return DurableScheduler(tmp_path / folder, scheduler)

    with made("alone") as scheduler:
        alone = list(choices(scheduler))
    with made("watched") as scheduler:
        port = free_port()
        watch, end, looks = Watch(scheduler, listen(port)), threading.Event(), list[Any]()

        def look() -> None:
            while not end.is_set():
                looks.append(get(port))

        thread = threading.Thread(target=look)
        thread.start()
        watched = list(choices(scheduler))
        end.set()
        thread.join()
        assert watched == alone
        assert looks
        with pytest.raises(urllib.error.HTTPError, match="405"):
            get(port, "/", b'{"remove": ["u0"]}')
        assert "u0" in scheduler
        sent = sum(page is not None for page in watched)
        assert f"crawl_handed_out_total {sent:.1f}" in get(port, "/metrics")
        assert 'crawl_signals_total{source="0"} 400.0' in get(port, "/metrics")
        assert get(port, "/health").startswith('{"pages": 40')
        with socket.create_connection(("127.0.0.1", port)):  # nobody waits for it
            began = time.monotonic()
            watch.close()
            assert time.monotonic() - began < 3.0
        assert not watch.thread.is_alive()
        listen(port).close()  # it is free again


def test_a_port_that_cannot_be_served_is_refused_before_anything_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        with pytest.raises(ValueError, match=f"RECRAWL_OVERVIEW_PORT must be free, got {port}:"):
            Loop(tmp_path / "a", RECRAWL_OVERVIEW_PORT=str(port))
    assert not (tmp_path / "a" / "scheduler").exists()
    for bad in (0, 65_536, "many", True, 80.5):
        with pytest.raises(ValueError, match=r"RECRAWL_OVERVIEW_PORT must be an integer in \[1,"):
            Loop(tmp_path / "a", RECRAWL_OVERVIEW_PORT=bad)
    monkeypatch.setattr(watching, "find_spec", lambda name: None if name == "uvicorn" else 1)
    with pytest.raises(ValueError, match="RECRAWL_OVERVIEW_PORT needs the extra live: uvicorn"):
        Loop(tmp_path / "a", RECRAWL_OVERVIEW_PORT=free_port())


def test_the_page_of_a_crawl_knows_why_pages_fail(tmp_path: Path) -> None:
    feed = "https://a.example/feed.xml"
    loop = Loop(tmp_path, RECRAWL_OVERVIEW_PORT=free_port(), RECRAWL_FEEDS={feed: 0})
    try:
        loop.answer(loop.sent(), 404)  # the feed
        for path in ("x", "y", "z"):
            loop.scheduler.enqueue_request(Request(f"https://a.example/{path}"))
        loop.answer(loop.sent(), 503)
        loop.scheduler.fetches.outages.is_gone = lambda *about: about[2] == 410  # type: ignore[method-assign]
        loop.answer(loop.sent(), 410)
        loop.middleware.process_exception(loop.sent(), TimeoutError("took 30 s"))
        assert loop.scheduler.watch is not None
        told = loop.scheduler.watch.metrics.overview()
    finally:
        loop.scheduler.close("finished")
    causes = [each["cause"] for each in told["first"]["failing"]]
    assert sorted(causes) == ["TimeoutError took 30 s", "answered 503"]
    assert [each["cause"] for each in told["first"]["gone"]] == ["answered 410"]
    [polled] = told["feeds"]
    assert polled["fault"] == f"{feed} must be a feed or a sitemap, got 404"


def test_a_crawl_with_scrapy_serves_the_page_until_an_interrupt(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "RECRAWL_FOLDER": str(tmp_path),
        "RECRAWL_BANDWIDTH": 40.0 * 86_400.0,
        "RECRAWL_OVERVIEW_PORT": port,
    }
    with served(0.2, 1, Quality()) as web:
        process, ours = begin(settings, web.base.format("127.0.0.1") + "/")
        while len(web.log) < 60:
            assert process.is_alive()
            time.sleep(0.05)
        told = get(port)
        assert "<title>Crawl scheduler</title>" in get(port, "/")
        os.kill(process.pid, signal.SIGINT)
        assert ours.poll(20.0)
        stats = ours.recv()
        process.join(20.0)
    assert process.exitcode == 0
    assert stats["finish_reason"] == "shutdown"
    outcomes = sum(place["outcomes"].get("ok", 0) for place in told["history"])
    assert 0 < outcomes <= stats["recrawl/new"]
    assert told["sent"] >= 40
    with pytest.raises(OSError, match="refused"):
        get(port)


def test_the_page_shows_it_on_a_phone_and_in_the_dark(tmp_path: Path, driver: Any) -> None:
    port = free_port()
    scheduler, _ = crawled()
    html = tmp_path / "bad.xml"
    html.write_text("<html>log in</html>")
    polls = Polls({str(html): 0}, tmp_path / "feeds", 0.5, DAY)
    polls.fetch(scheduler, str(html), DAY)
    watch = Watch(scheduler, listen(port), polls, [("https://a.example/0", "answered 500")])
    watch.metrics.now = DAY + 0.1
    try:
        for minute in range(5):
            for _ in range(3):
                page, _ = scheduler.next(DAY + 0.1 + (minute + 0.01) / 1440.0)
                scheduler.report([page] * (page is not None), DAY + 0.1 + (minute + 0.02) / 1440.0)
        watch.metrics.now = DAY + 0.1 + 4.5 / 1440.0
        for width, scheme in ((390, "light"), (1280, "dark")):
            emulate(driver, width=width, scheme=scheme)
            driver.get(f"http://127.0.0.1:{port}/")
            wait(driver, "document.documentElement.dataset.ready === 'yes'")
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width
            hosts = driver.find_element("id", "hosts").text
            assert hosts.index("held until further notice") < hosts.index("held until 2024")
            assert "bad: " in driver.find_element("id", "feeds").text
            assert "answered 500" in driver.find_element("id", "failing").text
            assert "given with the pages" in driver.find_element("id", "sources").text
            assert driver.find_element("id", "unfinished").text.startswith("Each bar is 1 min")
            texts = driver.execute_script(
                "return [...document.querySelectorAll('svg')].flatMap(svg => {const box = svg."
                "getBoundingClientRect(); return [...svg.querySelectorAll('text')].map(each => {"
                "const r = each.getBoundingClientRect(); return [r.left - box.left, box.right - "
                "r.right, r.top - box.top, box.bottom - r.bottom]})})"
            )
            assert texts
            assert min(min(each) for each in texts) >= 0.0  # no label is cut off
    finally:
        watch.close()
        driver.get("about:blank")
