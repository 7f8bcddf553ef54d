"""What committed rows are recognised by: nothing of them would be simulated again."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from scripts import experiments
from scripts.experiments.measures import recorded
from scripts.experiments.ncis import fig8
from scripts.study.rows import read_rows
from scripts.study.runner import Store
from scripts.study.specs import describe
from scripts.suite.bounds import BOUND, POLICY_BOUNDS, bound_of
from scripts.suite.entrants import entrants
from scripts.suite.suites import SUITES

RESULTS = Path(__file__).resolve().parents[3] / "results"
COMMANDS = ("backtest", "benchmark", "evaluate")
SUITE = "crawl-v1"


def test_names_of_jobs_and_specs_are_unique() -> None:
    jobs = [experiments.find(name).name for name in experiments.names()]
    assert not [name for name, count in Counter([*jobs, *SUITES, *COMMANDS]).items() if count > 1]
    functions = {
        value
        for name, module in sys.modules.items()
        if name.startswith("scripts.")
        for value in vars(module).values()
        if inspect.isfunction(value) and hasattr(value, "spec")
    }
    assert len(functions) > 90
    assert len({function.spec["spec"] for function in functions}) == len(functions)


def test_renamed_code_and_titles_keep_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    path = RESULTS / "ncis" / "fig8" / "rows.parquet"
    for function in (fig8.crawled, fig8.bounded):
        for name in ("__name__", "__qualname__", "__module__"):
            monkeypatch.setattr(function, name, "other")
    experiment = replace(fig8.EXPERIMENT, title="Other")
    store = Store(path, experiment.name, experiment.playables(quick=False))
    before = len(read_rows(path)[0])
    store.load()
    assert (len(store.rows), store.changed) == (before, set())
    monkeypatch.setitem(fig8.bounded.spec, "version", 2)
    store = Store(path, experiment.name, experiment.playables(quick=False))
    store.load()
    assert store.changed == {"BASELINE", "OPTIMUM"}
    assert {row.policy for row in store.rows} == {"GREEDY", "GREEDY-CIS+", "GREEDY-NCIS"}


@pytest.fixture
def all_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the sites of the committed rows available, without their histories."""
    for site in recorded.SITES[1:]:
        (tmp_path / site).mkdir()
        (tmp_path / site / "meta.json").write_text("{}")
    monkeypatch.setenv(recorded.FOLDER_VARIABLE, str(tmp_path))


@pytest.mark.usefixtures("all_sites")
@pytest.mark.parametrize("name", experiments.names())
def test_committed_rows_match_the_experiments(name: str) -> None:
    """Sites with fragments are not available here: there, labels are those of the shipped site."""
    experiment = experiments.find(name)
    path = RESULTS / experiment.paper / experiment.figure / "rows.parquet"
    kept = read_rows(path, experiment.name)[1]["settings"]
    now = {setting.name: setting.described() for setting in experiment.playables(quick=False)}
    assert {*now} <= {*kept}
    some = [made for setting in now.values() for made in setting["labels"].items()]
    for setting, described in kept.items():
        if setting in now:
            assert described == now[setting]
        else:
            assert name in ("longevity_fig3", "longevity_fig5", "longevity_real")
            assert all(made in some for made in described["labels"].items())


def test_committed_rows_match_the_suite() -> None:
    kept = read_rows(RESULTS / SUITE / "rows.parquet", SUITE)[1]["settings"]
    factories = {label: each.factory for label, each in entrants([]).items()} | POLICY_BOUNDS
    assert {*kept} == {task.name for task in SUITES[SUITE]}
    for task in SUITES[SUITE]:
        bound = partial(bound_of, kind=task.bound, metric=task.metric)
        now = describe({**factories, BOUND: bound})
        labels = kept[task.name]["labels"]
        assert labels == {label: now[label] for label in labels}
        assert {BOUND, "Greedy"} & labels.keys()
