"""Queues of crawlers: by lag as Software Heritage, and in tiers."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import crawl_envs  # noqa: F401  (registers the environments)
import policies
from crawl_envs.types import Instance
from policies.base.live import LivePages, empty_log
from tests.naive.queues import LagScheduler, Tiers
from tests.policies.replay import CHANGE, SIGNAL, ReplayCore, ReplayLane

M = 20


def lane_of(seed, bandwidth=4.0):
    """A lane with changes, and signals of two thirds of the pages."""
    rng = np.random.default_rng(seed)
    rates, events = rng.uniform(0.02, 1.0, M), []
    for page in range(M):
        for kind in (CHANGE, SIGNAL) if page % 3 else (CHANGE,):
            times = rng.uniform(0.0, 100.0, rng.poisson(100.0 * rates[page]))
            events += [(time, kind, page) for time in times]
    instance = Instance(rng.uniform(0.1, 2.0, M), rates, bandwidth=bandwidth)
    return ReplayLane(instance, events, 100.0)


def chosen_by(action, form, batch):
    return (
        [int(action[0])]
        if form == "page"
        else np.argsort(-action[0], kind="stable")[:batch].tolist()
    )


@pytest.mark.parametrize(("form", "batch"), [("page", 1), ("scores", 3)])
@pytest.mark.parametrize("weights", [(40, 20), (49, 2), (0, 1), (1, 0)])
def test_lag_chooses_what_the_twin_chooses(form, batch, weights):
    lane = lane_of(1)
    core = ReplayCore(lane, action_form=form, batch=batch)
    named = dict(zip(("lag_weight", "queue_weight"), weights, strict=True))
    policy = policies.make("SoftwareHeritageLag", core, **named)
    twin, slot, rng, observation = (
        LagScheduler(M, weights),
        0,
        np.random.default_rng(2),
        core.reset(),
    )
    for _ in range(390 // batch):
        log = lane.log
        for page, when, changed in zip(log.page, log.time, log.changed, strict=True):
            twin.visit(page, float(when), bool(changed))
        for page, when in zip(log.signal_page, log.signal_time, strict=True):
            twin.signal(page, float(when))
        lane.alive = rng.random(M) < 0.8
        action, _ = policy.predict(observation)
        expected = twin.next(batch, lane.time, slot, lane.alive)
        assert chosen_by(action, form, batch) == expected
        slot += batch
        observation = core.step(action)


def test_lag_by_hand():
    """Page 0 was signalled at 1 and 3, page 1 at 2, page 2 never; all were crawled at 0."""
    pages = LivePages(Instance(np.ones(3), 1.0, bandwidth=1.0).problem())
    policy = policies.make("SoftwareHeritageLag", cooldown=2.0)
    policy.start(pages)
    arrived = empty_log()._replace(
        signal_page=np.array([0, 1, 0]),
        signal_time=np.array([1.0, 2.0, 3.0]),
        signal_source=np.zeros(3, np.int64),
    )
    turns = []
    for time, log in ((4.0, arrived), (5.0, None), (6.0, None), (7.0, None), (8.0, None)):
        if log is None:
            page = np.array([turns[-1]])
            log = empty_log()._replace(
                page=page,
                time=np.array([time - 1.0]),
                elapsed=np.array([1.0]),
                signals=np.zeros(1, np.int64),
                changed=np.zeros(1, np.bool_),
            )
        pages.advance(log, time)
        policy.update(log, pages.tracker())
        turns.append(int(policy.choose(pages.tracker())[0]))
    # The queue has the first turn of three, then come lags of 3 and 2. At 7 the queue has its turn
    # again. At 8 no signal is new and page 2 was crawled less than 2 days ago: the oldest crawl.
    assert turns == [2, 0, 1, 2, 0]


def test_signals_of_unknown_times_count_as_new():
    pages = LivePages(Instance(np.ones(2), 1.0, bandwidth=1.0).problem())
    log = empty_log()._replace(
        signal_page=np.array([1]), signal_time=np.array([0.5]), signal_source=np.zeros(1, np.int64)
    )
    pages.advance(log, 3.0)
    pages.advance(empty_log(), 4.0)
    policy = policies.make("SoftwareHeritageLag", queue_weight=0)
    policy.start(pages)  # midway: the time of the signal is lost
    assert policy.choose(pages.tracker()).tolist() == [1]


@pytest.mark.parametrize(("form", "batch"), [("page", 1), ("scores", 3)])
def test_tiers_choose_what_the_twin_chooses(form, batch):
    lane = lane_of(3)
    core = ReplayCore(lane, action_form=form, batch=batch)
    policy = policies.make("FixedTiers", core)
    twin, observation = Tiers(lane.instance.importance.tolist(), 4.0), core.reset()
    for _ in range(390 // batch):
        log = lane.log
        for page, when, changed in zip(log.page, log.time, log.changed, strict=True):
            twin.visit(page, float(when), bool(changed))
        twin.rank(lane.time)
        action, _ = policy.predict(observation)
        assert chosen_by(action, form, batch) == twin.due(batch)
        observation = core.step(action)


def test_tiers_are_crawled_in_the_ratio_of_their_intervals():
    """Rates 4 x, 2 x and x of 4 pages each make 12 if x is 3 / 7; the last crawl may be late."""
    instance = Instance(np.repeat([100.0, 10.0, 1.0], 4), 0.0, bandwidth=12.0)
    env = gymnasium.make("CrawlNCIS-v0", num_pages=12, bandwidth=12.0, horizon=70.0)
    policy = policies.make("FixedTiers", env, intervals=(1, 2, 4))
    observation, _ = env.reset(seed=0, options={"instance": instance})
    counts, over = np.zeros(12), False
    while not over:
        page, _ = policy.predict(observation)
        counts[page] += 1
        observation, _, _, over, _ = env.step(page)
    np.testing.assert_allclose(counts.reshape(3, 4).mean(axis=1), [120, 60, 30], atol=1.6)


def test_due_tiers_spend_the_bandwidth():
    """With ``refresh`` the rule itself decides the number of crawls."""
    settings = {"num_pages": 30, "bandwidth": 60.0, "horizon": 20.0, "action": "refresh"}
    env = gymnasium.make("CrawlNCIS-v0", instance="noisy", **settings)
    policy = policies.make("FixedTiers", env)
    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        action, _ = policy.predict(observation)
        observation, _, _, over, _ = env.step(action)
    assert 0.9 <= env.unwrapped.ledger().crawls / 1200.0 <= 1.0


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("SoftwareHeritageLag", {"lag_weight": -1}, "lag_weight .* >= 0, got -1"),
        (
            "SoftwareHeritageLag",
            {"lag_weight": 0, "queue_weight": 0},
            "queue_weight .* >= 1, got 0",
        ),
        ("SoftwareHeritageLag", {"cooldown": -1.0}, "cooldown .* -1"),
        ("FixedTiers", {"intervals": (1.0, 0.0)}, "intervals must be numbers > 0"),
        ("FixedTiers", {"intervals": ()}, "intervals must be numbers > 0"),
        ("FixedTiers", {"intervals": [[1.0]]}, "intervals must be numbers > 0"),
        ("FixedTiers", {"intervals": (1.0, np.inf)}, "intervals must be 0 or in"),
    ],
)
def test_bad_arguments(name, arguments, words):
    with pytest.raises(ValueError, match=words):
        policies.make(name, **arguments)
