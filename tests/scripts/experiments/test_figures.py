"""The usual pictures, against averages written out; and what a module may declare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from crawl_envs.evaluation import Row
from scripts.experiments import figures
from scripts.experiments.figures import Frame, Series
from scripts.present.experiment import measure_settings, policy_settings
from scripts.study.settings import Measurement, Setting

LEVELS = {("m=10", "A"): 1.0, ("m=10", "B"): 2.0, ("m=40", "A"): 3.0, ("m=40", "B"): 5.0}
ROWS = [
    Row("", setting, label, seed, metric, factor * (level + seed))
    for (setting, label), level in LEVELS.items()
    for seed in (0, 1, 2)
    for metric, factor in (("y", 1.0), ("z[0]", 10.0), ("z[1]", 20.0))
]


def lines_of(figure: Figure) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Points of each line by the titles of panels and labels."""
    return {
        (axes.get_title(), bars.get_label()): list(
            zip(*map(np.ndarray.tolist, bars.lines[0].get_data()), strict=True)
        )
        for axes in figure.axes
        for bars in axes.containers
    }


def test_lines_are_means_compared_with_a_reference(tmp_path: Path, drawn: list[Figure]) -> None:
    series = [
        Series("y", "level", labels={"A": "first", "B": "second"}),
        Series("y", "lead", minus="A", factor=100.0, plus=1.0),
        Series("y", "{setting} alone", settings=("m=40",), over="A"),
    ]
    figures.lines(series, Frame("{seeds} seeds"), positions={"m=10": 10, "m=40": 40})(
        ROWS, tmp_path / "x.png"
    )
    [figure] = drawn
    assert figure.get_suptitle() == "3 seeds"
    ratio = np.mean([5 / 3, 6 / 4, 7 / 5])
    assert lines_of(figure) == {
        ("level", "first"): [(10.0, 2.0), (40.0, 4.0)],
        ("level", "second"): [(10.0, 3.0), (40.0, 6.0)],
        ("lead", "B"): [(10.0, 101.0), (40.0, 201.0)],
        ("m=40 alone", "B"): [(40.0, pytest.approx(ratio))],
    }


def test_a_setting_without_a_position_is_an_error(tmp_path: Path) -> None:
    draw = figures.lines([Series("y")], Frame(""), positions={"m=10": 10})
    with pytest.raises(ValueError, match="positions must have every setting, got none of 'm=40'"):
        draw(ROWS, tmp_path / "x.png")


def test_lines_over_an_index_have_its_positions(tmp_path: Path, drawn: list[Figure]) -> None:
    by_index = [Series("z", {"m=10": "few"}, labels=("A",), over="B", base="y")]
    figures.lines(by_index, Frame(""), along=(0.5, 1.5))(ROWS, tmp_path / "x.png")
    more = pd.DataFrame({"x": [7.0], "y": [8.0], "label": ["told"], "panel": ["few"]})
    places = {"m=10": 0.1, "m=40": 0.4}
    median = [Series("y", "few", labels=("B",))]
    draw = figures.lines(median, Frame(""), positions=places, median=True, more=more)
    draw(ROWS, tmp_path / "y.png")
    share = 10.0 * np.mean([1 / 2, 2 / 3, 3 / 4])
    assert lines_of(drawn[0]) == {
        ("", "A"): [(0.5, pytest.approx(share)), (1.5, pytest.approx(2.0 * share))]
    }
    assert lines_of(drawn[1]) == {
        ("", "B"): [(0.1, 3.0), (0.4, 6.0)],
        ("", "told"): [(7.0, 8.0)],
    }


def test_dots_and_bars_have_lines_of_text(tmp_path: Path, drawn: list[Figure]) -> None:
    draw = figures.dots([Series("y", label="")], Frame(""), y="{policy}, {setting}")
    draw(ROWS, tmp_path / "x.png")
    [axes] = drawn[0].axes
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "A, m=10", "B, m=10", "A, m=40", "B, m=40"
    ]  # fmt: skip
    assert axes.containers[0].lines[0].get_xdata().tolist() == [2.0, 3.0, 4.0, 6.0]
    bars = figures.bars(
        [Series("y", "cost")],
        Frame("{setting}"),
        settings=("m=50", "m=40"),
        names=("B", "A"),
        replacements={("cost", "A"): "endless"},
    )
    bars(ROWS, tmp_path / "y.png")
    [axes] = drawn[1].axes
    assert drawn[1].get_suptitle() == "m=40"
    assert [text.get_text() for text in axes.texts] == ["6", "endless"]


def measure(seed: int, *, size: int) -> dict[str, float]:
    return {"y": float(size + seed)}


def test_declared_settings_are_simulated() -> None:
    settings = measure_settings(
        {"few": {"size": 1}, "many": {"size": 9}},
        {"A": measure, "B": measure},
        only={"many": ("B",)},
        limits={"few": 1},
        quick={"size": 2},
        quick_settings=("many",),
    )
    few, many = settings(False)
    assert isinstance(few, Measurement)
    assert (few.labels, few.most, few.arguments) == (("A", "B"), 1, {"size": 1})
    assert (many.labels, many.seeds(3)) == (("B",), range(3))
    [quick] = settings(True)
    assert quick.play("B", 1) == [Row("", "many", "B", 1, "y", 3.0)]
    compared = policy_settings(
        "CrawlNCIS-v0", {"few": {"num_pages": 5}}, {"one term": "GreedyNCISApprox:terms=1"}
    )
    [setting] = compared(False)
    assert isinstance(setting, Setting)
    assert setting.described()["labels"] == {"one term": {"name": "GreedyNCISApprox", "terms": 1}}
