"""Times of a first use: a full cache is much faster than an empty one; a failure."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scripts.timing import first_use


def test_the_second_use_of_a_family_does_not_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_use, "FAMILIES", ("CrawlNCIS",))
    result = CliRunner().invoke(first_use.app, ["--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (row,) = csv.DictReader((tmp_path / "first_use.csv").read_text().splitlines())
    assert row["family"] == "CrawlNCIS"
    assert 0.0 < 2.0 * float(row["second"]) < float(row["first"])


def test_a_failure_names_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_use, "MEASURED", "raise SystemExit(1)")
    with pytest.raises(ValueError, match="CrawlNCIS failed"):
        first_use.first_use("CrawlNCIS")
