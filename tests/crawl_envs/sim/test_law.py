"""Instances that draw their own events: the same events in environments and rollouts."""

import gymnasium as gym
import numpy as np
import pytest

import policies
from crawl_envs import Instance
from crawl_envs.evaluation import play, simulate
from crawl_envs.sim.law import CustomEvents
from crawl_envs.sim.streams import generator, roots
from crawl_envs.sim.tape import Tape
from crawl_envs.sim.world import World


class Clockwork(CustomEvents):
    """Every page changes at whole times; signals are a little late, requests come at halves."""

    def draw_tape(self, rng, horizon):
        time = np.repeat(np.arange(1.0, horizon), self.num_pages)
        page = np.tile(np.arange(self.num_pages), time.size // self.num_pages)
        late = time + rng.uniform(0.0, 0.3, time.size)
        return Tape.of_events(
            self.num_pages, changes=(time, page), signals=(late, page), requests=(time + 0.5, page)
        )


def clockwork(num_pages=3, bandwidth=2.0):
    return Clockwork(1.0, np.ones(num_pages), 0.5, 0.1, bandwidth=bandwidth)


def env_of(**arguments):
    return gym.make("CrawlNCIS-v0", num_pages=3, bandwidth=2.0, horizon=8.0, **arguments)


def test_rollouts_have_the_same_events():
    env = env_of()
    env.reset(seed=7, options={"instance": clockwork()})
    policy = policies.make("GreedyNCIS", env)
    quick = play(env, policy, 7)
    core = env.unwrapped
    observation, _ = env.reset(seed=7, options={"instance": clockwork()})
    over = False
    while not over:
        observation, _, _, over, _ = env.step(policy.predict(observation)[0])
    assert quick == core.ledger()
    rollout = simulate(clockwork(), policy, 8.0, seed=7)
    assert rollout.ledger == quick


def test_drawn_events_return_with_an_instance_of_rates():
    env = env_of()
    env.reset(seed=1, options={"instance": clockwork()})
    plain = Instance(1.0, np.zeros(3), bandwidth=2.0)
    env.reset(seed=1, options={"instance": plain})
    for _ in range(10):
        env.step(0)
    assert env.unwrapped.ledger().changes == 0


def test_requests_are_left_out_where_none_are_played():
    instance, root = clockwork(), roots(0)
    world = World(1, 3, horizon=8.0, requests=False)
    world.set_instance(0, instance)
    tape = instance.draw_tape(generator(root.tape, 0), 8.0)
    world.set_tape(0, tape)
    assert world.state.lanes["length"][0] == tape.time.size - 21


@pytest.mark.parametrize(
    ("tape", "message"),
    [
        (Tape.of_events(2), "of 3 pages and 1 sources"),
        (Tape.of_events(3, num_sources=2), "of 3 pages and 1 sources"),
        (Tape.of_events(3, deaths=([1.0], [0])), "without births and deaths"),
    ],
)
def test_tapes_that_do_not_fit(tape, message):
    world = World(1, 3, horizon=8.0)
    with pytest.raises(ValueError, match=message):
        world.set_tape(0, tape)
