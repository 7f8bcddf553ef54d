"""Baselines of a training run: policies evaluated once and saved with the agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import policies
from agents.progress import COUNT, ProgressBar
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED, mean_rewards
from crawl_envs.evaluation import Row, summarize
from crawl_envs.types import Policy
from scripts.reporting.comparisons import OF_FRAGMENTS, ON_FRAGMENTS, is_oracle, policy_factories
from scripts.reporting.rows import read_rows, write_rows

SIMPLE = ("RandomCrawl", "RoundRobin")
"""Policies without parameters, which any agent should exceed."""
REWARD = "reward"
"""The metric of the rows: the mean reward per step of an episode."""
BASELINES = "baselines.parquet"
USUAL = (
    *(*SIMPLE, "LambdaCrawl", "Greedy", "GreedyCIS", "GreedyNCIS"),
    *("GreedyHarmonic", "LearningGreedyNCIS", "LambdaLearnAndCrawl"),
)
"""Default policies to compare with, if they can act in the environment."""


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

    They are saved in the folder and reused for the same environment, seeds and version
    of the suite.

    Args:
        arguments: arguments of the environment.
        episodes: number of seeds.
        folder: folder of the saved rows.
        specs: as for :func:`chosen_names`.
        seed: the first seed.

    Raises:
        ValueError: a policy of ``specs`` that is unknown or cannot act here; a foreign file.
    """
    factories = policy_factories(chosen_names(arguments.env_id, specs))
    about = _about(arguments, episodes, seed, list(factories))
    path = folder / (BASELINES if seed == FIRST_SEED else f"{seed}-{BASELINES}")
    if path.exists():
        rows, stored = read_rows(path)
        if stored == about:
            return rows
    rows = []
    with ProgressBar(COUNT) as bar:
        task = bar.add_task("evaluating the analytic policies", total=len(factories))
        for label, factory in factories.items():
            bar.update(task, description=f"baseline: {label}")
            try:
                rows += lane_rows(label, factory, arguments, episodes, seed=seed)
            except ValueError:
                if label in specs:
                    raise
                # It needs hidden parameters or another action form.
            bar.advance(task)
    write_rows(path, rows, about)
    return rows


def chosen_names(env_id: str, specs: Sequence[str]) -> list[str]:
    """Return the policies to compare with: the simple ones first, and others.

    Args:
        env_id: id of the environment.
        specs: policies as ``Name`` or ``Name:key=value``; ``all`` for all without oracles; empty
            for the usual ones.
    """
    chosen = list(specs)
    if not specs:
        chosen = [*USUAL, *(ON_FRAGMENTS if env_id == OF_FRAGMENTS else ())]
    elif chosen == ["all"]:
        known = policies.names(fragments=env_id == OF_FRAGMENTS)
        chosen = [name for name in known if not is_oracle(name)]
    return list(dict.fromkeys((*SIMPLE, *chosen)))


def _about(
    arguments: TrainArguments, episodes: int, seed: int, labels: list[str]
) -> dict[str, Any]:
    plain = asdict(arguments)
    return {
        **{name: plain[name] for name in ("env_id", "env_args", "instance")},
        "episodes": episodes,
        "first_seed": seed,
        "policies": labels,
        "version": version("crawl-envs"),
    }


def best_first(rows: Sequence[Row]) -> list[str]:
    """Return the labels by decreasing mean reward, without simple policies and oracles."""
    summaries = [
        item
        for item in summarize(rows, REWARD)
        if item.policy not in SIMPLE and not is_oracle(item.policy)
    ]
    return [item.policy for item in sorted(summaries, key=lambda item: -item.mean)]


def without_duplicates(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    """Return the labels without those whose rewards equal those of an earlier label."""
    values: dict[str, list[float]] = {label: [] for label in labels}
    for row in rows:
        if row.policy in values:
            values[row.policy].append(row.value)
    first = {tuple(rewards): label for label, rewards in reversed(values.items())}
    return [label for label, rewards in values.items() if first[tuple(rewards)] == label]


def best_baseline(rows: Sequence[Row]) -> str:
    """Return the best mean reward as text, for the progress bar of the training."""
    means = {item.policy: item.mean for item in summarize(rows, REWARD)}
    return "".join(f"best analytic {label} {means[label]:.4f}" for label in best_first(rows)[:1])
