"""The crawlers of docs/examples see the changes of a recorded site, and go on where they ended."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scripts.live.replayed_web import Quality, ReplayedWeb
from tests.docs.pages import ROOT

FOLDER = ROOT / "docs" / "examples"
PROJECT = FOLDER / "scrapy_project"
PAGE = (ROOT / "docs" / "crawlers.md").read_text("utf-8")
FILES = [
    "crawlee_crawl.py",
    "httpx_crawl.py",
    "scrapy_project/recrawl/settings.py",
    "scrapy_project/recrawl/spiders/changes.py",
]
SPEED, BANDWIDTH = 1.0, 20.0 * 86_400.0
"""Days of the record per second, and twenty fetches per second."""
Check = Callable[[ReplayedWeb, Counter[str]], None]


def check(web: ReplayedWeb, seen: Counter[str]) -> None:
    """Check that all pages were seen, some again, and none oftener than it has changed."""
    day = web.day(time.time())
    versions = {web.url(p): 1 + int(np.searchsorted(web.changes[p], day)) for p in web.living(0.0)}
    pages = {url: seen[url] for url in versions}
    assert min(pages.values()) >= 1
    assert max(pages.values()) > 1
    assert [url for url in pages if pages[url] > versions[url]] == []
    statuses = Counter(asked.status for asked in web.log if asked.page >= 0)
    assert statuses[304] > 0
    assert statuses[200] > sum(pages.values())  # not all have validators


def run_project(folder: str, start: str, pipe: Any) -> None:
    """Run the project of Scrapy as its command does, for some seconds, and send its stats."""
    from scrapy.crawler import CrawlerProcess
    from scrapy.utils.project import get_project_settings

    os.chdir(folder)
    sys.path.insert(0, str(PROJECT))
    os.environ["SCRAPY_SETTINGS_MODULE"] = "recrawl.settings"
    settings = get_project_settings()
    trial = {"RECRAWL_BANDWIDTH": BANDWIDTH, "RECRAWL_HOST_GAP": 0, "LOG_LEVEL": "ERROR"}
    settings.update(trial | {"CLOSESPIDER_TIMEOUT": 6, "FEEDS": {"items.jsonl": {}}}, "cmdline")
    process = CrawlerProcess(settings)
    crawler = process.create_crawler("changes")
    process.crawl(crawler, start=start)
    process.start()
    pipe.send(crawler.stats.get_stats())


def test_the_scrapy_project_yields_items_of_changed_pages(tmp_path: Path) -> None:
    pytest.importorskip("scrapy")
    from tests.policies.live.adapters.crawls import FORKS, served

    assert (PROJECT / "scrapy.cfg").read_text() == "[settings]\ndefault = recrawl.settings\n"
    with served(SPEED, 1, Quality()) as web:
        ours, theirs = FORKS.Pipe()
        start = f"{web.base.format('127.0.0.1')}/"
        process = FORKS.Process(target=run_project, args=(str(tmp_path), start, theirs))
        process.start()
        assert ours.poll(100.0)
        stats = ours.recv()
        process.join()
        items = [*map(json.loads, (tmp_path / "items.jsonl").read_text().splitlines())]
        check(web, Counter(item["url"] for item in items))
    assert stats["recrawl/new"] + stats["recrawl/changed"] == len(items)
    assert stats["recrawl/unchanged"] > 0
    assert stats["recrawl/not_modified"] > 0


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a function that imports an example as its command does, in an empty folder."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.chdir(tmp_path)
    imported: list[str] = []

    def import_example(name: str) -> ModuleType:
        imported.append(name)
        return importlib.import_module(name)

    yield import_example
    for name in imported:
        sys.modules.pop(name, None)


def test_the_example_of_crawlee(example: Any, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("crawlee")
    from tests.policies.live.adapters.crawls import served

    module = example("crawlee_crawl")
    with served(SPEED, 1, Quality()) as web:
        start = f"{web.base.format('127.0.0.1')}/"

        async def crawl_twice() -> None:
            for pages in (80, 10):
                await module.crawl(start, tmp_path / "state", BANDWIDTH, 0.0, pages)

        asyncio.run(crawl_twice())
        lines = capsys.readouterr().out.splitlines()
        prefix = "new or changed: "
        check(web, Counter(line.removeprefix(prefix) for line in lines if prefix in line))
    [first, second] = [line for line in lines if "fetches of" in line]
    assert int(first.split()[0]) >= 80
    assert int(second.split()[0]) >= 10


def test_the_loop_of_httpx(example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        importlib.import_module("httpx")
    except ModuleNotFoundError:  # its successor has the same calls
        monkeypatch.setitem(sys.modules, "httpx", pytest.importorskip("httpx2"))
    from tests.policies.live.adapters.crawls import served

    module, seen = example("httpx_crawl"), [Counter[str](), Counter[str]()]
    with served(SPEED, 1, Quality()) as web:
        urls = [*map(web.url, web.living(0.0)), "http://127.0.0.1:1/nobody"]

        async def crawl(run: int) -> None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(4.0):
                    await module.crawl(
                        urls,
                        tmp_path,
                        lambda url, body: seen[run].update([url]),
                        BANDWIDTH,
                        0.0,
                    )

        for run in range(2):
            asyncio.run(crawl(run))
        check(web, seen[0] + seen[1])
        assert sum(seen[1].values()) < sum(seen[0].values())  # it goes on, and begins nothing anew


def test_the_settings_of_the_page_and_of_the_project_exist() -> None:
    pytest.importorskip("scrapy")
    from policies.live.adapters import scrapy

    used = re.findall(r"RECRAWL_[A-Z_]+\b", PAGE + (FOLDER / FILES[2]).read_text("utf-8"))
    assert set(used) <= set(re.findall(r"RECRAWL_[A-Z_]+\b", scrapy.__doc__ or ""))
    assert len(set(used)) > 8


def test_the_examples_are_short_and_in_the_page() -> None:
    for name in FILES:
        assert (FOLDER / name).read_text("utf-8").count("\n") < 110, name
        assert f"{{literalinclude}} examples/{name}\n" in PAGE, name
