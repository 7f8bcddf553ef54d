"""Measure what there is to learn in each preset: random crawling, the best formula, the bound.

Rewards are means per step over the seeds of comparisons, with 95% intervals. The best of the
formulas is chosen afterwards, by its mean. Writes ``presets.csv``, ``README.md`` (the table) and
``provenance.json``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import gymnasium
import numpy as np
import typer

import policies
from agents.progress import COUNT, ProgressBar
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED, mean_rewards
from crawl_envs import PRESETS
from crawl_envs.evaluation import mean_and_half_width
from crawl_envs.types import FloatArray
from scripts.cli.commands import command
from scripts.cli.options import at_least
from scripts.study.rows import check_folder, provenance_at, write_csv, write_provenance
from scripts.suite.entrants import bound_reward, setting_of
from scripts.suite.tasks import (
    CLAIRVOYANT,
    HARMONIC,
    LONGEVITY,
    OFFERS,
    OPTIMUM,
    ORACLE,
    PERFECT,
    PERIODIC,
    POISSON,
    TRACE,
    Task,
)

OUT = Path("results/presets")
ROUND_ROBIN, RANDOM = "RoundRobin", ("RandomCrawl", "UniformCrawl")
"""Random crawling of pages, and at equal rates."""
FORMULAS = (
    *("Greedy", "GreedyNCIS", "GreedyNCISDelayed", "BeliefNCIS", "LearningGreedyNCIS"),
    *("GreedyHarmonic", "LambdaCrawl", "LambdaCrawlApprox", "LambdaLearnAndCrawl"),
    *("FragmentStatic", "ContextualBandit"),
)
"""Policies of which the best is shown, where they can act."""
PAGE = """# Presets

What there is to learn in each preset: the mean reward per step of random crawling, of round robin,
of the best of {count} formulas, chosen afterwards, and how much more than random crawling this one
reaches on the same {episodes} seeds, with 95% intervals. [Bounds](../crawl-v1/README.md) are those
of the suite; those of episodes that start fresh can be exceeded. A recorded site has the same
events with every seed; only crawls are random there.
Written by `python -m scripts.suite.preset_scores`.

| id | observation | action | steps per episode | random | round robin | formula | bound | gain |
|---|---|---|---|---|---|---|---|---|
{rows}
"""


class PresetScore(NamedTuple):
    """Shapes of a preset, mean rewards per step, and their difference on the same seeds.

    ``random_half`` and ``gain_half`` are half-widths of 95% intervals; ``round_robin`` is NaN where
    actions are rates.
    """

    id: str
    observation: str
    action: str
    steps: int
    random: float
    random_half: float
    round_robin: float
    formula: str
    best: float
    gain: float
    gain_half: float
    bound: float


UNREACHED = ("bursty", "periodic", "deploys", "shifting")
"""Laws without another bound than no stale page."""
BOUND_OF = {HARMONIC: PERIODIC, LONGEVITY: ORACLE, TRACE: CLAIRVOYANT, OFFERS: PERFECT}
"""Bounds by family, as of the tasks of the suite."""
METRICS = {HARMONIC: "penalty", LONGEVITY: "divergence"}


def bound(env_id: str, episodes: int) -> float:
    """Return the mean reward of the bound of a preset, on the same seeds."""
    family, given = PRESETS[env_id]
    kind = PERFECT if given.get("instance") in UNREACHED else BOUND_OF.get(family, OPTIMUM)
    if given.get("action") == "shares":
        kind = POISSON
    task = Task(env_id, "", env_id, {}, METRICS.get(family, "freshness"), kind)
    setting = replace(setting_of(task, {}), windows=(), first_seed=FIRST_SEED)
    return float(np.mean([bound_reward(task, setting, seed) for seed in range(episodes)]))


def rewards(arguments: TrainArguments, episodes: int) -> dict[str, FloatArray]:
    """Return the rewards of the policies that can act in an environment, (episodes,) each."""
    found = {}
    for name in (*RANDOM, ROUND_ROBIN, *FORMULAS):
        with suppress(ValueError):  # it needs another form of action, or hidden parameters
            found[name] = mean_rewards(partial(policies.make, name), arguments, episodes=episodes)
    return found


def scored(env_id: str, found: dict[str, FloatArray], most: float) -> PresetScore:
    """Return the row of a preset whose bound is ``most``."""
    env = gymnasium.make(env_id)
    space, action = env.observation_space, env.action_space
    masked = isinstance(space, gymnasium.spaces.Dict)
    shape = str((space["observation"] if masked else space).shape) + ", mask" * masked
    act = f"page of {action.n}" if hasattr(action, "n") else f"vector {action.shape}"
    best = max((name for name in FORMULAS if name in found), key=lambda name: found[name].mean())
    chance = next(found[name] for name in RANDOM if name in found)
    steps = env.spec.max_episode_steps if env.spec else None
    known = mean_and_half_width(chance.tolist())
    gain = mean_and_half_width((found[best] - chance).tolist())
    turns = found[ROUND_ROBIN].mean() if ROUND_ROBIN in found else math.nan
    reached = best, found[best].mean()
    return PresetScore(env_id, shape, act, steps or 0, *known, turns, *reached, *gain, most)


def scores(episodes: int) -> Iterator[PresetScore]:
    """Yield the rows of all presets; those that differ in observations alone share rewards."""
    played: dict[str, tuple[dict[str, FloatArray], float]] = {}
    with ProgressBar(COUNT) as bar:
        for env_id in bar.track(PRESETS, description="presets"):
            family, given = PRESETS[env_id]
            key = f"{family} { {name: given[name] for name in given if name != 'observation'} }"
            if key not in played:
                found = rewards(TrainArguments(env_id=env_id), episodes)
                played[key] = found, bound(env_id, episodes)
            yield scored(env_id, *played[key])


def page(rows: list[PresetScore], episodes: int) -> str:
    """Return the table as Markdown."""
    lines = (
        f"| `{row.id}` | {row.observation} | {row.action} | {row.steps:,} "
        f"| {row.random:.3f} ± {row.random_half:.3f} "
        f"| {'' if math.isnan(row.round_robin) else f'{row.round_robin:.3f}'} "
        f"| {row.best:.3f} {row.formula} | {row.bound:.3f} "
        f"| +{row.gain:.3f} ± {row.gain_half:.3f} |"
        for row in rows
    )
    return PAGE.format(count=len(FORMULAS), episodes=episodes, rows="\n".join(lines))


def main(
    out: Annotated[Path, typer.Option(help="Output folder.")] = OUT,
    episodes: Annotated[int, typer.Option(help="Number of seeds.")] = 8,
) -> None:
    """Measure and write."""
    at_least(2, episodes=episodes)
    check_folder(out)
    start = time.perf_counter()
    rows = list(scores(episodes))
    write_csv(out / "presets.csv", PresetScore._fields, rows)
    (out / "README.md").write_text(page(rows, episodes), "utf-8")
    seconds = time.perf_counter() - start
    path, entry = provenance_at(out)
    write_provenance(path, "scripts.suite.preset_scores", seconds, entry)
    typer.echo(f"-> {out}")


app = command(main, __doc__)

if __name__ == "__main__":
    app()
