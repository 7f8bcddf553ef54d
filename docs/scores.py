"""Read the committed leaderboard: the best entrants of an environment, the wins of a policy."""

from __future__ import annotations

from functools import cache

import pandas as pd
from links import ROOT

from policies.base.registry import POLICIES
from scripts.study.rows import read_rows
from scripts.study.runner import ROWS
from scripts.suite.scores import ACTS
from scripts.suite.sites import site_means
from scripts.suite.suites import SUITES

SUITE = "crawl-v2"
BOARD = ROOT / "results" / SUITE
PRESETS = ROOT / "results" / "presets" / "presets.csv"
MAX_ENTRANTS = 3
"""Number of entrants that the page of an environment names for each of its tasks."""
SCORE_TOLERANCE = 0.01
"""A score this far below the best one counts as best."""


@cache
def scores() -> pd.DataFrame:
    """Return the mean scores of entrants in the tasks in which they act.

    Returns:
        The columns ``task``, ``policy``, ``score``, and ``error``, a text: the standard error over
        seeds; in recorded tasks the 95% interval over sites.
    """
    table = pd.read_csv(BOARD / "scores.csv")
    table = table[table.state == ACTS]
    table["error"] = [f"± {error:.3f}" for error in table.error]
    rows, _ = read_rows(BOARD / ROWS, SUITE)
    sites = site_means([task for task in SUITES[SUITE] if task.variants], rows)
    sites["error"] = [f"[{item.low:.3f}, {item.high:.3f}]" for item in sites.itertuples()]
    return pd.concat([table, sites])[["task", "policy", "score", "error"]]


def of_environment(name: str) -> str:
    """Return a table of the best entrants in each task of an environment."""
    rows = ["| task | arguments | best scores | 1 is |", "|---|---|---|---|"]
    for task in SUITES[SUITE]:
        if task.id != name:
            continue
        best = scores()[scores().task == task.name].nlargest(MAX_ENTRANTS, "score")
        entrants = ", ".join(
            f"{row.policy} {row.score:.3f} {row.error}" for row in best.itertuples()
        )
        arguments = ", ".join(f"{key}={value}" for key, value in task.arguments.items())
        rows.append(f"| {task.name} | {arguments} | {entrants} | {task.bound} |")
    return "\n".join(rows)


def gain(preset: str) -> str:
    """Return the mean rewards per step of random crawling and of the best formula in a preset."""
    [row] = pd.read_csv(PRESETS).query("id == @preset").itertuples()
    return f"{row.random:.3f}, {row.best:.3f} ({row.formula})"


def wins(policy: str) -> str:
    """Return the number of tasks by track in which the policy is best, or nearly so."""
    table = scores()[scores().policy.isin(POLICIES)]
    threshold = table.groupby("task").score.transform("max") - SCORE_TOLERANCE
    won = set(table[(table.policy == policy) & (table.score >= threshold)].task)
    tracks = pd.Series({task.name: task.track for task in SUITES[SUITE]})
    counts = tracks[tracks.index.isin(won)].value_counts(sort=False)
    return ", ".join(
        f"{track} {count}/{(tracks == track).sum()}" for track, count in counts.items()
    )
