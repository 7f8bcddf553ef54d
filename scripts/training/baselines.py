"""Baselines of a training run: policies evaluated once and saved with the agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agents.progress import COUNT, ProgressBar
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED, mean_rewards
from crawl_envs.evaluation import Row
from crawl_envs.types import Policy
from scripts.study.entrants import candidates_of, chosen_names
from scripts.study.rows import read_rows, write_rows

REWARD = "reward"
"""The metric of the rows: the mean reward per step of an episode."""
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
    """Evaluate a policy for one episode per seed, in parallel lanes; return one row per seed.

    Raises:
        ValueError: arguments that the environment or the policy rejects.
    """
    means = mean_rewards(
        build, arguments, episodes=episodes, seed=seed, deterministic=deterministic
    )
    return [
        Row(arguments.env_id, "", label, seed + place, REWARD, float(mean))
        for place, mean in enumerate(means)
    ]


def baseline_rows(
    arguments: TrainArguments,
    episodes: int,
    folder: Path,
    specs: Sequence[str] = (),
    *,
    seed: int = FIRST_SEED,
) -> list[Row]:
    """Return the rows of the policies that can act in an environment; see :func:`lane_rows`.

    They are saved in the folder and reused for the same environment, policies, seeds and version
    of the suite.

    Args:
        arguments: arguments of the environment.
        episodes: number of seeds.
        folder: folder of the saved rows.
        specs: as for :func:`scripts.study.entrants.chosen_names`.
        seed: the first seed.

    Raises:
        ValueError: a policy of ``specs`` that is unknown or cannot act here; a foreign file.
    """
    chosen = chosen_names(arguments.env_id, specs)
    candidates = candidates_of(chosen)
    about = {
        **{name: getattr(arguments, name) for name in ("env_id", "env_args", "instance")},
        "episodes": episodes,
        "first_seed": seed,
        "policies": [f"{each.label} {each.digest}".strip() for each in candidates.values()],
        "version": version("crawl-envs"),
    }
    path = folder / (BASELINES if seed == FIRST_SEED else f"{seed}-{BASELINES}")
    if path.exists():
        rows, stored = read_rows(path)
        if stored == about:
            return rows
    rows = []
    with ProgressBar(COUNT) as bar:
        task = bar.add_task("evaluating the analytic policies", total=len(chosen))
        for spec, (label, candidate) in zip(chosen, candidates.items(), strict=True):
            bar.update(task, description=f"baseline: {label}")
            try:
                rows += lane_rows(label, candidate.factory, arguments, episodes, seed=seed)
            except ValueError:
                if spec in specs:
                    raise
                # It needs hidden parameters or another action form.
            bar.advance(task)
    write_rows(path, rows, about)
    return rows
