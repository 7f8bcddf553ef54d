from __future__ import annotations

import numpy as np
import pytest

from crawl_envs.evaluation import Row
from scripts.suite.entrants import BOUND, BUDGET
from scripts.suite.scores import ABSENT, OVER, PLAYS, matrix, scores_of, standings
from scripts.suite.tasks import PERFECT, Task

ONE = Task("one", "first", "id", {}, bound=PERFECT)
TWO = Task("two", "second", "id", {}, "penalty", bound=PERFECT)


def rows_of(task: Task, values: dict[str, list[float]], rate: float = 10.0) -> list[Row]:
    rows = []
    for policy, series in values.items():
        for seed, value in enumerate(series):
            rows.append(Row("id", task.name, policy, seed, task.metric, value))
            metric = BUDGET if policy == BOUND else "crawl_rate"
            spent = 10.0 if policy in (BOUND, "RandomCrawl") else rate
            rows.append(Row("id", task.name, policy, seed, metric, spent))
    return rows


def test_scores_are_0_for_random_crawling_and_1_for_the_bound() -> None:
    rows = [
        *rows_of(ONE, {BOUND: [1.0, 0.8], "RandomCrawl": [0.4, 0.6], "A": [0.7, 0.1]}),
        *rows_of(TWO, {BOUND: [1.0, 1.0], "RandomCrawl": [4.0, 6.0], "A": [3.0, -1e9]}),
    ]
    scores = scores_of([ONE, TWO], rows)
    # (x - 0.5) / (0.9 - 0.5), and (x - 5) / (1 - 5): a lower penalty is better
    assert matrix(scores, "A", "plain") == pytest.approx(np.array([[0.5, 0.5], [-1.0, 2.5e8]]))
    assert matrix(scores, "RandomCrawl") == pytest.approx(0.0, abs=1e-15)
    assert set(scores.state) == {PLAYS}


def test_scores_of_seeds_spread_as_the_ratio_of_their_means() -> None:
    """The jackknife, which leaves out a seed at a time, has the same variance for many seeds."""
    rng = np.random.default_rng(1)
    seeds = 2000
    random = rng.normal(0.5, 0.1, seeds)
    bound = random + rng.normal(0.3, 0.03, seeds)
    mine = random + 0.7 * (bound - random) + rng.normal(0.0, 0.02, seeds)
    rows = rows_of(ONE, {BOUND: list(bound), "RandomCrawl": list(random), "A": list(mine)})
    scores = scores_of([ONE], rows)
    found = matrix(scores, "A")[:, 0]

    def ratio(left_out: int | None) -> float:
        keep = np.arange(seeds) != left_out
        return float((mine - random)[keep].mean() / (bound - random)[keep].mean())

    left_out = np.array([ratio(seed) for seed in range(seeds)])
    assert found.mean() == pytest.approx(ratio(None), rel=1e-12)
    error = np.sqrt((seeds - 1) * left_out.var())
    assert found.std(ddof=1) / np.sqrt(seeds) == pytest.approx(error, rel=0.005)
    plain = matrix(scores, "A", "plain")[:, 0]
    assert plain.mean() == pytest.approx(ratio(None), rel=1e-12)
    assert plain.std() > 4.0 * found.std()  # as it has the spread of the pages
    assert np.argsort(plain).tolist() == np.argsort(mine).tolist()


def test_the_first_is_compared_with_others_on_the_same_events() -> None:
    values = {BOUND: [1.0, 1.0, 2.0], "RandomCrawl": [0.0, 0.0, 0.0]}
    rows = rows_of(ONE, {**values, "A": [0.9, 0.5, 1.5], "B": [0.8, 0.6, 1.4]})
    first, second, _ = standings(scores_of([ONE], rows))
    assert (first.policy, second.policy) == ("A", "B")
    assert second.below == pytest.approx(2.0 / 3.0)


@pytest.mark.parametrize(("rate", "state"), [(10.0, PLAYS), (10.09, PLAYS), (10.2, OVER)])
def test_more_than_the_budget_scores_0(rate: float, state: str) -> None:
    rows = rows_of(ONE, {BOUND: [1.0, 1.0], "RandomCrawl": [0.0, 0.0], "A": [0.5, 0.5]}, rate)
    scores = scores_of([ONE], rows)
    mine = scores[scores.policy == "A"]
    assert list(mine.state) == [state, state]
    assert list(mine.score) == ([0.5, 0.5] if state == PLAYS else [0.0, 0.0])


def test_who_cannot_act_scores_0_there_and_the_leaderboard_says_where_it_acts() -> None:
    rows = [
        *rows_of(ONE, {BOUND: [1.0] * 4, "RandomCrawl": [0.0] * 4, "A": [0.1, 0.2, 0.3, 0.4]}),
        *rows_of(TWO, {BOUND: [1.0] * 4, "RandomCrawl": [3.0] * 4, "B": [1.0] * 4}),
    ]
    scores = scores_of([ONE, TWO], rows)
    assert set(scores[(scores.policy == "A") & (scores.task == "two")].state) == {ABSENT}
    first, second, third = standings(scores)
    assert (first.policy, second.policy, third.policy) == ("B", "A", "RandomCrawl")
    # the middle half of the eight scores 0 0 0 0 1 1 1 1, and of 0 0 0 0 .1 .2 .3 .4
    assert (first.score, second.score) == pytest.approx((0.5, 0.075))
    assert (first.gap, second.gap) == pytest.approx((0.5, (4.0 + 3.0) / 8.0))
    assert (first.below, second.below) == pytest.approx((0.5, 0.5))
    assert (first.tracks, first.tasks) == ({"first": 0.0, "second": 1.0}, 1)
    assert first.low <= first.score <= first.high


def test_a_task_without_rows_is_refused() -> None:
    rows = rows_of(ONE, {BOUND: [1.0], "RandomCrawl": [0.0]})
    with pytest.raises(ValueError, match="task two has no rows"):
        scores_of([ONE, TWO], rows)
