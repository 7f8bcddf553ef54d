"""Markets of shopping offers: merchants, categories and brands, and the offers among them.

The traits of merchants, categories and brands are the *world*, drawn from a world number; offers of
a world are drawn from the seed. So knowledge of a merchant transfers between markets of a world.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from crawl_envs.instances.laws import Law
from crawl_envs.sim.streams import generator, roots
from crawl_envs.types import FloatArray
from crawl_envs.types.arguments import real, whole
from crawl_envs.types.offer_features import IdArray, OfferMetadata
from crawl_envs.worlds.offers.law import (
    GONE,
    STEPS_PER_DAY,
    Market,
    MarketLaw,
    MarketNumbers,
    read_only,
)


@dataclass(frozen=True)
class MarketShape:
    """Distribution of the rates of offers, and of their changes in time.

    Rates are products of effects, each lognormal with median 1; a ``spread`` is the standard
    deviation of the logarithm. The defaults are fitted to the statistics of Han et al. 2020
    (measured by ``python -m scripts.data.fit_market``): the shares of offers with a price
    change, a click and an impression in a day (1:20, 1:75, 1:6; section 4.1.1), and the prediction
    quality from metadata, from history and from both (Table 4). The paper does not report the
    numbers of merchants, categories and brands, the lengths of promotions and the seasons: they are
    chosen.

    Most offers change their price every month or two; a few merchants change prices very often.
    Tables 5 and 6 are not fitted, and only Uniform at 10% agrees roughly (.78 of the offers, .743
    in the paper). Of the offers that are never crawled, 1/4 are still correct after 75 days, less
    than 1/10 in the paper (Table 6, mu_h); Uniform at 90% has .955 (.902). These values contradict
    1:20: at constant price change rates, the stale share under uniform crawls at .9 per day is at
    most 1.11 times the share that changes in a day.

    In Table 4 metadata predict price changes better than history: here merchants change prices on
    specific weekdays, which the history of Table 3 does not contain. For clicks and impressions
    history predicts better: here most of their spread is specific to the offer, and lasting.

    Attributes:
        merchants, categories, brands, countries: how many there are of each.
        change_rate: price changes per day of the median offer.
        merchant_change, category_change, offer_change: spreads of the rates of price changes.
        fast, fast_factor: share of merchants with frequent price changes, factor on their rate.
        scheduled: share of merchants with price changes mostly on a few weekdays.
        scheduled_share: share of these merchants' price changes on those weekdays.
        drift, drift_memory: spread of a merchant's factor in time, and its day-to-day correlation.
        change_jump: probability per day that an offer's own level of price changes is redrawn.
        back: probability that a price change restores the previous price.
        campaign_rate, campaign_share: promotions of a merchant per day, share of offers in one.
        view_rate: impressions per day of the median offer.
        merchant_views, category_views, brand_views, offer_views: spreads of impressions.
        click_share: clicks per impression of the median offer.
        category_clicks, brand_clicks, offer_clicks: spreads of clicks per impression.
        demand_jump: probability per day that an offer's own level of demand is redrawn.
        obsolete: share of offers that are withdrawn at the start.
        obsolete_rate: probability per day that an offer is withdrawn.
    """

    merchants: int = 300
    categories: int = 100
    brands: int = 300
    countries: int = 12
    change_rate: float = 0.0212
    merchant_change: float = 0.7
    category_change: float = 0.25
    offer_change: float = 0.6
    fast: float = 0.04
    fast_factor: float = 60.0
    scheduled: float = 0.8
    scheduled_share: float = 0.9
    drift: float = 0.3
    drift_memory: float = 0.95
    change_jump: float = 0.01
    back: float = 0.1
    campaign_rate: float = 0.004
    campaign_share: float = 0.3
    view_rate: float = 0.07
    merchant_views: float = 0.7
    category_views: float = 0.65
    brand_views: float = 0.7
    offer_views: float = 1.6
    click_share: float = 0.0103
    category_clicks: float = 0.9
    brand_clicks: float = 0.6
    offer_clicks: float = 1.8
    demand_jump: float = 0.001
    obsolete: float = 0.02
    obsolete_rate: float = 0.0005

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("merchants", "categories", "brands", "countries"):
                whole(field.name, value, 1, 1_000_000)
            else:
                real(field.name, value, least=0.0)
        for name, limit in {**dict.fromkeys(CHANCES, 1.0), **UPPER_LIMITS}.items():
            if getattr(self, name) > limit:
                raise ValueError(f"{name} must lie in [0, {limit:g}], got {getattr(self, name)!r}")
        if self.drift_memory >= 1.0:
            raise ValueError(f"drift_memory must lie in [0, 1), got {self.drift_memory!r}")


CHANCES = (
    *("scheduled", "scheduled_share", "change_jump", "back", "campaign_rate", "campaign_share"),
    *("click_share", "demand_jump", "obsolete", "obsolete_rate", "fast"),
)
"""Fields that are probabilities or shares, in [0, 1]."""

SPREADS = (
    *("merchant_change", "category_change", "offer_change", "drift"),
    *("merchant_views", "category_views", "brand_views", "offer_views"),
    *("category_clicks", "brand_clicks", "offer_clicks"),
)
UPPER_LIMITS = {
    **dict.fromkeys(SPREADS, 5.0),
    **{"change_rate": 1_000.0, "fast_factor": 1_000.0, "view_rate": 100_000.0},
}
"""Upper limits of rates (per day), factors and spreads; every event costs time and memory."""


FITTED = MarketShape()
DAYS_OF_YEAR = 365
SALES = (
    # first day of the year, days, factors of price changes, promotions, demand
    (0, 14, 1.3, 2.0, 1.1),  # winter sales
    (44, 3, 1.1, 1.5, 1.1),  # Valentine's day
    (105, 6, 1.1, 1.5, 1.0),  # Easter
    (180, 14, 1.2, 2.0, 1.0),  # summer sales
    (325, 7, 1.6, 4.0, 1.4),  # Black Friday's week
    (338, 18, 1.3, 2.0, 1.3),  # Advent
)
"""A chosen calendar; the paper only states that such seasons matter."""
CAMPAIGN_SPREAD = 0.5
MERCHANT_SIZES = 0.8
"""Exponent s of the merchants' shares of the offers, rank ** -s."""
CATEGORIES_EACH, BRANDS_EACH = 3, 6
"""Number of categories per merchant, and of brands per category."""
LARGEST_MEAN = 5_000.0
"""Largest mean impressions per day of an offer, at its initial level."""


