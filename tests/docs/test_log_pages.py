"""What the pages on crawl logs quote is what their commands print and write."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from scripts import backtest, estimate, schedule
from scripts.live import example_log
from tests.docs.pages import ROOT
from tests.scripts.commands import done, records, run

COMMANDS = {
    "scripts.live.example_log": example_log.app,
    "scripts.estimate": estimate.app,
    "scripts.backtest": backtest.app,
    "scripts.schedule": schedule.app,
}


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def output_of(line: str) -> str:
    """Run a line ``python -m ...``; return what it prints, with one blank for borders."""
    words = shlex.split(line, comments=True)
    return plain(done(run(COMMANDS[words[2]], *words[3:])).output)


def plain(text: str) -> str:
    return re.sub(r"[\s│┃]+", " ", text)


def first_commands(text: str) -> list[str]:
    """Return the command lines before the first line of prose."""
    return [line for line in text.split("\n\n")[1].splitlines() if line.startswith("    python")]


def quoted(text: str) -> list[str]:
    """Return the indented lines before the first section that are no commands."""
    lines = re.findall(r"^    (.+)$", text.partition("\n## ")[0], re.MULTILINE)
    return [plain(line) for line in lines if not line.startswith("python")]


@pytest.fixture(scope="module")
def rates(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run the commands of rates.md in a folder; return it, and what the last one prints."""
    folder = tmp_path_factory.mktemp("rates")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        outputs = [output_of(line) for line in first_commands(page("rates"))]
    assert len(outputs) == 2
    return folder, outputs[-1]


def test_the_log_and_the_rates_of_the_first_screen(rates: Any) -> None:
    folder, output = rates
    lines = quoted(page("rates"))
    assert len(lines) == 12
    assert [line for line in lines if line not in output] == []
    table = re.findall(r"^\| …(\S+) \| (.+) \|$", page("rates"), re.MULTILINE)
    for (url, cells), row in zip(table, records(folder / "mine" / "pages.csv"), strict=False):
        assert row["url"].endswith(url)
        low, high = (row[f"change_rate_{end}"] for end in ("low", "high"))
        numbers = [f"{float(x):.4f}".lstrip("0") for x in (row["change_rate"], low, high)]
        assert cells.split(" | ") == [*numbers, row["evidence"], row["signals:mentions"]]


def test_the_schedule_of_the_first_screen(rates: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(rates[0])
    [command] = first_commands(page("crawlers"))
    output, lines = output_of(command), quoted(page("crawlers"))
    assert len(lines) == 6
    assert [line for line in lines if line not in output] == []
    written = records(Path("runs/schedule-mine-pages.csv/schedule.csv"))
    assert all(row["url"] in line for row, line in zip(written, lines[:2], strict=False))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("backtest", 5), ("costs", 6)])
def test_the_table_of_the_backtest(
    name: str, count: int, rates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(rates[0])
    *_, command = first_commands(page(name))
    rows = re.findall(r"^\| (.+ ± .+?)[ |]+$", page(name).partition("\n## ")[0], re.MULTILINE)
    output = output_of(f"{command} --fresh")
    assert len(rows) == count
    assert [row for row in rows if row.replace("| ", "") not in output] == []
    assert [line for line in quoted(page(name)) if line not in output] == []


def test_the_table_of_goals(rates: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(rates[0])
    *_, command = first_commands(page("promises"))
    output, text = output_of(command), page("promises")
    rows = re.findall(r"^\| (all.+?)[ |]+$", text, re.MULTILINE)
    above = text.partition("```")[0]
    lines = [plain(x) for x in re.findall(r"^    (?!python)(\w.+)$", above, re.MULTILINE)]
    assert (len(rows), len(lines)) == (6, 1)
    assert [row for row in [*rows, *lines] if row.replace("| ", "") not in output] == []


def test_the_costs_of_the_estimate_and_the_schedule(
    rates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(rates[0])
    text = page("costs").partition("## Schedule")[2]
    commands = [line for line in text.splitlines() if line.startswith("    python")]
    output = " ".join(map(output_of, commands))
    lines = [plain(x) for x in re.findall(r"^    (?!python)(.+)$", text, re.MULTILINE)]
    assert (len(commands), len(lines)) == (2, 4)
    assert [line for line in lines if line not in output] == []
