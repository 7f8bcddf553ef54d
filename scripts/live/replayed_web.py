"""Serve a recorded site on this machine: pages that change at the times of the record.

The clock starts with the first request; --speed sets the days of the record per second. Each page
(/p/3) has its current text, links to other pages, and a counter that differs in every answer. Seven
of ten pages have an ETag and a Last-Modified, the others no validators. There are also a page of
links to all pages (/), a sitemap (/sitemap.xml), a feed of changes (/feed.xml) and a robots.txt.
/score is the share of page time in which the crawler had no fresh copy; a full answer or a 304
makes a fresh copy.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime
from typing import Annotated, Any, NamedTuple

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from typer import Argument, Option

from crawl_envs.instances.traces import Trace, find, load
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import one_of, quantity, share
from scripts.cli.commands import command
from scripts.cli.options import plain_value
from scripts.present.tables import console

WORDS = ("page", "crawl", "fresh", "copy", "host", "change", "signal", "feed", "budget", "rate")
FAULTS = ("moved", "slow", "hanging", "failing", "endless")
"""Faults of pages: redirect to another path, answer late, never, with status 500, or endlessly."""
VALIDATED = 0.7
SLOW, HANGING = 1.0, 3600.0
"""Seconds until slow and hanging pages answer."""
ATOM = "http://www.w3.org/2005/Atom"
SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
ROBOTS = "User-agent: *\nDisallow:\n"


@dataclass(frozen=True)
class Quality:
    """Quality of the feed and the sitemap, and faults.

    Attributes:
        recall: share of the changes in the feed, which has all new pages.
        precision: share of true entries in the feed, in (0, 1].
        window: number of entries in the feed, the latest ones.
        missing: share of the pages without a date in the sitemap.
        late: days until a change is in the sitemap.
        lying: share of the pages whose date in the sitemap is that of the request.
        faults: shares of the pages by fault, of ``FAULTS``.
        robots: contents of robots.txt by first day.
    """

    recall: float = 0.8
    precision: float = 0.9
    window: int = 60
    missing: float = 0.1
    late: float = 1.0
    lying: float = 0.1
    faults: Mapping[str, float] = field(default_factory=dict)
    robots: Mapping[float, str] = field(default_factory=lambda: {0.0: ROBOTS})


class Answer(NamedTuple):
    """An HTTP answer, sent after ``wait`` seconds; if ``endless``, its body is repeated forever."""

    status: int
    headers: dict[str, str]
    body: bytes
    wait: float = 0.0
    endless: bool = False


class LoggedRequest(NamedTuple):
    """A logged request: day, host, path, page (-1 for no page), and status of the answer."""

    day: float
    host: str
    path: str
    page: int
    status: int


class ReplayedWeb:
    """A recorded site that answers requests, and scores the crawler's copies.

    Args:
        trace: the record.
        speed: days of the record per second, > 0.
        base: address without a path; with ``{}`` for the host of a page, if there are several.
        hosts: number of hosts, which share the directories.
        quality: quality of the feed and the sitemap; defaults of :class:`Quality` if None.
        seed: seed of texts, faults and feed.

    Attributes:
        begin: time of the first request, in seconds since 1970.
        log: all requests.
    """

    def __init__(
        self,
        trace: Trace,
        speed: float,
        base: str,
        *,
        hosts: int = 1,
        quality: Quality | None = None,
        seed: int = 0,
    ) -> None:
        self.trace, self.speed, self.base, self.hosts = trace, speed, base, hosts
        self.quality, self.seed = quality or Quality(), seed
        self.begin, self.log = math.nan, list[LoggedRequest]()
        rng, m = np.random.default_rng(seed), trace.num_pages
        order = np.argsort(trace.change_page, kind="stable")
        ends = np.searchsorted(trace.change_page[order], np.arange(1, m))
        self.changes = np.split(trace.change_time[order], ends)
        drawn = rng.random((4, m))
        self.validated, self.undated = drawn[0] < VALIDATED, drawn[1] < self.quality.missing
        self.lying = drawn[2] < self.quality.lying
        shares = np.cumsum([self.quality.faults.get(name, 0.0) for name in FAULTS])
        self.fault = np.searchsorted(shares, drawn[3], side="right")
        self.entries = self._entries(rng)

    def _entries(self, rng: np.random.Generator) -> np.ndarray:
        """Return the true and false entries of the feed, rows (day, page) sorted by day."""
        trace, quality = self.trace, self.quality
        announced = rng.random(trace.change_time.size) < quality.recall
        born = np.flatnonzero(trace.created > 0.0)
        changes = np.stack([trace.change_time, trace.change_page], axis=1)[announced]
        true = np.concatenate([changes, np.stack([trace.created[born], born], axis=1)])
        count = round(len(true) * (1.0 / quality.precision - 1.0))
        page, day = rng.integers(trace.num_pages, size=count), rng.random(count) * trace.days
        lives = (trace.created[page] < day) & (day < trace.deleted[page])
        entries = np.concatenate([true, np.stack([day, page], axis=1)[lives]])
        return entries[np.argsort(entries[:, 0], kind="stable")]

    # Times and addresses

    def day(self, now: float) -> float:
        """Return the day of the record at a time in seconds since 1970."""
        if math.isnan(self.begin):
            self.begin = now
        return (now - self.begin) * self.speed

    def date(self, day: float) -> str:
        """Return the crawler's date and time, in ISO 8601, at which the record reaches a day."""
        moment = np.datetime64(round((self.begin + day / self.speed) * 1e6), "us")
        return f"{moment}Z"

    def url(self, page: int) -> str:
        """Return the URL of a page, given its number."""
        return f"{self.base.format(self.host(page))}/p/{page}"

    def host(self, page: int) -> str:
        """Return the host of a page, 127.0.0.N; pages of a directory share a host."""
        return f"127.0.0.{1 + int(self.trace.directory[page]) % self.hosts}"

    def living(self, day: float) -> np.ndarray:
        """Return the numbers of the pages that exist on a day of the record."""
        return np.flatnonzero((self.trace.created <= day) & (day < self.trace.deleted))

    # Answers

    def answer(self, host: str, path: str, headers: Mapping[str, str], now: float) -> Answer:
        """Return the answer to a request at a time in seconds since 1970, and log the request."""
        day, page = self.day(now), -1
        kind, _, number = path.strip("/").rpartition("/")
        texts = {"": self._links, "sitemap.xml": self._sitemap, "feed.xml": self._feed}
        texts["robots.txt"] = self._robots
        if kind in ("p", "moved") and number.isdecimal() and int(number) < self.trace.num_pages:
            page = int(number)
            answer = self._page(page, kind, headers, day)
        elif path.strip("/") in texts:
            answer = Answer(200, *texts[path.strip("/")](day))
        else:
            answer = Answer(404, {}, b"")
        self.log.append(LoggedRequest(day, host, path, page, answer.status))
        return answer

    def _page(self, page: int, kind: str, headers: Mapping[str, str], day: float) -> Answer:
        if not self.trace.created[page] <= day < self.trace.deleted[page]:
            return Answer(404, {}, b"gone")
        fault = (*FAULTS, "")[self.fault[page]]
        if fault == "failing":
            return Answer(500, {}, b"failed")
        if fault == "moved" and kind == "p":
            return Answer(301, {"location": f"/moved/{page}"}, b"")
        wait = {"slow": SLOW, "hanging": HANGING}.get(fault, 0.0)
        version = int(np.searchsorted(self.changes[page], day, side="right"))
        validators = {}
        if self.validated[page]:
            changed = self.changes[page][version - 1] if version else 0.0
            modified = math.floor(self.begin + float(changed) / self.speed)
            date = formatdate(modified, usegmt=True)
            validators = {"etag": f'"{page}-{version}"', "last-modified": date}
            if _unmodified(headers, validators["etag"], modified):
                return Answer(304, validators, b"", wait)
        fields = {**validators, "content-type": "text/html; charset=utf-8"}
        return Answer(200, fields, self._text(page, version), wait, fault == "endless")

    def _text(self, page: int, version: int) -> bytes:
        """Return the HTML of a version of a page; all versions have the same links."""
        links = np.random.default_rng([self.seed, page]).integers(self.trace.num_pages, size=5)
        rng = np.random.default_rng([self.seed, page, version])
        words = " ".join(rng.choice(WORDS, size=int(rng.integers(100, 400))))
        parts = [f'<a href="{self.url(int(link))}">{link}</a>' for link in links]
        script = f"<script>let answers = {len(self.log)};</script>"
        body = f"<h1>Page {page}</h1>{script}<p>{words}</p>{' '.join(parts)}"
        return f"<html><title>{page}</title><body>{body}</body></html>".encode()

    def _links(self, day: float) -> tuple[dict[str, str], bytes]:
        links = "".join(f'<a href="{self.url(int(p))}">{p}</a>' for p in self.living(day))
        return {"content-type": "text/html"}, f"<html><body>{links}</body></html>".encode()

    def _robots(self, day: float) -> tuple[dict[str, str], bytes]:
        text = self.quality.robots[max(since for since in self.quality.robots if since <= day)]
        return {"content-type": "text/plain"}, text.encode()

    def _sitemap(self, day: float) -> tuple[dict[str, str], bytes]:
        rows = []
        for page in self.living(day).tolist():
            listed = self.changes[page][self.changes[page] <= day - self.quality.late]
            changed = listed[-1] if listed.size else max(self.trace.created[page], 0.0)
            date = self.date(day if self.lying[page] else float(changed))
            lastmod = "" if self.undated[page] else f"<lastmod>{date}</lastmod>"
            rows.append(f"<url><loc>{self.url(page)}</loc>{lastmod}</url>")
        text = f'<urlset xmlns="{SITEMAPS}">{"".join(rows)}</urlset>'
        return {"content-type": "application/xml"}, text.encode()

    def _feed(self, day: float) -> tuple[dict[str, str], bytes]:
        end = int(np.searchsorted(self.entries[:, 0], day, side="right"))
        rows = []
        for number in range(end - 1, max(end - self.quality.window, 0) - 1, -1):
            page, date = int(self.entries[number, 1]), self.date(float(self.entries[number, 0]))
            link, name = f'<link href="{self.url(page)}"/>', f"<id>urn:entry:{number}</id>"
            rows.append(f"<entry>{name}{link}<updated>{date}</updated></entry>")
        text = f'<feed xmlns="{ATOM}"><updated>{self.date(day)}</updated>{"".join(rows)}</feed>'
        return {"content-type": "application/atom+xml"}, text.encode()

    # Score of the crawler

    def score(self, since: float, until: float) -> dict[str, float]:
        """Return the stale share of page time between two days, and counts of answers by status.

        ``new`` is the share of page time before a first copy. Both are NaN if no page existed.

        Pages that never answer are left out. With ``If-Modified-Since`` alone, a page that changed
        twice in the same second may count as fresh.
        """
        log = [request for request in self.log if request.day < until and request.page >= 0]
        copies: dict[int, list[float]] = {}
        for request in log:
            if request.status in (200, 304):
                copies.setdefault(request.page, []).append(request.day)
        fresh = new = lived = 0.0
        sound = np.isin(self.fault, (FAULTS.index("moved"), FAULTS.index("slow"), len(FAULTS)))
        for page in np.flatnonzero(sound).tolist():
            begin, end = max(since, self.trace.created[page]), min(until, self.trace.deleted[page])
            lived += max(end - begin, 0.0)
            taken = copies.get(page, [])
            fresh += fresh_days(taken, self.changes[page], begin, end)
            new += max(min([*taken[:1], end]) - begin, 0.0)
        counts = Counter(request.status for request in log)
        lived = lived or math.nan
        scores = {"stale": 1.0 - fresh / lived, "new": new / lived, "fetches": float(len(log))}
        return scores | {str(status): float(count) for status, count in sorted(counts.items())}


