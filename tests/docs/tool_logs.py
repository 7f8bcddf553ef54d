"""What crawlers, archives and readers of feeds write of one small site: a function per tool."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import json
import re
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.docs.pages import ROOT

VERSIONS = {
    "https://example.org/": "AABBC",
    "https://example.org/a": "AAAAA",
    "https://example.org/b?x=1": "ABBBB",
}
"""Version of each page on five days."""
START = datetime(2026, 1, 5, 12, tzinfo=UTC)
RECIPES = (ROOT / "docs" / "recipes.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", RECIPES, re.MULTILINE | re.DOTALL))


class Fetch(NamedTuple):
    """A fetch of a page: URL, day from 0, time and version."""

    url: str
    day: int
    time: datetime
    version: str

    @property
    def seconds(self) -> int:
        return int(self.time.timestamp())

    @property
    def stamp(self) -> str:
        return f"{self.time:%Y%m%d%H%M%S}"

    @property
    def new(self) -> bool:
        """Whether the version is not that of the day before."""
        return self.day == 0 or VERSIONS[self.url][self.day - 1] != self.version

    def digest(self, algorithm: str = "sha256") -> str:
        return hashlib.new(algorithm, self.version.encode()).hexdigest()

    def base32(self) -> str:
        return base64.b32encode(bytes.fromhex(self.digest("sha1"))).decode()


def fetches(day: int | None = None) -> Iterator[Fetch]:
    """Yield the fetches of all days, or of one, day by day."""
    for each in range(5) if day is None else [day]:
        for hours, (url, versions) in enumerate(VERSIONS.items()):
            yield Fetch(url, each, START + timedelta(days=each, hours=hours), versions[each])


def key(url: str) -> str:
    return url.replace("https://example.org", "org,example)")


def write(name: str, lines: Any) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def write_json(name: str, value: Any) -> None:
    write(name, [json.dumps(value)])


def web_archives() -> None:
    names = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
    rows = [
        [key(x.url), x.stamp, x.url, *kind, x.base32(), "9"]
        for x in fetches()
        for kind in [("text/html", "200") if x.new else ("warc/revisit", "-")]
    ]
    write_json("wayback.json", [names, *rows])
    write(
        "outback.cdx",
        (f"{' '.join(row[:6])} - - 2248 396 my.warc.gz" for row in rows),
    )
    write("pywb.cdxj", cdxj(fetches(), lambda x: x.base32()))


def cdxj(captures: Any, digest: Callable[[Fetch], str]) -> Iterator[str]:
    for x in sorted(captures, key=lambda x: (key(x.url), x.stamp)):
        record = {"url": x.url, "mime": "text/html", "status": "200", "digest": digest(x)}
        yield f"{key(x.url)} {x.stamp} {json.dumps(record | {'filename': 'my.warc.gz'})}"


def common_crawl() -> None:
    for name, days in {"cc-2026-04.jsonl": (0, 1, 2), "cc-2026-08.jsonl": (3, 4)}.items():
        crawl = [x for day in days for x in fetches(day)]
        rows = [
            {"urlkey": key(x.url), "timestamp": x.stamp, "url": x.url, "mime": "text/html"}
            | {"mime-detected": "text/html", "status": "200", "digest": x.base32()}
            for x in crawl
        ]
        write(name, map(json.dumps, rows))


def heritrix() -> None:
    for name, days in {"20260105120000": (0, 1, 2), "20260108120000": (3, 4)}.items():
        lines = [
            f"{START:%Y-%m-%dT%H:%M:%S}.001Z     1  53 dns:example.org P https://example.org/ "
            f"text/dns #001 {START:%Y%m%d%H%M%S}001+20 sha1:{'A' * 32} - -"
        ]
        lines += [
            f"{x.time:%Y-%m-%dT%H:%M:%S}.802Z   200  1299 {x.url} L https://example.org/ text/html "
            f"#014 {x.stamp}574+225 sha1:{x.base32()} - -"
            for day in days
            for x in fetches(day)
        ]
        write(f"jobs/example/{name}/logs/crawl.log", lines)


DATUM = (
    "\nCrawlDatum::\nVersion: 7\nStatus: {0}\nFetch time: {1}\nModified time: {1}\n"
    "Retries since fetch: 0\nRetry interval: 2592000 seconds (30 days)\nScore: 1.0\n"
    "Signature: {2}\nMetadata: \n "
)
"""A CrawlDatum of Nutch in text: status, time and signature."""


def nutch() -> None:
    for day in range(5):
        text = ""
        for number, x in enumerate(fetches(day)):
            status, code = ("33 (fetch_success)", 200) if x.new else ("38 (fetch_notmodified)", 304)
            text += f"\nRecno:: {number}\nURL:: {x.url}\n"
            text += DATUM.format("67 (linked)", "Thu Jan 01 00:00:00 UTC 1970", "null")
            text += DATUM.format(status, f"{x.time:%a %b %d %H:%M:%S} UTC 2026", "null")
            text += f"\t_pst_=success(1), lastModified=0\n\tnutch.protocol.code={code}\n"
            if x.new:  # only what was fetched is parsed
                parsed = "Mon Jan 01 00:00:00 UTC 2024"
                text += DATUM.format("65 (signature)", parsed, x.digest("md5"))
            text += "\n"
        write(f"dump/2026010{5 + day}120000/dump", [text])


def stormcrawler() -> None:
    for day in range(5):
        for export in range(2):  # the second has the same fetches
            rows = [
                {"_index": "status", "_id": x.digest(), "_score": 1, "_source": of_status_index(x)}
                for x in fetches(day)
            ]
            write(f"status-2026-01-0{5 + day}-{export}.jsonl", map(json.dumps, rows))


def of_status_index(x: Fetch) -> dict[str, Any]:
    metadata = {
        "lastProcessedDate": [f"{x.time:%Y-%m-%dT%H:%M:%S.123456789Z}"],
        "fetch%2EstatusCode": ["200"],
        "signature": [x.digest("md5")],
    }
    return {"url": x.url, "status": "FETCHED", "metadata": metadata, "nextFetchDate": "2027-01-01"}


def scrapy() -> None:
    pytest.importorskip("scrapy")


def changedetection() -> None:
    for number, url in enumerate(VERSIONS):
        seen = [x for x in fetches() if x.url == url]
        late = [x.seconds + 3 * (x.day % 2) for x in seen]  # checks are some seconds late
        found = [f"{late[x.day]},{x.digest('md5')}.txt.br" for x in seen if x.new]
        write(f"datastore/{number}/history.txt", found)
        write_json(f"datastore/{number}/watch.json", {"url": url, "last_checked": late[-1]})


def urlwatch() -> None:
    write(
        "urls.yaml", "\n---\n".join(f'name: "page"\nurl: "{url}"' for url in VERSIONS).split("\n")
    )
    cache = sqlite3.connect("cache.db")
    columns = (
        "id INTEGER PRIMARY KEY, guid TEXT, timestamp INTEGER, data TEXT, tries INTEGER, etag TEXT"
    )
    cache.execute(f"CREATE TABLE CacheEntry ({columns})")
    for x in fetches():
        guid = hashlib.sha1(x.url.encode()).hexdigest()
        insert = "INSERT INTO CacheEntry (guid, timestamp, data, tries) VALUES (?, ?, ?, ?)"
        if x.new:
            cache.execute(insert, (guid, x.seconds, x.version, 0))
        if x.day == 0:  # the first run failed
            cache.execute(insert, (guid, x.seconds - 86_400, None, 1))
    cache.commit()
    cache.close()


def screaming_frog() -> None:
    names = ["Address", "Content Type", "Status Code", "Status", "Indexability", "Hash"]
    names += ["Response Time", "Last Modified", "Redirect URL", "Crawl Timestamp"]
    for day in range(5):
        path = Path(f"crawls/2026-01-0{5 + day}/internal_all.csv")
        path.parent.mkdir(parents=True)
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            rows = csv.writer(file, quoting=csv.QUOTE_ALL)
            rows.writerow(names)
            for x in fetches(day):
                row = [x.url, "text/html; charset=utf-8", 200, "OK", "Indexable", x.digest("md5")]
                rows.writerow([*row, 0.2, "", "", f"{x.time:%Y-%m-%d %H:%M:%S}"])


def browsertrix() -> None:
    for number, days in enumerate([(0, 1, 2), (3, 4)], 1):
        crawl = [x for day in days for x in fetches(day)]
        lines = [f"{line}\n" for line in cdxj(crawl, lambda x: f"sha-256:{x.digest()}")]
        with zipfile.ZipFile(f"crawl-{number}.wacz", "w") as file:
            if number == 1:  # small: text
                file.writestr("indexes/index.cdxj", "".join(lines))
            else:  # large: blocks of lines, each compressed
                blocks = [gzip.compress(line.encode()) for line in lines]
                file.writestr("indexes/index.cdx.gz", b"".join(blocks))
                file.writestr("indexes/index.idx", '!meta 0 {"format": "cdxj-gzip-1.0"}\n')
            file.writestr("pages/pages.jsonl", '{"format": "json-pages-1.0"}\n')


def archivebox() -> None:
    index = sqlite3.connect("index.sqlite3")
    index.execute("CREATE TABLE core_snapshot (id TEXT, url TEXT, timestamp TEXT, added TEXT)")
    columns = "snapshot_id TEXT, extractor TEXT, output TEXT, start_ts TEXT, status TEXT"
    index.execute(f"CREATE TABLE core_archiveresult (id INTEGER PRIMARY KEY, {columns})")
    insert = (
        "INSERT INTO core_archiveresult (snapshot_id, extractor, output, start_ts, status) "
        "VALUES (?, ?, ?, ?, ?)"
    )
    for x in fetches():
        url = x.url if x.day == 0 else f"{x.url}#{x.time.isoformat()}"
        folder = f"{x.seconds}.0"
        index.execute("INSERT INTO core_snapshot VALUES (?, ?, ?, ?)", (folder, url, folder, ""))
        when = f"{x.time:%Y-%m-%d %H:%M:%S.%f}"
        index.execute(insert, (folder, "title", x.stamp, when, "succeeded"))
        index.execute(insert, (folder, "htmltotext", "no HTML", when, "failed"))
        index.execute(insert, (folder, "htmltotext", "htmltotext.txt", when, "succeeded"))
        write(f"archive/{folder}/htmltotext.txt", [x.version])
    index.commit()
    index.close()


def httpx() -> None:
    for day in range(5):
        rows = [
            {"timestamp": x.time.isoformat(), "url": x.url, "input": x.url, "status_code": 200}
            | {"hash": {"body_sha256": x.digest(), "header_sha256": str(x.time)}, "time": "1.2s"}
            for x in fetches(day)
        ]
        write(f"probes-2026-01-0{5 + day}.jsonl", map(json.dumps, rows))


def web_server() -> None:
    combined, etags = [], []
    line = '192.0.2.7 - - [{:%d/%b/%Y:%H:%M:%S +0000}] "GET {} HTTP/1.1" {} 1234 "-" "{}"'
    for x in fetches():
        path, later = x.url.removeprefix("https://example.org"), x.time + timedelta(minutes=1)
        combined.append(line.format(x.time, path, 200 if x.new else 304, "MyBot/1.0"))
        combined.append(line.format(later, path, 200, "Mozilla/5.0 (X11)"))
        etags.append(nginx_line(path, x))
    write("access.log", combined)
    write("fetches.jsonl", etags)


def nginx_line(path: str, x: Fetch) -> str:
    """Return what nginx writes by the log_format of the page."""
    start = SECTIONS["Web server logs"].index("log_format fetches")
    text = "".join(re.findall(r"'(.*)'", SECTIONS["Web server logs"][start:].partition(";")[0]))
    values = {"scheme": "https", "host": "example.org", "request_uri": path, "status": "200"}
    values |= {"time_iso8601": x.time.isoformat(), "sent_http_etag": f'\\"{x.version}\\"'}
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], text)


def own_log() -> None:
    rows = [f"{x.url},{x.time.isoformat()},{x.version}" for x in fetches()]
    write("log.csv", ["url,time,hash", *rows])


def sitemaps() -> None:
    own_log()
    dates = dict.fromkeys(VERSIONS, "")
    for day in range(5):
        for x in fetches(day):
            dates[x.url] = (
                f"{x.time - timedelta(hours=3):%Y-%m-%dT%H:%M:%S+00:00}" if x.new else dates[x.url]
            )
        pages = [
            f"<url><loc> {url} </loc><lastmod>{date}</lastmod></url>" for url, date in dates.items()
        ]
        pages.append("<url><loc>https://example.org/undated</loc></url>")
        schema = "http://www.sitemaps.org/schemas/sitemap/0.9"
        write(
            f"sitemaps/2026-01-0{5 + day}.xml", [f'<urlset xmlns="{schema}">', *pages, "</urlset>"]
        )


def miniflux() -> None:
    """Write what psql writes for the query of the page; the tables are in SQLite."""
    own_log()
    found = re.search(r"\\copy \((.*)\) TO '(.*)' CSV HEADER", SECTIONS["Miniflux"])
    assert found is not None
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE feeds (id INT, site_url TEXT, feed_url TEXT)")
    base.execute(
        "CREATE TABLE entries (id INT, feed_id INT, url TEXT, created_at TEXT, changed_at TEXT)"
    )
    base.execute("INSERT INTO feeds VALUES (1, 'https://example.org/', 'https://example.org/feed')")
    for x in fetches():
        if x.new and x.url.endswith("/b?x=1"):
            when = f"{x.time - timedelta(hours=3):%Y-%m-%d %H:%M:%S.%f}+00"
            base.execute("INSERT INTO entries VALUES (1, 1, ?, ?, '')", (x.url, when))
    answer = base.execute(found[1])
    with open(found[2], "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[column[0] for column in answer.description], *answer])
    base.close()


TOOLS: dict[str, Callable[[], None]] = {
    "Web archives": web_archives,
    "Common Crawl": common_crawl,
    "Heritrix": heritrix,
    "Nutch": nutch,
    "StormCrawler": stormcrawler,
    "Scrapy": scrapy,
    "changedetection.io": changedetection,
    "urlwatch": urlwatch,
    "Screaming Frog": screaming_frog,
    "Browsertrix and WACZ": browsertrix,
    "ArchiveBox": archivebox,
    "httpx": httpx,
    "Web server logs": web_server,
    "Sitemaps": sitemaps,
    "Miniflux": miniflux,
}
"""Writes what a tool writes into the current folder, by the heading of its recipe."""
