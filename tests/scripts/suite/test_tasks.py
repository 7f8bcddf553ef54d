from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict

import pytest

import policies
from agents.sb3.comparison import FIRST_SEED as EVALUATION
from crawl_envs import FAMILIES
from crawl_envs.instances import traces
from scripts.suite.crawl_v2 import ACROSS, HELD_OUT, RECORDED, TRAINING_LAWS
from scripts.suite.suites import SUITES
from scripts.suite.tasks import BOUNDS, FIRST_SEED, INFORMED, SANITY, SITES, TRACE, Task

VERSIONS = {
    "crawl-v2": "6a946d925c1b1a02",
    "crawl-v1": "6c665364f2e17334",
    "mini": "101f3eb76e62791d",
}
LATER_FIELDS = ("reason", "averaged", "variants", "history", "most_rounds")


def fingerprint(tasks: Sequence[Task]) -> str:
    """Return a hash of tasks; fields that crawl-v1 did not have count only in later suites."""
    texts = [asdict(task) for task in tasks]
    if not any(task.reason for task in tasks):
        texts = [{k: v for k, v in text.items() if k not in LATER_FIELDS} for text in texts]
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", VERSIONS)
def test_tasks_of_a_version_never_change(name: str) -> None:
    assert fingerprint(SUITES[name]) == VERSIONS[name]


def test_the_suites_hold_every_family_and_track() -> None:
    tasks = SUITES["crawl-v1"]
    assert len({task.name for task in tasks}) == len(tasks) >= 40
    assert {task.id for task in tasks} == {*FAMILIES} - {SITES}
    assert {task.bound for task in tasks} == {*BOUNDS} - {INFORMED}
    assert {task.random for task in tasks} <= {*policies.names()}
    assert {task.arguments.get("action", "page") for task in tasks} == {
        *("page", "scores", "refresh", "rates")
    }
    mini = SUITES["mini"]
    assert [task.track for task in mini] == list(dict.fromkeys(task.track for task in tasks))


def test_seeds_are_those_of_no_training_and_no_evaluation() -> None:
    assert FIRST_SEED > 2 * EVALUATION > 0


def test_the_second_suite_gives_a_reason_for_each_task_and_holds_its_worlds_out() -> None:
    tasks = SUITES["crawl-v2"]
    assert 45 <= len(tasks) <= 48
    assert len({task.name for task in tasks}) == len(tasks)
    assert all(task.reason for task in tasks)
    assert all(task.arguments["start"] == "crawled" for task in tasks)
    for task in tasks:
        assert task.arguments.get("split" if task.id == SITES else "pages") == (
            None if task.variants else "test"
        )
        assert (task.id in (TRACE, SITES)) == (task.track in (RECORDED, ACROSS))
        assert task.averaged == (task.bound == INFORMED and task.track != SANITY)
        sites = [variant["trace"] for variant in task.variants]
        assert sites == [*traces.sites("test")] * (task.id == TRACE)
    held_out = [task for task in tasks if task.track == HELD_OUT]
    assert max(task.arguments["num_pages"] for task in held_out) > 300
    laws = {task.arguments["instance"] for task in held_out if task.arguments["num_pages"] == 100}
    assert not laws & {*TRAINING_LAWS}
