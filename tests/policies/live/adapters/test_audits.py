"""Freshness that crawls measure: against the truth of recorded sites, and in every answer."""

from __future__ import annotations

import http.client
import json
import logging
import math
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from scrapy import Request

from crawl_envs.instances.traces import find, load
from policies.live.adapters.copies import Copies, text_of
from policies.live.adapters.endpoint import Metrics, endpoint, page_to_watch
from policies.live.adapters.fetches import Answer, Fetches
from policies.live.adapters.messages import add_found, answer_line
from policies.live.scheduler import CrawlScheduler
from scripts.live.replayed_web import ReplayedWeb
from tests.browser import emulate, wait
from tests.policies.live.adapters.own_site import serving
from tests.policies.live.adapters.test_scrapy import Loop

DAY, TRACE = 20_000.0, load(find("garden-handbook"))
RATES = {"u0": 20.0, "u1": 300.0}


def audited(**settings: Any) -> CrawlScheduler:
    """Return a scheduler of which every second fetch is an audit, of two pages of known rates."""
    about: Any = {"start": DAY, "timeout": 0.5, "audit_share": 0.5, **settings}
    scheduler = CrawlScheduler("Greedy", 1000.0, burst=1.0, **about)
    rates = list(RATES.values())
    scheduler.add([*RATES], change_rate=rates, last_crawl=DAY + 0.5, group=["a", "b"])
    return scheduler


def crawl(scheduler: Any, turns: int, factor: float = 1.0) -> float:
    """Fetch pages from noon on, which change at their rates times a factor; return the time."""
    now, rng, copies = DAY + 0.5, np.random.default_rng(0), dict.fromkeys(RATES, DAY + 0.5)
    for _ in range(turns):
        now += 5e-4
        page, _ = scheduler.next(now)
        if page is not None:
            stale = -math.expm1(-factor * RATES[page] * (now - copies[page]))
            scheduler.report([page], now, changed=[rng.random() < stale])
            copies[page] = now
    return now


@pytest.mark.parametrize("policy", ["RoundRobin", "GreedyNCIS"])
def test_the_band_of_a_crawl_covers_the_truth_of_the_site(policy: str, tmp_path: Path) -> None:
    """Fetches compare contents and send validators; its score of an instant is the truth."""
    web, end = ReplayedWeb(TRACE, 1.0, "http://127.0.0.1"), float(TRACE.deleted.min())
    scheduler = CrawlScheduler(policy, 20.0, learn=policy != "RoundRobin", audit_share=0.5)
    copies, now, seen = Copies(tmp_path / "copies"), 0.0, set[str]()
    fetches = Fetches(scheduler, copies, now)
    web.answer("", "/", {}, 0.0)
    while now < end:
        scheduler.add([web.url(page) for page in web.living(now)], known="skip")
        url, ask_again = scheduler.next(now)
        if url is None:
            now = ask_again
            continue
        fetches.begin(url, now)
        headers = {name.lower(): text.decode() for name, text in copies[url].conditions.items()}
        got = web.answer("", urlsplit(url).path, headers, now)
        content = text_of(got.body, "text/html")
        outcome, copy = fetches.end(url, Answer.of(got.status, got.headers, content, url), now)
        copies.put({url: copy})
        seen.add(outcome)
    copies.close()
    assert seen == {"new", "changed", "unchanged", "not_modified"}
    assert scheduler.audits is not None
    for since in (0.0, 0.5 * end):
        measured = scheduler.freshness(since=since)
        times = scheduler.audits.records()["time"]
        instants = times[times >= since].tolist()
        truth = 1.0 - np.mean([web.score(t - 2e-6, t - 1e-6)["stale"] for t in instants])
        assert measured.missed == 0
        assert measured.low <= truth <= measured.high
        assert measured.high - measured.low < 0.2
        assert abs(measured.estimate - truth) < 0.05


