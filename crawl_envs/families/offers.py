"""``CrawlOffers-v1``: shopping offers with changing prices."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import vectorized
from crawl_envs.families.pages import PageAction
from crawl_envs.instances.market import MARKET
from crawl_envs.sim.state import SIMILARITY
from crawl_envs.sim.streams import PageSets
from crawl_envs.spaces.observations import ObservationForm
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import IntArray
from crawl_envs.types.arguments import one_of
from crawl_envs.worlds.budgets import Overspend
from crawl_envs.worlds.episodes import Start
from crawl_envs.worlds.offers.lanes import (
    OfferDay,
    OfferLanes,
    OfferObjective,
    PriceHistory,
    offer_form,
)
from crawl_envs.worlds.offers.law import DayEvents

OfferReward: TypeAlias = Literal["freshness", "requests"]
REWARDS: tuple[OfferReward, ...] = get_args(OfferReward)


class OfferAccess:
    """More methods for oracles and tests, of environments of shopping offers.

    ``lanes`` is the batch of lanes that the methods read.
    """

    lanes: Any

    def days(self, lane: int = 0) -> tuple[OfferDay, ...]:
        """Return the records of a lane's finished days, with both measures of section 4.2.2."""
        days: tuple[OfferDay, ...] = self.lanes.days(lane)
        return days

    def finished_days(self, lane: int = 0) -> tuple[OfferDay, ...]:
        """Return the records of the finished days of the lane's previous episode."""
        days: tuple[OfferDay, ...] = self.lanes.finished_days(lane)
        return days

    def held_prices(self, lane: int = 0) -> IntArray:
        """Return the held prices of a lane in cents, 0 for a discontinued offer, (m,)."""
        prices: IntArray = self.lanes.held_prices(lane)
        return prices

    def events(self, lane: int = 0) -> DayEvents:
        """Return the true events of a lane's current day, and their expected numbers."""
        events: DayEvents = self.lanes.events(lane)
        return events


