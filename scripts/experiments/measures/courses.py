"""Accuracy and freshness over the course of an episode, crawl by crawl."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from crawl_envs.evaluation import simulate
from crawl_envs.types import FloatArray, IntArray, Ledger, Policy
from crawl_envs.types.compiled_policies import CompilablePolicy

NOTHING = Ledger(0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)
"""The ledger at time 0."""


class Course(NamedTuple):
    """Sums from time 0 to the times of crawls 0, ``every``, 2 ``every``, ...; shape (K,) each.

    ``fresh_time`` and ``alive_time`` are those of a :class:`crawl_envs.types.Ledger`.
    """

    crawl: IntArray
    time: FloatArray
    requests: FloatArray
    hits: FloatArray
    fresh_time: FloatArray
    alive_time: FloatArray

    def accuracy(self, window: int) -> FloatArray:
        """Return the share of the requests of the last ``window`` crawls that was served fresh.

        At crawl j these are the requests after crawl j - ``window`` and up to crawl j. NaN for
        the first crawls. ``window`` must be a multiple of the crawls between two entries.
        """
        return self._share(self.hits, self.requests, window)

    def freshness(self, window: int) -> FloatArray:
        """Return the importance-weighted share of page time that was fresh, as above."""
        return self._share(self.fresh_time, self.alive_time, window)

    def _share(self, part: FloatArray, whole: FloatArray, window: int) -> FloatArray:
        every = int(self.crawl[1] - self.crawl[0])
        if window < every or window % every:
            raise ValueError(f"window must be a multiple of {every} crawls, got {window}")
        back = window // every
        share = np.full(part.size, np.nan)
        share[back:] = (part[back:] - part[:-back]) / (whole[back:] - whole[:-back])
        return share


def decisions(env: Any, policy: Any, observation: Any) -> Iterator[Any]:
    """Play an episode; yield the environment, without wrappers, before each decision, and last.

    Args:
        env: a single environment that was reset.
        policy: a policy for it, which learns in ``predict``, if at all.
        observation: of the reset.
    """
    over = False
    while not over:
        yield env.unwrapped
        action, _ = policy.predict(observation, deterministic=True)
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    yield env.unwrapped


def course(env: gymnasium.Env[Any, Any], policy: Policy, seed: int, every: int = 1) -> Course:
    """Play an episode of one crawl per slot, and return its course.

    Args:
        env: an environment with ``action="page"``.
        policy: a policy for it. A policy with a compiled form is simulated in compiled code
            first, and its crawls are given to ``step()``: the same result, faster.
        seed: of the episode, and of the instance.
        every: crawls between two entries.
    """
    observation, _ = env.reset(seed=seed)
    core: Any = env.unwrapped
    acting: Any = policy
    if isinstance(policy, CompilablePolicy):
        pages = iter(simulate(core.instance, policy, core.lanes.horizon, seed).crawls.tolist())
        acting = SimpleNamespace(predict=lambda *_, **__: (next(pages), None))
    slots = core.num_slots()
    ledgers = [NOTHING] + [
        core.ledger()
        for number, _ in enumerate(decisions(env, acting, observation), 1)
        if number % every == 0 and number <= slots
    ]
    sums = ([getattr(ledger, name) for ledger in ledgers] for name in Course._fields[1:])
    return Course(every * np.arange(len(ledgers)), *(np.array(part, float) for part in sums))
