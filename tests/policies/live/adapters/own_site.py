"""Crawl a site of this machine live, offline and in the simulator, and tabulate its staleness.

The site has 200 pages that change by Poisson processes, with log-normal rates of mean 1 per unit of
time, a feed, and a sitemap with wrong dates or none. Every crawl has 200 fetches per unit and polls
every quarter of a unit. Columns are the stale share of the pages' time after a warm-up:

* live: a crawler fetches from a web server, by the wall clock, in which a unit is some seconds;
* offline: the same calls of a scheduler and the same answers, on simulated time;
* simulator: a policy that knows the parameters, on the same events, without polls.

Writes README.md (means with 95% intervals by blocks of time), rows.csv and provenance.json.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import math
import multiprocessing
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import typer
import uvicorn

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import simulate
from crawl_envs.instances.traces import Trace
from crawl_envs.sim.tape import Tape
from policies.live.adapters.endpoint import endpoint
from policies.live.adapters.feeds import Polls
from policies.live.adapters.messages import SECONDS_PER_DAY, answer_line
from policies.live.scheduler import CrawlScheduler
from scripts.cli.commands import command
from scripts.live.replayed_web import LoggedRequest, Quality, ReplayedWeb, application, listening
from scripts.present.tables import console
from scripts.study.intervals import mean
from scripts.study.rows import check_folder, provenance_at, write_csv, write_provenance

SIGMA, PRECISION = 1.5, 0.8
AT_ONCE, BLOCKS, BEGIN = 16, 10, 1_700_000_000.0
LIVE_AT_ONCE = 2
"""Live crawls that run at the same time."""


ABOUT = """# A site crawled live

Made by `python -m tests.policies.live.adapters.own_site`. 200 pages change by Poisson processes,
with log-normal rates (sigma 1.5, mean 1 per unit of time), and are fetched 200 times per unit. The
feed has a precision of .8; a lying sitemap gives each page a false date once per unit. Both are
polled every quarter of a unit. The live scheduler learns all rates.

Numbers are the share of the pages' time without a fresh copy after a warm-up, for {sites}, with
95% intervals over tenths of that time. *Live*: a crawler and a web server on one machine, by the
wall clock, on which a unit is 6 s. *Offline*: the same calls of the scheduler and the same answers
on simulated time. *Simulator*: a policy that knows the rates, on the same events and signals at
their times.
[rows.csv](rows.csv) has the tenths.

