"""A small environment of known changes, for policies that learn."""

from __future__ import annotations

from functools import partial

import numpy as np

from crawl_envs.envs.single import CrawlEnv
from crawl_envs.sim.tape import Tape
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import Instance
from tests.worlds import epochs_of, lanes_of


class SmallWorld(CrawlEnv):
    """Poisson changes, each of them a signal on pages with complete observation; rates are hidden.

    ``changes`` are those of each page in place of random ones.
    """

    def __init__(self, change_rate, *, bandwidth, horizon, seed=0, form="page", **more):
        m, rng = len(change_rate), np.random.default_rng([seed, 1])
        importance, complete = (
            np.broadcast_to(more.get(name, usual), m)
            for name, usual in (("importance", 1.0), ("complete", False))
        )
        self.changes = more.get("changes") or [
            np.sort(rng.uniform(0.0, horizon, rng.poisson(rate * horizon))) for rate in change_rate
        ]
        times = np.concatenate(self.changes)
        pages = np.repeat(np.arange(m), [own.size for own in self.changes])
        seen = complete[pages]
        tape = Tape.of_events(m, changes=(times, pages), signals=(times[seen], pages[seen]))
        self.change_rate, self.bandwidth, self.horizon = change_rate, bandwidth, horizon
        self.declared, self.crawls = None, np.zeros(m, np.int64)
        slotted = partial(lanes_of, action=form)
        instance = Instance(importance, change_rate, 1.0 * complete, bandwidth=bandwidth)
        given = {"horizon": horizon, "tape": tape, "reveal": "importance", "requests": False}
        lanes = partial(epochs_of if form == "rates" else slotted, instance, **given)
        super().__init__(lanes, Objective())
        self.reset(seed=seed)

    @property
    def time(self):
        return self.tracker().time

    @property
    def observation(self):
        return self.current_observation()

    def declare(self, change_rate, lane=0):
        super().declare(change_rate, lane)
        self.declared = np.array(change_rate)

    def step(self, action):
        result = super().step(action)
        log = self.last_log()
        np.add.at(self.crawls, log.page, 1)
        return result


def play(world, policy, steps=None):
    """Return the actions up to the horizon, or of ``steps`` steps."""
    actions, observation, over = [], world.observation, False
    while not over and len(actions) != steps:
        action, _ = policy.predict(observation)
        actions.append(np.array(action))
        observation, _, _, over, _ = world.step(action)
    return np.array(actions)
