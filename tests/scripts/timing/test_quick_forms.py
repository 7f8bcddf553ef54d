"""Quick forms of all commands that measure: they write the tables that are committed."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from scripts import speed
from scripts.timing import (
    comparisons,
    figures,
    first_use,
    live_endpoint,
    live_loop,
    longevity_scale,
    offers_scale,
    scheduler_scale,
    shards,
)
from tests.scripts.commands import done, files_in, run

COMMITTED = Path(__file__).resolve().parents[3] / "results" / "speed"
Read = dict[str, list[dict[str, str]]]
"""Rows as read, by table."""


def check_speed(read: Read) -> None:
    kinds = [row["kind"] for row in read["speed"]]
    assert sorted(set(kinds)) == ["part", "ratio", "speed", "start"]
    assert kinds[-2:] == ["start", "start"]
    assert [(row["pages"], row["lanes"]) for row in read["growth"]] == [("10", "1"), ("10", "2")]


def check_first_use(read: Read) -> None:
    """The second use does not compile."""
    [row] = read["first_use"]
    assert row["family"] == "CrawlNCIS"
    assert 0.0 < 2.0 * float(row["second"]) < float(row["first"])


def check_live_endpoint(read: Read) -> None:
    rows = read["live_endpoint"]
    kinds = ["due", "ask", "report", "ask, 100 at once", "metrics"]
    assert [row["request"] for row in rows] == kinds
    for row in rows:
        assert 0.0 < float(row["median_ms"]) <= float(row["p99_ms"])
        assert float(row["bytes_per_page"]) > 200.0


def check_live_loop(read: Read) -> None:
    assert [row["run"] for row in read["live_loop"]] == ["without faults", "with faults"]


def check_longevity(read: Read) -> None:
    names = {variant.name for variant in longevity_scale.VARIANTS}
    logs = {name + longevity_scale.READ_LOG for name in names}
    for lanes, more in (("1", logs), ("2", set())):
        own = [row for row in read["longevity"] if row["lanes"] == lanes]
        speeds = {row["variant"]: float(row["median"]) for row in own if row["what"] == "speed"}
        assert speeds.keys() == {longevity_scale.NCIS, *names, *more}
        assert min(speeds.values()) > 0.0


def check_offers(read: Read) -> None:
    runs = {row["run"] for row in read["offers"]}
    assert runs >= {*offers_scale.STRATEGIES, offers_scale.STEPS}
    assert any(run.startswith(offers_scale.ONE_DAY) for run in runs)
    assert {row["offers"] for row in read["offers"]} == {"200", "120"}  # none of those compiling


def check_scheduler(read: Read) -> None:
    assert [(row["policy"], row["pages"]) for row in read["scheduler"]] == [
        (policy, pages) for policy in ("Greedy", "GreedyNCIS") for pages in ("200", "400")
    ]
    for row in read["scheduler"]:
        assert all(float(row[name]) > 0.0 for name in row if name != "policy")
        assert 1.0 < float(row["values"]) < 400.0


def check_shards(read: Read) -> None:
    values = {
        (row["part"], row["case"], row["scheduler"]): float(row["value"]) for row in read["shards"]
    }
    assert {"freshness", "crawls per second", "seconds of a batch"} <= {each[0] for each in values}
    for (part, case, _), value in values.items():
        if part == "freshness":
            assert value <= values[part, case, "one scheduler"] + 0.002
        elif part == "batches that differ":
            assert value == 0.0  # a shard that was killed goes on as if it had not been
        else:
            assert value > 0.0


class Quick(NamedTuple):
    """A command, its arguments, smaller sizes of its module, a check of its rows, its pictures."""

    module: ModuleType
    check: Callable[[Read], None]
    sizes: Mapping[str, Any]
    words: tuple[str, ...] = ("--quick",)
    pictures: tuple[str, ...] = ()
    sized: ModuleType | None = None
    """The module of the sizes, if it is another one."""


QUICK = {
    "speed": Quick(
        speed,
        check_speed,
        {
            "comparisons": lambda quick: comparisons.COMPARISONS[4:5],
            "PARTS": figures.PARTS[:1],
            "cells": lambda quick: [(10, 1), (10, 2)],
            **{"QUICK_TURNS": 2, "QUICK_SPELL": 1e-4, "QUICK_STARTS": 1},
        },
        pictures=("speed", "parts", "growth"),
        sized=figures,
    ),
    "first_use": Quick(first_use, check_first_use, {}),
    "live_endpoint": Quick(live_endpoint, check_live_endpoint, {}),
    "live_loop": Quick(live_loop, check_live_loop, {}, ("garden-handbook", "--days", "5")),
    "longevity": Quick(
        longevity_scale,
        check_longevity,
        {"QUICK_CELLS": ((20, 1), (20, 2)), "QUICK_SPELL": 1e-4},
        pictures=("longevity", "longevity_bytes"),
    ),
    "offers": Quick(
        offers_scale,
        check_offers,
        {
            **{"QUICK_OFFERS": 200, "QUICK_DAYS": 1, "STEPPED_OFFERS": 120},
            "run_in_process": lambda task: task(),
        },
    ),
    "scheduler": Quick(
        scheduler_scale,
        check_scheduler,
        {"QUICK_SIZES": (200, 400), "TIMED": 2_000},
        pictures=("scheduler",),
    ),
    "shards": Quick(
        shards, check_shards, {"QUICK_PAGES": 400, "BATCH": 100, "ROUNDS": 1, "TURNS": 2}
    ),
}


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_form_writes_the_columns_of_the_committed_tables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    quick = QUICK[name]
    for size, value in quick.sizes.items():
        monkeypatch.setattr(quick.sized or quick.module, size, value)
    monkeypatch.setattr("scripts.timing.commands.pin", lambda: None)
    done(run(quick.module.app, *quick.words, out=tmp_path))
    tables = quick.module.OF.tables
    assert files_in(tmp_path) == {
        *("provenance.json", *(f"{table}.csv" for table in tables)),
        *(f"{picture}.png" for picture in quick.pictures),
    }
    read: Read = {}
    for table in tables:
        here, there = (folder / f"{table}.csv" for folder in (tmp_path, COMMITTED))
        rows = csv.DictReader(here.read_text("utf-8").splitlines())
        assert rows.fieldnames == next(csv.reader(there.read_text("utf-8").splitlines()))
        read[table] = list(rows)
    quick.check(read)
    for picture in quick.pictures:
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    made = json.loads((tmp_path / "provenance.json").read_text())[name]
    assert made["command"].startswith(f"python -m {quick.module.__name__}")
    assert made["cores"] > 0


def test_every_committed_table_has_its_command() -> None:
    tables = {table for quick in QUICK.values() for table in quick.module.OF.tables}
    over_http = {"live_scrapy"}  # of test_live_scrapy
    assert tables | over_http == {path.stem for path in COMMITTED.glob("*.csv")}