def fresh_days(copies: Sequence[float], changes: FloatArray, begin: float, end: float) -> float:
    """Return the days from ``begin`` to ``end`` in which the newest copy of a page is fresh.

    A copy is fresh until the first change after it, or the next copy. Times are in order.
    """
    taken = np.array(copies)
    stale = np.append(changes, math.inf)[np.searchsorted(changes, taken, side="right")]
    stops = np.minimum(np.minimum(np.append(taken[1:], math.inf), stale), end)
    return float(np.maximum(stops - np.maximum(taken, begin), 0.0).sum())


def _unmodified(headers: Mapping[str, str], etag: str, modified: int) -> bool:
    """Return whether request headers show that the crawler has a version (RFC 9110, 13.2.2)."""
    if "if-none-match" in headers:
        return headers["if-none-match"] == etag
    if "if-modified-since" not in headers:
        return False
    return modified <= parsedate_to_datetime(headers["if-modified-since"]).timestamp()


def application(web: ReplayedWeb) -> Starlette:
    """Return an application for any ASGI server that serves a replayed web and its score."""

    async def page(request: Request) -> Response:
        host, path = request.url.hostname or "", request.url.path
        answer = web.answer(host, path, request.headers, time.time())
        await asyncio.sleep(answer.wait)
        if not answer.endless:
            return Response(answer.body, answer.status, answer.headers)

        async def repeated() -> Any:
            while True:
                yield answer.body
                await asyncio.sleep(0.001)

        return StreamingResponse(repeated(), answer.status, answer.headers)

    async def score(request: Request) -> Response:
        query = request.query_params
        try:
            since = float(query.get("since", 0.0))
            end = float(query.get("until", web.day(time.time())))
        except ValueError:
            return Response(f"since and until must be days, got {dict(query)}\n", 400)
        scores = {k: None if math.isnan(x) else x for k, x in web.score(since, end).items()}
        return Response(json.dumps(scores), media_type="application/json")

    return Starlette(routes=[Route("/score", score), Route("/{path:path}", page)])


