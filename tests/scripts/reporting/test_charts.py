from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from crawl_envs.evaluation import Row
from scripts.reporting import charts
from scripts.reporting.comparisons import Sizes, compare

SIZES = Sizes(5, 5.0, 4.0, 10.0, "directory")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    figures: list[Figure] = []
    save = charts.save

    def keep(figure: Figure, path: Path) -> None:
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(charts, "save", keep)
    return figures


def sweep_rows(seeds: int) -> list[Row]:
    return [
        Row("id", f"m={num_pages}", policy, seed, metric, shift + seed / 100 + 1 / num_pages)
        for num_pages in (1000, 10)
        for policy, shift in (("BASELINE", 0.2), ("GREEDY", 0.25), ("LDS", 0.21))
        for seed in range(seeds)
        for metric in ("accuracy", "freshness")
    ]


@pytest.mark.parametrize("seeds", [1, 3])
def test_accuracy_by_pages(tmp_path: Path, drawn: list[Figure], seeds: int) -> None:
    path = tmp_path / "accuracy.png"
    charts.accuracy_by_pages(
        sweep_rows(seeds), path, title="A sweep", reference="BASELINE", metric="accuracy"
    )
    assert path.read_bytes().startswith(b"\x89PNG")
    [figure] = drawn
    level, difference = figure.axes
    assert [text.get_text() for text in level.get_xticklabels()] == ["10", "1,000"]
    assert "share of requests" in level.get_ylabel()
    assert "minus BASELINE" in difference.get_ylabel()
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["BASELINE", "GREEDY", "LDS"]
    greedy = difference.containers[0].lines[0]
    np.testing.assert_allclose(greedy.get_ydata(), 0.05)


def test_policies_as_dots(tmp_path: Path, drawn: list[Figure]) -> None:
    compared = compare("uniform", ["RoundRobin", "Greedy"], SIZES)
    rows = [
        Row("id", "uniform", policy, seed, metric, shift + seed / 100)
        for policy, shift in (("BASELINE", 0.7), ("Greedy", 0.69), ("RoundRobin", 0.5))
        for seed in range(3)
        for metric in ("accuracy", "freshness")
    ]
    charts.policies_as_dots(rows, tmp_path / "dots.png", compared)
    [figure] = drawn
    level, difference = figure.axes
    assert [text.get_text() for text in level.get_yticklabels()] == ["RoundRobin", "Greedy"]
    assert level.get_xlabel() == "accuracy (share of requests served fresh)"
    assert difference.get_xlabel() == "accuracy minus BASELINE, on the same seeds"
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "BASELINE (eq. 5, no signals)",
        "mean, 95% interval over 3 seeds",
    ]
    drawn_differences = np.asarray(difference.containers[0].lines[0].get_xdata(), float)
    np.testing.assert_allclose(drawn_differences, [-0.2, -0.01])
