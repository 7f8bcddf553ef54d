"""The speed on one core: ratios and speeds of comparisons, starts, and growth, as cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from rich.table import Table

from crawl_envs.types import FloatArray
from scripts.timing.commands import Cases, shown
from scripts.timing.comparisons import Comparison, comparisons
from scripts.timing.first_use import COLD_START_LIMIT, cold_start
from scripts.timing.growth import Cost, cells, cost
from scripts.timing.parts import PARTS
from scripts.timing.turns import spread, timed

TURNS, SPELL, STARTS = 41, 0.05, 5
QUICK_TURNS, QUICK_SPELL, QUICK_STARTS = 9, 0.01, 2


class Figure(NamedTuple):
    """A measured number with quartiles, and its bound if any.

    ``kind`` is ``ratio``, ``speed``, ``part`` or ``start``; a ratio must reach its bound, a start
    time in seconds must stay below it. ``group`` is the comparison, or the whole of a part.
    ``verdict`` is ``pass``, ``fail``, or empty without a bound.
    """

    kind: str
    group: str
    name: str
    against: str
    unit: str
    median: float
    low: float
    high: float
    bound: float | None = None
    verdict: str = ""


def judged(values: FloatArray, bound: float | None, *labels: str) -> Figure:
    """Return the figure of values, one per turn; ``labels`` are its kind, ..., unit."""
    middle, verdict = spread(values), ""
    if bound is not None:
        kept = middle.median < bound if labels[0] == "start" else middle.median >= bound
        verdict = "pass" if kept else "fail"
    kind, group, name, against, unit = labels
    return Figure(kind, group, name, against, unit, *middle, bound, verdict)


def measure_comparison(comparison: Comparison, turns: int, spell: float) -> Iterator[Figure]:
    """Run a comparison; yield its ratios, then its differences, then its speeds."""
    group = comparison.name
    seconds = timed(comparison.tasks(), min(turns, comparison.most_turns or turns), spell)
    for task, baseline, floor in comparison.ratios:
        ratio = seconds[baseline] / seconds[task]
        yield judged(ratio, floor, "ratio", group, task, baseline, "times as fast")
    for name, less, more in comparison.differences:
        yield judged(seconds[more] - seconds[less], None, "part", group, name, "", "s")
    for name, each in seconds.items() if comparison.amount else ():
        speed = comparison.amount / each
        yield judged(speed, None, "speed", group, name, "", f"{comparison.unit}/s")


def measure_starts(starts: int) -> Iterator[Figure]:
    """Yield the times of a cold start, after one start that fills the cache of compiled kernels.

    The wall time includes waiting for other processes of the machine; the processor time does not.
    """
    cold_start()
    wall, busy = np.array([cold_start() for _ in range(starts)]).T
    group = "import, make, reset, step"
    yield judged(wall, COLD_START_LIMIT, "start", group, "wall time", "", "s")
    yield judged(busy, None, "start", group, "processor time", "", "s")


def starts(quick: bool) -> Cases:
    """Return the case of cold starts, which must not inherit a pinned core."""
    return {"cold starts": partial(measure_starts, QUICK_STARTS if quick else STARTS)}


def timing(quick: bool) -> tuple[int, float]:
    """Return the number of turns and the length of a spell."""
    return (QUICK_TURNS, QUICK_SPELL) if quick else (TURNS, SPELL)


def cases(quick: bool) -> Cases:
    """Return the cases that are measured on one core."""
    turns, spell = timing(quick)
    compared = {
        each.name: partial(measure_comparison, each, turns, spell)
        for each in (*comparisons(quick), *PARTS)
    }
    return compared | {
        f"{pages} pages, {lanes} lanes": partial(cost, pages, lanes, spell)
        for pages, lanes in cells(quick)
    }


def table(rows: Sequence[Figure | Cost]) -> Table:
    """Return the printed table of the figures, by group."""
    figures = [row for row in rows if isinstance(row, Figure)]
    title, groups = "Speed on one core: medians and quartiles", [each.group for each in figures]
    return shown([each[2:] for each in figures], ("", *Figure._fields[3:]), title, groups)
