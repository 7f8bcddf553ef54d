from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crawl_envs.evaluation import BUDGET_SHARE, Row
from scripts.suite.bounds import BOUND, BUDGET
from scripts.suite.scores import (
    ABSENT,
    ACTS,
    OVER,
    matrix,
    scores_of,
    standings,
    training_means,
    trainings_of,
)
from scripts.suite.tasks import ORACLE, PERFECT, Task

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
    scores = scores_of([ONE, TWO], rows, {})
    # (x - 0.5) / (0.9 - 0.5), and (x - 5) / (1 - 5): a lower penalty is better
    assert matrix(scores, "A", "plain") == pytest.approx(np.array([[0.5, 0.5], [-1.0, 2.5e8]]))
    assert matrix(scores, "RandomCrawl") == pytest.approx(0.0, abs=1e-15)
    assert set(scores.state) == {ACTS}


def test_scores_below_minus_1_count_as_minus_1_and_plain_ones_as_they_are() -> None:
    values = {BOUND: [1.0] * 3, "RandomCrawl": [0.5] * 3, "A": [-1.0, 0.25, 2.0]}
    scores = scores_of([ONE], rows_of(ONE, values), {})
    # (x - 0.5) / 0.5 of each seed, as all have the same bound and random crawling
    assert matrix(scores, "A")[:, 0] == pytest.approx([-1.0, -0.5, 3.0])
    assert matrix(scores, "A", "plain")[:, 0] == pytest.approx([-3.0, -0.5, 3.0])


def test_scores_of_seeds_spread_as_the_ratio_of_their_means() -> None:
    """The jackknife, which leaves out a seed at a time, has the same variance for many seeds."""
    rng = np.random.default_rng(1)
    seeds = 2000
    random = rng.normal(0.5, 0.1, seeds)
    bound = random + rng.normal(0.3, 0.03, seeds)
    mine = random + 0.7 * (bound - random) + rng.normal(0.0, 0.02, seeds)
    rows = rows_of(ONE, {BOUND: list(bound), "RandomCrawl": list(random), "A": list(mine)})
    scores = scores_of([ONE], rows, {})
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


def test_who_is_within_the_interval_of_the_paired_difference_is_tied() -> None:
    """A and B differ on every seed, C is as good as A on average; all have the same hard seeds."""
    rng = np.random.default_rng(2)
    seeds, values = 12, {BOUND: [1.0] * 12, "RandomCrawl": [0.0] * 12}
    rows = []
    for task in (ONE, replace(TWO, metric="freshness")):
        hard = 0.2 * rng.standard_normal(seeds)
        mine = {
            "A": 0.6 + hard,
            "B": 0.55 + hard + 0.01 * rng.standard_normal(seeds),
            "C": 0.595 + hard + 0.05 * rng.standard_normal(seeds),
        }
        rows += rows_of(task, {**values, **{label: list(mine[label]) for label in mine}})
    scores = scores_of([ONE, replace(TWO, metric="freshness")], rows, {})
    board, by_track = standings(scores)
    board = board.set_index("policy")
    assert {*board["rank"][["A", "C"]]} == {1, 2}
    assert board.tied[["A", "C", "B"]].tolist() == [True, True, False]
    assert board.high["B"] > board.low["A"]  # though their intervals overlap
    for track in ("first", "second"):
        first = by_track[track].policy[0]
        places = by_track[track].set_index("policy")
        assert places.loc[first, ["behind", "behind_low", "behind_high"]].tolist() == [0.0] * 3
        assert not places.tied["B"]
        for label in "ABC":
            apart = matrix(scores[scores.track == track], first) - matrix(
                scores[scores.track == track], label
            )
            half = 2.2 * apart.std(ddof=1) / np.sqrt(seeds)  # Student's
            length = places.behind_high[label] - places.behind_low[label]
            assert length / 2.0 == pytest.approx(half, rel=0.15)
            assert places.tied[label] == (abs(apart.mean()) < half or label == first)


def test_intervals_over_tasks_are_of_seeds_with_all_their_tasks() -> None:
    """Twelve copies of a task tell no more than one does."""
    rng = np.random.default_rng(3)
    mine = list(0.6 + 0.1 * rng.standard_normal(10))
    tasks = [replace(ONE, name=f"copy {number}") for number in range(12)]
    values = {BOUND: [1.0] * 10, "RandomCrawl": [0.0] * 10, "A": mine}
    rows = [row for task in tasks for row in rows_of(task, values)]
    ends = ["score", "low", "high"]
    many = standings(scores_of(tasks, rows, {}))[1]["first"].loc[0, ends].astype(float)
    one = standings(scores_of(tasks[:1], rows_of(tasks[0], values), {}))[1]["first"].loc[0, ends]
    assert many.tolist() == pytest.approx(one.tolist())
    drawn = np.random.default_rng(4).choice(mine, (4000, 10)).mean(axis=1)
    half = 2.384 * drawn.std()  # the percentiles of 10 seeds
    assert (many.high - many.low) / 2.0 == pytest.approx(half, rel=0.1)


