"""Make pictures of rows: lines, dots and bars of metrics that are averaged over seeds.

A picture shows :class:`Series` in a :class:`scripts.present.charts.Frame`. The title of the frame
may contain ``{seeds}``, the number of seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crawl_envs.evaluation import Row
from scripts.present import charts
from scripts.present.charts import Axis, Frame, Rule
from scripts.present.experiment import Picture
from scripts.study.means import entries, means, medians, paired, table

__all__ = ["Axis", "Frame", "Rule", "Series", "averages", "bars", "dots", "lines"]

Places = Sequence[float] | NDArray[Any]
Text = str | Mapping[str, str]
"""A text, which may contain ``{setting}`` and ``{policy}``; or a text by setting to draw."""


class Series(NamedTuple):
    """A metric by setting and label, or its comparison with a reference on the same seeds.

    A reference is not compared with itself, except when ``base`` is another metric.

    Attributes:
        metric: the metric, without index.
        panel: title of its panel.
        label: its label in the legend.
        labels: labels of rows to draw; empty: all. A mapping has their names in the legend.
        settings: settings to draw; empty: all.
        minus: label of a reference to subtract.
        over: label of a reference to divide by.
        base: metric of the reference, if it is another one; it may lack an index.
        factor: factor of the result.
        plus: number that is then added.
        within: largest absolute average to draw.
    """

    metric: str
    panel: Text = ""
    label: Text = "{policy}"
    labels: Sequence[str] | Mapping[str, str] = ()
    settings: Sequence[str] = ()
    minus: str = ""
    over: str = ""
    base: str = ""
    factor: float = 1.0
    plus: float = 0.0
    within: float = np.inf

    def values(self, rows: Sequence[Row], indexed: bool) -> pd.DataFrame:
        """Return the series' ``value`` by setting, label, seed and, if ``indexed``, index."""
        values = entries(rows, self.metric) if indexed else table(rows, self.metric)
        if self.minus or self.over:
            label = self.minus or self.over
            base = table(rows, self.base) if self.base else values
            compared = values if self.base else values[values.policy != label]
            values = paired(compared, base[base.policy == label], ratio=bool(self.over))
        for column, names in (("policy", self.labels), ("setting", self.settings)):
            values = values[values[column].isin(list(names))] if names else values
        if isinstance(self.panel, Mapping):
            values = values[values.setting.isin(list(self.panel))]
        return values.assign(value=self.factor * values["value"] + self.plus)

    def named(self, data: pd.DataFrame) -> pd.DataFrame:
        """Add the columns ``label`` (text of the legend) and ``panel`` (title of the panel)."""
        label = _texts(data, self.label)
        if isinstance(self.labels, Mapping):
            label = data.policy.map(self.labels)
        return data.assign(label=label, panel=_texts(data, self.panel))


def _texts(data: pd.DataFrame, text: Text) -> Any:
    """Return the text of each row: looked up by setting, or formatted by setting and policy."""
    if isinstance(text, Mapping):
        return data.setting.map(text)
    pairs = zip(data.setting, data.policy, strict=True)
    return [text.format(setting=setting, policy=policy) for setting, policy in pairs]


def averages(
    rows: Sequence[Row], series: Sequence[Series], *, indexed: bool = False, median: bool = False
) -> tuple[pd.DataFrame, int]:
    """Return the averages of series over seeds, and the number of seeds.

    Args:
        rows: rows of an experiment.
        series: what to average.
        indexed: whether the metrics have an index.
        median: medians with ``low`` and ``high``, instead of means with ``half``.

    Returns:
        A table with the columns ``setting``, ``policy``, ``label`` and ``panel``, ``index`` if
        ``indexed``, and ``average`` with its interval; and the number of seeds.
    """
    groups = ["setting", "policy", *(["index"] if indexed else [])]
    average, name = (medians, "median") if median else (means, "mean")
    values = [one.values(rows, indexed) for one in series]
    if all(part.empty for part in values):
        metrics = ", ".join(dict.fromkeys(one.metric for one in series))
        raise ValueError(f"rows must have a metric of the picture, {metrics}, got none")
    parts = []
    for one, part in zip(series, values, strict=True):
        data = average(part, groups).rename(columns={name: "average"})
        parts.append(one.named(data[data.average.abs() <= one.within]))
    return pd.concat(parts), pd.concat(values).seed.nunique()


