"""Scenes for tests of renderings."""

import numpy as np

import crawl_envs
from crawl_envs.envs.rendering import Scene
from crawl_envs.types import CrawlLog, Ledger, Tracker


def crawled(pages, changed, elapsed=1.5, signals=2, arrived=()):
    count = len(pages)
    return CrawlLog(
        page=np.array(pages, np.int64),
        time=np.ones(count),
        elapsed=np.full(count, elapsed),
        signals=np.full(count, signals, np.int64),
        changed=np.array(changed, np.bool_),
        signal_page=np.array(arrived, np.int64),
        signal_time=np.ones(len(arrived)),
        signal_source=np.zeros(len(arrived), np.int64),
    )


def scene_of(fresh, importance=None, *, log=None, alive=None, signals=0, similarity=None):
    fresh = np.array(fresh, np.bool_)
    count = fresh.size
    importance = np.arange(count, 0, -1.0) if importance is None else importance
    instance = crawl_envs.Instance(importance, 1.0, bandwidth=10.0)
    tracker = Tracker(
        problem=instance.problem(),
        episode=1,
        time=2.0,
        elapsed=np.full(count, 0.5),
        signals=np.broadcast_to(np.array(signals, np.int64), count),
        changed=np.zeros(count, np.int8),
        alive=np.ones(count, np.bool_) if alive is None else np.array(alive),
    )
    ledger = Ledger(2.0, 3.0, 4.0, requests=5, hits=4, crawls=19, wasted=0, changes=7,
                    changes_found=3, signals=6)  # fmt: skip
    log = crawled([], []) if log is None else log
    similarity = fresh.astype(np.float64) if similarity is None else np.array(similarity)
    return Scene(tracker, instance, ledger, log, fresh, similarity, horizon=10.0, budget=100.0)
