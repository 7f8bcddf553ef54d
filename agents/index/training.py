"""Train an index on outcomes of crawls, and write it to a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import policies
from agents.index.arguments import IndexArguments
from agents.index.learning import ROUNDS, History, fit_index
from agents.index.policy import LearnedIndex
from agents.index.recording import recorded
from agents.index.stored import INDEX, StoredIndex
from agents.progress import ProgressBar
from agents.runs import CONFIG, CURVE, append_row, replace_text, write_rows
from crawl_envs.evaluation import simulate
from crawl_envs.system.files import claim, claiming
from crawl_envs.types import FloatArray

CYCLES = 24
"""Crawls per page of an explored episode."""
BASELINES = ("GreedyNCIS", "GreedyNCISApprox", "GreedyCIS", "GreedyCISPlus", "Greedy", "RoundRobin")
"""Policies to compare with; the best of them is the reference."""
ROUND = 30
"""Length of a round on the progress bar, in explored episodes."""
TRAINING_SEEDS, VALIDATION_SEEDS = 2**40, 2**41
"""First seeds of explored episodes and of validations."""


class CurveRow(NamedTuple):
    """A validation: the round, and its measurements.

    ``freshness`` of the index and of the ``reference``, the best of BASELINES, are means over the
    episodes; ``seconds`` is the wall time so far.
    """

    round: int
    freshness: float
    reference: float
    seconds: float


def validation_seeds(arguments: IndexArguments) -> range:
    """Return the seeds of the episodes of validations."""
    first = VALIDATION_SEEDS + (arguments.seed << 20)
    return range(first, first + arguments.validation_episodes)


def freshness_of(
    arguments: IndexArguments, candidates: Sequence[StoredIndex | str], seeds: Sequence[int]
) -> FloatArray:
    """Return the freshness of indices and named policies, (episodes, n), on the same events."""
    fresh = []
    for seed in seeds:
        instance = arguments.draw(seed)
        for entry in candidates:
            policy = policies.make(entry) if isinstance(entry, str) else LearnedIndex(index=entry)
            rollout = simulate(instance, policy, arguments.horizon, seed, requests=False)
            fresh.append(rollout.freshness)
    return np.array(fresh).reshape(len(seeds), len(candidates))


@claiming()
def learn_index(
    arguments: IndexArguments, out: str | Path, *, progress: bool = False
) -> StoredIndex:
    """Learn an index from outcomes of crawls, and write it to a folder.

    The folder gets ``config.json``, the arguments; ``curve.csv``, the validations after each round
    of the second fit; and at the end ``index.json``, the best index. The same arguments give the
    same index. If the folder has an index of these arguments, return it. Tests should use seeds
    below 2**40, which no training uses.

    Args:
        arguments: arguments of the exploration and the fits.
        out: the folder, created if necessary.
        progress: show a progress bar on standard error.

    Raises:
        ValueError: ``out`` holds an index of other arguments; too few crawls to learn from.
        OSError: ``out`` cannot be written.
    """
    out = Path(out)
    if (out / INDEX).exists():
        check_finished(out, arguments)
        return StoredIndex.read(out)
    out.mkdir(parents=True, exist_ok=True)
    claim(out)
    replace_text(out / CONFIG, arguments.to_json())
    write_rows(out / CURVE, CurveRow, ())
    episodes = -(-arguments.crawls // (CYCLES * arguments.of_exploration().num_pages))
    with ProgressBar("{task.fields[gap]}", visible=progress) as bar:
        total = episodes + ROUND * ROUNDS
        task = bar.add_task("exploring", total=total, gap="")
        histories = []
        for number in range(episodes):
            histories.append(explore(arguments, number))
            bar.advance(task)
        bar.update(task, description="learning")
        best = _fit(arguments, histories, out, lambda gap: bar.update(task, advance=ROUND, gap=gap))
    index_of(arguments, best).save(out)
    return StoredIndex.read(out)


def _fit(
    arguments: IndexArguments,
    histories: Sequence[History],
    out: Path,
    tick: Callable[[str], None],
) -> FloatArray:
    """Fit an index, and return the weights with the best validation; call ``tick`` per round."""
    started, best, best_freshness, gap = time.perf_counter(), np.zeros(0), -np.inf, ""
    validation, seeds = replace(arguments, bandwidth_spread=1.0), validation_seeds(arguments)
    reference = BASELINES[int(np.argmax(freshness_of(validation, BASELINES, seeds).mean(axis=0)))]
    rng = np.random.default_rng([arguments.seed, 2])
    for result in fit_index(histories, arguments.hidden, arguments.learning_rate, rng):
        if result.weights is not None:
            index = index_of(arguments, result.weights)
            freshness, baseline = freshness_of(validation, [index, reference], seeds).mean(axis=0)
            seconds = round(time.perf_counter() - started, 3)
            row = CurveRow(result.number, float(freshness), float(baseline), seconds)
            append_row(out / CURVE, row)
            gap = f"{freshness - baseline:+.4f} against {reference}"
            if freshness > best_freshness:
                best, best_freshness = result.weights, freshness
        tick(gap)
    return best


def check_finished(out: Path, arguments: IndexArguments) -> None:
    """Raise ValueError unless the index in a folder was learned with these arguments."""
    index = StoredIndex.read(out)
    if "log" in index.made:
        raise ValueError(f"{out} holds an index that was not learned from random crawls")
    try:
        earlier = IndexArguments(**index.made)
    except TypeError as error:
        raise ValueError(f"{out / INDEX} is damaged: {error}") from None
    arguments.check_resumes(earlier)


def index_of(arguments: IndexArguments, weights: FloatArray) -> StoredIndex:
    """Return an index with the given weights and the arguments of its training."""
    return StoredIndex(weights, json.loads(arguments.to_json()))


def explore(arguments: IndexArguments, number: int) -> History:
    """Explore episode ``number`` of the training by random crawls; return its history."""
    seed = TRAINING_SEEDS + (arguments.seed << 20) + number
    instance = arguments.of_exploration().draw(seed)
    slots = CYCLES * instance.num_pages
    end = slots / instance.bandwidth
    record = recorded(instance, end, slots, seed)
    return History(record, instance.problem(), end)
