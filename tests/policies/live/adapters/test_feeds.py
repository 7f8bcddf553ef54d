"""Feeds and sitemaps: what is read of good and of hostile files, and what is told of it, once."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import math
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from policies.live.adapters import feeds, listings
from policies.live.adapters.feeds import Memory, Polls, tell
from policies.live.adapters.listings import Entry, Listing, read_listing
from policies.live.scheduler import CrawlScheduler, DurableScheduler

AT = "https://a.example/feed.xml"
PAGE = "https://a.example/1"
DAY = 19724.0  # 2024-01-02
SITEMAP = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="i">%s</urlset>'
URL = (
    "<url><loc> %s </loc><lastmod>2024-01-02T12:00:00Z</lastmod><i:i><i:loc>/i</i:loc></i:i></url>"
)
RSS = '<?xml version="1.0"?><rss version="2.0"><channel>%s</channel></rss>'
ITEM = (
    "<item><guid>%s</guid><link>/1#top</link><pubDate>Tue, 02 Jan 2024 13:00 +0100</pubDate></item>"
)
ATOM = '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>i</id>%s</entry></feed>'
LINK = '<link href="1"/>'
DATED = SITEMAP % "<url><loc>/1</loc><lastmod>%s</lastmod></url>"
BOMB = '<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>'
INDEX = "<sitemapindex>%s</sitemapindex>"


@pytest.mark.parametrize(
    ("text", "kind", "urls", "day", "exact"),
    [
        (SITEMAP % (URL % PAGE), "sitemap", [PAGE], DAY + 0.5, True),
        ("\n<?xml version='1.0'?>" + SITEMAP % (URL % "/1"), "sitemap", [PAGE], DAY + 0.5, True),
        (SITEMAP % (2 * (URL % "/1")), "sitemap", [PAGE], DAY + 0.5, True),
        (DATED % "2024-01-02", "sitemap", [PAGE], DAY, False),
        (DATED % "2024-01", "sitemap", [PAGE], DAY - 1.0, False),
        (DATED % "2023", "sitemap", [PAGE], DAY - 366.0, False),
        (SITEMAP % "", "sitemap", [], None, None),
        (RSS % (ITEM % 1), "feed", [PAGE], DAY + 0.5, True),
        (RSS % (ITEM % 1 + ITEM % 1 + ITEM % 2), "feed", [PAGE, PAGE], DAY + 0.5, True),
        (ATOM % (LINK + "<updated>2024-01-02T00:00:00Z</updated>"), "feed", [PAGE], DAY, False),
        (
            ATOM % (LINK + "<published>2024-01-02T12:00Z</published>"),
            "feed",
            [PAGE],
            DAY + 0.5,
            True,
        ),
        (ATOM % LINK, "feed", [PAGE], math.nan, False),
        (INDEX % "<sitemap><loc>/1</loc></sitemap>", "index", [PAGE], math.nan, False),
    ],
)
def test_entries_are_read(
    text: str, kind: str, urls: list[str], day: float | None, exact: bool | None
) -> None:
    for body in (text.encode(), gzip.compress(text.encode())):
        found = read_listing(body, AT)
        assert (found.kind, [entry.url for entry in found.entries]) == (kind, urls)
        assert found.faults == []
        for entry in found.entries:
            assert entry.day == pytest.approx(day, nan_ok=True)
            assert entry.exact == exact


def test_encodings_are_those_of_the_file() -> None:
    for name in ("utf-8", "utf-16", "windows-1252"):
        text = f"<?xml version='1.0' encoding='{name}'?>" + SITEMAP % (URL % "/caf\xe9")
        [entry] = read_listing(text.encode(name), AT).entries
        assert entry.url == "https://a.example/caf\xe9"


def test_damaged_files_are_read_as_far_as_they_go() -> None:
    half = (SITEMAP % (URL % "/1" + URL % "/2"))[:-40].encode()
    cut = (RSS % (ITEM % 1 + ITEM % 2))[:-70].encode()
    short = gzip.compress((RSS % (ITEM % 1 + ITEM % 2)).encode())[:-8]
    for body, count in ((half, 1), (cut, 1), (short, 2)):
        found = read_listing(body, AT)
        assert len(found.entries) == count
        [fault] = found.faults
        assert fault.startswith(f"{AT} is damaged, and read as far as it goes: ")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "must be a feed or a sitemap"),
        (b"<html><body>404</body></html>", "must be a feed or a sitemap"),
        (b"/etc/passwd", "must be a feed or a sitemap"),
        (b"\x1f\x8b\x08xx", "must be a feed or a sitemap"),
        (b"<!DOCTYPE html><p>Not found</p>", "must be a feed or a sitemap"),
        (b"See https://a.example/ for help\nand wait\nhttps://a.example/1", "must be a feed or a"),
        (gzip.compress(bytes(60 * 2**20)), "must have at most 52428800 bytes"),
        (200_000 * gzip.compress(b""), "must have at most 2000 members of gzip"),
    ],
    ids=range(8),
)
def test_what_is_no_feed_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        read_listing(body, AT)
    assert str(error.value).startswith(AT)


def test_long_files_are_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "MAX_ENTRIES", 2)
    for text in (SITEMAP % (URL % 1 + URL % 2 + URL % 3), RSS % (ITEM % 1 + ITEM % 2 + ITEM % 3)):
        found = read_listing(text.encode(), AT)
        assert len(found.entries) == 2
        assert "more than 2 entries" in found.faults[0]


def test_a_full_disk_is_a_fault_and_the_feed_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "feed.xml"
    file.write_text(RSS % (ITEM % 1).replace("/1", PAGE))
    told, polls = Told(), Polls({str(file): 0}, tmp_path / "told", 1.0, DAY)
    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", lambda *_: (_ for _ in ()).throw(OSError("no space")))
        assert polls.fetch(told, str(file), DAY + 1.0) == ["no space"]  # type: ignore[arg-type]
    assert polls.fetch(told, str(file), DAY + 2.0) == []  # type: ignore[arg-type]
    assert len(told.calls) == 2


def entry(url: str, day: float = math.nan, *, exact: bool = True, name: str = "") -> Entry:
    read = listings._entry([AT], url, name, f"{day} {':' * exact}")
    return read._replace(day=day, exact=exact)


def listed(*entries: Entry, kind: str = "feed", faults: tuple[str, ...] = ()) -> Listing:
    return Listing(kind, list(entries), list(faults))


class Told:
    """Takes note of the calls of a scheduler; fails at the signal whose turn it is."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> None:
            if self.fails and name == "signal":
                raise OSError("the process ends")
            self.calls.append((name, *arguments))

        return call

    def __contains__(self, page: str) -> bool:
        return True

    def signals(self) -> list[tuple[str, float]]:
        found = [
            pair
            for name, *rest in self.calls
            if name == "signal"
            for pair in zip(*rest[:2], strict=True)
        ]
        self.calls = []
        return found


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "memory.json")


