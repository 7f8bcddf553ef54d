"""Figures of the live scheduler by numbers of pages, in small."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from scripts.timing import scheduler_scale
from tests.scripts import commands
from tests.scripts.commands import done


def test_figures_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_scale, "QUICK_SIZES", (200, 400))
    monkeypatch.setattr(scheduler_scale, "TIMED", 2_000)
    done(commands.run(scheduler_scale.app, "--quick", out=tmp_path))
    names = {"provenance.json", "scheduler.csv", "scheduler.png"}
    assert {path.name for path in tmp_path.iterdir()} == names
    with (tmp_path / "scheduler.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["policy"], row["pages"]) for row in rows] == [
        (policy, str(pages)) for policy in ("Greedy", "GreedyNCIS") for pages in (200, 400)
    ]
    for row in rows:
        assert all(float(row[name]) > 0.0 for name in row if name != "policy")
        assert 1.0 < float(row["values"]) < 400.0
