"""Misspecified instances: parameters, tapes, environments, repeatability and errors."""

from __future__ import annotations

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs import Instance, instances
from crawl_envs.checks import check_crawl_env, check_policy
from crawl_envs.families.ncis import CrawlNCIS
from crawl_envs.instances import STRESS, misspecified
from crawl_envs.instances.misspecified import change_laws
from crawl_envs.instances.misspecified.occurrences import Misspecified
from crawl_envs.sim.law import CustomEvents
from tests.environments import HAS_WINDOW, actions_of, assert_same, play
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
    ("name", "size"), [("bursty", "spells_at_once"), ("periodic", "gaps_at_once")]
)
def test_blocks_that_do_not_suffice_are_drawn_again(name, size, monkeypatch):
    monkeypatch.setattr(change_laws, size, lambda *_: 2)
    assert_same_as_twin(drawn(name), 7, 25.0)


@pytest.mark.parametrize("name", [name for name in WORLDS if name not in ("deploys", "cold")])
def test_pages_are_those_of_noisy(name):
    noisy, revealed = drawn("noisy"), drawn(name)
    assert np.array_equal(revealed.importance, noisy.importance)
    if name != "shifting":
        assert np.array_equal(revealed.change_rate, noisy.change_rate)
    truth = revealed.law.args[0] if name == "corrupted" else revealed
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


def test_zero_rates_change_never():
    still = Instance(1.0, [0.0, 0.5, 0.0, 0.5], bandwidth=1.0)
    shape = np.array([30.0, 30, 0, 0])
    periodic = partial(change_laws.periodic, shape=shape, opening=np.full(4, 0.5))
    for law in (change_laws.bursty, periodic):
        code = tape_of(Misspecified(still, partial(law, still)), horizon=50.0).code
        changed = np.bincount(code[code & 1 == 1] // 64, minlength=4)
        assert np.array_equal(changed > 0, still.change_rate > 0.0)
    quiet = Instance([0.0, 0.0], 0.0, bandwidth=10.0)
    env = gym.make("CrawlNCIS-v0", num_pages=2, bandwidth=10.0, horizon=2.0).unwrapped
    env.reset(options={"instance": Misspecified(quiet, partial(change_laws.bursty, quiet))})
    play(env, actions_of(env, 25))
    ledger = env.ledger()
    assert (ledger.crawls, ledger.changes, ledger.signals, ledger.requests) == (20, 0, 0, 0)


# Environments


def environment(setting, **more):
    return gym.make("CrawlNCIS-v0", **{**STRESS[setting], **more})


@pytest.mark.parametrize("setting", STRESS)
def test_settings_keep_the_contract(setting):
    check_crawl_env(lambda: environment(setting), render=HAS_WINDOW)
    for name in ("GreedyNCIS", "RoundRobin"):
        if STRESS[setting]["reveal"] == "parameters" or name == "RoundRobin":
            check_policy(
                lambda env, name=name: policies.make(name, env), lambda: environment(setting)
            )


@pytest.mark.parametrize("form", [{}, {"action": "page"}])
def test_the_other_family_plays_them(form):
    check_crawl_env(lambda: gym.make("CrawlHarmonic-v0", instance="deploys", **form))


def test_a_pinned_instance_keeps_its_law():
    env = environment("deploys").unwrapped
    env.reset(seed=0, options={"instance": instances.make("bursty", seed=9)})
    assert env.instance.law.func is change_laws.bursty
    noisy = instances.make("noisy", seed=9)
    shown, _ = env.reset(seed=3, options={"instance": noisy})
    poisson = gym.make("CrawlNCIS-v0", instance="noisy", horizon=20.0)
    assert_same(shown, poisson.reset(seed=3, options={"instance": noisy})[0])


def test_every_law_has_a_setting_and_is_documented():
    assert {arguments["instance"] for arguments in STRESS.values()} == set(WORLDS)
    assert all(f"``{name}``" in CrawlNCIS.__doc__ for name in instances.names())


def test_several_sources_are_refused():
    two = instances.make("sources", num_pages=3)
    with pytest.raises(ValueError, match="pages must have 1 source of signals, got 2"):
        Misspecified(two, partial(change_laws.bursty, two))
