"""Small markets of many kinds, whose shapes say every number themselves."""

from __future__ import annotations

import math

import numpy as np

from crawl_envs.instances.market import MarketShape, market
from crawl_envs.sim.streams import roots
from crawl_envs.sim.tape import CODE_STRIDE, PRICE, REQUEST
from crawl_envs.worlds.offers.law import STEPS_PER_DAY, MarketNumbers
from crawl_envs.worlds.offers.market import draw_day, initial_state

ORDINARY = {
    **{"merchants": 3, "categories": 4, "brands": 5, "countries": 2},
    **{"change_rate": 0.3, "merchant_change": 0.8, "category_change": 0.5, "offer_change": 0.7},
    **{"scheduled": 0.5, "scheduled_share": 0.9, "drift": 0.4, "drift_memory": 0.9},
    **{"change_jump": 0.05, "back": 0.3, "campaign_rate": 0.05, "campaign_share": 0.5},
    **{"view_rate": 4.0, "merchant_views": 0.5, "category_views": 0.5, "brand_views": 0.5},
    **{"offer_views": 1.0, "click_share": 0.2, "category_clicks": 0.4, "brand_clicks": 0.3},
    **{"offer_clicks": 0.5, "demand_jump": 0.05, "obsolete": 0.1, "obsolete_rate": 0.01},
}

STILL = {
    **dict.fromkeys(("change_jump", "demand_jump", "obsolete", "obsolete_rate"), 0.0),
    **dict.fromkeys(("drift", "campaign_rate", "back"), 0.0),
    **{name: 0.0 for name in ORDINARY if name.startswith(("merchant_", "category_", "offer_"))},
    **dict.fromkeys(("brand_views", "brand_clicks"), 0.0),
}
"""A constant law without spread: all offers are alike except for merchants' rhythms."""

KINDS = {
    "ordinary": {},
    "big rates": {"change_rate": 9.0, "view_rate": 400.0, "click_share": 0.6},
    "tiny rates": {"change_rate": 1e-4, "view_rate": 1e-4, "click_share": 1e-3},
    "no rates": {"change_rate": 0.0, "view_rate": 0.0, "campaign_rate": 0.0},
    "promotions": {"campaign_rate": 0.5, "campaign_share": 0.7},
    "obsolescence": {"obsolete": 0.2, "obsolete_rate": 0.03, "campaign_rate": 0.3},
    "jumps": {"change_jump": 0.5, "demand_jump": 0.4, "obsolete_rate": 0.02},
    "certainties": {"back": 1.0, "campaign_rate": 1.0, "campaign_share": 1.0, "drift_memory": 0.0},
    "all are clicked": {"click_share": 1.0, "category_clicks": 0.0, "offer_clicks": 0.0},
    "one offer": {"num_offers": 1},
    "one merchant": {"merchants": 1, "categories": 1, "brands": 1, "countries": 1},
    "sales and the new year": {"first_day": 335, "campaign_rate": 0.2},
    "pennies": {"pennies": True, "change_rate": 2.0, "campaign_rate": 0.3},
}


def market_of(kind, seed, bandwidth=None):
    """The market of that kind and seed."""
    return small_market(seed, bandwidth=bandwidth, **KINDS[kind])


def small_market(seed=0, *, num_offers=12, first_day=9, pennies=False, bandwidth=None, **changes):
    """An ordinary market but for the given changes; prices of pennies are of 1 to 6 cents."""
    shape = MarketShape(**{**ORDINARY, **changes})
    drawn = market(num_offers, seed=seed, first_day=first_day, bandwidth=bandwidth, shape=shape)
    if pennies:
        prices = (drawn.law.price % 6 + 1).astype(np.int32)
        object.__setattr__(drawn, "law", drawn.law._replace(price=prices))
    return drawn


def uniform_law(num_offers, seed=0, *, season=None, **changes):
    """The law of offers alike; ``season`` replaces the calendar, by default with none."""
    shape = {**ORDINARY, **STILL, **changes}
    law = small_market(seed, num_offers=num_offers, **shape).law
    merchants = len(law.week)
    return law._replace(
        change_scale=np.full(num_offers, shape["change_rate"]),
        view_scale=np.full(num_offers, shape["view_rate"]),
        click_share=np.full(num_offers, shape["click_share"]),
        campaign_rate=np.full(merchants, shape["campaign_rate"]),
        season=np.ones_like(law.season) if season is None else season,
    )


def with_numbers(law, **changes):
    """The law with other numbers."""
    numbers = MarketNumbers(*law.numbers)._replace(**changes)
    return law._replace(numbers=np.array(numbers))


def by_step(events, kind):
    """The events of a kind by step, as lists of (offer, detail)."""
    steps = [[] for _ in range(STEPS_PER_DAY)]
    for (time, code), detail in zip(events.block.tolist(), events.detail.tolist(), strict=True):
        if code % CODE_STRIDE == kind:
            steps[math.floor(time * STEPS_PER_DAY + 1e-6) % STEPS_PER_DAY].append(
                (code // CODE_STRIDE, detail)
            )
    return steps


def changes_by_step(events):
    """The price changes of a day by step, as lists of (offer, price)."""
    return by_step(events, PRICE)


def clicks_by_step(events):
    """The clicked offers of a day by step."""
    return [[offer for offer, _ in step] for step in by_step(events, REQUEST)]


def days_of(drawn, num_days, seed):
    """Return the events of each day of an episode, step by step."""
    state = initial_state(drawn.law, roots(seed).tape, 0)
    return [draw_day(drawn.law, state, day) for day in range(num_days)]
