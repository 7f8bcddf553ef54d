"""Comparison of two checkouts: the same steps in both, here twice in this one."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import pytest

from scripts import speed
from scripts.timing import checkouts, stepped
from tests.scripts.commands import done, records, run


def test_the_newest_version_is_stepped(monkeypatch: pytest.MonkeyPatch) -> None:
    older, newer = (gymnasium.envs.registration.EnvSpec(f"Crawl-v{n}") for n in (9, 10))
    monkeypatch.setattr(gymnasium, "registry", {"older": older, "newer": newer})
    assert stepped.newest("Crawl") == "Crawl-v10"


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.timing.commands.pin", lambda: None)
    monkeypatch.setattr(stepped, "CASES", {"ncis, single": stepped.CASES["ncis, single"]})
    words = ["--quick", "--out", str(tmp_path), "--against", str(checkouts.HERE)]
    done(run(speed.app, *words))
    [row] = records(tmp_path / "against.csv")
    assert row["case"] == "ncis, single"
    assert 0.1 < float(row["low"]) <= float(row["median"]) <= float(row["high"]) < 10.0
    made = json.loads((tmp_path / "provenance.json").read_text())["against"]
    assert made["against"] == str(checkouts.HERE)


def test_a_folder_without_the_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"against must be .*checkout"):
        checkouts.cases(tmp_path, 1, 0.01)


def test_a_process_that_ends_is_an_error() -> None:
    with (
        checkouts.worker(checkouts.HERE, "-c", "raise SystemExit(1)") as ask,
        pytest.raises(ValueError, match="must answer 'CrawlNCIS-v0', got its end"),
    ):
        ask("CrawlNCIS-v0")
