"""Crawl recorded sites over HTTP with Scrapy and the live scheduler, and score its copies.

Each site is served on this machine (scripts.data.replayed_web), a day of the record in a few
seconds, and crawled by Scrapy (policies.live.scrapy) from a page of links and a feed, with each
policy at equal bandwidth, all at once. The same scheduler and middleware are then played against
the same web without a network, with a clock that is simulated, and answers that take another time
in each run. The web scores all of them by what it answered. Beside them is what the simulator says,
which knows of each page from its birth, has all pages fresh at first, and no failures: of
``LearningGreedyNCIS`` where the live policy is ``GreedyNCIS``, which learns.

The rules of Nutch and StormCrawler crawl live the page that is overdue by most of its intervals,
before it is due if there is time, so that all make as many fetches.

Writes live_scrapy.csv, a picture and provenance.json.
"""

from __future__ import annotations

import heapq
import json
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import scrapy
import typer
import uvicorn
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.statscollectors import StatsCollector
from scrapy.utils.misc import load_object

import policies
from crawl_envs.evaluation import play
from crawl_envs.instances.traces import find, load
from crawl_envs.types import Ledger
from policies.live.scrapy import RecrawlMiddleware
from policies.live.scrapy_scheduler import FEED
from policies.live.scrapy_settings import SECOND
from scripts.cli.commands import command
from scripts.data.replayed_web import Quality, ReplayedWeb, application, listening
from scripts.data.replays import Split, replayed
from scripts.timing import live_rules
from scripts.timing.commands import Measurement, Out, folder_of, measure
from scripts.timing.processes import started

MODULE = "scripts.timing.live_scrapy"
POLICIES = ("GreedyNCIS", "RoundRobin", "NutchAdaptive", "StormCrawlerAdaptive")
RULES = POLICIES[2:]
LEARNING = {"GreedyNCIS": "LearningGreedyNCIS"}
"""The policy in the simulator that learns, as the scheduler does."""
HTTP, SIMULATOR = "Scrapy over HTTP", "simulator"
ROUND = 10.0
"""Days in which every page that is there at first could be fetched once."""
LATE = 30.0
"""Days at the end that are scored again alone."""
POLL, WINDOW = 0.25, 100
LATENCIES = (0.005, 0.02)
"""Seconds of a fetch where there is no network, of each run."""
START = 20_000.0
"""Day since 1970 at which a simulated clock begins."""


class Row(NamedTuple):
    """A run: share of the pages' time without a fresh copy after the first round, and answers.

    ``new`` is the part of ``stale`` before a page's first copy, and ``late`` is ``stale`` without
    that in the last thirty days, when most is learned.
    """

    site: str
    policy: str
    run: str
    stale: float
    new: float
    late: float
    fetches: int
    not_modified: int


class Spider(scrapy.Spider):
    """Follows all links."""

    name = "replayed"

    def parse(self, response: Any) -> Iterator[Any]:
        """Yield the links of a page."""
        yield from response.follow_all(css="a")


class Setting(NamedTuple):
    """What a run is: a site, a policy, days of the record, its days per second, and its signals."""

    site: str
    policy: str
    days: float
    speed: float
    quality: Quality = Quality(window=WINDOW)

    def web(self, base: str) -> ReplayedWeb:
        """Return the site as a web at an address."""
        return ReplayedWeb(load(find(self.site)), self.speed, base, quality=self.quality)

    def settings(self, base: str, folder: str) -> dict[str, Any]:
        """Return the settings of Scrapy."""
        per_second = self.web(base).living(0.0).size / ROUND * self.speed
        settings = {
            "SCHEDULER": "policies.live.scrapy.RecrawlScheduler",
            "DOWNLOADER_MIDDLEWARES": {"policies.live.scrapy.RecrawlMiddleware": 500},
            "RECRAWL_FOLDER": folder,
            "RECRAWL_BANDWIDTH": per_second / SECOND,
            "RECRAWL_POLICY": self.policy,
            "RECRAWL_FEEDS": {f"{base}/feed.xml": 0},
            "RECRAWL_POLL": POLL / self.speed,
            "RECRAWL_SKEW": 0.0,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
            "CLOSESPIDER_TIMEOUT": self.days / self.speed + 1.0,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "WARNING",
        }
        ruled = {
            "SCHEDULER": f"{live_rules.__name__}.RuledScheduler",
            "RECRAWL_POLICY": f"{live_rules.__name__}:Overdue",
            "REVISIT_RULE": self.policy,
            "RECORD_DAY": SECOND / self.speed,
        }
        return settings | ruled if self.policy in RULES else settings

    def row(self, run: str, score: Callable[[float, float], dict[str, float]]) -> Row:
        """Return the row of a run, given what scores it between two days."""
        told, late = score(ROUND, self.days), score(self.days - LATE, self.days)
        shares = told["stale"], told.get("new", 0.0), late["stale"] - late.get("new", 0.0)
        counts = int(told["fetches"]), int(told.get("304", 0.0))
        return Row(Path(self.site).name, self.policy, run, *shares, *counts)


