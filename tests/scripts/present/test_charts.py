from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from scripts.present import charts
from scripts.present.charts import Axis, Frame, Rule


def curves() -> pd.DataFrame:
    """Return three lines in two panels, in no order of x."""
    return pd.DataFrame(
        [
            {"panel": panel, "label": label, "x": x, "y": shift * x, "half": 0.1 * x}
            for panel in ("first", "second")
            for label, shift in (("bound", 3.0), ("a", 1.0), ("b", 2.0))
            for x in (10.0, 1.0, 100.0)
        ]
    )


def texts_of(legend: object) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]  # type: ignore[attr-defined]


def test_lines_with_intervals(tmp_path: Path, drawn: list[Figure]) -> None:
    frame = Frame(
        "A title",
        Axis("pages", "log", ticks=(1, 10, 100)),
        {"first": Axis("one"), "second": Axis("other", limits=(0.0, 500.0))},
        shared="x",
        across=[Rule(7.0, "seven", panel="second")],
    )
    path = tmp_path / "lines.png"
    charts.lines(curves(), path, frame, labels=("a", "b", "bound"), black=("bound",))
    assert path.read_bytes().startswith(b"\x89PNG")
    [figure] = drawn
    first, second = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["first", "second"]
    assert (first.get_ylabel(), second.get_ylabel()) == ("one", "other")
    assert second.get_ylim() == (0.0, 500.0)
    assert [text.get_text() for text in first.get_xticklabels()] == ["1", "10", "100"]
    [legend] = figure.legends
    assert sorted(texts_of(legend)) == ["a", "b", "bound", "seven"]
    b = first.containers[1].lines[0]
    np.testing.assert_array_equal(b.get_xdata(), [1.0, 10.0, 100.0])
    np.testing.assert_array_equal(b.get_ydata(), [2.0, 20.0, 200.0])
    assert first.containers[2].lines[0].get_color() == charts.LINE_COLOUR
    [ends] = [np.array(bar.get_segments())[:, :, 1] for bar in first.containers[1].lines[2]]
    np.testing.assert_allclose(ends, [[1.9, 2.1], [19.0, 21.0], [190.0, 210.0]])
    assert [line.get_ydata()[0] for line in second.lines if line.get_label() == "seven"] == [7.0]
    assert not [line for line in first.lines if line.get_label() == "seven"]


def test_bands_and_ends_of_intervals(tmp_path: Path, drawn: list[Figure]) -> None:
    data = curves().query("panel == 'first' and label == 'a'").drop(columns=["panel", "half"])
    data = data.assign(low=data.y - 0.5, high=data.y + 2.0)
    charts.lines(data, tmp_path / "bands.png", Frame("T"), bands=False)
    [axes] = drawn[0].axes
    [ends] = [np.array(bar.get_segments())[:, :, 1] for bar in axes.containers[0].lines[2]]
    np.testing.assert_allclose(ends, [[0.5, 3.0], [9.5, 12.0], [99.5, 102.0]])
    charts.lines(data, tmp_path / "bands.png", Frame("T"), bands=True)
    [band] = drawn[1].axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.5, 102.0)
    charts.lines(curves(), tmp_path / "bands.png", Frame("T"), bands=True)
    first = drawn[2].axes[0]
    assert len(first.collections) == 3
    assert first.collections[0].get_paths()[0].vertices[:, 1].max() == pytest.approx(310.0)


def test_dots_side_by_side(tmp_path: Path, drawn: list[Figure]) -> None:
    data = curves().query("panel == 'first'").drop(columns="panel")
    data = data.assign(y=data.x.map("at {:g}".format), x=data.y)
    frame = Frame("T", upright=[Rule(0.0)])
    names = ("at 100", "at 1", "at 10", "nowhere")
    charts.dots(data, tmp_path / "dots.png", frame, labels=("a", "b"), names=names)
    [axes] = drawn[0].axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["at 100", "at 1", "at 10"]
    a, b = (part.lines[0] for part in axes.containers)
    np.testing.assert_array_equal(a.get_xdata(), [10.0, 1.0, 100.0])
    assert np.all(np.rint(a.get_ydata()) == [2, 1, 0])
    assert np.all(np.asarray(b.get_ydata()) > np.asarray(a.get_ydata()))
    assert axes.yaxis_inverted()


