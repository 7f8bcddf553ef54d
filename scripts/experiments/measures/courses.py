"""Record accuracy and freshness over the course of an episode."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from crawl_envs.evaluation import simulate
from crawl_envs.types import FloatArray, Ledger, Policy
from crawl_envs.types.compiled_policies import CompilablePolicy

NOTHING = Ledger(0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)
"""The ledger at time 0."""


class Course(NamedTuple):
    """Running totals of an episode's ledger at crawls 0, ``every``, 2 ``every``, ...; (K,) each."""

    time: FloatArray
    requests: FloatArray
    hits: FloatArray
    fresh_time: FloatArray
    alive_time: FloatArray


def recent_share(part: FloatArray, total: FloatArray, entries: int) -> FloatArray:
    """Return a part's share of the total in the last ``entries`` entries; NaN at the start."""
    share = np.full(part.size, np.nan)
    share[entries:] = (part[entries:] - part[:-entries]) / (total[entries:] - total[:-entries])
    return share


def decisions(env: Any, policy: Any, observation: Any) -> Iterator[Any]:
    """Run an episode; yield the unwrapped environment before each decision, and once at the end.

    Args:
        env: a single environment after a reset.
        policy: a policy for it; a learner learns in ``predict``.
        observation: observation of the reset.
    """
    over = False
    while not over:
        yield env.unwrapped
        action, _ = policy.predict(observation, deterministic=True)
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    yield env.unwrapped


def course(env: gymnasium.Env[Any, Any], policy: Policy, seed: int, every: int = 1) -> Course:
    """Run an episode of one crawl per slot, and return its running totals.

    Args:
        env: an environment with ``action="page"``.
        policy: a policy for it. A policy with a compiled form is first simulated in compiled
            code, and ``step()`` repeats its crawls: the same result, faster.
        seed: seed of the episode and the instance.
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
    sums = ([getattr(ledger, name) for ledger in ledgers] for name in Course._fields)
    return Course(*(np.array(part, float) for part in sums))
