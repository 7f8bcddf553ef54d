"""Buckets of tokens: what they let through of crawls at random instants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs import Instance
from tests.crawl_envs.sim.rollouts.test_rates import SEED, played
from tests.worlds import rated_of


def attempts_of(instance, rates, seed):
    """The times at which crawls are made where no bucket denies any."""
    env = rated_of(instance, horizon=20.0)
    return played(env, rates, seed)[0]["time"]


def let_through(times, bucket, refill):
    """Which of the crawls find a token, one by one."""
    tokens, before, made = bucket, 0.0, []
    for time in times:
        tokens, before = min(bucket, tokens + (time - before) * refill), time
        if tokens >= 1.0 - 1e-9:
            tokens -= 1.0
            made.append(time)
    return made


@settings(max_examples=25, deadline=None)
@given(
    bucket=st.floats(1.0, 12.0),
    bandwidth=st.floats(0.5, 6.0),
    share=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**32),
)
def test_no_window_holds_more_crawls_than_a_bucket_and_its_refill(bucket, bandwidth, share, seed):
    instance = Instance([1.0, 2.0, 1.0], [1.0, 0.5, 3.0], [0.0, 0.0, 1.0], bandwidth=bandwidth)
    rates = np.array([0.75, 0.25, 0.0]) * share * bandwidth
    rates[2] = min((1.0 - share) * bandwidth / 3.0, 1.0)
    env = rated_of(instance, horizon=20.0, bucket=bucket)
    columns, ledger = played(env, rates, seed)
    times = columns["time"]
    attempts = attempts_of(instance, rates, seed)
    # Denied crawls use the same random numbers, so that times are those without a bucket.
    assert ledger.crawls + ledger.denied == attempts.size
    assert ledger.crawls == times.size
    np.testing.assert_array_equal(times, let_through(attempts, bucket, bandwidth))
    # Crawls i to j need j - i + 1 tokens: those saved at i, and those that came after.
    index = np.arange(times.size)
    needed = index - bandwidth * times
    worst = needed + 1.0 - np.minimum.accumulate(needed) if times.size else np.zeros(1)
    assert worst.max() <= bucket + 1e-6


def test_a_bucket_is_refilled_at_the_bandwidth_of_the_epoch():
    """With a signal at almost every instant, all tokens that come are spent."""
    flood = Instance([1.0], [2000.0], 1.0, bandwidth=4.0, bandwidth_steps=((2.0, 20.0), (3.5, 1.0)))
    env = rated_of(flood, horizon=6.0, bucket=1.0, reveal="importance")
    env.reset(seed=SEED)
    for epoch, due in enumerate((4.0, 4.0, 20.0, 10.5, 1.0, 1.0)):
        env.declare([1.0])
        assert env.lanes.budget.bandwidth(flood, epoch) == pytest.approx(due)
        *_, info = env.step(np.array([1.0]))
        assert abs(info["crawls"] - due) <= 1.0
