"""The store of crawls, against lists."""

from __future__ import annotations

import numpy as np
import pytest

from policies.estimators import CrawlHistories


def filled(rng, store, lists, start=0):
    """Append parts of a crawl to a store, and to lists of pages."""
    for now in range(start, start + 40):
        n = int(rng.integers(0, 30))
        page = rng.integers(0, len(lists), n) ** 2 // len(lists)  # some pages more often
        elapsed, changed = rng.random(n), rng.random(n) < 0.5
        time = np.sort(now + rng.random(n))
        sketch = rng.integers(0, 9, (n, 3))
        store.append(page, elapsed=elapsed, changed=changed, time=time, sketch=sketch)
        for row in zip(page, elapsed, changed, time, sketch.tolist(), strict=True):
            lists[row[0]].append(row[1:])


def made(num_pages, size):
    return CrawlHistories(
        *(num_pages, size), elapsed=float, changed=bool, time=float, sketch=(np.int8, (3,))
    )


def check(store, lists):
    crawls = store.intervals()
    for page, rows in enumerate(lists):
        assert store.held[page] == len(rows)
        names = ("elapsed", "changed", "time", "sketch")
        columns = store.of_page(page, *names)
        order = np.argsort(columns[2])
        for k, column in enumerate(columns):
            assert column[order].tolist() == [row[k] for row in rows]
        own = slice(crawls.begin[page], crawls.end[page])
        assert crawls.intervals[own].tolist() == columns[0].tolist()
        assert crawls.changed[own].tolist() == columns[1].tolist()


@pytest.mark.parametrize("size", [None, 1, 4])
def test_the_last_crawls_of_every_page_are_kept(size):
    rng = np.random.default_rng(1)
    store, lists = made(7, size), [[] for _ in range(7)]
    filled(rng, store, lists)
    store.add_pages(2)
    lists += [[], []]
    filled(rng, store, lists, start=40)
    assert store.count.tolist() == [len(rows) for rows in lists]
    check(store, lists if size is None else [rows[-size:] for rows in lists])
    some = store.intervals(np.array([8, 0]))
    assert some.begin.tolist() == store.begin[[8, 0]].tolist()
    assert (some.end - some.begin).tolist() == store.held[[8, 0]].tolist()


def test_old_crawls_are_forgotten_and_others_follow():
    rng = np.random.default_rng(2)
    store, lists = made(5, None), [[] for _ in range(5)]
    filled(rng, store, lists)
    for since in (-1.0, 17.3, 100.0):
        store.forget(since)
        lists = [[row for row in rows if row[2] > since] for rows in lists]
        check(store, lists)
    filled(rng, store, lists)
    check(store, lists)


def test_crawls_one_by_one_are_those_at_once():
    rng = np.random.default_rng(3)
    page, elapsed = rng.integers(0, 4, 50), rng.random(50)
    one, many = (CrawlHistories(4, 3, elapsed=float) for _ in range(2))
    many.append(page, elapsed=elapsed)
    for row in zip(page.tolist(), elapsed, strict=True):
        one.add(row[0], elapsed=row[1])
    assert one.count.tolist() == many.count.tolist()
    assert one.columns["elapsed"].tolist() == many.columns["elapsed"].tolist()


def test_rows_that_grow_take_little_more_than_they_need():
    store = CrawlHistories(1000, None, elapsed=float, changed=bool)
    for _ in range(1000):
        store.append(np.array([3]), elapsed=1.0, changed=True)
    assert store.nbytes < 1000 * 3 * 8 + 6 * 1000 * 9
