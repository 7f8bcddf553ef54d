"""Tasks in which no copy may get old: who is given the promise, and what is measured."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import policies
from crawl_envs.evaluation import Row, make_env, rollout_of
from scripts.study.entrants import candidates_of, place_of, user_policy
from scripts.study.specs import describe
from scripts.suite.bounds import BOUND, BUDGET
from scripts.suite.crawl_v2 import GUARANTEES, TASKS
from scripts.suite.entrants import LARGEST_AGE, factory_in, setting_of
from scripts.suite.episodes import largest_age
from scripts.suite.scores import ACTS, LATE, matrix, scores_of, standings
from scripts.suite.tasks import FIRST_SEED, INFORMED, NCIS, PERFECT, Task

PROMISES = [task for task in TASKS if task.most_rounds is not None]
SMALL = {
    **{"instance": "noisy", "num_pages": 10, "bandwidth": 5.0, "horizon": 9.0},
    **{"start": "crawled", "pages": "test"},
}


def crawls_of(name: str, seed: int) -> tuple[list[tuple[float, int]], int]:
    """Return time and page of all crawls of a stepped episode, and the number of its slots."""
    env: Any = make_env(NCIS, **SMALL)
    observation, _ = env.reset(seed=seed)
    core, over, slots = env.unwrapped, False, 0
    policy, crawls = policies.make(name, env), []
    while not over:
        page = int(policy.predict(observation)[0])
        crawls.append((core.tracker().time, page))
        observation, _, _, over, _ = env.step(page)
        slots += 1
    return crawls, slots


@pytest.mark.parametrize("name", ["GreedyNCIS", "RandomCrawl", "LearningGreedyNCIS", "RoundRobin"])
def test_the_largest_age_is_that_of_a_list_of_all_crawls(name: str) -> None:
    seed, pages, slot = 5, 10, 1.0 / 5.0
    crawls, slots = crawls_of(name, seed)
    events = [((page + 1) * slot, page) for page in range(pages)] + crawls  # a round before
    end = (pages + slots + 1) * slot
    largest = 0.0
    for page in range(pages):
        times = [*sorted(time for time, crawled in events if crawled == page), end]
        largest = max([largest, *(later - time for time, later in pairwise(times))])
    found = largest_age(NCIS, SMALL, partial(policies.make, name), seed)
    assert found == pytest.approx(largest * 5.0 / pages, rel=1e-9)
    assert found >= 1.0


@pytest.mark.parametrize("name", ["GreedyNCIS", "BeliefNCIS", "RandomCrawl"])
def test_stepped_and_compiled_episodes_have_the_same_crawls(name: str) -> None:
    env = make_env(NCIS, **SMALL)
    env.reset(seed=5)
    rollouts = [
        rollout_of(env, policies.make(name, env), 5, compiled=compiled)
        for compiled in (True, False)
    ]
    np.testing.assert_array_equal(rollouts[0].crawls, rollouts[1].crawls)
    np.testing.assert_allclose(rollouts[0].times, rollouts[1].times)
    assert rollouts[0].ledger == rollouts[1].ledger


def test_policies_that_choose_times_are_measured_too() -> None:
    arguments = {**SMALL, "horizon": 60.0}
    factory = partial(policies.make, "ThresholdNCIS")
    env: Any = make_env(NCIS, **arguments)
    env.reset(seed=5)
    never = (rollout_of(env, factory(env), 5).crawl_counts == 0).any()
    age = largest_age(NCIS, arguments, factory, 5)
    assert age > 30.0 if never else 1.0 < age < 30.0


@pytest.mark.parametrize("task", PROMISES, ids=lambda task: task.name)
def test_the_reference_and_who_can_promise_keep_it(task: Task) -> None:
    assert (task.track, task.bound, task.most_rounds) == (GUARANTEES, INFORMED, 3.0)
    task = replace(task, arguments={**task.arguments, "horizon": task.arguments["horizon"] / 4})
    names = ("GreedyNCIS", "BeliefNCIS", "generalist", "noisy-index", "RoundRobin", "RandomCrawl")
    setting = setting_of(task, candidates_of(names))
    ages = {}
    for label in setting.policies:
        rows = setting.play(label, 0)
        [ages[label]] = [row.value for row in rows if row.metric == LARGEST_AGE]
    assert ages["RandomCrawl"] > 3.01
    assert ages["RoundRobin"] == pytest.approx(1.0)
    assert {*ages} >= {INFORMED, "BeliefNCIS", "generalist", "RandomCrawl"}
    assert all(1.0 <= ages[label] <= 3.0 for label in ages if label != "RandomCrawl")


def test_without_the_promise_the_same_policies_break_it() -> None:
    for task in PROMISES:
        for name in ("BeliefNCIS", "generalist"):
            free = candidates_of([name])[name].factory
            assert largest_age(task.id, task.arguments, free, FIRST_SEED) > 3.01


def test_the_promise_is_described_and_others_play_as_they_are() -> None:
    task, env = PROMISES[0], make_env(NCIS, **SMALL)
    env.reset(seed=0)
    factory = factory_in(task, partial(policies.make, "RandomCrawl"))
    assert type(factory(env).policy) is policies.RandomCrawl  # type: ignore[attr-defined]
    greedy = describe(factory_in(task, partial(policies.make, "GreedyNCIS")))
    assert greedy["most_rounds"] == 3.0
    free = replace(task, most_rounds=None)
    plain = partial(policies.make, "GreedyNCIS")
    assert factory_in(free, plain) is plain


def test_errors_of_a_policy_of_the_user_are_located_inside_the_promise() -> None:
    name = "tests.policies.base.counting_learner:CountingLearner"
    factory = partial(user_policy, name, file_digest="", arguments={})
    found = place_of(ValueError(), factory_in(PROMISES[0], factory))
    assert found == place_of(ValueError(), factory)
    assert "counting_learner.py" in found


ONE = Task("one", "first", "id", {"num_pages": 100}, bound=PERFECT, most_rounds=3.0)


def rows_of(ages: list[float]) -> list[Row]:
    values = {BOUND: 1.0, "RandomCrawl": 0.0, "A": 0.5}
    rows = []
    for label, value in values.items():
        for seed, age in enumerate(ages):
            oldest = 9.0 if label == "RandomCrawl" else age
            metrics = {"freshness": value, "crawl_rate": 10.0, LARGEST_AGE: oldest}
            if label == BOUND:
                metrics = {"freshness": value, BUDGET: 10.0}
            rows += [Row("id", "one", label, seed, name, x) for name, x in metrics.items()]
    return rows


@pytest.mark.parametrize(
    ("ages", "state"),
    [([1.0, 3.0], ACTS), ([1.0, 3.01 + 1e-12], ACTS), ([1.0, 3.02], LATE), ([9.0, 1.0], LATE)],
)
def test_a_copy_that_gets_too_old_in_any_episode_scores_0(ages: list[float], state: str) -> None:
    scores = scores_of([ONE], rows_of(ages), {})
    mine = scores[scores.policy == "A"]
    assert list(mine.state) == [state] * 2
    assert matrix(scores, "A")[:, 0].tolist() == [0.5 * (state == ACTS)] * 2
    free = scores_of([replace(ONE, most_rounds=None)], rows_of(ages), {})
    assert {*free.state} == {ACTS}


def test_ages_are_needed_in_such_tasks() -> None:
    rows = [row for row in rows_of([1.0]) if row.metric != LARGEST_AGE or row.policy != "A"]
    with pytest.raises(ValueError, match="task one, A, seed 0: largest_age must be a finite"):
        scores_of([ONE], rows, {})


def test_who_breaks_a_promise_has_no_rank_as_over_the_budget() -> None:
    scores = scores_of([ONE], rows_of([1.0, 1.0]), {})
    board, _ = standings(scores)
    assert dict(zip(board.policy, board["rank"], strict=True)) == {"A": 1, "RandomCrawl": None}
