from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.catalog import SHIPPED
from crawl_envs.evaluation import Row, make_env
from crawl_envs.instances import traces
from crawl_envs.instances.traces.collection import site_table
from scripts.study.entrants import candidate_of
from scripts.suite.crawl_v2 import RECORDED_DEV, TASKS
from scripts.suite.entrants import entrants, setting_of
from scripts.suite.sites import mean_of_trainings, means_of, site_means
from scripts.suite.suites import SUITES
from scripts.suite.tasks import CLAIRVOYANT, TRACE, Task

TASK = Task("few", "recorded", TRACE, {}, bound=CLAIRVOYANT, variants=({"trace": "a"},) * 5)
ROWS = {row["site"]: int(row["pages"]) for row in site_table()}


def rows_of(policy: str, values: list[float]) -> list[Row]:
    return [
        Row(TRACE, "few", policy, site, metric, value)
        for site, value in enumerate(values)
        for metric in ("freshness", "crawl_rate")
    ]


def test_means_and_intervals_are_over_sites() -> None:
    values = {
        **{"A": [0.5, 0.7, 0.9, 0.6, 0.8], "B": [0.9] * 5, "bound": [1.0] * 5},
        **{"RoundRobin": [0.5, 0.5, 0.5, 0.5, 0.2], "clairvoyant": [0.9, 0.9, 0.9, 0.9, 0.2]},
    }
    rows = [row for policy, found in values.items() for row in rows_of(policy, found)]
    table = site_means([TASK], rows)
    assert table.policy.tolist() == ["B", "A", "RoundRobin"]  # the best first, without bounds
    assert table.sites.tolist() == [4, 4, 4]  # nothing can be gained on the last site
    scores = [0.0, 0.5, 1.0, 0.25]
    assert table.score.tolist() == pytest.approx([1.0, np.mean(scores), 0.0])
    assert table["mean"].tolist() == pytest.approx([0.9, 0.7, 0.44])
    half = (table.high[1] - table.low[1]) / 2.0
    assert half == pytest.approx(3.182 * np.std(scores, ddof=1) / 4**0.5, rel=0.15)
    assert means_of(table)[0] == ["B", "1.000 [1.000, 1.000] (0.900)"]


def test_scores_on_a_site_are_cut() -> None:
    values = {"A": [0.1, 0.99], "RoundRobin": [0.5] * 2, "clairvoyant": [0.6] * 2}
    rows = [row for policy, found in values.items() for row in rows_of(policy, found)]
    task = replace(TASK, variants=TASK.variants[:2])
    assert site_means([task], rows).score.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("label", ["A", "RoundRobin", "clairvoyant"])
@pytest.mark.parametrize("seeds", [{3}, {0, 1, 2, 3, 4}])
def test_missing_rows_of_a_site_are_an_error(label: str, seeds: set[int]) -> None:
    values = {"A": [0.4] * 10, "B": [0.3] * 5, "RoundRobin": [0.2] * 5, "clairvoyant": [0.6] * 5}
    rows = [row for policy, found in values.items() for row in rows_of(policy, found)]
    assert len(site_means([TASK], rows)) == 3
    rows = [row for row in rows if row.policy != label or row.seed not in seeds]
    with pytest.raises(ValueError, match=f"few, {label}: all 5 sites must have rows in each train"):
        site_means([TASK], rows)


@pytest.mark.parametrize("name", ["dev-30-history", "sites", "late", "garden-none-4", "noisy"])
def test_policies_without_slots_are_refused_except_in_the_first_suite(name: str) -> None:
    first = name in ("garden-none-4", "noisy")
    tasks = SUITES["crawl-v1"] if first else (*RECORDED_DEV, *TASKS)
    task = next(task for task in tasks if task.name == name)
    names = ("RoundRobin", "BeliefNCIS", "ThresholdNCIS")
    setting = setting_of(task, {name: entrants(())[name] for name in names})
    refused = set() if first else {"ThresholdNCIS"}
    assert {*setting.refused} == refused
    assert {*setting.policies} & {*names} == {*names} - refused
    assert all("times of its crawls" in reason for reason in setting.refused.values())


def test_recorded_tasks_of_dev_and_test_have_different_names() -> None:
    assert not {task.name for task in RECORDED_DEV} & {task.name for task in TASKS}


def test_seeds_of_recorded_tasks_are_sites() -> None:
    setting = setting_of(RECORDED_DEV[0], {"RoundRobin": entrants(())["RoundRobin"]})
    assert [*setting.seeds(3)] == [*range(len(traces.sites("dev")))]


