import numpy as np
import pytest

from scripts.speed import app
from scripts.timing.comparisons import SOLVED, comparisons
from scripts.timing.figures import judged, measure_comparison
from scripts.timing.growth import MOST_CELLS, cells
from scripts.timing.parts import PARTS
from scripts.timing.turns import Spread, repeated, spread, timed
from tests.scripts.commands import refused, run

# Training on 100 pages is that on 20, and takes five times as long.
PLAYED = [each for each in comparisons(quick=True) if each.name != "PPO, 64 lanes of 100 pages"]


@pytest.mark.parametrize("comparison", [*PLAYED, *PARTS], ids=lambda each: each.name)
def test_comparisons_run_and_compare_their_tasks(comparison):
    figures = list(measure_comparison(comparison, 2, 1e-4))
    of = {kind: [each for each in figures if each.kind == kind] for kind in ("ratio", "part")}
    assert [(each.name, each.against) for each in of["ratio"]] == [
        ratio[:2] for ratio in comparison.ratios
    ]
    assert [each.name for each in of["part"]] == [each[0] for each in comparison.differences]
    assert comparison.ratios or comparison.differences or figures
    assert all(figure.median > 0.0 for figure in figures if figure.kind != "part")


def test_comparisons_of_solvers_have_their_sizes():
    names = [each.name for each in comparisons(quick=False)[-len(SOLVED) :]]
    assert names[1] == "LambdaCrawl over 18,532,314 pages"
    assert names[-1] == "change rates of 500 pages with 98 crawls each"


def test_tasks_take_turns():
    seen = []
    tasks = {name: lambda times, name=name: seen.append(name) for name in "ab"}
    seconds = timed(tasks, 3, 0.0)
    assert seen[-6:] == list("ababab")
    assert {name: each.shape for name, each in seconds.items()} == {"a": (3,), "b": (3,)}


def test_a_repeated_call():
    seen = []
    repeated(seen.append, 4)(3)
    assert seen == [4, 4, 4]


def test_spread_is_median_and_quartiles():
    assert spread(np.arange(101.0)) == Spread(50.0, 25.0, 75.0)


@pytest.mark.parametrize(
    ("kind", "bound", "verdict"),
    [
        ("ratio", 1.9, "pass"),
        ("ratio", 2.1, "fail"),
        ("start", 2.1, "pass"),
        ("start", 1.9, "fail"),
        ("speed", None, ""),
    ],
)
def test_verdicts(kind, bound, verdict):
    labels = kind, "group", "this", "that", "unit"
    figure = judged(np.array([1.0, 1.5, 2.0, 2.5, 3.0]), bound, *labels)
    assert figure == (*labels, 2.0, 1.5, 2.5, bound, verdict)


def test_growth_stays_within_memory():
    assert (100_000, 1) in cells(False)
    assert (1_000, 1024) in cells(False)
    assert all(pages * lanes <= MOST_CELLS for pages, lanes in cells(False))
    assert len(cells(True)) < len(cells(False))


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_timed(tmp_path):
    (tmp_path / "file").touch()
    refused(run(app, out=tmp_path / "file" / "below"), "error: cannot write")
