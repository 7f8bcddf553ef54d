"""``CrawlOffers-v0``: shopping offers whose prices change, and come back."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from crawl_envs.envs.rendering import RenderMode
from crawl_envs.envs.single import CrawlEnv, SingleEnv
from crawl_envs.envs.vector import FamilyVectorEnv, NativeVectorEnv
from crawl_envs.instances.market import Shopping
from crawl_envs.spaces.rewards import Objective
from crawl_envs.types import IntArray
from crawl_envs.types.arguments import whole
from crawl_envs.worlds.offers.lane import OfferObjective, PriceHistory
from crawl_envs.worlds.offers.lanes import OfferLanes
from crawl_envs.worlds.offers.law import DayEvents
from crawl_envs.worlds.offers.world import OfferDay
from crawl_envs.worlds.pages.rate_lanes import Overspend

OfferReward: TypeAlias = Literal["freshness", "requests"]
REWARDS: tuple[OfferReward, ...] = get_args(OfferReward)
CRAWLS_PER_OFFER = 0.1
"""Crawls per day and offer where no bandwidth is given: the least budget of the paper's tables."""


class OfferAccess:
    """What oracles and tests read of an environment of offers, beside what all environments have.

    ``lanes`` is the batch.
    """

    lanes: Any

    def days(self, lane: int = 0) -> tuple[OfferDay, ...]:
        """Return the account of the days that are over: both measures of section 4.2.2."""
        days: tuple[OfferDay, ...] = self.lanes.days(lane)
        return days

    def finished_days(self, lane: int = 0) -> tuple[OfferDay, ...]:
        """Return the account of the episode before the present one, which autoreset has ended."""
        days: tuple[OfferDay, ...] = self.lanes.finished_days(lane)
        return days

    def held_prices(self, lane: int = 0) -> IntArray:
        """Return the prices that are held, in cents, 0 for an offer that is sold no more; (m,)."""
        prices: IntArray = self.lanes.held_prices(lane)
        return prices

    def events(self, lane: int = 0) -> DayEvents:
        """Return what happens on the present day, and the rates behind it: the truth."""
        events: DayEvents = self.lanes.events(lane)
        return events


