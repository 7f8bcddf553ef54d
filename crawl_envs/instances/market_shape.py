"""The numbers that a market of shopping offers is drawn by."""

from __future__ import annotations

from dataclasses import dataclass, fields

from crawl_envs.arguments import real, whole


@dataclass(frozen=True)
class MarketShape:
    """How widely the rates of offers spread, by what they spread, and how they move.

    Rates are products of effects, each lognormal with median 1; a ``spread`` is the standard
    deviation of the logarithm. The defaults are fitted, by ``python -m scripts.fit_market``, to
    what Han et al. 2020 tell of their market: the shares of offers whose price changes, that are
    clicked and that are shown in a day (1:20, 1:75, 1:6; section 4.1.1), and how well these can be
    predicted from metadata, from history and from both (Table 4). What the paper does not tell is
    chosen: the numbers of merchants, categories and brands, the lengths of promotions, the seasons.

    Attributes:
        merchants, categories, brands, countries: how many there are.
        change_rate: price changes per day of the median offer.
        merchant_change, category_change, offer_change: spreads of the rates of price changes.
        scheduled: share of merchants that change prices on few weekdays only.
        scheduled_share: share of their price changes that fall on those weekdays.
        drift, drift_memory: spread of a merchant's factor in time, its correlation from day to day.
        change_jump: chance per day that an offer's own level of price changes is drawn anew.
        back: chance that a price change goes back to the price before.
        campaign_rate, campaign_share: promotions of a merchant per day, share of offers in one.
        view_rate: impressions per day of the median offer.
        merchant_views, category_views, brand_views, offer_views: spreads of impressions.
        click_share: clicks per impression of the median offer.
        category_clicks, brand_clicks, offer_clicks: spreads of clicks per impression.
        demand_jump: chance per day that an offer's own level of demand is drawn anew.
        obsolete: share of offers that are sold no more from the start.
        obsolete_rate: chance per day that an offer is sold no more.
    """

    merchants: int = 400
    categories: int = 150
    brands: int = 600
    countries: int = 12
    change_rate: float = 0.012
    merchant_change: float = 1.3
    category_change: float = 0.5
    offer_change: float = 0.8
    scheduled: float = 0.5
    scheduled_share: float = 0.9
    drift: float = 0.5
    drift_memory: float = 0.95
    change_jump: float = 0.01
    back: float = 0.3
    campaign_rate: float = 0.01
    campaign_share: float = 0.3
    view_rate: float = 0.03
    merchant_views: float = 0.5
    category_views: float = 0.6
    brand_views: float = 0.7
    offer_views: float = 1.6
    click_share: float = 0.02
    category_clicks: float = 0.4
    brand_clicks: float = 0.3
    offer_clicks: float = 0.6
    demand_jump: float = 0.01
    obsolete: float = 0.1
    obsolete_rate: float = 0.0005

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("merchants", "categories", "brands", "countries"):
                whole(field.name, value, 1, 1_000_000)
            else:
                real(field.name, value, least=0.0)
        for name in CHANCES:
            if getattr(self, name) > 1.0:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)!r}")
        if self.drift_memory >= 1.0:
            raise ValueError(f"drift_memory must lie in [0, 1), got {self.drift_memory!r}")


CHANCES = (
    *("scheduled", "scheduled_share", "change_jump", "back", "campaign_rate", "campaign_share"),
    *("click_share", "demand_jump", "obsolete", "obsolete_rate"),
)
"""The numbers that are chances or shares, in [0, 1]."""
