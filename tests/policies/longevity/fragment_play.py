"""Episodes of CrawlLongevity-v0 for tests of policies."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

import crawl_envs
from policies import bind

crawl_envs.register_envs()


def fragments(action="refresh", *, m=40, bandwidth=None, horizon=20.0, **more):
    """An environment; in the form refresh a tick is half a day."""
    budget = 2.0 if action == "refresh" else 0.2 * m
    given = {"num_pages": m, "bandwidth": bandwidth or budget, "horizon": horizon, **more}
    return gym.make("CrawlLongevity-v0", action=action, **given)


def play(env, policy, seed=0, each=None):
    """Play an episode and return its ledger; ``each`` is called with every log."""
    observation, _ = env.reset(seed=seed)
    done = False
    while not done:
        action, _ = policy.predict(observation)
        observation, _, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
        if each is not None:
            each(env.unwrapped.last_log(0), env.unwrapped.tracker(0))
    return env.unwrapped.ledger(0)


def crawls(env, policy, seed=0):
    """The crawls of an episode, (page, time) pairs."""
    result = []
    play(env, policy, seed, lambda log, _: result.extend(zip(log.page, log.time, strict=True)))
    return [(int(page), float(time)) for page, time in result]


def cost(ledger, m):
    """Refreshes per page and unit time."""
    return ledger.crawls / m / ledger.time


def mean_divergence(make, env, seeds):
    """Mean over seeds of the divergence of an episode."""
    return float(np.mean([play(env, bind(make(), env), seed).divergence for seed in seeds]))
