"""Turn summaries into records, and numbers into text, for the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from crawl_envs.evaluation import Row, summarize

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
WIDTH = 120
"""Width in characters if the output is no terminal."""


def console() -> Console:
    """Return the console that prints to standard output."""
    return Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)


def summary_records(
    rows: Sequence[Row], references: Iterable[str], metrics: Iterable[str]
) -> list[tuple[Any, ...]]:
    """Return summaries as tuples of ``SUMMARY_COLUMNS``, by metric, setting, policy and reference.

    The empty reference compares with nothing.
    """
    return [
        (*summary[:2], metric, *summary[2:], reference)
        for reference in references
        for metric in metrics
        for summary in summarize(rows, metric, reference or None)
    ]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, such as ``1 host`` or ``2 hosts``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def took(seconds: float, workers: int) -> str:
    """Return a run's seconds and number of workers as text."""
    return f"{seconds:.0f} s on {counted(workers, 'worker')}"


def plus_minus(mean: float, half_width: float, signed: bool = False) -> str:
    """Return a mean as text, with the half-width of its interval unless that is NaN."""
    if math.isnan(mean):
        return "-"
    spelled = f"{mean:+.4f}" if signed else f"{mean:.4f}"
    return spelled if math.isnan(half_width) else f"{spelled} ± {half_width:.4f}"
