"""The leaderboard as a table for the terminal, a page and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from rich.table import Table

from scripts.reporting.intervals import profile
from scripts.suite.details import HEADINGS, Detail
from scripts.suite.scores import OVER, Standing, matrix
from scripts.suite.tasks import BOUNDS, MEASURED, Task

HEAD = ("", "policy", "score", "±", "gap", "1st above", "acting", "tasks", *HEADINGS)
DROPPED = ("kB", "trained", "us", "tenth", "fresh", "gap", "1st above", "acting", "tasks")
"""Columns that a narrow terminal does without, one after the other."""
DRAWN = 5
"""Number of performance profiles."""


def table_of(
    ranked: Sequence[Standing], details: Mapping[str, Detail], title: str, width: int
) -> Table:
    """Return the leaderboard for a terminal of some width, without the tracks."""
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.caption = (
        "0 is random crawling, 1 the bound; ± half of the 95% interval over seeds. README.md "
        "beside the report explains all columns."
    )
    rows = [_cells(place, item, details)[: len(HEAD)] for place, item in enumerate(ranked, 1)]
    widths = {
        column: 3 + max(map(len, (column, *cells)))
        for column, *cells in zip(HEAD, *rows, strict=True)
    }
    for column in DROPPED:
        if 1 + sum(widths.values()) > width:
            del widths[column]
    for column in widths:
        table.add_column(column, justify="left" if column == "policy" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(cell for name, cell in zip(HEAD, row, strict=True) if name in widths))
    return table


def best_of(ranked: Sequence[Standing]) -> Table:
    """Return the three best of each track for the terminal."""
    table = Table("track", "first", "second", "third", title="Best by track", title_justify="left")
    for row in _best(ranked):
        table.add_row(*row)
    return table


def draw(scores: pd.DataFrame, ranked: Sequence[Standing], title: str, folder: Path) -> None:
    """Draw the scores of all, and the performance profiles of the best."""
    from scripts.reporting import charts

    names = [item.policy for item in ranked]
    data = pd.DataFrame(
        {
            "y": names,
            "x": [item.score for item in ranked],
            "half": [(item.high - item.low) / 2.0 for item in ranked],
        }
    )
    axis = charts.Axis("interquartile mean of the scores\n(0: random crawling, 1: the bound)")
    frame = charts.Frame(f"{title}\n95% intervals over seeds", axis, upright=[charts.Rule(0.0)])
    charts.dots(data, folder / "ranking.png", frame, names=names)
    levels = np.linspace(-0.25, 1.25, 151)
    curves = []
    for policy in names[:DRAWN]:
        share, low, high = profile(matrix(scores, policy), levels)
        curve = {"x": levels, "y": share, "low": low, "high": high, "label": policy}
        curves.append(pd.DataFrame(curve))
    frame = charts.Frame(
        f"{title}\nperformance profiles of the best {len(curves)}, 95% bands over seeds",
        charts.Axis("score s (0: random crawling, 1: the bound)"),
        charts.Axis("share of tasks and seeds above s"),
        size=(6.4, 4.2),
    )
    charts.lines(pd.concat(curves), folder / "profiles.png", frame, bands=True)


INTRODUCTION = """# {name}

{tasks} tasks, {seeds} seeds each, the same events for every entrant. A score is
(x - random) / (bound - random), of means over seeds: 0 is random crawling, 1 the bound of the task.
`score` is the interquartile mean over tasks and seeds, ± its 95% interval over seeds; that the
pages of a seed are easy or hard for all does not count there. An entrant that cannot act in a task,
or spends more than its budget (by over 1% and three standard errors), scores 0 there, so that the
order is that of entrants for all tasks; `acting` is the same mean over the `tasks` in which it acts
within the budget. Scores below -1 count as -1. Scores above 1 are possible: bounds are of the long
run, and episodes start with fresh copies. Random crawling is UniformCrawl in tasks of rates.
`gap` is the optimality gap, the mean of max(0, 1 - score), `1st above` the share of tasks and seeds
in which the first of the list is better on the same events; ties count half. The next columns are
of the task {measured}: `fresh`, the mean freshness of all pages, weighted by importance; `tenth`,
the plain mean of the tenth of pages that are least fresh in an episode; `us`, the time of a
decision on 100 pages, with `step()`, and of ThresholdNCIS, which has rollouts only, the time of a
crawl; and `kB`, the memory that the entrant holds, as Python and NumPy count it. `trained` are the
seconds of training, on the machine that it ran on. The columns after it are mean scores by track.
Entrants in lower case are trained agents. Those named stress-X were trained in a setting X in which
an assumption of the formulas fails, those named noisy with noisy signals, on other pages and events
than those of the tasks.

    python -m scripts.benchmark --suite {name}
    python -m scripts.benchmark --suite {name} --policies my_module:MyPolicy --agents runs/mine

The second ranks entrants of your own beside these, whose rows it takes from here. Both write
`report.html`, one file with all of this to open in a browser.

![Scores of all entrants with intervals](ranking.png)

![Share of tasks and seeds above a score, of the best](profiles.png)
"""


def page_of(
    name: str,
    tasks: Sequence[Task],
    ranked: Sequence[Standing],
    details: Mapping[str, Detail],
    scores: pd.DataFrame,
) -> str:
    """Return the page of the leaderboard."""
    means = scores.groupby(["task", "policy"]).score.mean()
    best = {task.name: str(means[task.name].idxmax()) for task in tasks}
    cells = [_cells(place, item, details) for place, item in enumerate(ranked, 1)]
    parts = [
        INTRODUCTION.format(
            name=name, measured=MEASURED, tasks=len(tasks), seeds=scores.seed.nunique()
        ).rstrip(),
        _table([*HEAD, *ranked[0].tracks], cells),
        "## The best by track",
        _table(["track", "first", "second", "third"], _best(ranked)),
        "## Tasks",
        _table(
            ["task", "track", "environment", "best", "its score", "bound"],
            [
                [
                    *(task.name, task.track, f"`{task.id}` {_given(task)}", best[task.name]),
                    *(f"{means[task.name][best[task.name]]:.3f}", task.bound),
                ]
                for task in tasks
            ],
        ),
        "## Bounds",
        "\n".join(f"- {kind}: {text}." for kind, text in BOUNDS.items()),
    ]
    over = sorted(set(scores[scores.state == OVER].policy))
    if over:
        parts.append(f"Over the budget somewhere: {', '.join(over)}.")
    return "\n\n".join(parts) + "\n"


def _best(ranked: Sequence[Standing]) -> list[list[str]]:
    """Return the three best of each track."""
    rows = []
    for track in ranked[0].tracks:
        order = sorted(ranked, key=lambda item: -item.tracks[track])[:3]
        rows.append([track, *(f"{item.policy} {item.tracks[track]:.3f}" for item in order)])
    return rows


def _given(task: Task) -> str:
    return ", ".join(f"{key}={value}" for key, value in task.arguments.items())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(place: int, item: Standing, details: Mapping[str, Detail]) -> list[str]:
    """Return a line of the leaderboard as text."""
    return [
        *(str(place), item.policy, f"{item.score:.3f}", f"{(item.high - item.low) / 2.0:.3f}"),
        *(f"{item.gap:.3f}", f"{100.0 * item.below:.0f}%"),
        f"{item.acting:.3f}",
        *(str(item.tasks), *details[item.policy].words()),
        *(f"{score:.2f}" for score in item.tracks.values()),
    ]
