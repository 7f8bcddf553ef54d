"""Every experiment: its quick run, and its committed rows scored again."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from scripts import experiments
from scripts.present.claims import write_claims
from scripts.present.experiment import (
    paper_and_figure,
    pictures_of,
    sentences_of,
    settings_of,
    with_derived,
)
from scripts.present.verdicts import Trend
from scripts.study.rows import read_rows
from tests.scripts.experiments.offers.smoothed_rates import predict_by_history

RESULTS = Path(__file__).resolve().parents[3] / "results"
PLAYED = ("ncis", "lambdacrawl", "offers", "longevity", "agents_real")
QUICK = [
    name
    for name in experiments.names()
    if name.startswith(PLAYED) and name != "offers_tables"  # which has a test of its files
]
OF_TWO_SEEDS = ("lambdacrawl_concave", "lambdacrawl_learners", "lambdacrawl_props", "offers_regret")
"""Experiments with metrics that one seed does not have."""
TOO_SHORT = ("lambdacrawl_fig3", "agents_real")
"""Experiments whose quick runs reach no limit, or have too few crawls to learn from."""
NUMBER = re.compile(r"((?<![\w.])\d+\.\d+(?:e-?\d+)?)")
"""Numbers of a page, whose last digits depend on the processor."""
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
    seeds = 2 if name in OF_TWO_SEEDS else 1
    rows = [
        row
        for setting in settings
        for label in setting.labels
        for seed in setting.seeds(seeds)
        for row in setting.play(label, seed)
    ]
    rows = with_derived(experiment, rows)
    assert {(row.setting, row.policy) for row in rows} >= {
        (setting.name, label) for setting in settings for label in setting.labels
    }
    there = {(row.policy, row.metric) for row in rows}
    tests = [test for each in sentences_of(experiment, rows, True) for test in each.claim.tests]
    for test in tests if name not in TOO_SHORT else ():
        labels = (test.first, test.second) if isinstance(test, Trend) else (test.policy,)
        assert {(label, test.metric or experiment.METRIC) for label in labels} <= there, test
    for picture, draw in pictures_of(experiment).items():
        draw(rows, tmp_path / f"{picture}.png")
        assert (tmp_path / f"{picture}.png").stat().st_size > 5_000  # of few colours


@pytest.mark.parametrize("name", SCORED)
def test_committed_rows_have_the_committed_verdicts(name: str) -> None:
    experiment = experiments.find(name)
    folder = RESULTS / "/".join(paper_and_figure(experiment))
    rows = with_derived(experiment, read_rows(folder / "rows.parquet")[0])
    sentences = sentences_of(experiment, rows, quick=False)
    found = [verdict for sentence in sentences for verdict in sentence.verdicts]
    with (folder.parent / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if line["figure"] == folder.name]
    committed = [line for line in lines if line["claim"]]
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
    made, kept = (
        NUMBER.split(file.read_text("utf-8")) for file in (page, RESULTS / paper / "claims.md")
    )
    assert made[::2] == kept[::2]
    assert [*map(float, made[1::2])] == pytest.approx([*map(float, kept[1::2])], rel=1e-2)