def test_the_band_covers_the_truth_where_pages_come_go_and_have_signals() -> None:
    """The window of a record is played by hand; its mentions are signals."""
    start, end, rng = 80.0, 200.0, np.random.default_rng(3)
    weight = rng.integers(1, 5, TRACE.num_pages).astype(float)
    scheduler = CrawlScheduler("GreedyNCIS", 60.0, start=start, learn=True, audit_share=0.2)
    born = np.flatnonzero(TRACE.created < start)
    born = born[TRACE.deleted[born] > start]
    scheduler.add(born, importance=weight[born], last_crawl=start)
    copies, known = {int(page): [start] for page in born}, {int(page): math.inf for page in born}
    mentions = sorted(zip(TRACE.mention_time, TRACE.mention_page, strict=True))
    changes = [TRACE.change_time[TRACE.change_page == k] for k in range(TRACE.num_pages)]
    now = start
    while now < end:
        while mentions and mentions[0][0] <= now:
            time, page = mentions.pop(0)
            if time > start:
                scheduler.signal([int(page)], time)
        page, ask_again = scheduler.next(now)
        if page is None:
            now = min(ask_again, now + 0.05)
        elif TRACE.deleted[page] <= now:
            scheduler.report([page], now, "gone")
            known[page] = now
        else:
            changed = ((changes[page] > copies[page][-1]) & (changes[page] <= now)).any()
            scheduler.report([page], now, changed=[changed])
            copies[page].append(now)
    assert scheduler.audits is not None
    measured, truths = scheduler.freshness(), []
    for time in scheduler.audits.records()["time"]:
        fresh = total = 0.0
        for page, gone in known.items():
            if time <= gone:
                copy = max(copy for copy in copies[page] if copy < time or copy == start)
                total += weight[page]
                stale = ((changes[page] > copy) & (changes[page] <= time)).any()
                fresh += weight[page] * (not stale and TRACE.deleted[page] > time)
        truths.append(fresh / total)
    assert len(truths) > 1000
    assert measured.low <= np.mean(truths) <= measured.high
    assert measured.high - measured.low < 0.12


def test_freshness_is_a_line_and_an_address() -> None:
    scheduler = audited()
    now = crawl(scheduler, 400)
    answers = {
        name: answer_line(scheduler, json.dumps({"freshness": limits}))
        for name, limits in {"all": {}, "group": {"group": "b"}, "none": {"since": now + 1}}.items()
    }
    facts = scheduler.freshness()
    for name in ("estimate", "low", "high", "believed", "audits", "missed", "gain", "belief_gap"):
        assert answers["all"][name] == getattr(facts, name)
    assert answers["all"]["is_off"] == facts.is_off
    assert sum(row[2] for row in answers["all"]["calibration"]) == facts.audits - facts.missed
    assert answers["group"]["audits"] == scheduler.freshness(group="b").audits < facts.audits
    assert (answers["none"]["estimate"], answers["none"]["audits"]) == (None, 0)
    json.dumps(answers, allow_nan=False)
    for limits, words in (
        ({"untill": 3}, "name in freshness must be one of"),
        (5, "freshness must be an object"),
        ({"group": "c"}, "group must be among"),
        ({"since": "noon"}, "time must be days or a date"),
    ):
        assert words in answer_line(scheduler, json.dumps({"freshness": limits}))["error"]
    with serving(endpoint(scheduler)) as address:
        client = http.client.HTTPConnection(urlsplit(address).netloc)

        def get(query: str) -> Any:
            client.request("GET", f"/freshness{query}", headers={"Host": "localhost"})
            return json.loads(client.getresponse().read())

        assert get("") == answers["all"]
        assert get("?group=b") == answers["group"]
        assert get(f"?since={now + 1}") == answers["none"]
        assert get("?since=2024-10-05") == answers["none"]  # the next day
        assert "names must differ" in get("?group=a&group=b")["error"]
        assert "name in freshness" in get("?to=3")["error"]
        client.close()


def test_metrics_have_audits_and_promises_where_they_are_used() -> None:
    plain = Metrics(CrawlScheduler("RoundRobin", 10.0, start=DAY)).text().decode()
    assert not any(f"crawl_{name}" in plain for name in ("freshness_low", "audits", "promised"))
    metrics = Metrics(scheduler := audited(most_interval=30.0))
    metrics.now = crawl(scheduler, 400)
    scheduler.next(metrics.now)
    facts, gauges = scheduler.freshness(since=DAY), {}
    for line in metrics.text().decode().splitlines():
        if line.startswith("crawl_"):
            name, value = line.rsplit(" ", 1)
            gauges[name.removeprefix("crawl_")] = float(value)
    assert gauges["freshness_measured"] == pytest.approx(facts.estimate)
    assert gauges["freshness_low"] == pytest.approx(facts.low)
    assert gauges["freshness_high"] == pytest.approx(facts.high)
    assert (gauges["audits"], gauges["audits_missed"]) == (facts.audits, facts.missed)
    assert gauges["belief_gap"] == pytest.approx(facts.belief_gap)
    assert gauges["belief_off"] == facts.is_off
    assert [gauges[name] for name in ("promised", "overdue", "late_fetches")] == [2, 0, 0]
    assert gauges["promised_share"] == pytest.approx(2 / 30 / 500)  # half of 1000 for audits
    assert "# HELP crawl_promised Pages with a longest interval." in metrics.text().decode()