def listening(hosts: int, port: int = 0) -> list[socket.socket]:
    """Return one listening socket per host (127.0.0.1, 127.0.0.2, ...), all on the same port."""
    sockets = []
    for host in range(hosts):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((f"127.0.0.{1 + host}", port))
        listener.listen(256)
        port = listener.getsockname()[1]
        sockets.append(listener)
    return sockets


def main(
    site: Annotated[str, Argument(help="A recorded site: a name or a folder.")],
    speed: Annotated[float, Option(help="Days of the record per second.")] = 1.0,
    hosts: Annotated[int, Option(min=1, max=200, help="Number of hosts, from 127.0.0.1 on.")] = 1,
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 for any free one.")] = 0,
    seed: Annotated[int, Option(help="Seed of texts, faults and feed.")] = 0,
    recall: Annotated[float, Option(help="Share of changes in the feed.")] = Quality.recall,
    precision: Annotated[float, Option(help="Share of true entries.")] = Quality.precision,
    fault: Annotated[
        list[str] | None, Option(help=f"FAULT:SHARE of {', '.join(FAULTS)}. Repeatable.")
    ] = None,
) -> None:
    """Serve a recorded site on this machine until an interrupt."""
    faults = {}
    for text in fault or []:
        name, _, number = text.partition(":")
        faults[one_of("fault", name, FAULTS)] = share("fault", plain_value(number))
    quality = Quality(
        share("recall", recall), share("precision", precision, above=True), faults=faults
    )
    trace, days = load(find(site)), quantity("speed", speed, above=0.0)
    sockets = listening(hosts, port)
    base = f"http://{{}}:{sockets[0].getsockname()[1]}"
    web = ReplayedWeb(trace, days, base, hosts=hosts, quality=quality, seed=seed)
    console().print(base.format("127.0.0.1"), soft_wrap=True)
    uvicorn.Server(uvicorn.Config(application(web), log_level="warning")).run(sockets=sockets)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