def test_dots_of_one_label_per_line_lie_on_their_lines(tmp_path: Path, drawn: list[Figure]) -> None:
    data = pd.DataFrame({"y": ["p", "q", "r"], "x": [1.0, 2.0, 3.0], "label": ["a", "b", "a"]})
    data = pd.concat([data.assign(panel="A"), data[:2].assign(panel="B")])
    charts.dots(data, tmp_path / "dots.png", Frame("T", shared="y"))
    for axes in drawn[0].axes:
        heights = [part.lines[0].get_ydata() for part in axes.containers]
        np.testing.assert_array_equal(np.concatenate(heights) % 1, 0)


def test_panels_without_shared_axes_have_separate_text_lines(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    data = pd.DataFrame({"y": ["p", "q", "r"], "x": [1.0, 2.0, 3.0], "panel": ["A", "A", "B"]})
    charts.dots(data, tmp_path / "dots.png", Frame("T", shared="none"))
    labels = [[text.get_text() for text in axes.get_yticklabels()] for axes in drawn[0].axes]
    assert labels == [["p", "q"], ["r"]]


def test_points_with_medians_within_the_limits(tmp_path: Path, drawn: list[Figure]) -> None:
    data = pd.DataFrame({"y": ["p"] * 3 + ["q"], "x": [0.0, 0.4, 9.0, -9.0]})
    charts.points(data, tmp_path / "points.png", Frame("T", Axis(limits=(-1.0, 1.0))))
    [axes] = drawn[0].axes
    shown = [(line.get_marker(), list(line.get_xdata())) for line in axes.lines]
    inside, *_, interval, median = shown[:5]
    assert inside == ("o", [0.0, 0.4])
    assert shown[2] == (">", [1.0])
    assert shown[6] == ("<", [-1.0])
    assert np.isnan(interval[1]).all()
    assert median == ("D", [0.4])


def test_medians_of_points_have_their_intervals(tmp_path: Path, drawn: list[Figure]) -> None:
    data = pd.DataFrame({"y": "p", "x": np.arange(9.0)})
    charts.points(data, tmp_path / "points.png", Frame("T"))
    *_, interval, median = drawn[0].axes[0].lines
    assert list(median.get_xdata()) == [4.0]
    assert list(interval.get_xdata()) == [1.0, 7.0]  # P(X < 2) = 10 / 512 of binomial (9, 1/2)


def test_bars_with_their_values(tmp_path: Path, drawn: list[Figure]) -> None:
    data = pd.DataFrame({"y": ["p", "q"], "x": [1234.0, np.nan], "text": ["many", "none"]})
    charts.bars(data, tmp_path / "bars.png", Frame("T"), names=("q", "p"))
    [axes] = drawn[0].axes
    assert [patch.get_width() for patch in axes.patches] == [1234.0, 0.0]
    assert [(text.get_text(), text.xy[1]) for text in axes.texts] == [("many", 1), ("none", 0)]
    charts.bars(data.drop(columns="text"), tmp_path / "bars.png", Frame("T"))
    assert drawn[1].axes[0].texts[0].get_text() == "1.23e+03"


def test_scatter_with_shades(tmp_path: Path, drawn: list[Figure]) -> None:
    data = pd.DataFrame({"x": [0.0, 1.0], "y": [2.0, 3.0], "shade": [0.5, 0.7]})
    shade = Axis("how much", ticks=(0.5, 0.7), names=("half", "more"))
    charts.scatter(data, tmp_path / "dots.png", Frame("T", diagonal=True), shade=shade)
    axes, bar = drawn[0].axes
    np.testing.assert_array_equal(axes.collections[0].get_offsets(), [[0.0, 2.0], [1.0, 3.0]])
    np.testing.assert_array_equal(axes.collections[0].get_array(), [0.5, 0.7])
    assert bar.get_ylabel() == "how much"
    assert [text.get_text() for text in bar.get_yticklabels()] == ["half", "more"]


def test_heat_map_with_frames(tmp_path: Path, drawn: list[Figure]) -> None:
    cells = [(p, r, 50.0 * p + 20.0 * r) for p in (0.1, 0.2) for r in (0.3, 0.6)]
    data = pd.DataFrame(cells, columns=["x", "y", "value"]).assign(half=1.0)
    charts.heat_map(
        data,
        tmp_path / "map.png",
        Frame("T"),
        values="share",
        texts=lambda mean, half: f"{mean:.1f} ± {half:.1f}",
        framed=(16.0, 20.0),
        limits=(0.0, 80.0),
    )
    axes = drawn[0].axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), [[11.0, 16.0], [17.0, 22.0]])
    assert sorted(text.get_text() for text in axes.texts)[:2] == ["11.0 ± 1.0", "16.0 ± 1.0"]
    frames = {(round(patch.get_x() + 0.47), round(patch.get_y() + 0.47)) for patch in axes.patches}
    assert frames == {(1, 0), (0, 1)}


