"""Compare policies: a table and a picture per setting, and rows and summary as CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from crawl_envs.evaluation import BUDGET_SHARE, Row, Summary, summarize
from scripts.present import tables
from scripts.study.budget import COLUMN, NOTE, spending_of
from scripts.study.comparisons import LOWER, METRICS, Comparison
from scripts.study.entrants import is_oracle
from scripts.study.rows import write_csv

if TYPE_CHECKING:
    import pandas as pd


def report(compared: Sequence[Comparison], all_rows: Sequence[Row], folder: Path) -> None:
    """Print a table and write a picture for each setting; write all rows and a summary as CSV."""
    records, console = [], tables.console()
    for item in compared:
        name = item.setting.name
        rows = [row for row in all_rows if row.setting == name]
        console.print()
        console.print(comparison_table(rows, item))
        draw(rows, folder / f"{re.sub('[/:]', '-', name)}.png", item)
        spending, metrics = spending_of(rows), (*item.metrics, BUDGET_SHARE)
        for record in tables.summary_records(rows, item.references, metrics):
            records.append((*record, spending[record[1]].over))
    write_csv(folder / "summary.csv", (*tables.SUMMARY_COLUMNS, "over_budget"), records)
    write_csv(folder / "rows.csv", Row._fields, all_rows)


def draw(rows: Sequence[Row], path: Path, compared: Comparison) -> None:
    """Draw each policy's first metric and its differences with 95% intervals, the best on top.

    Differences are to the first reference, paired by seed. Bounds are lines, policies are dots.
    """
    import pandas as pd

    from scripts.present import charts

    metric, reference, bounds = compared.metrics[0], compared.references[0], compared.setting.bounds
    ranked = pd.DataFrame(summarize(rows, metric, reference))
    ranked = ranked.sort_values("mean", ascending=metric in LOWER)
    names = [name for name in ranked.policy if name in compared.setting.policies]
    mean = ranked.set_index("policy")["mean"]
    level = f"mean over {ranked.seeds.max()} {compared.over}"
    difference = f"minus {reference}, paired"
    rules = [
        charts.Rule(mean[label], compared.lines[label], dash, level)
        for label, dash in zip(bounds, charts.DASHES, strict=False)
    ]
    frame = charts.Frame(
        compared.title,
        {
            level: charts.Axis(f"{metric}:\n{METRICS[metric]}"),
            difference: charts.Axis("difference, with its 95% interval"),
        },
        shared="y",
        upright=[*rules, charts.Rule(0.0, None, "-", difference)],
    )
    data = means_and_differences(ranked[ranked.policy.isin(names)], level, difference)
    spending = spending_of(rows)
    data["y"] += data.y.map(lambda label: spending[label].mark)
    charts.dots(data, path, frame, names=[name + spending[name].mark for name in names])


def means_and_differences(ranked: pd.DataFrame, level: str, difference: str) -> pd.DataFrame:
    """Return the marks of two panels: means by policy, and paired differences where they are known.

    Args:
        ranked: ``policy``, ``mean``, ``half_width``, ``difference``, ``difference_half_width``, and
            perhaps ``label``.
        level: title of the panel of the means.
        difference: title of the panel of the differences.
    """
    import pandas as pd

    data = ranked.assign(y=ranked.policy)
    means = data.assign(x=data["mean"], half=data.half_width, panel=level)
    differences = data.assign(x=data.difference, half=data.difference_half_width, panel=difference)
    return pd.concat([means, differences.dropna(subset="x")])


def comparison_table(rows: Sequence[Row], compared: Comparison) -> Table:
    """Return a setting's table of means and paired differences by policy, with 95% intervals.

    The best policy is in bold; it is neither an oracle nor over the budget. Oracles are marked;
    policies over the budget are marked and come last. With several metrics, differences are to
    the first reference only.
    """
    references = compared.references[: 1 if len(compared.metrics) > 1 else None]
    summaries = {
        (metric, reference): {item.policy: item for item in summarize(rows, metric, reference)}
        for metric in compared.metrics
        for reference in references
    }
    first = summaries[compared.metrics[0], references[0]]
    sign = 1.0 if compared.metrics[0] in LOWER else -1.0
    spending = spending_of(rows)
    labels = sorted(compared.setting.labels, key=lambda label: sign * first[label].mean)
    ranked = sorted(labels, key=lambda label: spending[label].over)
    over = [label for label in ranked if spending[label].over]
    bounds = compared.setting.bounds
    oracles = [label for label in ranked if is_oracle(label)]
    best = next((label for label in ranked if label not in (*bounds, *oracles, *over)), None)
    count = max(item.seeds for item in first.values())
    table = Table(
        title=f"{compared.title}; {count} {compared.over}",
        title_justify="left",
        caption=compared.note + (f" {NOTE}." if over else ""),
        caption_justify="left",
    )
    table.add_column("policy", no_wrap=True)
    for metric in compared.metrics:
        table.add_column(metric, justify="right")
        for reference in references:
            table.add_column(f"- {reference}", justify="right")
    table.add_column(COLUMN, justify="right")
    for label in ranked:
        cells = [f"{label} (oracle)" if label in oracles else label]
        for metric in compared.metrics:
            alone = summaries[metric, references[0]][label]
            cells.append(tables.plus_minus(alone.mean, alone.half_width))
            for reference in references:
                cells.append(_difference(summaries[metric, reference][label], reference))
        cells.append(spending[label].words)
        style = "bold" if label == best else "italic" if label in (*bounds, *oracles) else ""
        table.add_row(*cells, style=style)
    return table


def _difference(summary: Summary, reference: str) -> str:
    if summary.policy == reference:
        return ""
    return tables.plus_minus(summary.difference, summary.difference_half_width, signed=True)
