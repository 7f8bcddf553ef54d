"""What the committed leaderboard says of an environment and of a policy."""

from __future__ import annotations

from functools import cache

import pandas as pd
from links import ROOT

from policies.base.registry import POLICIES
from scripts.suite.scores import ACTS
from scripts.suite.tasks import SUITES

SUITE = "crawl-v1"
PRESETS = ROOT / "results" / "presets" / "presets.csv"
FIRST = 3
"""Number of entrants that the page of an environment names for each of its tasks."""
CLOSE = 0.01
"""Difference from the best score of a policy that counts as none."""


@cache
def scores() -> pd.DataFrame:
    """Return the mean scores of all entrants in the tasks in which they act."""
    table = pd.read_csv(ROOT / "results" / SUITE / "scores.csv")
    return table[table.state == ACTS]


def of_environment(name: str) -> str:
    """Return a table of the best entrants in each task of an environment."""
    rows = ["| task | arguments | best scores | bound |", "|---|---|---|---|"]
    for task in SUITES[SUITE]:
        if task.id != name:
            continue
        best = scores()[scores().task == task.name].nlargest(FIRST, "score")
        named = ", ".join(
            f"{row.policy} {row.score:.3f} ± {row.error:.3f}" for row in best.itertuples()
        )
        given = ", ".join(f"{key}={value}" for key, value in task.arguments.items())
        rows.append(f"| {task.name} | {given} | {named} | {task.bound} |")
    return "\n".join(rows)


def gain(preset: str) -> str:
    """Return the mean rewards per step of random crawling and of the best formula in a preset."""
    [row] = pd.read_csv(PRESETS).query("id == @preset").itertuples()
    return f"{row.random:.3f}, {row.best:.3f} ({row.formula})"


def wins(policy: str) -> str:
    """Return the number of tasks by track in which no policy is better by more than ``CLOSE``."""
    among = scores()[scores().policy.isin(POLICIES)]
    best = among.groupby("task").score.transform("max")
    won = set(among[(among.policy == policy) & (among.score >= best - CLOSE)].task)
    tracks = pd.Series({task.name: task.track for task in SUITES[SUITE]})
    counts = tracks[tracks.index.isin(won)].value_counts(sort=False)
    return ", ".join(
        f"{track} {count} of {(tracks == track).sum()}" for track, count in counts.items()
    )
