"""Measure how much can be learned in each preset: rewards of simple policies and of the bound.

Rewards are means per step over the seeds of comparisons, with half-widths of 95% intervals. Writes
presets.csv, provenance.json and, in a folder with a README.md, its table.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import numpy as np
import typer

import policies
from agents.progress import tracked
from agents.sb3.arguments import TrainArguments
from agents.sb3.comparison import FIRST_SEED, mean_rewards
from crawl_envs import PRESETS
from crawl_envs.evaluation import mean_and_half_width
from scripts.cli.commands import command
from scripts.cli.options import check_counts
from scripts.present.filled_tables import fill, grid
from scripts.study.rows import check_folder, provenance_at, write_csv, write_provenance
from scripts.suite.bounds import bound_reward
from scripts.suite.entrants import setting_of
from scripts.suite.suites import SUITES
from scripts.suite.tasks import POISSON

RANDOM, ROUND_ROBIN = ("RandomCrawl", "UniformCrawl"), "RoundRobin"
"""Policies of random crawling (by page, or at equal rates), and of crawling in turn."""
FORMULAS = (
    *("Greedy", "GreedyNCIS", "GreedyNCISDelayed", "BeliefNCIS", "LearningGreedyNCIS"),
    *("GreedyHarmonic", "LambdaCrawl", "LambdaCrawlApprox", "LambdaLearnAndCrawl"),
    *("FragmentStatic", "ContextualBandit"),
)
"""Policies of which the best mean is shown; a policy is skipped if it cannot act."""
COLUMNS = {
    **{"id": "`{id}`", "observation": "{observation}", "action": "{action}"},
    **{"steps per episode": "{steps:,}", "random": "{random:.3f} ± {random_half:.3f}"},
    **{"round robin": "{round_robin:.3f}", "formula": "{best:.3f} {formula}"},
    **{"bound": "{bound:.3f}", "gain": "+{gain:.3f} ± {gain_half:.3f}"},
}
"""Columns of the table: heading, and format of a cell."""


def measure(env_id: str, episodes: int) -> dict[str, Any]:
    """Return a row about a preset: shapes, mean rewards of policies, and its task's bound."""
    env: Any = gymnasium.make(env_id)
    space, action, rewards = env.observation_space, env.action_space, {}
    masked = isinstance(space, gymnasium.spaces.Dict)
    for name in (*RANDOM, ROUND_ROBIN, *FORMULAS):
        with suppress(ValueError):  # it needs another form of action, or hidden parameters
            build, arguments = partial(policies.make, name), TrainArguments(env_id=env_id)
            rewards[name] = mean_rewards(build, arguments, episodes=episodes)
    random = next(rewards[name] for name in RANDOM if name in rewards)
    formulas = [name for name in FORMULAS if name in rewards]
    best = max(formulas, key=lambda name: rewards[name].mean())
    mean, half = mean_and_half_width(random.tolist())
    gain, gain_half = mean_and_half_width((rewards[best] - random).tolist())
    family, fixed = PRESETS[env_id]
    tasks = [task for task in SUITES["crawl-v1"] if task.id == family]
    law = fixed.get("instance", tasks[0].arguments.get("instance"))
    task = next(task for task in tasks if task.arguments.get("instance") == law)
    bound = POISSON if fixed.get("action") == "shares" else task.bound
    task = replace(task, name=env_id, id=env_id, arguments={}, bound=bound)
    setting = replace(setting_of(task, {}), windows=(), first_seed=FIRST_SEED)
    bounds = [bound_reward(task, setting, seed) for seed in range(episodes)]
    return {
        "id": env_id,
        "observation": f"{(space['observation'] if masked else space).shape}{', mask' * masked}",
        "action": f"page of {action.n}" if hasattr(action, "n") else f"vector {action.shape}",
        "steps": env.spec.max_episode_steps,
        "random": mean,
        "random_half": half,
        "round_robin": np.mean(rewards.get(ROUND_ROBIN, np.nan)),
        "formula": best,
        "best": rewards[best].mean(),
        "gain": gain,
        "gain_half": gain_half,
        "bound": np.mean(bounds),
    }


def main(
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("results/presets"),
    episodes: Annotated[int, typer.Option(help="Number of seeds.")] = 8,
) -> None:
    """Measure the rewards of all presets, and write them."""
    check_counts(2, episodes=episodes)
    check_folder(out)
    start = time.perf_counter()
    rows = [measure(env_id, episodes) for env_id in tracked([*PRESETS], "presets")]
    write_csv(out / "presets.csv", [*rows[0]], ([*row.values()] for row in rows))
    if (out / "README.md").exists():
        cells = [[cell.format(**row) for cell in COLUMNS.values()] for row in rows]
        fill(out / "README.md", {"presets": grid([*COLUMNS], cells).replace(" nan ", "  ")})
    path, entry = provenance_at(out)
    write_provenance(path, "scripts.suite.preset_scores", time.perf_counter() - start, entry)
    typer.echo(f"-> {out}")


app = command(main, __doc__)

if __name__ == "__main__":
    app()
