"""Laws by name: what generators check, laws of one's own, and groups of pages."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from crawl_envs import Instance, instances
from crawl_envs.instances import LAWS, Law, traces

CONSTANT = {"kind": "constant", "mean": 0.4}


@pytest.mark.parametrize("name", instances.names())
def test_a_generator_draws_what_make_does(name):
    steps = [(1.0, 3.0)]
    draw = instances.generator_of(name, num_pages=7, bandwidth=5.0, bandwidth_steps=steps)
    made = instances.make(name, num_pages=7, bandwidth=5.0, bandwidth_steps=steps, seed=4)
    assert (draw.num_pages, draw.num_sources) == (7, made.num_sources)
    assert made.num_pages == 7
    assert draw.bandwidth == made.bandwidth == 5.0
    assert draw.bandwidth_steps == made.bandwidth_steps == ((1.0, 3.0),)
    assert instances.make(name).bandwidth == instances.generator_of(name).bandwidth
    assert LAWS[name].about


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("burst", {}, "instance 'burst' is unknown; did you mean bursty or sources"),
        ("xyz", {}, f"'xyz' is unknown; it must be one of {', '.join(instances.names())}, or a "),
        ("deploys", {"num_pages": 0}, r"num_pages must be an integer in \[1, "),
        ("quality", {"bandwidth": -1.0}, "bandwidth must be finite and > 0"),
        ("late", {"delay": CONSTANT}, "delay must be None for instance 'late'"),
        ("quality", {"delay": CONSTANT}, "delay must be None for instance 'quality'"),
        ("noisy", {"corruption": 0.1}, "corruption must be None for instance 'noisy', got 0.1"),
        ("bursty", {"num_sources": 2}, "num_sources must be None for instance 'bursty', got 2"),
        ("lambdacrawl", {"signals": "noisy"}, "signals must be None for instance 'lambdacrawl'"),
        ("uniform", {"skew": 2.0}, "skew must be None for instance 'uniform', got 2.0"),
        ("sources", {"num_sources": 16}, r"num_sources must be an integer in \[2, 15\], got 16"),
        ("random", {"signals": "loud"}, "signals must be one of none, partial, noisy, got 'loud'"),
        ("corrupted", {"corruption": 1.1}, r"corruption must lie in \[0, 1\], got 1.1"),
        ("corrupted", {"corruption": float("nan")}, "corruption must be finite and >= 0"),
        ("corrupted", {"corruption": "all"}, "corruption must be finite and >= 0, got 'all'"),
    ],
)
def test_bad_arguments_of_generators(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        instances.generator_of(name, **arguments)


def draw_mine(rng, num_pages, *, skew=1.0, **more):
    return Instance(rng.random(num_pages) ** skew, 0.5, 0.5, 0.1, **more)


@pytest.fixture
def mine(monkeypatch):
    arguments = {"skew": lambda value, _: float(value), **instances.DELAY}
    law = Law(draw_mine, "Skewed importance.", bandwidth=0.5, per_page=True, arguments=arguments)
    monkeypatch.setitem(LAWS, "mine", law)


@pytest.mark.parametrize("family", ["CrawlNCIS-v0", "CrawlHarmonic-v0"])
def test_a_law_of_ones_own_is_played(mine, family):
    sizes = {"instance": "mine", "num_pages": 6, "bandwidth": 3.0}
    drawn = instances.make("mine", num_pages=6, seed=5, bandwidth=3.0)
    assert np.array_equal(drawn.change_rate, np.full(6, 0.5))
    env = gym.make(family, horizon=4.0, **sizes)
    env.reset(seed=5)
    assert np.array_equal(env.unwrapped.instance.importance, drawn.importance)
    lanes = gym.make_vec(family, num_envs=2, horizon=4.0, **sizes)
    lanes.reset(seed=5)
    assert np.array_equal(lanes.unwrapped.instances[0].importance, drawn.importance)


def test_arguments_of_a_law_of_ones_own(mine):
    plain, skewed = (instances.make("mine", num_pages=8, skew=skew) for skew in (None, 2.0))
    assert plain.bandwidth == 4.0
    assert np.array_equal(skewed.importance, plain.importance**2)
    assert instances.make("mine", delay=CONSTANT).delay.mean == 0.4
    with pytest.raises(ValueError, match="corruption must be None for instance 'mine'"):
        gym.make("CrawlNCIS-v0", instance="mine", corruption=0.1)


# Groups of pages


def test_groups_are_always_revealed():
    instance = Instance([1.0, 2.0, 3.0], 1.0, bandwidth=1.0, group=[0, 1, 0])
    for reveal in ("parameters", "importance"):
        np.testing.assert_array_equal(instance.problem(reveal).group, [0, 1, 0])
    assert Instance(1.0, 1.0, bandwidth=1.0).problem().group is None
    with pytest.raises(ValueError, match="read-only"):
        instance.group[0] = 3


def test_groups_stay_where_sources_are_pooled():
    instance = Instance(1.0, 1.0, [[0.2, 0.3], [0.1, 0.4]], bandwidth=1.0, group=[4, 1])
    np.testing.assert_array_equal(instance.pooled().group, [4, 1])
    np.testing.assert_array_equal(instance.problem().pooled().group, [4, 1])


@pytest.mark.parametrize(
    "group", [[0, 1], [[0, 1, 2]], [0.0, 1.0, 2.0], [0, -1, 2], ["a", "b", "c"]]
)
def test_bad_groups(group):
    with pytest.raises(ValueError, match="group must be a whole number >= 0 for each of 3 pages"):
        Instance([1.0, 1.0, 1.0], 1.0, bandwidth=1.0, group=group)


def test_pages_of_a_trace_are_grouped_by_directory():
    env = gym.make("CrawlTrace-v0")
    env.reset(seed=0)
    trace = traces.load(traces.find("garden-handbook"))
    np.testing.assert_array_equal(env.unwrapped.tracker().problem.group, trace.directory)
