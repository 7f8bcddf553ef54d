"""Rates for an epoch, and their budget: from the tracker's knowledge, never from hidden rates."""

from __future__ import annotations

import contextlib
import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from crawl_envs import Instance
from crawl_envs.sim.tape import Tape
from crawl_envs.worlds.budgets import within_budget
from tests.environments import EVERY_ID, HARMONIC, assert_same, bare, batch
from tests.worlds import rated_of, rated_vector_of

RATED = {"action": "rates", "horizon": 6.0, "bandwidth": 4.0}


def rated(**more):
    return bare(HARMONIC, **{**RATED, **more})


def rated_batch(num_envs, **more):
    return batch(num_envs, HARMONIC, **{**RATED, **more})


# The budget


def actions_of(env, count, seed=0):
    """Rates that ask for more and for less than the budget, some of them 0."""
    rng = np.random.default_rng(seed)
    shape = env.action_space.shape
    return [np.maximum(rng.normal(0.4, 0.6, shape), 0.0) for _ in range(count)]


ROWS = np.array([1.0, 0.0, 0.5, 0.5])
COMPLETE = np.array([False, False, True, True])
CHANGES = np.array([9.0, 9.0, 2.0, 4.0])
ONE = (np.array([False]), np.array([9.0]))


def test_what_an_action_spends():
    action, spent = within_budget(ROWS, COMPLETE, CHANGES, 4.0, "error")
    assert spent == 1.0 + 0.5 * 2.0 + 0.5 * 4.0
    assert_same(action, ROWS)
    action, spent = within_budget(ROWS, COMPLETE, CHANGES, 2.0, "scale")
    assert spent == 2.0
    np.testing.assert_allclose(action, ROWS / 2.0, rtol=1e-15)


def test_probabilities_end_at_1():
    """Scaling takes them for 1 before it looks at what is spent."""
    wanted = np.array([1.0, 0.0, 3.0, 0.5])
    action, spent = within_budget(wanted, COMPLETE, CHANGES, 10.0, "scale")
    assert action.tolist() == [1.0, 0.0, 1.0, 0.5]
    assert spent == 5.0
    with pytest.raises(ValueError, match=r"action .*\[0, 1\].* 3"):
        within_budget(wanted, COMPLETE, CHANGES, 10.0, "error")
    assert wanted.tolist() == [1.0, 0.0, 3.0, 0.5]


def test_a_budget_may_be_missed_by_rounding():
    for overspend in ("scale", "error"):
        action, _ = within_budget(np.array([1.0 + 1e-12]), *ONE, 1.0, overspend)
        assert action[0] == 1.0 + 1e-12
    with pytest.raises(ValueError, match=r"action .*bandwidth 1 .*got 1.00001"):
        within_budget(np.array([1.00001]), *ONE, 1.0, "error")


def test_an_error_of_the_budget_changes_nothing():
    """Neither where a lane spends too much, nor where probabilities are too large."""
    env, untouched = (rated_batch(2, overspend="error", instance="mixed") for _ in range(2))
    good = np.full((2, 6), 0.25)
    for one in (env, untouched):
        one.reset(seed=0)
        one.step(good)
    complete = env.unwrapped.instances[1].complete
    spender, sure = good.copy(), good.copy()
    spender[1, ~complete] = 2.0
    sure[1, complete] = 1.5
    for bad, words in ((spender, "bandwidth 4"), (sure, "probability")):
        with pytest.raises(ValueError, match=words):
            env.step(bad)
    assert_same(env.step(good), untouched.step(good))
    for lane in range(2):
        assert env.unwrapped.ledger(lane) == untouched.unwrapped.ledger(lane)


def test_what_is_scaled_is_played_as_if_it_had_been_asked_for():
    env, modest = rated(horizon=20.0), rated(horizon=20.0)
    for one in (env, modest):
        one.reset(seed=0)
    complete, change_rate = env.instance.complete, env.instance.change_rate
    scaled = 0
    for wanted in actions_of(env, 20, seed=2):
        wanted = wanted * 3.0
        asked = np.where(complete, np.minimum(wanted, 1.0), wanted)
        spent = float(asked @ np.where(complete, change_rate, 1.0))
        *_, info = env.step(wanted)
        assert info["declared"] == pytest.approx(min(spent, 4.0), rel=1e-12)
        modest.step(asked * min(1.0, 4.0 / spent) * (1.0 - 1e-15))
        np.testing.assert_allclose(env.last_log().time, modest.last_log().time, rtol=1e-9)
        assert_same(env.last_log().page, modest.last_log().page)
        scaled += spent > 4.0
    assert 5 < scaled < 20


