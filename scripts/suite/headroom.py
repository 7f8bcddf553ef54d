"""What can be gained in each task, and what agents that learned gain beyond the best policy."""

from __future__ import annotations

from collections.abc import Callable
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
    """Mean scores in a task; 1 is its bound. Without an agent, names are empty and numbers NaN.

    Attributes:
        task: name of the task.
        track: its track.
        base: score of ``ZERO``.
        policy: the best of the shipped policies, and its score.
        agent: the best of the trained agents, and its score.
        lead: the agent's score minus that of the policy on the same events.
        beats: whether the intervals of the differences to all policies are above 0.
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
        name, score = self.agent
        level = [number(self.base.estimate), f"{self.policy[0]} {self.policy[1].estimate:.3f}"]
        if not name:
            return [self.task, self.track, *level, "", ""]
        lead = f"{self.lead.estimate:+.3f}"
        if not np.isnan(self.lead.low):
            lead += f" [{self.lead.low:+.3f}, {self.lead.high:+.3f}]"
        agent = [f"{name} {score.estimate:.3f}", f"**{lead}**" if self.beats else lead]
        return [self.task, self.track, *level, *agent]


NONE = Interval(np.nan, np.nan, np.nan)


def headrooms(board: Leaderboard) -> list[Headroom]:
    """Return what can be gained in each task of a leaderboard."""
    acting = board.scores[board.scores.state == ACTS]
    rooms = []
    for task in (*board.tasks, *(task for task in board.of_sites if task not in board.tasks)):
        if task.variants:
            plain = scores = site_scores(task, board.rows)
        else:
            part = acting[acting.task == task.name]
            plain, scores = (
                part.pivot(index="seed", columns="policy", values=name)
                for name in ("plain", "score")
            )
        rooms.append(_headroom(task.name, task.track, (plain, scores), board))
    return rooms


def _is_trained(entrant: Entrant) -> bool:
    """Return whether an entrant is an agent that was trained, shipped or of the user."""
    return entrant.kind == TRAINED or (entrant.kind == YOURS and entrant.by != "")


def _headroom(
    task: str, track: str, tables: tuple[pd.DataFrame, pd.DataFrame], board: Leaderboard
) -> Headroom:
    """Return what can be gained in a task, from plain scores and scores (repetitions, entrants)."""
    plain, scores = tables
    on_board = {label: board.entrants.get(label, Entrant(YOURS)) for label in scores}
    agents = [label for label, entrant in on_board.items() if _is_trained(entrant)]
    no_policies = (TRAINED, COMPOSITE, YOURS)
    policies = [label for label, entrant in on_board.items() if entrant.kind not in no_policies]
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
    marks: tuple[tuple[str, Callable[[Headroom], Interval]], ...] = (
        ("round robin", lambda item: item.base),
        ("best policy", lambda item: item.policy[1]),
        ("best trained agent", lambda item: item.agent[1]),
    )
    records = [
        (item.track, item.task + (" *" if item.beats else ""), *place(item), label)
        for item in rooms
        for label, place in marks
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
    charts.dots(data, path, frame, labels=[label for label, _ in marks])
