"""Interrupts end long compiled work within a second or so; what they leave asks for a reset."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import gymnasium as gym
import pytest
from gymnasium.error import ResetNeeded

import crawl_envs  # noqa: F401
from crawl_envs import Instance

PATIENCE = 5.0
"""Seconds in which an interrupted process must end; each of the tasks takes more than 20."""

PREPARED = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import gymnasium, numpy as np
import crawl_envs, policies
from crawl_envs import Instance
from crawl_envs import evaluation
from crawl_envs.evaluation import simulate

def busy(events, pages=100_000, requests=True, bandwidth=0.02, horizon=100.0):
    rate = np.full(pages, events / pages / horizon)
    small = np.full(pages, 1.0)
    return Instance(rate if requests else small, small if requests else rate, bandwidth=bandwidth)

def reset(events):
    env = gymnasium.make("CrawlNCIS-v0", num_pages=100_000, horizon=100.0)
    env.reset(options={"instance": busy(events)})

def epoch(events):
    env = gymnasium.make("CrawlHarmonic-v0", num_pages=100_000, horizon=100.0, epoch=100.0)
    env.reset(options={"instance": busy(events, requests=False)})
    env.step(np.zeros(100_000))

def episode(name, crawls, days, **more):
    env = gymnasium.make(name, bandwidth=crawls / days, **more)
    env.reset(seed=0)
    evaluation.play(env, policies.make("Greedy", env), 0)

def trace(crawls):
    episode("CrawlTrace-v0", crawls, 60.0, window=[60.0, 120.0])

def longevity(crawls):
    episode("CrawlLongevity-v0", crawls, 60.0, instance="random", sketch_size=1000)

def offers(crawls):
    more = {"action": "page", "reveal": "parameters", "num_pages": 100, "horizon": 60.0}
    episode("CrawlOffers-v1", crawls, 60.0, **more)

def play(name, instance):
    pages = instance.num_pages
    env = gymnasium.make("CrawlNCIS-v0", num_pages=pages, horizon=1.0, bandwidth=2.0)
    simulate(instance, policies.make(name, env), 100.0)

def index(events):
    play("GreedyNCIS", busy(0.0, 20_000, bandwidth=events))

def learner(events):
    play("BeliefNCIS", busy(0.0, 10_000, bandwidth=events))

def sequence(events):
    play("RoundRobin", busy(events))

def thresholds(events):
    play("ThresholdNCIS", busy(events))

def rates(events):
    play("LambdaCrawl", busy(events))
"""

TASKS = {
    "reset": ("reset", 9e8),
    "a long epoch": ("epoch", 9e8),
    "an index": ("index", 9e5),
    "a sequence": ("sequence", 9e8),
    "a learner": ("learner", 9e5),
    "thresholds": ("thresholds", 9e8),
    "rates": ("rates", 9e8),
    "a trace": ("trace", 6e7),
    "fragments": ("longevity", 6e7),
    "offers": ("offers", 6e7),
}


@pytest.mark.parametrize("case", TASKS)
def test_an_interrupt_is_noticed(case):
    task, events = TASKS[case]
    program = f"{PREPARED}\n{task}({1e-6 * events})\nprint('ready', flush=True)\n{task}({events})"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            time.sleep(3.0)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            _, errors = process.communicate(timeout=4.0 * PATIENCE)
            took = time.monotonic() - start
        finally:
            process.kill()
    assert "KeyboardInterrupt" in errors
    assert took < PATIENCE


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