def test_the_overview_has_null_for_numbers_that_are_not_finite() -> None:
    scheduler = audited(most_interval=30.0)
    metrics = Metrics(scheduler)
    scheduler.pages.choices.promises["most_late"] = math.inf
    assert scheduler.overview()["most_late"] == math.inf
    with serving(page_to_watch(metrics)) as address:
        client = http.client.HTTPConnection(urlsplit(address).netloc)
        client.request("GET", "/overview", headers={"Host": "localhost"})
        text = client.getresponse().read().decode()
        client.close()
    assert json.loads(text, parse_constant=pytest.fail)["most_late"] is None


def audit_answers(loop: Loop) -> list[int]:
    """Return what each audit of a crawl found: 0 for a fresh page, 1 a stale one, 2 nothing."""
    assert loop.scheduler.pages.audits is not None
    return [int(answer) for answer in loop.scheduler.pages.audits.records()["answer"]]


def test_each_answer_of_scrapy_ends_an_audit_by_what_it_found(tmp_path: Path) -> None:
    loop = Loop(tmp_path, RECRAWL_AUDIT_SHARE=0.999)
    loop.scheduler.enqueue_request(Request("https://a.example/1"))
    loop.answer(loop.sent(), body="one", ETag='"1"')
    answers: list[dict[str, Any]] = [
        {"body": "one"},
        {"body": "one"},
        {"status": 304},
        {"body": "two"},
    ]
    answers += [{"status": 500}, {"body": "two"}]
    for answer in answers:
        loop.answer(loop.sent(100.0), **answer)
    again = loop.sent(100.0)
    loop.scheduler.fetches.see_again(again.url)  # its callback failed, now or before
    assert loop.answer(again, body="two") is not None
    see = loop.sent(100.0)
    assert "If-None-Match" not in see.headers
    loop.scheduler.close("finished")
    assert audit_answers(loop)[:7] == [0, 0, 1, 2, 0, 0, 3]  # the last is under way
    names = "freshness", "freshness_low", "freshness_high", "audits", "audits_missed", "belief_off"
    values = [loop.stats.get_value(f"recrawl/{name}") for name in names]
    assert values[0] == pytest.approx(0.8, abs=0.05)  # of five, with what was believed
    assert 0.0 <= values[1] < 0.8 < values[2] <= 1.0
    assert values[3:5] == [7, 2]


def test_audits_and_promises_of_an_older_folder_change_with_the_settings(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Loop(tmp_path, RECRAWL_AUDIT_SHARE=0)
    for page in "1", "2":
        loop.scheduler.enqueue_request(Request(f"https://a.example/{page}"))
    loop.answer(loop.sent(), body="one")
    assert loop.scheduler.pages.audits is None
    loop.scheduler.close("finished")
    assert loop.stats.get_value("recrawl/freshness") is None
    with caplog.at_level(logging.WARNING):
        loop = Loop(tmp_path, start=loop.now, RECRAWL_MOST_INTERVAL=600)
    assert "RECRAWL_AUDIT_SHARE is now 0.01, not 0" in caplog.text
    assert loop.scheduler.pages.audits.share == 0.01
    loop.scheduler.enqueue_request(Request("https://a.example/3"))
    loop.answer(loop.sent(), body="one")
    overview = loop.scheduler.pages.overview()
    assert (overview["promised"], overview["overdue"]) == (3, 0)
    loop.scheduler.close("finished")
    assert loop.stats.get_value("recrawl/promised") == 3
    share = loop.stats.get_value("recrawl/promised_share")
    assert share == pytest.approx(overview["promised_share"])
    caplog.clear()
    loop = Loop(tmp_path, start=loop.now)
    assert caplog.text == ""
    assert loop.scheduler.pages.overview()["promised"] == 3  # as long as no other is set
    assert loop.scheduler.pages.describe("https://a.example/3")["most_interval"] == 600 / 86_400
    loop.scheduler.close("finished")
    Loop(tmp_path, start=loop.now, RECRAWL_MOST_INTERVAL=1e-6).scheduler.close("finished")
    assert "3 pages keep their longest interval: most_interval must leave" in caplog.text


@pytest.mark.parametrize("value", [-0.1, 1.0, "often"])
def test_bad_shares_of_audits_are_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"RECRAWL_AUDIT_SHARE must be in \[0, 1\), got"):
        Loop(tmp_path, RECRAWL_AUDIT_SHARE=value)


