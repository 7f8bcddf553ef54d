"""Hosts that are down, and pages that are gone and come back."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import pytest

from policies.live.adapters.copies import Copy
from policies.live.adapters.fetches import Answer, Fetches
from policies.live.adapters.outages import bring_back
from policies.live.scheduler import CrawlScheduler

MINUTE, HOUR = 1.0 / 1440.0, 1.0 / 24.0
NOW = 20_000.0
Site = Callable[[int, float], Answer]
"""Answers for the page of a number, after some hours."""


class Crawl:
    """A crawl of a host in which a fetch takes seconds, and of which the restarts lose memory."""

    def __init__(self, pages: int, per_hour: float, site: Site, keep_gone: float = 30.0) -> None:
        settings = {"start": NOW, "timeout": MINUTE, "retry": HOUR, "keep_gone": keep_gone}
        self.scheduler = CrawlScheduler("GreedyNCIS", 24.0 * per_hour, learn=True, **settings)
        self.urls = [f"https://a.example/{k}" for k in range(pages)]
        self.scheduler.add(self.urls, host="a.example")
        self.site, self.now = site, NOW
        self.notes = self.new_process()
        self.log: list[tuple[float, int, str]] = []

    def new_process(self) -> Fetches:
        return Fetches(self.scheduler, defaultdict(Copy), self.now)  # type: ignore[arg-type]

    def run(self, hours: float) -> Crawl:
        end = self.now + hours * HOUR
        while self.now < end:
            page, again = self.scheduler.next(self.now)
            if page is None:
                self.now = min(again, end)
                continue
            self.notes.begin(page, self.now)
            number, sent, self.now = self.urls.index(page), self.now, self.now + MINUTE / 30.0
            answer = self.site(number, (sent - NOW) / HOUR)
            outcome, _ = self.notes.end(page, answer, self.now)
            self.log.append(((sent - NOW) / HOUR, number, outcome))
        return self

    @property
    def gone(self) -> list[int]:
        return [k for k, url in enumerate(self.urls) if url not in self.scheduler]

    def fetches(self, start: float, end: float) -> list[int]:
        return [number for time, number, _ in self.log if start <= time < end]


def down(status: int, start: float, end: float, but: int = -1, wait: str | None = None) -> Site:
    """Return a site that answers a status for all pages but one from an hour to another."""

    def answer(page: int, hour: float) -> Answer:
        bad = start <= hour < end and page != but
        return Answer(status, retry_after=wait) if bad else Answer(200, content=str(page))

    return answer


@pytest.mark.parametrize(
    ("status", "pages", "per_hour", "but", "wait"),
    [
        (404, 3, 6.0, -1, None),
        (404, 5, 10.0, -1, None),
        (404, 5, 10.0, 0, None),  # the front page is answered
        (404, 40, 60.0, -1, None),
        (404, 40, 60.0, 0, None),
        (410, 40, 60.0, -1, None),
        (410, 4, 8.0, -1, None),
        (0, 40, 60.0, -1, None),
        (500, 5, 10.0, -1, None),
        (503, 40, 60.0, -1, "600"),
        (404, 1, 1.0, -1, None),
        (404, 2, 2.0, -1, None),
    ],
)
def test_an_outage_is_not_a_deletion(
    status: int, pages: int, per_hour: float, but: int, wait: str | None
) -> None:
    crawl = Crawl(pages, per_hour, down(status, 5.0, 11.0, but, wait)).run(10.9)
    assert crawl.gone == []
    if but < 0 and wait is None:
        assert len(crawl.fetches(8.0, 11.0)) <= max(3, pages % 5)  # it is held, or pages wait
    crawl.run(14.0)
    back = next(time for time, number, _ in crawl.log if time >= 11.0 and number != but)
    assert back < 20.0
    if pages > 2:
        assert set(crawl.fetches(back, back + 1.1)) >= {*range(pages)} - {but}
    assert crawl.gone == []


def test_an_outage_outlives_a_restart_and_a_short_recovery_but_not_a_week() -> None:
    crawl = Crawl(30, 60.0, down(404, 5.0, 11.0)).run(6.0)
    crawl.notes = crawl.new_process()
    crawl.run(18.0)
    assert crawl.gone == []
    assert set(crawl.fetches(11.0, 24.0)) == {*range(30)}
    site = down(404, 5.0, 11.0)
    flapping = Crawl(30, 60.0, lambda page, hour: site(page, hour if hour < 12.5 else hour - 7.5))
    assert flapping.run(20.0).gone == []
    gone = Crawl(30, 60.0, down(404, 5.0, 24.0 * 20.0))
    assert gone.run(24.0 * 7.0).gone == []
    assert 0 < len(gone.run(24.0 * 13.0).gone) <= 13  # one a day is asked
    bring_back(gone.scheduler, gone.urls)  # as listed anew
    assert gone.run(48.0).gone == []
    assert set(gone.fetches(24.0 * 20.0, 24.0 * 22.0)) == {*range(30)}


@pytest.mark.parametrize(
    ("dead", "pages", "status"),
    [(10, 200, 404), (10, 200, 410), (100, 200, 404), (100, 200, 410), (1, 2, 410), (2, 5, 404)],
)
def test_deleted_pages_are_gone(dead: int, pages: int, status: int) -> None:
    """Every so many pages are deleted after a day; the others are fetched as before."""
    every = pages // dead
    site = lambda page, hour: Answer(status if hour > 24.0 and page % every == 0 else 200)  # noqa: E731
    crawl = Crawl(pages, pages / 2.0, site).run(24.0 * 4.0)
    assert crawl.gone == [page for page in range(pages) if page % every == 0]
    assert set(crawl.fetches(90.0, 96.0)) >= {*range(pages)} - {*crawl.gone}


def test_pages_that_were_deleted_in_an_outage_do_not_begin_another_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def site(page: int, hour: float) -> Answer:
        return Answer(404 if 5.0 <= hour < (1e9 if page < 20 else 11.0) else 200)

    crawl = Crawl(40, 60.0, site).run(24.0 * 9.0)
    assert crawl.gone == [*range(20)]
    assert len(caplog.messages) <= 4  # down and back, perhaps twice


@pytest.mark.parametrize("status", [404, 410, 500])
@pytest.mark.parametrize(("pages", "dead"), [(12, 5), (5, 3), (4, 2), (3, 1)])
def test_a_host_with_dead_pages_keeps_the_others_in_an_outage(
    pages: int, dead: int, status: int
) -> None:
    """Pages die after an hour, and the host is down for 30 hours from hour 100 on."""

    def site(page: int, hour: float) -> Answer:
        if page < dead and hour > 1.0:
            return Answer(status)
        return Answer(404 if 100.0 <= hour < 130.0 else 200)

    crawl = Crawl(pages, float(pages), site).run(129.0)
    live = {*range(dead, pages)}
    assert not live & {*crawl.gone}
    if status != 500:
        assert {*crawl.gone} == {*range(dead)}
    crawl.run(25.0)
    assert set(crawl.fetches(130.0, 154.0)) >= live


def test_restarts_in_an_outage_lose_no_page() -> None:
    crawl = Crawl(12, 12.0, down(410, 24.0, 72.0)).run(26.0)
    for _ in range(20):
        crawl.notes = crawl.new_process()
        assert crawl.run(2.3).gone == []


@pytest.mark.parametrize("status", [403, 404, 500])
def test_dead_addresses_at_the_head_of_a_list_are_no_outage(status: int) -> None:
    crawl = Crawl(100, 100.0, lambda page, hour: Answer(status if page < 30 else 200)).run(3.0)
    assert set(crawl.fetches(0.0, 3.0)) == {*range(100)}


def test_a_host_that_bans_for_weeks_is_asked_a_few_times_a_day() -> None:
    crawl = Crawl(50, 50.0, lambda page, hour: Answer(403 if hour >= 24.0 else 200)).run(
        24.0 * 12.0
    )
    days = [len(crawl.fetches(24.0 * day, 24.0 * day + 24.0)) for day in range(2, 12)]
    assert all(1 <= count <= 5 for count in days), days
    assert crawl.gone == []


@pytest.mark.parametrize("until", [NOW + 1.0, math.inf])
def test_a_good_answer_releases_no_hold_of_others(until: float) -> None:
    crawl = Crawl(20, 20.0, down(500, 1.0, 9.0)).run(3.0)
    assert crawl.scheduler.opens("a.example") > crawl.now
    crawl.scheduler.hold("a.example", until)
    crawl.notes.begin(crawl.urls[19], crawl.now)
    crawl.notes.end(crawl.urls[19], Answer(200), crawl.now)
    assert crawl.scheduler.opens("a.example") == until
