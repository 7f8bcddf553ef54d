"""What fetches find: outcomes, waits that servers ask for, and copies that outlive the process."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies.live.adapters.copies import Copies, Copy, digest
from policies.live.adapters.fetches import Answer, Fetches, retry_after
from policies.live.scheduler import CrawlScheduler

PAGE, NOW, SECOND = "https://a.example/p", 20_000.0, 1.0 / 86_400.0
COPY = Copy('"1"', "yesterday", digest("one"), "parser")


@pytest.mark.parametrize(
    ("before", "answer", "outcome", "after"),
    [
        (Copy(), Answer(200, content="one"), "new", Copy(digest=digest("one"))),
        (COPY, Answer(200, content=" one\n"), "unchanged", COPY._replace(etag=None, modified=None)),
        (COPY, Answer(206, '"2"', content="two"), "changed", None),
        (COPY, Answer(304), "not_modified", COPY),
        (COPY, Answer(404), "failed", COPY),
        (COPY, Answer(410), "failed", COPY),
        (COPY, Answer(500, content="two"), "failed", COPY),
        (COPY, Answer(), "failed", COPY),
    ],
)
def test_outcomes(before: Copy, answer: Answer, outcome: str, after: Copy | None) -> None:
    scheduler = CrawlScheduler("Greedy", 1e6, start=NOW, learn=True, keep_gone=1.0)
    scheduler.add([PAGE], host=["a.example"])
    assert scheduler.next(NOW + SECOND)[0] == PAGE
    sent, now = NOW + SECOND, NOW + 2.0 * SECOND
    after = Copy('"2"', None, digest("two"), "parser") if after is None else after
    copies: Any = {PAGE: before}
    fetches = Fetches(scheduler, copies, NOW)
    fetches.begin(PAGE, sent)
    assert fetches.end(PAGE, answer, now) == (outcome, after)
    told = scheduler.describe(PAGE)
    assert told["state"] == {"failed": "waiting"}.get(outcome, "ready")
    if outcome != "failed":
        assert told["copy"] == sent
        return
    for day, status, state in ((1.0, 404, "failed"), (7.0, 500, "failed"), (7.1, 410, "gone")):
        later = now + day  # the host has no other page
        fetches.begin(PAGE, later)
        assert fetches.end(PAGE, Answer(status), later) == (
            state,
            before if state == "failed" else Copy(parser=before.parser),
        )


@pytest.mark.parametrize(
    ("before", "answer", "outcome", "changed"),
    [
        (COPY, Answer(304), "not_modified", [False]),
        (COPY, Answer(200, content="one"), "unchanged", [False]),
        (COPY, Answer(200, content="two"), "changed", [True]),
        (COPY, Answer(200, content=None), "new", None),
        (COPY.unprocessed, Answer(200, content="one"), "new", [False]),
        (COPY.unprocessed, Answer(200, content="two"), "new", [True]),
        (Copy().unprocessed, Answer(200, content="one"), "new", None),
        (COPY, Answer(500), "failed", None),
    ],
)
def test_whether_a_page_changed_is_reported_also_when_its_callback_sees_it_again(
    before: Copy, answer: Answer, outcome: str, changed: list[bool] | None
) -> None:
    scheduler, reports = CrawlScheduler("RoundRobin", 1e6, start=NOW), list[Any]()
    scheduler.add([PAGE], last_crawl=NOW - 1.0)
    scheduler.watchers.append(lambda call, named, _: reports.append(named.get("changed")))
    fetches = Fetches(scheduler, {PAGE: before}, NOW)  # type: ignore[arg-type]
    fetches.begin(PAGE, NOW + SECOND)
    assert fetches.end(PAGE, answer, NOW + SECOND)[0] == outcome
    assert reports[-1] == changed
    assert before.unprocessed.conditions == {}  # a server answers it in full


def test_a_page_that_gets_its_first_link_keeps_its_hash(tmp_path: Path) -> None:
    copies = Copies(tmp_path / "copies")
    copies.put({PAGE: COPY._replace(parser=None)})
    copies.adopt({PAGE: "its first link"})
    copies.close()
    assert Copies(tmp_path / "copies")[PAGE] == Copy(
        None, None, COPY.digest, "its first link", False
    )


def test_fetches_under_way_were_interrupted() -> None:
    scheduler = CrawlScheduler("Greedy", 1e6, start=NOW, learn=True)
    scheduler.add([PAGE], host=["a.example"])
    assert scheduler.next(NOW + SECOND)[0] == PAGE
    Fetches(scheduler, defaultdict(Copy), NOW + 2.0 * SECOND)  # type: ignore[arg-type]
    assert list(scheduler.under_way) == []
    assert scheduler.next(NOW + 3.0 * SECOND)[0] == PAGE  # without a wait


@pytest.mark.parametrize(
    ("told", "wait"),
    [
        ("600", 600.0),
        (" 0 ", 0.0),
        (formatdate(NOW * 86_400.0 + 120.0, usegmt=True), 120.0),
        (formatdate(NOW * 86_400.0 - 120.0, usegmt=True), 0.0),
        (formatdate(NOW * 86_400.0 + 1e9, usegmt=True), 1e9),
        (time.asctime(time.gmtime(NOW * 86_400.0 + 120.0)), 120.0),  # without a zone: UTC
        ("9" * 400, math.inf),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
    ],
)
def test_waits_are_seconds_or_dates(
    told: str, wait: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    days = retry_after(told, NOW)
    monkeypatch.undo()
    time.tzset()
    assert (days is None) == (wait is None)
    assert days is None or days == pytest.approx(wait * SECOND, abs=1e-9)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("status", "wait", "page", "other"),
    [
        (503, "7200", 7200.0, 7200.0),
        (429, "60", 3600.0, 60.0),  # not before the scheduler's own wait
        (503, "0", 3600.0, 0.0),
        (500, "7200", 7200.0, 0.0),  # the page alone
        (404, None, 3600.0, 0.0),
    ],
)
def test_servers_are_left_alone(status: int, wait: str | None, page: float, other: float) -> None:
    settings = {"start": NOW - 1.0, "burst": 1.0, "timeout": 1.0, "retry": 3600.0 * SECOND}
    scheduler = CrawlScheduler("Greedy", 1e6, learn=True, **settings)  # type: ignore[arg-type]
    scheduler.add([PAGE, PAGE + "2"], host=["a.example"] * 2)
    fetches = Fetches(scheduler, defaultdict(Copy), NOW)  # type: ignore[arg-type]
    assert scheduler.next(NOW)[0] == PAGE
    fetches.begin(PAGE, NOW)
    fetches.end(PAGE, Answer(status, retry_after=wait), NOW)
    if other:
        assert scheduler.next(NOW + (other - 1.0) * SECOND)[0] is None
    first = scheduler.next(NOW + (other + 1.0) * SECOND)[0]
    assert first == (PAGE + "2" if other < page else PAGE)
    if other < page:
        assert scheduler.next(NOW + (page - 1.0) * SECOND)[0] is None
    second = scheduler.next(NOW + (page + 1.0) * SECOND)[0]
    assert {first, second} == {PAGE, PAGE + "2"}


@pytest.mark.parametrize(("status", "host"), [(503, 7.0), (500, 0.0)])
def test_a_long_retry_after_has_a_limit_and_one_warning(
    status: int, host: float, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = CrawlScheduler("Greedy", 1e6, start=NOW, learn=True, timeout=1.0)
    pages = [PAGE, PAGE + "2"]
    scheduler.add(pages, host="a.example")
    fetches = Fetches(scheduler, defaultdict(Copy), NOW, 7.0)  # type: ignore[arg-type]
    never = Answer(status, retry_after="Fri, 31 Dec 9999 23:59:59 GMT")
    for page in pages if host else pages[:1]:
        fetches.begin(page, NOW)
        fetches.end(page, never, NOW)
        assert scheduler.describe(page, NOW)["due"] == NOW + 7.0
    assert scheduler.opens("a.example") == (NOW + host if host else NOW)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "Retry-After of https://a.example/p is too long" in record.message


def test_copies_are_written_when_they_are_processed(tmp_path: Path) -> None:
    copies = Copies(tmp_path / "copies")
    copies.adopt({"b": "parser"})
    copies.put({"a": COPY, "gone": COPY})
    copies.note("b", COPY._replace(etag='"2"'), 100.0)
    copies.note("c", COPY, 102.0)
    copies.remove("gone")
    assert copies["b"].etag == '"2"'
    copies.write(101.0)
    copies.journal.close()
    after_a_crash = Copies(tmp_path / "copies")
    assert after_a_crash["a"] == COPY
    assert after_a_crash["b"].etag == '"2"'
    assert after_a_crash["c"] == after_a_crash["gone"] == Copy()
    after_a_crash.adopt({"a": "other", "c": "parser"})
    after_a_crash.note("d", COPY, 102.0)
    after_a_crash.close()
    again = Copies(tmp_path / "copies")
    assert (again["a"], again["c"], again["d"]) == (COPY, Copy(parser="parser"), COPY)
    again.close()


def test_a_file_of_old_copies_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "copies"
    copies = Copies(path)
    for turn in range(3_000):
        copies.put({str(turn % 100): COPY._replace(digest=str(turn))})
    copies.remove("7")
    copies.close()
    size = path.stat().st_size
    Copies(path).close()
    assert path.stat().st_size < size / 10
    again = Copies(path)
    assert [again[str(k)].digest for k in range(7)] == [str(2_900 + k) for k in range(7)]
    assert (again["7"], len(again.copies)) == (Copy(), 99)
    again.close()


def test_a_flipped_bit_of_the_copies_is_noticed(tmp_path: Path) -> None:
    path, rng = tmp_path / "copies", np.random.default_rng(0)
    copies = Copies(path)
    for page in range(20):
        copies.put({str(page): COPY})
    copies.close()
    whole = path.read_bytes()
    for _ in range(50):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="must"):
            Copies(path)
