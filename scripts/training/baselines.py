"""Evaluate the baseline policies of a training run once, and save their rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from agents.progress import COUNT, ProgressBar
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED, mean_rewards
from crawl_envs.evaluation import BUDGET_SHARE, Row
from crawl_envs.types import BoolArray, Policy
from scripts.study.entrants import candidates_of, names_to_compare, place_of
from scripts.study.rows import read_rows, write_rows

REWARD = "reward"
"""Name of the metric for the mean reward per step of an episode."""
METRICS = (REWARD, BUDGET_SHARE)
BASELINES = "baselines.parquet"


def lane_rows(
    label: str,
    build: Callable[[Any], Policy],
    arguments: TrainArguments,
    episodes: int,
    *,
    seed: int = FIRST_SEED,
    deterministic: bool = True,
) -> list[Row]:
    """Play one episode of a policy per seed, in parallel lanes, and return rows of ``METRICS``.

    Raises:
        ValueError: arguments that the environment or the policy rejects.
    """
    shares = np.full(episodes, np.nan)

    def watched(env: Any) -> Policy:
        """Build the policy, and let lanes keep the budget share of their first episode."""
        lanes, begin_next = env.lanes, env.lanes.begin_next

        def begin(lane_mask: BoolArray) -> None:
            for lane in map(int, np.flatnonzero(lane_mask & np.isnan(shares))):
                shares[lane] = lanes.budget_share(lane, lanes.ledger(lane))
            begin_next(lane_mask)

        lanes.begin_next = begin
        return build(env)

    means = mean_rewards(
        watched, arguments, episodes=episodes, seed=seed, deterministic=deterministic
    )
    return [
        Row(arguments.env_id, "", label, seed + place, metric, float(value))
        for metric, values in zip(METRICS, (means, shares), strict=True)
        for place, value in enumerate(values)
    ]


def baseline_rows(
    arguments: TrainArguments,
    episodes: int,
    folder: Path,
    specs: Sequence[str] = (),
    *,
    seed: int = FIRST_SEED,
) -> list[Row]:
    """Evaluate the policies that can act in an environment, or read their rows from ``folder``.

    Rows are saved and reused for the same environment, policies, seeds and version of the suite.
    ``specs`` are names that :func:`scripts.study.entrants.names_to_compare` reads.

    Raises:
        ValueError: a policy of ``specs`` is unknown or cannot act here, or the file has no rows.
    """
    names = names_to_compare(arguments.env_id, specs)
    candidates = candidates_of(names)
    about = {
        **{name: getattr(arguments, name) for name in ("env_id", "env_args", "instance")},
        "episodes": episodes,
        "first_seed": seed,
        "metrics": [*METRICS],
        "policies": [
            f"{candidate.label} {candidate.digest}".strip() for candidate in candidates.values()
        ],
        "version": version("crawl-envs"),
    }
    path = folder / (BASELINES if seed == FIRST_SEED else f"{seed}-{BASELINES}")
    if path.exists():
        rows, stored = read_rows(path)
        if stored == about:
            return rows
    rows = []
    with ProgressBar(COUNT) as bar:
        task = bar.add_task("evaluating the analytic policies", total=len(names))
        for spec, (label, candidate) in zip(names, candidates.items(), strict=True):
            bar.update(task, description=f"baseline: {label}")
            try:
                rows += lane_rows(label, candidate.factory, arguments, episodes, seed=seed)
            except ValueError as error:
                if spec in specs:
                    place = place_of(error, candidate.factory)
                    raise ValueError(f"{label} cannot act here: {error}{place}") from error
                # It needs hidden parameters or another action form.
            bar.advance(task)
    write_rows(path, rows, about)
    return rows
