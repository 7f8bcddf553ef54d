"""A small environment in plain Python for policies that learn, with known events.

It has the attributes that policies may read from an environment, and no others.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from crawl_envs.types import CrawlLog, Problem, Tracker


class SmallWorld:
    """One lane with Poisson changes; each is a signal on pages with complete observation.

    In the form ``page`` decision j is at time j / bandwidth, and actions from m on are probes; in
    the form ``rates`` decision k is at k * epoch, from 0 on.
    """

    num_lanes, batch, features = 1, 1, ("elapsed",)

    def __init__(self, change_rate, *, bandwidth, horizon, seed=0, form="page", **more):
        self.change_rate = np.asarray(change_rate, dtype=float)
        m = self.change_rate.size
        self.epoch = more.get("epoch", 1.0)
        self.action_form, self.horizon, self.bandwidth = form, horizon, bandwidth
        self.action_space = gym.spaces.Discrete(2 * m if more.get("probe") else m)
        self.problem = Problem(
            num_pages=m,
            bandwidth=bandwidth,
            importance=np.broadcast_to(more.get("importance", 1.0), (m,)).astype(float),
            complete=np.broadcast_to(more.get("complete", False), (m,)).copy(),
        )
        rng = np.random.default_rng([seed, 1])
        self.changes = [
            np.sort(rng.uniform(0.0, horizon, rng.poisson(rate * horizon)))
            for rate in self.change_rate
        ]
        self._rng = np.random.default_rng([seed, 2])
        self._event_rng = np.random.default_rng([seed, 3])
        self.last = np.zeros(m)
        self.time = 1.0 / bandwidth if form == "page" else 0.0
        self.changed, self.seen = np.full(m, -1, np.int8), np.full(m, -1, np.int8)
        self.declared, self.crawls = None, np.zeros(m, np.int64)
        self._log = self._logged([], 0.0)

    def rng(self, lane=0):
        return self._rng

    def num_slots(self, lane=0):
        return round(self.horizon * (self.bandwidth if self.action_form == "page" else 1.0))

    def declare(self, change_rate, lane=0):
        self.declared = np.array(change_rate)

    def last_log(self, lane=0):
        return self._log

    def tracker(self, lane=0):
        signals = np.array([self.count(i, self.last[i], self.time) for i in range(self.last.size)])
        return Tracker(
            problem=self.problem,
            episode=1,
            time=self.time,
            elapsed=self.time - self.last,
            signals=np.where(self.problem.complete, signals, 0),
            changed=self.changed,
            probed=self.seen,
            alive=np.ones(self.last.size, np.bool_),
        )

    def count(self, page, begin, end):
        """Changes in (begin, end]."""
        low, high = np.searchsorted(self.changes[page], (begin, end), side="right")
        return int(high - low)

    def step(self, action):
        """Play one decision, and return an empty observation."""
        before = self.time
        if self.action_form == "page":
            page = int(action) % self.last.size
            visits = [(self.time, page, int(action) >= self.last.size)]
            self.time += 1.0 / self.bandwidth
        else:
            self.time += self.epoch
            visits = sorted(self._visits(np.asarray(action), before))
        rows = [(*visit, *self._visit(*visit)) for visit in visits]
        self._log = self._logged(rows, before)
        return self.observation

    @property
    def observation(self):
        return np.zeros((self.last.size, 1), np.float32)

    def _visits(self, action, before):
        for page, amount in enumerate(action):
            if self.problem.complete[page]:
                changes = self.changes[page]
                changes = changes[(changes > before) & (changes <= self.time)]
                times = changes[self._event_rng.random(changes.size) < amount]
            else:
                number = self._event_rng.poisson(amount * self.epoch)
                times = np.sort(self._event_rng.uniform(before, self.time, number))
            yield from ((time, page, False) for time in times.tolist())

    def _visit(self, time, page, probe):
        elapsed, count = time - self.last[page], self.count(page, self.last[page], time)
        if probe:
            self.seen[page] = count > 0
        else:
            self.last[page], self.changed[page] = time, count > 0
            self.seen[page] = -1
            self.crawls[page] += 1
        return elapsed, count if self.problem.complete[page] else 0, count > 0

    def _logged(self, rows, before):
        columns = list(zip(*rows, strict=True)) or [()] * 6
        signals = sorted(
            (time, page)
            for page in np.flatnonzero(self.problem.complete).tolist()
            for time in self.changes[page]
            if before < time <= self.time
        )
        return CrawlLog(
            page=np.array(columns[1], np.int64),
            time=np.array(columns[0], float),
            elapsed=np.array(columns[3], float),
            signals=np.array(columns[4], np.int64),
            changed=np.array(columns[5], np.bool_),
            signal_page=np.array([page for _, page in signals], np.int64),
            signal_time=np.array([time for time, _ in signals], float),
            signal_source=np.zeros(len(signals), np.int64),
            probe=np.array(columns[2], np.bool_),
        )


def play(world, policy, steps=None):
    """Return the actions up to the horizon, or of ``steps`` steps."""
    actions = []
    while world.time < world.horizon and len(actions) != steps:
        action, _ = policy.predict(world.observation)
        actions.append(np.array(action))
        world.step(action)
    return np.array(actions)
