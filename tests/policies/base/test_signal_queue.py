"""Signal responses: the queue against exact sums of shares, and shares from rates."""

from __future__ import annotations

import numpy as np
import pytest

from policies.base.schedules import ResponseQueue, response_share
from tests.naive.signal_queue import NaiveResponses

NOBODY = -1


@pytest.mark.parametrize("seed", range(5))
def test_the_queue_against_exact_sums(seed):
    rng = np.random.default_rng(seed)
    share = rng.choice([0.0, 0.1, 1.0 / 3.0, 0.5, 0.7, 1.0], 8)
    queue, twin = ResponseQueue(share), NaiveResponses([NOBODY], share)
    longest = 0
    for _ in range(600):
        pages = rng.integers(8, size=rng.integers(5))
        queue.on_signal(pages)
        for page in pages:
            twin.on_signal(page)
        longest = max(longest, len(queue))
        assert len(queue) == len(twin.queue)
        assert (queue.take() if queue else NOBODY) == twin.crawl()
        assert queue.account == pytest.approx([float(held) for held in twin.account], abs=1e-9)
    assert longest > 2


def test_a_share_that_changes_leaves_accounts_and_queue():
    queue = ResponseQueue(np.array([1.0, 0.6]))
    queue.on_signal(np.array([1, 0]))
    queue.share = np.array([0.0, 0.5])
    queue.on_signal(np.array([0, 1]))
    assert [queue.take(), queue.take()] == [0, 1]
    assert queue.account == pytest.approx([0.0, 0.1])
    with pytest.raises(IndexError):
        queue.take()


def test_shares_make_as_many_crawls_as_rates():
    rates, change_rate = np.array([1.0, 3.0, 0.0, 2.0, 0.5]), np.array([4.0, 2.0, 1.0, 2.0, 0.0])
    assert response_share(rates, change_rate).tolist() == [0.25, 1.0, 0.0, 1.0, 1.0]
