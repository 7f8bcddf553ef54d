"""A recorded site as a web: what it answers, what its lists tell, and how it scores a crawler."""

from __future__ import annotations

import asyncio
import re
from email.utils import formatdate
from typing import Any

import numpy as np
import pytest

from crawl_envs.instances.traces import find, load
from policies.live.adapters.listings import read_listing
from scripts.live.replayed_web import FAULTS, Answer, Quality, ReplayedWeb, application, fresh_days

BEGIN, SPEED = 1_700_000_000.0, 0.5
TRACE = load(find("garden-handbook"))
BUSY = int(np.bincount(TRACE.change_page).argmax())


def web_of(quality: Quality | None = None, seed: int = 0) -> ReplayedWeb:
    web = ReplayedWeb(TRACE, SPEED, "http://{}:80", hosts=3, quality=quality, seed=seed)
    web.answer("127.0.0.1", "/", {}, BEGIN)
    return web


def ask(web: ReplayedWeb, path: str, day: float, **headers: str) -> Answer:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return web.answer("127.0.0.1", path, named, BEGIN + day / SPEED)


def test_a_page_changes_at_the_times_of_the_record_and_validators_tell() -> None:
    web = web_of()
    page = max(np.flatnonzero(web.validated), key=lambda page: web.changes[page].size)
    path, change = f"/p/{page}", float(web.changes[page][3])
    before, after = ask(web, path, change - 1e-6), ask(web, path, change + 1e-6)
    plain = [re.sub(rb"<script>.*?</script>", b"", each.body) for each in (before, after)]
    assert plain[0] != plain[1]
    assert before.headers["etag"] != after.headers["etag"]
    again = ask(web, path, change - 1e-6)
    assert again.body != before.body  # the counter
    assert re.sub(rb"<script>.*?</script>", b"", again.body) == plain[0]
    known = after.headers["etag"]
    assert ask(web, path, change + 1e-6, if_none_match=known).status == 304
    assert ask(web, path, change - 1e-6, if_none_match=known).status == 200
    second = formatdate(BEGIN + change / SPEED, usegmt=True)
    assert ask(web, path, change + 1e-6, if_modified_since=second).status == 304
    earlier = formatdate(BEGIN + change / SPEED - 2.0, usegmt=True)
    assert ask(web, path, change + 1e-6, if_modified_since=earlier).status == 200
    bare = int(np.flatnonzero(~web.validated & (TRACE.created <= 0.0))[0])
    assert "etag" not in ask(web, f"/p/{bare}", 1.0).headers


def test_pages_come_and_go_with_the_record() -> None:
    web = web_of()
    born = int(np.flatnonzero((TRACE.created > 0.0) & (TRACE.deleted > TRACE.created + 1.0))[0])
    assert ask(web, f"/p/{born}", TRACE.created[born] - 0.01).status == 404
    assert ask(web, f"/p/{born}", TRACE.created[born] + 0.01).status == 200
    died = int(np.flatnonzero(np.isfinite(TRACE.deleted))[0])
    assert ask(web, f"/p/{died}", TRACE.deleted[died] + 0.01).status == 404
    assert ask(web, "/p/65", 1.0).status == ask(web, "/elsewhere", 1.0).status == 404
    links = ask(web, "/", 30.0).body.decode()
    assert [int(page) for page in re.findall(r"/p/(\d+)", links)] == web.living(30.0).tolist()


def test_a_feed_has_recall_precision_and_a_window() -> None:
    quality = Quality(recall=0.6, precision=0.5, window=7)
    web = web_of(quality)
    truth = set(zip(TRACE.change_time, TRACE.change_page, strict=True))
    truth |= set(zip(TRACE.created, range(TRACE.num_pages), strict=True))
    true = [(day, int(page)) in truth for day, page in web.entries]
    assert np.mean(true) == pytest.approx(0.5, abs=0.05)
    changes = set(zip(TRACE.change_time, TRACE.change_page, strict=True))
    told = sum((day, int(page)) in changes for day, page in web.entries)
    assert told / TRACE.change_time.size == pytest.approx(0.6, abs=0.05)
    listing = read_listing(ask(web, "/feed.xml", 50.0).body, "http://127.0.0.1:80/feed.xml")
    latest = web.entries[web.entries[:, 0] <= 50.0][:-8:-1]
    assert [entry.url for entry in listing.entries] == [web.url(int(page)) for _, page in latest]
    days = (np.array([entry.day for entry in listing.entries]) * 86_400.0 - BEGIN) * SPEED
    np.testing.assert_allclose(days, latest[:, 0], atol=SPEED)  # whole seconds
    assert listing.faults == []