def serve(setting: Setting, pipe: Connection) -> None:
    """Serve the web of a run, and tell its address."""
    [listens] = listening(1)
    base = f"http://127.0.0.1:{listens.getsockname()[1]}"
    config = uvicorn.Config(application(setting.web(base)), log_level="error")
    pipe.send(base)
    uvicorn.Server(config).run(sockets=[listens])


def crawl(setting: Setting, base: str, folder: str, pipe: Connection) -> None:
    """Crawl the web of a run with Scrapy, and tell the end."""
    process = CrawlerProcess(setting.settings(base, folder))
    process.crawl(Spider, start_urls=[f"{base}/"])
    process.start()
    pipe.send(base)


def over_http(settings: list[Setting]) -> Iterator[Row]:
    """Yield what came out of crawls with Scrapy, all at once."""
    with ExitStack() as stack:
        webs = [stack.enter_context(started(serve, setting)) for setting in settings]
        crawlers = []
        for setting, base in zip(settings, [web.told() for web in webs], strict=True):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            crawlers.append(stack.enter_context(started(crawl, setting, base, folder)))
        for setting, crawler in zip(settings, crawlers, strict=True):
            yield setting.row(HTTP, partial(score_of, crawler.told(webs)))


def score_of(base: str, since: float, until: float) -> dict[str, float]:
    """Return the score of the web at an address between two days."""
    asked = f"{base}/score?since={since}&until={until}"
    with urllib.request.urlopen(asked, timeout=60) as answer:
        told: dict[str, float] = json.load(answer)
    return told


class Engine:
    """The engine of Scrapy without a network: the web answers, after a time that is simulated.

    Args:
        setting: what is crawled.
        folder: of the crawl.
        latency: seconds of a fetch.

    Attributes:
        now: the time, in days since 1970.
        scheduler: the scheduler of the crawl.
    """

    def __init__(self, setting: Setting, folder: str, latency: float) -> None:
        base, self.latency = "http://127.0.0.1:8000", latency * SECOND
        self.web, self.spider = setting.web(base), Spider()
        self.now = self.wake = START
        self.answers: list[tuple[float, int, scrapy.Request, Response]] = []  # by their times
        crawler = Crawler(Spider, setting.settings(base, folder))
        crawler.stats = StatsCollector(crawler)
        self.middleware = RecrawlMiddleware(crawler)
        self.scheduler = load_object(crawler.settings["SCHEDULER"])(crawler)
        self.scheduler.clock, self.scheduler.wake_in = lambda: self.now, self._wake_in
        self.scheduler.open(self.spider)
        self.now += self.scheduler.pages.burst  # a crawler compiles first, and saves as much
        self.scheduler.enqueue_request(scrapy.Request(f"{base}/"))

    def _wake_in(self, seconds: float) -> None:
        """Let the scheduler be asked again in some seconds, or at an answer before."""
        self.wake = self.now + seconds * SECOND

    def play(self, days: float, speed: float) -> ReplayedWeb:
        """Play so many days of the record, and return the web, which scores them."""
        end, number = self.now + days / speed * SECOND, 0
        while self.now < end:
            while (request := self.scheduler.next_request()) is not None:
                number += 1
                answer = self.now + self.latency, number, request, self._answer(request)
                heapq.heappush(self.answers, answer)
            first = self.answers[0][0] if self.answers else self.wake
            self.now = max(min(first, self.wake), self.now)
            while self.answers and self.answers[0][0] <= self.now:
                _, _, request, response = heapq.heappop(self.answers)
                self._receive(request, response)
        self.scheduler.close("finished")
        return self.web

    def _answer(self, request: scrapy.Request) -> Response:
        """Return what the web answers to a request that is sent now."""
        self.middleware.process_request(request)
        headers = {name.lower(): text for name, text in request.headers.to_unicode_dict().items()}
        path = urlsplit(request.url).path
        told = self.web.answer("127.0.0.1", path, headers, self.now / SECOND)
        about: Any = {"status": told.status, "headers": told.headers, "body": told.body}
        return HtmlResponse(request.url, request=request, **about)

    def _receive(self, request: scrapy.Request, response: Response) -> None:
        """Pass an answer on to the spider, as far as the middleware does."""
        listing, feed = None, request.meta.get(FEED)
        if feed is not None and response.status == 200:
            listing = self.scheduler.polls.read(feed, response.body, response.url)
        try:
            passed: Any = self.middleware.receive(request, response, listing)
        except IgnoreRequest:
            return
        if passed.status == 200:
            for found in self.spider.parse(passed):
                self.scheduler.enqueue_request(found)


