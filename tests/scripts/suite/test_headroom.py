from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from crawl_envs.evaluation import Row
from scripts.suite.entrants import COMPOSITE, TRAINED, Entrant
from scripts.suite.headroom import draw_headroom, headrooms
from scripts.suite.scores import ACTS, Leaderboard
from scripts.suite.tasks import CLAIRVOYANT, NCIS, TRACE, Task

SITES = Task("site", "recorded", TRACE, {}, bound=CLAIRVOYANT, variants=({},) * 3)
PAGES = Task("pages", "hidden rates", NCIS, {})
KINDS = {"RoundRobin": "baseline", "A": "formula", "B": "formula", "net": TRAINED}


def board_of(values: dict[str, list[float]], **more: float) -> Leaderboard:
    """A leaderboard of the scores of one task, and freshness on three sites."""
    records = [
        ("pages", policy, seed, score, score, ACTS, 0)
        for policy, scores in values.items()
        for seed, score in enumerate(scores)
    ]
    scores = pd.DataFrame(
        records, columns=["task", "policy", "seed", "plain", "score", "state", "trainings"]
    )
    levels = {"RoundRobin": 0.5, "clairvoyant": 0.9, "A": 0.6, "B": 0.55, "net": 0.7} | more
    rows = [
        Row(TRACE, "site", policy, site, "freshness", level + 0.01 * site * (policy == "net"))
        for policy, level in levels.items()
        for site in range(3)
    ]
    entrants = {label: Entrant(kind) for label, kind in KINDS.items()}
    empty = pd.DataFrame()
    return Leaderboard("few", [PAGES], rows, scores, empty, {}, entrants, [], [SITES])


SCORES = {
    **{"RoundRobin": [0.1, 0.2, 0.3], "A": [0.5, 0.6, 0.7]},
    **{"B": [0.4, 0.9, 0.2], "net": [0.62, 0.7, 0.81]},
}


def test_the_best_agent_is_compared_with_the_best_policy_on_the_same_events() -> None:
    pages, site = headrooms(board_of(SCORES))
    assert (pages.base.estimate, pages.policy[0], pages.agent[0]) == (
        pytest.approx(0.2),
        "A",
        "net",
    )
    differences = np.subtract(SCORES["net"], SCORES["A"])
    assert pages.lead.estimate == pytest.approx(differences.mean())
    low, high = stats.t.interval(0.95, 2, differences.mean(), stats.sem(differences))
    assert (pages.lead.low, pages.lead.high) == pytest.approx((low, high), abs=0.01)
    assert pages.lead.low > 0.0
    assert not pages.beats  # B, which is worse on average, may be better
    assert site.base.estimate == 0.0
    assert (site.policy[0], site.policy[1].estimate) == ("A", pytest.approx(0.25))
    assert site.lead.estimate == pytest.approx(0.275)
    assert site.beats


def test_a_composite_is_neither_a_policy_nor_an_agent() -> None:
    board = board_of({**SCORES, "both": [3.0, 3.0, 3.0]}, both=0.8)
    entrants = {**board.entrants, "both": Entrant(COMPOSITE)}
    for item in headrooms(board._replace(entrants=entrants)):
        assert (item.policy[0], item.agent[0]) == ("A", "net")


def test_tasks_without_agents_have_no_lead_and_all_are_drawn(tmp_path: Path) -> None:
    values = {label: scores for label, scores in SCORES.items() if label != "net"}
    found = headrooms(board_of(values))
    assert found[0].texts == ["pages", "hidden rates", "0.200", "A 0.600", "", ""]
    agent, lead = found[1].texts[4:]
    low, high = stats.t.interval(0.95, 2, 0.275, 0.025 / 3**0.5)
    assert agent == "net 0.525"
    assert lead.startswith("**+0.275 [+0.2")
    assert (found[1].lead.low, found[1].lead.high) == pytest.approx((low, high), abs=0.01)
    draw_headroom(found, tmp_path / "headroom.png")
    assert (tmp_path / "headroom.png").exists()
