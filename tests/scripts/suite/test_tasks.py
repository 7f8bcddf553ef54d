from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import pytest

import policies
from agents.sb3.comparison import FIRST_SEED as EVALUATION
from crawl_envs import FAMILIES
from scripts.suite.tasks import BOUNDS, FIRST_SEED, SUITES

VERSIONS = {"crawl-v1": "6c665364f2e17334", "mini": "101f3eb76e62791d"}


@pytest.mark.parametrize("name", SUITES)
def test_tasks_of_a_version_never_change(name: str) -> None:
    text = json.dumps([asdict(task) for task in SUITES[name]], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == VERSIONS[name]


def test_the_suites_hold_every_family_and_track() -> None:
    tasks = SUITES["crawl-v1"]
    assert len({task.name for task in tasks}) == len(tasks) >= 40
    assert {task.id for task in tasks} == {*FAMILIES} - {"CrawlSites-v0"}
    assert {task.bound for task in tasks} == {*BOUNDS}
    assert {task.random for task in tasks} <= {*policies.names()}
    assert {task.arguments.get("action", "page") for task in tasks} == {
        *("page", "scores", "refresh", "rates")
    }
    mini = SUITES["mini"]
    assert [task.track for task in mini] == list(dict.fromkeys(task.track for task in tasks))


def test_seeds_are_those_of_no_training_and_no_evaluation() -> None:
    assert FIRST_SEED > 2 * EVALUATION > 0