def simulated(setting: Setting, latency: float) -> Row:
    """Return what comes out without a network."""
    with tempfile.TemporaryDirectory() as folder:
        web = Engine(setting, folder, latency).play(setting.days, setting.speed)
    return setting.row(f"simulated, {latency:g} s", web.score)


def in_simulator(setting: Setting) -> Row:
    """Return what the simulator says of the policy, with the signals of the feed."""
    web = setting.web("http://127.0.0.1")
    day, page = web.entries[web.entries[:, 0] < setting.days].T
    trace = replace(web.trace, mention_time=day, mention_page=page.astype(np.int64))
    bandwidth = web.living(0.0).size / ROUND

    def played(days: float) -> Ledger:
        alive = float(trace.alive_days(0.0, days).sum()) / days
        options: Any = {"signals": "mentions", "importance": "uniform", "reveal": "importance"}
        split = Split(0.0, days, 0.0, days)
        env = replayed(trace, split, days_per_crawl=alive / bandwidth, **options)
        env.reset(seed=0)
        return play(env, policies.make(LEARNING.get(setting.policy, setting.policy), env), 0)

    def score(since: float, until: float) -> dict[str, float]:
        first, last = played(since), played(until)
        fresh, lived = last.fresh_time - first.fresh_time, last.alive_time - first.alive_time
        return {"stale": 1.0 - fresh / lived, "fetches": last.crawls}

    return setting.row(SIMULATOR, score)


def runs(site: str, days: float, speed: float, http: bool) -> Iterator[Row]:
    """Yield the runs of a site."""
    settings = [Setting(site, policy, days, speed) for policy in POLICIES]
    if http:
        yield from over_http(settings)
    for setting in settings:
        yield from (simulated(setting, latency) for latency in LATENCIES)
        yield in_simulator(setting)


def draw(path: Path, rows: list[Row]) -> None:
    """Draw the stale shares of the policies, a panel per site."""
    import pandas as pd

    from scripts.present.charts import Axis, Frame, dots

    data = pd.DataFrame(rows).rename(columns={"policy": "y", "stale": "x", "site": "panel"})
    data = data[~data.run.str.contains(f"{LATENCIES[1]:g}")]
    words = {f"simulated, {LATENCIES[0]:g} s": "live scheduler, no network"}
    labelled = data.assign(label=data.run.replace(words))
    title = "Pages without a fresh copy, at equal numbers of fetches; less is better"
    frame = Frame(title, Axis("share of the pages' time", limits=(0.0, None)), size=(8.5, 3.0))
    labels = [HTTP, *words.values(), SIMULATOR]
    dots(labelled, path, frame, labels=[each for each in labels if each in {*labelled.label}])


Sites = Annotated[list[str], typer.Argument(help="Recorded sites: names or folders.")]
Days = Annotated[float, typer.Option(min=ROUND + LATE, help="Days of the record.")]
Speed = Annotated[float, typer.Option(help="Days of the record per second.")]
Http = Annotated[
    bool, typer.Option("--http/--no-http", help="Crawl over HTTP too, for days / speed seconds.")
]


OF = Measurement(
    MODULE,
    {"live_scrapy": Row},
    "Scrapy with the live scheduler",
    draw=draw,
)


def main(
    sites: Sites, days: Days = 80.0, speed: Speed = 0.4, http: Http = True, out: Out = None
) -> None:
    """Crawl each site with each policy."""
    cases = {site: partial(runs, site, days, speed, http) for site in sites}
    measure(OF, cases, folder_of(out, False))


app = command(main, __doc__)

if __name__ == "__main__":
    app()
