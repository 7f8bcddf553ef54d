import csv
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from scripts.speed import Figure, app, measure_comparison, measure_parts, show, spelled, write
from scripts.timing.comparisons import COMPARISONS, PARTS
from scripts.timing.growth import MOST_CELLS, Cost, cells
from scripts.timing.turns import Spread, spread, take_turns


def figures():
    one = Spread(2.0, 1.5, 2.5)
    return [
        Figure("ratio", "group", "this", "that", "times as fast", one, 1.9),
        Figure("ratio", "group", "this", "other", "times as fast", one, 2.1),
        Figure("start", "import", "wall time", "", "s", one, 2.1),
        Figure("speed", "group", "this", "", "steps/s", one),
        Figure("part", PARTS[0].name, "kernel", "", "s", one),
    ]


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda comparison: comparison.name)
def test_comparisons_run_and_compare_their_tasks(comparison):
    ticks = []
    figures = list(measure_comparison(comparison, 2, 1e-4, lambda: ticks.append(1)))
    ratios = [figure for figure in figures if figure.kind == "ratio"]
    assert len(ticks) == 2
    assert len(ratios) == len(comparison.ratios)
    assert all(figure.spread.median > 0.0 for figure in figures)


@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: parts.name)
def test_parts_run(parts):
    figures = list(measure_parts(parts, 2, 1e-4, lambda: None))
    assert [figure.name for figure in figures] == [name for name, _, _ in parts.differences]


def test_tasks_take_turns():
    seen = []
    tasks = {name: lambda times, name=name: seen.append(name) for name in "ab"}
    turns = list(take_turns(tasks, 3, 0.0))
    assert seen[-6:] == list("ababab")
    assert [set(turn) for turn in turns] == [{"a", "b"}] * 3


def test_spread_is_median_and_quartiles():
    assert spread(np.arange(101.0)) == Spread(50.0, 25.0, 75.0)


def test_verdicts():
    assert [figure.verdict for figure in figures()] == ["pass", "fail", "pass", "", ""]


@pytest.mark.parametrize(
    ("value", "word"),
    [(2.5e6, "2.5 M"), (3e3, "3 k"), (1.0, "1 "), (4e-6, "4 µ"), (5e-9, "5 n"), (-2e-6, "-2 µ")],
)
def test_values_are_spelled_with_a_prefix(value, word):
    assert spelled(value) == word


def test_growth_stays_within_memory():
    assert (100_000, 1) in cells(False)
    assert (1_000, 1024) in cells(False)
    assert all(pages * lanes <= MOST_CELLS for pages, lanes in cells(False))
    assert len(cells(True)) < len(cells(False))


def test_figures_are_shown_and_written(tmp_path):
    terminal = Console(file=StringIO(), width=120)
    show(figures(), terminal)
    assert "2.00x" in terminal.file.getvalue()
    grown = [Cost(10, 1, 1e-6), Cost(100, 1, 2e-6)]
    write(tmp_path, figures(), grown)
    with (tmp_path / "speed.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["pass", "fail", "pass", "", ""]
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "growth.csv").read_text().splitlines()) == 3


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_timed(tmp_path):
    (tmp_path / "file").touch()
    result = CliRunner().invoke(app, ["--out", str(tmp_path / "file" / "below")])
    assert result.exit_code == 1
    assert "error: cannot write" in result.output
