"""Show the progress of long work: a bar on a terminal, a line per minute in a file or pipe."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

COUNT = "{task.completed:,.0f}/{task.total:,.0f}"
BAR_WIDTH, TEXT_WIDTH = 10, 28
"""Widths of the bar and of the texts in characters, so that a line fits 80 columns."""
LINE_SECONDS = 60.0
"""Seconds between two written lines if the output is no terminal."""

Item = TypeVar("Item")


class ProgressBar(Progress):
    """Show tasks on standard error, one line each, cut to the width of the terminal.

    Args:
        texts: texts after the description and the bar, with fields of a task, as in
            ``"{task.completed} rounds"``.
        console: the output; None for standard error.
        visible: False for no output.
        timed: True if the work is timed: output then comes between steps, without a thread.
    """

    def __init__(
        self,
        *texts: str,
        console: Console | None = None,
        visible: bool = True,
        timed: bool = False,
    ) -> None:
        console = console or Console(stderr=True)
        self._lines = visible and not console.is_terminal
        self._texts = [TextColumn(text, markup=False) for text in ("{task.description}", *texts)]
        self._started = time.monotonic()
        self._written: dict[TaskID, float] = {}
        self._first: dict[TaskID, float] = {}
        self._timed, self._stopped = timed, threading.Event()
        super().__init__(
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(max_width=TEXT_WIDTH, no_wrap=True, overflow="ellipsis"),
            ),
            BarColumn(bar_width=BAR_WIDTH),
            *self._texts[1:],
            TimeRemainingColumn(),
            console=console,
            disable=not visible or self._lines,
            auto_refresh=not timed,
        )

    def start(self) -> None:
        """Start to show progress; a thread writes lines while a long step takes its time."""
        super().start()
        if self._lines and not self._timed:
            threading.Thread(target=self._write_on, daemon=True).start()

    def stop(self) -> None:
        """Stop showing progress."""
        self._stopped.set()
        super().stop()

    def _write_on(self) -> None:
        while not self._stopped.wait(LINE_SECONDS):
            for task_id in self.task_ids:
                self._write(task_id)

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Change the fields of a task, as :meth:`rich.progress.Progress.update` does."""
        self._first.setdefault(task_id, self._tasks[task_id].completed)
        super().update(task_id, **{"refresh": not self.live.auto_refresh, **changes})
        self._write(task_id)

    def advance(self, task_id: TaskID, advance: float = 1.0) -> None:
        """Advance a task by a number of steps."""
        self._first.setdefault(task_id, self._tasks[task_id].completed)
        super().advance(task_id, advance)
        self._write(task_id)

    def _write(self, task_id: TaskID) -> None:
        """If there is no terminal, write a line when the last one is old or the task is done."""
        if not self._lines:
            return
        with self._lock:
            task = self._tasks[task_id]
            written = self._written.get(task_id, self._started)
            now = time.monotonic()
            if now < written + LINE_SECONDS and not (task.finished and written < math.inf):
                return
            self._written[task_id] = math.inf if task.finished else now
            text = " ".join(column.render(task).plain for column in self._texts)
            steps = (task.total or 0.0) - task.completed
            done = task.completed - self._first.get(task_id, task.completed)
            if steps > 0.0 and done > 0.0:
                remaining = timedelta(seconds=round((task.elapsed or 0.0) / done * steps))
                text += f", {remaining} left at this speed"
            self.console.print(text, soft_wrap=True, highlight=False, markup=False)


def tracked(
    items: Sequence[Item], what: str, console: Console | None = None, timed: bool = False
) -> Iterator[Item]:
    """Yield the items, with a bar of the text ``what`` and the number of items done."""
    if items:
        with ProgressBar(COUNT, console=console, timed=timed) as progress:
            bar = progress.add_task(what, total=len(items))
            for number, item in enumerate(items, 1):
                yield item
                progress.update(bar, completed=number)
