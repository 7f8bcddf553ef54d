"""The numbers that a market of shopping offers is drawn by."""

from __future__ import annotations

from dataclasses import dataclass, fields

from crawl_envs.arguments import real, whole


@dataclass(frozen=True)
class MarketShape:
    """How widely the rates of offers spread, by what they spread, and how they move.

    Rates are products of effects, each lognormal with median 1; a ``spread`` is the standard
    deviation of the logarithm. The defaults are fitted (``python -m scripts.fit_market`` measures
    them) to what Han et al. 2020 tell of their market: the shares of offers whose price changes,
    that are clicked and that are shown in a day (1:20, 1:75, 1:6; section 4.1.1), and how well
    these are predicted from metadata, from history and from both (Table 4). What the paper does not
    tell is chosen: the numbers of merchants, categories and brands, the lengths of promotions, the
    seasons.

    Most offers change their price every month or two, and a few merchants reprice all the time.
    Tables 5 and 6 are not fitted, and not met but for Uniform at 10%, roughly (.78 of the offers,
    the paper has .743): of the offers that are never crawled a quarter is still right after 75 days
    here, in the paper less than a tenth (Table 6, mu_h), and Uniform at 90% keeps .955 (.902). This
    cannot be had with 1:20: where prices change at constant rates, the share that is stale under
    uniform crawls at .9 per day is at most 1.11 times the share that changes in a day.

    Table 4 asks that price changes are told better by metadata than by history: merchants change
    prices on weekdays of their own, which Table 3's history does not show. Clicks and impressions
    are the other way round: most of their spread is the offer's own, and lasts.

    Attributes:
        merchants, categories, brands, countries: how many there are.
        change_rate: price changes per day of the median offer.
        merchant_change, category_change, offer_change: spreads of the rates of price changes.
        fast, fast_factor: share of merchants that reprice all the time, how many times as often.
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
        for name, most in {**dict.fromkeys(CHANCES, 1.0), **MOST}.items():
            if getattr(self, name) > most:
                raise ValueError(f"{name} must lie in [0, {most:g}], got {getattr(self, name)!r}")
        if self.drift_memory >= 1.0:
            raise ValueError(f"drift_memory must lie in [0, 1), got {self.drift_memory!r}")


CHANCES = (
    *("scheduled", "scheduled_share", "change_jump", "back", "campaign_rate", "campaign_share"),
    *("click_share", "demand_jump", "obsolete", "obsolete_rate", "fast"),
)
"""The numbers that are chances or shares, in [0, 1]."""

SPREADS = (
    *("merchant_change", "category_change", "offer_change", "drift"),
    *("merchant_views", "category_views", "brand_views", "offer_views"),
    *("category_clicks", "brand_clicks", "offer_clicks"),
)
MOST = {
    **dict.fromkeys(SPREADS, 5.0),
    **{"change_rate": 1_000.0, "fast_factor": 1_000.0, "view_rate": 100_000.0},
}
"""Most that rates, per day, factors and spreads may be: every single event takes time and room."""