@pytest.mark.parametrize(("rate", "state"), [(10.0, ACTS), (10.09, ACTS), (10.2, OVER)])
def test_more_than_the_budget_scores_0(rate: float, state: str) -> None:
    rows = rows_of(ONE, {BOUND: [1.0, 1.0], "RandomCrawl": [0.0, 0.0], "A": [0.5, 0.5]}, rate)
    scores = scores_of([ONE], rows, {})
    mine = scores[scores.policy == "A"]
    assert list(mine.state) == [state, state]
    assert list(mine.score) == ([0.5, 0.5] if state == ACTS else [0.0, 0.0])


@pytest.mark.parametrize(("share", "state"), [(1.0, ACTS), (1.2, OVER)])
def test_with_costs_the_spend_counts_and_not_the_number_of_crawls(share: float, state: str) -> None:
    task = replace(ONE, arguments={"cost_spread": 1.0})
    values = {BOUND: [1.0] * 2, "RandomCrawl": [0.5] * 2, "A": [0.75] * 2}
    rows = rows_of(task, values, rate=20.0)  # cheap crawls: twice the budget in number
    rows += [
        Row("id", "one", policy, seed, BUDGET_SHARE, 1.0 if policy == "RandomCrawl" else share)
        for policy in ("RandomCrawl", "A")
        for seed in range(2)
    ]
    scores = scores_of([task], rows, {})
    assert set(scores[scores.policy == "A"].state) == {state}
    with pytest.raises(ValueError, match="budget_share must be a finite number"):
        scores_of([task], rows[:-1], {})


def test_who_cannot_act_scores_0_there_and_the_leaderboard_says_where_it_acts() -> None:
    rows = [
        *rows_of(ONE, {BOUND: [1.0] * 4, "RandomCrawl": [0.0] * 4, "A": [0.1, 0.2, 0.3, 0.4]}),
        *rows_of(TWO, {BOUND: [1.0] * 4, "RandomCrawl": [3.0] * 4, "B": [1.0] * 4}),
    ]
    scores = scores_of([ONE, TWO], rows, {})
    assert set(scores[(scores.policy == "A") & (scores.task == "two")].state) == {ABSENT}
    board, places = standings(scores)
    assert board.policy.tolist() == ["RandomCrawl", "B", "A"]
    assert board["rank"].tolist() == [1, None, None]
    # the middle half of the eight scores 0 0 0 0 1 1 1 1, and of 0 0 0 0 .1 .2 .3 .4
    assert board.score.tolist()[1:] == pytest.approx([0.5, 0.075])
    assert board.gap.tolist()[1:] == pytest.approx([0.5, (4.0 + 3.0) / 8.0])
    assert board.acting.tolist()[1:] == pytest.approx([1.0, 0.25])
    assert board.tasks.tolist() == [2, 1, 1]
    assert board.loc[1, ["first", "second"]].tolist() == [0.0, 1.0]
    assert board.low[1] <= board.score[1] <= board.high[1]
    assert {track: part.policy.tolist() for track, part in places.items()} == {
        "first": ["A", "RandomCrawl"],
        "second": ["B", "RandomCrawl"],
    }


NO_ROWS = " must have rows, got none; the command without --score simulates missing rows, with"


@pytest.mark.parametrize(
    ("policy", "metric", "seeds", "message"),
    [
        (None, None, (0, 1), f"task two, bound, seed 0{NO_ROWS}"),
        (BOUND, None, (0, 1), f"task two, bound, seed 0{NO_ROWS}"),
        (BOUND, BUDGET, (1,), "task two, bound, seed 1: budget must be a finite number .* got nan"),
        (BOUND, "penalty", (1,), "task two, bound, seed 1: penalty must be a finite number"),
        ("RandomCrawl", None, (0, 1), f"task two, RandomCrawl, seed 0{NO_ROWS}"),
        ("A", None, (1,), f"task two, A, seed 1{NO_ROWS}"),
        ("A", "penalty", (0,), "task two, A, seed 0: penalty must be .* got nan; start over with"),
        ("A", "crawl_rate", (0, 1), "task two, A, seed 0: crawl_rate must be a finite number"),
    ],
)
@pytest.mark.parametrize("lost", [True, False], ids=["without", "infinite"])
def test_rows_that_are_missing_or_damaged_are_named(
    policy: str | None, metric: str | None, seeds: tuple[int, ...], message: str, lost: bool
) -> None:
    values = {BOUND: [1.0, 1.0], "RandomCrawl": [4.0, 6.0], "A": [3.0, 3.0]}
    rows, complete = [], [*rows_of(ONE, values), *rows_of(TWO, values)]
    for row in complete:
        fits = row.policy == (policy or row.policy) and row.metric == (metric or row.metric)
        if row.setting != "two" or row.seed not in seeds or not fits:
            rows.append(row)
        elif not lost:
            rows.append(row._replace(value=np.inf))
            message = message.replace("got nan", "got inf").replace(NO_ROWS, ".* got inf; start")
    assert len(scores_of([ONE, TWO], complete, {})) == 8
    with pytest.raises(ValueError, match=message):
        scores_of([ONE, TWO], rows, {})


