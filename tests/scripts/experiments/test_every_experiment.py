"""Every experiment: its quick run, and its committed rows scored again."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from scripts import experiments
from scripts.present.claims import write_claims
from scripts.present.experiment import (
    expected_of,
    judged,
    paper_and_figure,
    pictures_of,
    settings_of,
    with_derived,
)
from scripts.study.rows import read_rows
from tests.scripts.experiments.offers.smoothed_rates import predict_by_history

RESULTS = Path(__file__).resolve().parents[3] / "results"
PLAYED = ("ncis", "lambdacrawl", "offers")
QUICK = [
    name
    for name in experiments.names()
    if name.startswith(PLAYED) and name != "offers_tables"  # which has a test of its files
]
SCORED = [
    name
    for name in experiments.names()
    if (RESULTS / name.replace("_", "/", 1) / "rows.parquet").exists()
]


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_run_has_what_is_expected_and_is_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict_by_history(monkeypatch)  # in place of predictors, which take long
    experiment = experiments.find(name)
    settings = settings_of(experiment, quick=True)
    rows = [
        row
        for setting in settings
        for label in setting.labels
        for seed in setting.seeds(2)
        for row in setting.play(label, seed)
    ]
    rows = with_derived(experiment, rows)
    assert {(row.setting, row.policy) for row in rows} >= {
        (setting.name, label) for setting in settings for label in setting.labels
    }
    for picture, draw in pictures_of(experiment).items():
        draw(rows, tmp_path / f"{picture}.png")
        assert (tmp_path / f"{picture}.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", SCORED)
def test_committed_rows_have_the_committed_verdicts(name: str) -> None:
    experiment = experiments.find(name)
    folder = RESULTS / "/".join(paper_and_figure(experiment))
    rows = with_derived(experiment, read_rows(folder / "rows.parquet")[0])
    found = judged(experiment, rows, expected_of(experiment), quick=False)
    with (folder / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        committed = list(csv.DictReader(file))
    assert [(one.setting, one.claim, one.holds) for one in found] == [
        (line["setting"], line["claim"], line["holds"]) for line in committed
    ]
    measured = [float(line["measured"]) for line in committed]
    assert [one.measured for one in found] == pytest.approx(measured, nan_ok=True)


@pytest.mark.parametrize("paper", experiments.papers())
def test_committed_rows_have_the_committed_page(paper: str, tmp_path: Path) -> None:
    for kept in (RESULTS / paper).iterdir():
        if kept.name != "claims.md":
            (tmp_path / kept.name).symlink_to(kept)
    page = write_claims(tmp_path, paper, experiments.of_paper(paper), quick=False)
    assert page.read_bytes() == (RESULTS / paper / "claims.md").read_bytes()