def test_what_is_listed_is_told_once(memory: Memory) -> None:
    told: Any = Told()
    first = listed(entry("/1", 9.5), entry("/2", 9.6))
    tell(told, memory, first, 10.0)
    assert told.signals() == [(PAGE, 9.5), ("https://a.example/2", 9.6)]
    for now in (10.1, 10.2):
        again = Memory(memory.path)  # after a restart
        tell(told, again, first, now)
        assert told.signals() == []
    more = listed(entry("/1", 10.25), entry("/1", 9.5))
    told.fails = True
    for _ in range(2):  # a crash before it is told loses nothing
        with pytest.raises(OSError, match="ends"):
            tell(told, Memory(memory.path), more, 10.3)
    told.fails = False
    tell(told, Memory(memory.path), more, 10.4)
    assert told.signals() == [(PAGE, 10.25)]
    assert len(Memory(memory.path).keys) == 2  # no more than it lists


def test_damaged_and_empty_files_are_no_news_later(memory: Memory) -> None:
    told: Any = Told()
    whole = listed(entry("/1", 9.5), entry("/2", 9.6))
    tell(told, memory, whole, 10.0)
    tell(told, memory, listed(entry("/1", 9.5), faults=("it is damaged",)), 10.1)
    tell(told, memory, listed(), 10.2)
    told.signals()
    tell(told, memory, whole, 10.3)
    assert told.signals() == []
    memory.path.write_text("[1.0")
    with pytest.raises(ValueError, match="must be what a feed listed"):
        Memory(memory.path)