"""


class Crawl(NamedTuple):
    """A row of the table, with times in units; ``seconds`` is the length of one.

    ``recall`` is that of the feed, ``lies`` the false dates per page and unit of the sitemap; None
    without one.
    """

    by: str = "Scrapy"
    policy: str = "GreedyNCIS"
    recall: float | None = None
    lies: float | None = None
    pages: int = 200
    units: float = 30.0
    warm_up: float = 10.0
    seconds: float = 6.0
    poll: float = 0.25

    @property
    def day(self) -> float:
        """A unit in days."""
        return self.seconds / SECONDS_PER_DAY

    @property
    def lists(self) -> list[str]:
        """The feed and the sitemap that are polled, in the order of sources."""
        told = {"feed.xml": self.recall, "sitemap.xml": self.lies}
        return [name for name, quality in told.items() if quality is not None]

    def scheduler(self, now: float) -> CrawlScheduler:
        """Return a scheduler as that of Scrapy; ``now`` is in seconds since 1970."""
        bandwidth, second = self.pages / self.day, 1.0 / SECONDS_PER_DAY
        pace = {"start": now * second, "timeout": 60.0 * second, "resolution": second}
        sources, burst = max(len(self.lists), 1), AT_ONCE / bandwidth
        return CrawlScheduler(
            self.policy, bandwidth, num_sources=sources, burst=burst, learn=True, **pace
        )

    def polls(self, base: str, folder: Path, now: float) -> Polls:
        """Return the polls of the feed and the sitemap."""
        feeds = {f"{base}/{name}": source for source, name in enumerate(self.lists)}
        return Polls(feeds, folder, self.poll * self.day, now / SECONDS_PER_DAY, {})


CRAWLS = {
    "RoundRobin": Crawl(policy="RoundRobin"),
    "GREEDY-NCIS, no feed": Crawl(),
    "feed of recall .9": Crawl(recall=0.9),
    "feed of recall .3": Crawl(recall=0.3),
    "feed of recall .9, lying sitemap": Crawl(recall=0.9, lies=1.0),
    "feed of recall .9, silent sitemap": Crawl(recall=0.9, lies=0.0),
    "feed of recall .9, over HTTP": Crawl(by="HTTP", recall=0.9),
    "no feed, in Crawlee": Crawl(by="Crawlee"),
}


class Row(NamedTuple):
    """A block of time of a crawl."""

    crawl: str
    column: str
    seed: int
    begin: float
    stale: float
    fetches: float


class OwnSite(ReplayedWeb):
    """The site of a crawl, with ``rates`` of changes, (m,), and false dates: times and pages."""

    def __init__(self, crawl: Crawl, seed: int) -> None:
        rng, m = np.random.default_rng([seed, 1]), crawl.pages  # not the one of the feed
        rates = np.exp(SIGMA * rng.standard_normal(m))
        self.rates, events = rates / rates.mean(), []
        for rate in (self.rates, np.full(m, crawl.lies or 0.0)):
            page = rng.permutation(np.repeat(np.arange(m), rng.poisson(rate * crawl.units)))
            events.append((np.sort(rng.random(page.size)) * crawl.units, page))
        (times, pages), self.dates = events
        lives, none = (
            (np.full(m, -1.0), np.full(m, math.inf)),
            (np.zeros(0, int), times[:0]),
        )
        record = *lives, np.zeros(m, int), pages, times, *none, *none
        quality = Quality(crawl.recall or 0.0, PRECISION, window=300)
        trace, speed = Trace("own", Path(), crawl.units, *record), 1.0 / crawl.seconds
        super().__init__(trace, speed, "http://127.0.0.1", quality=quality, seed=seed)

    @property
    def urls(self) -> list[str]:
        """The address of each page."""
        return [self.url(page) for page in range(self.trace.num_pages)]

    def _sitemap(self, day: float) -> tuple[dict[str, str], bytes]:
        past = {int(page): time for time, page in zip(*self.dates, strict=True) if time <= day}
        dates = {page: f"<lastmod>{self.date(time)}</lastmod>" for page, time in past.items()}
        rows = (f"<url><loc>{url}</loc>{dates.get(k, '')}</url>" for k, url in enumerate(self.urls))
        return {"content-type": "application/xml"}, f"<urlset>{''.join(rows)}</urlset>".encode()


def crawl_by_messages(urls: Sequence[str], call: Any, fetch: Any, now: Any, wait: Any) -> None:
    """Crawl one page after the other, by messages to a scheduler.

    ``call`` sends a message, ``fetch`` a request; ``now`` returns a time in seconds, and ``wait``
    returns whether to go on, at a time at the latest.
    """
    copies = dict[str, bytes]()
    call({"add": [{"url": url} for url in urls], "known": "skip"})
    until = now()
    while wait(until):
        until = now()
        answer = call({"next": 1, "time": until / SECONDS_PER_DAY})
        for url in answer["fetch"]:
            text = re.sub(rb"<script>.*?</script>", b"", fetch(url))
            told = {"changed": [text != copies[url]]} if url in copies else {}
            call({"report": [url], "time": until / SECONDS_PER_DAY, **told})
            copies[url] = text
        if not answer["fetch"]:
            until = (answer["ask_again"] or math.inf) * SECONDS_PER_DAY


def crawl_offline(crawl: Crawl, site: OwnSite, folder: Path) -> None:
    """Crawl on simulated time, of which fetches and polls take none."""
    scheduler, polls, now = crawl.scheduler(BEGIN), crawl.polls(site.base, folder, BEGIN), [BEGIN]

    def fetch(url: str) -> bytes:
        return site.answer("", urlsplit(url).path, {}, now[0]).body

    def wait(until: float) -> bool:
        due = min(polls.due.values(), default=math.inf) * SECONDS_PER_DAY
        now[0] = max(now[0], min(until, due) + 1e-6 * (until > now[0]))
        while feed := polls.next(day := now[0] / SECONDS_PER_DAY):
            polls.take(scheduler, feed, polls.read(feed, fetch(feed), feed), feed, day)
        return now[0] < BEGIN + crawl.units * crawl.seconds

    def call(message: Any) -> Any:
        return answer_line(scheduler, json.dumps(message))

    crawl_by_messages(site.urls, call, fetch, lambda: now[0], wait)


def crawl_http(crawl: Crawl, base: str, urls: Sequence[str], folder: Path) -> None:
    """Crawl by messages to the endpoint of a scheduler."""
    scheduler, polls = crawl.scheduler(time.time()), crawl.polls(base, folder, time.time())
    scheduler.warm()
    end = time.time() + crawl.units * crawl.seconds
    with serving(endpoint(scheduler, ["127.0.0.1"])) as address:
        service, web = (http.client.HTTPConnection(urlsplit(x).netloc) for x in (address, base))

        def call(message: Any) -> Any:
            service.request("POST", "/", json.dumps(message))
            return json.loads(service.getresponse().read())

        def fetch(url: str) -> bytes:
            web.request("GET", urlsplit(url).path)
            return web.getresponse().read()

        def wait(until: float) -> bool:
            time.sleep(min(max(until - time.time(), 0.0), 0.05))
            if feed := polls.next(time.time() / SECONDS_PER_DAY):
                polls.fetch(scheduler, feed)
            return time.time() < end

        crawl_by_messages(urls, call, fetch, time.time, wait)


def crawl_scrapy(crawl: Crawl, base: str, urls: Sequence[str], folder: Path) -> None:
    """Crawl with Scrapy, whose start URLs are all pages."""
    from scrapy import Spider
    from scrapy.crawler import CrawlerProcess

    settings = {
        "SCHEDULER": "policies.live.adapters.scrapy.RecrawlScheduler",
        "DOWNLOADER_MIDDLEWARES": {"policies.live.adapters.scrapy.RecrawlMiddleware": 500},
        "RECRAWL_FOLDER": str(folder),
        "RECRAWL_BANDWIDTH": crawl.pages / crawl.day,
        "RECRAWL_POLICY": crawl.policy,
        "RECRAWL_FEEDS": crawl.polls(base, folder, 0.0).feeds,
        "RECRAWL_POLL": crawl.poll * crawl.seconds,
        "RECRAWL_SKEW": 0,
        "CONCURRENT_REQUESTS": AT_ONCE,
        "CONCURRENT_REQUESTS_PER_DOMAIN": AT_ONCE,
        "DOWNLOAD_TIMEOUT": 30,
        "CLOSESPIDER_TIMEOUT": math.ceil(crawl.units * crawl.seconds),
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
    }
    process = CrawlerProcess(settings)
    spider = type("Own", (Spider,), {"name": "own", "parse": lambda self, response: None})
    process.crawl(spider, start_urls=urls)
    process.start()


def crawl_crawlee(crawl: Crawl, base: str, urls: Sequence[str], folder: Path) -> None:
    """Crawl with Crawlee."""
    from crawlee import ConcurrencySettings
    from crawlee.crawlers import HttpCrawler

    from policies.live.adapters.crawlee import ScheduledRequests

    os.chdir(folder)  # Crawlee writes its counts to the current one

    async def run() -> None:
        scheduler = crawl.scheduler(time.time())
        scheduler.warm()
        manager = ScheduledRequests(scheduler, folder)
        many = ConcurrencySettings(max_concurrency=AT_ONCE, desired_concurrency=AT_ONCE)
        about: Any = {"keep_alive": True, "concurrency_settings": many, "configure_logging": False}
        crawler = HttpCrawler(request_manager=manager, **about)
        crawler.post_navigation_hook(manager.observe)
        crawler.router.default_handler(lambda context: asyncio.sleep(0.0))
        task = asyncio.create_task(crawler.run(urls))
        await asyncio.sleep(crawl.units * crawl.seconds)
        crawler.stop()
        await task

    asyncio.run(run())


CRAWLERS = {"Scrapy": crawl_scrapy, "HTTP": crawl_http, "Crawlee": crawl_crawlee}


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application in a thread, and yield its address."""
    [socket] = listening(1)
    server = uvicorn.Server(
        uvicorn.Config(
            app, log_level="critical", timeout_graceful_shutdown=0, timeout_keep_alive=60
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


def crawl_live(crawl: Crawl, site: OwnSite, folder: Path) -> None:
    """Serve a site, and crawl it in a process of its own; RuntimeError if that fails."""
    with serving(application(site)) as site.base:
        about = crawl, site.base, site.urls, folder
        process = multiprocessing.get_context("spawn").Process(
            target=CRAWLERS[crawl.by], args=about
        )
        process.start()
        process.join()
    if process.exitcode:
        raise RuntimeError(f"the crawl by {crawl.by} ended with status {process.exitcode}")


def simulate_known(crawl: Crawl, site: OwnSite, folder: Path) -> None:
    """Let a policy that knows the parameters crawl; it hears the feed at once, and no sitemap."""
    recall, heard = crawl.recall or 0.0, site.entries.T if crawl.recall else np.empty((2, 0))
    quality = recall, recall * (1.0 / PRECISION - 1.0)
    pages = Instance(np.ones(crawl.pages), site.rates, *quality, bandwidth=float(crawl.pages))
    changes = site.trace.change_time, site.trace.change_page
    tape = Tape.of_events(crawl.pages, changes=changes, signals=(heard[0], heard[1]))
    played = simulate(pages, policies.make(crawl.policy), crawl.units, tape=tape)
    crawls = zip(played.times.tolist(), played.crawls.tolist(), strict=True)
    site.log = [LoggedRequest(day, "", "", page, 200) for day, page in crawls]


COLUMNS = {"live": crawl_live, "offline": crawl_offline, "simulator": simulate_known}


def measure(crawl: Crawl, column: str, seed: int) -> Iterator[tuple[float, float, float]]:
    """Crawl, and yield the begin, the stale share and the fetches of each block of time."""
    site = OwnSite(crawl, seed)
    with TemporaryDirectory() as folder:
        COLUMNS[column](crawl, site, Path(folder))
    for begin, end in itertools.pairwise(np.linspace(crawl.warm_up, crawl.units, BLOCKS + 1)):
        told = site.score(float(begin), float(end))
        before = site.score(-1.0, float(begin))["fetches"]
        yield float(begin), told["stale"], told["fetches"] - before


def table(rows: Sequence[Row]) -> str:
    """Return the mean stale shares with their intervals, as a table of Markdown."""
    lines = [f"| crawl | {' | '.join(COLUMNS)} |", "|---|" + "---|" * len(COLUMNS)]
    for name in dict.fromkeys(row.crawl for row in rows):
        stale = [[r.stale for r in rows if r[:2] == (name, column)] for column in COLUMNS]
        means = [mean(np.array(values)[:, None]) for values in stale]
        cells = [f"{m.estimate:.3f} [{m.low:.3f}, {m.high:.3f}]" for m in means]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


Words = Annotated[list[str] | None, typer.Option("--case", help="Crawls with this in their name.")]
Seeds = Annotated[int, typer.Option(min=1, help="Sites.")]
Quick = Annotated[bool, typer.Option("--quick", help="20 pages, three units of a second.")]
Out = Annotated[Path, typer.Option(help="Output folder.")]


def main(
    case: Words = None, seeds: Seeds = 2, quick: Quick = False, out: Out = Path("results/live")
) -> None:
    """Crawl, write and print."""
    begin, rows = time.perf_counter(), list[Row]()
    check_folder(out)
    short: Any = {"units": 3.0, "warm_up": 1.0, "seconds": 1.0, "pages": 20} if quick else {}

    chosen = [name for name in CRAWLS if not case or any(word in name for word in case)]
    if not chosen:
        raise ValueError(f"case must be of {'; '.join(CRAWLS)}, got {'; '.join(case or [])}")

    def play(unit: tuple[str, str, int]) -> list[Row]:
        name, column, seed = unit
        return [
            Row(*unit, *block) for block in measure(CRAWLS[name]._replace(**short), column, seed)
        ]

    for column in COLUMNS:
        units = itertools.product(chosen, [column], range(seeds))
        with ThreadPoolExecutor(LIVE_AT_ONCE if column == "live" else 1) as pool:
            for blocks in pool.map(play, units):
                rows += blocks
                stale = np.mean([row.stale for row in blocks])
                console().print(blocks[0].crawl, column, blocks[0].seed, f"{stale:.3f}")
    write_csv(out / "rows.csv", Row._fields, rows)
    about = ABOUT.format(sites="one such site" if seeds == 1 else f"{seeds} such sites")
    (out / "README.md").write_text(about + table(rows), "utf-8")
    path, entry = provenance_at(out)
    write_provenance(
        path, "tests.policies.live.adapters.own_site", time.perf_counter() - begin, entry
    )
    console().print(table(rows), soft_wrap=True)


app = command(main, __doc__)

if __name__ == "__main__":
    app()