def test_pages_that_are_found_get_no_promise_that_cannot_be_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = CrawlScheduler("RoundRobin", 10.0, most_interval=1.0)
    assert add_found(scheduler, [f"https://a.example/{k}" for k in range(8)], {}) == 8
    assert caplog.text == ""
    assert add_found(scheduler, [f"https://a.example/{k}" for k in range(5, 12)], {}) == 4
    assert "4 new pages get no promise: most_interval must leave u" in caplog.text
    assert scheduler.overview()["promised"] == 8
    assert scheduler.describe("https://a.example/9")["most_interval"] == math.inf
    with pytest.raises(ValueError, match="importance"):
        add_found(scheduler, ["https://a.example/z"], {"importance": -1.0})


def test_a_line_changes_the_share_of_audits() -> None:
    scheduler = CrawlScheduler("RoundRobin", 10.0, start=DAY)
    assert "audit_share must be > 0" in answer_line(scheduler, '{"freshness": {}}')["error"]
    line = json.dumps({"audit_share": 0.25, "time": DAY + 1.0})
    assert answer_line(scheduler, line) == {"audit_share": 0.25}
    assert answer_line(scheduler, '{"freshness": {}}')["audits"] == 0
    bad = answer_line(scheduler, json.dumps({"audit_share": 2, "time": DAY + 1.0}))
    assert "audit_share must lie in [0, 1), got 2" in bad["error"]


def test_the_page_has_the_band_of_each_day_and_an_alarm_where_the_belief_is_off() -> None:
    right, wrong = audited(), audited()
    for scheduler, factor in ((right, 1.0), (wrong, 4.0)):
        metrics = Metrics(scheduler)
        metrics.now = crawl(scheduler, 900, factor)
        shown = metrics.overview()
        json.dumps(shown, allow_nan=False)
        facts = scheduler.freshness(since=DAY)
        assert shown["measured"]["day"]["since"] == DAY
        assert shown["measured"]["day"]["low"] == facts.low
        assert shown["measured"]["all"]["calibration"] == facts.calibration.tolist()
        assert shown["measured"]["day"]["is_off"] == (scheduler is wrong)
        bins = [place["measured"] for place in shown["history"] if "measured" in place]
        assert len(bins) > 100
        widths = [each["high"] - each["low"] for each in bins if each["estimate"] is not None]
        assert widths[-1] < 0.5 * widths[0]
        metrics.now = DAY + 1.5  # of the next day there is no audit yet
        assert metrics.overview()["measured"]["day"]["estimate"] is None


@pytest.mark.parametrize(("factor", "alarms"), [(1.0, 0), (4.0, 1)])
def test_a_browser_shows_the_band_and_the_alarm(factor: float, alarms: int, driver: Any) -> None:
    metrics = Metrics(scheduler := audited(most_interval=30.0))
    metrics.now = crawl(scheduler, 900, factor)
    with serving(page_to_watch(metrics)) as address:
        for width, scheme in ((390, "dark"), (1280, "light")):
            emulate(driver, width=width, scheme=scheme)
            driver.get(address.replace("127.0.0.1", "localhost"))
            wait(driver, "document.documentElement.dataset.ready === 'yes'")
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width
            alarm = driver.find_element("id", "alarm")
            assert alarm.is_displayed() == bool(alarms)
            assert alarm.text.startswith("The belief is off: " * alarms)
            figures = driver.find_element("id", "figures").text
            assert "measured freshness" in figures
            assert "of 2 with a promised interval" in figures
            assert len(driver.find_elements("css selector", "#freshness polygon")) == 1
            assert len(driver.find_elements("css selector", "#freshness polyline")) == 3
            bins = scheduler.freshness().calibration
            assert len(driver.find_elements("css selector", "#calibration circle")) == len(bins)
        driver.get("about:blank")
    errors = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert [entry for entry in errors if "favicon" not in entry["message"]] == []
