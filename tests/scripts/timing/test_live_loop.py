"""The loop of a crawler with faults, on the included site."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crawl_envs.instances.traces import find, load
from scripts.timing import live_loop


def test_faults_cost_little_and_no_host_is_asked_too_soon() -> None:
    trace = load(find("garden-handbook"))
    without, faults = (live_loop.Loop(trace, 60.0, each).play() for each in (False, True))
    assert min(without.used, faults.used) >= 0.97
    assert min(without.gap, faults.gap) >= 1.0
    assert without.failed == 0.0
    assert 0.02 < faults.failed < 0.2
    assert faults.stale - without.stale < 0.03  # 55 pages for 60 days: a page is .018


def test_stale_time_is_counted_from_the_first_change_after_a_copy() -> None:
    loop = live_loop.Loop(load(find("garden-handbook")), 5.0, False)
    loop.changes[0] = np.array([1.0, 4.0])
    lives = np.zeros(loop.trace.num_pages), np.full(loop.trace.num_pages, np.inf)
    loop.trace = replace(loop.trace, created=lives[0], deleted=lives[1])
    for copies, stale in (
        ([], 5.0),
        ([0.0], 4.0),
        ([0.0, 3.0], 2.0 + 1.0),
        ([2.0, 4.0], 2.0 + 0.0),  # a change at the time of a copy is in it
        ([4.5], 4.5),
    ):
        loop.copies[0] = copies
        assert loop.stale(0) == (stale, 5.0), copies
    lives[1][0] = 3.0
    loop.copies[0] = [2.5]
    assert loop.stale(0) == (2.5, 3.0)
