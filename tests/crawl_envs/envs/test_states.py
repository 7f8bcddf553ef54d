"""Copies, states, and arrays that stay valid."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import policies
from crawl_envs import Instance
from crawl_envs.sim.tape import Tape
from crawl_envs.spaces.observations import MAX_BUFFERS, Buffers
from tests.environments import (
    DELAYED,
    EVERY_ID,
    EVERY_ID_AND_FORM,
    EVERY_MODE,
    HARMONIC,
    NCIS,
    OFFERS,
    SLOW,
    actions_of,
    arguments,
    assert_same,
    assert_same_future,
    bare,
    batch,
    play,
)
from tests.worlds import single_of

TRACE = "CrawlTrace-v0"

# Copies and states


def in_mid_delay(num_pages=6):
    """An environment some steps into its episode, with signals under way."""
    env = bare(delay=SLOW, horizon=6.0)
    env.reset(seed=0)
    for page in range(num_pages):
        env.step(page)
    assert env.get_state()["world"]["pending_size"][0, 0] > 0
    return env


def in_mid_delay_of_two_sources():
    env = bare(instance="sources", delay=DELAYED, horizon=6.0)
    env.reset(seed=0)
    for _ in range(12):
        env.step(0)
    world = env.get_state()["world"]
    assert world["pending_size"][0, 0] > 0
    assert np.all(world["source_signals"].sum(2) > 0)
    return env


def in_mid_tape():
    instance = Instance([1.0, 2.0, 4.0], 1.0, bandwidth=2.0)
    rng = np.random.default_rng(0)
    tape = Tape.of_events(
        3,
        changes=(rng.random(40) * 9.0, rng.integers(2, size=40)),
        signals=(rng.random(40) * 9.0, rng.integers(2, size=40)),
        births=([2.75], [2]),
        deaths=([6.25], [1]),
        alive=[True, True, False],
    )
    env = single_of(instance, tape=tape, horizon=8.0)
    env.reset(seed=0)
    for page in (0, 1, 2, 0, 1):
        env.step(page)
    cursor = int(env.get_state()["world"]["lanes"]["cursor"][0])
    assert 0 < cursor < 80
    return env


def in_mid_epochs():
    """A crawl is under way, the bucket is half full, and change rates are estimated."""
    hidden = {"reveal": "importance", "bucket": 2.0, "bandwidth": 4.0}
    env = bare(HARMONIC, action="rates", delay=DELAYED, horizon=16.0, **hidden)
    env.reset(seed=2)
    for share in (0.2, 0.9, 0.4, 0.1):
        env.step(np.full(6, share))
    lane = env.get_state()["world"]["lanes"][0]
    assert lane["crawl_due"] > lane["time"]
    assert 0.0 < lane["tokens"] < 2.0
    assert env.lanes.budget.signals.sum() > 0
    return env


STARTS = [in_mid_delay, in_mid_delay_of_two_sources, in_mid_tape, in_mid_epochs]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_as_the_original_does(start, copied):
    env = start()
    twin = copied(env)
    untouched = copied(env)
    assert_same_future(env, twin, count=12)
    # The copy shares nothing with what has gone on since.
    assert_same_future(untouched, start(), count=12)


@pytest.mark.parametrize("start", STARTS)
def test_a_state_is_gone_back_to(start):
    env = start()
    state = env.get_state()
    kept = pickle.loads(pickle.dumps(state))
    before = start()
    play(env, actions_of(env, 4))
    env.reset(seed=99)
    env.set_state(state)
    # The problem is a new object, and the new episode number makes policies read it again.
    aside = {"problem": 0, "episode": 0}
    assert_same(env.tracker()._asdict() | aside, before.tracker()._asdict() | aside)
    assert_same_future(env, before, count=12)
    # Using a state does not use it up.
    env.set_state(state)
    assert_same(pickle.loads(pickle.dumps(env.get_state()))["world"], kept["world"])
    assert_same_future(env, start(), count=12)


@EVERY_ID_AND_FORM
def test_every_form_goes_back_to_a_state_in_mid_episode(name, form):
    """Also in an environment that was never reset."""
    given = arguments(name, form)
    longer = {"horizon": 12.0} if "horizon" in given else {}
    made = [bare(name, **given | longer) for _ in range(3)]
    env, before, other = made
    for one in made[:2]:
        one.reset(seed=2)
        one.reset()
        play(one, actions_of(one, 7))
    state = env.get_state()
    other.set_state(pickle.loads(pickle.dumps(state)))
    play(env, actions_of(env, 4, seed=1))
    env.reset(seed=99)
    env.set_state(state)
    assert_same_future(other, before)
    env.set_state(state)
    before.set_state(state)
    assert_same_future(env, before)


def test_policies_reread_the_problem_after_a_state_is_restored():
    """Numbers of episodes that were used for another instance do not come back."""
    env = bare(horizon=20.0)
    policy = policies.make("GreedyNCIS", env)
    env.reset(seed=0)
    state = env.get_state()
    observation, _ = env.reset(seed=5)
    policy.predict(observation)
    env.set_state(state)
    observation, _ = env.reset(seed=7)
    for _ in range(30):
        page, _ = policy.predict(observation)
        fresh, _ = policies.make("GreedyNCIS", env).predict(observation)
        assert page == fresh
        observation, *_ = env.step(page)


def started(name=NCIS, **more):
    env = bare(name, **more)
    env.reset(seed=0)
    return env


def other(name=NCIS, **more):
    """A function that returns the state of another environment, whatever it is given."""
    return lambda state: started(name, **more).get_state()


HARMONICS = [{"epoch": 0.5}, {"bucket": 3.0}, {"overspend": "error"}]
MARKETS = [{"objective": "offers"}, {"price_history": "crawled"}, {"action": "scores"}]
FOREIGN = [
    (in_mid_delay, lambda state: {"np_random": state["np_random"]}, "state must have"),
    (in_mid_delay, lambda state: {**state, "world": {}}, "of a world"),
    (in_mid_delay, other(num_pages=5, horizon=6.0), "pages"),
    (in_mid_delay, lambda _: in_mid_delay_of_two_sources().get_state(), "like this one"),
    (in_mid_delay, lambda s: {**s, "kind": {**s["kind"], "horizon": 7.0}}, "horizon"),
    (in_mid_epochs, lambda state: None, "state must come from get_state"),
    (in_mid_epochs, lambda state: {"a": 1}, "state must come from get_state"),
    (in_mid_epochs, lambda state: [], "state must come from get_state"),
    (partial(started, HARMONIC, action="page"), other(HARMONIC), "state"),
    (partial(started, HARMONIC), other(HARMONIC, action="page"), "state"),
    *((partial(started, HARMONIC), other(HARMONIC, **one), next(iter(one))) for one in HARMONICS),
    (partial(started, TRACE, window=(9.0, 59.0)), other(TRACE, window=(5.0, 55.0)), "tape"),
    (partial(started, OFFERS), lambda s: {k: s[k] for k in s if k != "offers"}, "offers"),
    *(
        (partial(started, OFFERS), other(OFFERS, **one), f"like these, with {next(iter(one))}")
        for one in [*MARKETS, {"horizon": 3.0}]
    ),
]


@pytest.mark.parametrize(("start", "spoil", "words"), FOREIGN)
def test_foreign_states_are_refused_and_change_nothing(start, spoil, words):
    env, untouched = start(), start()
    with pytest.raises(ValueError, match=words):
        env.set_state(spoil(env.get_state()))
    assert_same_future(env, untouched, count=12)


@EVERY_MODE
def test_a_vector_state_is_gone_back_to(mode):
    """In mid-episode, with one lane that has ended."""
    env = batch(2, autoreset_mode=mode, delay=DELAYED)
    instances = [Instance(np.ones(6), 0.5, 0.5, 3.0, bandwidth=rate) for rate in (6.0, 3.0)]
    env.reset(seed=0, options={"instance": instances})
    steps = 5 if mode == AutoresetMode.DISABLED else 6
    for _ in range(steps):
        env.step(np.array([0, 1]))
    core = env.unwrapped
    state = core.get_state()
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(20 - steps)]
    first = (
        play(env, actions[:1]) if mode == AutoresetMode.DISABLED else list(map(env.step, actions))
    )
    ledgers = [core.ledger(0), core.ledger(1)]
    env.reset(seed=5)
    core.set_state(state)
    again = (
        play(env, actions[:1]) if mode == AutoresetMode.DISABLED else list(map(env.step, actions))
    )
    assert_same(first, again)
    assert ledgers == [core.ledger(0), core.ledger(1)]


@EVERY_ID
def test_an_unseeded_future_is_part_of_the_state(name):
    env = bare(name)
    env.reset(seed=1)
    state = env.get_state()
    assert_same(env.np_random.random(3), (env.set_state(state), env.np_random.random(3))[1])


# Arrays


@pytest.mark.parametrize("kind", ["single", "vector"])
def test_returned_arrays_stay_valid(kind):
    env = bare() if kind == "single" else batch(2)
    lanes = () if kind == "single" else (2,)
    observation, _ = env.reset(seed=0)
    kept = [(observation, observation.copy())]
    infos = []
    for page in range(20):
        step = env.step(np.full(lanes, page % 6))
        kept.append((step[0], step[0].copy()))
        infos.append((step[1:], copy.deepcopy(step[1:])))
        if np.any(step[3]) and kind == "single":
            break
    for now, then in kept:
        assert_same(now, then)
    for now, then in infos:
        assert_same(now, then)


@pytest.mark.parametrize("kind", ["single", "vector"])
def test_a_caller_may_write_into_what_it_was_given(kind):
    envs = [bare() if kind == "single" else batch(2) for _ in range(2)]
    action = 0 if kind == "single" else np.zeros(2, np.int64)
    observation, _ = envs[0].reset(seed=0)
    envs[1].reset(seed=0)
    observation[...] = -1.0
    assert_same(envs[0].step(action), envs[1].step(action))


def test_trackers_logs_and_masks_are_fresh_arrays():
    env = in_mid_tape()
    tracker, log, mask = env.tracker(), env.last_log(), env.action_masks()
    kept = copy.deepcopy((tracker[2:], log, mask))
    env.step(0)
    assert_same((tracker[2:], log, mask), kept)
    for array in (*tracker[3:7], *log[:8], mask):
        array[...] = 0
    twin = in_mid_tape()
    twin.step(0)
    assert_same(env.tracker()[2:], twin.tracker()[2:])
    assert_same(env.last_log(), twin.last_log())


def test_without_copy_the_buffer_is_used_again():
    env, copying = batch(2, copy=False), batch(2)
    first, _ = env.reset(seed=0)
    copying.reset(seed=0)
    for page in range(20):
        second, *_ = env.step(np.full(2, page % 6))
        expected, *_ = copying.step(np.full(2, page % 6))
        assert np.shares_memory(first, second)
        assert_same(second, expected)
        assert np.array_equal(first, second)


def test_what_was_declared_is_part_of_the_state():
    env = bare(HARMONIC, reveal="importance", overspend="error")
    env.reset(seed=0)
    complete = env.problem.complete
    action = np.where(complete, 1.0, 0.0)
    env.declare(np.full(6, 0.1))
    env.set_state(env.get_state())
    *_, info = env.step(action)
    assert info["declared"] == pytest.approx(0.1 * complete.sum())


def test_every_crawl_of_an_epoch_is_logged_with_its_own_divergences():
    given = {"num_pages": 2, "bandwidth": 2.0, "action": "rates", "epoch": 10.0, "horizon": 40.0}
    env = bare("CrawlLongevity-v0", instance="random", **given)
    env.reset(seed=2)
    env.step(np.ones(2))
    log = env.last_log()
    rows = np.flatnonzero(log.page == 0)
    times = np.concatenate(([0.0], log.time[rows]))
    versions = [set(env.first_sketch(0).row(0)), *(set(log.sketch.row(row)) for row in rows)]
    assert rows.size > 5
    for crawl, row in enumerate(rows, start=1):
        for slot in range(2):
            if slot >= crawl:
                assert np.isnan(log.age[row, slot])
                continue
            old, new = versions[crawl - 1 - slot], versions[crawl]
            assert log.age[row, slot] == times[crawl] - times[crawl - 1 - slot]
            distance = 1.0 - len(old & new) / len(old | new)
            assert log.divergence[row, slot] == pytest.approx(distance, abs=1e-12)


# Copies that stay valid while anything of them is held, and serve again after


def test_what_is_held_is_never_overwritten():
    buffers, source = Buffers(), np.zeros((3, 5))
    held = []
    for step in range(3 * MAX_BUFFERS):
        source[:] = step
        one = buffers.copy(source)
        held.append([one, one.T, one[1:2], one.T[::2], memoryview(one), one][step % 6])
        del one
    for step, view in enumerate(held):
        assert (np.asarray(view) == step).all()


def test_what_nobody_holds_serves_again():
    buffers, source = Buffers(), np.arange(6.0)
    first = buffers.copy(source)
    address = first.ctypes.data
    del first
    assert buffers.copy(source).ctypes.data == address


def test_a_copied_pool_shares_nothing():
    buffers, source = Buffers(), np.arange(6.0)
    held = buffers.copy(source)
    for other in (copy.deepcopy(buffers), pickle.loads(pickle.dumps(buffers))):
        assert not np.shares_memory(held, other.copy(source))
