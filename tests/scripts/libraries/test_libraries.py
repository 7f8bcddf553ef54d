"""The compatibility table: outcomes of libraries, and the committed pages made of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from scripts.compatibility import app
from scripts.libraries import interfaces
from scripts.libraries.interfaces import ABSENT, FAILS, IDS, LIBRARIES, WORKS, Library, Outcome
from scripts.libraries.report import page_of, table_of
from tests.scripts.commands import done, records, refused, run

ROOT = Path(__file__).resolve().parents[3]
COMMITTED = ROOT / "results" / "compatibility"
LIGHT = ("Gymnasium", "CleanRL's loop")
"""Libraries that are always installed."""


def _rows(folder: Path) -> list[Outcome]:
    return [Outcome(**row) for row in records(folder / "rows.csv")]


def _fails(id: str) -> None:
    raise RuntimeError(f"cannot use\n{id}, {'x' * 300}, the end")


def test_the_ids_cover_families_observations_and_actions() -> None:
    spaces = [gymnasium.make(id) for id in IDS]
    seen = {type(env.observation_space).__name__ for env in spaces}
    assert seen == {"Box", "Dict"}
    assert {len(env.observation_space.shape or ()) for env in spaces} >= {1, 2}
    assert {type(env.action_space).__name__ for env in spaces} == {"Box", "Discrete"}


@pytest.mark.parametrize("name", [*LIGHT, "Stable-Baselines3", "sb3-contrib"])
def test_installed_libraries_work(name: str) -> None:
    if interfaces.find_spec(LIBRARIES[name].module) is None:
        pytest.skip(f"needs {name}")
    for id in (IDS[2], interfaces.PRESETS[1], interfaces.PRESETS[4]):
        outcome = interfaces.tried(name, id)
        assert (outcome.outcome, outcome.message) == (WORKS, "")


def test_an_error_is_a_result_and_a_missing_module_a_reason(monkeypatch: Any) -> None:
    made = {
        "broken": Library("gymnasium", "gymnasium", "nothing", _fails),
        "missing": Library("nosuch", "nosuch_module", "nothing", _fails),
        "half": Library("gymnasium", "gymnasium", "nothing", _fails, ("nosuch_module",)),
    }
    monkeypatch.setattr(interfaces, "LIBRARIES", made)
    broken = interfaces.tried("broken", "x")
    assert broken.outcome == FAILS
    assert broken.message.startswith("RuntimeError: cannot use x, xxx")
    for name in ("missing", "half"):
        outcome = interfaces.tried(name, "x")
        assert outcome == Outcome(name, "", "x", ABSENT, "no module nosuch_module")


def test_the_page_shows_every_outcome() -> None:
    said = "E: " + "x" * 300 + " the end"
    rows = [
        Outcome("Gymnasium", "1", "p:A-v0", WORKS, ""),
        Outcome("Gymnasium", "1", "p:B-v0", FAILS, said),
        Outcome("Gymnasium", "1", "p:C-v0", FAILS, said),
        *(Outcome("skrl", "", f"p:{name}-v0", ABSENT, "no module skrl") for name in "ABC"),
    ]
    page = page_of(rows)
    assert "| `A-v0` | ✓ | - |\n| `B-v0` | ✗ | - |\n| `C-v0` | ✗ | - |\n" in page
    (line,) = [line for line in page.splitlines() if line.startswith("- Gymnasium, ")]
    assert line.startswith("- Gymnasium, `B-v0`, `C-v0`: `E: xxx")
    assert line.endswith("xxx the end`")
    assert len(line) < 220
    assert "- skrl (no module skrl): `wrap_env`" in page


def test_a_missing_module_is_named_for_a_library_that_is_installed() -> None:
    rows = [Outcome("Minari", "", f"p:{name}-v0", ABSENT, "no module jax") for name in "AB"]
    assert "- Minari (no module jax): `DataCollector`" in page_of(rows)
    assert list(table_of(rows).columns[1].cells) == ["no module jax"]


def test_the_command_writes_rows_and_a_page(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("scripts.compatibility.IDS", IDS[2:3])
    arguments = ["--only", ", ".join(LIGHT), "--out", str(tmp_path)]
    result = done(run(app, *arguments))
    rows = _rows(tmp_path)
    assert [row.library for row in rows] == list(LIGHT)
    assert (tmp_path / "README.md").read_text("utf-8") == page_of(rows)
    assert "CleanRL's loop" in result.output


def test_an_unknown_library_is_one_line(tmp_path: Path) -> None:
    result = run(app, "--only", "Gymnasum", out=tmp_path / "out")
    refused(result, "only 'Gymnasum' is unknown; did you mean Gymnasium?")
    assert not (tmp_path / "out").exists()


def test_the_committed_pages_are_made_of_the_committed_rows() -> None:
    rows = _rows(COMMITTED)
    assert {(row.library, row.id) for row in rows} == {(n, id) for n in LIBRARIES for id in IDS}
    page = (COMMITTED / "README.md").read_text("utf-8")
    assert page == page_of(rows)
    table = re.search(r"\| id \|.*?\n\n", page, re.S)
    assert table is not None
    assert table[0] in (ROOT / "docs" / "ecosystem.md").read_text("utf-8")