def test_bandwidth_steps_within_an_epoch_count_by_their_time():
    instance = Instance(
        [1.0, 1.0], 1.0, bandwidth=4.0, bandwidth_steps=((0.5, 8.0), (2.25, 1.0), (2.75, 3.0))
    )
    env = rated_of(instance, horizon=5.0, overspend="scale")
    env.reset(seed=0)
    for due in (6.0, 8.0, 0.25 * 8.0 + 0.5 * 1.0 + 0.25 * 3.0, 3.0, 3.0):
        *_, info = env.step(np.array([50.0, 10.0]))
        assert info["declared"] == pytest.approx(due, rel=1e-15)
    long = rated_of(instance, horizon=5.0, overspend="scale", epoch=5.0)
    long.reset(seed=0)
    *_, info = long.step(np.array([50.0, 10.0]))
    # 0.5 at 4, 1.75 at 8, 0.5 at 1, 2.25 at 3.
    assert info["declared"] == pytest.approx((2.0 + 14.0 + 0.5 + 6.75) / 5.0, rel=1e-15)


# Hidden truth


EVENTS = {
    "changes": ([0.25, 0.5, 1.5, 1.75, 2.5], [0, 1, 0, 0, 2]),
    "signals": ([0.25, 0.5, 1.5, 1.75], [0, 1, 0, 0]),
}


def env_of_tape(change_rate, **more):
    """Pages 0 and 1 have complete observation; all hidden truths send the same signals."""
    instance = Instance([1.0, 1.0, 1.0], change_rate, [1.0, 1.0, 0.0], bandwidth=2.0)
    tape = Tape.of_events(3, **EVENTS)
    env = rated_of(instance, tape=tape, reveal="importance", penalty="harmonic", **more)
    env.reset(seed=0)
    return env


HIDDEN = ([1e-3, 1e-3, 5.0], [1.0, 2.0, 0.1], [500.0, 0.0, 50.0])


def test_hidden_rates_decide_nothing_of_what_is_scaled():
    action = np.array([1.0, 0.75, 0.2])
    steps = [
        [flat_step(env, action) for _ in range(4)]
        for env in (env_of_tape(rates, overspend="scale") for rates in HIDDEN)
    ]
    assert_same(steps[0], steps[1])
    assert_same(steps[0], steps[2])
    signal_counts, expected = np.zeros(3), []
    for epoch in range(4):
        believed = (signal_counts + 0.5) / (epoch + 0.5)
        expected.append(min(0.2 + believed[0] + 0.75 * believed[1], 2.0))
        for time, page in zip(*EVENTS["signals"], strict=True):
            signal_counts[page] += epoch <= time < epoch + 1
    declared = [info["declared"] for _, _, _, _, info in steps[0]]
    np.testing.assert_allclose(declared, expected, rtol=1e-15)
    assert 1 < sum(spent < 2.0 for spent in declared) < 4


def flat_step(env, action):
    observation, *rest = env.step(action)
    return [observation, *rest]


@pytest.mark.parametrize("action", [[1.0, 0.0, 1.0], [1.0, 1.0, 0.25], [0.3, 0.1, 1.9]])
def test_hidden_rates_decide_nothing_of_errors(action):
    ends = []
    for rates in HIDDEN:
        env = env_of_tape(rates, overspend="error")
        words = []
        for _ in range(4):
            try:
                *_, info = env.step(np.array(action))
                words.append(info["declared"])
            except ValueError as error:
                words.append(str(error))
                env.step(np.zeros(3))
        ends.append(words)
    assert ends[0] == ends[1] == ends[2]


def test_lanes_count_their_own_signals_through_autoresets():
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        env = rated_batch(
            2, instance="mixed", reveal="importance", bandwidth=100.0, autoreset_mode=mode
        )
        env.reset(seed=0)
        core = env.unwrapped
        signal_counts, over = np.zeros((2, 6)), np.zeros(2, bool)
        for _ in range(20):
            start = np.array([core.tracker(lane).time for lane in range(2)])
            action = np.stack([np.where(one.complete, 0.5, 0.0) for one in core.instances])
            *_, truncated, info = env.step(action)
            if mode == AutoresetMode.SAME_STEP and truncated.any():
                info = info["final_info"]
            for lane in range(2):
                if over[lane]:
                    signal_counts[lane] = 0.0
                    continue
                believed = (signal_counts[lane] + 0.5) / (start[lane] + 0.5)
                assert info["declared"][lane] == pytest.approx(float(action[lane] @ believed))
                pages = core.last_log(lane).signal_page
                signal_counts[lane] += np.bincount(pages, minlength=6)
                if truncated[lane] and mode == AutoresetMode.SAME_STEP:
                    signal_counts[lane] = 0.0
            over = truncated & (mode == AutoresetMode.NEXT_STEP)


