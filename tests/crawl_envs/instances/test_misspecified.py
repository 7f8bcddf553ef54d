"""Misspecified instances: parameters, tapes, environments, repeatability and errors."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs import Instance, instances
from crawl_envs.checks import check_crawl_env, check_policy
from crawl_envs.evaluation import simulate
from crawl_envs.families.ncis import CrawlNCIS
from crawl_envs.instances import STRESS, misspecified
from crawl_envs.instances.misspecified import bursty as bursts
from crawl_envs.instances.misspecified import periodic as rhythms
from crawl_envs.instances.misspecified.corrupted import Corrupted
from crawl_envs.instances.misspecified.instance import Misspecified
from crawl_envs.sim.law import CustomEvents
from tests.environments import actions_of, assert_same, assert_same_future, play
from tests.naive import misspecified as naive_stress

WORLDS = tuple(misspecified.LAWS)
LAWS = tuple(name for name in WORLDS if name != "cold")
DELAYS = {
    "none": None,
    "constant": {"kind": "constant", "mean": 0.4},
    "exponential": {"kind": "exponential", "mean": 0.5},
    "poisson": {"kind": "poisson", "mean": 0.3, "unit": "time"},
}


def drawn(name, num_pages=13, seed=0, **more):
    return instances.make(name, num_pages=num_pages, bandwidth=10.0, seed=seed, **more)


def tape_of(instance, seed=0, horizon=7.0):
    return instance.draw_tape(np.random.default_rng(seed), horizon)


def assert_same_as_twin(instance, seed, horizon):
    one, two = np.random.default_rng(seed), np.random.default_rng(seed)
    tape = instance.draw_tape(one, horizon)
    times, codes = naive_stress.tape(instance, two, horizon)
    assert instance.num_pages == 1 or tape.time.size > 0
    assert tape.time.tolist() == times
    assert tape.code.tolist() == codes
    assert one.bit_generator.state == two.bit_generator.state


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("num_pages", [1, 13, 41])
@pytest.mark.parametrize("horizon", [0.9, 7.0, 33.3])
def test_a_tape_is_that_of_the_slow_twin(name, num_pages, horizon):
    assert_same_as_twin(drawn(name, num_pages), 5, horizon)


@pytest.mark.parametrize("name", [name for name in LAWS if name != "late"])
@pytest.mark.parametrize("delay", list(DELAYS))
def test_signals_travel_like_those_of_the_slow_twin(name, delay):
    assert_same_as_twin(drawn(name, delay=DELAYS[delay]), 6, 7.0)


@pytest.mark.parametrize(
    ("name", "module", "size"),
    [("bursty", bursts, "spells_at_once"), ("periodic", rhythms, "gaps_at_once")],
)
def test_blocks_that_do_not_suffice_are_drawn_again(name, module, size, monkeypatch):
    monkeypatch.setattr(module, size, lambda *_: 2)
    assert_same_as_twin(drawn(name), 7, 25.0)


@pytest.mark.parametrize("name", LAWS)
def test_tapes_are_well_formed(name):
    for seed in range(5):
        tape = tape_of(drawn(name, 100, seed), seed, 20.0)
        assert np.all(np.diff(tape.time) >= 0.0)
        assert tape.time[0] > 0.0
        assert tape.time[-1] <= 20.0
        assert set(np.unique(tape.code & 63)) <= {0, 1, 2, 3}
        assert np.array_equal(np.unique(tape.code // 64), np.arange(100))
        assert tape.alive.all()
        assert tape.num_sources == 1


@pytest.mark.parametrize("name", LAWS)
def test_a_tape_is_decided_by_instance_and_generator(name):
    first, again = tape_of(drawn(name)), tape_of(drawn(name))
    assert np.array_equal(first.time, again.time)
    assert np.array_equal(first.code, again.code)
    for other in (tape_of(drawn(name), seed=1), tape_of(drawn(name, seed=1))):
        assert not np.array_equal(first.time, other.time)


@pytest.mark.parametrize("name", LAWS)
def test_requests_are_poisson_at_the_rate_of_importance(name):
    revealed, count = drawn(name, 30), 400
    rng = np.random.default_rng(3)
    seen = np.zeros(30)
    for _ in range(count):
        code = revealed.draw_tape(rng, 10.0).code
        seen += np.bincount(code[code & 63 == 0] // 64, minlength=30)
    expected = revealed.importance * 10.0 * count
    z = (seen - expected) / np.sqrt(expected)
    assert np.abs(z).max() < 4.0
    assert 0.6 < z.std() < 1.4


@pytest.mark.parametrize("name", [name for name in WORLDS if name not in ("deploys", "cold")])
def test_pages_are_those_of_noisy(name):
    noisy, revealed = drawn("noisy"), drawn(name)
    assert np.array_equal(revealed.importance, noisy.importance)
    if name != "shifting":
        assert np.array_equal(revealed.change_rate, noisy.change_rate)
    truth = revealed.law if name == "corrupted" else revealed
    assert np.array_equal(truth.recall, noisy.recall)
    assert np.array_equal(truth.false_signal_rate, noisy.false_signal_rate)
    assert revealed.delay.kind == "none"


@pytest.mark.parametrize("name", LAWS)
def test_the_revealed_problem_hides_the_law(name):
    revealed = drawn(name, 40)
    assert isinstance(revealed, CustomEvents)
    assert not hasattr(revealed.problem(), "law")
    hosted = name in ("deploys", "shifting")
    assert (revealed.problem("importance").group is not None) == hosted
    if hosted:
        assert np.array_equal(np.bincount(revealed.group), [10, 10, 10, 10])


def test_a_cold_start_is_an_ordinary_instance():
    assert type(drawn("cold")) is Instance


def test_zero_rates_change_never():
    still = Instance(1.0, [0.0, 0.5, 0.0, 0.5], bandwidth=1.0)
    laws = [bursts.Bursty(), rhythms.Periodic(np.array([30.0, 30, 0, 0]), np.full(4, 0.5))]
    for law in laws:
        code = tape_of(Misspecified(still, law), horizon=50.0).code
        changed = np.bincount(code[code & 1 == 1] // 64, minlength=4)
        assert np.array_equal(changed > 0, still.change_rate > 0.0)


# Environments


def environment(setting, **more):
    return gym.make("CrawlNCIS-v0", **{**STRESS[setting], **more})


@pytest.mark.parametrize("setting", STRESS)
def test_settings_keep_the_contract(setting):
    check_crawl_env(lambda: environment(setting), render=True)
    for name in ("GreedyNCIS", "RoundRobin"):
        if STRESS[setting]["reveal"] == "parameters" or name == "RoundRobin":
            check_policy(
                lambda env, name=name: policies.make(name, env), lambda: environment(setting)
            )


@pytest.mark.parametrize("form", [{}, {"action": "page"}])
def test_the_other_family_plays_them(form):
    check_crawl_env(lambda: gym.make("CrawlHarmonic-v0", instance="deploys", **form))


def test_settings_are_plain():
    assert {json.loads(json.dumps(dict(kw)))["instance"] for kw in STRESS.values()} == set(WORLDS)
    assert set(WORLDS) <= set(instances.names())
    assert all(f"``{name}``" in CrawlNCIS.__doc__ for name in instances.names())


@pytest.mark.parametrize("name", LAWS)
def test_an_environment_plays_what_make_draws(name):
    env = gym.make("CrawlNCIS-v0", instance=name, num_pages=13, bandwidth=10.0).unwrapped
    env.reset(seed=4)
    made = drawn(name, seed=4)
    for field in ("importance", "change_rate", "recall", "false_signal_rate"):
        assert np.array_equal(getattr(env.instance, field), getattr(made, field))


@pytest.mark.parametrize("name", LAWS)
def test_a_vector_environment_is_as_many_single_ones(name):
    size = {"instance": name, "num_pages": 13, "bandwidth": 10.0, "horizon": 3.0}
    batch = gym.make_vec("CrawlNCIS-v0", num_envs=3, **size)
    shown, _ = batch.reset(seed=8)
    singles = [gym.make("CrawlNCIS-v0", **size) for _ in range(3)]
    assert_same(shown, np.stack([env.reset(seed=8 + i)[0] for i, env in enumerate(singles)]))
    rng = np.random.default_rng(0)
    for _ in range(29):
        actions = rng.integers(13, size=3)
        shown, reward, *_ = batch.step(actions)
        alone = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        assert_same(shown, np.stack([step[0] for step in alone]))
        assert reward.tolist() == [step[1] for step in alone]


@pytest.mark.parametrize("name", LAWS)
def test_episodes_differ_and_can_be_gone_back_to(name):
    size = {"instance": name, "num_pages": 13, "bandwidth": 10.0, "horizon": 3.0}
    one, other = (gym.make("CrawlNCIS-v0", **size).unwrapped for _ in range(2))
    one.reset(seed=1)
    actions = actions_of(one, 12)
    first = play(one, actions)
    one.reset()
    assert [step[1] for step in play(one, actions)] != [step[1] for step in first]
    other.reset(seed=2)
    other.set_state(one.get_state())
    assert_same_future(one, other)


def test_a_pinned_instance_keeps_its_law():
    env = environment("deploys").unwrapped
    env.reset(seed=0, options={"instance": instances.make("bursty", seed=9)})
    assert isinstance(env.instance.law, bursts.Bursty)
    noisy = instances.make("noisy", seed=9)
    shown, _ = env.reset(seed=3, options={"instance": noisy})
    poisson = gym.make("CrawlNCIS-v0", instance="noisy", horizon=20.0)
    assert_same(shown, poisson.reset(seed=3, options={"instance": noisy})[0])


def test_a_rollout_plays_the_law():
    """A bursty instance is fresher than a Poisson one of the same revealed rates."""
    pages = instances.make("bursty", seed=0)
    plain = Instance(
        pages.importance, pages.change_rate, pages.recall, pages.false_signal_rate, bandwidth=100.0
    )
    env = gym.make("CrawlNCIS-v0", instance="noisy")
    env.reset(seed=0)
    policy = policies.make("RoundRobin", env)
    bursty, poisson = (
        np.mean([simulate(each, policy, 20.0, seed).freshness for seed in range(5)])
        for each in (pages, plain)
    )
    assert bursty > poisson + 0.05


def test_an_episode_may_pass_without_any_event():
    quiet = Misspecified(Instance([0.0, 0.0], 0.0, bandwidth=10.0), bursts.Bursty())
    env = gym.make("CrawlNCIS-v0", num_pages=2, bandwidth=10.0, horizon=2.0).unwrapped
    env.reset(seed=0, options={"instance": quiet})
    play(env, actions_of(env, 25))
    ledger = env.ledger()
    assert (ledger.crawls, ledger.changes, ledger.signals, ledger.requests) == (20, 0, 0, 0)


# Bad input


@pytest.mark.parametrize("horizon", [0.0, -1.0, float("inf"), float("nan")])
def test_bad_horizons(horizon):
    with pytest.raises(ValueError, match="horizon must be finite and > 0"):
        tape_of(drawn("bursty"), horizon=horizon)


def test_bad_parts_of_a_misspecified_instance():
    two = instances.make("sources", num_pages=3)
    with pytest.raises(ValueError, match="revealed must have 1 source of signals, got 2"):
        Misspecified(two, bursts.Bursty())
    pages = instances.make("noisy", num_pages=3)
    with pytest.raises(ValueError, match="recall"):
        Misspecified(pages, Corrupted(pages.recall, pages.false_signal_rate), recall=[0.1, 0.2])
