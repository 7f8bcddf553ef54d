"""Strategies played on a logged market: the same days for all of them, and no environment.

It is what the steps of ``CrawlOffers-v0`` do, by the same compiled code and with the same coins,
without observations: a strategy is asked once a day, as in Han et al. 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from crawl_envs.arguments import whole
from crawl_envs.market_log import MarketLog
from crawl_envs.sim.market_law import STEPS_PER_DAY
from crawl_envs.sim.offer_world import OfferDay, OfferWorld
from crawl_envs.sim.streams import roots
from crawl_envs.types import BoolArray, FloatArray, IntArray

DailyRates: TypeAlias = Callable[[int, OfferWorld], FloatArray]
"""A strategy: crawls per day of each offer, (m,), for a day, given its number and what is held."""


class ArmChooser(Protocol):
    """What chooses among strategies step by step, and learns from what its choice found."""

    def choose(self) -> int:
        """Return the number of the strategy of the step that follows."""

    def learn(self, chosen: IntArray, found: BoolArray) -> None:
        """Take in which offers were crawled, (n,), and whether another price was found, (n,)."""


def begin(log: MarketLog, seed: int) -> OfferWorld:
    """Return what a tracker holds at the beginning of a log's day 0.

    Args:
        log: with its events kept.
        seed: decides the coins: that of ``reset`` gives those of the environment.

    Raises:
        ValueError: the log has no events, or a bad seed.
    """
    if len(log.events) != log.num_days:
        raise ValueError("log must be recorded with keep_events=True")
    root = roots(whole("seed", seed, 0)).coins
    return OfferWorld(log.prices, log.history_ring(), log.last_change[0], root, 0)


def play_rates(log: MarketLog, strategy: DailyRates, seed: int) -> list[OfferDay]:
    """Play a strategy for all the days of a log; returns the account of every day.

    Args:
        log: with its events kept.
        strategy: its rates must keep to the budget, none above STEPS_PER_DAY.
        seed: decides the coins.
    """
    world = begin(log, seed)
    for day in range(log.num_days):
        world.enter(log.events[day])
        world.play_at(strategy(day, world))
    return world.days


def play_arms(
    log: MarketLog,
    strategies: list[DailyRates],
    chooser: ArmChooser,
    seed: int,
) -> Iterator[OfferDay]:
    """Play strategies of which another may be chosen at every step; yields every day's account."""
    world = begin(log, seed)
    for day in range(log.num_days):
        world.enter(log.events[day])
        rates = [strategy(day, world) for strategy in strategies]
        for _ in range(STEPS_PER_DAY):
            world.play(world.choose(rates[chooser.choose()]))
            chooser.learn(world.chosen, world.found)
        yield world.days[-1]
