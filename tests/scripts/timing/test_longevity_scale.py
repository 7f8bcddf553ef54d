"""Cost of fragments: timed pages, counts of bytes, the command."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from crawl_envs.sim.state import BASE
from scripts.timing import longevity_scale
from scripts.timing.longevity_scale import DAYS, PLAIN, Cost, Variant, case_of
from scripts.timing.stepped import make_env


def test_pages_are_updated_and_crawled_as_often() -> None:
    few, many = (longevity_scale.pages_of(2000, number) for number in (50, 500))
    assert 8.0 < np.median(many.regions.fragments) / np.median(few.regions.fragments) < 12.0
    env, beside = (make_env(case_of(2000, 1, one)) for one in (PLAIN, None))
    assert np.array_equal(beside.instance.change_rate, env.instance.change_rate)
    assert beside.instance.bandwidth == env.instance.bandwidth == 200.0


def test_bytes_are_those_of_all_arrays() -> None:
    env = make_env(case_of(30, 1, Variant(base_versions=3)))
    reset, *held = longevity_scale.held(partial(Cost, 30, 1), "", env, 30)
    paths = dict(longevity_scale.array_bytes(env.get_state()))
    totals = {cost.what: 30.0 * cost.median for cost in held}
    assert reset.what == "reset"
    assert sum(totals.values()) == pytest.approx(sum(paths.values()))
    updates = np.isfinite(env.contents().death).sum()
    assert totals["spells and events"] > (16 + 4 + 8) * updates
    assert totals["base versions"] == pytest.approx(30 * 3 * BASE.itemsize)
    nested: dict[str, Any] = {"a": [np.zeros(2), {"b": np.zeros(3, np.int8)}], "c": 4}
    sizes = dict(longevity_scale.array_bytes(nested))
    assert sizes == {("a", "0"): 16, ("a", "1", "b"): 3}


def test_stepping_goes_on_with_the_next_episode() -> None:
    env = make_env(case_of(5, 1, PLAIN))
    task = longevity_scale.stepping(env, log=True)
    task(env.num_slots() + 3)
    assert 0.0 < env.tracker(0).time < DAYS
