"""The endpoint over HTTP: its answers, metrics, refusals, and a real server."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn

from policies.live.adapters import endpoint as served
from policies.live.adapters.messages import day_of
from policies.live.adapters.overview import BINS, History
from policies.live.scheduler import CrawlScheduler, DurableScheduler
from tests.browser import emulate, wait

NOW = day_of(None)


class Client:
    """Requests to a server on the own machine."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"

    def ask(self, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
        data = None if body is None else body.encode()
        request = urllib.request.Request(self.base + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def get(self, path: str) -> Any:
        return json.loads(self.ask(path)[1])

    def post(self, *messages: Any) -> list[Any]:
        text = self.ask("/", "\n".join(map(json.dumps, messages)))[1]
        return [json.loads(line) for line in text.splitlines()]

    def metric(self, name: str) -> float:
        [line] = [line for line in self.ask("/metrics")[1].splitlines() if line.startswith(name)]
        return float(line.rpartition(" ")[2])


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(served, "clock", lambda: 0.0)  # each look is made, on a slow machine too
    scheduler = CrawlScheduler("Greedy", 1e4, start=NOW - 1.0, burst=0.1)
    with DurableScheduler(tmp_path, scheduler) as durable, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        config = uvicorn.Config(served.endpoint(durable, ["crawl.example"]), log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [free]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield Client(free.getsockname()[1])
        server.should_exit = True
        thread.join()


PAGES = [
    {"url": f"https://a.example/{k}?x=1&y", "change_rate": rate, "last_crawl": NOW - 1.0}
    for k, rate in enumerate((0.5, 20.0, 1e-9))
]
URLS = [str(page["url"]) for page in PAGES]


def due_of(client: Client, url: str) -> Any:
    return client.get(f"/due?url={urllib.parse.quote(url, safe='')}")


def test_who_holds_a_copy_asks_fetches_and_reports(client: Client) -> None:
    assert client.post({"add": PAGES}) == [{"pages": 3}]
    first = due_of(client, URLS[0])
    assert first["due"]
    assert first["known"]
    age = day_of(None) - (NOW - 1.0)
    assert first["stale"] == pytest.approx(1.0 - math.exp(-0.5 * age), abs=1e-3)
    [granted] = client.post({"ask": URLS[1]})
    assert granted["fetch"] == [URLS[1]]
    [noted] = client.post({"report": [URLS[1]], "changed": [True]})
    assert noted == {"ignored": 0}
    asked = day_of(None)
    [refused] = client.post({"ask": URLS[1]})
    assert refused["fetch"] == []
    assert refused["ask_again"] > asked
    later = due_of(client, URLS[1])
    assert not later["due"]
    assert later["next"].startswith("20")
    never = due_of(client, URLS[2])
    assert not never["due"]
    unknown = due_of(client, "https://b.example/")
    assert unknown == {
        **{"url": "https://b.example/", "due": True, "known": False, "why": "it is not known"},
        **{"stale": None, "next": None},
    }


def test_metrics_count_what_is_told(client: Client) -> None:
    client.post(
        {"add": PAGES},
        {"next": 1},
        {"report": URLS[:2], "changed": [True, False]},
        {"report": [URLS[0]]},
        {"report": [URLS[2]], "status": "failed"},
        {"report": ["https://b.example/", URLS[0]], "changed": [True, True]},
        {"report": ["https://b.example/", URLS[0]], "changed": [True, False]},
        {"signal": [URLS[0], URLS[0], "https://b.example/"]},
    )
    assert client.metric("crawl_handed_out_total") == 1
    outcomes = {"changed": 2, "unchanged": 1, "ok": 2, "failed": 1, "ignored": 2}
    for outcome, count in outcomes.items():
        assert client.metric(f'crawl_reports_total{{outcome="{outcome}"}}') == count
    assert client.metric('crawl_signals_total{source="0"}') == 3
    assert client.metric("crawl_signals_ignored_total") == 2
    assert client.metric('crawl_pages{state="waiting"}') == 1
    assert client.metric("crawl_bandwidth ") == 1e4
    assert 0.9 < client.metric("crawl_freshness_expected ") <= 1.0
    health = client.get("/health")
    assert health["pages"] == 3


def test_bad_requests_are_answered_and_change_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post({"add": PAGES})
    for body, words in (
        ("", "expected a JSON object"),
        ("{", "expected a JSON object"),
        ("[1]", "must have one of"),
        ('{"ask": "https://nowhere.example/"}', "must be added with its columns before: change_ra"),
        ('{"next": 1, "next": 2}', "names must differ"),
        ('{"next": 1, "time": NaN}', "numbers must be finite, got NaN"),
        ('{"next": 10001}', "next must be of at most 10000, got 10001: send several"),
        ('{"limit": null, "gap": -Infinity}', "numbers must be finite"),
        ('{"hold": "a.example"}', "hold must have 'until'"),
        ('{"report": ["u"], "time": ' + 400 * "9" + "}", "time must be days, at most"),
        (100_000 * "[", "recursion"),
        ('{"report": ["u"], "tiem": 5}', "name beside report must be"),
        ('{"next": 1, "time": 1764000000}', "perhaps seconds"),
        ('{"report": ["https://a.example/0"], "status": "odd"}', "status"),
    ):
        status, text = client.ask("/", body)
        assert status == 400
        assert words in json.loads(text)["error"]
    for query in ("", "?url=", "?url=https://a.example/?x=1&y", "?url=a&url=b", "?url=a&time=3"):
        assert client.ask(f"/due{query}")[0] == 400
    assert client.ask("/nowhere")[0] == 404
    with monkeypatch.context() as small:
        small.setattr(served, "MAX_BYTES", 10)
        status, text = client.ask("/", json.dumps({"next": 1}) + " " * 10)
        assert status == 400
        assert "at most 10 bytes" in text
    assert len(client.ask("/", "1\n" * served.MAX_LINES)[1].splitlines()) == served.MAX_LINES
    status, text = client.ask("/", "1\n" * served.MAX_LINES + "1")
    assert (status, json.loads(text)["error"][:35]) == (400, "a body must have at most 10000 line")
    assert client.metric("crawl_handed_out_total") == 0
    refused, taken = client.post({"next": 0}, {"next": 1})
    assert "count" in refused["error"]
    assert len(taken["fetch"]) == 1


def test_other_requests_are_answered_between_the_lines_of_a_body(client: Client) -> None:
    line = {"add": [{"url": f"u{k}", "change_rate": 1.0} for k in range(1000)], "known": "skip"}
    sizes = list[int]()
    body = "\n".join([json.dumps(line), *(50 * [json.dumps({**line, "known": "raise"})])])
    poster = threading.Thread(target=client.ask, args=("/", body))
    poster.start()
    while poster.is_alive():
        sizes.append(client.get("/health")["pages"])
    assert sizes.count(1000) > 3


def test_connections_beyond_a_hundred_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = list[uvicorn.Server]()

    class Caught(uvicorn.Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            servers.append(self)

    monkeypatch.setattr(uvicorn, "Server", Caught)
    free = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    free.bind(("127.0.0.1", 0))
    served_one = CrawlScheduler("Greedy", 1.0, start=NOW)
    thread = threading.Thread(target=served.serve, args=(served_one, free))
    thread.start()
    while not (servers and servers[0].started):
        time.sleep(0.01)
    client = Client(free.getsockname()[1])
    assert client.ask("/health")[0] == 200
    idle = [socket.create_connection(free.getsockname()) for _ in range(100)]
    assert client.ask("/health")[0] == 503
    for each in idle:
        each.close()
    while len(servers[0].server_state.connections) > 50:
        time.sleep(0.01)
    assert client.ask("/health")[0] == 200
    long_url = "https://a.example/" + "x" * 60_000
    assert due_of(client, long_url)["url"] == long_url
    assert client.ask("/due?url=" + "x" * 70_000)[0] == 400
    servers[0].should_exit = True
    thread.join()


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:8808", None, 200),
        ("[::1]:8808", "http://[::1]:8808", 200),
        ("crawl.example", "https://crawl.example", 200),
        ("evil.example", None, 400),
        ("evil.example", "http://evil.example", 400),
        ("localhost:8808", "http://evil.example", 403),
        ("localhost:8808", "http://localhost:3000", 403),
        ("localhost:8808", "null", 403),
    ],
)
def test_pages_of_other_sites_neither_read_nor_write(
    client: Client, host: str, origin: str | None, status: int
) -> None:
    client.post({"add": PAGES})
    headers = {"Host": host, "Content-Type": "text/plain"}
    headers |= {} if origin is None else {"Origin": origin}
    assert client.ask("/overview", **headers)[0] == status
    assert client.ask("/", json.dumps({"remove": URLS[:1]}), **headers)[0] == status
    assert client.get("/health")["pages"] == (2 if status == 200 else 3)


NASTY = "javascript:alert(1)//<img src=x onerror=\"document.title='ran'\"></script>"


def replayed(client: Client) -> None:
    """Play a day of long ago, at times of its own."""
    start = NOW - 0.9
    pages = [{**page, "host": "a.example", "recall": 0.5} for page in PAGES]
    pages = [{**page, "false_signal_rate": 0.5} for page in pages]
    nasty = {**pages[0], "url": NASTY, "host": NASTY, "change_rate": 0.5}
    client.post({"add": [*pages, nasty]}, {"limit": NASTY, "gap": 0.5})
    for hour in range(1, 13):
        time = start + hour / 24.0
        client.post(
            {"signal": [URLS[1]], "time": time},
            {"next": 1, "time": time},
            {"report": [NASTY, URLS[1]], "changed": [False, True], "time": time},
            {"report": [URLS[2]], "status": "failed", "time": time},
        )


def test_the_overview_has_what_the_page_shows(client: Client) -> None:
    assert client.get("/overview")["next"] == []
    replayed(client)
    told = client.get("/overview")
    assert told["time"] == pytest.approx(NOW - 0.4)
    assert told["freshness"] == client.get("/overview")["freshness"]
    counts: dict[str, int] = {}
    for place in told["history"]:
        for name, count in place["outcomes"].items():
            counts[name] = counts.get(name, 0) + count
    assert {name: counts[name] for name in ("changed", "unchanged", "failed")} == {
        **{"changed": 12, "unchanged": 12, "failed": 12}
    }
    [source] = told["sources"]
    rates = np.array([0.5, 20.0, 1e-9, 0.5])
    assert source["recall"] == pytest.approx(0.5)
    assert source["precision"] == pytest.approx(0.5 * rates.sum() / (0.5 * rates.sum() + 2.0))
    assert source["signals"] == 12
    assert [(host["host"], host["pages"]) for host in told["hosts"]] == [
        ("a.example", 3),
        (NASTY, 1),
    ]
    assert told["hosts"][1]["opens"] is not None
    assert told["next"][0]["url"] == URLS[1]
    client.post({"next": 3, "time": NOW - 0.4})
    [waiting] = client.get("/overview")["next"]  # the others are handed out, until the timeout
    assert waiting["url"] == NASTY
    assert waiting["due"] == told["hosts"][1]["opens"]
    client.post({"signal": [URLS[1]], "time": NOW + 0.7})
    assert {page["url"] for page in client.get("/overview")["next"]} == {*URLS[:2], NASTY}
    assert {page["url"] for page in told["next"]} < {NASTY, *URLS}


def test_times_are_merged_when_there_are_many() -> None:
    history = History()
    for minute in range(1000):
        history.bin_at((minute + 0.5) / 1440.0)["outcomes"]["changed"] += 1
        history.bin_at((minute + 0.5) / 1440.0)["expected"] = minute
    table = history.table()
    assert BINS // 2 <= len(table) <= BINS
    assert history.width == 8.0 / 1440.0
    assert [place["outcomes"]["changed"] for place in table] == [8] * 125
    assert [place["expected"] for place in table][:2] == [7, 15]


def test_the_page_shows_it_and_runs_nothing_of_urls(client: Client, driver: Any) -> None:
    replayed(client)
    for width, scheme in ((1200, "light"), (400, "dark")):
        emulate(driver, width=width, scheme=scheme)
        driver.get(client.base)
        wait(driver, "document.documentElement.dataset.ready === 'yes'")
        assert driver.title == "Crawl scheduler"
        shown = driver.find_element("id", "next").text
        assert NASTY in shown
        assert URLS[1] in shown
        assert NASTY in driver.find_element("id", "hosts").text
        assert "50.0%" in driver.find_element("id", "sources").text
        assert "unchanged: 12" in driver.find_element("id", "outcomes-key").text
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width
        assert not driver.find_elements("css selector", "main img, body img, a")
        lines = driver.find_elements("css selector", "polyline")
        points = [line.get_attribute("points").split() for line in lines]
        assert [len(each) for each in points] == [12]
        for x, y in (map(float, point.split(",")) for each in points for point in each):
            assert 60.0 <= x <= 990.0
            assert 20.0 <= y <= 170.0
        bars = driver.find_elements("css selector", "#fetches rect")
        assert len(bars) == 3 * (12 - 2)  # the first and the last are not whole
    driver.get("about:blank")  # it asks no more
    errors = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert [entry for entry in errors if "favicon" not in entry["message"]] == []
