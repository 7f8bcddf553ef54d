"""Intervals of a log, and signals of which only the day is known, against their twins."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.live.logs.signals import place
from tests.naive import logs as naive
from tests.naive.replayed_logs import make_log


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_intervals_equal_their_twin(seed):
    rng = np.random.default_rng(seed)
    pages, crawled, heard = (int(n) for n in rng.integers([1, 0, 0], [4, 12, 12]))
    times = rng.choice(40, crawled, replace=False).tolist()
    crawls = [(int(rng.integers(pages)), time, rng.random() < 0.5) for time in times]
    ends = {page: max(time for of, time, _ in crawls if of == page) for page, *_ in crawls}
    gone = {end for end in ends.items() if rng.random() < 0.5}
    signals = [tuple(rng.integers([pages, 40, 2]).tolist()) for _ in range(heard)]
    log = make_log(crawls, signals, num_pages=pages, num_sources=2, gone=gone)
    found = log.intervals()
    rows = zip(found.page, found.start, found.elapsed, found.signals.T, found.changed, strict=True)
    assert [(p, s, e, list(n), c) for p, s, e, n, c in rows] == naive.intervals(log)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_places_of_dated_signals_equal_their_twin(seed):
    rng = np.random.default_rng(seed)
    pages, crawled, count = rng.integers(1, 4), rng.integers(0, 14), rng.integers(0, 8)
    page = np.sort(np.append(np.arange(pages), rng.integers(pages, size=crawled)))
    time = rng.permutation(48)[: page.size] / 8.0
    time = time[np.lexsort((time, page))]
    changed = rng.random(page.size) < 0.4
    of, day = rng.integers(pages, size=count), rng.integers(-4, 60, size=count) / 8.0
    found = place(of, day, page, time, changed)
    assert found.tolist() == naive.placed(of, day, list(zip(page, time, changed, strict=True)))
    assert ((found > day) & (found < day + 1)).all()