class World(NamedTuple):
    """Traits of all merchants (M), categories (C) and brands (B) of a market; rates are factors.

    All markets of a world share these read-only arrays.

    Attributes:
        size: share of the offers, (M,).
        country, language: numbers, (M,).
        used: shares of used and of refurbished offers, (M, 2).
        merchant_change, merchant_views: (M,).
        week, hours: see :class:`crawl_envs.worlds.offers.law.MarketLaw`.
        campaign_rate: (M,).
        category_change, category_views, category_clicks: (C,).
        category_price: median price, in cents, (C,).
        merchant_categories: categories of the merchant, (M, CATEGORIES_EACH).
        brand_views, brand_clicks: (B,).
        category_brands: brands of the category, (C, BRANDS_EACH).
    """

    size: FloatArray
    country: IdArray
    language: IdArray
    used: FloatArray
    merchant_change: FloatArray
    merchant_views: FloatArray
    week: FloatArray
    hours: FloatArray
    campaign_rate: FloatArray
    category_change: FloatArray
    category_views: FloatArray
    category_clicks: FloatArray
    category_price: FloatArray
    merchant_categories: IdArray
    brand_views: FloatArray
    brand_clicks: FloatArray
    category_brands: IdArray


@functools.lru_cache(maxsize=8)
def draw_world(number: int, shape: MarketShape) -> World:
    """Draw the world, the traits of merchants, categories and brands, of number ``number`` >= 0."""
    rng = np.random.default_rng((number, 2020))
    m, c, b = shape.merchants, shape.categories, shape.brands

    def effects(spread: float, count: int) -> FloatArray:
        return np.asarray(np.exp(spread * rng.standard_normal(count)))

    size = np.arange(1, m + 1) ** -MERCHANT_SIZES
    fast = np.random.default_rng((number, 2021)).random(m) < shape.fast
    country = rng.choice(shape.countries, m, p=_falling(shape.countries))
    drawn = World(
        size=rng.permutation(size / size.sum()),
        country=country.astype(np.int32),
        language=np.where(rng.random(m) < 0.85, country, 0).astype(np.int32),
        used=rng.dirichlet((0.3, 0.1, 6.0), m)[:, :2],
        merchant_change=effects(shape.merchant_change, m) * np.where(fast, shape.fast_factor, 1.0),
        merchant_views=effects(shape.merchant_views, m),
        week=_weeks(rng, shape),
        hours=_hours(rng, m),
        campaign_rate=np.minimum(shape.campaign_rate * effects(CAMPAIGN_SPREAD, m), 1.0),
        category_change=effects(shape.category_change, c),
        category_views=effects(shape.category_views, c),
        category_clicks=effects(shape.category_clicks, c),
        category_price=3000.0 * effects(1.0, c),
        merchant_categories=rng.integers(c, size=(m, CATEGORIES_EACH), dtype=np.int32),
        brand_views=effects(shape.brand_views, b),
        brand_clicks=effects(shape.brand_clicks, b),
        category_brands=rng.integers(b, size=(c, BRANDS_EACH), dtype=np.int32),
    )
    traits: World = read_only(drawn)
    return traits


