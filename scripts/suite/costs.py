"""Measure the cost of entrants: time of a decision, memory, and training time."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from agents.progress import tracked
from crawl_envs.evaluation import PolicyFactory, make_env, play
from scripts.study.entrants import Candidate
from scripts.suite.entrants import TaskSetting
from scripts.suite.tasks import FIRST_SEED, MEASURED

COSTS = ("microseconds", "kilobytes", "training_seconds")
"""Time of a decision, including the environment's step; memory of the policy, as Python and NumPy
count it; processor seconds of the training, 0 for policies."""
SHORT = 1.0
"""Horizon of the episodes in which kernels are compiled and memory is counted."""


def measure_costs(
    candidates: Mapping[str, Candidate], settings: Sequence[TaskSetting], console: Console
) -> pd.DataFrame:
    """Return a table of ``COSTS`` by entrant, NaN if unknown; times an episode of ``MEASURED``."""
    costs = pd.DataFrame(index=[*candidates], columns=COSTS, dtype=float)
    costs["training_seconds"] = [candidate.training_seconds for candidate in candidates.values()]
    gc.collect()
    gc.freeze()  # collections then skip all older objects
    try:
        for setting in settings:
            timed = [*setting.policies] if setting.name == MEASURED else []
            for label in tracked(timed, "entrants timed", console, timed=True):
                costs.loc[label, ["microseconds", "kilobytes"]] = _costs(setting, label)
    finally:
        gc.unfreeze()
    return costs


def read_costs(path: Path) -> pd.DataFrame:
    """Read the table of costs by entrant from a leaderboard.csv."""
    return pd.read_csv(path).set_index("policy")[[*COSTS]].astype(float)


def _costs(setting: TaskSetting, label: str) -> tuple[float, float]:
    """Return the microseconds per decision of an entrant, and the kilobytes of its memory."""
    factory, short = setting.policies[label], {**setting.arguments, "horizon": SHORT}
    _play(setting.id, short, factory)
    tracemalloc.start()
    try:
        memory = _play(setting.id, short, factory)[1]
    finally:
        tracemalloc.stop()
    return 1e6 * _play(setting.id, setting.arguments, factory)[0], memory / 1e3


def _play(id: str, arguments: Mapping[str, Any], factory: PolicyFactory) -> tuple[float, float]:
    """Return the seconds per slot of an episode, and the bytes of the policy at its end."""
    env: Any = make_env(id, **arguments)
    env.reset(seed=FIRST_SEED)
    policy = factory(env)
    start = time.perf_counter()
    play(env, policy, FIRST_SEED, compiled=False)
    seconds = time.perf_counter() - start
    policy_bytes = 0
    if tracemalloc.is_tracing():
        gc.collect()
        together = tracemalloc.get_traced_memory()[0]
        del policy
        gc.collect()
        policy_bytes = together - tracemalloc.get_traced_memory()[0]
    return seconds / env.unwrapped.num_slots(), policy_bytes
