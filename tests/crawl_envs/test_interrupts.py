"""Interrupts end long compiled work within a second or so; what they leave asks for a reset."""

from __future__ import annotations

import signal
import time
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import policies
from crawl_envs import Instance, evaluation

AFTER, PATIENCE = 0.3, 2.0
"""Seconds of work before an interrupt, and in which it must end; each task takes more than 20, and
less than the former before its long loop begins."""


def busy(events, pages=100_000, requests=True, bandwidth=0.02, horizon=100.0):
    rate = np.full(pages, events / pages / horizon)
    small = np.full(pages, 1.0)
    return Instance(rate if requests else small, small if requests else rate, bandwidth=bandwidth)


def reset(events):
    env = gym.make("CrawlNCIS-v0", num_pages=100_000, horizon=100.0)
    return partial(env.reset, options={"instance": busy(events)})


def epoch(events):
    env = gym.make("CrawlHarmonic-v0", num_pages=100_000, horizon=100.0, epoch=100.0)
    env.reset(options={"instance": busy(events, requests=False)})
    return partial(env.step, np.zeros(100_000))


def episode(name, crawls, **more):
    env = gym.make(name, bandwidth=crawls / 60.0, **more)
    env.reset(seed=0)
    return partial(evaluation.play, env, policies.make("Greedy", env), 0)


def trace(crawls):
    return episode("CrawlTrace-v0", crawls, window=[60.0, 120.0])


def longevity(crawls):
    return episode("CrawlLongevity-v0", crawls, instance="random", sketch_size=1000)


def offers(crawls):
    more = {"action": "page", "reveal": "parameters", "num_pages": 100, "horizon": 60.0}
    return episode("CrawlOffers-v1", crawls, **more)


def rollout(name, instance):
    pages = instance.num_pages
    env = gym.make("CrawlNCIS-v0", num_pages=pages, horizon=1.0, bandwidth=2.0)
    return partial(evaluation.simulate, instance, policies.make(name, env), 100.0)


TASKS = {
    "reset": (reset, 9e8),
    "a long epoch": (epoch, 9e8),
    "an index": (lambda events: rollout("GreedyNCIS", busy(0.0, 20_000, bandwidth=events)), 2e4),
    "a sequence": (lambda events: rollout("RoundRobin", busy(events)), 9e8),
    "a learner": (lambda events: rollout("BeliefNCIS", busy(0.0, 10_000, bandwidth=events)), 2e4),
    "thresholds": (lambda events: rollout("ThresholdNCIS", busy(events, 1000)), 9e8),
    "rates": (lambda events: rollout("LambdaCrawl", busy(events)), 9e8),
    "a trace": (trace, 6e7),
    "fragments": (longevity, 6e7),
    "offers": (offers, 6e7),
}


@pytest.mark.parametrize("case", TASKS)
def test_an_interrupt_is_noticed(case):
    """The signal of a timer, which raises what that of a keyboard raises."""
    task, events = TASKS[case]
    task(1e-6 * events)()  # compiles
    work, before = task(events), signal.signal(signal.SIGPROF, signal.default_int_handler)
    try:
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, AFTER)
        with pytest.raises(KeyboardInterrupt):
            work()
        assert time.process_time() - start < AFTER + PATIENCE
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def interrupted(*_):
    """Raise what an interrupt raises where Python goes on."""
    raise KeyboardInterrupt


def test_what_an_interrupt_leaves_needs_a_reset(monkeypatch):
    """A step that is cut off cannot be followed by another one."""
    env = gym.make("CrawlNCIS-v0", num_pages=2, horizon=1000.0, bandwidth=0.01).unwrapped
    busy = Instance([1e4, 1e4], 1.0, bandwidth=0.01)
    env.reset(seed=0, options={"instance": busy})
    with monkeypatch.context() as patch:
        patch.setattr("crawl_envs.sim.world.World.grow_logs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            env.step(0)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)
    env.reset(seed=0, options={"instance": busy})
    again = gym.make("CrawlNCIS-v0", num_pages=2, horizon=1000.0, bandwidth=0.01).unwrapped
    again.reset(seed=0, options={"instance": busy})
    assert env.step(0)[1:] == again.step(0)[1:]
    assert env.ledger() == again.ledger()
