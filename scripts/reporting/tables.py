"""Summaries and verdicts as tables for the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from crawl_envs.evaluation import Row, Summary, summarize
from scripts.reporting.comparisons import LOWER, Comparison, is_oracle
from scripts.reporting.verdicts import Verdict

SIGNS = {"yes": "[green]✓[/]", "no": "[bold red]✗[/]", "open": "[yellow]?[/]"}
LEGEND = "✓ holds  ✗ does not hold  ? open, by 95% intervals"
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
    """Return records of ``SUMMARY_COLUMNS``, one per metric, setting, policy and reference."""
    return [
        (*summary[:2], metric, *summary[2:], reference)
        for reference in references
        for metric in metrics
        for summary in summarize(rows, metric, reference)
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


def plus_minus(mean: float, half_width: float, signed: bool = False) -> str:
    """Format a mean and the half-width of its interval, if known."""
    if math.isnan(mean):
        return "-"
    spelled = f"{mean:+.4f}" if signed else f"{mean:.4f}"
    return spelled if math.isnan(half_width) else f"{spelled} ± {half_width:.4f}"


MOST_COLUMNS = 8
"""Number of settings above which they become rows."""


def trend_table(verdicts: Sequence[Verdict], title: str) -> Table:
    """Return the table of verdicts: a row per claim, a column per setting, or transposed."""
    settings = list(dict.fromkeys(verdict.setting for verdict in verdicts))
    claims = list(dict.fromkeys(verdict.claim for verdict in verdicts))
    cells = {
        (verdict.claim, verdict.setting): f"{_short(verdict.measured)} {SIGNS[verdict.holds]}"
        for verdict in verdicts
    }
    table = Table(title=title, title_justify="left", caption=LEGEND, caption_justify="left")
    if min(len(settings), len(claims)) > MOST_COLUMNS:
        return _span_table(table, verdicts, claims, settings)
    wide = len(settings) > max(MOST_COLUMNS, len(claims))
    table.add_column("setting" if wide else "claim")
    for name in claims if wide else settings:
        table.add_column(name, justify="right")
    if wide:
        for setting in settings:
            table.add_row(setting, *(cells.get((claim, setting), "") for claim in claims))
    else:
        for claim in claims:
            table.add_row(claim, *(cells.get((claim, setting), "") for setting in settings))
    return table


def _span_table(
    table: Table, verdicts: Sequence[Verdict], claims: Sequence[str], settings: Sequence[str]
) -> Table:
    """Add one row per claim with the settings of each verdict."""
    table.add_column("claim")
    for sign in SIGNS.values():
        table.add_column(sign)
    for claim in claims:
        held = {verdict.setting: verdict.holds for verdict in verdicts if verdict.claim == claim}
        names = [name for name in settings if name in held]
        table.add_row(claim, *(_spans(names, held, answer) for answer in SIGNS))
    return table


def _spans(names: Sequence[str], held: Mapping[str, str], answer: str) -> str:
    """Return the settings with a verdict, neighbours as ``first .. last``."""
    spans: list[list[str]] = []
    open_span = False
    for name in names:
        if held[name] != answer:
            open_span = False
        elif open_span:
            spans[-1].append(name)
        else:
            spans.append([name])
            open_span = True
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]} .. {span[-1]}" for span in spans)


def _short(difference: float) -> str:
    return f"{difference:+.4f}".replace("+0.", "+.").replace("-0.", "-.")


def level_table(verdicts: Sequence[Verdict], title: str) -> Table:
    """Return the table of known and measured values."""
    table = Table(title=title, title_justify="left")
    table.add_column("setting")
    table.add_column("expected")
    table.add_column("measured", justify="right")
    table.add_column("holds")
    for verdict in verdicts:
        measured = plus_minus(verdict.measured, verdict.half_width)
        table.add_row(verdict.setting, verdict.claim, measured, SIGNS[verdict.holds])
    return table
