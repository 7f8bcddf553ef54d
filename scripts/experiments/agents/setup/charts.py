"""Pictures of trained agents beside formulas: accuracy, freshness, and learned values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crawl_envs.evaluation import Row
from scripts.experiments.agents.setup.learned_values import CYCLES, FEW_SIGNALS, FORMULA, SIGNALS
from scripts.present import charts
from scripts.study.means import means, paired, table
from scripts.study.rows import gathered

NEAR = 0.03
"""Largest difference to the reference that a panel of differences shows."""
PAGES_SHOWN = (1, 3)
"""Places of the pages whose learned values are drawn."""
FAR_TICKS = (-1.0, -0.1, -0.01, 0.0, 0.01)


def _agents_first(labels: Sequence[str]) -> list[str]:
    """Return agents, whose labels contain a space, and then formulas."""
    return sorted(labels, key=lambda label: " " not in label)


def over_sizes(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    sizes: Mapping[str, int],
    metric: str,
    reference: str,
) -> None:
    """Draw a metric over the number of pages, and its paired difference to the reference.

    Args:
        rows: of the settings, and of others.
        path: the picture.
        title: its title.
        sizes: the number of pages of each setting.
        metric: the metric to draw.
        reference: the label to which there are differences.
    """
    values = table([row for row in rows if row.setting in sizes], metric)
    level, close = "means", f"{metric} minus {reference}, up to {NEAR:g}"
    apart = means(paired(values, values[values.policy == reference]))
    apart = apart[(apart["mean"].abs() <= NEAR) & (apart.policy != reference)]
    data = pd.concat([means(values).assign(panel=level), apart.assign(panel=close)])
    data = data.rename(columns={"policy": "label", "mean": "y"})
    unit = charts.Axis(f"{metric} ({charts.METRIC_UNITS[metric]})")
    labels = _agents_first([label for label in dict.fromkeys(data.label) if label != reference])
    charts.lines(
        data.assign(x=data.setting.map(sizes)),
        path,
        charts.Frame(
            title,
            charts.Axis("pages m (logarithmic scale)", "log", ticks=tuple(sizes.values())),
            {level: unit, close: charts.Axis("difference, on the same events")},
            shared="x",
            across=[charts.Rule(0.0, panel=close)],
        ),
        labels=(reference, *labels),
        black=(reference,),
    )


def at_bandwidths(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    settings: Mapping[str, str],
    metric: str,
    reference: str,
) -> None:
    """Draw paired differences to the reference, by policy and bandwidth.

    Args:
        rows: of the settings, and of others.
        path: the picture.
        title: its title.
        settings: names of the bandwidths by setting.
        metric: the metric to draw.
        reference: the label to which there are differences.
    """
    values = table([row for row in rows if row.setting in settings], metric)
    lost = means(paired(values, values[values.policy == reference]))
    lost = lost[lost.policy != reference].rename(columns={"policy": "y", "mean": "x"})
    charts.dots(
        lost.assign(label=lost.setting.map(settings)),
        path,
        charts.Frame(
            f"{title}: scarce, usual and ample budgets",
            charts.Axis(
                f"{metric} minus {reference}, same events, 95% intervals\n(logarithmic beyond .01)",
                "symlog",
                limits=(-1.0, 0.02),
                ticks=FAR_TICKS,
                linear=0.01,
            ),
            upright=[charts.Rule(0.0, dash="-")],
        ),
        labels=tuple(settings.values()),
        names=_agents_first(list(dict.fromkeys(lost.y))),
    )


def over_best(
    rows: Sequence[Row], path: Path, *, title: str, labels: Sequence[str], reference: str
) -> None:
    """Draw freshness less that of the reference with 95% intervals, by setting and policy.

    Differences up to ``NEAR`` also have a panel of their own.
    """
    values = table(rows, "freshness")
    values = values[values.policy.isin([*labels, reference])]
    apart = means(paired(values, values[values.policy == reference]))
    apart = apart[apart.policy != reference]
    close, all_of_them = f"differences up to {NEAR:g}", "all policies"
    near = apart[apart["mean"].abs() <= NEAR].assign(panel=close)
    charts.dots(
        pd.concat([near, apart.assign(panel=all_of_them)]).rename(
            columns={"policy": "label", "setting": "y", "mean": "x"}
        ),
        path,
        charts.Frame(
            f"{title}: freshness less that of the {reference} policy of each setting,\n"
            f"which is chosen afterwards; {values.seed.nunique()} paired seeds, 95% intervals",
            charts.Axis("difference in freshness"),
            shared="y",
            upright=[charts.Rule(0.0, dash="-")],
        ),
        labels=labels,
    )


def aggregate(
    rows: Sequence[Row],
    path: Path,
    *,
    title: str,
    metric: str,
    labels: Sequence[str],
    best: int,
) -> None:
    """Draw an aggregate over settings with its interval, the best on top.

    Args:
        rows: rows of one setting; each label has ``metric``, and the ends of its interval as
            ``<metric>, low`` and ``<metric>, high``.
        path: of the picture.
        title: of the figure.
        metric: the metric to draw.
        labels: labels that are drawn in any case.
        best: number of labels that are drawn because they are the best.
    """
    ends = {metric: "x", f"{metric}, low": "low", f"{metric}, high": "high"}
    data = table(rows, *ends).pivot(index="policy", columns="metric", values="value")
    data = data.rename(columns=ends).sort_values("x", ascending=False)
    kept = data[(np.arange(len(data)) < best) | data.index.isin(list(labels))]
    low = -1.5
    names = [name if x > low else f"{name} ({x:.1f})" for name, x in kept.x.items()]
    charts.dots(
        kept.clip(lower=low).assign(y=names),
        path,
        charts.Frame(
            f"{title}: interquartile mean over settings and seeds, 95% bootstrap intervals\n"
            f"the best {best} of {len(data)}, and some others",
            charts.Axis(
                f"{metric}: round robin 0, best analytic policy of each setting 1",
                limits=(low, 1.15),
            ),
            size=(5.6, 0.0),
            upright=[charts.Rule(0.0), charts.Rule(1.0)],
        ),
    )


def _word(signals: int) -> str:
    return f"{signals} signal" + ("" if signals == 1 else "s")


def values_of_pages(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Draw values over elapsed time, a line per number of signals: agents' and the formula's.

    There is a row of panels per page and a column per agent; the horizontal line is the level at
    which pages are crawled, the median of the values at crawls.
    """
    values = {label: each for (_, label, _), each in gathered(rows, "value").items()}
    [parameters] = list(gathered(rows, "page").values())
    levels = {row.policy: row.value for row in rows if row.metric == "level" and row.seed == 0}
    pages = parameters.reshape(-1, 4)
    shape = (len(pages), len(SIGNALS), CYCLES.size)
    parts, rules, looks = [], [], {}
    for page in PAGES_SHOWN:
        named = "importance {:.2f}, changes {:.2f}, recall {:.2f}, false signals {:.2f}"
        about = named.format(*pages[page]).replace(", recall", ",\nrecall")
        for label in (each for each in values if each != FORMULA):
            panel = f"{label}\n{about}"
            rules.append(charts.Rule(levels[label], None, "-", panel))
            for place, signals in enumerate(SIGNALS):
                for who in (label, FORMULA):
                    name = _word(signals) + (", by the formula" if who == FORMULA else "")
                    looks[name] = {
                        "color": charts.COLOURS[place],
                        "linestyle": ":" if who == FORMULA else "-",
                    }
                    curve = values[who].reshape(shape)[page, place]
                    each = {"x": CYCLES, "y": curve, "label": name, "panel": panel}
                    parts.append(pd.DataFrame(each))
    charts.lines(
        pd.concat(parts),
        path,
        charts.Frame(
            f"{title}: learned values, mapped by one function for all pages;\n"
            "horizontal: the level at which the agent crawls",
            charts.Axis("elapsed, in units of m / R"),
            charts.Axis("value", limits=(0.0, 1.3)),
            columns=len(values) - 1,
            size=(3.5, 3.2),
            across=rules,
        ),
        bands=True,
        own=looks,
    )


