"""A core without a world, whose books of offers are made by hand."""

from __future__ import annotations

import numpy as np

from crawl_envs.types import Instance
from tests.policies.offers.fake_offer_env import EPOCH
from tests.policies.offers.fake_offer_env import features_of as offer_features
from tests.policies.replay import ReplayCore, ReplayLane


def features_of(day, clicks, impressions=1.0, changes=0.1):
    """Return offer features with the given averages over 30 days."""
    given = {"clicks_30": clicks, "impressions_30": impressions, "change_frequency": changes}
    return offer_features(len(clicks), day, **given)


class OfferLane(ReplayLane):
    """One lane: a list of books for each episode, one a day; the last book holds on."""

    reveal = "importance"

    def __init__(self, *episodes):
        super().__init__(None)
        self.episodes = episodes

    def tracker(self):
        books = self.episodes[(self.episode - 1) % len(self.episodes)]
        book = books[min(int(self.time + 1e-9), len(books) - 1)]
        return super().tracker()._replace(offers=book)


class OfferCore(ReplayCore):
    """The part of an environment that policies read; actions have no effect."""

    def __init__(self, *lanes, bandwidth=2.0, steps=()):
        super().__init__(*lanes, action_form="rates", epoch=EPOCH)
        for lane in lanes:
            importance = np.full(len(lane.episodes[0][0].clicks_30), 2.0)
            lane.instance = Instance(importance, 0.0, bandwidth=bandwidth, bandwidth_steps=steps)

    def step(self):
        return super().step([None] * self.num_lanes)


class CountedSource:
    """Says what a source says, and counts how often it is asked."""

    def __init__(self, source):
        self.source, self.asked = source, 0

    def __call__(self, tracker):
        self.asked += 1
        return self.source(tracker)