@pytest.mark.parametrize(
    ("day", "exact", "first", "later"),
    [
        (99.95, True, 99.95, 99.95),  # since the last poll, at 99.9
        (99.88, True, 99.88, 99.88),  # held back by a cache
        (99.5, True, 99.5, 100.0),  # by a clock that is late, or a draft of the day before
        (98.0, True, 98.0, 100.0),
        (100.5, True, 100.0, 100.0),
        (1e6, True, 100.0, 100.0),
        (99.0, False, 99.0, 100.0),
        (math.nan, False, math.nan, 100.0),
    ],
)
def test_times_are_dates_where_these_can_be_right(
    memory: Memory, day: float, exact: bool, first: float, later: float
) -> None:
    new = listed(entry("/1", day, exact=exact), entry("/0", 99.89, name="old"))
    assert memory.signals(new, 100.0)[0][1] == pytest.approx(first, nan_ok=True)
    memory.keep(listed(entry("/0", 99.89, name="old")), 99.9)
    assert memory.signals(new, 100.0) == [(PAGE, later)]


def test_entries_that_were_lost_are_a_gap(memory: Memory) -> None:
    told: Any = Told()

    def gaps(*entries: Entry, now: float, kind: str = "feed") -> list[Any]:
        tell(told, memory, listed(*entries, kind=kind), now)
        found = [call[1:] for call in told.calls if call[0] == "source_gap"]
        told.calls = []
        return found

    a, b, c, d = (entry(f"/{name}", 1.0) for name in "abcd")
    assert gaps(a, b, now=1.0) == []  # nothing was before
    assert gaps(b, c, now=2.0) == []
    assert gaps(now=3.0) == []  # an empty file says nothing
    assert gaps(d, now=4.0) == [(0, 3.0)]
    assert gaps(d._replace(key=d.key[:16] + "00000000"), now=5.0) == []  # another date
    assert gaps(a, now=6.0, kind="sitemap") == []


def test_pages_are_added_and_gone_ones_come_back_as_new_entries(
    memory: Memory, tmp_path: Path
) -> None:
    fresh = CrawlScheduler("Greedy", 100.0, learn=True, keep_gone=30.0)
    with DurableScheduler(tmp_path / "state", fresh) as scheduler:
        tell(scheduler, memory, listed(entry("/1", 0.5)), 1.0)
        assert len(scheduler) == 0  # without columns
        tell(scheduler, memory, listed(entry("/2"), entry("/3", 0.5)), 1.0, columns={})
        assert "https://a.example/2" in scheduler
        scheduler.report(["https://a.example/2"], 1.5, "gone")
        scheduler.report(["https://a.example/3"], 1.5)
        scheduler.limit_hosts("a.example", most=1)
        both = listed(entry("/2", 1.8), entry("/3", 1.9))
        tell(scheduler, memory, both, 2.0, columns={"importance": 2.0})
        assert "https://a.example/2" in scheduler
        scheduler.report(["https://a.example/2"], 2.0, "gone")
        tell(scheduler, memory, both, 2.1, columns={"importance": 2.0})
        assert "https://a.example/2" not in scheduler  # it is the same entry
        tell(scheduler, memory, listed(entry("/2", 2.2)), 2.2)
        assert scheduler.describe("https://a.example/2")["due"] == 3.0  # gone twice
        assert scheduler.describe("https://a.example/3")["signals"] == 1
        assert len(scheduler.next_batch(3.0, 5)) == 1


class Site(http.server.BaseHTTPRequestHandler):
    files: ClassVar[dict[str, bytes]] = {}
    asked: ClassVar[list[tuple[str, bool]]] = []  # the path, and whether it is not modified
    users: ClassVar[dict[str, str | None]] = {}  # by host and path
    moved: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        self.users[self.headers["Host"].partition(":")[0] + self.path] = self.headers.get(
            "Authorization"
        )
        if self.path in self.moved:
            self.send_response(302)
            self.send_header("Location", self.moved[self.path])
            self.end_headers()
            return
        body = self.files.get(self.path)
        tag = f'"\xe9{zlib.crc32(body or b"")}"'
        self.asked.append((self.path, self.headers.get("If-None-Match") == tag))
        self.send_response(404 if body is None else 304 if self.asked[-1][1] else 200)
        self.send_header("ETag", tag)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body or b"")

    def log_message(self, *_: Any) -> None:
        pass


def poll(told: Any, address: str, folder: Path, now: float = DAY + 1.0) -> list[str]:
    """Poll a feed, or an index and its sitemaps, once; return the faults."""
    faults, polls = list[str](), Polls({address: 0}, folder, 0.01, now)
    polls.due = dict.fromkeys(polls.due, now)
    while (feed := polls.next(now)) is not None:
        faults += polls.fetch(told, feed, now)
    return faults


