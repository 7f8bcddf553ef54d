"""A scheduler on lines of JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from policies.live.adapters import messages
from policies.live.adapters.messages import answers, day_of
from policies.live.scheduler import CrawlScheduler


def asked(scheduler: CrawlScheduler, *messages: Any) -> list[Any]:
    lines = [text if isinstance(text, str) else json.dumps(text) for text in messages]
    return [json.loads(line) for line in answers(scheduler, lines)]


def new_scheduler() -> CrawlScheduler:
    return CrawlScheduler("GreedyNCIS", 10.0, burst=0.0)


PAGES = [
    {"url": url, "change_rate": rate, "recall": 0.5, "false_signal_rate": 0.1, "last_crawl": 0.0}
    for url, rate in (("a", 0.1), ("b", 2.0))
]


def test_a_crawler_is_driven() -> None:
    said = asked(
        new_scheduler(),
        {"add": PAGES},
        {"next": 1, "time": 1.0},
        {"report": ["b"], "time": 1.01},
        "",
        {"signal": ["a", "unknown"], "time": 1.02},
        {"update": [{"url": "b", "change_rate": 0.001}]},
        {"next": 5, "time": 1.03},
        {"next": 5, "time": 1.04},
        {"bandwidth": 100.0, "time": 1.05},
        {"remove": ["a"]},
    )
    assert [line.pop("why") for line in said if "why" in line] == 2 * [
        "the bandwidth is used up until 1.1; "
        "pages: 2 ready, 0 new, 0 sent, 0 waiting, 0 parked, 0 gone"
    ]
    assert said == [
        {"pages": 2},
        {"fetch": ["b"], "ask_again": 1.0},
        {"ignored": 0},
        {"ignored": 0, "unknown": ["unknown"]},
        {"pages": 2},
        {"fetch": [], "ask_again": pytest.approx(1.1)},
        {"fetch": [], "ask_again": pytest.approx(1.1)},
        {"bandwidth": 100.0},
        {"pages": 1},
    ]


def test_failures_hosts_moves_and_gaps_are_told() -> None:
    said = asked(
        new_scheduler(),
        {"add": [{**page, "host": "h"} for page in PAGES]},
        {"add": PAGES, "known": "skip"},
        {"limit": ["h"], "gap": 0.2, "most": 1},
        {"hold": "h", "until": 1.2},
        {"next": 1, "time": 1.0},
        {"next": 1, "time": 1.2},
        {"report": ["b"], "time": 1.2, "status": "failed", "retry_at": 9.0, "ended": 1.3},
        {"next": 1, "time": 1.4},
        {"move": ["b"], "to": ["c"]},
        {"describe": "c"},
        {"source_gap": 0, "since": 1.0},
        {"report": ["c"], "time": 1.4, "status": "gone"},
        {"describe": "c"},
    )
    assert said[:4] == 4 * [{"pages": 2}]
    assert said[4]["ask_again"] == 1.2
    assert said[5]["fetch"] == ["b"]
    assert said[7]["ask_again"] == pytest.approx(1.5)
    assert said[8] == {"pages": 2}
    assert (said[9]["due"], said[9]["failures"]) == (9.0, 1)
    assert said[10:12] == [{"pages": 2}, {"ignored": 0}]
    assert "ids must be known" in said[12]["error"]


def test_hosts_are_released_pages_come_back_and_clocks_go_back() -> None:
    scheduler, now = CrawlScheduler("GreedyNCIS", 10.0, keep_gone=9.0), day_of(None)
    said = asked(
        scheduler,
        {"add": [{**page, "host": "h"} for page in PAGES]},
        {"hold": "h", "until": "2999-01-01"},
        {"next": 1, "time": 1.0},
        {"hold": "h", "until": 0.5},
        {"next": 1, "time": 1.1},
        {"report": ["b"], "time": 1.1, "status": "gone"},
        {"revive": ["b", "unknown"]},
        {"describe": "b"},
        {"next": 1, "time": 3.0},
        {"reset_clock": 2.0},
        {"reset_clock": 3.0},
        {"next": 1, "time": "2999-01-01"},
        {"next": 1, "time": now * 86_400.0},
        {"next": 1, "time": float("nan")},
        {"ask": "a", "time": now + 2.0},
        {"bandwidth": 5, "time": now + 2.0},
        {"reset_clock": None},
    )
    assert [line["fetch"] for line in (said[2], said[4])] == [[], ["b"]]
    assert said[6] == {"unknown": 1}
    assert said[7]["state"] == "ready"
    assert said[9] == {"clock": 2.0}
    assert "time must be before the clock, 2, got 3" in said[10]["error"]
    assert "time must be at most a day after" in said[11]["error"]
    assert said[13] == {"error": "numbers must be finite, got NaN"}
    assert all("time must be" in line["error"] for line in (said[12], *said[14:]))
    assert (scheduler.time, scheduler.bandwidth) == (2.0, 10.0)
    live = CrawlScheduler("Greedy", 10.0, start=now + 0.5)
    early, late = asked(live, {"reset_clock": 1}, {"reset_clock": now - 0.5})
    assert "reset_clock must be at most a day before" in early["error"]
    assert late == {"clock": now - 0.5}
    ahead = CrawlScheduler("Greedy", 10.0, start=now + 5.0)  # a simulation
    assert "error" not in asked(ahead, {"next": 1, "time": now + 6.0})[0]


def test_now_does_not_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = day_of(None)

    class Past(messages.datetime):
        @classmethod
        def now(cls, zone: Any = None) -> Any:
            return cls.fromtimestamp(0.0, zone)

    monkeypatch.setattr(messages, "datetime", Past)
    assert before < day_of(None) < before + 0.01


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "expected a JSON object"),
        ("[1]", "a line must have one of add"),
        ('{"next": 1, "add": []}', "a line must have one of add"),
        ('{"next": 0, "time": 1}', "count must be"),
        ('{"next": 1, "time": "noon"}', "time must be days or a date"),
        ('{"next": 1, "time": true}', "time must be days or a date"),
        ('{"add": [{"url": "c"}]}', "must be given"),
        ('{"add": [{"url": "c"}, {"link": "d"}]}', "pages must all have url"),
        ('{"add": "c"}', "pages must be a list"),
        ('{"report": ["a"], "time": 1, "status": "lost"}', "status must be"),
        ('{"remove": ["nobody"]}', "nobody"),
        ('{"due": ["a", "b"]}', "due must be the url of a page, got ['a', 'b']"),
        ('{"signal": ["a"], "time": 1, "source": [0]}', "source must be an integer in [0, 0]"),
        ('{"report": ["a", "\\ud800"], "time": 1}', "surrogates not allowed"),
        ('{"ask": "new", "time": 1}', "'new' must be added with its columns before: change_rate"),
    ],
)
def test_a_bad_line_is_answered_and_changes_nothing(line: str, message: str) -> None:
    scheduler = new_scheduler()
    asked(scheduler, {"add": PAGES})
    first, second = asked(scheduler, line, {"next": 1, "time": 1.0})
    assert message in first["error"]
    assert second["fetch"] == ["b"]


def test_what_fetches_find_is_learned() -> None:
    scheduler = CrawlScheduler("GreedyNCIS", 10.0, learn=True)
    pages = [{"url": "a", "last_crawl": 0.0}, {"url": "b", "last_crawl": 0.0}]
    asked(scheduler, {"add": pages})
    asked(scheduler, {"report": ["a", "b"], "time": 1.0, "changed": [True, False]})
    changing, still = scheduler.pages.columns["change_rate"][:2]
    assert changing > still
    [answer] = asked(scheduler, {"report": ["a"], "time": 2.0, "changed": [1.5]})
    assert "changed" in answer["error"]


def test_times_are_days_or_dates() -> None:
    assert day_of(1.5) == 1.5
    assert day_of("1970-01-02T12:00:00Z") == 1.5
    assert day_of("1970-01-02 12:00") == 1.5
    assert day_of("1970-01-02T12:00:00+12:00") == 1.0
    assert day_of(None) > 20000.0


def test_who_asks_for_a_new_page_is_granted_and_hosts_count() -> None:
    scheduler = CrawlScheduler("GreedyNCIS", 1000.0, learn=True, burst=1.0)
    urls = [f"https://b.example:8443/{k}" for k in range(4)]
    said = asked(
        scheduler,
        {"limit": None, "gap": 0.5},
        {"ask": urls[0], "time": 1.0},
        {"add": [{"url": url} for url in urls[1:]]},
        {"report": urls[:1], "time": 1.0},
        {"next": 4, "time": 1.6},
        {"add": [{"url": "plain"}]},
        {"add": [{"url": "other"}, {"url": "http://c.example"}]},
    )
    assert said[1] == {"url": urls[0], "fetch": [urls[0]], "ask_again": 1.0}
    assert len(said[4]["fetch"]) == 1, "one of the host, which all are of"
    assert list(scheduler.pages.hosts) == ["b.example"]
    assert said[5] == {"pages": 5}
    assert "host must be given where a url has none, got 'other'" in said[6]["error"]


def test_a_refused_ask_adds_no_page() -> None:
    scheduler = CrawlScheduler("GreedyNCIS", 1.0, learn=True, burst=0.5)
    for line in ({"ask": "https://a.example/", "time": 1.0}, {"ask": "a", "time": "noon"}):
        assert "error" in asked(scheduler, line)[0]
    assert len(scheduler) == 0


PAGE = "https://b.example/~me/%C3%BC?q=1"
SPELLINGS = [
    "HTTPS://B.Example/~me/%c3%bc?q=1",
    "https://b.example:443/%7Eme/\u00fc?q=1#part",
    "https://b.example/x/../~me/%C3%BC?q=1",
]


@pytest.mark.parametrize("spelling", [PAGE, *SPELLINGS])
def test_spellings_of_a_url_are_one_page_in_every_message(spelling: str) -> None:
    scheduler = CrawlScheduler("GreedyNCIS", 1000.0, learn=True, burst=1.0)
    said = asked(
        scheduler,
        {"add": [{"url": SPELLINGS[0]}]},
        {"add": [{"url": spelling}], "known": "skip"},
        {"due": spelling},
        {"ask": spelling, "time": 1.0},
        {"report": [spelling], "time": 1.0},
        {"signal": [spelling], "time": 2.0},
        {"describe": spelling},
        {"update": [{"url": spelling, "change_rate": 3.0}]},
        {"move": [spelling], "to": ["HTTP://C.example"]},
        {"remove": ["http://c.example/"]},
    )
    assert not [line for line in said if "error" in line]
    assert said[:2] == 2 * [{"pages": 1}]
    assert [said[k]["url"] for k in (2, 3, 6)] == 3 * [PAGE]
    assert said[3]["fetch"] == [PAGE]
    assert said[5] == {"ignored": 0, "unknown": []}
    assert said[6]["signals"] == 1
    assert said[9] == {"pages": 0}


def test_a_page_is_found_by_the_id_that_a_program_gave_it() -> None:
    scheduler = CrawlScheduler("GreedyNCIS", 1000.0, learn=True, burst=1.0)
    scheduler.add(["HTTP://A.example"])
    [answer] = asked(scheduler, {"due": "HTTP://A.example"})
    assert (answer["url"], answer["known"]) == ("HTTP://A.example", True)


@pytest.mark.parametrize("name", ["add", "update", "remove", "signal", "report", "limit", "hold"])
def test_pages_of_a_message_are_limited(name: str) -> None:
    scheduler = CrawlScheduler("Greedy", 10.0)
    scheduler.add(np.arange(10_001), change_rate=1.0)
    entries: list[Any] = list(range(10_001))
    more = {"gap": 0.5} if name == "limit" else {"until": 1.5} if name == "hold" else {}
    if name in ("add", "update"):
        entries = [{"url": k + 20_000 * (name == "add"), "change_rate": 2.0} for k in entries]
    refused, taken = asked(
        scheduler, {name: entries, **more}, {name: entries[: messages.MAX_PAGES], **more}
    )
    assert refused == {"error": f"{name} must be of at most 10000, got 10001: send several"}
    assert "error" not in taken


def test_long_lines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_BYTES", 30)
    long, short = asked(new_scheduler(), '{"due": "a"}' + 19 * " ", '{"due": "a"}' + 18 * " ")
    assert long == {"error": "a line must have at most 30 bytes: send several"}
    assert short["due"]


def test_null_is_no_promise_and_a_page_that_is_asked_for_goes_without(caplog: Any) -> None:
    scheduler = CrawlScheduler("RoundRobin", 10.0, burst=1.0, most_interval=0.5)
    pages = [{"url": "a", "most_interval": None}, {"url": "b", "most_interval": 0.125}]
    assert asked(scheduler, {"add": pages}) == [{"pages": 2}]
    assert [scheduler.describe(x)["most_interval"] for x in "ab"] == [np.inf, 0.125]
    change = {"update": [{"url": "b", "most_interval": None}, {"url": "a", "most_interval": 0.125}]}
    assert asked(scheduler, change) == [{"pages": 2}]
    assert [scheduler.describe(x)["most_interval"] for x in "ab"] == [0.125, np.inf]
    assert [x["most_interval"] for x in asked(scheduler, {"describe": "a"}, {"describe": "b"})] == [
        0.125,
        None,
    ]
    assert "error" not in asked(scheduler, {"ask": "c", "time": 1.0})[0]  # 8 + 2 of 10
    assert scheduler.describe("c")["most_interval"] == 0.5
    url = "https://d.example/"
    [answer] = asked(scheduler, {"ask": url, "time": 1.1})
    assert answer["url"] == url
    assert "1 new pages get no promise: most_interval must leave u" in caplog.text
    assert scheduler.describe(url)["most_interval"] == np.inf
    assert "most_interval must leave u" in asked(scheduler, {"add": [{"url": "e"}]})[0]["error"]