def _falling(count: int) -> FloatArray:
    """Return ``count`` shares of sum 1 that fall as 1 / rank, (count,)."""
    shares = 1.0 / np.arange(1, count + 1)
    return np.asarray(shares / shares.sum())


def _weeks(rng: np.random.Generator, shape: MarketShape) -> FloatArray:
    """Draw each merchant's factors of price changes by weekday, (M, 7), with a mean of 1.

    The factors of some merchants are high on one to three days, those of others on workdays.
    """
    m = shape.merchants
    few = rng.random((m, 7)).argsort(axis=1) < rng.integers(1, 4, size=(m, 1))
    rest = (1.0 - shape.scheduled_share) / np.maximum(7 - few.sum(1, keepdims=True), 1)
    scheduled = np.where(few, shape.scheduled_share / few.sum(1, keepdims=True), rest)
    workdays = np.array([1.15, 1.15, 1.15, 1.15, 1.1, 0.65, 0.65]) / 7.0
    scheduled_merchants = rng.random((m, 1)) < shape.scheduled
    shares = np.where(scheduled_merchants, scheduled, workdays)
    factors: FloatArray = 7.0 * shares / shares.sum(1, keepdims=True)
    return factors


def _hours(rng: np.random.Generator, merchants: int) -> FloatArray:
    """Draw the cumulative shares of each merchant's price changes by step, (M, STEPS_PER_DAY)."""
    peak = rng.integers(STEPS_PER_DAY, size=(merchants, 1))
    distance = np.abs(np.arange(STEPS_PER_DAY) - peak)
    near = np.exp(-np.minimum(distance, STEPS_PER_DAY - distance))
    shares = 0.5 * near / near.sum(1, keepdims=True) + 0.5 / STEPS_PER_DAY
    return np.cumsum(shares, axis=1)


def click_hours() -> FloatArray:
    """Return the cumulative shares of a day's clicks by step, (1, STEPS_PER_DAY), peak at 8 pm."""
    hour = (np.arange(STEPS_PER_DAY) + 0.5) * 24 / STEPS_PER_DAY
    shares = 1.0 + 0.8 * np.cos((hour - 20.0) / 24 * 2 * np.pi)
    cumulative: FloatArray = np.cumsum(shares / shares.sum())[None]
    return cumulative


def season() -> FloatArray:
    """Return the factors of price changes, promotions and demand by day of the year, (365, 3)."""
    factors = np.ones((DAYS_OF_YEAR, 3))
    for first, days, *strength in SALES:
        factors[first : first + days] = strength
    return factors