def test_who_can_act_in_a_task_needs_its_rows() -> None:
    values = {BOUND: [1.0, 1.0], "RandomCrawl": [0.0, 0.0], "A": [0.5, 0.5]}
    other = {**values, "A": []}
    rows = [*rows_of(ONE, values), *rows_of(TWO, other)]
    scores = scores_of([ONE, TWO], rows, {"one": {"A": {}}, "two": {}})
    assert set(scores[(scores.policy == "A") & (scores.task == "two")].state) == {ABSENT}
    with pytest.raises(ValueError, match=f"task two, A, seed 0{NO_ROWS}"):
        scores_of([ONE, TWO], rows, {"one": {"A": {}}, "two": {"A": {}}})


def test_no_rows_are_none_of_any_task() -> None:
    with pytest.raises(ValueError, match=f"task one, bound, seed 0{NO_ROWS}"):
        scores_of([ONE], [], {})


def test_a_bound_that_is_played_needs_its_rows() -> None:
    values = {BOUND: [1.0], "RandomCrawl": [0.0], "A": [0.5], ORACLE: [2.0]}
    task = replace(ONE, bound=ORACLE)
    rows = rows_of(task, values)
    assert matrix(scores_of([task], rows, {}), "A") == pytest.approx(0.25)
    with pytest.raises(ValueError, match=f"task one, {ORACLE}, seed 0{NO_ROWS}"):
        scores_of([task], [row for row in rows if row.policy != ORACLE], {})


def test_intervals_and_ties_of_several_trainings_are_over_trainings() -> None:
    """A leads by much on the seeds of some of its trainings, and by little over trainings."""
    seeds, rng = 20, np.random.default_rng(1)
    by_training = np.array([0.3, 0.5, 0.7, 0.9, 0.6])[np.arange(seeds) % 5]
    values = {
        **{BOUND: [1.0] * seeds, "RandomCrawl": [0.0] * seeds},
        "A": list(by_training + 0.02 * rng.standard_normal(seeds)),
        "B": list(0.45 + 0.02 * rng.standard_normal(seeds)),
    }
    rows = rows_of(ONE, values)
    described = {"one": {"A": {"trainings": [f"seed-{number}" for number in range(5)]}}}
    for able, tied in (({}, False), (described, True)):
        scores = scores_of([ONE], rows, able)
        board, places = standings(scores)
        assert board.policy.tolist()[:2] == ["A", "B"]
        assert board.tied.tolist()[:2] == [True, tied]
        assert places["first"].tied.tolist()[:2] == [True, tied]
    apart = (matrix(scores, "A") - matrix(scores, "B")).reshape(4, 5).mean(axis=0)
    half = 2.776 * apart.std(ddof=1) / 5**0.5  # Student's, of 5 trainings
    [second] = places["first"][places["first"].policy == "B"].itertuples()
    assert (second.behind_high - second.behind_low) / 2.0 == pytest.approx(half, rel=0.15)
    [first] = places["first"][places["first"].policy == "A"].itertuples()
    assert (first.high - first.low) / 2.0 == pytest.approx(half, rel=0.15)
    means = training_means(scores, trainings_of(scores))
    assert (means.policy == "A").sum() == 5
    assert (means.policy == "B").sum() == seeds
    mine = means[means.policy == "A"].sort_values("seed").score
    assert mine.tolist() == pytest.approx(matrix(scores, "A").reshape(4, 5).mean(axis=0).tolist())


def test_one_seed_has_no_ties() -> None:
    values = {BOUND: [1.0, 1.0], "RandomCrawl": [0.0, 0.0], "A": [0.9, 0.5], "B": [0.5, 0.9]}
    for seeds, tied in ((1, False), (2, True)):
        rows = rows_of(ONE, {label: column[:seeds] for label, column in values.items()})
        board, places = standings(scores_of([ONE], rows, {}))
        assert board.tied.tolist()[:2] == [tied] * 2
        assert places["first"].tied.tolist()[:2] == [tied] * 2


def test_agents_with_other_numbers_of_trainings_share_no_independent_parts() -> None:
    values = {BOUND: [1.0] * 12, "RandomCrawl": [0.0] * 12, "A": [0.9, 0.8] * 6, "B": [0.5] * 12}
    described = {"one": {"A": {"trainings": ["a"] * 4}, "B": {"trainings": ["a"] * 6}}}
    places = standings(scores_of([ONE], rows_of(ONE, values), described))[1]["first"]
    behind = places.set_index("policy").loc["B"]
    assert behind.behind == pytest.approx(0.35)  # gcd(4, 6) = 2 parts: .4 and .3
    half = 12.706 / 1.960 * 2**0.5 * 0.05  # quantiles of two parts are the parts
    assert (behind.behind_high - behind.behind_low) / 2.0 == pytest.approx(half, rel=0.01)
    described["one"]["B"] = {"trainings": ["a"] * 3}
    places = standings(scores_of([ONE], rows_of(ONE, values), described))[1]["first"]
    assert places.set_index("policy").tied["B"]  # one part has no interval