def crawl_instants(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Draw for all pages of an instance when values reach the level at which pages are crawled.

    The formula's instant is on the horizontal axis, an agent's on the vertical one, a panel per
    agent and number of signals; levels that are not reached in the table lie at its end.
    """
    end = float(CYCLES[-1])
    instants = {label: each for (_, label, _), each in gathered(rows, "instant").items()}
    size = max(each.size for each in instants.values())
    whole: dict[str, Any] = {}
    for label, each in instants.items():
        padded = np.append(each, np.full(size - each.size, np.nan))
        whole[label] = np.nan_to_num(padded, nan=end).reshape(-1, len(FEW_SIGNALS))
    parts = [
        pd.DataFrame(
            {
                "x": whole[FORMULA][:, place],
                "y": whole[label][:, place],
                "panel": f"{label}\nafter {_word(signals)}",
            }
        )
        for place, signals in enumerate(FEW_SIGNALS)
        for label in whole
        if label != FORMULA
    ]
    charts.scatter(
        pd.concat(parts),
        path,
        charts.Frame(
            f"{title}: when a page is crawled, a dot per page, in units of m / R\n"
            f"at {end:g}: not before; at {CYCLES[0]:g}: at once",
            charts.Axis("elapsed time at which GREEDY-NCIS would"),
            charts.Axis("at which the agent would"),
            columns=len(whole) - 1,
            size=(3.4, 3.2),
            diagonal=True,
        ),
        size=12.0,
    )