@pytest.fixture
def site() -> Iterator[str]:
    Site.files, Site.asked, Site.users, Site.moved = {}, [], {}, {}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def index(*links: str) -> bytes:
    return (INDEX % "".join(f"<sitemap><loc>{k}</loc></sitemap>" for k in links)).encode()


def test_a_sitemap_of_two_indexes_is_polled_once_until_both_drop_it(
    site: str, tmp_path: Path
) -> None:
    told: Any = Told()
    polls = Polls({f"{site}/a.xml": 0, f"{site}/b.xml": 1}, tmp_path, 1.0, DAY)

    def polled(now: float) -> list[str]:
        Site.asked = []
        while (feed := polls.next(now)) is not None:
            assert polls.fetch(told, feed, now) == []
        return [path for path, _ in Site.asked]

    def told_of() -> list[tuple[Any, int]]:
        found, told.calls = [(call[1], call[3]) for call in told.calls if call[0] == "signal"], []
        return found

    Site.files["/1.xml"] = (SITEMAP % (URL % "/1")).encode()
    Site.files["/2.xml"] = (SITEMAP % (URL % "/2")).encode()
    Site.files["/a.xml"] = index("/1.xml", "/2.xml")
    Site.files["/b.xml"] = index("/2.xml")
    assert polled(DAY) == ["/a.xml", "/b.xml", "/1.xml", "/2.xml"]
    assert told_of() == [([f"{site}/1"], 0), ([f"{site}/2"], 0)]
    Site.files["/a.xml"] = index("/1.xml")
    assert sorted(polled(DAY + 1.0)) == ["/1.xml", "/2.xml", "/a.xml", "/b.xml"]
    Site.files["/2.xml"] = (SITEMAP % (URL % "/3")).encode()
    polled(DAY + 2.0)
    assert told_of() == [([f"{site}/3"], 1)]
    Site.files["/b.xml"] = index()
    assert sorted(polled(DAY + 3.0)) == ["/1.xml", "/a.xml", "/b.xml"]
    assert len(list(tmp_path.glob("feed-*.json"))) == 1


def test_a_feed_that_is_not_modified_says_nothing_new(site: str, tmp_path: Path) -> None:
    told: Any = Told()
    polls = Polls({f"{site}/f.xml": 0}, tmp_path, 1.0, DAY)
    Site.files["/f.xml"] = (RSS % (ITEM % 1))[:-30].encode()
    for day in range(5):
        assert bool(polls.fetch(told, f"{site}/f.xml", DAY + day)) == (day < 2), day
        if day == 1:  # damaged until then, so it was read again
            Site.files["/f.xml"] = (RSS % (ITEM % 1)).encode()
    assert [same for _, same in Site.asked] == [False, False, False, True, True]
    [kept] = tmp_path.glob("feed-*.json")
    assert Memory(kept).polled == DAY + 4.0
    polls.note(f"{site}/f.xml", DAY + 5.0, "it cannot be read")
    assert polls.last[f"{site}/f.xml"][0::5] == (DAY + 5.0, ["it cannot be read"])
    assert polls.fetch(told, f"{site}/f.xml", DAY + 6.0) == []  # 304
    assert len(Memory(kept).keys) == 1


def test_an_answer_without_validators_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: Any = Told()
    reads = []

    def read(*answer: Any) -> Listing:
        reads.append(day)
        return listings.listed(*answer)

    monkeypatch.setattr(feeds, "listed", read)
    file = tmp_path / "f.xml"
    polls = Polls({str(file): 0}, tmp_path / "told", 1.0, DAY)
    whole, other = ((RSS % (ITEM % k).replace("/1", PAGE)).encode() for k in (1, 2))
    for day, content in enumerate((whole, whole, other[:-30], other[:-30], other, other)):
        file.write_bytes(content)
        assert bool(polls.fetch(told, str(file), DAY + day)) == (day in (2, 3))  # said again
        assert Memory(polls.path(str(file))).polled == DAY + day
    assert reads == [0, 2, 4]


