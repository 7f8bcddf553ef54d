"""Train entrants on the training versions of tasks: an agent for each task, or one for all.

An algorithm in the form of Stable-Baselines3 is trained for each task, in TASK/seed-0 and so on. A
function ``train(worlds, seed, folder)`` trains one agent for all tasks, in seed-0 and so on, and
``load(folder, env)`` of its module loads it; ``worlds`` is a list of ids and arguments of
environments. Finished trainings are kept. An error in code of the user is printed with its
traceback, and ends the command with the name of the learner.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

import agents
from agents.catalog import ALGORITHMS
from agents.runs import read_object, replace_text
from agents.sb3.hyperparameters import defaults
from crawl_envs.evaluation import PolicyFactory
from crawl_envs.types import Policy
from crawl_envs.types.arguments import one_of
from scripts.present.tables import counted
from scripts.study.entrants import (
    Candidate,
    UserCodeError,
    agent_factory,
    hash_of,
    per_task,
    training_seconds,
)
from scripts.study.rows import PROVENANCE, check_folder, write_provenance
from scripts.study.specs import spec
from scripts.suite.entrants import METHODS, YOURS, Entrant
from scripts.suite.protocol import DECLARATION, STEPS, TRAININGS, Training, training_world
from scripts.suite.tasks import OFFERS, Task
from scripts.training import requests
from scripts.training.jobs import job_of
from scripts.training.runs import begin
from scripts.training.seeds import train_seeds

FORMS = "module:Class in the form of Stable-Baselines3, or module:function"
OTHER_RUNS = (
    "{} has another training, or its module has changed since; name another --out, or start over "
    "with --fresh"
)
Trained = tuple[Candidate, Entrant]


def train_learners(
    tasks: Sequence[Task], training: Training, folder: Path, console: Console
) -> dict[str, Trained]:
    """Check all learners, then train each in a subfolder; return entrants and descriptions.

    Raises:
        ValueError: an unknown name, a learner that fits none of the tasks, runs of another
            command in the folder, or an error in code of the user.
    """
    plans = []
    for name in training.names:
        function, out = _function(name), folder / name.replace(":", "-")
        if function is not None:
            plans.append(_plan_for_all(name, function, tasks, training, out))
        else:
            plans.append(_plan_per_task(name, tasks, training, out, console))
    return dict(zip(training.names, (train() for train in plans), strict=True))


def _plan_per_task(
    name: str, tasks: Sequence[Task], training: Training, folder: Path, console: Console
) -> Callable[[], Trained]:
    """Check an algorithm or class; return the function that trains it for each task it fits."""
    limit, planned = min(STEPS, defaults(name)["steps"]), {}
    steps = limit if training.steps is None else training.steps
    for task in tasks:
        id, world = json.loads(json.dumps(training_world(task)))  # as in the file of a run
        request = requests.Request(kind=name, env_id=id, env_args=world, seeds=training.repeats)
        hidden = task.id == OFFERS or world.get("reveal") == "importance"
        belief = hidden and world.get("action") != "rates"  # agents see the columns of a belief
        options = {"steps": steps, "validation": 0, "belief": belief}
        request = replace(request, options=options)
        try:
            job_of(request)
        except ValueError as error:  # actions or costs that the algorithm cannot handle
            reason = f"{name} cannot be trained for {task.name}: {error}"
            console.print(reason, soft_wrap=True, markup=False)
            continue
        stored = (folder / task.name / requests.RUN).exists() and not training.fresh
        if stored and requests.read_request(folder / task.name) != request:
            raise ValueError(OTHER_RUNS.format(folder / task.name))
        planned[task.name] = request
    if not planned:
        raise ValueError(f"--train {name} must fit one of the tasks: {reason}")
    by = name.upper() if name in ALGORITHMS else name
    on = f"per task{_extent(training)}" + f", {steps:,} steps" * (steps != STEPS)

    def train() -> Trained:
        for task, request in planned.items():
            _train(request, folder / task, training.fresh)
        make = partial(_own_factory, name) if ":" in name else agent_factory
        candidate = per_task(name, {task: folder / task for task in planned}, make)
        return candidate, Entrant(YOURS, METHODS.get(by, ""), by=by, on=on)

    return train


def _extent(training: Training) -> str:
    """Return the number of trainings in words, if it is not that of the protocol."""
    return f", {counted(training.repeats, 'training')}" * (training.repeats != TRAININGS)


def _plan_for_all(
    name: str, function: Any, tasks: Sequence[Task], training: Training, folder: Path
) -> Callable[[], Trained]:
    """Check a function; return the function that calls it for each unfinished training."""
    if training.steps is not None:
        raise ValueError(f"--steps must be left out with a function, got {training.steps}")
    worlds = json.loads(json.dumps([training_world(task) for task in tasks]))
    code = hash_of(Path(inspect.getfile(function)).read_bytes())
    declared = {"worlds": [{"id": id, "arguments": values} for id, values in worlds], "code": code}
    runs = [folder / f"seed-{number}" for number in range(training.repeats)]
    finished = [run for run in runs if (run / DECLARATION).exists() and not training.fresh]
    for run in finished:
        if read_object(run / DECLARATION) != declared:
            raise ValueError(OTHER_RUNS.format(run))

    def train() -> Trained:
        for number, run in enumerate(runs):
            if run not in finished:
                check_folder(run)
                with _timed(run):
                    call_user(name, function, worlds, requests.SEED_STEP * number, run)
                replace_text(run / DECLARATION, json.dumps(declared, indent=1) + "\n")
        seconds = sum(training_seconds(run, ()) for run in runs)
        factory = _own_factory(name, str(folder), runs)
        candidate = Candidate(name, factory, "", {}, True, seconds, tuple(runs))
        return candidate, Entrant(YOURS, by=name, on=f"one for all{_extent(training)}")

    return train


def _function(name: str) -> Callable[..., Any] | None:
    """Return the function that a name stands for; None for an algorithm or a class."""
    module, colon, attribute = name.partition(":")
    if not colon:
        one_of("--train", name, ALGORITHMS, FORMS)
        return None
    requests.import_user_classes(name, {})
    learner: Any = getattr(sys.modules[module], attribute, None)
    if not (inspect.isclass(learner) or inspect.isfunction(learner)):
        raise ValueError(f"--train must be {FORMS}, got {name!r}")
    if not inspect.isclass(learner) and not callable(getattr(sys.modules[module], "load", None)):
        raise ValueError(f"{module} must have a function load(folder, env), as {name} trains")
    return None if inspect.isclass(learner) else learner


def _train(request: requests.Request, folder: Path, fresh: bool) -> None:
    """Train the runs of a request in a folder, unless they are finished."""
    if (folder / requests.RUN).exists() and (folder / PROVENANCE).exists() and not fresh:
        return
    runs = requests.runs_of(request, folder)
    jobs = {run: job_of(one) for run, one in runs.items()}
    begin(folder, request, jobs, fresh)
    with _timed(folder):
        if ":" in request.kind:
            call_user(request.kind, train_seeds, runs, jobs)
        else:
            train_seeds(runs, jobs)


@contextmanager
def _timed(folder: Path) -> Iterator[None]:
    """Write the wall time and processor time of a training to a folder once it is finished."""
    started, busy = time.perf_counter(), sum(os.times()[:4])
    yield
    seconds, spent = time.perf_counter() - started, round(sum(os.times()[:4]) - busy, 1)
    write_provenance(folder / PROVENANCE, "scripts.rank", seconds, processor_seconds=spent)


def _own_factory(name: str, folder: str, runs: Sequence[Path]) -> PolicyFactory:
    """Return a factory of the agent that a class or function of the user trained in a folder."""
    files = [Path(inspect.getfile(sys.modules[name.partition(":")[0]]))]
    files += [path for run in runs for path in sorted(run.rglob("*")) if path.is_file()]
    digest = hash_of(b"".join(file.read_bytes() for file in files))
    names = [run.name for run in runs]
    return partial(own_agent, name, folder=folder, file_digest=digest, trainings=names)


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
    """Load an agent that a class or function of the user trained, whose module is imported.

    The name, the folder and ``file_digest``, a hash of the module and of the agent's files,
    identify its rows.
    """
    module, _, attribute = name.partition(":")
    code = import_module(module)
    load = agents.load if inspect.isclass(getattr(code, attribute)) else code.load
    run = Path(folder) / trainings[training]
    agent: Policy = call_user(name, load, run, env, refusals=(ValueError,))
    return agent


def call_user(
    name: str, function: Any, *arguments: Any, refusals: tuple[type[Exception], ...] = ()
) -> Any:
    """Return the value of a function of the user; let errors of the types ``refusals`` pass.

    Raises:
        UserCodeError: the function raised another error, or ended the program. Its traceback is
            printed.
    """
    try:
        return function(*arguments)
    except refusals:
        raise
    except (Exception, SystemExit) as error:
        first = error.__traceback__ and error.__traceback__.tb_next  # the frame of the function
        traceback.print_exception(type(error), error, first)
        what = f"{type(error).__name__}: {error}"
        raise UserCodeError(f"learner {name} failed: {what}") from error
