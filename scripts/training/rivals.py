"""The policies that an agent is measured against, played once and kept beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import policies
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED, mean_rewards
from crawl_envs.evaluation import Row, summarize
from crawl_envs.types import Policy
from scripts.reporting.comparisons import OF_FRAGMENTS, is_oracle, policy_factories
from scripts.reporting.rows import read_rows, write_rows

SIMPLE = ("RandomCrawl", "RoundRobin")
"""Policies that need to know nothing, the bar that any agent should clear."""
REWARD = "reward"
"""The metric of the rows: the mean reward per step of an episode."""
RIVALS = "rivals.parquet"


def lane_rows(
    label: str,
    build: Callable[[Any], Policy],
    arguments: TrainArguments,
    episodes: int,
    *,
    seed: int = FIRST_SEED,
    deterministic: bool = True,
) -> list[Row]:
    """Play a policy for an episode on each seed, all together, and return a row for each.

    Raises:
        ValueError: what the environment or the policy objects to.
    """
    means = mean_rewards(
        build, arguments, episodes=episodes, seed=seed, deterministic=deterministic
    )
    return [
        Row(arguments.env_id, "", label, seed + place, REWARD, float(mean))
        for place, mean in enumerate(means)
    ]


def rival_rows(
    arguments: TrainArguments,
    episodes: int,
    folder: Path,
    specs: Sequence[str] = (),
) -> list[Row]:
    """Return the rows of the policies that can act in an environment; see :func:`lane_rows`.

    They are kept in ``rivals.parquet`` and not played again for the same environment, seeds and
    version of the suite.

    Args:
        arguments: which environment.
        episodes: number of seeds.
        folder: where the rows are kept.
        specs: policies as ``Name`` or ``Name:key=value``; none takes all that can act and are no
            oracles.

    Raises:
        ValueError: a policy of ``specs`` that is unknown or cannot act here; a foreign file.
    """
    factories = policy_factories([*SIMPLE, *specs] if specs else all_names(arguments.env_id))
    about = _about(arguments, episodes, list(factories))
    path = folder / RIVALS
    if path.exists():
        rows, told = read_rows(path)
        if told == about:
            return rows
    rows = []
    with _progress() as bar:
        task = bar.add_task("playing the analytic policies", total=len(factories))
        for label, factory in factories.items():
            bar.update(task, description=f"to compare with: {label}")
            try:
                rows += lane_rows(label, factory, arguments, episodes)
            except ValueError:
                if label in specs:
                    raise
                # It needs what this environment does not reveal, or another action.
            bar.advance(task)
    write_rows(path, rows, about)
    return rows


def all_names(env_id: str) -> list[str]:
    """Return the policies for an environment, the simple ones first, without oracles."""
    known = policies.names(fragments=env_id == OF_FRAGMENTS)
    return [*SIMPLE, *(name for name in known if name not in SIMPLE and not is_oracle(name))]


def _about(arguments: TrainArguments, episodes: int, labels: list[str]) -> dict[str, Any]:
    told = asdict(arguments)
    return {
        **{name: told[name] for name in ("env_id", "env_args", "instance")},
        "episodes": episodes,
        "first_seed": FIRST_SEED,
        "policies": labels,
        "version": version("crawl-envs"),
    }


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:40.40}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )


def best_first(rows: Sequence[Row]) -> list[str]:
    """Return the labels of policies by mean reward, the best first, without simple and oracles."""
    found = [
        item
        for item in summarize(rows, REWARD)
        if item.policy not in SIMPLE and not is_oracle(item.policy)
    ]
    return [item.policy for item in sorted(found, key=lambda item: -item.mean)]


def that_differ(rows: Sequence[Row], labels: Sequence[str]) -> list[str]:
    """Return the labels but for those that did on every seed just what an earlier one did."""
    values: dict[str, list[float]] = {label: [] for label in labels}
    for row in rows:
        if row.policy in values:
            values[row.policy].append(row.value)
    first = {tuple(found): label for label, found in reversed(values.items())}
    return [label for label, found in values.items() if first[tuple(found)] == label]


def beside(rows: Sequence[Row]) -> str:
    """Return the best mean reward in words, to show beside that of an agent that learns."""
    means = {item.policy: item.mean for item in summarize(rows, REWARD)}
    return "".join(f"best analytic {label} {means[label]:.4f}" for label in best_first(rows)[:1])