class CrawlOffers(OfferAccess, CrawlEnv, SingleEnv):
    """Shopping offers: the set-up of Han et al. (2020), with a generated market.

    ## Description

    A shopping search holds a price for each of m offers, and users click on offers. An offer is
    *fresh* if the held price equals the true one. Prices change independently of all crawls: from
    time to time, more often at some merchants and in some categories, on some weekdays and at some
    hours. Merchants run promotions, after which prices revert. Seasons and holidays affect all
    offers, and some offers are discontinued. So a held price can become right again without a
    crawl. Impressions and clicks are heavy-tailed and depend on brand, category, merchant and
    country; rates jump for single offers and drift for merchants. Time is in days. Prices change at
    the start of every two hours, and those that change at the moment of a decision have changed
    before it. Clicks are spread evenly over the two hours. No crawl is rejected: where each is with
    probability p, at random, rates are multiplied by 1 - p.

    ## Instance

    A *market* of m offers is drawn from the seed at every seeded reset, and kept otherwise. The
    properties of merchants, categories and brands are the *world*, the same for all seeds: a model
    of a merchant transfers from one market to another. The law is fitted to the statistics in the
    paper (:class:`crawl_envs.instances.market.MarketShape`).
    ``reset(options={"instance": crawl_envs.instances.market.market(...)})`` pins one.

    ## Action Space

    ``page`` decides at every crawl; the others decide every two hours, and crawl at once.

    - ``action="rates"``: ``Box(0, 12, (m,))`` float64, crawls per day of each offer. An offer is
      crawled with probability rate / 12, at most 1, and the number of crawls is the sum of the
      probabilities, rounded down or up (systematic sampling). A sum of rates above R is scaled down
      (``overspend="scale"``) or an error (``"error"``).
    - ``action="shares"``: ``Box(-1, 1, (m,))`` float32, the same with rates in units of R; action a
      is the share (a + 1) / 2.
    - ``action="scores"``: ``Box(-1, 1, (m,))``; crawls the b = R / 12 offers of the highest scores;
      ties go to the lowest index. If b is not an integer, some steps crawl fewer.
    - ``action="refresh"``: ``MultiBinary(m)``, any set of offers.
    - ``action="page"``: ``Discrete(m)``, the offer to crawl in this slot; crawl j happens at j / R.

    ## Observation Space

    ``Box(m, F)`` float32; a row per offer with the columns ``env.unwrapped.features``:

    | column | range | meaning |
    |---|---|---|
    | elapsed | [0, horizon] | days since the last crawl, or the start |
    | changed | -1, 0, 1 | whether the last crawl found another price; -1 before the first |
    | importance | [0, 1e6] | clicks per day, see ``reveal`` |
    | change_rate | [0, 1e6] | price changes per day; with ``reveal="parameters"`` |
    | change_frequency | [0, 12] | observed price changes per day in the last 30 days |
    | days_since_change | (0, 31] | since the last observed price change; 31 for none |
    | clicks_1, _7, _14, _30 | [0, 1e6] | clicks per day in the last 1, 7, 14, 30 days |
    | impressions_1, .. | [0, 1e6] | impressions per day in the last 1, 7, 14, 30 days |
    | brand, category, condition, country, language, merchant | >= 0 | ids |
    | day_of_week | 0 .. 6 | 0 for Monday |

    The features of Table 3 are those at the start of the day; ``env.unwrapped.tracker().offers``
    has them unsaturated. ``env.unwrapped.last_log()`` has the crawls of the last step, with prices,
    and ``env.unwrapped.held_prices()`` the held prices.

    ## Rewards

    The share of offers that are fresh, averaged over the step, in [0, 1], weighted by the expected
    clicks of the day (``objective="clicks"``: the mean of eq. 4, given the day) or unweighted
    (``"offers"``); with ``reward="requests"`` the number of clicks of the step with the true price.
    Each crawl costs ``crawl_cost``. ``info`` has the terms of the reward, ``reward_freshness`` and
    so on; ``requests``, ``hits`` and ``crawls``, the numbers of clicks, of clicks with the true
    price, and of crawls; ``click_freshness`` and ``offer_freshness``, both shares.
    ``env.unwrapped.days()`` has the measures of the paper: eq. 4 from actual clicks, and eq. 3 at
    midnight.

    ## Starting State

    At time 0 all held prices are true; the 30 days before were logged in full. The first decision
    is at time 0, with ``page`` at time 1 / R.

    With ``start="crawled"`` all offers are crawled once before the episode, as in
    ``CrawlNCIS-v0``: in steps of two hours, in order up to the budget of the step, or with
    ``rates`` and ``shares`` sampled at equal rates. The market's days go on from time 0, so the
    first day of an episode may be the rest of a day; ``importance`` stays that of time 0.

    ## Episode End

    Truncated after the last step that ends within the horizon, or the slot that follows the last
    crawl within it; never terminated.

    ## Arguments

    - ``num_pages`` (1000): offers, m.
    - ``bandwidth`` (None): crawls per day, R; by default a tenth of the offers.
    - ``horizon`` (7.0): days of an episode.
    - ``first_day`` (9): first day of an episode in the year, from 0; day 0 is a Monday.
    - ``world`` (0): number of the world of merchants, categories and brands.
    - ``action`` ("rates"), ``overspend`` ("scale"): see above.
    - ``observation`` ("table"): form of observations, as in ``CrawlNCIS-v0``.
    - ``objective`` ("clicks"), ``reward`` ("freshness"), ``crawl_cost`` (0.0): see above.
    - ``price_history`` ("log"): the price changes that the features count: ``log``, all of them,
      as in the hourly crawls of the paper's data, so that every morning the features include the
      changes of the day before, crawled or not; ``crawled``, those logged in the 30 days before the
      start, and from then on only those detected by the tracker's own crawls.
    - ``reveal`` ("history"): importance is the mean number of clicks per day in the 30 days before
      the start; with ``"importance"`` it is the expected clicks per day 30 days before the start,
      and ``"parameters"`` also shows the change rates at that time.
    - ``resample`` (False), ``pages`` ("any"): as in ``CrawlNCIS-v0``, for markets and their hidden
      laws. Both streams have the merchants, categories and brands of ``world``.
    - ``start`` ("fresh"): or ``crawled``, after a round of crawls.
    - ``render_mode`` (None): ``ansi``, ``rgb_array`` or ``human``, a window.

    ## Version History

    - v1: price changes at the moment of a decision are counted before it; the reward is an integral
      over the step; ``page`` and ``refresh``.
    - v0: first version.
    """

    def __init__(
        self,
        *,
        num_pages: int = 1000,
        bandwidth: float | None = None,
        horizon: float = 7.0,
        first_day: int = 9,
        world: int = 0,
        action: PageAction = "rates",
        overspend: Overspend = "scale",
        objective: OfferObjective = "clicks",
        reward: OfferReward = "freshness",
        crawl_cost: float = 0.0,
        observation: ObservationForm = "table",
        price_history: PriceHistory = "log",
        reveal: Literal["history", "importance", "parameters"] = "history",
        resample: bool = False,
        pages: PageSets = "any",
        start: Start = "fresh",
        render_mode: RenderMode | None = None,
    ) -> None:
        one_of("reward", reward, REWARDS)
        one_of("objective", objective, OfferObjective)
        market: dict[str, Any] = {"first_day": first_day, "world": world}
        generator = MARKET.generator("market", num_pages, bandwidth, **market)
        make_lanes = partial(
            OfferLanes,
            generator=generator,
            form=offer_form(action, num_pages, generator.bandwidth),
            horizon=horizon,
            observation=observation,
            reveal=reveal,
            resample=resample,
            pages=pages,
            start=start,
            objective=objective,
            price_history=price_history,
            overspend=overspend,
        )
        row = SIMILARITY if (reward, objective) == ("freshness", "offers") else None
        terms = Objective(reward, crawl_cost, row)
        super().__init__(make_lanes, terms, render_mode=render_mode)


CrawlOffersVector = vectorized(CrawlOffers)
