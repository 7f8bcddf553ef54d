"""What entrants cost: the time of a decision, and that of their training."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crawl_envs.evaluation import make_env, play
from scripts.suite.entrants import TaskSetting
from scripts.suite.tasks import FIRST_SEED, Task
from scripts.training.evaluation import Candidate

TIMED = "noisy"
"""Task whose decisions are timed."""
WARM_UP = 1.0
"""Horizon of an episode before the timed one, in which kernels are compiled."""


class Cost(NamedTuple):
    """Costs of an entrant, in seconds.

    Attributes:
        decision: a decision with the environment's step, NaN if it cannot act in ``TIMED``.
        training: wall time of its training, NaN if unknown; 0 for policies.
    """

    decision: float
    training: float


UNKNOWN = Cost(math.nan, math.nan)
"""Costs of an entrant of an earlier run, of which only the rows are kept."""


def costs_of(
    tasks: Sequence[Task], candidates: Mapping[str, Candidate], settings: Sequence[TaskSetting]
) -> dict[str, Cost]:
    """Return the costs of every entrant."""
    times = decision_times(tasks, candidates, settings)
    return {
        label: Cost(times.get(label, math.nan), candidate.training_seconds)
        for label, candidate in candidates.items()
    }


def decision_times(
    tasks: Sequence[Task], candidates: Mapping[str, Candidate], settings: Sequence[TaskSetting]
) -> dict[str, float]:
    """Return the seconds per decision of every entrant that can act in the task ``TIMED``.

    The environment's step is included. One episode is timed, in this process.
    """
    times: dict[str, float] = {}
    for task, setting in zip(tasks, settings, strict=True):
        if task.name != TIMED:
            continue
        for label in setting.policies:
            for horizon in (WARM_UP, float(task.arguments["horizon"])):
                env = make_env(task.id, **{**task.arguments, "horizon": horizon})
                env.reset(seed=FIRST_SEED)
                policy = candidates[label].factory(env)
                start = time.perf_counter()
                play(env, policy, FIRST_SEED, compiled=False)
                slots = env.unwrapped.num_slots()  # type: ignore[attr-defined]  # a CrawlEnv
                times[label] = (time.perf_counter() - start) / slots
    return times