def draw_market(
    rng: np.random.Generator,
    num_pages: int,
    *,
    bandwidth: float,
    bandwidth_steps: tuple[()] = (),
    first_day: int = 9,
    world: int = 0,
    shape: MarketShape = FITTED,
) -> Market:
    """Draw a market of ``num_pages`` offers of one world.

    Args:
        rng: random generator.
        num_pages: number of offers, m.
        bandwidth: crawls per day.
        bandwidth_steps: none.
        first_day: day of the year at the start of episodes, in [0, 365); day 0 is a Monday.
        world: world number, >= 0.
        shape: distribution of worlds and markets.
    """
    traits = draw_world(world, shape)
    metadata = _draw_metadata(rng, traits, num_pages)
    merchant, category, brand = metadata.merchant, metadata.category, metadata.brand
    change_level, demand_level, click_level = rng.standard_normal((3, num_pages))
    price = traits.category_price[category] * np.exp(0.7 * rng.standard_normal(num_pages))
    gone = rng.random(num_pages) < shape.obsolete
    views = traits.merchant_views[merchant] * traits.category_views[category]
    clicks = traits.category_clicks[category] * traits.brand_clicks[brand]
    clicks = shape.click_share * clicks * np.exp(shape.offer_clicks * click_level)
    demand = np.exp(shape.offer_views * demand_level).astype(np.float32)
    view_scale = shape.view_rate * views * traits.brand_views[brand]
    law = MarketLaw(
        merchant=merchant,
        change_scale=shape.change_rate
        * traits.merchant_change[merchant]
        * traits.category_change[category],
        view_scale=np.minimum(view_scale, LARGEST_MEAN / demand),
        click_share=np.minimum(clicks, 1.0),
        change_level=np.exp(shape.offer_change * change_level).astype(np.float32),
        demand_level=np.where(gone, 0.0, demand).astype(np.float32),
        price=np.where(gone, GONE, np.clip(price, 1, 10**8)).astype(np.int32),
        week=traits.week,
        hours=traits.hours,
        campaign_rate=traits.campaign_rate,
        campaign_share=np.full(shape.merchants, shape.campaign_share),
        click_hours=click_hours(),
        season=season(),
        numbers=np.array(_numbers(shape, first_day)),
    )
    return Market(metadata, law, bandwidth=bandwidth)


def _numbers(shape: MarketShape, first_day: int) -> MarketNumbers:
    """Return the parameters common to all offers of a market, from its shape and its first day."""
    return MarketNumbers(
        change_spread=shape.offer_change,
        demand_spread=shape.offer_views,
        change_jump=shape.change_jump,
        demand_jump=shape.demand_jump,
        obsolete_rate=shape.obsolete_rate,
        drift_spread=shape.drift,
        drift_memory=shape.drift_memory,
        back=shape.back,
        first_day=float(first_day),
        first_weekday=float(first_day % 7),
    )


def _draw_metadata(rng: np.random.Generator, traits: World, m: int) -> OfferMetadata:
    """Draw the metadata of ``m`` offers, such as merchant and brand, sorted by merchant."""
    merchant = np.sort(rng.choice(traits.size.size, m, p=traits.size)).astype(np.int32)
    category = traits.merchant_categories[merchant, rng.integers(CATEGORIES_EACH, size=m)]
    brand = traits.category_brands[category, rng.choice(BRANDS_EACH, m, p=_falling(BRANDS_EACH))]
    used = traits.used[merchant]
    kind = rng.random(m)
    condition = np.where(kind < used[:, 0], 1, np.where(kind < used.sum(1), 2, 0))
    return OfferMetadata(
        brand=brand,
        category=category,
        condition=condition.astype(np.int32),
        country=traits.country[merchant],
        language=traits.language[merchant],
        merchant=merchant,
    )


def _shape(value: Any, bandwidth: float) -> MarketShape:
    """Return the argument ``shape``; raise ValueError unless it is a MarketShape."""
    if not isinstance(value, MarketShape):
        raise ValueError(f"shape must be a MarketShape, got {value!r}")
    return value


MARKET = Law(
    draw_market,
    "Shopping offers.",
    bandwidth=0.1,
    per_page=True,
    arguments={
        "first_day": lambda value, _: whole("first_day", value, 0, DAYS_OF_YEAR - 1),
        "world": lambda value, _: whole("world", value, 0),
        "shape": _shape,
    },
)
"""The law of ``CrawlOffers-v1``; its bandwidth is the smallest budget of the paper's tables."""


def market(
    num_offers: int, *, seed: int = 0, bandwidth: float | None = None, **arguments: Any
) -> Market:
    """Draw the market that ``CrawlOffers-v1`` draws on ``reset(seed=seed)``.

    Args:
        num_offers: number of offers, m.
        seed: an integer >= 0.
        bandwidth: crawls per day; None is 0.1 per offer.
        **arguments: first_day, world and shape of :func:`draw_market`.

    Raises:
        ValueError: an argument outside its range.
    """
    whole("num_offers", num_offers, 1)
    draw = MARKET.generator("market", num_offers, bandwidth, **arguments)
    drawn = draw(generator(roots(whole("seed", seed, 0)).instance, 0))
    assert isinstance(drawn, Market)
    return drawn
