"""The scheduler of Scrapy: crawls over HTTP, kills, faults, settings, and what is found."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from policies.scheduler import DurableScheduler
from scripts.data.replayed_web import FAULTS, Asked, Quality, ReplayedWeb
from tests.policies.live.crawls import begin, served

DAY = 86_400.0
LATE = 0.02
"""Seconds by which requests may come closer on their way."""


def of_pages(web: ReplayedWeb) -> list[Asked]:
    return [asked for asked in web.log if asked.page >= 0]


def least_gap(web: ReplayedWeb, until: float = np.inf) -> float:
    """Return the least time between two requests of pages to a host, in seconds."""
    times = defaultdict(list)
    for asked in of_pages(web):
        if asked.day < until:
            times[asked.host].append(asked.day / web.speed)
    return min(float(np.diff(each).min()) for each in times.values() if len(each) > 1)


def excess(web: ReplayedWeb, rate: float) -> float:
    """Return by how many fetches any span of time has more than a rate allows, in seconds."""
    times = np.array([asked.day for asked in of_pages(web)]) / web.speed
    ahead = np.arange(1, times.size + 1) - rate * times
    return float((ahead - np.minimum.accumulate(ahead - 1.0)).max())


def kill_often(folder: Path, kills: int, seed: int) -> None:
    """Crawl, kill the crawler at random instants, and check what the web has seen."""
    rate, gap, draw = 40.0, 0.05, random.Random(seed)
    settings = {
        "RECRAWL_FOLDER": str(folder),
        "RECRAWL_BANDWIDTH": rate * DAY,
        "RECRAWL_HOST_GAP": gap,
        "RECRAWL_RETRY": 0.5,
    }
    with served(1.0, 4, Quality()) as web:
        url = web.base.format("127.0.0.1") + "/"
        for _ in range(kills):
            before = len(web.log)
            process, _ = begin(settings, url)
            while len(web.log) == before:
                time.sleep(0.01)
            time.sleep(draw.expovariate(2.0))
            process.kill()
            process.join()
        process, ours = begin(settings | {"CLOSESPIDER_TIMEOUT": 4}, url)
        process.join(30)
        stats = ours.recv()
        known = web.living(0.0)
        assert least_gap(web) > gap - LATE
        assert excess(web, rate) <= 16.0 + 1.0
        assert {asked.page for asked in of_pages(web)} >= set(known.tolist())
    with DurableScheduler(folder / "scheduler") as pages:
        assert all(web.url(page) in pages for page in web.living(4.0) if page in known)
        assert stats["recrawl/pages"] == len(pages)


def test_a_crawler_that_is_killed_loses_no_page_and_keeps_gaps_and_budget(tmp_path: Path) -> None:
    kill_often(tmp_path, 3, seed=1)


ROBOTS = "User-agent: *\nCrawl-delay: 0.3\n", "User-agent: *\nDisallow: /p/1\n"


def test_faults_and_new_robots_are_bounded_and_reported(tmp_path: Path) -> None:
    quality = Quality(faults=dict.fromkeys(FAULTS, 0.12), robots={0.0: ROBOTS[0], 6.0: ROBOTS[1]})
    settings = {
        "RECRAWL_FOLDER": str(tmp_path),
        "RECRAWL_BANDWIDTH": 60.0 * DAY,
        "RECRAWL_RETRY": 1.0,
        "RECRAWL_ROBOTS": 1.0,
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_TIMEOUT": 1.5,
        "DOWNLOAD_MAXSIZE": 20_000,
        "CLOSESPIDER_TIMEOUT": 10,
        "LOG_LEVEL": "CRITICAL",
    }
    with served(1.0, 12, quality) as web:
        process, ours = begin(settings, web.base.format("127.0.0.1") + "/")
        process.join(30)
        stats, asked = ours.recv(), of_pages(web)
        kinds = [(*FAULTS, "")[web.fault[each.page]] for each in asked]
        hits = np.zeros((len(FAULTS) + 1, web.trace.num_pages), int)
        for each in asked:
            hits[web.fault[each.page], each.page] += 1
        refused = [each for each in asked if each.path.startswith("/p/1") and each.day > 8.5]
    assert set(kinds) == {*FAULTS, ""}
    for fault in ("hanging", "failing", "endless"):  # at 0, 1, 3 and 7 seconds
        assert 1 <= hits[FAULTS.index(fault)].max() <= 4, fault
    assert hits[FAULTS.index("moved")].max() >= 2
    assert hits[-1].max() > 4
    assert refused == []
    assert least_gap(web, until=5.9) > 0.3 - LATE
    broken = [kind in ("hanging", "failing", "endless") for kind in kinds]
    failed = sum(each.status != 404 for each, bad in zip(asked, broken, strict=True) if bad)
    assert abs(stats["recrawl/failed"] - failed) <= 2
    assert stats["recrawl/gone"] >= 1
    assert "retry/count" not in stats
    with DurableScheduler(tmp_path / "scheduler") as pages:
        moved = [url.replace("/p/", "/moved/") for url in map(web.url, range(65))]
        assert not any(url in pages for url in moved)
        assert web.url(1) not in pages
        assert web.url(2) in pages