class CrawlOffers(OfferAccess, CrawlEnv, SingleEnv):
    """Shopping offers: the set-up of Han et al. (2020), with a market that is drawn.

    ## Description

    A shopping search holds a price for each of m offers, and users click on offers. An offer is
    *fresh* where the held price is the true one. Prices change whatever the tracker does: now and
    then, more often at some merchants and in some categories, on some weekdays and at some hours;
    merchants run promotions, after which prices come back; seasons and holidays move all; some
    offers are sold no more. So a held price can become right again without a crawl. How often
    offers are shown and clicked is heavy-tailed and goes with brand, category, merchant and
    country; habits change for single offers and drift for merchants. Time is in days, a step is two
    hours. In a step prices change, then b offers are crawled (R / 12 of R crawls per day), then
    what is held is compared with what is true, and the clicks of the step are served.

    ## Instance

    A *market* of m offers is drawn from the seed at every seeded reset, and kept otherwise. What
    merchants, categories and brands are like is the *world*, the same for all seeds: what was
    learned of a merchant on one market holds on another. The law is fitted to what the paper tells
    of its data (:class:`crawl_envs.instances.market.MarketShape`).
    ``reset(options={"instance": crawl_envs.instances.market.market(...)})`` pins one.

    ## Action Space

    - ``action="rates"``: ``Box(0, 12, (m,))`` float64, crawls per day of each offer. In the step
      that follows an offer is crawled with the probability rate / 12, at most 1, and the number of
      all crawls is the sum of these, rounded down or up (systematic sampling). More than R in sum
      is scaled down (``overspend="scale"``) or an error (``"error"``).
    - ``action="scores"``: ``Box(-1, 1, (m,))``; the b offers with the highest scores are crawled,
      ties by lowest index. Where b is no whole number, fewer are in some steps.

    ## Observation Space

    ``Box(m, F)`` float32; a row per offer with the columns ``env.unwrapped.features``:

    | column | range | meaning |
    |---|---|---|
    | elapsed | [0, horizon] | days since the last crawl, or the start |
    | changed | -1, 0, 1 | whether the last crawl found another price; -1 before the first |
    | importance | [0, 1e6] | clicks per day, see ``reveal`` |
    | change_rate | [0, 1e6] | price changes per day; with ``reveal="parameters"`` |
    | change_frequency | [0, 12] | price changes seen per day in the last 30 days |
    | days_since_change | (0, 31] | since the last price change seen; 31 for none |
    | clicks_1, _7, _14, _30 | [0, 1e6] | clicks per day in the last 1, 7, 14, 30 days |
    | impressions_1, .. | [0, 1e6] | how often the offer was shown, likewise |
    | brand, category, condition, country, language, merchant | >= 0 | numbers of these |
    | day_of_week | 0 .. 6 | 0 for Monday |

    The features of Table 3 stand as they were when the day began. In float64 and with the rest
    they are in ``env.unwrapped.tracker()``, whose ``offers`` is the day's book. What the last step
    crawled and found, prices included, is in ``env.unwrapped.last_log()``, and what prices are held
    in ``env.unwrapped.held_prices()``.

    ## Rewards

    The share of offers that is fresh right after the step's crawls, in [0, 1], weighted by the
    expected clicks of the day (``objective="clicks"``: the mean of eq. 4, given the day) or all
    alike (``"offers"``); with ``reward="requests"`` the clicks of the step that saw the true price.
    ``crawl_cost`` is taken off per crawl. The parts are in ``info["reward_terms"]``;
    ``info["requests"]``, ``"hits"`` and ``"crawls"`` count clicks, those served right, and crawls;
    ``info["click_freshness"]`` and ``"offer_freshness"`` are both shares. As the paper defines
    them, eq. 4 from real clicks and eq. 3 at midnight, they are in ``env.unwrapped.days()``.

    ## Starting State

    At time 0 all held prices are true; the 30 days before were logged in full. The first decision
    is at time 0.

    ## Episode End

    Truncated after the last step that ends within the horizon; never terminated.

    ## Arguments

    - ``num_pages`` (1000): offers, m.
    - ``bandwidth`` (None): crawls per day, R; by default a tenth of the offers.
    - ``horizon`` (7.0): days of an episode.
    - ``first_day`` (9): the day of the year on which it begins, from 0; day 0 is a Monday.
    - ``world`` (0): the number of the world of merchants, categories and brands.
    - ``action`` ("rates"), ``overspend`` ("scale"): see above.
    - ``objective`` ("clicks"), ``reward`` ("freshness"), ``crawl_cost`` (0.0): see above.
    - ``price_history`` ("log"): whose price changes books count: ``log``, of all prices, as the
      hourly crawls of the paper's data had them, so that a book tells every morning what changed
      the day before, crawled or not; ``crawled``, from the start on those alone that the tracker's
      own crawls found, beside what was logged in the 30 days before.
    - ``reveal`` ("history"): importance is the mean of the clicks of the 30 days before the start;
      with ``"importance"`` it is the expected clicks per day as they were 30 days before the start,
      and with ``"parameters"`` the change rates of then are shown too.
    - ``resample`` (False): draw a new market at every reset, not only at seeded ones.
    - ``render_mode`` (None): ``ansi`` or ``rgb_array``.

    ## Version History

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
        action: Literal["rates", "scores"] = "rates",
        overspend: Overspend = "scale",
        objective: OfferObjective = "clicks",
        reward: OfferReward = "freshness",
        crawl_cost: float = 0.0,
        price_history: PriceHistory = "log",
        reveal: Literal["history", "importance", "parameters"] = "history",
        resample: bool = False,
        render_mode: RenderMode | None = None,
    ) -> None:
        if reward not in REWARDS:
            raise ValueError(f"reward must be one of {REWARDS}, got {reward!r}")
        if bandwidth is None:
            bandwidth = CRAWLS_PER_OFFER * whole("num_pages", num_pages, 1)
        self.make_lanes = partial(
            OfferLanes,
            generator=Shopping(num_pages, bandwidth, first_day=first_day, world=world),
            action=action,
            horizon=horizon,
            reveal=reveal,
            resample=resample,
            objective=objective,
            price_history=price_history,
            overspend=overspend,
        )
        super().__init__(self.make_lanes(1), Objective(reward, crawl_cost), render_mode=render_mode)


class CrawlOffersVector(OfferAccess, FamilyVectorEnv, NativeVectorEnv):
    """``num_envs`` lanes of :class:`CrawlOffers` that step one after the other, same arguments.

    Besides: those of :class:`FamilyVectorEnv`.
    """

    single = CrawlOffers
