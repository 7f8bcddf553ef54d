"""Learning an index from outcomes of crawls: from arguments to a folder with the index."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from agents.evolution import stored
from agents.evolution.arguments import OutcomeArguments
from agents.evolution.fitness import freshness_of
from agents.evolution.outcomes.learning import STALENESS_ROUNDS, VALUE_ROUNDS, History, learned
from agents.evolution.outcomes.recording import recorded
from agents.evolution.stored import OUTCOMES, StoredIndex, read_index, save_index
from agents.evolution.train import TRAINING_SEEDS, CurveRow, validation_seeds
from agents.progress import ProgressBar
from agents.runs import CONFIG, CURVE, append_row, replace_text, write_rows
from crawl_envs.types import FloatArray
from crawl_envs.types.files import claim, claiming

CYCLES = 24
"""Crawls per page of an explored episode."""
RIVALS = ("GreedyNCIS", "GreedyNCISApprox", "GreedyCIS", "GreedyCISPlus", "Greedy", "RoundRobin")
"""Policies to compare with; the best is the reference."""
ROUND = 30
"""Length of a round on the progress bar, in explored episodes."""


@claiming()
def learn_index(
    arguments: OutcomeArguments, out: str | Path, *, resume: bool = False, progress: bool = False
) -> StoredIndex:
    """Learn an index from outcomes of crawls, and write it to a folder.

    The folder gets ``config.json``, the arguments; ``curve.csv``, the validations after each round
    of the second fit (``generation`` is the round); and at the end ``index.json``, the best of
    these. The same arguments give the same index. Explored episodes and validations have the seeds
    of :func:`agents.evolution.train.evolve`: tests should use seeds below 2**40.

    Args:
        arguments: of the exploration and the fits.
        out: the folder, made if need be.
        resume: return the index in ``out`` if there is one of the same arguments.
        progress: show a progress bar on standard error.

    Raises:
        ValueError: ``out`` holds an index and ``resume`` is False, or it is one of other arguments;
            too few crawls to learn from.
        OSError: ``out`` cannot be written.
    """
    out = Path(out)
    if (out / stored.INDEX).exists():
        if not resume:
            raise ValueError(f"{out} holds an index already; choose another folder")
        check_finished(out, arguments)
        return read_index(out)
    out.mkdir(parents=True, exist_ok=True)
    claim(out)
    replace_text(out / CONFIG, arguments.to_json())
    write_rows(out / CURVE, CurveRow, ())
    episodes = -(-arguments.crawls // (CYCLES * arguments.of_exploration().num_pages))
    with ProgressBar("{task.fields[gap]}", shown=progress) as bar:
        total = episodes + ROUND * (STALENESS_ROUNDS + VALUE_ROUNDS)
        task = bar.add_task("exploring", total=total, gap="")
        histories = []
        for number in range(episodes):
            histories.append(explore(arguments, number))
            bar.advance(task)
        bar.update(task, description="learning")
        best = _fit(arguments, histories, out, lambda gap: bar.update(task, advance=ROUND, gap=gap))
    save_index(out, index_of(arguments, best))
    return read_index(out)


def _fit(
    arguments: OutcomeArguments,
    histories: Sequence[History],
    out: Path,
    tick: Callable[[str], None],
) -> FloatArray:
    """Return the weights of the best validation; ``tick`` is told of each round."""
    started, best, best_freshness, gap = time.perf_counter(), np.zeros(0), -np.inf, ""
    played, seeds = replace(arguments, bandwidth_spread=1.0), validation_seeds(arguments)
    reference = RIVALS[int(np.argmax(freshness_of(played, RIVALS, seeds).mean(axis=0)))]
    rng = np.random.default_rng([arguments.seed, 2])
    rounds = learned(histories, arguments.hidden, arguments.learning_rate, rng)
    for number, (_, free) in enumerate(rounds, start=1 - STALENESS_ROUNDS):
        if free is not None:
            rival = index_of(arguments, free)
            mine, theirs = freshness_of(played, [rival, reference], seeds).mean(axis=0)
            seconds = round(time.perf_counter() - started, 3)
            append_row(out / CURVE, CurveRow(number, float(mine), float(theirs), seconds))
            gap = f"{mine - theirs:+.4f} against {reference}"
            if mine > best_freshness:
                best, best_freshness = free, mine
        tick(gap)
    return best


def check_finished(out: Path, arguments: OutcomeArguments) -> None:
    """Raise ValueError unless the index in a folder was learned with these arguments."""
    index = read_index(out)
    if index.base != OUTCOMES or "log" in index.made:
        raise ValueError(
            f"{out} holds an index that was not learned from outcomes of random crawls"
        )
    try:
        earlier = OutcomeArguments(**index.made)
    except TypeError as error:
        raise ValueError(f"{out / stored.INDEX} is damaged: {error}") from None
    arguments.check_resumes(earlier)


def index_of(arguments: OutcomeArguments, free: FloatArray) -> StoredIndex:
    """Return an index of the given weights, with the arguments of its run."""
    return StoredIndex(free, OUTCOMES, json.loads(arguments.to_json()))


def explore(arguments: OutcomeArguments, number: int) -> History:
    """Return what a crawler sees that explores in an episode."""
    seed = TRAINING_SEEDS + (arguments.seed << 20) + number
    instance = arguments.of_exploration().draw(seed)
    slots = CYCLES * instance.num_pages
    end = slots / instance.bandwidth
    record = recorded(instance, end, slots, seed)
    return History(record, instance.problem().pooled(), end)
