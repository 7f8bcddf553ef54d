"""Figures of sharded schedulers, in small."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies import solvers
from policies.scheduler import CrawlScheduler
from scripts.timing import shards


def test_freshness_is_near_the_optimum_of_evenly_spaced_crawls() -> None:
    """GREEDY is close to the continuous optimum; equal shares of unequal shards are not."""
    bandwidth, important = shards.FEW / 10.0, 100.0
    rng = np.random.default_rng(0)
    importance = rng.random(shards.FEW)
    importance *= np.where(np.arange(shards.FEW) % shards.SHARDS == 0, important, 1.0)
    best = solvers.binary_periodic(importance, rng.random(shards.FEW), bandwidth).objective
    one = CrawlScheduler("Greedy", bandwidth, burst=shards.TURN)
    assert shards.freshness(one, important, 60.0) == pytest.approx(best, abs=0.005)
    with shards.sharded("Greedy", bandwidth, shards.TURN, shards.SHARDS, balance=math.inf) as equal:
        assert shards.freshness(equal, important, 60.0) < best - 0.05