def test_legends_of_panels(tmp_path: Path, drawn: list[Figure]) -> None:
    data = curves()
    data = data[(data.panel == "first") | (data.label == "b")]
    charts.lines(data, tmp_path / "lines.png", Frame("T", legend="each"))
    first, second = drawn[0].axes
    assert texts_of(first.get_legend()) == ["bound", "a", "b"]
    assert texts_of(second.get_legend()) == ["b"]
    assert second.containers[0].lines[0].get_color() == charts.COLOURS[0]
    assert not drawn[0].legends


def test_long_titles_are_wrapped(tmp_path: Path, drawn: list[Figure]) -> None:
    charts.lines(curves(), tmp_path / "lines.png", Frame("word " * 60))
    lines = drawn[0].get_suptitle().splitlines()
    assert 1 < len(lines) <= max(map(len, lines)) < 115


def test_a_saved_picture_has_a_palette_and_looks_the_same(tmp_path: Path) -> None:
    charts.lines(curves(), tmp_path / "lines.png", Frame("T"))
    drawn = np.random.default_rng(0).normal(128.0, 40.0, (60, 60, 3)).clip(0, 255)
    drawn[:40] = 255.0
    picture = charts.with_palette(Image.fromarray(drawn.astype(np.uint8)))
    with Image.open(tmp_path / "lines.png") as saved:
        assert saved.mode == picture.mode == "P"
        assert len(saved.getcolors()) < charts.PALETTES[-1] == len(picture.getcolors())
    off = np.abs(np.asarray(picture.convert("RGB")) - drawn)
    assert off[:40].max() == 0.0
    assert np.median(off[40:]) < 15.0


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
def test_marks_keep_off_the_edges_by_shares_of_the_axis(
    scale: str, tmp_path: Path, drawn: list[Figure]
) -> None:
    rows = [("first", "a", 1.0), ("second", "a", 2e5), ("second", "b", 30.0)]
    data = pd.DataFrame(rows, columns=["panel", "y", "x"])
    charts.dots(data, tmp_path / "dots.png", Frame("A title", Axis("x", scale, linear=1.0)))
    for axes in drawn[0].axes:
        ends = axes.transScale.transform([(x, 0.5) for x in (*axes.get_xlim(), 1.0, 2e5)])[:, 0]
        low, high, first, last = (ends - ends[0]) / (ends[1] - ends[0])
        assert (low, high) == (0.0, 1.0)
        assert first > 0.02
        assert last < 0.98
