from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from crawl_envs.evaluation import Row, mean_and_half_width
from scripts.reporting import charts
from scripts.reporting.rows import indexed


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    figures: list[Figure] = []

    save = charts.save

    def keep(figure: Figure, path: Path) -> None:
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(charts, "save", keep)
    return figures


def rows(setting: str, policy: str, seed: int, name: str, values: list[float]) -> list[Row]:
    return [Row("id", setting, policy, seed, *item) for item in indexed(name, values).items()]


@pytest.mark.parametrize("colour", [None, "recall"])
def test_rates_against_optimal(tmp_path: Path, drawn: list[Figure], colour: str | None) -> None:
    given = []
    for setting in ("m=3", "m=4"):
        for seed in (0, 1):
            optimal = [0.1 * k + seed for k in range(3)]
            given += rows(setting, "BASELINE", seed, "crawl_rate", optimal)
            given += rows(setting, "BASELINE", seed, "recall", [0.0, 0.5, 1.0])
            for shift, policy in enumerate(("GREEDY", "LDS")):
                rates = [rate + shift for rate in optimal]
                given += rows(setting, policy, seed, "crawl_rate", rates)
    path = tmp_path / "rates.png"
    charts.rates_against_optimal(given, path, title="Rates", colour=colour)
    assert path.read_bytes().startswith(b"\x89PNG")
    figure = drawn[0]
    axes = figure.axes[:4]
    assert [panel.get_title() for panel in axes] == [
        "GREEDY, 3 pages",
        "LDS, 3 pages",
        "GREEDY, 4 pages",
        "LDS, 4 pages",
    ]
    [dots] = axes[1].collections
    optimal, rate = np.asarray(dots.get_offsets()).T
    np.testing.assert_allclose(optimal, [0.0, 0.1, 0.2, 1.0, 1.1, 1.2])
    np.testing.assert_allclose(rate, optimal + 1.0)
    assert axes[1].get_xlabel() == "optimal rate (BASELINE),\ncrawls per unit of time"
    charts.rates_against_optimal(given, path, title="Rates", baseline=charts.NO_SIGNALS)
    words = [drawn[1].axes[1].get_xlabel(), drawn[1].get_suptitle()]
    assert all("BASELINE (no signals)" in text and "optimal" not in text for text in words)
    assert len(figure.axes) == (4 if colour is None else 5)
    if colour is not None:
        np.testing.assert_allclose(dots.get_array(), [0.0, 0.5, 1.0] * 2)
        assert "recall" in figure.axes[4].get_ylabel()


def test_courses(tmp_path: Path, drawn: list[Figure]) -> None:
    given = [
        row
        for seed, shift in enumerate((0.0, 0.1, 0.4))
        for row in rows("GREEDY", "R=1", seed, "accuracy", [0.5 + shift, 0.7 + shift])
    ]
    charts.courses(
        given, tmp_path / "c.png", title="T", metric="accuracy", times=2.0, label="a", marks=(3.0,)
    )
    [figure] = drawn
    [axes] = figure.axes
    line, mark = axes.lines
    np.testing.assert_allclose(line.get_xdata(), [2.0, 4.0])
    np.testing.assert_allclose(line.get_ydata(), [0.5 + 0.5 / 3, 0.7 + 0.5 / 3])
    assert list(mark.get_xdata()) == [3.0, 3.0]
    [band] = axes.collections
    _, half = mean_and_half_width([0.5, 0.6, 0.9])
    assert band.get_paths()[0].vertices[:, 1].min() == pytest.approx(0.5 + 0.5 / 3 - half)


def test_shares_by_quality(tmp_path: Path, drawn: list[Figure]) -> None:
    def name(precision: float, recall: float) -> str:
        return f"{precision}, {recall}"

    given = [
        Row("id", "m=5", policy, seed, "saved", value + 0.01 * seed)
        for policy, value in (
            ("drawn", 0.3),
            *((name(p, r), 0.5 * p + 0.2 * r) for p in (0.1, 0.2) for r in (0.3, 0.6)),
        )
        for seed in (0, 1)
    ]
    charts.shares_by_quality(
        [*given, Row("id", "m=9", "drawn", 0, "saved", 0.1)],
        tmp_path / "s.png",
        title="T",
        metric="saved",
        cells=name,
        axes=((0.1, 0.2), (0.3, 0.6)),
        beside=("drawn", "others"),
        marked=(0.16, 0.2),
    )
    [figure] = drawn
    panel = figure.axes[0]
    assert panel.get_title() == "5 pages; others: 30.5%"
    [image] = panel.images
    np.testing.assert_allclose(image.get_array(), [[11.5, 16.5], [17.5, 22.5]])
    assert [text.get_text().split("\n")[0] for text in panel.texts] == [
        "11.5",
        "16.5",
        "17.5",
        "22.5",
    ]
    frames = [(round(patch.get_x() + 0.47), round(patch.get_y() + 0.47)) for patch in panel.patches]
    assert frames == [(1, 0), (0, 1)]


def test_values_over_time(tmp_path: Path, drawn: list[Figure]) -> None:
    given = rows("a", "V", 0, "value", [0.0, 0.5, 0.9]) + rows("a", "1 term", 0, "value", [0.0] * 3)
    charts.values_over_time(
        given, tmp_path / "v.png", title="T", panels={"a": {"end": 6.0, "title": "A", "beta": 2.5}}
    )
    [figure] = drawn
    [axes] = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    np.testing.assert_allclose(lines["V"].get_xdata(), [0.0, 3.0, 6.0])
    np.testing.assert_allclose(lines["V"].get_ydata(), [0.0, 0.5, 0.9])
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["mu/Delta", "V", "1 term"]
    marked = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ":"]
    assert marked == [2.5, 5.0]
