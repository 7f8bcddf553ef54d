"""What can be gained in each task, and what agents that learned gain beyond the best policy."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from scripts.present import charts
from scripts.study.entrants import groups_of
from scripts.study.intervals import PAIRED_REPETITIONS, Interval, mean
from scripts.suite.entrants import COMPOSITE, TRAINED, YOURS, Entrant
from scripts.suite.scores import ACTS, Leaderboard, trainings_of
from scripts.suite.sites import ZERO, over_sites, site_scores
from scripts.suite.tables import number

HEAD = ("task", "track", ZERO, "best policy", "best trained agent", "agent less policy")


class Headroom(NamedTuple):
    """Mean scores in a task; 1 is its bound. Without an agent, its name is empty and numbers NaN.

    ``base`` is that of ``ZERO``; ``policy`` and ``agent`` are the best shipped policy and trained
    agent. ``lead`` is the agent's score minus that of the policy on the same events. ``beats``:
    the intervals of the differences to all policies are above 0.
    """

    task: str
    track: str
    base: Interval
    policy: tuple[str, Interval]
    agent: tuple[str, Interval]
    lead: Interval
    beats: bool

    @property
    def texts(self) -> list[str]:
        """Texts in the columns ``HEAD``."""
        best = [f"{name} {score.estimate:.3f}" * bool(name) for name, score in self[3:5]]
        lead = f"{self.lead.estimate:+.3f}" * bool(self.agent[0])
        if not np.isnan(self.lead.low):
            lead += f" [{self.lead.low:+.3f}, {self.lead.high:+.3f}]"
        lead = f"**{lead}**" if self.beats else lead
        return [self.task, self.track, number(self.base.estimate), *best, lead]


NONE = Interval(np.nan, np.nan, np.nan)


def headrooms(board: Leaderboard) -> list[Headroom]:
    """Return what can be gained in each task of a leaderboard."""
    acting = board.scores[board.scores.state == ACTS]
    rooms = []
    for task in (*board.tasks, *(task for task in board.of_sites if task not in board.tasks)):
        if task.variants:
            plain = scores = site_scores(task, board.rows)
        else:
            part = acting[acting.task == task.name].set_index(["seed", "policy"])
            plain, scores = part.plain.unstack(), part.score.unstack()
        rooms.append(_headroom(task.name, task.track, (plain, scores), board))
    return rooms


def _headroom(
    task: str, track: str, tables: tuple[pd.DataFrame, pd.DataFrame], board: Leaderboard
) -> Headroom:
    """Return what can be gained in a task, from plain scores and scores (repetitions, entrants)."""
    plain, scores = tables
    on_board = {label: board.entrants.get(label, Entrant(YOURS)) for label in scores}
    no_policies = (TRAINED, COMPOSITE, YOURS)
    policies = [name for name, item in on_board.items() if item.kind not in no_policies]
    trained = [name for name, item in on_board.items() if item.kind == TRAINED or item.by]
    agents = [name for name in trained if on_board[name].kind in (TRAINED, YOURS)]
    best, trainings = str(scores[policies].mean().idxmax()), trainings_of(board.scores)

    def interval(values: pd.Series, label: str = "") -> Interval:
        if "training" in values.index.names:
            return over_sites(values)
        groups = groups_of(scores.index, trainings.get(label, 0))
        return mean(values.to_numpy(np.float64)[:, None], PAIRED_REPETITIONS, groups)

    base = interval(scores[ZERO]) if ZERO in scores else NONE
    level = base, (best, interval(scores[best]))
    if not agents:
        return Headroom(task, track, *level, ("", NONE), NONE, False)
    agent = str(scores[agents].mean().idxmax())
    leads = {label: interval(plain[agent] - plain[label], agent) for label in policies}
    mine = agent, interval(scores[agent], agent)
    beats = all(lead.low > 0.0 for lead in leads.values())
    return Headroom(task, track, *level, mine, leads[best], beats)


def draw_headroom(rooms: list[Headroom], path: Path) -> None:
    """Draw round robin, the best policy and the best agent of each task, a panel per track."""
    labels = ["round robin", "best policy", "best trained agent"]
    records = [
        (item.track, item.task + (" *" if item.beats else ""), *level, label)
        for item in rooms
        for label, level in zip(labels, (item.base, item.policy[1], item.agent[1]), strict=True)
    ]
    data = pd.DataFrame(records, columns=["panel", "y", "x", "low", "high", "label"])
    data = data.dropna(subset="x")
    title = (
        "What can be gained: mean scores with 95% intervals; 1 is the bound of the task\n"
        "*: a trained agent is above every policy by more than the interval"
    )
    rule = charts.Rule(1.0, "bound")
    frame = charts.Frame(
        title, charts.Axis("score"), columns=3, size=(4.0, 0.0), shared="x", upright=[rule]
    )
    charts.dots(data, path, frame, labels=labels)
