"""Intervals of a log against their twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs.logs.crawl_log import CrawlLog
from tests.naive import logs as naive


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_intervals_equal_their_twin(seed):
    rng = np.random.default_rng(seed)
    pages, crawled, heard = rng.integers(1, 4), rng.integers(0, 12), rng.integers(0, 12)
    page = rng.integers(pages, size=crawled)
    time = np.sort(rng.choice(40, crawled, replace=False)).astype(np.float64)
    gone = np.zeros(crawled, np.bool_)
    for of in range(pages):
        if (page == of).any():
            gone[np.flatnonzero(page == of)[-1]] = rng.random() < 0.5
    log = CrawlLog(
        urls=np.array([f"u{i}" for i in range(pages)], np.object_),
        page=page,
        time=time,
        changed=rng.random(crawled) < 0.5,
        gone=gone,
        signal_page=rng.integers(pages, size=heard),
        signal_time=np.sort(rng.integers(40, size=heard)).astype(np.float64),
        signal_source=rng.integers(2, size=heard),
        sources=("x", "y"),
        timed=np.ones(2, np.bool_),
    )
    found = log.intervals()
    rows = zip(found.page, found.start, found.elapsed, found.signals.T, found.changed, strict=True)
    assert [(p, s, e, list(n), c) for p, s, e, n, c in rows] == naive.intervals(log)
