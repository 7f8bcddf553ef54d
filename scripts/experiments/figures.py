"""The usual pictures of experiments, as functions of rows and a path for ``PICTURES``.

What is drawn is a sequence of :class:`Series`: metrics by setting and label, averaged over seeds.
What is around it is a :class:`scripts.present.charts.Frame`, whose title may have ``{seeds}``, the
number of seeds drawn.
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
"""A text with ``{setting}`` and ``{policy}`` in it; or one by setting, of the settings drawn."""


class Series(NamedTuple):
    """A metric by setting and label, as it is or beside that of a reference on the same seeds.

    A reference is not beside itself, unless by another metric.

    Attributes:
        metric: the metric, without index.
        panel: title of its panel.
        label: its label in the legend.
        labels: labels of the rows drawn; empty: all. A mapping gives their names in the legend.
        settings: settings drawn; empty: all.
        minus: a reference whose values are subtracted.
        over: a reference by whose values others are divided.
        of: metric of the reference, if it is another one. It may lack an index.
        factor: what the result is multiplied by.
        plus: what is then added.
        within: largest absolute average that is drawn.
    """

    metric: str
    panel: Text = ""
    label: Text = "{policy}"
    labels: Sequence[str] | Mapping[str, str] = ()
    settings: Sequence[str] = ()
    minus: str = ""
    over: str = ""
    of: str = ""
    factor: float = 1.0
    plus: float = 0.0
    within: float = np.inf

    def values(self, rows: Sequence[Row], indexed: bool) -> pd.DataFrame:
        """Return ``value`` by setting, label, seed and, if ``indexed``, index."""
        values = entries(rows, self.metric) if indexed else table(rows, self.metric)
        if self.minus or self.over:
            label = self.minus or self.over
            base = table(rows, self.of) if self.of else values
            others = values if self.of else values[values.policy != label]
            values = paired(others, base[base.policy == label], ratio=bool(self.over))
        for column, kept in (("policy", self.labels), ("setting", self.settings)):
            values = values[values[column].isin(list(kept))] if kept else values
        if isinstance(self.panel, Mapping):
            values = values[values.setting.isin(list(self.panel))]
        return values.assign(value=self.factor * values["value"] + self.plus)

    def named(self, data: pd.DataFrame) -> pd.DataFrame:
        """Add the columns ``label`` and ``panel``."""
        label = _texts(data, self.label)
        if isinstance(self.labels, Mapping):
            label = data.policy.map(self.labels)
        return data.assign(label=label, panel=_texts(data, self.panel))


def _texts(data: pd.DataFrame, text: Text) -> Any:
    """Return a text for each row of a table."""
    if isinstance(text, Mapping):
        return data.setting.map(text)
    pairs = zip(data.setting, data.policy, strict=True)
    return [text.format(setting=setting, policy=policy) for setting, policy in pairs]


def averages(
    rows: Sequence[Row], series: Sequence[Series], *, indexed: bool = False, median: bool = False
) -> tuple[pd.DataFrame, int]:
    """Return averages over seeds, and the number of seeds.

    Args:
        rows: of an experiment.
        series: what is averaged.
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
    at: Mapping[str, float] | None = None,
    along: Places | Mapping[str, Places] = (),
    labels: Sequence[str] = (),
    black: Sequence[str] = (),
    bands: bool = False,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    median: bool = False,
    more: pd.DataFrame | None = None,
) -> Picture:
    """Return a picture with a line per label.

    Args:
        series: what is drawn.
        frame: everything around it.
        at: place of each setting that is drawn.
        along: without ``at``, of metrics with an index: the place of each index, in all settings
            or by setting.
        labels: labels in order; empty: all.
        black: references among them, drawn black and dashed.
        bands: draw intervals as bands without markers, instead of bars.
        own: properties of the lines of some labels, instead of those of the style.
        median: draw medians, instead of means.
        more: further marks, with the columns of the chart.
    """

    def picture(rows: Sequence[Row], path: Path) -> None:
        data, seeds = averages(rows, series, indexed=at is None, median=median)
        data = _placed_along(data, along) if at is None else _placed(data, at)
        data = pd.concat([data.rename(columns={"average": "y"}), more])
        titled = _titled(frame, seeds=seeds)
        charts.lines(data, path, titled, labels=labels, black=black, bands=bands, own=own)

    return picture


def _placed(data: pd.DataFrame, at: Mapping[str, float]) -> pd.DataFrame:
    """Add the column ``x``, the place of the setting."""
    if missing := sorted({*data.setting} - at.keys()):
        raise ValueError(f"at must have a place of every setting drawn, got none of {missing[0]}")
    return data.assign(x=data.setting.map(at))


def _placed_along(data: pd.DataFrame, along: Places | Mapping[str, Places]) -> pd.DataFrame:
    """Add the column ``x``, the place of the index."""
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
    """Return a picture with a dot per line of text, or one per label where there are several.

    Args:
        series: what is drawn.
        frame: everything around it.
        y: the lines of text.
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
    said: Mapping[tuple[str, str], str],
    texts: Callable[[float], str] = "{:,.0f}".format,
) -> Picture:
    """Return a picture with a horizontal bar per label of one setting.

    Args:
        series: what is drawn.
        frame: everything around it; the title may have ``{setting}``, too.
        settings: the first of these that has rows is drawn.
        names: labels from the top.
        said: texts in place of bars, by panel and label.
        texts: function of a value that returns the text beside its bar.
    """

    def picture(rows: Sequence[Row], path: Path) -> None:
        played = {row.setting for row in rows}
        setting = next(name for name in settings if name in played)
        data, seeds = averages([row for row in rows if row.setting == setting], series)
        data = data.assign(text=data.average.map(texts))
        data = data[[key not in said for key in zip(data.panel, data.policy, strict=True)]]
        instead = [(panel, name, 0.0, text) for (panel, name), text in said.items()]
        more = pd.DataFrame(instead, columns=["panel", "policy", "average", "text"])
        columns = {"policy": "y", "average": "x"}
        charts.bars(
            pd.concat([data, more]).rename(columns=columns),
            path,
            _titled(frame, seeds=seeds, setting=setting),
            names=names,
        )

    return picture
