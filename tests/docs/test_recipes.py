"""Each recipe of docs/recipes.md runs as it stands, on what its tool writes of one small site."""

from __future__ import annotations

import glob
import re
import shlex
import sqlite3
import zipfile
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scripts import estimate, schedule
from tests.docs.tool_logs import RECIPES, SECTIONS, TOOLS, VERSIONS, fetches, own_log
from tests.scripts.commands import done, records, run

PAGES, UNCHANGED, CHANGED = 3, 9, 3
"""What the site above has: 4 intervals of each of 3 pages, 3 of which have a change."""
BLOCK = re.compile(r"^```python\n((?:.*\n)*?)```|^    (\S(?:.*\\\n)*.*)$", re.MULTILINE)
SIGNALS = {"Sitemaps": ("sitemap", 6), "Miniflux": ("feed", 4)}
"""Source and number of signals: a date for each new version; two pages for each of two entries."""


def test_every_recipe_is_run():
    assert [*TOOLS, "Another tool"] == list(SECTIONS)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_recipe_reads_what_its_tool_writes(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TOOLS[tool]()
    estimated = 0
    for code, line in BLOCK.findall(SECTIONS[tool]):
        words = words_of(line)
        if code:
            run_code(code, tool, monkeypatch)
        elif words[:3] == ["python", "-m", "zipfile"]:
            zipfile.main(words[3:])
        elif words[:3] == ["python", "-m", "scripts.estimate"]:
            done(run(estimate.app, *words[3:], out=f"out{estimated}"))
            check(f"out{estimated}", tool)
            estimated += 1
        for name in written(words):  # the sample has what the tool writes, by the same name
            assert any(fnmatch(str(path), name) for path in Path().rglob("*")), line
    assert estimated


def written(words: list[str]) -> list[str]:
    """Return the files that a command of a tool writes, with ``*`` for the date."""
    names = [name for option, name in pairwise(words) if option == "-o"]
    names += [word.removeprefix("--output=") for word in words if word.startswith("--output=")]
    return [name.replace("$(date +%F)", "*") for name in names]


def words_of(line: str) -> list[str]:
    """Return the words of a line of the shell, with file names for patterns."""
    words = shlex.split(line.replace("\\\n", " ").replace("$(date +%F)", "'$(date +%F)'"))
    return [name for word in words for name in (sorted(glob.glob(word)) or [word])]


def run_code(code: str, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    exec(compile(code, tool, "exec"), names)
    for value in names.values():
        if isinstance(value, sqlite3.Connection):
            value.close()
    if tool == "Scrapy":
        crawl_with_scrapy(names, monkeypatch)


def check(folder: str, tool: str) -> None:
    """Compare the summary of a log with the site."""
    rows = records(Path(folder) / "summary.csv")
    count = {row["name"].strip(): row["value"] for row in rows}
    wanted = {"pages": PAGES, "first": PAGES, "unchanged": UNCHANGED, "changed": CHANGED}
    assert {name: int(count[name]) for name in wanted} == wanted
    assert count["first row"] == "2026-01-05 12:00"
    assert len(records(Path(folder) / "pages.csv")) == PAGES
    source, number = SIGNALS.get(tool, ("", 0))
    assert {name: int(value) for name, value in count.items() if name.startswith("signals of")} == (
        {f"signals of {source}": number} if source else {}
    )


def test_the_commands_of_the_first_screen_lead_to_a_schedule(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own_log()
    lines = [words_of(line) for _, line in BLOCK.findall(RECIPES.partition("\n## ")[0])]
    named = {words[2]: words[3:] for words in lines}
    assert list(named) == ["scripts.estimate", "scripts.backtest", "scripts.schedule"]
    done(run(estimate.app, *named["scripts.estimate"]))
    done(run(schedule.app, *named["scripts.schedule"]))
    [fetched] = Path().glob("runs/schedule-*/schedule.csv")
    assert {row["url"] for row in records(fetched)} == set(VERSIONS)


def crawl_with_scrapy(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Send the signals of a crawl to the extension of the page."""
    from scrapy.http import Request, TextResponse
    from scrapy.signalmanager import SignalManager

    class Crawler:
        signals = SignalManager()

    extension = names["FetchLog"].from_crawler(Crawler())
    for x in fetches():
        monkeypatch.setattr("time.time", x.time.timestamp)
        response = TextResponse(x.url, body=x.version.encode())
        Crawler.signals.send_catch_log(
            names["signals"].response_received,
            response=response,
            request=Request(x.url),
            spider=None,
        )
    assert extension is not None  # signals hold it weakly