def test_a_sitemap_has_missing_late_and_lying_dates() -> None:
    web = web_of(Quality(missing=0.3, late=5.0, lying=0.3))
    listing = read_listing(ask(web, "/sitemap.xml", 60.0).body, "http://127.0.0.1:80/sitemap.xml")
    living = web.living(60.0)
    assert [entry.url for entry in listing.entries] == [web.url(int(page)) for page in living]
    days = (np.array([entry.day for entry in listing.entries]) * 86_400.0 - BEGIN) * SPEED
    missing, lying = web.undated[living], web.lying[living] & ~web.undated[living]
    assert missing.any()
    assert lying.any()
    assert np.isnan(days[missing]).all()
    np.testing.assert_allclose(days[lying], 60.0, atol=1e-5)
    late = [web.changes[page][web.changes[page] <= 55.0] for page in living]
    born = [max(TRACE.created[page], 0.0) for page in living]
    expected = np.array([x[-1] if x.size else day for x, day in zip(late, born, strict=True)])
    honest = ~missing & ~lying
    np.testing.assert_allclose(days[honest], expected[honest], atol=1e-5)


def test_faults_are_shares_of_the_pages_and_robots_change() -> None:
    robots = {0.0: "User-agent: *\n", 5.0: "User-agent: *\nDisallow: /\n"}
    web = web_of(Quality(faults=dict.fromkeys(FAULTS, 0.15), robots=robots), seed=1)
    living = web.living(0.0)
    some = {name: int(living[web.fault[living] == k][0]) for k, name in enumerate(FAULTS)}
    answers = {name: ask(web, f"/p/{page}", 1.0) for name, page in some.items()}
    assert answers["moved"].headers["location"] == f"/moved/{some['moved']}"
    assert ask(web, f"/moved/{some['moved']}", 1.0).status == 200
    assert answers["failing"].status == 500
    assert answers["endless"].endless
    assert 0.0 < answers["slow"].wait < 10.0 < answers["hanging"].wait
    assert [ask(web, "/robots.txt", day).body for day in (4.9, 5.1)] == [
        text.encode() for text in robots.values()
    ]


def test_the_same_seed_is_the_same_web() -> None:
    paths = ("/feed.xml", "/sitemap.xml", f"/p/{BUSY}")
    one, same, other = ([ask(web_of(seed=k), path, 40.0) for path in paths] for k in (3, 3, 4))
    assert one == same
    assert all(mine.body != others.body for mine, others in zip(one, other, strict=True))


def test_the_score_is_the_share_of_instants_at_which_a_copy_is_stale() -> None:
    web, rng = web_of(), np.random.default_rng(0)
    for day in np.sort(rng.random(400) * 60.0):
        page = int(rng.integers(TRACE.num_pages))
        etag = {"if_none_match": f'"{page}-1"'} if page % 2 else {}
        ask(web, f"/p/{page}", float(day), **etag)
    stale = lived = 0
    taken = [(asked.page, asked.day) for asked in web.log if asked.status != 404]
    copies = {page: [day for own, day in taken if own == page] for page in range(65)}
    for day in np.linspace(10.0, 50.0, 2001)[:-1] + 0.01:
        for page in web.living(day).tolist():
            before = [copy for copy in copies[page] if copy <= day]
            lived += 1
            changed = web.changes[page]
            stale += not before or bool(((before[-1] < changed) & (changed <= day)).any())
    assert web.score(10.0, 50.0)["stale"] == pytest.approx(stale / lived, abs=2e-3)
    assert web.score(10.0, 50.0)["fetches"] == sum(a.page >= 0 and a.day < 50.0 for a in web.log)


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        (b"", 200, '{"stale": null, "new": null, "fetches": 0.0}'),
        (b"since=abc", 400, "since and until must be days, got {'since': 'abc'}"),
    ],
)
def test_the_score_before_any_time_is_null(query: bytes, status: int, words: str) -> None:
    app, sent = application(ReplayedWeb(TRACE, SPEED, "http://{}:80")), list[Any]()
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/score", "headers": []}

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app({**scope, "query_string": query}, receive, send))
    assert [sent[0]["status"], sent[1]["body"].decode().strip()] == [status, words]


@pytest.mark.parametrize(
    ("copies", "fresh"),
    [
        ([], 0.0),
        ([0.0], 1.0),
        ([0.0, 3.0], 1.0 + 1.0),
        ([2.0, 4.0], 2.0 + 1.0),  # a change at the time of a copy is in it
        ([4.5], 0.5),
    ],
)
def test_a_copy_is_fresh_until_the_next_change(copies: list[float], fresh: float) -> None:
    assert fresh_days(copies, np.array([1.0, 4.0]), 0.0, 5.0) == fresh


def test_a_page_that_is_deleted_is_not_fresh_any_more() -> None:
    assert fresh_days([2.5], np.array([1.0, 4.0]), 0.0, 3.0) == 0.5