def test_polls_go_on_after_a_restart(site: str, tmp_path: Path) -> None:
    told: Any = Told()
    Site.files["/i.xml"] = index("/1.xml", "/2.xml")
    Site.files["/1.xml"] = (SITEMAP % (URL % "/1")).encode()
    Site.files["/2.xml"] = (SITEMAP % (URL % "/2"))[:-9].encode()  # damaged
    Site.files["/f.xml"] = b"<html>Error</html>"

    def run(now: float) -> tuple[list[tuple[str, bool]], list[str], float]:
        polls, faults = Polls({f"{site}/i.xml": 0, f"{site}/f.xml": 0}, tmp_path, 1.0, now), []
        Site.asked = []
        while (feed := polls.next(now)) is not None:
            faults += polls.fetch(told, feed, now)
        return Site.asked, faults, min(polls.due.values())

    asked, faults, due = run(DAY)
    assert ([path for path, _ in asked], due) == (["/i.xml", "/f.xml", "/1.xml", "/2.xml"], DAY + 1)
    assert len(told.signals()) == 2
    assert run(DAY + 0.25) == ([], [], DAY + 1.0)
    reads, feeds_listed = [], feeds.listed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeds, "listed", lambda *a: reads.append(a[1]) or feeds_listed(*a))
        asked, again, due = run(DAY + 1.0)
    assert sorted(asked) == [
        ("/1.xml", True),
        ("/2.xml", False),
        ("/f.xml", False),
        ("/i.xml", True),
    ]
    assert (reads, sorted(again), due) == ([], sorted(faults), DAY + 2.0)
    assert len(again) == 2  # of what is damaged, and not read again
    assert run(DAY - 9.0)[2] == DAY - 8.0  # a clock that was ahead
    for kept in tmp_path.glob("feed-*.json"):
        kept.unlink()  # what was told is lost, so the validators do not count
    assert [same for path, same in run(DAY + 9.0)[0] if path == "/1.xml"] == [False]
    assert len(told.signals()) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"u": 1}',
        '{"u": ["x"]}',
        "{}}",
    ],
)
def test_damaged_last_polls_are_an_error_with_the_way_out(tmp_path: Path, text: str) -> None:
    path = tmp_path / "polls.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"polls.json must be the last polls.*Delete it: "):
        Polls({AT: 0}, tmp_path, 1.0, DAY)
    path.unlink()
    assert Polls({AT: 0}, tmp_path, 1.0, DAY).next(DAY) == AT


def test_user_and_password_are_sent_and_written_nowhere(site: str, tmp_path: Path) -> None:
    told: Any = Told()
    with_user = site.replace("://", "://me:s%40cret@")
    Site.files["/i.xml"] = index("/1.xml", "/2.xml", "/x.xml")
    Site.files["/1.xml"] = (SITEMAP % (URL % "1" + URL % f"{with_user}/2")).encode()
    Site.files["/3.xml"] = (SITEMAP % (URL % "3")).encode()
    Site.moved = {"/2.xml": "/3.xml", "/x.xml": site.replace("127.0.0.1", "localhost") + "/1.xml"}
    faults = poll(told, f"{with_user}/i.xml", tmp_path, now=DAY)
    Site.files.clear()
    faults += poll(told, f"{with_user}/i.xml", tmp_path, now=DAY + 1.0)
    assert len(faults) == 4  # nothing is there any more, and three have not moved
    header = "Basic bWU6c0BjcmV0"  # of me:s@cret
    assert {Site.users[f"127.0.0.1/{name}.xml"] for name in "i123x"} == {header}
    assert Site.users["localhost/1.xml"] is None
    urls = [url for call in told.calls for url in call[1]]
    assert {f"{site}/1", f"{site}/2", f"{site}/3"} < set(urls)
    written = [str(path) + path.read_text() for path in tmp_path.rglob("*.json")]
    assert not [text for text in [*faults, *urls, *written] if "cret" in text or "bWU6" in text]
    polls = Polls({f"{with_user}/i.xml": 0}, tmp_path / "other", 1.0, DAY)
    assert [polls.next(DAY)] == [f"{site}/i.xml"]
    with pytest.raises(ValueError, match="must differ in more than their users") as error:
        Polls({AT: 0, AT.replace("://", "://me:cret@"): 0}, tmp_path, 1.0, DAY)
    assert "cret" not in str(error.value)


