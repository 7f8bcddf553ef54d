"""Define and measure cases of speed and memory, and draw their ratios of speeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from crawl_envs.system.worker_processes import pool
from scripts.timing.commands import Cases
from scripts.timing.turns import Task, repeated, spread, timed

TURNS, SPELL = 41, 0.05
QUICK_TURNS, QUICK_SPELL = 9, 0.01
"""Number of turns, and seconds of a spell, of full and quick measurements."""
FLOOR, REACHED, MISSED, NO_FLOOR = "floor", "floor reached", "not reached", "no floor"
RATIO_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)

Tasks = Mapping[str, tuple[Task, float]]
"""Tasks by name, each with the units of work of one repetition."""
Value = tuple[str, str, float]
"""A value that is measured once: its name, unit and number."""


class Ratio(NamedTuple):
    """Names of a task and its baseline, and the least ratio of their speeds that is required."""

    task: str
    baseline: str
    floor: float | None = None


class Case(NamedTuple):
    """A measurement at several numbers of pages: of tasks in turns, or of values once.

    Attributes:
        name: name of the case in the table.
        sizes: numbers of pages.
        tasks: function from a number of pages to tasks.
        unit: unit of the tasks' work; speeds are in units per second.
        ratios: ratios of the tasks' speeds within a turn.
        max_turns: largest number of turns, for tasks that take seconds.
        values: function from a number of pages to values that are measured once, after a run of
            ``quick_size`` that compiles.
        new_process: whether values are measured in a new process, for its peak memory.
        quick_size: number of pages of the quick form; the first size if None.
    """

    name: str
    sizes: tuple[int, ...]
    tasks: Callable[[int], Tasks] | None = None
    unit: str = "pages"
    ratios: tuple[Ratio, ...] = ()
    max_turns: int = TURNS
    values: Callable[[int], Iterable[Value]] | None = None
    new_process: bool = False
    quick_size: int | None = None


class Row(NamedTuple):
    """A number of the table: the median of a speed or a ratio over the turns, with quartiles.

    ``against`` is the baseline of a ratio and ``floor`` its least value, if any. Values that are
    measured once have no quartiles.
    """

    case: str
    pages: int
    name: str
    against: str
    unit: str
    median: float
    low: float | None = None
    high: float | None = None
    floor: float | None = None


def calls(
    draw: Callable[[int], Sequence[Any]], functions: Mapping[str, Callable[..., Any]]
) -> Callable[[int], Tasks]:
    """Return a function for ``Case.tasks``: its tasks call ``functions`` with drawn arguments."""

    def tasks(pages: int) -> Tasks:
        arguments = draw(pages)
        return {name: (repeated(call, *arguments), pages) for name, call in functions.items()}

    return tasks


def smallest(case: Case) -> int:
    """Return the number of pages of a case's quick form."""
    return case.sizes[0] if case.quick_size is None else case.quick_size


def measured(case: Case, pages: int, turns: int = TURNS, spell: float = SPELL) -> Iterator[Row]:
    """Measure a case at a number of pages; yield rows of its values, ratios and speeds."""
    row = partial(Row, case.name, pages)
    for name, unit, value in _values(case, pages):
        yield row(name, "", unit, value)
    if case.tasks is not None:
        tasks = case.tasks(pages)
        repeats = {name: task for name, (task, _) in tasks.items()}
        seconds = timed(repeats, min(turns, case.max_turns), spell)
        speeds = {name: work / seconds[name] for name, (_, work) in tasks.items()}
        for task, baseline, floor in case.ratios:
            ratio = spread(speeds[task] / speeds[baseline])
            yield row(task, baseline, "times as fast", *ratio, floor)
        for name, speed in speeds.items():
            yield row(name, "", f"{case.unit}/s", *spread(speed))


def _values(case: Case, pages: int) -> list[Value]:
    """Measure the values of a case once, in a new process if the case needs it."""
    if case.values is None:
        return []
    once = partial(_compiled_values, case.values, smallest(case), pages)
    if not case.new_process:
        return once()
    with pool(1) as workers:
        return workers.submit(once).result()


def _compiled_values(
    values: Callable[[int], Iterable[Value]], smallest: int, pages: int
) -> list[Value]:
    for _ in values(smallest):
        pass
    return [*values(pages)]


def runs(cases: Iterable[Case], quick: bool) -> Cases:
    """Return functions that measure, by name: each case at each size, or only its quick form."""
    turns = (QUICK_TURNS, QUICK_SPELL) if quick else (TURNS, SPELL)
    return {
        f"{case.name}, {pages:,} pages": partial(measured, case, pages, *turns)
        for case in cases
        for pages in ((smallest(case),) if quick else case.sizes)
    }


def draw(path: Path, rows: Sequence[Row]) -> None:
    """Draw each ratio with its quartiles, and its floor if it has one, as PNG."""
    import pandas as pd

    from scripts.present.charts import Axis, Frame, Rule, dots

    ratios = pd.DataFrame([row for row in rows if row.against])
    size = ratios.pages.map(" ({:,} pages): ".format)
    label = (ratios["median"] >= ratios.floor).map({True: REACHED, False: MISSED})
    label = label.where(ratios.floor.notna(), NO_FLOOR)
    y = ratios.case + size + ratios.name + " / " + ratios.against
    ratios = ratios.assign(y=y, x=ratios["median"], label=label)
    floors = ratios.dropna(subset="floor").assign(label=FLOOR)
    floors = floors.assign(x=floors.floor, low=floors.floor, high=floors.floor)
    frame = Frame(
        "Ratios of speeds on one core",
        Axis("times as fast (logarithmic scale); bars: quartiles", "log", ticks=RATIO_TICKS),
        upright=[Rule(1.0)],
        size=(9.0, 0.0),
    )
    labels = (REACHED, MISSED, NO_FLOOR, FLOOR)
    dots(pd.concat([ratios, floors]), path, frame, labels=labels, black=(FLOOR,))
