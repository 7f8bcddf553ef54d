"""Play strategies for offers, or a choice among them, on the days of a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from crawl_envs.types import BoolArray, FloatArray, IntArray
from crawl_envs.worlds.offers.lanes import OfferDay, OfferLanes, offer_form
from crawl_envs.worlds.offers.law import STEPS_PER_DAY, Market
from crawl_envs.worlds.offers.log import MarketLog
from crawl_envs.worlds.rollouts import ONE_LANE, Pinned

__all__ = ["ArmChooser", "DailyRates", "OfferDay", "OfferLanes", "play_days"]

DailyRates: TypeAlias = Callable[[int, OfferLanes], FloatArray]
"""A strategy: crawls per day of each offer, (m,), as a function of the day and the lane."""


class ArmChooser(Protocol):
    """A choice among strategies step by step, which learns from the outcomes of crawls."""

    def choose(self) -> int:
        """Return the number of the strategy of the next step."""

    def learn(self, chosen: IntArray, changed: BoolArray) -> None:
        """Learn from the crawled offers, (n,), and whether their price had changed, (n,)."""


def lane_of(log: MarketLog, bandwidth: float, seed: int, own_crawls: bool) -> OfferLanes:
    """Return a lane at the start of the days of a log, with a budget in crawls per day."""
    there = Market(log.market.metadata, log.market.law, bandwidth=bandwidth)
    lanes = OfferLanes(
        1,
        Pinned(log.num_pages),
        offer_form("rates", log.num_pages, bandwidth),
        horizon=float(log.num_days),
        reveal="importance",
        price_history="crawled" if own_crawls else "log",
        observed=False,
    )
    lanes.begin(ONE_LANE, [seed], [there])
    return lanes


def play_days(
    log: MarketLog,
    arms: Sequence[DailyRates],
    bandwidth: float,
    seed: int,
    chooser: ArmChooser | None = None,
    *,
    own_crawls: bool = False,
) -> tuple[OfferDay, ...]:
    """Play all days of a log; return the record of every day.

    Args:
        log: the log, recorded with this seed; its days are drawn again.
        arms: strategies; the first is played if there is no chooser.
        bandwidth: crawls per day.
        seed: seed of the events and of the random choices, as of ``reset``.
        chooser: chooses the strategy of every step.
        own_crawls: whether features count the price changes found by own crawls, not all.
    """
    lanes = lane_of(log, bandwidth, seed, own_crawls)
    for day in range(log.num_days):
        rates = [arm(day, lanes)[np.newaxis] for arm in arms]
        for _ in range(STEPS_PER_DAY):
            lanes.play((rates[0 if chooser is None else chooser.choose()],))
            lanes.newly_ended()
            if chooser is not None:
                made = lanes.last_log(0)
                chooser.learn(made.page, made.changed)
    return lanes.days(0)
