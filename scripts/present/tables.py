"""Summaries and verdicts as tables for the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from crawl_envs.evaluation import Row, Summary, summarize
from scripts.study.comparisons import LOWER, Comparison, is_oracle

SUMMARY_COLUMNS = (
    "setting",
    "policy",
    "metric",
    "repetitions",
    "mean",
    "half_width_95",
    "difference",
    "difference_half_width_95",
    "reference",
)
WIDTH = 118
"""Width in characters if the output is no terminal."""


def console() -> Console:
    """Return the console of standard output."""
    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)


def summary_records(
    rows: Sequence[Row], references: Iterable[str], metrics: Iterable[str]
) -> list[tuple[Any, ...]]:
    """Return records of ``SUMMARY_COLUMNS``, one per metric, setting, policy and reference.

    The empty reference is none.
    """
    return [
        (*summary[:2], metric, *summary[2:], reference)
        for reference in references
        for metric in metrics
        for summary in summarize(rows, metric, reference or None)
    ]


def comparison_table(rows: Sequence[Row], compared: Comparison) -> Table:
    """Return the table of means and paired differences in a setting with 95% intervals.

    The best policy is on top, in bold. Oracles are marked and are never the best. With several
    metrics, differences are to the first reference only.
    """
    references = compared.references[: 1 if len(compared.metrics) > 1 else None]
    summaries = {
        (metric, reference): {item.policy: item for item in summarize(rows, metric, reference)}
        for metric in compared.metrics
        for reference in references
    }
    first = summaries[compared.metrics[0], references[0]]
    sign = 1.0 if compared.metrics[0] in LOWER else -1.0
    ranked = sorted(compared.setting.labels, key=lambda label: sign * first[label].mean)
    bounds = compared.setting.bounds
    oracles = [label for label in ranked if is_oracle(label)]
    best = next((label for label in ranked if label not in (*bounds, *oracles)), None)
    count = max(item.seeds for item in first.values())
    table = Table(
        title=f"{compared.title}; {count} {compared.over}",
        title_justify="left",
        caption=compared.note,
        caption_justify="left",
    )
    table.add_column("policy")
    for metric in compared.metrics:
        table.add_column(metric, justify="right")
        for reference in references:
            table.add_column(f"- {reference}", justify="right")
    for label in ranked:
        cells = [f"{label} (oracle)" if label in oracles else label]
        for metric in compared.metrics:
            alone = summaries[metric, references[0]][label]
            cells.append(plus_minus(alone.mean, alone.half_width))
            for reference in references:
                cells.append(_difference(summaries[metric, reference][label], reference))
        style = "bold" if label == best else "italic" if label in (*bounds, *oracles) else ""
        table.add_row(*cells, style=style)
    return table


def _difference(summary: Summary, reference: str) -> str:
    if summary.policy == reference:
        return ""
    return plus_minus(summary.difference, summary.difference_half_width, signed=True)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number of things, such as ``1 host`` or ``2 hosts``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def plus_minus(mean: float, half_width: float, signed: bool = False) -> str:
    """Format a mean and the half-width of its interval, if known."""
    if math.isnan(mean):
        return "-"
    spelled = f"{mean:+.4f}" if signed else f"{mean:.4f}"
    return spelled if math.isnan(half_width) else f"{spelled} ± {half_width:.4f}"
