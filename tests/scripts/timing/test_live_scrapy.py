"""Scrapy's scheduler without a network, and the command with one, on the included site."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from policies.live.overview import overview_of
from scripts.data.replayed_web import Quality
from scripts.timing import live_scrapy
from tests.scripts.commands import done, records, run

SITE, SPEED = "garden-handbook", 0.4


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the feed be asked for less often, as most of the time is spent on reading it."""
    monkeypatch.setattr(live_scrapy, "POLL", 0.5)


@pytest.mark.usefixtures("seldom")
def test_signals_are_worth_it_at_equal_numbers_of_fetches() -> None:
    given = 60.0, SPEED, Quality(window=40)
    settings = [live_scrapy.Setting(SITE, name, *given) for name in live_scrapy.POLICIES]
    rows = [live_scrapy.simulated(setting, 0.005) for setting in settings]
    greedy, in_turn, nutch, storm = rows
    assert greedy.stale < in_turn.stale - 0.05  # .149 and .227
    assert greedy.stale < min(nutch.stale, storm.stale) - 0.05  # .233 and .280
    assert 0.0 < greedy.new < 0.05
    for setting, row in zip(settings[:2], rows, strict=False):
        simulator = live_scrapy.in_simulator(setting)
        assert abs(row.stale - row.new - simulator.stale) < 0.02
        assert simulator.fetches == pytest.approx(row.fetches, rel=0.02)
    assert greedy.fetches == pytest.approx(in_turn.fetches, rel=0.02)
    assert greedy.fetches == pytest.approx(5.5 * 60.0, rel=0.05)
    assert 0 < greedy.not_modified < greedy.fetches


@pytest.mark.usefixtures("seldom")
@pytest.mark.parametrize("precision", [0.9, 0.3])
def test_feeds_that_lie_are_found_out(precision: float, tmp_path: Path) -> None:
    quality = Quality(window=40, precision=precision)
    setting = live_scrapy.Setting(SITE, "GreedyNCIS", 190.0, SPEED, quality)
    engine = live_scrapy.Engine(setting, str(tmp_path), 0.005)
    engine.play(setting.days, setting.speed)
    [learned] = overview_of(engine.scheduler.pages, engine.now)["sources"]
    assert learned["precision"] == pytest.approx(precision, abs=0.08)  # .870 and .244
    assert learned["recall"] == pytest.approx(quality.recall, abs=0.16)  # .831 and .687


def ended(setting: Any, pipe: Connection) -> None:
    """A web whose process ends before it has told its address."""


def ending(setting: Any, pipe: Connection) -> None:
    """A web whose process ends while it is crawled."""
    pipe.send("http://127.0.0.1:1")
    time.sleep(0.5)
    os._exit(7)


def endless(setting: Any, base: str, folder: str, pipe: Connection) -> None:
    time.sleep(600.0)


@pytest.mark.parametrize(("web", "code"), [(ended, 0), (ending, 7)])
def test_a_web_that_ends_ends_the_crawls(
    web: Any, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_scrapy, "serve", web)
    monkeypatch.setattr(live_scrapy, "crawl", endless)
    setting = live_scrapy.Setting(SITE, "GreedyNCIS", 60.0, SPEED)
    with pytest.raises(ValueError, match=f"{web.__name__} must not end .* exit code {code}"):
        list(live_scrapy.over_http([setting]))


@pytest.mark.slow
@pytest.mark.usefixtures("seldom")
def test_the_command_crawls_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_scrapy, "POLICIES", ("NutchAdaptive",))  # with most settings
    arguments = [SITE, "--days", 40, "--speed", 8]
    done(run(live_scrapy.app, *arguments, out=tmp_path / "out"))
    rows = records(tmp_path / "out" / "live_scrapy.csv")
    assert len(rows) == 4
    assert all(0.0 < float(row["stale"]) < 0.8 for row in rows), rows
    assert (tmp_path / "out" / "provenance.json").exists()


def test_few_days_are_refused() -> None:
    result = run(live_scrapy.app, "garden-handbook", "--days", 39)
    assert result.exit_code == 2
    assert "'--days': Input should be greater than or equal to 40" in result.stderr
