"""Recorded content in the environment: divergence against sets of recorded fragments."""

from __future__ import annotations

import itertools
import math

import gymnasium as gym
import numpy as np
import pytest

from tests.naive.fragments import distance, version_at, versions_of

NAME, TRACE = "CrawlLongevity-v0", "garden-handbook"


class Replay:
    """Held copies of recorded pages as sets; pages are born, held as they are, and die."""

    def __init__(self, env):
        window = env.lanes.tape
        self.versions = versions_of(env.contents())
        self.alive = window.alive.copy()
        events = list(zip(window.time.tolist(), window.code.tolist(), strict=True))
        self.born = {code >> 6: time for time, code in events if code & 63 == 32}
        self.died = {code >> 6: time for time, code in events if code & 63 == 33}
        self.made = np.zeros(self.alive.size)
        for page, time in self.born.items():
            self.made[page] = math.nextafter(time, math.inf)
        self.importance = env.instance.importance

    def lives(self, page, time):
        """Whether a page exists just before a time."""
        since = -math.inf if self.alive[page] else self.born.get(page, math.inf)
        return since < time <= self.died.get(page, math.inf)

    def divergence(self, page, time):
        if not self.lives(page, time):
            return 0.0
        held = version_at(self.versions[page], self.made[page])
        return distance(version_at(self.versions[page], time), held)

    def integrals(self, start, end):
        """Of importance times divergence, and of importance, over existing pages."""
        total = alive = 0.0
        for page, weight in enumerate(self.importance):
            moments = {time for time, _ in self.versions[page]}
            moments |= {self.born.get(page, -1.0), self.died.get(page, -1.0)}
            inside = [time for time in moments if start < time < end]
            times = [start, *sorted(inside), end]
            for begin, finish in itertools.pairwise(times):
                # What holds from one event to the next is what holds just before the next.
                if self.lives(page, finish):
                    alive += weight * (finish - begin)
                    total += weight * (finish - begin) * self.divergence(page, finish)
        return total, alive


@pytest.mark.parametrize("importance", ["uniform", "zipf"])
def test_divergence_of_recorded_pages_is_that_of_sets(importance):
    env = gym.make(
        NAME,
        instance=TRACE,
        window=[20.0, 120.0],
        bandwidth=0.5,
        action="refresh",
        importance=importance,
    ).unwrapped
    env.reset(seed=1)
    replay = Replay(env)
    assert replay.born
    assert replay.died
    rng = np.random.default_rng(0)
    integrals = np.array(replay.integrals(0.0, env.tracker().time))
    for _ in range(45):
        before = env.tracker().time
        action = (rng.random(env.lanes.num_pages) < 0.3).astype(np.int8)
        _, reward, _, _, info = env.step(action)
        now = env.tracker().time
        for page in np.flatnonzero(action):
            if replay.lives(page, before):
                replay.made[page] = before
        truth, alive = env.true_divergence(), env.tracker().alive
        for page in range(env.lanes.num_pages):
            assert alive[page] == replay.lives(page, now)
            assert truth.divergence[page] == replay.divergence(page, now)
        step = np.array(replay.integrals(before, now))
        integrals += step
        assert info["divergence"] == pytest.approx(step[0] / step[1], abs=1e-12)
        assert reward == pytest.approx(1.0 - step[0] / step[1], abs=1e-12)
    ledger = env.ledger()
    assert [ledger.divergence_time, ledger.alive_time] == pytest.approx(integrals, rel=1e-12)


def test_a_crawl_of_a_recorded_page_tells_what_changed():
    """A change of fragments shows in changed and in divergence."""
    env = gym.make(NAME, instance=TRACE, bandwidth=0.5, action="refresh").unwrapped
    env.reset(seed=0)
    everything = np.ones(env.lanes.num_pages, np.int8)
    changes = 0
    for _ in range(40):
        env.step(everything)
        log = env.last_log()
        moved = log.divergence[:, 0] > 0.0
        assert not np.any(moved & ~log.changed)
        changes += int(moved.sum())
    assert changes > 50
