"""Signals of which only the day is known, against their twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl_envs.logs.dated_signals import place
from tests.naive import logs as naive


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_places_equal_their_twin(seed):
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
