"""Worlds whose events, crawls and outcomes were written down by independent code.

Each is played as a hand-written tape with the recorded sequence of crawls; that policies choose
this sequence is tested with the policies. The recorded time average of freshness ends at the
horizon T, while the environment's last slot runs on to T + 1/R; so freshness is compared at the
decision at T, before the last crawl, which no event follows. Hits and requests are compared at
the end.
"""

from __future__ import annotations

import numpy as np
import pytest

from crawl_envs import Instance
from crawl_envs.sim.tape import Tape
from tests.naive import pages as naive
from tests.reference import reference
from tests.worlds import single_of

WORLDS = reference("ncis_events")
CASES = [
    pytest.param(world, name, id=f"{world['name']} {name}")
    for world in WORLDS
    for name in world["results"]
]


def lists_of(world, delayed):
    """The world's events as lists of (times, pages); signals at their arrival."""
    events = world["events"]
    signalled = [bool(flag) for flag in events["change_signalled"]]
    times = [time for time, flag in zip(events["change_t"], signalled, strict=True) if flag]
    pages = [page for page, flag in zip(events["change_page"], signalled, strict=True) if flag]
    times, pages = times + events["false_t"], pages + events["false_page"]
    if delayed:
        times = [time + delay for time, delay in zip(times, events["delays"], strict=True)]
    return {
        "changes": (events["change_t"], events["change_page"]),
        "signals": (times, pages),
        "requests": (events["request_t"], events["request_page"]),
    }


@pytest.mark.parametrize(("world", "name"), CASES)
def test_recorded_crawls_have_the_recorded_outcome(world, name):
    expected = world["results"][name]
    lists = lists_of(world, "delayed" in name)
    instance = Instance(
        world["mu"], world["Delta"], world["lam"], world["nu"], bandwidth=world["R"]
    )
    tape = Tape.of_events(world["m"], **lists)
    env = single_of(instance, tape=tape, horizon=world["T"])
    env.reset(seed=0)
    *crawls, last = expected["crawl_sequence"]
    for page in crawls:
        env.step(page)
    ledger = env.ledger()
    assert ledger.time == world["T"]
    assert ledger.freshness == pytest.approx(expected["timeavg_freshness"], rel=1e-12)
    assert env.step(last)[3], "the recorded sequence spends the whole budget"
    ledger = env.ledger()
    assert (ledger.hits, ledger.requests) == (expected["hits"], expected["requests"])
    assert ledger.changes == len(lists["changes"][0])
    assert ledger.crawls == world["R"] * world["T"]


@pytest.mark.parametrize(("world", "name"), CASES)
def test_the_twin_has_the_recorded_outcome(world, name):
    """The twin too is checked against code that shares nothing with it."""
    expected = world["results"][name]
    instance = Instance(world["mu"], world["Delta"], bandwidth=world["R"])
    twin = naive.World(instance, naive.written_events(**lists_of(world, "delayed" in name)))
    for page in expected["crawl_sequence"]:
        twin.play_slot([page])
    assert twin.ledger["hits"] == expected["hits"]
    assert twin.ledger["requests"] == expected["requests"]


def test_delays_are_those_of_all_signals():
    for world in WORLDS:
        events = world["events"]
        assert len(events["delays"]) == np.sum(events["change_signalled"]) + len(events["false_t"])
