"""Measure the endpoint over HTTP: answers per second, their times, and bytes per page.

A DurableScheduler with GREEDY-NCIS, hosts of a hundred pages and URLs as ids is served in a process
of its own, and asked over one connection, one request after the other, and by messages of a hundred
lines. Bytes are those that the process has grown by, without the copy that it was built from.
Writes ``live_endpoint.csv`` and ``provenance.json``.
"""

from __future__ import annotations

import http.client
import json
import socket
import tempfile
import urllib.parse
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crawl_envs.instances.synthetic import draw_noisy
from policies.live.endpoint import serve
from policies.live.messages import day_of
from policies.scheduler import CrawlScheduler, DurableScheduler
from scripts.timing.commands import Cases, Measurement, measuring
from scripts.timing.processes import started
from scripts.timing.turns import taken

SIZES, QUICK_SIZES = (10_000, 1_000_000), (1_000,)
REQUESTS, QUICK_REQUESTS = 5_000, 200
AT_ONCE, PAGES_OF_HOST, PART = 100, 100, 50_000


class Answers(NamedTuple):
    """Requests of a kind: answers per second, median and 99th percentile of their times in ms."""

    pages: int
    request: str
    per_second: float
    median_ms: float
    p99_ms: float
    bytes_per_page: float


def url(page: int) -> str:
    """Return the address of a page."""
    return f"https://host-{page // PAGES_OF_HOST}.example/page-{page}"


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def serving(num_pages: int, pipe: Connection) -> None:
    """Serve so many pages, and tell the port and the bytes per page."""
    rng, now = np.random.default_rng(0), day_of(None)
    instance = draw_noisy(rng, num_pages, bandwidth=num_pages / 10.0)
    names = ("importance", "change_rate", "recall", "false_signal_rate")
    known = {name: getattr(instance, name) for name in names}
    copies = now - 10.0 * rng.random(num_pages)
    listens = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listens.bind(("127.0.0.1", 0))
    listens.listen()
    with listens, tempfile.TemporaryDirectory() as folder:
        new = CrawlScheduler("GreedyNCIS", instance.bandwidth, start=now, burst=1.0)
        scheduler = DurableScheduler(Path(folder) / "state", new)
        scheduler.warm()
        before = resident()
        for first in range(0, num_pages, PART):
            some = slice(first, min(first + PART, num_pages))
            urls = [url(page) for page in range(some.start, some.stop)]
            columns = {name: column[..., some] for name, column in known.items()}
            hosts = [urllib.parse.urlsplit(each).hostname for each in urls]
            scheduler.add(urls, last_crawl=copies[some], host=hosts, **columns)
        pipe.send((listens.getsockname()[1], (resident() - before) / num_pages))
        serve(scheduler, listens)


def measured(num_pages: int, count: int) -> Iterator[Answers]:
    """Yield the figures of each kind of request."""
    with started(serving, num_pages) as server:
        port, size = server.told()
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
            for name, requests in kinds(num_pages, count).items():
                times = [taken(ask, client, *each) for each in requests]
                late = times[len(times) // 10 :]  # without what is compiled or opened first
                milliseconds = map(float, 1e3 * np.quantile(late, (0.5, 0.99)))
                yield Answers(num_pages, name, len(late) / sum(late), *milliseconds, size)


def ask(client: http.client.HTTPConnection, method: str, path: str, body: str = "") -> None:
    """Wait for an answer that is no error."""
    client.request(method, path, body or None)
    answer = client.getresponse()
    text = answer.read()
    if answer.status != 200 or b'"error"' in text:
        raise ValueError(f"{method} {path} must be answered, got {text!r:.200}")


def kinds(num_pages: int, count: int) -> dict[str, list[tuple[str, ...]]]:
    """Return requests of random pages by kind."""
    rng = np.random.default_rng(1)
    urls = [url(int(page)) for page in rng.integers(num_pages, size=count)]

    def lines(*names: str) -> str:
        return "\n".join(json.dumps({"ask": name}) for name in names)

    parts = [urls[k : k + AT_ONCE] for k in range(0, count, AT_ONCE)]
    return {
        "due": [("GET", f"/due?url={urllib.parse.quote(name, safe='')}") for name in urls],
        "ask": [("POST", "/", lines(name)) for name in urls],
        "report": [
            ("POST", "/", json.dumps({"report": [name], "changed": [True]})) for name in urls
        ],
        f"ask, {AT_ONCE} at once": [("POST", "/", lines(*part)) for part in parts],
        "metrics": [("GET", "/metrics")] * max(count // AT_ONCE, 2),
    }


def cases(quick: bool) -> Cases:
    """Return a case per size."""
    count = QUICK_REQUESTS if quick else REQUESTS
    sizes = QUICK_SIZES if quick else SIZES
    return {f"{pages:,} pages": partial(measured, pages, count) for pages in sizes}


OF = Measurement(
    "scripts.timing.live_endpoint", {"live_endpoint": Answers}, "The endpoint over HTTP"
)
app = measuring(OF, __doc__, cases)

if __name__ == "__main__":
    app()
