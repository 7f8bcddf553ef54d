import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from scripts.speed import Figure, app, judged, measure_comparison, measure_parts, write
from scripts.timing.commands import shown
from scripts.timing.comparisons import SOLVED, comparisons
from scripts.timing.growth import MOST_CELLS, Cost, cells
from scripts.timing.parts import PARTS
from scripts.timing.turns import Spread, repeated, spread, take_turns, timed


def figures():
    one = np.array([1.0, 1.5, 2.0, 2.5, 3.0])
    return [
        judged("ratio", "group", "this", "that", "times as fast", one, 1.9),
        judged("ratio", "group", "this", "other", "times as fast", one, 2.1),
        judged("start", "import", "wall time", "", "s", one, 2.1),
        judged("speed", "group", "this", "", "steps/s", one),
        judged("part", PARTS[0].name, "kernel", "", "s", one),
    ]


@pytest.mark.parametrize("comparison", comparisons(quick=True), ids=lambda each: each.name)
def test_comparisons_run_and_compare_their_tasks(comparison):
    figures = list(measure_comparison(comparison, 2, 1e-4))
    ratios = [figure for figure in figures if figure.kind == "ratio"]
    assert len(ratios) == len(comparison.ratios)
    assert all(figure.median > 0.0 for figure in figures)


def test_comparisons_of_solvers_have_their_sizes():
    names = [each.name for each in comparisons(quick=False)[-len(SOLVED) :]]
    assert names[1] == "LambdaCrawl over 18,532,314 pages"
    assert names[-1] == "change rates of 500 pages with 98 crawls each"


@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: parts.name)
def test_parts_run(parts):
    figures = list(measure_parts(parts, 2, 1e-4))
    assert [figure.name for figure in figures] == [name for name, _, _ in parts.differences]


def test_tasks_take_turns():
    seen = []
    tasks = {name: lambda times, name=name: seen.append(name) for name in "ab"}
    turns = list(take_turns(tasks, 3, 0.0))
    assert seen[-6:] == list("ababab")
    assert [set(turn) for turn in turns] == [{"a", "b"}] * 3
    assert {name: each.shape for name, each in timed(tasks, 3, 0.0).items()} == {
        "a": (3,),
        "b": (3,),
    }


def test_a_repeated_call():
    seen = []
    repeated(seen.append, 4)(3)
    assert seen == [4, 4, 4]


def test_spread_is_median_and_quartiles():
    assert spread(np.arange(101.0)) == Spread(50.0, 25.0, 75.0)


def test_verdicts():
    assert [figure.verdict for figure in figures()] == ["pass", "fail", "pass", "", ""]
    assert figures()[0][5:8] == (2.0, 1.5, 2.5)


def test_growth_stays_within_memory():
    assert (100_000, 1) in cells(False)
    assert (1_000, 1024) in cells(False)
    assert all(pages * lanes <= MOST_CELLS for pages, lanes in cells(False))
    assert len(cells(True)) < len(cells(False))


def test_figures_are_shown_and_written(tmp_path):
    assert shown(figures(), Figure._fields, "title").row_count == 5
    grown = [Cost(10, 1, 1e-6), Cost(100, 1, 2e-6)]
    write(tmp_path, figures(), grown)
    with (tmp_path / "speed.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["pass", "fail", "pass", "", ""]
    assert [row["bound"] for row in rows] == ["1.9", "2.1", "2.1", "", ""]
    for name in ("speed", "parts", "growth"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "growth.csv").read_text().splitlines()) == 3


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_timed(tmp_path):
    (tmp_path / "file").touch()
    result = CliRunner().invoke(app, ["--out", str(tmp_path / "file" / "below")])
    assert result.exit_code == 2
    assert "error: cannot write" in result.output
