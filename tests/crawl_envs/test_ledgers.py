"""The totals of an episode are those of its steps."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import crawl_envs  # registers the ids
from crawl_envs.types import Ledger, OfferLedger


def test_shares_of_nothing_are_undefined() -> None:
    nothing = crawl_envs.types.Ledger(0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0)
    shares = nothing.accuracy, nothing.freshness, nothing.cost, nothing.penalty
    assert np.isnan(shares).all()


@pytest.mark.parametrize("name", ["CrawlOffers-v1", "CrawlNCIS-v0", "CrawlLongevity-v0"])
def test_ledgers_of_the_same_episode_are_equal(name: str) -> None:
    """On every Python; before the first midnight the freshness of offers is NaN."""
    envs = [gymnasium.make(name, num_pages=20) for _ in range(3)]
    for env, seed in zip(envs, (0, 0, 1), strict=True):
        env.reset(seed=seed)
    one, same, other = (env.unwrapped.ledger() for env in envs)  # type: ignore[attr-defined]
    if name == "CrawlOffers-v1":
        assert np.isnan(one.offer_freshness)
    assert one == same
    assert hash(one) == hash(same)
    assert name == "CrawlOffers-v1" or one != other
    assert {one, same} == {one}


def test_ledgers_of_another_kind_or_total_are_not_equal() -> None:
    totals = (1.0, 0.5, 1.0, 3, 2, 1, 0, 1, 1, 0)
    plain, offers = Ledger(*totals), OfferLedger(*totals)
    assert plain != offers
    assert offers != plain
    assert offers == OfferLedger(*totals, offer_freshness=float("nan"))
    assert offers != OfferLedger(*totals, offer_freshness=0.5)
    assert plain == Ledger(*totals, penalty_time=None)
    assert plain != Ledger(*totals, penalty_time=float("nan"))
    assert plain != totals
