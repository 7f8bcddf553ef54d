"""Bad input of schedulers, in one piece, in shards, and in a folder: it changes nothing."""

import math

import numpy as np
import pytest

from policies.live.scheduler import CrawlScheduler, DurableScheduler, ShardedScheduler

KINDS = {"one": (CrawlScheduler, {}), "shards": (ShardedScheduler, {"shards": 3})}


def filled(kind):
    """Return a scheduler of 20 pages with copies of time 0."""
    scheduler_class, more = KINDS[kind]
    scheduler = scheduler_class("Greedy", bandwidth=10.0, **more)
    rng = np.random.default_rng(1)
    columns = {"importance": rng.random(20), "change_rate": rng.random(20)}
    scheduler.add(np.arange(20), last_crawl=0.0, **columns)
    return scheduler


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.next("now"), "time must be"),
        (lambda s: s.next_batch(1.0, 0), "count must be"),
        (lambda s: s.add([20], change_rate=-1.0), r"change_rate must lie in \[0, inf\], got -1.0"),
        (lambda s: s.add([20], importance=[1.0, 2.0], change_rate=1.0), "importance must be a num"),
        (lambda s: s.add([20, 21, 22]), "change_rate must be given"),
        (
            lambda s: s.add([20], change_rate=1.0, recall=0.5),
            "columns must be importance, change_r",
        ),
        (
            lambda s: s.add([20], change_rate=1.0, age=2.0),
            "complete, host, group, last_crawl, least_interval, most_interval, cost, got 'age'",
        ),
        (lambda s: s.update([0], cots=2.0), "most_interval, cost, got 'cots'"),
        (lambda s: s.add([20, 21, 0], change_rate=1.0), "ids must be new, got 0 again"),
        (lambda s: s.add(["a"], change_rate=1.0), "ids must be an array of integers"),
        (lambda s: s.add([20], change_rate=1.0, last_crawl=math.inf), "last_crawl must be"),
        (lambda s: s.add([20, 21], change_rate=1.0, last_crawl=[0.0] * 3), "last_crawl must be"),
        (lambda s: s.add([20], change_rate=1.0, least_interval=-1.0), "least_interval must be"),
        (lambda s: s.add([20], change_rate=1.0, known="maybe"), "known must be one of raise, skip"),
        (lambda s: s.add([20, 20], change_rate=1.0), "ids must differ, got 20 twice"),
        (lambda s: s.add([20], change_rate=1.0, host=["a", "b"]), "host must be"),
        (lambda s: s.update([99], importance=1.0), "ids must be known, got 99"),
        (lambda s: s.update([1, 2, 3], recall=0.1), "recall must be given when pages are added"),
        (lambda s: s.remove([1, 99]), "ids must be known"),
        (lambda s: s.move([99], [100]), "ids must be known"),
        (lambda s: s.move([1], [2]), "ids must be new, got 2 again"),
        (lambda s: s.move([1, 2], [100, 100]), "ids must differ, got 100 twice"),
        (lambda s: s.move([1], [100, 101]), "new ids must be one for each"),
        (lambda s: s.describe(99), "ids must be known, got 99"),
        (lambda s: s.hold("a", math.nan), "until must be"),
        (lambda s: s.source_gap(1, 0.0), "source must be below 1, got 1"),
        (lambda s: s.report([1], 1.0, "failed", retry_at=math.inf), "retry_at must be"),
        (lambda s: s.report([1], 1.0, ended=math.nan), "ended must be"),
        (lambda s: s.report([1], 1.0, "lost"), "status must be one of ok, failed, interrupted"),
        (lambda s: s.signal([1, 2], [1.0, math.nan]), "times must be"),
        (lambda s: s.signal([1], 1.0, source=1), "source must be"),
        (lambda s: s.limit_hosts(gap=-1.0), "gap must be"),
        (lambda s: s.limit_hosts(["a", "b"], most=0), "most must be"),
        (lambda s: s.configure(0.0, bandwidth=0.0), "bandwidth must be"),
        (lambda s: s.configure(0.0, timeout=-1.0), "timeout must be"),
        (lambda s: s.configure(0.0, burst=-1.0), "burst must be"),
    ],
)
def test_a_refused_call_changes_nothing(kind, call, said):
    scheduler, other = filled(kind), filled(kind)
    with pytest.raises(ValueError, match=said):
        call(scheduler)
    assert len(scheduler) == 20
    for slot in range(1, 40):
        assert scheduler.next(slot / 10.0) == other.next(slot / 10.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "ThresholdNCIS"}, "policy must be an index policy"),
        ({"policy": 3}, "policy must be an index policy"),
        ({"bandwidth": 0.0}, "bandwidth must be"),
        ({"new_share": 0.0}, "new_share must be"),
        ({"new_share": 1.5}, r"new_share must lie in \(0, 1\]"),
        ({"timeout": 0.0}, "timeout must be"),
        ({"burst": -1.0}, "burst must be"),
        ({"retry": 0.0}, "retry must be"),
        ({"retry": 2.0, "most_retry": 1.0}, "most_retry must be"),
        ({"skew": -1.0}, "skew must be"),
        ({"resolution": [0.0, 1.0]}, "resolution must be"),
        ({"resolution": -1.0}, "resolution must be"),
        ({"keep_gone": -1.0}, "keep_gone must be"),
        ({"num_sources": 0}, "num_sources must be"),
        ({"policy": "LambdaCrawl", "learn": True}, "learn must be False"),
        ({"policy": "GreedyNCIS", "learn": 3}, "learn must be"),
        ({"shards": 0}, "shards must be"),
        ({"shards": 2, "backend": "processes"}, "backend must be one of local, ray, got 'proc"),
        ({"shards": 2, "backend": "threads"}, "backend must be one of local, ray, got 'threads'"),
        ({"shards": 2, "balance": 0.0}, "balance must be"),
        ({"shards": 2, "policy": 3}, "policy must be an index policy"),
        ({"shards": 2, "burst": -1.0}, "burst must be"),
        ({"shards": 2, "learn": True}, "learn must be left out"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    scheduler_class = ShardedScheduler if "shards" in arguments else CrawlScheduler
    with pytest.raises(ValueError, match=said):
        scheduler_class(**{"policy": "Greedy", "bandwidth": 1.0, **arguments})


@pytest.mark.parametrize("name", ["save_every", "durable", "scheduler"])
def test_arguments_of_a_durable_scheduler_are_checked(tmp_path, name):
    given = {"scheduler": CrawlScheduler("GreedyNCIS", 10.0), name: "x"}
    with pytest.raises(ValueError, match=f"{name} must be"):
        DurableScheduler(tmp_path, **given)
