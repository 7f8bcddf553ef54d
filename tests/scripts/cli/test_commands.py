"""Commands of functions and of classes of options: their help, errors and exit codes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
from typer import Argument, Option
from typer.testing import CliRunner

from scripts.cli.commands import command_of
from scripts.cli.options import changed, input_folder
from tests.scripts.commands import done, refused


@dataclass(frozen=True, kw_only=True)
class Base:
    out: Annotated[Path | None, Option(help="A folder.", show_default="runs/x")] = None
    fresh: Annotated[bool, Option("--fresh", help="Begin again.")] = False


@dataclass(frozen=True, kw_only=True)
class Options(Base):
    page: Annotated[str, Argument(help="A page.")]
    crawl_days: Annotated[int, Option(min=1, help="Days.")] = 7


def run(*words: str, seen: list[Options] | None = None):
    app = command_of([].append if seen is None else seen.append, Options, "Crawl.")
    return CliRunner().invoke(app, [*words], prog_name="crawl")


def test_the_help_is_that_of_the_annotations() -> None:
    text = done(run("--help")).stdout
    assert re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE) == [
        *("--crawl-days", "--out", "--fresh", "--help"),
    ]
    words = " ".join(text.split())
    assert "Days. [default: 7; x>=1]" in words
    assert "A folder. [default: (runs/x)]" in words
    assert "page <str> A page. [required]" in words


def test_options_are_those_of_the_line() -> None:
    seen: list[Options] = []
    done(run("a", "--crawl-days", "3", seen=seen))
    assert seen == [Options(page="a", crawl_days=3)]
    assert changed(seen[0]) == {"page": "a", "crawl_days": 3}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["a", "--crawl-dyas", "3"], ["option of crawl", "'--crawl-dyas'", "--crawl-days"]),
        (["a", "--crawl-days", "x"], ["'--crawl-days'", "integer", "a --crawl-days x"]),
        (["a", "--crawl-days", "0"], ["'--crawl-days'", "0"]),
        (["a", "--crawl-days"], ["'--crawl-days' requires an argument"]),
        (["a", "b"], ["unexpected extra argument", "(b)"]),
        ([], ["Missing argument 'page'"]),
        (["a", "--out="], ["must not be empty", "--out="]),
        (["", "--fresh"], ["must not be empty"]),
        (["a", "--out", ""], ["must not be empty", "--out"]),
    ],
)
def test_usage_errors_are_one_line(line: list[str], words: list[str]) -> None:
    result = run(*line)
    refused(result, *words)
    assert len(result.stderr.splitlines()) == 1


def test_default_folders_of_two_files_of_one_name_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = (Path("log.csv"), tmp_path / "log.csv", Path("a/log.csv"), tmp_path / "b" / "log.csv")
    folders = [input_folder("estimate", path).name for path in paths]
    assert folders == ["estimate-log.csv"] * 2 + ["estimate-a-log.csv", "estimate-b-log.csv"]
