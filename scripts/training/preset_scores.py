"""Measure what there is to learn in each preset: random crawling beside the best formula.

Rewards are means per step over the seeds of comparisons, with 95% intervals. The best of the
formulas is chosen afterwards, by its mean. Writes ``presets.csv``, ``README.md`` (the table) and
``provenance.json``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import gymnasium
import typer

import policies
from agents.progress import COUNT, ProgressBar
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import mean_rewards
from crawl_envs import PRESETS
from crawl_envs.evaluation import mean_and_half_width
from crawl_envs.types import FloatArray
from scripts.reporting.commands import at_least, command
from scripts.reporting.rows import check_folder, write_csv, write_provenance

OUT = Path("results/presets")
RANDOM = ("RandomCrawl", "UniformCrawl")
"""Random crawling of pages, and at equal rates."""
FORMULAS = (
    *("Greedy", "GreedyNCIS", "GreedyNCISDelayed", "BeliefNCIS", "LearningGreedyNCIS"),
    *("GreedyHarmonic", "LambdaCrawl", "LambdaCrawlApprox", "LambdaLearnAndCrawl"),
    *("FragmentStatic", "ContextualBandit"),
)
"""Policies of which the best is shown, where they can act."""
PAGE = """# Presets

What there is to learn in each preset: the mean reward per step of random crawling, and how much
more the best of {count} formulas, chosen afterwards, reaches on the same {episodes} seeds, with
95% intervals. A recorded site has the same events with every seed; only crawls are random there.
Written by `python -m scripts.training.preset_scores`.

| id | observation | action | steps per episode | random | best formula | above random |
|---|---|---|---|---|---|---|
{rows}
"""


class PresetScore(NamedTuple):
    """Shapes of a preset, mean rewards per step, and their difference on the same seeds.

    ``random_half`` and ``gain_half`` are half-widths of 95% intervals.
    """

    id: str
    observation: str
    action: str
    steps: int
    random: float
    random_half: float
    formula: str
    best: float
    gain: float
    gain_half: float


def rewards(arguments: TrainArguments, episodes: int) -> dict[str, FloatArray]:
    """Return the rewards of the policies that can act in an environment, (episodes,) each."""
    found = {}
    for name in (*RANDOM, *FORMULAS):
        with suppress(ValueError):  # it needs another form of action, or hidden parameters
            found[name] = mean_rewards(partial(policies.make, name), arguments, episodes=episodes)
    return found


def scored(env_id: str, found: dict[str, FloatArray]) -> PresetScore:
    """Return the row of a preset."""
    env = gymnasium.make(env_id)
    space, action = env.observation_space, env.action_space
    masked = isinstance(space, gymnasium.spaces.Dict)
    shape = str((space["observation"] if masked else space).shape) + ", mask" * masked
    act = f"page of {action.n}" if hasattr(action, "n") else f"vector {action.shape}"
    best = max((name for name in found if name not in RANDOM), key=lambda name: found[name].mean())
    chance = next(found[name] for name in RANDOM if name in found)
    steps = env.spec.max_episode_steps if env.spec else None
    known = mean_and_half_width(chance.tolist())
    gain = mean_and_half_width((found[best] - chance).tolist())
    return PresetScore(env_id, shape, act, steps or 0, *known, best, found[best].mean(), *gain)


def scores(episodes: int) -> Iterator[PresetScore]:
    """Yield the rows of all presets; those that differ in observations alone share rewards."""
    played: dict[str, dict[str, FloatArray]] = {}
    with ProgressBar(COUNT) as bar:
        for env_id in bar.track(PRESETS, description="presets"):
            family, given = PRESETS[env_id]
            key = f"{family} { {name: given[name] for name in given if name != 'observation'} }"
            if key not in played:
                played[key] = rewards(TrainArguments(env_id=env_id), episodes)
            yield scored(env_id, played[key])


def page(rows: list[PresetScore], episodes: int) -> str:
    """Return the table as Markdown."""
    lines = (
        f"| `{row.id}` | {row.observation} | {row.action} | {row.steps:,} "
        f"| {row.random:.3f} ± {row.random_half:.3f} "
        f"| {row.best:.3f} {row.formula} | +{row.gain:.3f} ± {row.gain_half:.3f} |"
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
    write_provenance(out / "provenance.json", "scripts.training.preset_scores", seconds)
    typer.echo(f"-> {out}")


app = command(main, __doc__)

if __name__ == "__main__":
    app()
