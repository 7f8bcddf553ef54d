"""Progress of long commands on standard error: bars, or plain lines without a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

LINE_SECONDS = 10.0
"""Least number of seconds between two lines of a task."""

Advance = Callable[[float], None]
"""Called with the amount done since the last call."""
Bars = Callable[[str, float], Advance]
"""Start a task, given its description and its total amount."""


def no_bars(description: str, total: float) -> Advance:
    """Show nothing."""
    return lambda amount: None


@contextmanager
def progress_bars() -> Iterator[Bars]:
    """Yield a function that starts tasks; bars disappear at the end of the block."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:

        def start(description: str, total: float) -> Advance:
            task = progress.add_task(description, total=total)
            return lambda amount: progress.advance(task, amount)

        yield start


def _lines(console: Console) -> Bars:
    def start(description: str, total: float) -> Advance:
        done, shown = 0.0, time.monotonic()

        def advance(amount: float) -> None:
            nonlocal done, shown
            done += amount
            if time.monotonic() - shown >= LINE_SECONDS:
                shown = time.monotonic()
                console.print(f"{description}: {done / max(total, 1.0):.0%}", highlight=False)

        return advance

    return start
