"""A core without a world, whose books of offers are made by hand."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import Problem
from policies.base.live import LivePages
from tests.policies.offers.fake_offer_env import features_of as offer_features


def features_of(day, clicks, impressions=1.0, changes=0.1):
    """Return offer features with the given averages over 30 days."""
    given = {"clicks_30": clicks, "impressions_30": impressions, "change_frequency": changes}
    return offer_features(len(clicks), day, **given)


class OfferLane:
    """One lane: a list of books for each episode, one a day; the last book holds on."""

    def __init__(self, *episodes):
        self.episodes = episodes
        self.episode, self.time = 0, 0.0

    def tracker(self, bandwidth, steps):
        books = self.episodes[(self.episode - 1) % len(self.episodes)]
        features = books[min(int(self.time + 1e-9), len(books) - 1)]
        num_pages = len(features.clicks_30)
        problem = Problem(num_pages, bandwidth, np.full(num_pages, 2.0), bandwidth_steps=steps)
        now = {"episode": self.episode, "time": self.time, "offers": features}
        return LivePages(problem).tracker()._replace(**now, elapsed=np.full(num_pages, self.time))


class OfferCore:
    """The part of an environment that policies read; actions have no effect."""

    features = ("elapsed",)
    action_form = "rates"
    batch = 1
    declare = last_log = None

    def __init__(self, *lanes, bandwidth=2.0, steps=(), epoch=1.0 / 12.0):
        self.lanes, self.num_lanes = lanes, len(lanes)
        self.bandwidth, self.steps, self.epoch = bandwidth, steps, epoch
        self.unwrapped = self

    def reset(self):
        for lane in self.lanes:
            lane.episode += 1
            lane.time = 0.0
        self.count = 0
        return self.observation()

    def step(self):
        self.count += 1
        for lane in self.lanes:
            lane.time = self.count * self.epoch
        return self.observation()

    def observation(self):
        return np.zeros((self.num_lanes, self.tracker().problem.num_pages, 1), np.float32)

    def num_slots(self, lane=0):
        return 10_000

    def rng(self, lane=0):
        return np.random.default_rng(lane)

    def tracker(self, lane=0):
        return self.lanes[lane].tracker(self.bandwidth, self.steps)


class CountedSource:
    """Says what a source says, and counts how often it is asked."""

    def __init__(self, source):
        self.source, self.asked = source, 0

    def __call__(self, tracker):
        self.asked += 1
        return self.source(tracker)
