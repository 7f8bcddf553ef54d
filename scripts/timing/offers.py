"""Time a month of offers: LambdaCrawl in steps of two hours, as in Han et al. 2020, section 4.

The market is drawn day by day without an environment, and only the tracker's data are kept.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator

import numpy as np

from crawl_envs.instances.market import market
from crawl_envs.types import FloatArray, OfferLedger
from crawl_envs.types.offer_features import OfferFeatures
from crawl_envs.worlds.offers.lanes import OfferLanes, offer_form
from crawl_envs.worlds.offers.law import STEPS_PER_DAY
from crawl_envs.worlds.rollouts import ONE_LANE, Pinned
from policies.offers.strategies import discrete_rates
from scripts.timing.cases import Value

DAYS, CRAWLS_PER_OFFER = 31, 0.1


def history_rates(features: OfferFeatures, bandwidth: float) -> FloatArray:
    """Return LambdaCrawl's crawl rates of the offers from averages over the last 30 days."""
    change = np.minimum(features.change_frequency.astype(np.float64), 1.0)
    clicks = features.clicks_30.astype(np.float64)
    return discrete_rates(clicks, change, bandwidth, float(STEPS_PER_DAY), 1.0 / STEPS_PER_DAY)


def crawl(offers: int, days: int) -> OfferLedger:
    """Simulate crawls of a market with rates solved every day; return the ledger of totals."""
    bandwidth = CRAWLS_PER_OFFER * offers
    drawn = market(offers, seed=0, bandwidth=bandwidth)
    form = offer_form("rates", offers, bandwidth)
    lanes = OfferLanes(
        1, Pinned(offers), form, horizon=float(days), reveal="importance", observed=False
    )
    lanes.begin(ONE_LANE, [0], [drawn])
    for _ in range(days):
        rates = history_rates(lanes.features_of(0), bandwidth)
        for _ in range(STEPS_PER_DAY):
            lanes.play((rates[np.newaxis],))
            lanes.newly_ended()
    return lanes.ledger(0)


def month(offers: int) -> Iterator[Value]:
    """Simulate a month of crawls; yield its seconds, and the peak memory of this process."""
    start = time.perf_counter()
    crawl(offers, DAYS)
    yield f"{DAYS} days", "s", time.perf_counter() - start
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    yield "peak memory", "GB", peak
