"""Every experiment: its quick run, and its committed rows scored again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from scripts import experiments
from scripts.experiments.longevity import real as longevity_real
from scripts.present.claims import write_claims
from scripts.present.verdicts import Trend
from tests.scripts.commands import records
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
AS_LONG = (
    *("agents_real", "longevity_fig1", "longevity_fig2", "longevity_fig3", "longevity_fig5"),
    *("longevity_real", "ncis_fig9", "ncis_fig12", "ncis_optimum"),
)
"""Experiments whose quick runs are of the same sizes as the whole one, if of fewer settings."""
SMALLER: dict[str, dict[str, Any]] = {
    "longevity_beyond": {"decisions": 0.5},
    "longevity_coverage": {"num_pages": 20},
    "longevity_risk": {"num_pages": 20},
    "offers_table4": {"size": [800, 200, 40, 40, 100]},
}
"""Arguments of quick runs that are still smaller here."""
NUMBER = re.compile(r"((?<![\w.])\d+\.\d+(?:e-?\d+)?)")
"""Numbers of a page, whose last digits depend on the processor."""


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_run_has_what_is_expected_and_is_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: list[Figure]
) -> None:
    predict_by_history(monkeypatch)  # in place of predictors, which take long
    experiment = experiments.find(name)
    monkeypatch.setattr(longevity_real, "DECISIONS", 0.5)
    settings: list[Any] = [
        replace(each, arguments={**each.arguments, **SMALLER.get(name, {})})
        for each in experiment.playables(quick=True)
    ]
    whole = {each.name: each.arguments for each in experiment.playables(quick=False)}
    same = [each.name for each in settings if each.arguments == whole.get(each.name)]
    assert bool(same) == (name in AS_LONG)
    seeds = 2 if name in OF_TWO_SEEDS else 1
    rows = [
        row
        for setting in settings
        for label in setting.labels
        for seed in setting.seeds(seeds)
        for row in setting.play(label, seed)
    ]
    rows = experiment.with_derived(rows)
    assert {(row.setting, row.policy) for row in rows} >= {
        (setting.name, label) for setting in settings for label in setting.labels
    }
    there = {(row.policy, row.metric) for row in rows}
    tests = [test for each in experiment.sentences(rows, True) for test in each.claim.tests]
    for test in tests if name not in TOO_SHORT else ():
        labels = (test.first, test.second) if isinstance(test, Trend) else (test.policy,)
        assert {(label, test.metric or experiment.metric) for label in labels} <= there, test
    for picture, draw in experiment.pictures.items():
        draw(rows, tmp_path / f"{picture}.png")
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert drawn
    assert all(any(axes.has_data() for axes in figure.axes) for figure in drawn)


@pytest.mark.parametrize("paper", experiments.papers())
def test_committed_rows_have_the_committed_page_and_verdicts(paper: str, tmp_path: Path) -> None:
    for kept in (RESULTS / paper).iterdir():
        if kept.name not in ("claims.md", "verdicts.csv"):
            (tmp_path / kept.name).symlink_to(kept)
    write_claims(tmp_path, paper, experiments.of_paper(paper), quick=False)
    made, there = (
        NUMBER.split((folder / "claims.md").read_text("utf-8"))
        for folder in (tmp_path, RESULTS / paper)
    )
    assert made[::2] == there[::2]
    assert [*map(float, made[1::2])] == pytest.approx([*map(float, there[1::2])], rel=1e-2)
    found, known = (records(folder / "verdicts.csv") for folder in (tmp_path, RESULTS / paper))
    for name in ("measured", "half_width"):
        numbers = ([float(line.pop(name) or "nan") for line in lines] for lines in (found, known))
        assert next(numbers) == pytest.approx(next(numbers), nan_ok=True), name
    assert found == known
