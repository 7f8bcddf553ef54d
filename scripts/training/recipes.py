"""Runs from requests, hyperparameter files and recommended settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agents.catalog import ALGORITHMS
from agents.cloning.train import CloneArguments
from agents.index.arguments import IndexArguments
from agents.sb3.arguments import TrainArguments
from agents.sb3.hyperparameters import FALLBACK, WORDS
from agents.sb3.lanes import recommended
from crawl_envs.types.arguments import one_of
from scripts.reporting.options import PREFIX, refuse
from scripts.training.jobs import Cloning, IndexJob, Job, Learning
from scripts.training.requests import Request

CLONE, INDEX = "clone", "index"
KINDS = (*ALGORITHMS, CLONE, INDEX)
"""Kinds of runs: the algorithms of Stable-Baselines3, cloning, and learning an index from outcomes
of crawls."""
OF_CLONING = {"learning_rate": 3e-3, "lanes": 64, "gamma": 0.95, "train_pages": 0}
"""Recommended arguments for cloning, where the target is fixed."""
OF_LEARNING = ("tensorboard", "validation", "callback")
"""Options of the algorithms of Stable-Baselines3 alone."""
SIZES = ("instance", "num_pages", "bandwidth", "horizon")
"""Arguments of the environment that the training of an index supports."""
OWN = {entry.name for entry in fields(TrainArguments)}


def job_of(request: Request) -> Job:
    """Return the requested run.

    Raises:
        ValueError: an unknown algorithm, an option that does not apply to it, or an invalid value.
    """
    kind = one_of("algorithm", request.kind, KINDS)
    if kind == CLONE:
        return _of_clone(request)
    return _of_index(request) if kind == INDEX else _of_learning(request)


def _refuse(request: Request, *names: str) -> None:
    """Raise ValueError if one of several options is given."""
    refuse({name: request.options.get(name) for name in names}, f"to {request.kind}")


def _of_learning(request: Request) -> Learning:
    _refuse(request, "teacher")
    own = {name: request.options[name] for name in OF_LEARNING if name in request.options}
    return Learning(_arguments(request, request.kind, request.settings), **own)


def _of_clone(request: Request) -> Cloning:
    _refuse(request, *OF_LEARNING, "start", "steps")
    known = {entry.name for entry in fields(CloneArguments)}
    own = {name: value for name, value in request.settings.items() if name in known}
    rest = {name: value for name, value in request.settings.items() if name not in known}
    if "teacher" in request.options:
        own["teacher"] = request.options["teacher"]
    return Cloning(_arguments(request, "ppo", rest, **OF_CLONING), CloneArguments(**own))


def _of_index(request: Request) -> IndexJob:
    kind, given = request.kind, request.options
    _refuse(request, *(name for name in given if name not in ("seed", "learning_rate")))
    if request.env_id.removeprefix(PREFIX) != FALLBACK:
        raise ValueError(f"env_id must be {FALLBACK} for {kind}, got {request.env_id!r}")
    for name in request.env_args:
        one_of(f"env-arg of {kind}", name, SIZES)
    values = {**request.hyperparameters, **request.settings, **given, **request.env_args}
    if request.instance is not None:
        values["pinned"] = request.instance
    known = [entry.name for entry in fields(IndexArguments)]
    for name in values:
        if name not in known:
            raise ValueError(f"settings of {kind} must be among {', '.join(known)}, got {name!r}")
    return IndexJob(IndexArguments(**values))


def _arguments(
    request: Request, algorithm: str, settings: Mapping[str, Any], **base: Any
) -> TrainArguments:
    """Return the arguments of a run of an algorithm of Stable-Baselines3."""
    named = [*base.items(), *request.hyperparameters.items(), *settings.items()]
    given = {WORDS.get(name, name): value for name, value in named}
    for name in ("algorithm", "env_id", "env_args", "instance", "model_args"):
        if name in given:
            raise ValueError(f"hyperparameters must not name {name!r}, an argument of the command")
    return recommended(
        algorithm,
        request.env_id,
        env_args=request.env_args,
        instance=request.instance,
        model_args={name: value for name, value in given.items() if name not in OWN},
        **{name: value for name, value in {**given, **request.options}.items() if name in OWN},
    )
