"""Crawls over the budget, in every form of action, and who is over it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents.sb3.arguments import TrainArguments
from crawl_envs.evaluation import BUDGET_SHARE, evaluate
from policies import make
from scripts.present.comparison import comparison_table
from scripts.study.budget import is_over, spending_of
from scripts.study.comparisons import Sizes, compare
from scripts.training.baselines import METRICS, lane_rows

PAGES, RATE, STEPS = 6, 5.0, ((2.0, 10.0),)
"""Until time 4 a budget of 2 x 5 + 2 x 10 = 30 crawls."""
ARGUMENTS = {"num_pages": PAGES, "bandwidth": RATE, "bandwidth_steps": STEPS, "horizon": 4.0}


class Same:
    """A policy that always returns the same action, in one lane or several."""

    def __init__(self, env: Any, action: Any) -> None:
        self.action = np.asarray(action)

    def predict(self, observation: Any, *_: Any, **__: Any) -> tuple[Any, None]:
        lanes = observation.shape[:-2]
        return np.broadcast_to(self.action, (*lanes, *self.action.shape)), None


def shares(policy: Any, env_id: str = "CrawlNCIS-v0", **arguments: Any) -> list[float]:
    rows = evaluate(env_id, {"": policy}, range(3), budget_share=True, **arguments)
    return [row.value for row in rows if row.metric == BUDGET_SHARE]


@pytest.mark.parametrize(
    ("action", "given", "share"),
    [
        (2, {}, 1.0),
        (np.linspace(-1.0, 1.0, PAGES), {"action": "scores", "batch": 3}, 1.0),
        ([1, 0, 0, 0, 1, 0], {"action": "refresh"}, 2.0),
        ([0] * PAGES, {"action": "refresh"}, 0.0),
    ],
)
def test_crawls_are_counted_against_a_budget_that_changes(
    action: Any, given: dict[str, Any], share: float
) -> None:
    arguments = {**ARGUMENTS, **given}
    assert shares(lambda env: Same(env, action), **arguments) == [share] * 3
    rows = lane_rows("", lambda env: Same(env, action), TrainArguments(env_args=arguments), 3)
    assert {row.metric for row in rows} == {*METRICS}
    assert [row.value for row in rows if row.metric == BUDGET_SHARE] == [share] * 3


def test_rates_spend_their_budget_on_average() -> None:
    rated = {"num_pages": PAGES, "bandwidth": 100.0, "horizon": 20.0, "action": "rates"}
    for overspent in (1.0, 3.0):  # it is scaled down to the budget
        rates = np.full(PAGES, overspent * 100.0 / PAGES)
        mean = np.mean(shares(lambda env, rates=rates: Same(env, rates), **rated))
        assert mean == pytest.approx(1.0, abs=5.0 / np.sqrt(3 * 2000.0))
    half = shares(lambda env: Same(env, np.full(PAGES, 50.0 / PAGES)), **rated)
    assert np.mean(half) == pytest.approx(0.5, abs=0.05)


def test_thresholds_and_offers_have_a_budget() -> None:
    still = {"num_pages": 50, "bandwidth": 50.0, "horizon": 20.0, "instance": "noisy"}
    near = shares(lambda env: make("ThresholdNCIS", env), **still)
    assert near == pytest.approx([1.0] * 3, abs=0.1)
    days = {"num_pages": 40, "horizon": 2.0, "bandwidth": 6.0}
    scored = Same(None, np.linspace(0.0, 1.0, 40))
    assert shares(lambda env: scored, "CrawlOffers-v1", action="scores", **days) == [1.0] * 3
    every = Same(None, np.ones(40, np.int8))  # every two hours, 24 times
    crawled = shares(lambda env: every, "CrawlOffers-v1", action="refresh", **days)
    assert crawled == pytest.approx([24 * 40 / 12.0] * 3)


def test_an_episode_of_fewer_steps_has_the_budget_of_these() -> None:
    limited = {**ARGUMENTS, "max_episode_steps": 7}
    assert shares(lambda env: Same(env, 0), **limited) == pytest.approx([1.0] * 3)
    batch = {**limited, "action": "scores", "batch": 3, "max_episode_steps": 4}
    scores = np.linspace(0.0, 1.0, PAGES)
    assert shares(lambda env: Same(env, scores), **batch) == pytest.approx([1.0] * 3)


def test_who_is_over_is_beyond_1_percent_and_three_standard_errors() -> None:
    assert not is_over(pd.Series([1.09]))  # a single episode has no standard error
    assert is_over(pd.Series([1.11]))
    assert not is_over(pd.Series([1.009, 1.009]))
    assert is_over(pd.Series([1.011, 1.011]))
    # standard error 0.01: the mean must exceed 1.04
    assert not is_over(pd.Series([1.029, 1.049]))
    assert is_over(pd.Series([1.031, 1.051]))


def test_the_table_of_a_comparison_marks_and_does_not_rank_who_is_over() -> None:
    compared = compare("noisy", ["Greedy", "GreedyNCIS"], Sizes(4, 4.0, 5.0, 5.0, "none"))
    rows = [row for label in compared.setting.labels for row in compared.setting.play(label, 0)]
    more = {BUDGET_SHARE: 1.5, "accuracy": 2.0, "freshness": 2.0}
    rows = [
        row._replace(value=more.get(row.metric, row.value)) if row.policy == "Greedy" else row
        for row in rows
    ]
    assert spending_of(rows)["Greedy"] == (1.5, True)
    assert np.isnan(spending_of(rows)["BASELINE"].share)
    table = comparison_table(rows, compared)
    assert table.rows[-1].style != "bold"
    cells = {column.header: list(column.cells) for column in table.columns}
    assert cells["policy"][-1] == "Greedy"  # though best in both metrics
    assert cells["crawls / budget"][-1] == "150.0 %, over budget"
    assert cells["crawls / budget"][cells["policy"].index("GreedyNCIS")] == "100.0 %"
    assert "not ranked" in str(table.caption)


def test_no_environment_of_the_package_has_other_budgets() -> None:
    for name in ("CrawlHarmonic-v0", "CrawlLongevity-v0", "CrawlTrace-v0"):
        given = {"horizon": 20.0} if name != "CrawlTrace-v0" else {}
        in_turn = shares(lambda env: make("RoundRobin", env), name, action="page", **given)
        assert in_turn == [1.0] * 3