def test_what_is_declared_holds_for_one_step_of_one_lane():
    instance = Instance([1.0, 1.0], [3.0, 3.0], [1.0, 0.0], bandwidth=20.0)
    env = rated_vector_of(instance, 2, reveal="importance")
    env.reset(seed=0)
    action = np.array([[0.5, 1.0], [0.5, 1.0]])
    env.declare([8.0, 999.0], lane=1)
    *_, info = env.step(action)
    assert info["declared"].tolist() == [1.0 + 0.5 * 1.0, 1.0 + 0.5 * 8.0]
    signal_counts = [env.last_log(lane).signal_page.size for lane in range(2)]
    *_, info = env.step(action)
    expected = [1.0 + 0.5 * (count + 0.5) / 1.5 for count in signal_counts]
    np.testing.assert_allclose(info["declared"], expected, rtol=1e-15)


def test_a_declaration_is_copied_and_survives_an_error_but_not_a_reset():
    env = rated_of(Instance([1.0], [3.0], 1.0, bandwidth=5.0), reveal="importance")
    env.reset(seed=0)
    rates = np.array([10.0])
    env.declare(rates)
    rates[:] = 2.0
    with pytest.raises(ValueError, match="bandwidth 5"):
        env.step(np.array([1.0]))
    *_, info = env.step(np.array([0.5]))
    assert info["declared"] == 5.0
    env.declare([10.0])
    env.reset()
    *_, info = env.step(np.array([0.5]))
    assert info["declared"] == 0.5


def test_what_is_revealed_cannot_be_declared_away():
    """With revealed change rates a tracker cannot crawl beyond its budget by denying them."""
    instance = Instance([1.0], [30.0], 1.0, bandwidth=3.0)
    env = rated_of(instance, overspend="scale", horizon=20.0)
    env.reset(seed=0)
    for _ in range(20):
        with contextlib.suppress(ValueError):  # better still
            env.declare([0.0])
        *_, info = env.step(np.array([1.0]))
        assert info["declared"] == 3.0
    assert env.ledger().crawls < 120


BAD_DECLARATIONS = {
    "too few": ([1.0], r"\(2,\)"),
    "below 0": ([1.0, -1.0], "-1.0"),
    "not a number": ([1.0, np.nan], "nan"),
    "endless": ([np.inf, 1.0], "inf"),
    "words": (["a", "b"], "'a'"),
    "ragged": ([[1.0], [1.0, 2.0]], "1.0"),
    "nothing": (None, "nan|None"),
}


@pytest.mark.parametrize("case", BAD_DECLARATIONS)
def test_declarations(case):
    value, words = BAD_DECLARATIONS[case]
    env = rated_of(Instance([1.0, 1.0], 1.0, 1.0, bandwidth=5.0), reveal="importance")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="change_rate") as caught:
        env.declare(value)
    assert caught.match(words)
    *_, info = env.step(np.array([0.5, 0.5]))
    assert info["declared"] == 1.0


def test_slots_have_nothing_to_declare():
    env = bare(HARMONIC, action="page")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"declare.*'rates'.*'page'"):
        env.declare(np.ones(6))
    assert np.isnan(env.epoch)


def test_a_number_is_declared_for_all_pages_of_a_lane():
    env = rated_of(Instance([1.0, 1.0], 1.0, 1.0, bandwidth=9.0), reveal="importance")
    env.reset(seed=0)
    env.declare(4.0)
    for lane in (-1, 1, 2.5):
        with pytest.raises(ValueError, match="lane"):
            env.declare(1.0, lane=lane)
    *_, info = env.step(np.array([0.5, 0.25]))
    assert info["declared"] == 3.0


def test_lanes_that_have_ended_may_be_asked_for_anything():
    """Their action is not played: the step resets them."""
    env = rated_batch(2, overspend="error", horizon=2.0, instance="uniform")
    env.reset(seed=0)
    env.step(np.zeros((2, 6)))
    env.reset(options={"reset_mask": np.array([False, True])})
    *_, truncated, _ = env.step(np.zeros((2, 6)))
    assert truncated.tolist() == [True, False]
    *_, info = env.step(np.stack([np.full(6, 99.0), np.full(6, 0.1)]))
    assert info["declared"][0] == 0.0 < info["declared"][1]
    with pytest.raises(ValueError, match="bandwidth 4"):
        env.step(np.stack([np.full(6, 99.0), np.full(6, 0.1)]))


def test_a_later_bandwidth_of_too_many_crawls_is_refused():
    pages = Instance([1.0, 1.0], 1.0, bandwidth=1.0, bandwidth_steps=((1.0, 1e9),))
    env = bare(HARMONIC, num_pages=2, epoch=1.0, horizon=2.0)
    with pytest.raises(ValueError, match=r"bandwidth must give at most 1e\+08 .* got 1e\+09"):
        env.reset(seed=0, options={"instance": pages})


# Shares, epochs and states


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
