"""Bounds beside policies: what they are, and how results gain one that they were made without."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

import policies
from crawl_envs import instances
from policies import solvers
from scripts import experiments
from scripts.study import bounds, runner
from scripts.study.rows import read_rows
from scripts.study.settings import Setting
from scripts.study.workers import Workers
from scripts.suite.bounds import bound_of
from scripts.suite.tasks import OPTIMUM, PERIODIC, POISSON


def test_the_optimum_is_above_the_baseline_and_equal_without_signals() -> None:
    noisy = instances.make("noisy", num_pages=40, bandwidth=10.0, seed=1)
    assert bounds.optimum(noisy) == solvers.ncis(noisy).objective
    assert bounds.optimum(noisy) > bounds.baseline(noisy) + 0.01
    uniform = instances.make("uniform", num_pages=40, bandwidth=10.0, seed=1)
    assert bounds.optimum(uniform) == pytest.approx(bounds.baseline(uniform), rel=1e-10)
    free = bounds.baseline(uniform)
    uniform = instances.make("uniform", num_pages=40, bandwidth=10.0, seed=1, cost_spread=1.0)
    assert bounds.optimum(uniform) == pytest.approx(bounds.baseline(uniform), rel=1e-10)
    assert bounds.baseline(uniform) > free + 0.01


@pytest.mark.parametrize("kind", [PERIODIC, POISSON, OPTIMUM])
def test_equal_costs_are_a_smaller_bandwidth(kind: str) -> None:
    pages = instances.make("noisy", num_pages=20, bandwidth=10.0, seed=1)
    dear = instances.make("noisy", num_pages=20, bandwidth=25.0, seed=1).with_cost([2.5] * 20)
    metrics = [bound_of(instance, kind=kind, metric="bound")["bound"] for instance in (pages, dear)]
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-9)


def test_experiments_with_signals_have_both() -> None:
    both = {"OPTIMUM": bounds.optimum, "BASELINE": bounds.baseline}
    for name in ("ncis_fig4", "ncis_fig6", "ncis_readings"):
        for setting in experiments.find(name).playables(quick=False):
            assert isinstance(setting, Setting)
            assert setting.bounds == both
    [setting, *_] = experiments.find("ncis_fig3").playables(quick=False)
    assert setting.labels[0] == "BASELINE"
    assert "OPTIMUM" not in setting.labels


def test_results_gain_a_bound_without_playing_policies_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.parquet"
    before = Setting(
        "m=5",
        "CrawlNCIS-v0",
        {"instance": "noisy", "num_pages": 5, "bandwidth": 5.0, "horizon": 2.0},
        {"GREEDY": partial(policies.make, "Greedy")},
        {"BASELINE": bounds.baseline},
    )
    after = replace(before, bounds={"OPTIMUM": bounds.optimum, "BASELINE": bounds.baseline})
    played: list[str] = []
    whole = Setting.play

    def noted(self: Setting, label: str, seed: int) -> list[object]:
        played.append(label)
        return whole(self, label, seed)  # type: ignore[return-value]

    monkeypatch.setattr(Setting, "play", noted)
    kept = []
    for setting in (before, after):
        store = runner.Store(path, "test", [setting])
        store.load()
        played.clear()
        runner.run([setting], 4, store, Workers("local", 1), Console(file=io.StringIO()))
        kept.append(read_rows(path)[0])
    assert played == ["OPTIMUM"] * 4
    assert [row for row in kept[1] if row.policy != "OPTIMUM"] == kept[0]
