from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawl_envs.evaluation import Row
from scripts import experiments
from scripts.experiments.ncis import fig9
from scripts.present.experiment import measure_settings
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
    assert experiment.name == name.replace("_", "-", 1)
    settings = experiment.playables(quick=False)
    names = [setting.name for setting in settings]
    assert len({*names}) == len(names)
    labels = {label for setting in settings for label in setting.labels}
    assert experiment.claim.endswith(".")
    assert experiment.pictures
    sentences = experiment.sentences([], False)
    committed = ROOT / "results" / experiment.paper / experiment.figure / "rows.parquet"
    rows = experiment.with_derived(read_rows(committed)[0]) if committed.exists() else []
    known = {*names, *(row.setting for row in rows)}
    labels |= {row.policy for row in rows}
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
            assert (item.margin > 0.0) == (item.relation == "about")
    experiment.playables(quick=True)[0].check()


def test_a_new_module_is_discovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "__init__.py").touch()
    text = """
from scripts.experiments.ncis import fig9
from dataclasses import replace
EXPERIMENT = replace(fig9.EXPERIMENT, name="other-table9", title="Table 9")
"""
    (tmp_path / "other" / "table9.py").write_text(text)
    (tmp_path / "other" / "empty.py").touch()
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    assert "other_table9" in experiments.names()
    assert experiments.find("table9").title == "Table 9"
    with pytest.raises(ValueError, match=r"experiments.other.empty must declare EXPERIMENT ="):
        experiments.find("other_empty")
    for name in ("other.table9", "other.empty", "other"):
        del sys.modules[f"scripts.experiments.{name}"]


def test_two_experiments_of_one_name_or_of_another_paper_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"one": "third-twin", "two": "third-twin", "far": "ncis-far"}
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "__init__.py").touch()
    for module, name in names.items():
        text = f"""
from dataclasses import replace
from scripts.experiments.ncis import fig9
EXPERIMENT = replace(fig9.EXPERIMENT, name={name!r})
"""
        (tmp_path / "third" / f"{module}.py").write_text(text)
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    with pytest.raises(ValueError, match=r"far must begin with 'third-', got 'ncis-far'"):
        experiments.find("third_far")
    (tmp_path / "third" / "far.py").unlink()
    with pytest.raises(ValueError, match=r"third_one and third_two must differ"):
        experiments.select(["third_one"])
    (tmp_path / "third" / "two.py").unlink()
    assert experiments.find("third_twin").name == "third-twin"  # by what it declares
    for module in (*(f"third.{name}" for name in names), "third"):
        sys.modules.pop(f"scripts.experiments.{module}", None)


def test_rows_of_former_labels_are_left_out() -> None:
    setting = fig9.EXPERIMENT.playables(quick=False)[0]
    now = Row("id", setting.name, setting.labels[0], 0, "error", 1.0)
    former = now._replace(policy="a former label")
    elsewhere = now._replace(setting="a site that is not here", policy="any")
    kept = fig9.EXPERIMENT.current([now, former, elsewhere], quick=False)
    assert kept == [now, elsewhere]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"only": {"R / m = .1": ("A",)}}, "setting of only and limits must be one of"),
        ({"limits": {"R / m = .1": 3}}, "setting of only and limits must be one of"),
        ({"only": {"one": ("B",)}}, "label of only must be one of A"),
    ],
)
def test_names_in_settings_of_measures_are_checked(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure_settings({"one": {}}, {"A": fig9.EXPERIMENT.derive}, **more)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "fig9"}, "name must be <paper>-<figure>, got 'fig9'"),
        ({"claims": (), "expected": ()}, "ncis-fig9 must have claims or expected, got neither"),
        (
            {"expected": [Trend("V", "abov", "1 term", (), "")]},  # type: ignore[arg-type]
            "relation of V and 1 term in ncis-fig9 must be one of above, about, not below",
        ),
    ],
)
def test_what_is_declared_is_checked(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(fig9.EXPERIMENT, **changed)


def test_an_unknown_reference_is_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fig9, "EXPERIMENT", replace(fig9.EXPERIMENT, references=("LDS",)))
    message = "reference of ncis-fig9 must be one of V, 1 term"
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
    names = [one.name.replace("-", "_", 1) for one in experiments.select(["ncis_fig9", "ncis"])]
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
    monkeypatch.setattr(fig9, "EXPERIMENT", replace(fig9.EXPERIMENT, tables=table))
    folder = tmp_path / "ncis" / "fig9"
    folder.mkdir(parents=True)
    kept = ROOT / "results" / "ncis" / "fig9" / "rows.parquet"
    (folder / "rows.parquet").write_bytes(kept.read_bytes())
    (folder / "README.md").write_text("<!-- number -->\n<!-- end of number -->\n", "utf-8")
    done(run(app, "ncis_fig9", "--score", out=tmp_path))
    count = len(fig9.EXPERIMENT.with_derived(read_rows(kept)[0]))
    assert f"\n{count} rows\n" in (folder / "README.md").read_text("utf-8")


def test_nothing_to_score(tmp_path: Path) -> None:
    refused(
        run(app, "ncis_fig9", "--score", out=tmp_path),
        "has no rows to score; run without --score to simulate them",
    )
    assert not list(tmp_path.rglob("*.*"))


def test_rows_of_an_older_version_are_not_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ROOT / "results" / "ncis" / "fig9" / "rows.parquet"
    (tmp_path / "ncis" / "fig9").mkdir(parents=True)
    (tmp_path / "ncis" / "fig9" / "rows.parquet").write_bytes(kept.read_bytes())
    monkeypatch.setitem(fig9.measure.spec, "version", 2)
    said = "rows of 1 term are of an older version; run without --score to simulate"
    refused(run(app, "ncis_fig9", "--score", out=tmp_path), said)