def test_tasks_across_sites_draw_another_site_and_budget_for_each_seed() -> None:
    task = next(task for task in TASKS if task.name == "sites-hidden")
    setting = setting_of(task, {"RandomCrawl": entrants(())["RandomCrawl"]})
    sites, days, fresh = [], [], []
    for seed in setting.seeds(10):
        env: Any = make_env(setting.id, **setting.arguments_of(seed))
        env.reset(seed=setting.first_seed + seed)
        instance = env.unwrapped.instance
        sites.append(instance.site)
        trace, duration = traces.load(traces.find(instance.site)), env.unwrapped.lanes.horizon
        lived = trace.alive_days(instance.day, instance.day + duration)[instance.pages].sum()
        days.append(lived / duration / instance.bandwidth)
        rows = setting.play("RandomCrawl", seed)
        fresh += [row.value for row in rows if row.metric == "freshness"]
    assert {*sites} <= {*traces.sites("test")}
    assert len({*sites}) >= 6
    assert all(3.0 <= day <= 30.0 for day in days)
    assert max(days) > 2.0 * min(days)
    assert 0.0 < np.mean(fresh) < 0.99


@pytest.mark.parametrize("name", ["recorded-3-history", "recorded-30-history"])
def test_histories_end_where_the_first_round_of_crawls_starts(name: str) -> None:
    task = next(task for task in TASKS if task.name == name)
    setting = setting_of(task, {"BeliefNCIS": entrants(())["BeliefNCIS"]})
    arguments = setting.arguments_of(1)
    env: Any = make_env(setting.id, **arguments)
    env.reset(seed=0)
    trace = traces.load(traces.find(arguments["trace"]))
    half = trace.days / 2.0
    policy: Any = setting.policies["BeliefNCIS"](env)
    before = env.unwrapped.lanes.origin_of(env.unwrapped.instance)
    history = policy.policy.history
    assert history.duration == pytest.approx(half - before)
    changes = (trace.change_time > 0.0) & (trace.change_time <= half - before)
    assert (history.kind == 2).sum() == changes.sum() > 0


def test_recorded_tasks_play_at_most_30_crawls_of_a_page() -> None:
    for task in TASKS:
        for variant in task.variants:
            days = traces.load(traces.find(variant["trace"])).days
            first, last = variant["window"]
            assert first == days / 2.0
            most = 30 * task.arguments["days_per_crawl"]
            assert last == (days if days / 2.0 < most else first + most)
    task = next(task for task in TASKS if task.name == "recorded-3-nothing")
    env: Any = make_env(task.id, **task.arguments, **task.variants[1])
    env.reset(seed=0)
    trace = traces.load(traces.find(task.variants[1]["trace"]))
    alive = trace.alive_days(*task.variants[1]["window"]).sum() / 90.0
    assert env.unwrapped.num_slots() == pytest.approx(30 * alive, abs=2.0)


def test_all_trainings_of_an_agent_play_all_sites() -> None:
    """Repetition k of V sites is on site k mod V, of training k // V; policies have one."""
    by_training, by_site = np.array([0.2, 0.5, 0.8]), np.array([-0.1, 0.1, 0.0, 0.1, -0.1])
    mine = (by_training[:, None] + by_site).ravel().tolist()
    values = {"A": mine, "B": [0.5] * 5, "RoundRobin": [0.0] * 5, "clairvoyant": [1.0] * 4 + [0.0]}
    rows = [row for policy, found in values.items() for row in rows_of(policy, found)]
    table = site_means([TASK], rows).set_index("policy")
    assert table.sites.tolist() == [4, 4, 4]  # nothing can be gained on the last site
    scores = by_training[:, None] + by_site[:4]
    assert table.score["A"] == pytest.approx(scores.mean())
    assert (table.score["B"], table.low["B"], table.high["B"]) == (0.5, 0.5, 0.5)
    half = (table.high["A"] - table.low["A"]) / 2.0
    assert half > 4.303 * np.std(by_training, ddof=1) / 3**0.5 * 0.9  # Student's, of 3 trainings
    means = mean_of_trainings([TASK], rows)
    at_first = next(row for row in means if row[2:4] == ("A", 0) and row.metric == "freshness")
    assert at_first.value == pytest.approx(0.4)
    assert len(means) == 2 * 5 * 4


def test_an_agent_plays_each_training_and_a_policy_each_site_once() -> None:
    task = next(task for task in TASKS if task.name == "recorded-100-nothing")
    named = entrants(())
    labels = ("RoundRobin", "site-belief")
    setting = setting_of(task, {label: named[label] for label in labels})
    sites = len(task.variants)
    assert setting.seeds(3) == range(5 * sites)
    for label, last in (("RoundRobin", sites), ("bound", sites), ("site-belief", 5 * sites)):
        assert [setting.has_unit(label, seed) for seed in (last - 1, last)] == [True, False]
    smallest = min(range(sites), key=lambda place: ROWS[task.variants[place]["trace"]])
    rows = setting.play("site-belief", smallest + 2 * sites)
    assert {row.seed for row in rows} == {smallest + 2 * sites}
    alone = setting_of(task, {"seed-2": candidate_of(SHIPPED / "site-belief" / "seed-2")})
    same = [row._replace(policy="seed-2", seed=smallest) for row in rows]
    assert alone.play("seed-2", smallest) == same
