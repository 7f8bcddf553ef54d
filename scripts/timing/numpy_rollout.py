"""GREEDY over an episode in NumPy alone: the baseline of the compiled ``simulate``.

Greedy depends on time alone, so a rollout has two parts: a loop over slots that computes all
values and crawls the largest, and then all requests and changes at once by sorted search. Both are
as fast as possible in NumPy without the lazy bounds of the compiled rollout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawl_envs.types import FloatArray, Instance, IntArray


class Events(NamedTuple):
    """Times and pages of the changes and the requests, each by page and then by time."""

    change_time: FloatArray
    change_page: IntArray
    request_time: FloatArray
    request_page: IntArray


class NumPyRollout(NamedTuple):
    """An episode: the page of each slot, requests, hits (served fresh), and mean freshness."""

    crawls: IntArray
    requests: int
    hits: int
    freshness: float


def draw_events(instance: Instance, end: float, rng: np.random.Generator) -> Events:
    """Draw the changes and requests of every page up to ``end``."""
    drawn: list[FloatArray | IntArray] = []
    for rate in (instance.change_rate, instance.importance):
        page = np.repeat(np.arange(instance.num_pages), rng.poisson(rate * end))
        # Keys of pages differ by 2, times are below 1: one sort orders both.
        key = np.sort(2.0 * page + rng.random(page.size))
        drawn += [(key - 2.0 * page) * end, page]
    return Events(*drawn)


def greedy_crawls(instance: Instance, slots: int) -> IntArray:
    """Return the crawls of GREEDY: the largest mu / Delta (1 - (1 + x) exp(-x)), x = Delta t."""
    rate = instance.change_rate
    scale = np.divide(instance.importance, rate, out=np.zeros_like(rate), where=rate > 0.0)
    last, crawls = np.zeros(rate.size), np.empty(slots, np.int64)
    grown, decayed = np.empty_like(rate), np.empty_like(rate)
    for slot in range(slots):
        now = (slot + 1) / instance.bandwidth
        np.subtract(now, last, out=grown)
        grown *= rate
        np.negative(grown, out=decayed)
        np.exp(decayed, out=decayed)
        grown += 1.0
        decayed *= grown
        np.subtract(1.0, decayed, out=decayed)
        decayed *= scale
        page = decayed.argmax()
        crawls[slot] = page
        last[page] = now
    return crawls


def greedy_rollout(
    instance: Instance, horizon: float, seed: int = 0, events: Events | None = None
) -> NumPyRollout:
    """Simulate an episode of GREEDY; ``events`` replays given events."""
    slots = int(np.floor(instance.bandwidth * horizon + 1e-9))
    end = (slots + 1) / instance.bandwidth
    if events is None:
        events = draw_events(instance, end, np.random.default_rng(seed))
    crawls = greedy_crawls(instance, slots)
    num_pages, width = instance.num_pages, 2.0 * end
    # A visit is a crawl, or the start at time 0; keys order visits by page, then by time.
    page = np.concatenate([np.arange(num_pages), crawls])
    time = np.concatenate([np.zeros(num_pages), np.arange(1, slots + 1) / instance.bandwidth])
    visits = page * width + time
    order = np.argsort(visits)
    visits, page = visits[order], page[order]
    changes = events.change_page * width + events.change_time
    changes = changes[changes < events.change_page * width + end]
    # The first change after each visit makes its copy stale until the next visit.
    left = np.append(visits[1:], np.inf)
    left = np.minimum(left, page * width + end)
    stale_from = np.append(changes, np.inf)[np.searchsorted(changes, visits)]
    stale = np.bincount(page, np.maximum(left - stale_from, 0.0), num_pages)
    asked = events.request_page * width + events.request_time
    asked = asked[events.request_time < end]
    hits = asked < stale_from[np.searchsorted(visits, asked) - 1]
    freshness = 1.0 - (stale @ instance.importance) / (end * instance.importance.sum())
    return NumPyRollout(crawls, asked.size, int(hits.sum()), float(freshness))
