"""What all commands that measure have in common: files, the printed table, interrupts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from scripts.timing import commands
from tests.scripts.commands import done, files_in, run


class Row(NamedTuple):
    name: str
    value: int | None


class Other(NamedTuple):
    other: float


def draw(path: Path, rows: list[commands.Row]) -> None:
    path.write_text("picture")


def measuring(*rows: commands.Row) -> typer.Typer:
    def cases(quick: bool) -> commands.Cases:
        compiled = commands.compiling({"first": lambda: rows[:1]})
        others = {"others": lambda: rows[:2] if quick else rows[1:]}
        return {**compiled, "first": lambda: rows[:1], **others}

    tables = {"example": Row, "other": Other}
    of = commands.Measurement("scripts.timing.example", tables, "Title", draw=draw)
    return commands.measuring(of, "Help.", cases)


def test_files_and_table(tmp_path: Path) -> None:
    rows = Row("a", 1), Other(0.5), Row("b", 20_000), Row("c", None)
    result = done(run(measuring(*rows), out=tmp_path))
    with (tmp_path / "example.csv").open() as file:
        assert list(csv.reader(file)) == [["name", "value"], ["a", "1"], ["b", "20000"], ["c", ""]]
    assert (tmp_path / "other.csv").read_text() == "other\n0.5\n"
    assert "20,000" in result.stdout
    assert files_in(tmp_path) == {*("example.csv", "example.png", "other.csv", "provenance.json")}
    done(run(measuring(Row("a", 1), Row("b", 2)), "--quick", out=tmp_path))
    assert len((tmp_path / "example.csv").read_text().splitlines()) == 4


def test_some_cases_alone_make_no_picture(tmp_path: Path) -> None:
    rows = Row("a", 1), Row("b", 2), Row("c", 3)
    done(run(measuring(*rows), "--case", "oth", out=tmp_path))
    assert (tmp_path / "example.csv").read_text() == "name,value\nb,2\nc,3\n"
    assert not (tmp_path / "example.png").exists()
    refused = run(measuring(*rows), "--case", "oth", "--case", "third", out=tmp_path)
    assert "case must be of compiling: first; first; others, got third" in refused.output


@pytest.mark.parametrize(
    ("where", "message", "files"),
    [
        ("run_cases", "stopped; nothing was written", []),
        ("check_folder", "stopped; nothing was written", []),
        (
            *("write_provenance", "stopped while writing; {} may lack files of this run"),
            ["example.csv", "other.csv"],
        ),
        (
            *("shown", "stopped while writing; {} may lack files of this run"),
            ["example.csv", "example.png", "other.csv", "provenance.json"],
        ),
    ],
)
def test_an_interrupt_anywhere_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str, message: str, files: list[str]
) -> None:
    def interrupted(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, where, interrupted)
    result = run(measuring(Row("a", 1)), out=tmp_path)
    assert result.exit_code == 130, result.output
    assert result.output.splitlines()[-1] == message.format(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_groups_stand_above_their_rows() -> None:
    rows = [("a", 1.0), ("b", 2.0), ("c", 3.0)]
    table = commands.shown(rows, ("name", "value"), "title", ["first", "first", "second"])
    assert list(table.columns[0].cells) == ["[bold]first[/]", "a", "b", "[bold]second[/]", "c"]
