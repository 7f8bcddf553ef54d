"""Evolving a correction: from arguments to a folder for :func:`agents.evolution.load_index`."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.evolution import stored
from agents.evolution.arguments import EpisodeArguments, EvolutionArguments
from agents.evolution.corrected_belief import initial_correction
from agents.evolution.fitness import Candidate, Map, freshness_of, mapping
from agents.evolution.stored import StoredIndex, chosen_inputs, read_index, save_index
from agents.evolution.strategy import Centre, candidates_of, noise_of, start_at, stepped
from agents.progress import COUNT, ProgressBar
from agents.runs import CONFIG, CURVE, append_row, read_object, read_rows, replace_text, write_rows
from crawl_envs.types import FloatArray
from crawl_envs.types.files import claim, claiming

STATE = "state.json"
STATE_FORMAT = "crawl-envs evolution 1"
SAVE_EVERY = 10
"""Generations between two saves of the state."""
TRAINING_SEEDS, VALIDATION_SEEDS = 2**40, 2**41
"""Episodes of the search have seeds in [2**40, 2**41), those of validations from 2**41 on."""


class CurveRow(NamedTuple):
    """A validation: generations so far, and its measurements.

    ``freshness`` of the averaged centre, ``reference`` that of the policy it is compared with, both
    means over the episodes; ``seconds`` of wall time so far, including earlier runs.
    """

    generation: int
    freshness: float
    reference: float
    seconds: float


@dataclass(eq=False)
class Run:
    """State of a run."""

    arguments: EvolutionArguments
    centre: Centre
    best: FloatArray
    best_freshness: float


def training_seeds(arguments: EvolutionArguments, generation: int) -> list[int]:
    """Return the seeds of a generation's episodes."""
    state = np.random.SeedSequence([arguments.seed, 1, generation])
    drawn = state.generate_state(arguments.episodes, np.uint64)
    return [TRAINING_SEEDS + int(each) % TRAINING_SEEDS for each in drawn]


def validation_seeds(arguments: EpisodeArguments) -> list[int]:
    """Return the seeds of the episodes of validations."""
    first = VALIDATION_SEEDS + (arguments.seed << 20)
    return list(range(first, first + arguments.validation_episodes))


@claiming()
def evolve(
    arguments: EvolutionArguments,
    out: str | Path,
    *,
    resume: bool = False,
    workers: int = 1,
    progress: bool = False,
) -> StoredIndex:
    """Evolve a correction of BELIEF-NCIS from reward alone, and write it to a folder.

    All candidates of a generation play the same episodes, new ones in every generation; their
    fitness is the freshness. The folder gets ``index.json``, the averaged centre that was best on
    the validation episodes; ``config.json``, the arguments; ``curve.csv``, the validations; and
    ``state.json``, from which a run can be resumed without a difference in results. The same
    arguments give the same index with any number of workers. Tests should use seeds below 2**40,
    which no run plays.

    Args:
        arguments: of the evolution.
        out: the folder, made if need be.
        resume: resume the run in ``out``, if there is one.
        workers: number of processes, >= 1.
        progress: show a progress bar on standard error.

    Returns:
        The index.

    Raises:
        ValueError: ``workers`` below 1; ``out`` holds a run and ``resume`` is False, or one with
            other arguments, or with a damaged state.
        OSError: ``out`` cannot be written.
    """
    if type(workers) is not int or workers < 1:
        raise ValueError(f"workers must be an integer >= 1, got {workers!r}")
    out = Path(out)
    resuming = (out / STATE).exists()
    if (resuming or (out / stored.INDEX).exists()) and not resume:
        raise ValueError(f"{out} holds an index already; resume it, or choose another folder")
    run = read_state(out / STATE, arguments) if resuming else begun(arguments)
    out.mkdir(parents=True, exist_ok=True)
    claim(out)
    replace_text(out / CONFIG, arguments.to_json())
    with mapping(workers) as each:
        if run.best_freshness > -math.inf:
            save_index(out, index_of(arguments, run.best))
        # Rows after the generation from which the run resumes are dropped.
        done = run.centre.generation
        rows = read_rows(out / CURVE, CurveRow) if done else []
        rows = [row for row in rows if row.generation <= done]
        write_rows(out / CURVE, CurveRow, rows)
        earlier = rows[-1].seconds if rows else 0.0
        _search(run, each, out, time.perf_counter() - earlier, progress)
    return read_index(out)


def index_of(arguments: EvolutionArguments, free: FloatArray) -> StoredIndex:
    """Return an index of the given weights, with the arguments of its run."""
    made = json.loads(arguments.to_json())
    seen = tuple(arguments.inputs)
    return StoredIndex(free, arguments.base, made, arguments.day, seen)


