"""The method of timing, and the quick forms of the commands that measure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from scripts import speed
from scripts.timing import first_use, scale
from scripts.timing.turns import Spread, repeated, spread, timed
from tests.scripts.commands import done, files_in, records, refused, run


@pytest.fixture(autouse=True)
def _not_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.timing.commands.pin", lambda: None)


def test_tasks_take_turns() -> None:
    seen: list[str] = []
    tasks = {name: lambda times, name=name: seen.append(name) for name in "ab"}
    seconds = timed(tasks, 3, 0.0)
    assert seen[-6:] == list("ababab")
    assert {name: each.shape for name, each in seconds.items()} == {"a": (3,), "b": (3,)}


def test_a_repeated_call() -> None:
    seen: list[int] = []
    repeated(seen.append, 4)(3)
    assert seen == [4, 4, 4]


def test_spread_is_median_and_quartiles() -> None:
    assert spread(np.arange(101.0)) == Spread(50.0, 25.0, 75.0)


def test_the_quick_form_writes_the_table_and_its_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = "CrawlNCIS, single", "pages with fragments"
    monkeypatch.setattr(scale, "CASES", [case for case in scale.CASES if case.name in names])
    text = done(run(speed.app, "--quick", out=tmp_path)).stdout
    assert "pages with fragments, 100" in text
    assert files_in(tmp_path) == {"speed.csv", "speed.png", "provenance.json"}
    rows = records(tmp_path / "speed.csv")
    assert {row["case"] for row in rows} == {*names}
    [ratio] = [row for row in rows if row["floor"]]
    assert (ratio["name"], ratio["against"]) == ("ncis, single", "CartPole")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    made = json.loads((tmp_path / "provenance.json").read_text())["speed"]
    assert made["command"].startswith("python -m scripts.speed")


def test_a_month_of_offers_has_a_process_of_its_own(tmp_path: Path) -> None:
    done(run(speed.app, "--quick", "--case", "month of offers", out=tmp_path))
    assert files_in(tmp_path) == {"speed.csv", "provenance.json"}  # no picture of a part
    names = [(row["name"], row["unit"]) for row in records(tmp_path / "speed.csv")]
    assert names == [("31 days", "s"), ("peak memory", "GB")]


def test_the_second_use_of_a_family_does_not_compile(tmp_path: Path) -> None:
    done(run(first_use.app, "--quick", out=tmp_path))
    [row] = records(tmp_path / "first_use.csv")
    assert row["family"] == "CrawlNCIS"
    assert 0.0 < 2.0 * float(row["second"]) < float(row["first"])


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_timed(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    refused(run(speed.app, out=tmp_path / "file" / "below"), "error: cannot write")
