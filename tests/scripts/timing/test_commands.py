"""What all commands that measure have in common: files, the printed table, interrupts."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from scripts.cli.commands import command
from scripts.timing import commands
from tests.scripts.commands import done, files_in, refused, run


class Row(NamedTuple):
    name: str
    value: int | None


def draw(path: Path, rows: list[commands.Row]) -> None:
    path.write_text("picture")


def app(*rows: Row) -> typer.Typer:
    of = commands.Measurement("scripts.timing.example", "example", Row, "Title", draw=draw)

    def main(case: commands.Words = None, out: commands.Out = None) -> None:
        cases = {"first": lambda: rows[:1], "others": lambda: rows[1:]}
        commands.measure(of, commands.select_cases(cases, case), commands.folder_of(out, False))

    return command(main, "Help.")


def test_files_and_table(tmp_path: Path) -> None:
    result = done(run(app(Row("a", 1), Row("b", 20_000), Row("c", None)), out=tmp_path))
    with (tmp_path / "example.csv").open() as file:
        assert list(csv.reader(file)) == [["name", "value"], ["a", "1"], ["b", "20000"], ["c", ""]]
    assert "20,000" in result.stdout
    assert files_in(tmp_path) == {"example.csv", "example.png", "provenance.json"}
    about = json.loads((tmp_path / "provenance.json").read_text())["example"]
    assert about["command"].startswith("python -m scripts.timing.example")
    assert about["cores"] > 0


def test_some_cases_alone(tmp_path: Path) -> None:
    rows = Row("a", 1), Row("b", 2), Row("c", 3)
    done(run(app(*rows), "--case", "oth", out=tmp_path))
    assert (tmp_path / "example.csv").read_text() == "name,value\nb,2\nc,3\n"
    wrong = run(app(*rows), "--case", "oth", "--case", "third", out=tmp_path)
    refused(wrong, "case must be of first; others, got third")


@pytest.mark.parametrize(
    ("where", "message", "files"),
    [
        ("run_cases", "stopped; nothing was written", []),
        ("check_folder", "stopped; nothing was written", []),
        (
            *("write_provenance", "stopped while writing; {} may lack files of this run"),
            ["example.csv"],
        ),
        (
            *("table_of", "stopped while writing; {} may lack files of this run"),
            ["example.csv", "example.png", "provenance.json"],
        ),
    ],
)
def test_an_interrupt_anywhere_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str, message: str, files: list[str]
) -> None:
    def interrupted(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, where, interrupted)
    result = run(app(Row("a", 1)), out=tmp_path)
    assert result.exit_code == 130, result.output
    assert result.output.splitlines()[-1] == message.format(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_groups_stand_above_their_rows() -> None:
    rows = [("a", 1, "x", 1.0), ("a", 1, "y", None), ("a", 2_000, "z", 3)]
    table = commands.table_of(rows, ("case", "pages", "name", "value"), "title", group=2)
    cells = [list(column.cells) for column in table.columns]
    assert cells == [
        ["[bold]a, 1[/]", "x", "y", "[bold]a, 2,000[/]", "z"],
        ["", "1", "", "", "3"],
    ]
