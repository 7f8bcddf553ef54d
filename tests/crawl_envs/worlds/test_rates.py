"""Actions that are rates for an epoch: episodes, what is logged, lanes, states and copies."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance
from tests.environments import (
    DELAYED,
    EVERY_ID,
    HARMONIC,
    assert_same,
    bare,
    batch,
)
from tests.worlds import rated_of

RATED = {"action": "rates", "horizon": 6.0, "bandwidth": 4.0}


def rated(**more):
    return bare(HARMONIC, **{**RATED, **more})


def rated_batch(num_envs, **more):
    return batch(num_envs, HARMONIC, **{**RATED, **more})


@EVERY_ID
@pytest.mark.parametrize("bandwidth", [None, 3.0])
def test_shares_are_rates_in_units_of_the_bandwidth(name, bandwidth):
    """Of the current bandwidth, also that of a pinned instance; probabilities have no unit."""
    shares, rates = bare(name, action="shares"), bare(name, action="rates")
    shares.reset(seed=0)
    options = None
    if bandwidth is not None:
        options = {"instance": copy.copy(shares.instance)}
        object.__setattr__(options["instance"], "bandwidth", bandwidth)
    assert_same(shares.reset(seed=0, options=options), rates.reset(seed=0, options=options))
    instance, low = shares.instance, shares.action_space.low
    with pytest.raises(ValueError, match="shares in"):
        shares.step(low - 0.5)
    for action in (low, shares.action_space.sample()):
        share = (action.astype(float) + 1.0) / 2.0
        wanted = np.where(instance.complete, share, share * instance.bandwidth)
        assert_same(shares.step(action), rates.step(wanted))


def actions_of(env, count, seed=0):
    """Rates that ask for more and for less than the budget, some of them 0."""
    rng = np.random.default_rng(seed)
    shape = env.action_space.shape
    return [np.maximum(rng.normal(0.4, 0.6, shape), 0.0) for _ in range(count)]


# Episodes


def test_the_first_decision_is_at_time_0():
    env = rated(delay=DELAYED)
    for _ in range(2):
        env.reset(seed=3)
        tracker, log = env.tracker(), env.last_log()
        assert tracker.time == 0.0
        assert np.all(tracker.elapsed == 0.0)
        assert np.all(tracker.changed == -1)
        assert log.page.size == log.signal_page.size == 0
        assert env.ledger().time == env.ledger().crawls == 0
        env.step(np.full(6, 0.5))


@pytest.mark.parametrize(
    ("horizon", "epoch", "epochs"),
    [(6.0, 1.0, 6), (6.0, 2.0, 3), (6.0, 0.1, 60), (1.0, 1.0, 1), (2.5, 1.0, 2), (6.0, 0.7, 8)],
)
def test_epochs_end_on_their_grid(horizon, epoch, epochs):
    """As many as fit into the horizon, which may miss the last by rounding."""
    env = rated(horizon=horizon, epoch=epoch)
    env.reset(seed=0)
    assert env.num_slots() == epochs
    assert env.epoch == epoch
    for number in range(1, epochs + 1):
        *_, terminated, truncated, _ = env.step(np.full(6, 0.5))
        assert env.tracker().time == pytest.approx(number * epoch, rel=1e-12)
        assert env.ledger().time == env.tracker().time
        assert not terminated
        assert truncated == (number == epochs)
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(np.full(6, 0.5))


def test_the_log_is_what_the_ledger_counts():
    """Crawls in order of time within the epoch, each with what happened since the one before."""
    env = rated(bucket=2.0, horizon=40.0)
    env.reset(seed=1)
    since, total, denied = np.zeros(6), 0, 0
    for action in actions_of(env, 40):
        start = env.tracker().time
        *_, info = env.step(action)
        log, now = env.last_log(), env.tracker().time
        assert info["crawls"] == log.page.size
        total, denied = total + log.page.size, denied + info["denied"]
        assert np.all(np.diff(log.time) >= 0.0)
        assert np.all((log.time > start) & (log.time < now))
        assert np.all((log.signal_time >= start) & (log.signal_time < now))
        assert not log.probe.any()
        for page, time, elapsed in zip(log.page, log.time, log.elapsed, strict=True):
            assert elapsed == time - since[page]
            since[page] = time
        np.testing.assert_array_equal(env.tracker().elapsed, now - since)
    assert env.ledger().crawls == total > 50
    assert env.ledger().denied == denied > 0
    assert env.ledger().requests == 0


def test_every_crawl_on_a_signal_is_at_its_time():
    env = rated(instance="mixed", horizon=20.0, bandwidth=100.0)
    env.reset(seed=1)
    complete = env.problem.complete
    assert complete.sum() == 3
    num_signals = answered = 0
    for _ in range(20):
        env.step(np.where(complete, 0.5, 0.0))
        log = env.last_log()
        assert np.all(complete[log.page])
        assert np.all(log.changed)
        signals = set(zip(log.signal_page.tolist(), log.signal_time.tolist(), strict=True))
        assert set(zip(log.page.tolist(), log.time.tolist(), strict=True)) <= signals
        num_signals, answered = num_signals + len(signals), answered + log.page.size
    assert 0 < answered < num_signals


@pytest.mark.parametrize("delay", [None, DELAYED])
def test_other_forms_of_action_have_the_same_events(delay):
    """Signals and changes up to the same time, whatever is crawled how often."""
    seen = {}
    more = {"num_pages": 40, "instance": "mixed", "bandwidth": 4.0, "horizon": 8.0, "delay": delay}
    for form in ("rates", "page", "scores", "refresh"):
        env = bare(HARMONIC, action=form, **more)
        env.reset(seed=3)
        env.action_space.seed(1)
        received = list(env.last_log().signal_time), list(env.last_log().signal_page)
        while env.tracker().time < 8.0:
            env.step(env.action_space.sample())
            received[0].extend(env.last_log().signal_time)
            received[1].extend(env.last_log().signal_page)
        ledger = env.ledger()
        seen[form] = (*received, ledger.time, ledger.changes, ledger.signals)
    assert len(seen["rates"][0]) > 30
    for form in ("page", "scores", "refresh"):
        assert seen[form] == seen["rates"]


def test_resampled_instances_are_those_of_slots():
    """Episode by episode; and without resampling, the episodes differ and the instance does not."""
    rates, slots = (
        bare(HARMONIC, action=form, resample=True, bandwidth=6.0) for form in ("rates", "page")
    )
    kept = rated()
    for env in (rates, slots, kept):
        env.reset(seed=5)
    first = kept.instance
    logs = []
    for _ in range(3):
        assert_same(rates.instance.change_rate, slots.instance.change_rate)
        assert kept.instance is first
        kept.step(np.full(6, 0.5))
        logs.append(kept.last_log().time.tolist())
        before = rates.instance.change_rate
        for env in (rates, slots, kept):
            env.reset()
        assert not np.array_equal(rates.instance.change_rate, before)
    assert logs[0] != logs[1] != logs[2]


def test_a_state_of_grown_logs_moves_to_a_new_environment():
    env, other = (
        rated_of(Instance([1.0, 1.0], 1.0, 0.5, 90.0, bandwidth=1e4), highest=1e4, penalty="binary")
        for _ in range(2)
    )
    env.reset(seed=0)
    env.step(np.array([900.0, 100.0]))
    other.set_state(pickle.loads(pickle.dumps(env.get_state())))
    assert other.ledger().crawls > 900
    action = np.array([0.0, 2000.0])
    assert_same(env.step(action), other.step(action))
    assert_same(env.last_log()._asdict(), other.last_log()._asdict())


def test_states_of_slots_and_of_epochs_do_not_mix():
    slots, epochs = bare(HARMONIC, action="page", horizon=6.0, bandwidth=4.0), rated()
    for env, foreign in ((slots, epochs), (epochs, slots)):
        env.reset(seed=0)
        foreign.reset(seed=0)
        before = env.ledger()
        with pytest.raises(ValueError, match="state"):
            env.set_state(foreign.get_state())
        assert env.ledger() == before
