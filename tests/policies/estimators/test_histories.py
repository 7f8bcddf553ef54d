"""The store of crawls, against lists."""

from __future__ import annotations

import numpy as np
import pytest

from policies.estimators import CrawlHistories
from policies.estimators.histories import FIRST_WIDTH


def fill(rng, store, lists):
    """Append parts of a crawl to a store, and to lists of pages."""
    for now in range(60):
        n = int(rng.integers(0, 30))
        page = rng.integers(0, len(lists), n) ** 2 // len(lists)  # some pages more often
        elapsed, changed = rng.random(n), rng.random(n) < 0.5
        time = np.sort(now + rng.random(n))
        sketch = rng.integers(0, 9, (n, 3))
        store.append(page, elapsed=elapsed, changed=changed, time=time, sketch=sketch)
        for row in zip(page, elapsed, changed, time, sketch.tolist(), strict=True):
            lists[row[0]].append(row[1:])


def filled(size):
    rng = np.random.default_rng(1)
    store = CrawlHistories(
        *(8, size), elapsed=float, changed=bool, time=float, sketch=(np.int8, (3,))
    )
    lists = [[] for _ in range(8)]
    fill(rng, store, lists[:7])
    assert store.count.tolist() == [len(rows) for rows in lists]
    return store, [rows[-size:] for rows in lists]


@pytest.mark.parametrize("size", [1, 4, 50, 10_000])
def test_the_last_crawls_of_every_page_are_kept(size):
    store, lists = filled(size)
    crawls, some = store.intervals(), store.intervals(np.array([7, 0]))
    for page, rows in enumerate(lists):
        assert store.num_rows[page] == len(rows)
        names = ("elapsed", "changed", "time", "sketch")
        columns = store.of_page(page, *names)
        order = np.argsort(columns[2])
        for k, column in enumerate(columns):
            assert column[order].tolist() == [row[k] for row in rows]
        own = slice(crawls.begin[page], crawls.end[page])
        assert crawls.intervals[own].tolist() == columns[0].tolist()
        assert crawls.changed[own].tolist() == columns[1].tolist()
    assert some.begin.tolist() == crawls.begin[[7, 0]].tolist()
    assert some.end.tolist() == crawls.end[[7, 0]].tolist()


@pytest.mark.parametrize("size", [4, 10_000])
@pytest.mark.parametrize("since", [-1.0, 31.3, 100.0])
def test_old_crawls_count_as_none(size, since):
    store, lists = filled(size)
    crawls = store.intervals(since=since)
    for page, rows in enumerate(lists):
        own = slice(crawls.begin[page], crawls.end[page])
        used = crawls.intervals[own] > 0.0
        assert sorted(crawls.intervals[own][used]) == sorted(r[0] for r in rows if r[2] > since)
        assert crawls.changed[own].sum() == sum(row[1] for row in rows if row[2] > since)


def test_memory_is_bounded():
    """Rows are doubled as long as a page needs them, up to the size of a ring."""
    store = CrawlHistories(100, 200, elapsed=float, changed=bool)
    assert store.nbytes == 100 * (FIRST_WIDTH * 9 + 8)
    for _ in range(1000):
        store.append(np.array([3]), elapsed=1.0, changed=True)
        assert store.nbytes <= 100 * (200 * 9 + 8)
    assert store.num_rows[3] == 200