def _titled(frame: Frame, **numbers: Any) -> Frame:
    return frame._replace(title=frame.title.format(**numbers))


def lines(
    series: Sequence[Series],
    frame: Frame,
    *,
    positions: Mapping[str, float] | None = None,
    along: Places | Mapping[str, Places] = (),
    labels: Sequence[str] = (),
    black: Sequence[str] = (),
    bands: bool = False,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
    median: bool = False,
    more: pd.DataFrame | None = None,
) -> Picture:
    """Return a function that draws rows as lines, one per label.

    Args:
        series: what to draw.
        frame: everything around it.
        positions: horizontal position of each setting.
        along: without ``positions``, for metrics with an index: the position of each index, in
            all settings or by setting.
        labels: labels in order; empty: all.
        black: references among them, drawn black and dashed.
        bands: draw intervals as bands without markers, instead of bars.
        looks: line properties by label, which replace those of the style.
        median: draw medians, instead of means.
        more: additional marks, with the columns of the chart.
    """

    def picture(rows: Sequence[Row], path: Path) -> None:
        data, seeds = averages(rows, series, indexed=positions is None, median=median)
        data = _placed_along(data, along) if positions is None else _placed(data, positions)
        data = pd.concat([data.rename(columns={"average": "y"}), more])
        titled = _titled(frame, seeds=seeds)
        charts.lines(data, path, titled, labels=labels, black=black, bands=bands, looks=looks)

    return picture


def _placed(data: pd.DataFrame, positions: Mapping[str, float]) -> pd.DataFrame:
    """Add the column ``x``, the horizontal position of each row's setting."""
    if missing := sorted({*data.setting} - positions.keys()):
        raise ValueError(f"positions must have every setting, got none of {missing[0]!r}")
    return data.assign(x=data.setting.map(positions))


def _placed_along(data: pd.DataFrame, along: Places | Mapping[str, Places]) -> pd.DataFrame:
    """Add the column ``x``, the horizontal position of each row's index."""
    if isinstance(along, Mapping):
        pairs = zip(data.setting, data["index"], strict=True)
        return data.assign(x=[along[setting][index] for setting, index in pairs])
    return data.assign(x=np.asarray(along)[data["index"]])


def dots(
    series: Sequence[Series],
    frame: Frame,
    *,
    y: Text = "{policy}",
    labels: Sequence[str] = (),
    names: Sequence[str] = (),
    black: Sequence[str] = (),
) -> Picture:
    """Return a function that draws rows as dots, one per text line and label.

    Args:
        series: what to draw.
        frame: everything around it.
        y: the text lines.
        labels: labels in order; empty: all.
        names: texts from the top; empty: all.
        black: references among the labels.
    """

    def picture(rows: Sequence[Row], path: Path) -> None:
        data, seeds = averages(rows, series)
        data = data.assign(y=_texts(data, y)).rename(columns={"average": "x"})
        titled = _titled(frame, seeds=seeds)
        charts.dots(data, path, titled, labels=labels, names=names, black=black)

    return picture


def bars(
    series: Sequence[Series],
    frame: Frame,
    *,
    settings: Sequence[str],
    names: Sequence[str],
    replacements: Mapping[tuple[str, str], str],
    texts: Callable[[float], str] = "{:,.0f}".format,
) -> Picture:
    """Return a function that draws rows of one setting as horizontal bars, one per label.

    Args:
        series: what to draw.
        frame: everything around it; the title may also contain ``{setting}``.
        settings: candidates; the first that has rows is drawn.
        names: labels from the top.
        replacements: texts instead of bars, by panel and label.
        texts: function of a value that returns the text next to its bar.
    """

    def picture(rows: Sequence[Row], path: Path) -> None:
        with_rows = {row.setting for row in rows}
        setting = next(name for name in settings if name in with_rows)
        data, seeds = averages([row for row in rows if row.setting == setting], series)
        data = data.assign(text=data.average.map(texts))
        data = data[[key not in replacements for key in zip(data.panel, data.policy, strict=True)]]
        instead = [(panel, name, 0.0, text) for (panel, name), text in replacements.items()]
        more = pd.DataFrame(instead, columns=["panel", "policy", "average", "text"])
        columns = {"policy": "y", "average": "x"}
        charts.bars(
            pd.concat([data, more]).rename(columns=columns),
            path,
            _titled(frame, seeds=seeds, setting=setting),
            names=names,
        )

    return picture