def test_polls_read_indexes_with_their_sitemaps(site: str, tmp_path: Path) -> None:
    told: Any = Told()
    Site.files["/i.xml"] = index("/1.xml", "/2.xml.gz", "/404", "http://other.example/", "/i.xml")
    Site.files["/1.xml"] = (SITEMAP % (URL % "/1")).encode()
    Site.files["/2.xml.gz"] = gzip.compress((SITEMAP % (URL % "/2")).encode())
    faults = poll(told, f"{site}/i.xml", tmp_path, now=DAY + 1.0)
    assert [url for url, _ in told.signals()] == [f"{site}/1", f"{site}/2"]
    assert "without a URL of a page (1, as '/i.xml')" in faults[0]
    assert "other hosts" in faults[1]
    assert f"{site}/404 cannot be read: " in faults[2]
    assert len(faults) == 3
    poll(told, f"{site}/i.xml", tmp_path, now=DAY + 1.1)
    assert told.signals() == []
    Site.files["/i.xml"] = index("/1.xml")
    assert poll(told, f"{site}/i.xml", tmp_path, now=DAY + 1.2) == []
    assert len(list(tmp_path.rglob("feed-*.json"))) == 1
    [fault] = poll(told, f"{site}/nowhere", tmp_path)
    assert fault == f"{site}/nowhere cannot be read: HTTP Error 404: Not Found"
    assert len(list(tmp_path.rglob("feed-*.json"))) == 1


def test_polls_of_slow_servers_and_of_files_end(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: Any = Told()
    path = tmp_path / "feed.xml"
    path.write_text(RSS % (ITEM % 1).replace("/1#top", PAGE))
    assert poll(told, str(path), tmp_path / "a") == []
    assert told.signals() == [(PAGE, DAY + 0.5)]
    [kept] = (tmp_path / "a").rglob("feed-*.json")
    kept.write_text("[")
    assert "must be what a feed listed" in poll(told, str(path), tmp_path / "a")[0]
    assert "No such file" in poll(told, "nowhere.xml", tmp_path / "b")[0]
    monkeypatch.setattr(feeds, "PATIENCE", 0.0001)
    Site.files["/slow"] = (RSS % (2**22 * " ")).encode()
    assert "cannot be read" in poll(told, f"{site}/slow", tmp_path / "c")[0]


def stale_share(behind: float, folder: Path, *, trusting: bool = False) -> float:
    """Return how stale pages are whose changes a feed dates so many days late; 100 pages, 30 days.

    It lists the last 80 changes, is polled each hour, and there are 30 fetches a day. ``trusting``
    takes its dates as they are.
    """
    rng, start = np.random.default_rng(0), 20_000.0
    rates = rng.gamma(1.0, 0.15, 100)
    changes = [np.sort(rng.uniform(0.0, 30.0, rng.poisson(rate * 30.0))) for rate in rates]
    events = sorted((day, page) for page, days in enumerate(changes) for day in days)
    urls = [f"https://a.example/{page}" for page in range(100)]
    scheduler = CrawlScheduler("GreedyNCIS", 30.0, start=start, learn=True, timeout=0.1, burst=0.1)
    scheduler.add(urls, last_crawl=start, change_rate=rates, recall=0.9, false_signal_rate=0.01)
    fetched, memory = [[0.0] for _ in urls], Memory(folder / f"{behind}{trusting}.json")
    for hour in range(30 * 24):
        now = hour / 24.0
        some = [(n, day, page) for n, (day, page) in enumerate(events) if day <= now][-80:]
        own = [entry(urls[page], start + day - behind, name=str(n)) for n, day, page in some]
        if trusting and own:
            scheduler.signal([each.url for each in own], [each.day for each in own])
        elif own:
            tell(scheduler, memory, listed(*own), start + now)
        for url in scheduler.next_batch(start + now, 2).tolist():
            page = urls.index(url)
            before, after = np.searchsorted(changes[page], [fetched[page][-1], now])
            fetched[page].append(now)
            scheduler.report([url], start + now, changed=[bool(after > before)])
    stale = 0.0
    for days, times in zip(changes, fetched, strict=True):
        for begin, end in zip(times, [*times[1:], 30.0], strict=True):
            first = days[days > begin].min(initial=end)
            stale += end - first
    return stale / (100 * 30.0)


@pytest.mark.slow
def test_wrong_dates_cost_little(tmp_path: Path) -> None:
    right = stale_share(0.0, tmp_path)
    for behind in (-0.5, 0.5, 2.0):
        assert abs(stale_share(behind, tmp_path) - right) < 0.005
    assert stale_share(2.0, tmp_path, trusting=True) > 2.0 * right
