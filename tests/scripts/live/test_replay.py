"""Logs with given changes, replayed as tapes and by their own crawls."""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs import Instance
from crawl_envs.envs.single import CrawlEnv
from crawl_envs.instances.traces.instance import Recorded
from crawl_envs.sim.tape import BIRTH, CHANGE, CODE_STRIDE, DEATH, SIGNAL
from crawl_envs.spaces.actions import action_form
from crawl_envs.spaces.rewards import Objective
from crawl_envs.worlds.lanes import Lanes
from policies.live.logs.imputation import Changes
from scripts.live.replay import crawls_within, freshness_served, in_turn, window
from tests.naive import replayed_logs as naive


def sorted_changes(events: list[tuple[int, float]]) -> Changes:
    events = sorted(events, key=lambda event: event[1])
    return Changes(
        np.array([page for page, _ in events], np.int64), np.array([time for _, time in events])
    )


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_served_freshness_equals_a_plain_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    crawls = [
        (page, float(time), False)
        for page in range(6)
        for time in np.sort(rng.random(rng.integers(1, 8)) * 20.0)
    ]
    last = max(crawl[:2] for crawl in crawls if crawl[0] == 1)
    log = naive.make_log(crawls, num_pages=6, gone={last})
    changes = sorted_changes(
        [(int(rng.integers(6)), float(rng.random() * 20.0)) for _ in range(25)]
    )
    importance = rng.random(6)
    start, end = 4.0, float(log.time.max()) + 1.0
    served = freshness_served(log, changes, importance, start, end)
    expected = naive.freshness(log, changes, importance, start, end)
    np.testing.assert_allclose(served, expected, rtol=1e-12)


def test_an_environment_that_makes_the_crawls_of_a_log_serves_as_fresh() -> None:
    """Crawls of a log at slot times, as actions on the log's own tape."""
    rng, pages, slots, start = np.random.default_rng(3), 4, 60, 2.0
    crawls = [(page, 0.5, False) for page in range(pages)]
    actions = rng.integers(0, pages, slots)
    crawls += [(int(page), start + (j + 1) * 0.1, False) for j, page in enumerate(actions)]
    log = naive.make_log(crawls, num_pages=pages)
    end = start + slots * 0.1
    changes = sorted_changes(
        [(int(rng.integers(pages)), float(start + rng.random() * 6.0)) for _ in range(80)]
    )
    tape = window(log, changes, start, end)
    generator = Recorded(
        draw=lambda rng, num_pages, **more: Instance(np.ones(num_pages), 0.5, **more),
        num_pages=pages,
        bandwidth=10.0,
        tape=tape,
    )
    form = action_form("page", pages, 1)
    lanes = partial(Lanes, generator=generator, form=form, horizon=tape.duration, tape=tape)
    env = CrawlEnv(lanes, Objective())
    env.reset(seed=0)
    over, j = False, 0
    while not over:
        _, _, _, over, _ = env.step(int(actions[j]))
        j += 1
    served = freshness_served(log, changes, np.ones(pages), start, start + env.ledger().time)
    np.testing.assert_allclose(env.ledger().freshness, served, rtol=1e-12)


def test_a_window_has_births_signals_and_deaths() -> None:
    log = naive.make_log(
        [(0, 0.0, False), (1, 3.0, False), (1, 5.0, False), (0, 6.0, True)],
        [(0, 2.5, 1), (1, 2.9, 0), (1, 4.0, 0), (1, 5.5, 0)],
        num_pages=3,
        num_sources=2,
        gone={(1, 5.0)},
    )
    tape = window(log, Changes(np.array([0, 0]), np.array([0.5, 4.5])), 1.0, 6.0)
    kinds = [
        (float(time) + 1.0, *divmod(int(code), CODE_STRIDE))
        for time, code in zip(tape.time, tape.code, strict=True)
    ]
    assert kinds == [
        (2.5, 0, SIGNAL + 2),
        (3.0, 1, BIRTH),
        (4.0, 1, SIGNAL),
        (4.5, 0, CHANGE),
        (5.0, 1, DEATH),
    ]
    assert tape.alive.tolist() == [True, False, False]
    assert tape.num_sources == 2
    assert crawls_within(log, 1.0, 6.0).tolist() == [3]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_round_robin_crawls_the_page_that_waited_longest(seed: int) -> None:
    rng, pages = np.random.default_rng(seed), 5
    crawls = [
        (page, float(time), False)
        for page in range(pages)
        for time in np.sort(rng.random(rng.integers(2, 6)) * 20.0)
    ]
    gone = {max(crawl[:2] for crawl in crawls if crawl[0] == page) for page in (1, 3)}
    log = naive.make_log(crawls, num_pages=pages, gone=gone)
    made, end = in_turn(log, 5.0, 20.0, 1.3)
    death = dict(gone)
    birth = {p: min(t for q, t, _ in crawls if q == p) for p in range(pages)}
    since = {page: max(birth[page], 5.0) for page in range(pages)}
    expected = []
    for slot in range(1, int(15.0 * 1.3 + 1e-9) + 1):
        time = 5.0 + slot / 1.3
        alive = [p for p in range(pages) if birth[p] <= time < death.get(p, 99.0)]
        if alive:
            page = min(alive, key=lambda p: (since[p], p))
            since[page] = time
            expected.append((page, time))
    inside = crawls_within(made, 5.0, end)
    found = list(zip(made.page[inside].tolist(), made.time[inside].tolist(), strict=True))
    assert found == expected
    assert abs(end - time - 1.0 / 1.3) < 1e-12
