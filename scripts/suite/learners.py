"""Train entrants on the training versions of tasks: an agent for each task, or one for all.

An algorithm in the form of Stable-Baselines3 is trained for each task, in TASK/seed-0 and so on. A
function ``train(worlds, seed, folder)`` trains one agent for all tasks, in seed-0 and so on, and
``load(folder, env)`` of its module loads it; ``worlds`` is a list of ids and arguments of
environments. Finished trainings are kept.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from scripts.study.entrants import Candidate, agent_factory, hash_of, per_task, training_seconds
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
OTHER_RUNS = "{} has another training; name another --out, or start over with --fresh"


def train_learner(
    name: str, tasks: Sequence[Task], training: Training, folder: Path, console: Console
) -> tuple[Candidate, Entrant]:
    """Train a learner in a folder for tasks; return the entrant and its description.

    Raises:
        ValueError: an unknown name, a learner that fits none of the tasks, or runs of another
            command in the folder.
    """
    function = _function(name)
    few = "" if training.repeats == TRAININGS else f", {counted(training.repeats, 'training')}"
    if function is not None:
        if training.steps is not None:
            raise ValueError(f"--steps must be left out with a function, got {training.steps}")
        candidate = _train_for_all(name, function, tasks, training, folder)
        return candidate, Entrant(YOURS, by=name, on=f"one for all{few}")
    steps = min(STEPS, defaults(name)["steps"]) if training.steps is None else training.steps
    by_task = {}
    for task in tasks:
        try:
            request = _request(name, task, training.repeats, steps)
        except ValueError as error:  # actions or costs that the algorithm cannot handle
            reason = f"{name} cannot be trained for {task.name}: {error}"
            console.print(reason, soft_wrap=True, markup=False)
            continue
        by_task[task.name] = folder / task.name
        _train(request, by_task[task.name], training.fresh)
    if not by_task:
        raise ValueError(f"--train {name} must fit one of the tasks: {reason}")
    by = name.upper() if name in ALGORITHMS else name
    few += f", {steps:,} steps" * (steps != STEPS)
    make = partial(_own_factory, name) if ":" in name else agent_factory
    entrant = Entrant(YOURS, METHODS.get(by, ""), by=by, on=f"per task{few}")
    return per_task(name, by_task, make), entrant


def _function(name: str) -> Callable[..., Any] | None:
    """Return the function that a name stands for; None for an algorithm or a class.

    Raises:
        ValueError: an unknown name, or a module without ``load``.
    """
    module, colon, attribute = name.partition(":")
    if not colon:
        one_of("--train", name, ALGORITHMS, FORMS)
        return None
    requests.import_user_classes(name, {})
    learner: Any = getattr(sys.modules[module], attribute, None)
    if not callable(learner):
        raise ValueError(f"--train must be {FORMS}, got {name!r}")
    if not inspect.isclass(learner) and not callable(getattr(sys.modules[module], "load", None)):
        raise ValueError(f"{module} must have a function load(folder, env), as {name} trains")
    return None if inspect.isclass(learner) else learner


def _request(name: str, task: Task, repeats: int, steps: int) -> requests.Request:
    """Return the request of the runs of a task; ValueError if the algorithm cannot train there.

    Where change rates are hidden, agents see the columns of a belief.
    """
    id, arguments = json.loads(json.dumps(training_world(task)))  # as in the file of a run
    hidden = task.id == OFFERS or arguments.get("reveal") == "importance"
    request = requests.Request(
        kind=name,
        env_id=id,
        env_args=arguments,
        options={
            **{"steps": steps, "validation": 0},
            "belief": hidden and arguments.get("action") != "rates",
        },
        seeds=repeats,
    )
    job_of(request)
    return request


def _train(request: requests.Request, folder: Path, fresh: bool) -> None:
    """Train the runs of a request, unless the folder has them; ValueError if it has others."""
    if (folder / requests.RUN).exists() and not fresh:
        if requests.read_request(folder) != request:
            raise ValueError(OTHER_RUNS.format(folder))
        if (folder / PROVENANCE).exists():
            return
    runs = requests.runs_of(request, folder)
    jobs = {run: job_of(one) for run, one in runs.items()}
    begin(folder, request, jobs, fresh)
    with _timed(folder):
        train_seeds(runs, jobs)


@contextmanager
def _timed(folder: Path) -> Iterator[None]:
    """Write the wall time and processor time of a training to a folder once it is finished."""
    started, busy = time.perf_counter(), sum(os.times()[:4])
    yield
    seconds, spent = time.perf_counter() - started, round(sum(os.times()[:4]) - busy, 1)
    write_provenance(folder / PROVENANCE, "scripts.rank", seconds, processor_seconds=spent)


def _train_for_all(
    name: str,
    function: Callable[..., Any],
    tasks: Sequence[Task],
    training: Training,
    folder: Path,
) -> Candidate:
    """Call a function for each training that is not finished; return the entrant of all tasks."""
    worlds = json.loads(json.dumps([training_world(task) for task in tasks]))
    code = hash_of(Path(inspect.getfile(function)).read_bytes())
    listed = [{"id": id, "arguments": arguments} for id, arguments in worlds]
    declared = {"worlds": listed, "code": code}
    runs = [folder / f"seed-{number}" for number in range(training.repeats)]
    for number, run in enumerate(runs):
        if training.fresh or not (run / DECLARATION).exists():
            check_folder(run)
            with _timed(run):
                function(worlds, requests.SEED_STEP * number, run)
            replace_text(run / DECLARATION, json.dumps(declared, indent=1) + "\n")
        elif read_object(run / DECLARATION) != declared:
            raise ValueError(OTHER_RUNS.format(run))
    seconds = sum(training_seconds(run, ()) for run in runs)
    return Candidate(
        name, _own_factory(name, str(folder), runs), "", {}, True, seconds, tuple(runs)
    )


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
    agent: Policy = load(Path(folder) / trainings[training], env)
    return agent
