"""Train entrants on the training versions of tasks: an agent for each task, or one for all.

An algorithm in the form of Stable-Baselines3 is trained for each task. A function
``train(worlds, seed, folder)`` trains one agent for all tasks, which ``load(folder, env)`` of the
same module loads; ``worlds`` is a list of ids and arguments of environments. The runs of a learner
are in ``TASK/seed-0``, ``TASK/seed-1`` and so on, or without TASK. Finished trainings are kept.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from agents.catalog import ALGORITHMS, trainings
from agents.runs import read_object, replace_text
from agents.sb3.hyperparameters import defaults
from crawl_envs.types import Policy
from crawl_envs.types.arguments import one_of
from scripts.present.tables import counted
from scripts.study.entrants import Candidate, agent_factory, hash_of, training_seconds
from scripts.study.rows import PROVENANCE, check_folder, write_provenance
from scripts.study.specs import spec
from scripts.suite.entrants import METHODS, YOURS, Entrant
from scripts.suite.protocol import DECLARATION, World, training_world
from scripts.suite.tasks import Task
from scripts.training import requests
from scripts.training.jobs import job_of
from scripts.training.runs import begin
from scripts.training.seeds import train_seeds

TRAININGS, STEPS = 5, 2_000_000
"""Number of trainings of the protocol; the largest number of steps of each."""
FORMS = "module:Class in the form of Stable-Baselines3, or module:function"


class Training(NamedTuple):
    """How to train the learners that a command names.

    Attributes:
        names: algorithms, or ``module:Class`` or ``module:function``.
        repeats: number of trainings of a learner.
        steps: steps of a training; None for those of the protocol. Functions have their own.
    """

    names: Sequence[str] = ()
    repeats: int = TRAININGS
    steps: int | None = None


def train_learner(
    name: str,
    tasks: Sequence[Task],
    training: Training,
    folder: Path,
    console: Console,
    fresh: bool,
) -> tuple[Candidate, Entrant]:
    """Train a learner for tasks; return the entrant and its description.

    Args:
        name: an algorithm, ``module:Class`` or ``module:function``.
        tasks: the tasks to train for.
        training: numbers of trainings and steps.
        folder: folder of the runs.
        console: console of messages.
        fresh: whether to discard earlier runs.

    Raises:
        ValueError: an unknown name, a learner that cannot be trained for any of the tasks, or runs
            of other tasks or steps in the folder.
    """
    function = _function(name)
    few = "" if training.repeats == TRAININGS else f", {counted(training.repeats, 'training')}"
    if function is not None:
        if training.steps is not None:
            raise ValueError(f"--steps must be left out with a function, got {training.steps}")
        worlds = [training_world(task) for task in tasks]
        candidate = _train_for_all(name, function, worlds, training.repeats, folder, fresh)
        return candidate, Entrant(YOURS, by=name, on=f"one for all{few}")
    steps = min(STEPS, defaults(name)["steps"]) if training.steps is None else training.steps
    by_task = {}
    for task in tasks:
        try:
            request = _request(name, task, training.repeats, steps)
        except ValueError as error:  # actions or costs that the algorithm cannot handle
            reason = f"{name} cannot be trained for {task.name}: {error}"
            console.print(reason, soft_wrap=True, markup=False)
        else:
            _train(request, folder / task.name, fresh)
            by_task[task.name] = folder / task.name
    if not by_task:
        raise ValueError(f"--train {name} must fit at least one of the tasks: {reason}")
    by = name.upper() if name in ALGORITHMS else name
    few += f", {steps:,} steps" * (steps != STEPS)
    return _per_task(name, by_task), Entrant(YOURS, METHODS.get(by, ""), by=by, on=f"per task{few}")


def _function(name: str) -> Callable[..., Any] | None:
    """Return the function that a name stands for; None for an algorithm or a class.

    Raises:
        ValueError: an unknown name, or a module without ``load``.
    """
    if ":" not in name:
        one_of("--train", name, ALGORITHMS, FORMS)
        return None
    requests.import_user_classes(name, {})
    module, _, attribute = name.partition(":")
    learner = getattr(sys.modules[module], attribute, None)
    if inspect.isclass(learner):
        return None
    if not callable(learner):
        raise ValueError(f"--train must be {FORMS}, got {name!r}")
    if not callable(getattr(sys.modules[module], "load", None)):
        raise ValueError(f"{module} must have a function load(folder, env), as {name} trains")
    function: Callable[..., Any] = learner
    return function


def _request(name: str, task: Task, count: int, steps: int) -> requests.Request:
    """Return the request of the runs of a task; ValueError if the algorithm cannot train there."""
    id, arguments = json.loads(json.dumps(training_world(task)))  # as in the file of a run
    options = {"steps": steps, "validation": 0}
    request = requests.Request(
        kind=name, env_id=id, env_args=arguments, options=options, seeds=count
    )
    job_of(request)
    return request


def _train(request: requests.Request, folder: Path, fresh: bool) -> None:
    """Train the runs of a request, unless the folder has them already.

    Raises:
        ValueError: the folder has other runs, or longer ones.
    """
    if (folder / requests.RUN).exists() and not fresh:
        stored = requests.read_request(folder)
        if stored == request and (folder / PROVENANCE).exists():
            return
        earlier, steps = stored.options["steps"], request.options["steps"]
        if earlier > steps:
            raise ValueError(
                f"--steps must be at least {earlier} as in {folder}, got {steps}; name another "
                "--out, or start over with --fresh"
            )
    runs = requests.runs_of(request, folder)
    jobs = {run: job_of(one) for run, one in runs.items()}
    begin(folder, request, jobs, fresh)
    (folder / PROVENANCE).unlink(missing_ok=True)
    with _timed(folder):
        train_seeds(runs, jobs)


@contextmanager
def _timed(folder: Path) -> Iterator[None]:
    """Write the wall time and processor time of a training to a folder once it is finished."""
    started, busy = time.perf_counter(), sum(os.times()[:4])
    yield
    seconds, spent = time.perf_counter() - started, round(sum(os.times()[:4]) - busy, 1)
    write_provenance(folder / PROVENANCE, "scripts.rank", seconds, processor_seconds=spent)


def _per_task(name: str, by_task: Mapping[str, Path]) -> Candidate:
    """Return the entrant of an algorithm, which plays each task by the trainings in its folder."""
    runs = {task: trainings(folder) for task, folder in by_task.items()}
    factories = {task: agent_factory(str(by_task[task]), runs[task]) for task in runs}
    return Candidate(
        name,
        next(iter(factories.values())),
        learned=True,
        training_seconds=sum(training_seconds(by_task[task], runs[task]) for task in runs),
        trainings=tuple(run for group in runs.values() for run in group),
        by_task=factories,
    )


def _train_for_all(
    name: str,
    function: Callable[..., Any],
    worlds: Sequence[World],
    count: int,
    folder: Path,
    fresh: bool,
) -> Candidate:
    """Call a function for each training that is not finished; return the entrant of all tasks."""
    declared = {"worlds": [{"id": id, "arguments": dict(values)} for id, values in worlds]}
    runs = [folder / f"seed-{number}" for number in range(count)]
    for number, run in enumerate(runs):
        if fresh:
            shutil.rmtree(run, ignore_errors=True)
        if (run / DECLARATION).exists():
            if read_object(run / DECLARATION) != declared:
                raise ValueError(
                    f"{run} must have a training for the same tasks; name another --out, or start "
                    "over with --fresh"
                )
            continue
        check_folder(run)
        with _timed(run):
            function(json.loads(json.dumps(worlds)), requests.SEED_STEP * number, run)
        replace_text(run / DECLARATION, json.dumps(declared, indent=1) + "\n")
    module = sys.modules[name.partition(":")[0]]
    files = [Path(inspect.getfile(module)), *(file for run in runs for file in files_below(run))]
    digest = hash_of(b"".join(file.read_bytes() for file in files))
    names = [run.name for run in runs]
    factory = partial(own_agent, name, folder=str(folder), file_digest=digest, trainings=names)
    seconds = sum(training_seconds(run, ()) for run in runs)
    return Candidate(name, factory, learned=True, training_seconds=seconds, trainings=tuple(runs))


def files_below(folder: Path) -> list[Path]:
    """Return all files of a folder and its subfolders, sorted."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


@spec("own-agent")
def own_agent(
    name: str,
    env: Any,
    *,
    folder: str,
    file_digest: str,
    trainings: Sequence[str],
    training: int = 0,
) -> Policy:
    """Load an agent of the user by ``load`` of the module that trained it.

    The name, the folder and ``file_digest``, a hash of the module and of the agent's files,
    identify its rows.
    """
    module = importlib.import_module(name.partition(":")[0])
    agent: Policy = module.load(Path(folder) / trainings[training], env)
    return agent
