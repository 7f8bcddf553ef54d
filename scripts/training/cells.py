"""A cell of a study: an algorithm, an environment and a seed; the learning curve, and the score."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents.runs import read_rows
from agents.sb3.validation import VALIDATION, VALIDATION_SEED, ValidationRow
from crawl_envs.evaluation import Row, summarize
from scripts.training.baselines import REWARD, baseline_rows, lane_rows
from scripts.training.jobs import VALIDATED, Job, job_of
from scripts.training.ranking import RANDOM, RankedPolicy, best_first, compared
from scripts.training.requests import Request


class Cell(NamedTuple):
    """A trained agent.

    Attributes:
        curve: steps, and the score of its best actions on held-out seeds, while it learned.
        ranking: of the agent, with its best actions and with drawn ones, and of the policies, on
            the seeds of comparisons.
        scores: of the agent, by label: 0 for RandomCrawl and 1 for the best analytic policy, of
            the curve the best on the held-out seeds.
        best: the best analytic policy.
        seconds: of the processor, for the training alone.
    """

    curve: list[tuple[int, float]]
    ranking: list[RankedPolicy]
    scores: dict[str, float]
    best: str | None
    seconds: float


def train_cell(
    algorithm: str,
    env_id: str,
    out: Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    env_args: Mapping[str, Any] = {},
    policies: tuple[str, ...] = (),
    episodes: int = 32,
) -> Cell:
    """Train an agent by the recommended arguments in a folder, and compare it.

    Args:
        algorithm: kind of training, as of ``scripts.train``.
        env_id: id of the environment.
        out: folder of the run; one that is there goes on.
        seed: of network and episodes.
        steps: over all lanes; None for the recommended number.
        env_args: arguments of the environment.
        policies: to compare with; empty for the usual ones.
        episodes: seeds of the comparison.

    Raises:
        ValueError: arguments that do not fit, or another run in ``out``.
    """
    options = {"seed": seed} | ({} if steps is None else {"steps": steps})
    job = job_of(Request(kind=algorithm, env_id=env_id, env_args=env_args, options=options))
    job.check(out)
    started = time.process_time()
    job.run(out, progress=False)
    seconds = time.process_time() - started
    others = baseline_rows(job.environment, episodes, out, policies)
    own = agent_rows(job, out, episodes)
    ranking, best = compared(own, others, job.label)
    labels = {row.policy for row in own}
    scores = {item.policy: item.score for item in ranking if item.policy in labels}
    return Cell(curve_of(job, out, policies), ranking, scores, best, seconds)


def curve_of(job: Job, out: Path, policies: Sequence[str]) -> list[tuple[int, float]]:
    """Return steps and scores on the held-out seeds that a run played while it learned."""
    held_out = read_rows(out / VALIDATION, ValidationRow)
    others = baseline_rows(job.environment, VALIDATED, out, policies, seed=VALIDATION_SEED)
    means = {item.policy: item.mean for item in summarize(others, REWARD)}
    low, high = means[RANDOM], means[best_first(others)[0]]
    return [(row.steps, (row.mean_reward - low) / (high - low)) for row in held_out]


def agent_rows(job: Job, out: Path, episodes: int) -> list[Row]:
    """Evaluate an agent on the seeds of the comparison: its best actions, then sampled ones.

    The seeds differ from those of the training. A recorded trace, however, is the same for all
    seeds: there, and with a pinned instance, this is performance on the training data.
    """
    build = job.load(out)
    rows = lane_rows(job.label, build, job.environment, episodes)
    if job.SAMPLES:
        label = f"{job.label}, drawn"
        rows += lane_rows(label, build, job.environment, episodes, deterministic=False)
    return rows