def begun(arguments: EvolutionArguments) -> Run:
    """Return the initial state of a run."""
    free = first_weights(arguments)
    return Run(arguments, start_at(free), free, -math.inf)


def first_weights(arguments: EvolutionArguments) -> FloatArray:
    """Return the initial weights of a run, which correct nothing."""
    inputs = chosen_inputs(arguments.base, arguments.inputs)
    rng = np.random.default_rng([arguments.seed, 2])
    return initial_correction(arguments.hidden, len(inputs), rng)


def _search(run: Run, each: Map, out: Path, started: float, progress: bool) -> None:
    """Step up to the last generation, saving on the way; ``started`` is the time of the start."""
    arguments = run.arguments
    bar = ProgressBar(f"{COUNT} generations, {{task.fields[gap]}}", shown=progress)
    with bar:
        task = bar.add_task(
            "evolving", total=arguments.generations, completed=run.centre.generation, gap="-"
        )
        while run.centre.generation < arguments.generations:
            run.centre, gap = generation_of(run, each)
            validated = run.centre.generation % arguments.validation_every == 0
            if validated:
                row = _validate(run, each, time.perf_counter() - started)
                append_row(out / CURVE, row)
                save_index(out, index_of(arguments, run.best))
            if validated or run.centre.generation % SAVE_EVERY == 0:
                save_state(out / STATE, arguments, run)
            bar.update(task, advance=1, gap=f"{gap:+.4f} against {arguments.base}")


def generation_of(run: Run, each: Map) -> tuple[Centre, float]:
    """Play a generation.

    Returns:
        The centre after it, and the mean freshness of its candidates above the base's.
    """
    arguments, centre = run.arguments, run.centre
    noise = noise_of(centre, arguments.pairs, arguments.seed)
    rivals: list[Candidate] = [
        index_of(arguments, free) for free in candidates_of(centre, noise, arguments.sigma)
    ]
    seeds = training_seeds(arguments, centre.generation)
    fresh = freshness_of(arguments, [*rivals, arguments.base], seeds, each).mean(axis=0)
    gap = float(fresh[:-1].mean() - fresh[-1])
    step_size = arguments.learning_rate / (1.0 + centre.generation / arguments.slowing)
    return stepped(centre, noise, fresh[:-1], arguments.sigma, step_size), gap


def _validate(run: Run, each: Map, seconds: float) -> CurveRow:
    """Play the averaged centre, and keep it where it is the best so far."""
    arguments, average = run.arguments, run.centre.average
    rivals: list[Candidate] = [index_of(arguments, average), arguments.base]
    fresh = freshness_of(arguments, rivals, validation_seeds(arguments), each)
    mine, theirs = fresh.mean(axis=0)
    if mine > run.best_freshness:
        run.best, run.best_freshness = average, float(mine)
    return CurveRow(run.centre.generation, float(mine), float(theirs), round(seconds, 3))


def save_state(path: Path, arguments: EvolutionArguments, run: Run) -> None:
    """Write the state of a run; equal runs have equal files."""
    values = {
        "format": STATE_FORMAT,
        "arguments": json.loads(arguments.to_json()),
        "generation": run.centre.generation,
        "best_freshness": run.best_freshness if math.isfinite(run.best_freshness) else None,
        "best": run.best.tolist(),
        **{name: getattr(run.centre, name).tolist() for name in ARRAYS},
    }
    replace_text(path, json.dumps(values) + "\n")


ARRAYS = ("free", "average", "gradient", "square")


def read_state(path: Path, arguments: EvolutionArguments) -> Run:
    """Return the state of a run.

    Raises:
        ValueError: the file is damaged or foreign, or the run has other arguments.
    """
    values = read_object(path)
    if values.get("format") != STATE_FORMAT:
        raise ValueError(f"{path} is not the state of an evolution ({STATE_FORMAT})")
    try:
        earlier = EvolutionArguments(**values["arguments"])
        arrays = {name: _numbers(values[name], earlier) for name in (*ARRAYS, "best")}
        best = values["best_freshness"]
        freshness = -math.inf if best is None else float(best)
        generation = int(values["generation"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    arguments.check_resumes(earlier)
    best_free = arrays.pop("best")
    return Run(arguments, Centre(**arrays, generation=generation), best_free, freshness)


def _numbers(values: Any, arguments: EvolutionArguments) -> FloatArray:
    """Return an array of one number per weight."""
    array = np.array(values, np.float64)
    if array.shape != first_weights(arguments).shape:
        raise ValueError(f"there must be one number per weight, got shape {array.shape}")
    return array
