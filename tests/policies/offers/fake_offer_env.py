"""A minimal environment of offers for policies."""

from __future__ import annotations

import gymnasium
import numpy as np

from crawl_envs.types import Problem
from crawl_envs.types.offer_features import OfferFeatures, OfferMetadata
from policies.base.live import LivePages, empty_log

EPOCH = 1.0 / 12.0


def features_of(num_pages, day=0, **given):
    """Return offer features, 0 unless given, with metadata by name."""
    fields = {name: given.pop(name, 0) for name in OfferMetadata._fields}
    metadata = OfferMetadata(
        **{
            name: np.broadcast_to(value, num_pages).astype(np.int32)
            for name, value in fields.items()
        }
    )
    rest = {}
    for name in OfferFeatures._fields[3:]:
        default = 31.0 if name == "days_since_change" else 0.0
        value = given.pop(name, default)
        rest[name] = np.broadcast_to(value, num_pages).astype(np.float32)
    assert not given
    return OfferFeatures(metadata, day, day % 7, **rest)


class OfferStandIn:
    """Prices change with a probability per step that a merchant has; steps take two hours.

    A crawl sees the price as it is at the end of its step. ``rates`` crawls each offer with
    probability rate * epoch by systematic sampling; ``scores`` the ``batch`` best.
    """

    unwrapped = property(lambda self: self)
    num_lanes = 1
    features = ("elapsed", "changed", "importance")

    def __init__(self, merchant, chance, importance, *, form="rates", budget=0.1, seed=0, **known):
        m = len(merchant)
        self.action_form, self.epoch = form, EPOCH
        self.chance = np.asarray(chance)[np.asarray(merchant)]
        self.importance = np.asarray(importance, float)
        self.problem = Problem(m, budget * m, self.importance)
        self.batch = round(self.problem.bandwidth * EPOCH) if form == "scores" else 1
        clicks = {"clicks_30": self.importance, "impressions_30": 20.0 * self.importance}
        self.known = {"merchant": merchant, **clicks, **known}
        self.action_space = gymnasium.spaces.Box(0.0, 12.0, (m,), np.float64)
        self.seed, self.episode = seed, 0
        self.reset()

    def reset(self):
        self.episode += 1
        m = self.problem.num_pages
        self.random = np.random.default_rng([self.seed, 1])
        self.luck = np.random.default_rng([self.seed, 2])
        self.steps = 0
        self.stale, self.last = np.zeros(m, np.bool_), np.zeros(m, np.int64)
        self.changed = np.full(m, -1, np.int8)
        self.offer_features = features_of(m, **self.known)
        self.fresh, self.log = [], self._logged(np.zeros(0, np.int64))
        return self.observation

    @property
    def observation(self):
        return np.zeros((self.problem.num_pages, 3), np.float32)

    def rng(self, lane=0):
        return np.random.default_rng([self.seed, 3, self.episode])

    def num_slots(self, lane=0):
        return 1200

    def declare(self, change_rate, lane=0):
        raise AssertionError("nobody has to")

    def tracker(self, lane=0):
        now = {"episode": self.episode, "time": self.steps * EPOCH, "offers": self.offer_features}
        seen = {"elapsed": (self.steps - self.last) * EPOCH, "changed": self.changed.copy()}
        return LivePages(self.problem).tracker()._replace(**now, **seen)

    def last_log(self, lane=0):
        return self.log

    def step(self, action):
        self.stale |= self.random.random(self.stale.size) < self.chance
        self.steps += 1
        if self.action_form == "rates":
            sums = np.cumsum(np.minimum(np.asarray(action) * EPOCH, 1.0))
            ticks = np.floor(sums + self.luck.random())
            pages = np.flatnonzero(np.diff(ticks, prepend=0.0) > 0.5)
        else:
            pages = np.argsort(-np.asarray(action), kind="stable")[: self.batch]
        self.log = self._logged(pages)
        self.changed[pages] = self.stale[pages]
        self.stale[pages], self.last[pages] = False, self.steps
        self.fresh.append(self.importance @ ~self.stale / self.importance.sum())
        if self.steps % 12 == 0:
            self.offer_features = features_of(self.stale.size, day=self.steps // 12, **self.known)
        return self.observation

    def _logged(self, pages):
        return empty_log()._replace(
            page=pages,
            time=np.full(pages.size, self.steps * EPOCH),
            elapsed=(self.steps - self.last[pages]) * EPOCH,
            signals=np.zeros(pages.size, np.int64),
            changed=self.stale[pages].copy(),
        )


def play(world, policy, steps):
    """Play an episode; return the freshness of every step, weighted by importance."""
    observation = world.reset()
    for _ in range(steps):
        action, _ = policy.predict(observation)
        observation = world.step(action)
    return np.array(world.fresh)
