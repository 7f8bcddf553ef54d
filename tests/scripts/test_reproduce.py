from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import experiments
from scripts.present.experiment import (
    check_declared,
    paper_and_figure,
    pictures_of,
    sentences_of,
    settings_of,
    with_derived,
)
from scripts.present.verdicts import Level, Range, Trend
from scripts.reproduce import app
from scripts.study.rows import read_rows, write_rows
from scripts.study.settings import Measurement, Setting
from tests.scripts.commands import done, files_in, refused, run

ROOT = Path(__file__).resolve().parents[2]
QUICK = ["--quick", "--seeds", "2", "--workers", "1"]


@pytest.mark.parametrize("name", experiments.names())
def test_experiments_are_whole(name: str) -> None:
    experiment = experiments.find(name)
    settings = settings_of(experiment, quick=False)
    names = [setting.name for setting in settings]
    assert len({*names}) == len(names)
    labels = {label for setting in settings for label in setting.labels}
    check_declared(experiment)
    assert experiment.CLAIM.endswith(".")
    assert pictures_of(experiment)
    sentences = sentences_of(experiment, [], False)
    assert sentences
    paper, figure = paper_and_figure(experiment)
    committed = ROOT / "results" / paper / figure / "rows.parquet"
    rows = with_derived(experiment, read_rows(committed)[0]) if committed.exists() else []
    known = {*names, *(row.setting for row in rows)}
    for item in (test for sentence in sentences for test in sentence.claim.tests):
        if isinstance(item, Level):
            assert item.setting in names
            assert item.policy in labels
            continue
        assert {*item.settings} <= known
        if isinstance(item, Range):
            assert item.low <= item.high
            assert item.policy in labels
        else:
            assert {item.first, item.second} <= labels
            assert item.relation in ("above", "about", "not below")
            assert (item.margin > 0.0) == (item.relation == "about")
    settings_of(experiment, quick=True)[0].check()


def test_a_new_module_is_discovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "__init__.py").touch()
    (tmp_path / "other" / "table9.py").write_text("TITLE = 'Table 9'\n")
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    assert "other_table9" in experiments.names()
    assert experiments.find("table9").TITLE == "Table 9"
    del sys.modules["scripts.experiments.other.table9"], sys.modules["scripts.experiments.other"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"TITLE": None}, "ncis_fig9 must have NAME, TITLE, CLAIM, METRIC, got no TITLE"),
        ({"CLAIMS": (), "EXPECTED": ()}, "ncis_fig9 must have CLAIMS or EXPECTED, got neither"),
        ({"REFERENCE": "LDS"}, "REFERENCE of ncis_fig9 must be one of V, 1 term"),
        (
            {"EXPECTED": [Trend("V", "abov", "V, 1 term", (), "")]},
            "relation of V and V, 1 term in ncis_fig9 must be one of above, about, not below",
        ),
    ],
)
def test_what_is_not_declared_is_told_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], message: str
) -> None:
    for name, value in changed.items():
        if value is None:
            monkeypatch.delattr(experiments.find("ncis_fig9"), name)
        else:
            monkeypatch.setattr(experiments.find("ncis_fig9"), name, value, raising=False)
    refused(run(app, "ncis_fig9", *QUICK, out=tmp_path), message)
    assert not list(tmp_path.iterdir())


def test_a_figure_is_made_and_gone_on_with(tmp_path: Path) -> None:
    done(run(app, "ncis_fig6", *QUICK, out=tmp_path))
    folder = tmp_path / "ncis" / "fig6"
    assert files_in(folder) == {"accuracy.png", "provenance.json", "rows.parquet", "summary.csv"}
    made = json.loads((folder / "provenance.json").read_text())
    assert made["rows"] == len(read_rows(folder / "rows.parquet")[0])
    assert made["wall_seconds"] > 0.0
    again = done(run(app, "ncis_fig6", *QUICK, out=tmp_path))
    assert "All rows exist" in again.output


def test_changed_rows_are_refused_and_replayed(tmp_path: Path) -> None:
    words = f"ncis_fig4 --quick --repetitions 1 --workers 1 --out {tmp_path}"
    arguments = words.split()
    done(run(app, *arguments))
    path = tmp_path / "ncis" / "fig4" / "rows.parquet"
    rows, about = read_rows(path)
    write_rows(path, [row._replace(value=0.5) for row in rows], about)
    refused(run(app, *arguments), "--fresh")
    done(run(app, *arguments, "--fresh"))
    assert read_rows(path)[0] == rows


def test_experiments_come_in_the_order_of_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("p/__init__", "p/fig10", "p/fig9", "p/saved", "q/__init__", "q/fig1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").touch()
    monkeypatch.setattr(experiments, "__path__", [str(tmp_path)])
    assert experiments.names() == ("p_fig9", "p_fig10", "p_saved", "q_fig1")
    assert experiments.papers() == ("p", "q")


def test_names_and_papers_choose_each_experiment_once() -> None:
    names = ["_".join(paper_and_figure(one)) for one in experiments.chosen(["ncis_fig9", "ncis"])]
    of_paper = [name for name in experiments.names() if name.startswith("ncis_")]
    assert names == ["ncis_fig9", *(name for name in of_paper if name != "ncis_fig9")]


def test_several_are_scored_without_simulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["ncis_fig9", "ncis_fig3", *QUICK, "--out", str(tmp_path)]
    done(run(app, *arguments))
    kept = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))}
    assert {path.name for path in kept} >= {"claims.md", "limit.png", "verdicts.csv"}
    for path in kept:
        if path.name not in ("rows.parquet", "provenance.json"):
            path.unlink()
    monkeypatch.setattr(Measurement, "play", None)
    monkeypatch.setattr(Setting, "play", None)
    done(run(app, *arguments, "--score"))
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))} == kept


def test_a_page_gets_the_tables_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {"number": lambda rows: f"{len(rows)} rows"}
    monkeypatch.setattr(experiments.find("ncis_fig9"), "TABLES", table, raising=False)
    folder = tmp_path / "ncis" / "fig9"
    folder.mkdir(parents=True)
    kept = ROOT / "results" / "ncis" / "fig9" / "rows.parquet"
    (folder / "rows.parquet").write_bytes(kept.read_bytes())
    (folder / "README.md").write_text("<!-- number -->\n<!-- end of number -->\n", "utf-8")
    done(run(app, "ncis_fig9", "--score", out=tmp_path))
    count = len(with_derived(experiments.find("ncis_fig9"), read_rows(kept)[0]))
    assert f"\n{count} rows\n" in (folder / "README.md").read_text("utf-8")


def test_nothing_to_score(tmp_path: Path) -> None:
    refused(
        run(app, "ncis_fig9", "--score", out=tmp_path),
        "has no rows to score: without --score, the same command makes them",
    )
    assert not list(tmp_path.rglob("*.*"))


def test_rows_of_an_older_version_are_not_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ROOT / "results" / "ncis" / "fig9" / "rows.parquet"
    (tmp_path / "ncis" / "fig9").mkdir(parents=True)
    (tmp_path / "ncis" / "fig9" / "rows.parquet").write_bytes(kept.read_bytes())
    monkeypatch.setitem(experiments.find("ncis_fig9").measure.spec, "version", 2)
    said = "rows of 1 term are of an older version: without --score, the same command simulates"
    refused(run(app, "ncis_fig9", "--score", out=tmp_path), said)
